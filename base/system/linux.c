#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/system/system.h"

int base_system_nameless(const char *folder)
{
    if (access("/proc/self/fd", X_OK) != 0)
        return -1; /* it could not be named */
    return open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
}

int base_system_give_name(int fd, const char *path)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

int base_system_rename_new(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
}

int base_system_set_aside(int fd, int64_t n_bytes)
{
    return fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, n_bytes) == 0 ? 0 : errno;
}

unsigned base_system_processors(void)
{
    cpu_set_t set; /* too small a set on machines with more than 1024 processors */
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (unsigned)CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

double base_system_peak(void)
{
    char line[128];
    unsigned long long peak = 0;
    FILE *about = fopen("/proc/self/status", "re");
    while (about && !peak && fgets(line, sizeof line, about))
        if (sscanf(line, "VmHWM: %llu kB", &peak) != 1)
            peak = 0;
    if (about)
        fclose(about);
    struct rusage usage; /* has also what the program had that became this one */
    if (!peak && getrusage(RUSAGE_SELF, &usage) == 0)
        peak = (unsigned long long)usage.ru_maxrss;
    return 1024 * (double)peak;
}

double base_system_resident(void)
{
    unsigned long long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    if (fscanf(file, "%llu %llu", &pages, &resident) != 2)
        resident = 0;
    fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

double base_system_resident_of(base_system_counts *counts, const void *context)
{
    /* Entries of a line "start-end perms ..." and lines "Name: value kB", Rss among them. */
    FILE *maps = fopen("/proc/self/smaps", "re");
    if (!maps)
        return -1;
    char line[512];
    bool counted = false;
    double kilobytes = 0;
    while (fgets(line, sizeof line, maps)) {
        unsigned long long start, end, rss;
        if (sscanf(line, "%llx-%llx ", &start, &end) == 2)
            counted = counts(context, (uintptr_t)start, (uintptr_t)end);
        else if (counted && sscanf(line, "Rss: %llu kB", &rss) == 1)
            kilobytes += (double)rss;
    }
    fclose(maps);
    return 1024 * kilobytes;
}

int base_system_move_pages(void *from, void *to, size_t n_bytes)
{
    void *moved = mremap(from, n_bytes, n_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    return moved == MAP_FAILED ? -1 : 0;
}

void base_system_huge_pages(void *memory, size_t n_bytes)
{
    (void)madvise(memory, n_bytes, MADV_HUGEPAGE);
}

int base_system_pipe(int ends[2])
{
    return pipe2(ends, O_CLOEXEC);
}

int base_system_socket(int family, bool waits)
{
    return socket(family, SOCK_STREAM | SOCK_CLOEXEC | (waits ? 0 : SOCK_NONBLOCK), 0);
}

int base_system_accept(int listener, bool waits)
{
    return accept4(listener, NULL, NULL, SOCK_CLOEXEC | (waits ? 0 : SOCK_NONBLOCK));
}

ssize_t base_system_send(int fd, const void *bytes, size_t n_bytes)
{
    return send(fd, bytes, n_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool base_system_hung_up(int fd)
{
    struct pollfd about = {.fd = fd, .events = POLLRDHUP};
    return poll(&about, 1, 0) > 0 && about.revents & (POLLRDHUP | POLLHUP | POLLERR);
}

void base_system_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct timespec base_system_condition_time(double deadline)
{
    double whole = floor(fmax(deadline, 0));
    return (struct timespec){.tv_sec = (time_t)whole,
                             .tv_nsec = (long)(1e9 * (fmax(deadline, 0) - whole))};
}

bool base_system_program(char path[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
    if (n <= 0 || n == PATH_MAX || *path != '/')
        return false;
    path[n] = '\0';
    return true;
}

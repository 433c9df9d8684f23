#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <malloc.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __aarch64__
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

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

/** The number of the line "name: number kB" of a file. */
static bool find_kilobytes(const char *path, const char *name, unsigned long long *kilobytes)
{
    char line[128];
    size_t n = strlen(name);
    bool found = false;
    FILE *about = fopen(path, "re");
    while (about && !found && fgets(line, sizeof line, about))
        found = strncmp(line, name, n) == 0 && sscanf(line + n, ": %llu kB", kilobytes) == 1;
    if (about)
        fclose(about);
    return found;
}

double base_system_available(void)
{
    unsigned long long kilobytes;
    bool found = find_kilobytes("/proc/meminfo", "MemAvailable", &kilobytes);
    return found ? 1024 * (double)kilobytes : (double)INFINITY;
}

double base_system_peak(void)
{
    unsigned long long peak = 0;
    (void)find_kilobytes("/proc/self/status", "VmHWM", &peak);
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

/** A cursor over /proc/self/maps. */
struct maps {
    int fd;
    char buffer[1024];
    size_t n, at;
};

/** The next byte, or -1 at the end. */
static int next_byte(struct maps *maps)
{
    if (maps->at == maps->n) {
        ssize_t n;
        do
            n = read(maps->fd, maps->buffer, sizeof maps->buffer);
        while (n < 0 && errno == EINTR);
        maps->n = n > 0 ? (size_t)n : 0;
        maps->at = 0;
    }
    return maps->at < maps->n ? (unsigned char)maps->buffer[maps->at++] : -1;
}

/** Hexadecimal digits up to `end`; false at anything else. */
static bool take_address(struct maps *maps, char end, uintptr_t *value)
{
    static const char digits[] = "0123456789abcdef";
    int byte;
    for (*value = 0; (byte = next_byte(maps)) > 0 && byte != end;) {
        const char *digit = memchr(digits, byte, 16);
        if (!digit)
            return false;
        *value = *value * 16 + (uintptr_t)(digit - digits);
    }
    return byte == end;
}

/** The rest of a line from its first '/' on, which is the path; "" where there is none. */
static void take_path(struct maps *maps, char *path, size_t capacity)
{
    size_t n = 0;
    int byte;
    while ((byte = next_byte(maps)) >= 0 && byte != '\n')
        if ((n || byte == '/') && n + 1 < capacity)
            path[n++] = (char)byte;
    path[n] = '\0';
}

/* A line is "start-end rights offset device inode   path". */
bool base_system_lost_page(const siginfo_t *fault, char *path, size_t capacity, uintptr_t *end)
{
    uintptr_t wanted = (uintptr_t)fault->si_addr, start;
    bool found = false;
    if (fault->si_code != BUS_ADRERR && fault->si_code != BUS_MCEERR_AR)
        return false;
    struct maps maps = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    if (maps.fd < 0)
        return false;
    while (!found && take_address(&maps, '-', &start) && take_address(&maps, ' ', end)) {
        take_path(&maps, path, capacity);
        found = start <= wanted && wanted < *end;
    }
    close(maps.fd);
    return found && *path;
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

void base_system_drop_pages(void *memory, size_t n_bytes)
{
    (void)madvise(memory, n_bytes, MADV_DONTNEED);
}

void base_system_return_memory(void)
{
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
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

void base_system_end_when_gone(int fd, int ms, bool sending)
{
    const struct {
        int level, name, value;
    } options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, ms / 3000},
        {IPPROTO_TCP, TCP_KEEPINTVL, ms / 6000},
        {IPPROTO_TCP, TCP_KEEPCNT, 4},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, sending ? ms : 0},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                   sizeof options[i].value);
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

static struct timespec time_of(double seconds)
{
    double whole = floor(seconds);
    return (struct timespec){.tv_sec = (time_t)whole, .tv_nsec = (long)(1e9 * (seconds - whole))};
}

struct timespec base_system_condition_time(double deadline)
{
    return time_of(fmax(deadline, 0));
}

int base_system_signal(const sigset_t *set, double seconds)
{
    const struct timespec wait = time_of(seconds);
    int number = sigtimedwait(set, NULL, &wait);
    return number > 0 ? number : 0;
}

unsigned base_system_instructions(void)
{
#ifdef __aarch64__
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP ? BASE_SYSTEM_DOTPROD : 0) |
           (getauxval(AT_HWCAP2) & HWCAP2_I8MM ? BASE_SYSTEM_I8MM : 0);
#else
    return 0;
#endif
}

bool base_system_keep_registers(int set)
{
#ifdef __x86_64__
    enum { ARCH_REQ_XCOMP_PERM = 0x1023 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, set) == 0;
#else
    (void)set;
    return false;
#endif
}

bool base_system_program(char path[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
    if (n <= 0 || n == PATH_MAX || *path != '/')
        return false;
    path[n] = '\0';
    return true;
}

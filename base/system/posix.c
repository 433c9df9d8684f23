#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/system/system.h"

int base_system_nameless(const char *folder)
{
    (void)folder;
    errno = ENOSYS;
    return -1;
}

int base_system_give_name(int fd, const char *path)
{
    (void)fd, (void)path;
    errno = ENOSYS;
    return -1;
}

int base_system_rename_new(const char *from, const char *to)
{
    (void)from, (void)to;
    errno = ENOSYS;
    return -1;
}

int base_system_set_aside(int fd, int64_t n_bytes)
{
    (void)fd, (void)n_bytes; /* posix_fallocate would make the file longer */
    return ENOSYS;
}

unsigned base_system_processors(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

double base_system_available(void)
{
#ifdef _SC_PHYS_PAGES
    long pages = sysconf(_SC_PHYS_PAGES);
    if (pages > 0)
        return (double)pages * (double)sysconf(_SC_PAGESIZE);
#endif
    return (double)INFINITY;
}

double base_system_peak(void)
{
#ifdef __APPLE__
    const double unit = 1; /* bytes there, KiB elsewhere */
#else
    const double unit = 1024;
#endif
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? unit * (double)usage.ru_maxrss : 0;
}

double base_system_resident(void)
{
    return base_system_peak();
}

double base_system_resident_of(base_system_counts *counts, const void *context)
{
    (void)counts, (void)context;
    return -1;
}

/* A page at a time: what lies after it may be of another file. */
bool base_system_lost_page(const siginfo_t *fault, char *path, size_t capacity, uintptr_t *end)
{
    static const char what[] = "a file";
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (fault->si_code != BUS_ADRERR || capacity < sizeof what)
        return false;
    memcpy(path, what, sizeof what);
    *end = ((uintptr_t)fault->si_addr / page + 1) * page;
    return true;
}

int base_system_move_pages(void *from, void *to, size_t n_bytes)
{
    void *there =
        mmap(to, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (there == MAP_FAILED)
        return -1;
    memcpy(there, from, n_bytes);
    if (mprotect(there, n_bytes, PROT_READ) != 0)
        return -1;
    munmap(from, n_bytes);
    return 0;
}

void base_system_huge_pages(void *memory, size_t n_bytes)
{
    (void)memory, (void)n_bytes;
}

void base_system_drop_pages(void *memory, size_t n_bytes)
{
    (void)posix_madvise(memory, n_bytes, POSIX_MADV_DONTNEED);
}

void base_system_return_memory(void)
{
}

/* What the forms with flags do in one step. Returns fd, or -1 and errno when it is closed again. */
static int prepare(int fd, bool waits)
{
    int status = fd < 0 ? -1 : fcntl(fd, F_GETFL);
    if (status >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 &&
        fcntl(fd, F_SETFL, waits ? status & ~O_NONBLOCK : status | O_NONBLOCK) == 0)
        return fd;
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

static int prepare_socket(int fd, bool waits)
{
    fd = prepare(fd, waits);
#ifdef SO_NOSIGPIPE
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &(int){1}, sizeof(int));
#endif
    return fd;
}

int base_system_pipe(int ends[2])
{
    if (pipe(ends) != 0)
        return -1;
    ends[0] = prepare(ends[0], true);
    ends[1] = prepare(ends[1], true);
    if (ends[0] >= 0 && ends[1] >= 0)
        return 0;
    for (size_t i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    return -1;
}

int base_system_socket(int family, bool waits)
{
    return prepare_socket(socket(family, SOCK_STREAM, 0), waits);
}

int base_system_accept(int listener, bool waits)
{
    return prepare_socket(accept(listener, NULL, NULL), waits);
}

ssize_t base_system_send(int fd, const void *bytes, size_t n_bytes)
{
#ifdef SO_NOSIGPIPE
    return send(fd, bytes, n_bytes, MSG_DONTWAIT);
#else
    return send(fd, bytes, n_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
#endif
}

void base_system_end_when_gone(int fd, int ms, bool sending)
{
    (void)ms, (void)sending; /* the system has a time of its own */
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
}

bool base_system_hung_up(int fd)
{
    char next;
    struct pollfd about = {.fd = fd, .events = POLLIN};
    if (poll(&about, 1, 0) <= 0)
        return false;
    return about.revents & (POLLHUP | POLLERR) || recv(fd, &next, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void base_system_condition_init(pthread_cond_t *condition)
{
    pthread_cond_init(condition, NULL);
}

/* On the clock that may be set: so at most a second ahead, after which the caller looks again. */
struct timespec base_system_condition_time(double deadline)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double wait = fmin(fmax(deadline - (double)now.tv_sec - 1e-9 * (double)now.tv_nsec, 0), 1);
    clock_gettime(CLOCK_REALTIME, &now);
    long ns = now.tv_nsec + (long)ceil(1e9 * wait);
    return (struct timespec){.tv_sec = now.tv_sec + ns / 1000000000, .tv_nsec = ns % 1000000000};
}

int base_system_signal(const sigset_t *set, double seconds)
{
    const struct timespec step = {.tv_nsec = 20000000};
    for (double left = seconds;; left -= 1e-9 * (double)step.tv_nsec) {
        sigset_t pending;
        int number = 1;
        sigpending(&pending);
        while (number < NSIG &&
               !(sigismember(set, number) == 1 && sigismember(&pending, number) == 1))
            number++;
        if (number < NSIG)
            return sigwait(set, &number) == 0 ? number : 0;
        if (left <= 0)
            return 0;
        nanosleep(&step, NULL);
    }
}

/* What the compiler was told of the processor. */
unsigned base_system_instructions(void)
{
    unsigned has = 0;
#ifdef __ARM_FEATURE_DOTPROD
    has |= BASE_SYSTEM_DOTPROD;
#endif
#ifdef __ARM_FEATURE_MATMUL_INT8
    has |= BASE_SYSTEM_I8MM;
#endif
    return has;
}

bool base_system_keep_registers(int set)
{
    (void)set;
    return false;
}

/* Where the loader says no more than how the program was called, that has to have a slash. */
bool base_system_program(char path[PATH_MAX])
{
    static const char here;
    Dl_info about;
    return dladdr(&here, &about) && about.dli_fname && strchr(about.dli_fname, '/') &&
           realpath(about.dli_fname, path);
}

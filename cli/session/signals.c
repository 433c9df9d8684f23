/* What is called from a signal handler here uses no stdio, no allocation and no locks. */
#include "cli/session/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "cli/run.h"

static atomic_bool interrupted;

/** Whether a write of a few bytes would wait for a reader. */
static bool is_stuck(int fd)
{
    struct pollfd about = {.fd = fd, .events = POLLOUT};
    return poll(&about, 1, 0) == 0;
}

static void print(const char *text)
{
    if (is_stuck(STDERR_FILENO))
        return;
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written; /* nobody is left to be told */
}

/* Writing to it fails from now on. */
static void give_up(int fd)
{
    int nowhere = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nowhere < 0)
        return;
    dup2(nowhere, fd);
    close(nowhere);
}

/*
 * After an interruption, again and again: an opening or a write that still waits for the other end
 * of a pipe fails with EINTR, and a standard stream that nobody reads is given up. What does not
 * wait sees nothing of it.
 */
static void on_tick(int number)
{
    (void)number;
    int before = errno;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (is_stuck(fd))
            give_up(fd);
    errno = before;
}

static void start_ticks(void)
{
    const struct itimerval often = {.it_value.tv_usec = 400000, .it_interval.tv_usec = 100000};
    setitimer(ITIMER_REAL, &often, NULL);
}

static void on_signal(int number)
{
    (void)number;
    if (atomic_exchange(&interrupted, true))
        _exit(CLI_EXIT_INTERRUPTED);
    start_ticks();
}

static void on_early_signal(int number)
{
    (void)number;
    print("assay: interrupted: there is no result\n");
    _exit(CLI_EXIT_INTERRUPTED);
}

/* A signal that comes ignored stays so: whoever started this in the background, or with nohup,
 * wants it to go on. */
static void handle_with(void (*handler)(int))
{
    static const int numbers[] = {SIGINT, SIGTERM};
    struct sigaction now, action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
}

void cli_interrupt_begin(void)
{
    handle_with(on_early_signal);
    signal(SIGXFSZ, SIG_IGN);
}

const atomic_bool *cli_interrupt_catch(void)
{
    struct sigaction tick = {.sa_handler = on_tick}; /* no SA_RESTART */
    sigemptyset(&tick.sa_mask);
    sigaction(SIGALRM, &tick, NULL);
    handle_with(on_signal);
    signal(SIGPIPE, SIG_IGN);
    return &interrupted;
}

bool cli_interrupted(void)
{
    return atomic_load(&interrupted);
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

/*
 * The file that is mapped at an address; "" where there is none. A line is "start-end rights
 * offset device inode   path".
 */
static void mapping_path(const void *address, char *path, size_t capacity)
{
    struct maps maps = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    uintptr_t wanted = (uintptr_t)address, start, end;
    bool found = false;
    path[0] = '\0';
    if (maps.fd < 0)
        return;
    while (!found && take_address(&maps, '-', &start) && take_address(&maps, ' ', &end)) {
        take_path(&maps, path, capacity);
        found = start <= wanted && wanted < end;
    }
    if (!found)
        path[0] = '\0';
    close(maps.fd);
}

/** Threads that read the same file meet the same fault: the first to come here says so. */
static void wait_unless_first(void)
{
    static atomic_flag taken = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&taken))
        pause(); /* until the first one ends the process */
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    (void)context;
    char path[512];
    path[0] = '\0';
    if (info->si_code == BUS_ADRERR || info->si_code == BUS_MCEERR_AR)
        mapping_path(info->si_addr, path, sizeof path);
    if (path[0] == '\0') {
        signal(number, SIG_DFL); /* the same instruction again, and for good */
        return;
    }
    wait_unless_first();
    print("assay: ");
    print(path);
    print(": a part of it can no longer be read: the file became shorter, or its disk "
          "failed\n");
    _exit(CLI_EXIT_FAILED);
}

void cli_mapping_fault_catch(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

/* What is called from a signal handler here uses no stdio, no allocation and no locks. */
#include "cli/process/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/system/system.h"
#include "cli/process/run.h"

/* What tells the program to end: Ctrl-C, kill, a terminal that is closed. */
static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_ENDING = sizeof ending / sizeof *ending };

static atomic_bool interrupted;
static volatile sig_atomic_t told_elsewhere;
static atomic_int handed_on; /* a process group; 0: none */

/** Whether a write of a few bytes would wait for a reader. */
static bool is_stuck(int fd)
{
    struct pollfd about = {.fd = fd, .events = POLLOUT};
    return poll(&about, 1, 0) == 0;
}

void cli_signal_print(const char *text)
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
    int before = errno;
    if (atomic_exchange(&interrupted, true)) {
        pid_t group = atomic_exchange(&handed_on, 0);
        if (!group)
            _exit(CLI_EXIT_INTERRUPTED);
        kill(-group, SIGKILL);
    }
    start_ticks();
    errno = before;
}

static void on_early_signal(int number)
{
    (void)number;
    if (!told_elsewhere)
        cli_signal_print("assay: interrupted: there is no result\n");
    _exit(CLI_EXIT_INTERRUPTED);
}

/* A signal that comes ignored stays so: whoever started this in the background, or with nohup,
 * wants it to go on. */
static void handle_with(void (*handler)(int))
{
    struct sigaction now, action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < N_ENDING; i++)
        if (sigaction(ending[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaction(ending[i], &action, NULL);
}

/** Those of them that did not come ignored. */
static sigset_t held_signals(void)
{
    struct sigaction now;
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < N_ENDING; i++)
        if (sigaction(ending[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(&set, ending[i]);
    return set;
}

void cli_signals_hold(void)
{
    const sigset_t set = held_signals();
    signal(SIGPIPE, SIG_IGN);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int cli_signal_next(double seconds)
{
    const sigset_t set = held_signals();
    return base_system_signal(&set, seconds);
}

void cli_signals_release(void)
{
    const sigset_t set = held_signals();
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
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

void cli_interrupt_hand_on(pid_t group)
{
    atomic_store(&handed_on, group);
}

void cli_interrupt_tell_elsewhere(void)
{
    told_elsewhere = 1;
}

bool cli_interrupt_is_told_elsewhere(void)
{
    return told_elsewhere;
}

bool cli_interrupted(void)
{
    return atomic_load(&interrupted);
}

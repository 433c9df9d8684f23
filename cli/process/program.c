#include "cli/process/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "cli/process/signals.h"

static const double grace_seconds = 2;
extern char **environ;

/** A group of its own, and no signal ignored that tells of an end. Returns an errno. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t usual;
    sigemptyset(&usual);
    sigaddset(&usual, SIGCHLD);
    sigaddset(&usual, SIGPIPE);
    int failed = posix_spawnattr_setpgroup(attributes, 0);
    if (!failed)
        failed = posix_spawnattr_setsigdefault(attributes, &usual);
    return failed ? failed
                  : posix_spawnattr_setflags(attributes,
                                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
}

/** Returns an errno. */
static int set_streams(posix_spawn_file_actions_t *files, const char *log)
{
    int failed = posix_spawn_file_actions_addopen(files, 0, "/dev/null", O_RDONLY, 0);
    if (!failed)
        failed =
            posix_spawn_file_actions_addopen(files, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    return failed ? failed : posix_spawn_file_actions_adddup2(files, 1, 2);
}

/** Returns an errno. */
static int start(pid_t *pid, char *const *words, const char *log)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    int failed = posix_spawn_file_actions_init(&files);
    if (failed)
        return failed;
    failed = posix_spawnattr_init(&attributes);
    if (!failed) {
        failed = set_attributes(&attributes);
        if (!failed)
            failed = set_streams(&files, log);
        if (!failed)
            failed = posix_spawnp(pid, words[0], &files, &attributes, words, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return failed;
}

/** Until it has ended; its number stays taken, so that what is left of its group can be killed. */
static void wait_for_end(pid_t pid)
{
    const struct timespec step = {0, 50 * 1000 * 1000};
    double told = 0; /* when: 0, not yet */
    for (;;) {
        siginfo_t about = {.si_pid = 0};
        if ((waitid(P_PID, (id_t)pid, &about, WEXITED | WNOWAIT | WNOHANG) != 0 &&
             errno != EINTR) ||
            about.si_pid == pid)
            break;
        double now = base_clock_seconds();
        if (cli_interrupted() && !(told > 0)) {
            kill(-pid, SIGTERM);
            told = now;
        } else if (told > 0 && now - told > grace_seconds) {
            kill(-pid, SIGKILL);
        }
        nanosleep(&step, NULL);
    }
    cli_interrupt_hand_on(0);
    kill(-pid, SIGKILL);
}

enum status cli_program_run(int *ended, char *const *words, const char *log, struct status_why *why)
{
    pid_t pid;
    signal(SIGCHLD, SIG_DFL); /* where it came ignored, nobody would be told how a program ended */
    int failed = start(&pid, words, log);
    if (failed == ENOMEM)
        return status_fail(why, STATUS_MEMORY, "no memory to run %s", words[0]);
    if (failed)
        return status_fail(why, STATUS_IO, "%s cannot be run: %s", words[0], strerror(failed));
    cli_interrupt_hand_on(pid);
    wait_for_end(pid);
    pid_t waited;
    do
        waited = waitpid(pid, ended, 0);
    while (waited < 0 && errno == EINTR);
    if (waited != pid)
        return status_fail(why, STATUS_IO, "what became of %s is not known: %s", words[0],
                           strerror(errno));
    return cli_interrupted() ? status_fail(why, STATUS_CANCELLED, "%s", "") : STATUS_OK;
}

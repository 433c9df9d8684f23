#include "cli/process/deadline.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "base/system/system.h"
#include "cli/process/run.h"
#include "cli/process/signals.h"

/** Second by second: a process that was stopped goes on where it was. */
static void *watch(void *opaque)
{
    const struct cli_deadline *d = opaque;
    struct pollfd about = {.fd = d->end[0], .events = POLLIN};
    for (int64_t i = 0; i < d->seconds; i++)
        if (poll(&about, 1, 1000) > 0)
            return NULL;
    cli_signal_print(d->sentence);
    _exit(CLI_EXIT_DEVICE);
}

enum status cli_deadline_begin(struct cli_deadline *d, int64_t seconds, const char *sentence,
                               struct status_why *why)
{
    sigset_t all, before;
    *d = (struct cli_deadline){.seconds = seconds};
    snprintf(d->sentence, sizeof d->sentence, "assay: %s\n", sentence);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the caller's */
    bool piped = base_system_pipe(d->end) == 0;
    bool begun = piped && pthread_create(&d->thread, NULL, watch, d) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (begun)
        return STATUS_OK;
    if (piped) {
        close(d->end[0]);
        close(d->end[1]);
    }
    return status_fail(why, STATUS_MEMORY, "no thread can be started for a time limit");
}

void cli_deadline_end(struct cli_deadline *d)
{
    (void)!write(d->end[1], "", 1);
    pthread_join(d->thread, NULL);
    close(d->end[0]);
    close(d->end[1]);
}

#include "cli/session/interrupt.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "cli/run.h"

static atomic_bool interrupted;

static void on_signal(int number)
{
    (void)number;
    if (atomic_exchange(&interrupted, true))
        _exit(CLI_EXIT_INTERRUPTED);
}

static void on_early_signal(int number)
{
    static const char sentence[] = "assay: interrupted: there is no result\n";
    (void)number;
    ssize_t written = write(STDERR_FILENO, sentence, sizeof sentence - 1);
    (void)written; /* nobody is left to be told */
    _exit(CLI_EXIT_INTERRUPTED);
}

static void handle_with(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

void cli_interrupt_begin(void)
{
    handle_with(on_early_signal);
    signal(SIGXFSZ, SIG_IGN);
}

const atomic_bool *cli_interrupt_catch(void)
{
    handle_with(on_signal);
    signal(SIGPIPE, SIG_IGN);
    return &interrupted;
}

#include "cli/interrupt.h"

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

const atomic_bool *cli_interrupt_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    return &interrupted;
}

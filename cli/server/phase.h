/** Progress of what is no evaluation: requests to a server, and what comes after them. */
#ifndef CLI_SERVER_PHASE_H
#define CLI_SERVER_PHASE_H

#include "cli/session/progress.h"

/** Zero-initialise. */
struct cli_phase {
    struct cli_progress progress;
    double begun; /* seconds */
};

/** What is shown begins anew. */
void cli_phase_begin(struct cli_phase *phase);
/** fraction: of the phase, 0 to 1. */
void cli_phase_show(struct cli_phase *phase, double fraction);
/** cli_phase_show of done of n steps, as a callback: user is the phase. */
void cli_phase_on_count(void *user, size_t done, size_t n);
/** Before anything else is printed. */
void cli_phase_end(struct cli_phase *phase);

#endif

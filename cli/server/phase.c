#include "cli/server/phase.h"

#include <math.h>

#include "base/clock.h"

void cli_phase_begin(struct cli_phase *phase)
{
    phase->begun = base_clock_seconds();
    cli_progress_clear(&phase->progress);
    cli_progress_begin(&phase->progress);
}

void cli_phase_show(struct cli_phase *phase, double fraction)
{
    double seconds = base_clock_seconds() - phase->begun;
    const struct eval_progress now = {
        .fraction = fraction,
        .seconds = seconds,
        .seconds_left = fraction > 0 ? seconds * (1 - fraction) / fraction : (double)NAN,
    };
    cli_progress_update(&phase->progress, &now);
}

void cli_phase_on_count(void *user, size_t done, size_t n)
{
    cli_phase_show(user, n ? (double)done / (double)n : 0);
}

void cli_phase_end(struct cli_phase *phase)
{
    cli_progress_clear(&phase->progress);
}

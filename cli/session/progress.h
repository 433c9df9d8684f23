/**
 * How far a run is, on standard error: a bar on a terminal, now and then a line elsewhere,
 * nothing with --quiet.
 */
#ifndef CLI_SESSION_PROGRESS_H
#define CLI_SESSION_PROGRESS_H

#include <stdbool.h>

#include "eval/run.h"

struct cli_progress {
    bool bar;       /* standard error is a terminal */
    bool shared;    /* standard output shows in the same place */
    bool drawn;     /* the bar stands in the last line */
    bool line_open; /* the last line of standard output has no end yet, and shows there */
    double shown;   /* seconds of the run at which it was shown last */
    int tenth;      /* of the run that was shown last */
    /* What is known so far, in entries with two blanks between them: as many are shown as the
     * terminal's line has room for, all where there is none. Borrowed; NULL: nothing. */
    const char *figures;
};

void cli_progress_begin(struct cli_progress *progress);

/** Show where the run stands, if it is time to. Cheap: call it as often as you like. */
void cli_progress_update(struct cli_progress *progress, const struct eval_progress *now);

/** Take the bar away: call it before anything else is printed. */
void cli_progress_clear(struct cli_progress *progress);

/** Something was printed on standard output without an end of line. */
void cli_progress_line_open(struct cli_progress *progress);
/** End that line where it shows: call it before anything is printed on standard error. */
void cli_progress_line_end(struct cli_progress *progress);

/**
 * The line of a bar, in `width` columns where there are figures, or the plain line, without its
 * end; for tests and for the above. Work that is not counted in tokens has n_tokens 0.
 */
void cli_progress_text(char *out, size_t capacity, const struct eval_progress *now,
                       const struct cli_progress *how, size_t width);

#endif

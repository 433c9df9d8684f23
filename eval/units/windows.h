/** Windows of a text as units of a run: each is one segment, its scores go into tables. */
#ifndef EVAL_UNITS_WINDOWS_H
#define EVAL_UNITS_WINDOWS_H

#include "eval/input/window.h"
#include "eval/metrics/stop.h"
#include "eval/run/unit.h"

/**
 * Fill in everything but `units`, then call eval_windows_open; everything is borrowed.
 * A window is done in all tables or in none; those that are done already are left alone.
 * The journal's entry of a window: for each table, for each column, a number for each position;
 * then what the sink keeps (of a recording the sum of its rows, since the journal alone does not
 * say that they are there).
 */
struct eval_windows {
    struct eval_units units;
    const struct eval_plan *plan;
    const struct eval_stream *stream;
    /* [n_tables], one for each head: the base's, then those of all that are compared with it, by
       eval_table_make_pair. */
    struct eval_table *tables;
    size_t n_tables;
    struct eval_stop *stop;           /* when the run may end early; NULL: never */
    const struct eval_row_sink *sink; /* where the run sends rows; NULL: nowhere */
    size_t *left;                     /* windows that are not done: the items */
};

void eval_windows_open(struct eval_windows *windows);
/** A zero-initialised object is allowed. */
void eval_windows_close(struct eval_windows *windows);

/** Append window w of a plan to a batch: a segment, its scored rows and their targets. */
void eval_window_lay(const struct eval_plan *plan, const struct eval_stream *stream, size_t w,
                     struct eval_batch *batch);
/** eval_check_ids for the tokens of a plan, and for its BOS. */
enum status eval_window_check_ids(const struct eval_plan *plan, const struct eval_stream *stream,
                                  const struct model *model, struct status_why *why);

#endif

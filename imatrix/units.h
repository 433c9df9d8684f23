/**
 * The windows of a text, evaluated to collect the inputs of products: every position of a window
 * passes through all layers, whether it is scored or not.
 */
#ifndef IMATRIX_UNITS_H
#define IMATRIX_UNITS_H

#include "eval/units.h"
#include "imatrix/collect.h"

/** What is scored of a window. */
enum imat_scored {
    IMAT_SCORED_PLAN, /* the plan's positions */
    IMAT_SCORED_NONE,
    IMAT_SCORED_ALL /* the plan's, and the others enter the head without a target */
};

struct imat_units {
    struct eval_unit_kind kind; /* first: that of windows, some of it replaced */
    const struct eval_unit_kind *windows;
    struct imat_collector *collector;
    enum imat_scored scored;
};

/** Let windows, which are open, be such units. Everything is borrowed. */
void imat_units_begin(struct imat_units *u, struct eval_windows *windows,
                      struct imat_collector *collector, enum imat_scored scored);

/**
 * Windows of a text have all of their tokens evaluated, the last one, too. Once, after
 * eval_plan_make with the default protocol.
 */
void imat_units_widen(struct eval_plan *plan);

#endif

/** The variants of a sweep, in the order of their evaluation. */
#ifndef CLI_SWEEP_ORDER_H
#define CLI_SWEEP_ORDER_H

#include "cli/sweep/sweep_evaluator.h"

/**
 * Set variants, costs, variant_of and together from models, windows and groups: the reference, if
 * there is one, then by rising stage, so that a worker keeps nothing but what enters the stage at
 * work. Choices of a group with the same bytes are one variant.
 * Fails: STATUS_MEMORY.
 */
enum status cli_sweep_order(struct cli_sweep *s, struct status_why *why);
/** Take them for those of another sweep: this one has none yet. */
void cli_sweep_order_begin(struct cli_sweep *s);
void cli_sweep_order_free(struct cli_sweep *s);

#endif

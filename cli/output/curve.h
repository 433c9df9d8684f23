/** What --context-curve prints. */
#ifndef CLI_OUTPUT_CURVE_H
#define CLI_OUTPUT_CURVE_H

#include "cli/options/common.h"
#include "eval/input.h"
#include "eval/metrics.h"

/**
 * Print a line for each bin of positions: perplexity and mean NLL of a table and, in a comparison,
 * the mean divergence in it.
 */
void cli_curve_print(const struct cli_curve_settings *settings, const struct eval_plan *plan,
                     const struct eval_table *table, bool divergence);

#endif

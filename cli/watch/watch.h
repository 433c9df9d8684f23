/**
 * A run that goes on: evaluate, wait until tensors have been replaced, evaluate again. Driven by
 * commands in a file, or by a script that is run in between. docs/hot-swap.md.
 */
#ifndef CLI_WATCH_WATCH_H
#define CLI_WATCH_WATCH_H

#include "cli/evaluate.h"

/**
 * In the place of cli_evaluate, where the settings want it.
 * Fails: as cli_evaluation_open; STATUS_USAGE (what cannot be evaluated again), STATUS_IO (the
 *        files of the protocol), STATUS_CANCELLED, STATUS_DEVICE. Any other failure of an
 *        evaluation is told and costs that one; without commands it is the result in the end.
 */
enum status cli_watch(struct cli_evaluation *e, struct status_why *why);

#endif

/** Scales of a cache that a text gives: fp8_e4m3@calibrated. */
#ifndef CLI_CALIBRATE_H
#define CLI_CALIBRATE_H

#include "cli/evaluate.h"
#include "cli/input/windows.h"

/**
 * Calibrate a model of e, whose types say so and which is not calibrated yet, by the first window
 * of the text: also where --chunk-from leaves that out, so that parts of a run have the same
 * scales. Without it model_session_open() refuses the model.
 * Fails: as act_calibrate; STATUS_USAGE (a model of the server's, layers divided among processes).
 */
enum status cli_calibrate(const struct cli_evaluation *e, struct cli_model *model,
                          const struct cli_windows *windows, struct status_why *why);

#endif

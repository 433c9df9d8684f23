/** The residual stream of a token that a check has singled out, layer by layer. */
#ifndef CLI_TRACE_WORST_H
#define CLI_TRACE_WORST_H

#include "cli/input/windows.h"
#include "clients/trace/trace.h"

struct cli_worst_row {
    enum model_place place;
    int layer;
    struct trace_tensor_figures figures; /* of the token's row */
};

/** Zero-initialise; release with cli_worst_free. */
struct cli_worst {
    size_t window, position;
    struct cli_worst_row *rows;
    size_t n;
};

/**
 * Evaluate a window up to a position. backend: of host memory.
 * Fails: as trace_run.
 */
enum status cli_worst_make(struct cli_worst *out, const struct model *model,
                           struct kern_backend *backend, const struct cli_windows *windows,
                           struct status_why *why);
/** Lines: the tokens, as --ids takes them, then the figures of each tensor. */
void cli_worst_print(const struct cli_worst *worst, const struct cli_windows *windows);
void cli_worst_free(struct cli_worst *worst);

#endif

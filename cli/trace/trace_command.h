/** assay trace: settings, and what its files share. */
#ifndef CLI_TRACE_TRACE_COMMAND_H
#define CLI_TRACE_TRACE_COMMAND_H

#include "cli/options/common.h"
#include "clients/trace/compare.h"

struct cli_trace_settings {
    const char *model, *text_file, *prompt, *compare, *output;
    struct cli_list ids, tensors;
    bool no_bos, llama_compat, force;
    int64_t n_ctx, n_passes, n_threads;
    int rounding; /* enum trace_arithmetic */
    struct cli_model_settings load;
};

/** A tensor as llama-eval-callback prints it, and a line of figures. */
void cli_trace_print_tensor(const struct trace_tensor *tensor);
/** Tensors that the other program's file does not have. */
struct cli_trace_alone {
    size_t n;
    char first[TRACE_NAME_BYTES];
    int layer;                 /* of the last one */
    bool seen[MODEL_N_PLACES]; /* of that layer */
};
/** A line for each tensor, then the first departure. */
void cli_trace_print_distances(const struct trace *trace, const struct trace_distances *distances,
                               const struct cli_trace_alone *alone);
/** The sentence about a departure: "blk.7 Kcur-7, keys after RoPE: positions 128 and up, ...". */
enum { CLI_TRACE_SENTENCE = 320 };
const char *cli_trace_departure(char out[CLI_TRACE_SENTENCE],
                                const struct trace_distance *distance);

#endif

/** assay check --base FOLDER: whether a GGUF file is what the folder's conversion should be; and
 * --base OTHER.gguf: whether it makes that file's prompts. */
#ifndef CLI_CHECK_CONVERSION_CONVERSION_H
#define CLI_CHECK_CONVERSION_CONVERSION_H

#include "base/moments.h"
#include "cli/options/common.h"
#include "cli/server/phase.h"
#include "clients/conversion/conversion.h"

struct cli_conversion_settings {
    const char *model, *folder; /* or the other file */
    const char *text_file; /* NULL: the files alone are compared */
    double max_kld;        /* NaN: no limit */
    struct cli_window_settings windows;
    struct cli_evaluate_settings evaluate;
};

/** How far the predictions are from the folder's. */
struct cli_conversion_divergence {
    bool measured;
    struct base_estimate kld, same_top;
    size_t n_tokens, n_windows;
};

struct cli_conversion {
    const struct cli_conversion_settings *settings;
    struct gguf_file *file, *folder, *tokens; /* tokens NULL: the folder's cannot be read */
    struct conv_result result;
    struct cli_conversion_divergence divergence;
    struct cli_phase phase;
};

/** The whole of it. That something differs is STATUS_EXCEEDED. */
enum status cli_conversion_check(const struct cli_conversion_settings *settings,
                                 struct status_why *why);

/* The parts of it. */

/** Evaluate both on the text. Fails: as cli_evaluate. (divergence.c) */
enum status cli_conversion_diverge(struct cli_conversion *c, struct status_why *why);
void cli_conversion_print(const struct cli_conversion *c);
enum status cli_conversion_write(const struct cli_conversion *c, struct base_file *file,
                                 struct status_why *why);

#endif

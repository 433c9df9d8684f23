/** The same evaluation with several context sizes, one after the other: -c 512,4096. */
#ifndef CLI_OUTPUT_CONTEXTS_H
#define CLI_OUTPUT_CONTEXTS_H

#include "base/buffer.h"
#include "cli/options/common.h"

/** A command's settings, parts of which are changed for each run, and how it runs. */
struct cli_contexts {
    struct cli_window_settings *windows;
    struct cli_evaluate_settings *evaluate;
    const struct cli_text_settings *text;
    const char **per_token_file;
    const char *head;        /* of the table at the end, in Markdown, with its second line */
    struct base_buffer rows; /* of it; each run appends its own */
    enum status (*run)(const void *settings, struct status_why *why);
    const void *settings;
};

/**
 * Run with each size in turn, until one fails; then print the table of what there is. A file that
 * is written has the size in its name: r.json is r-c512.json.
 * Fails: STATUS_USAGE (a size twice; standard input or output, --hot-swap, a server, several
 *        processes), as `run`.
 */
enum status cli_contexts_run(struct cli_contexts *contexts, struct status_why *why);

#endif

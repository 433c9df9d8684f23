/** Where a published folder has the tokens of another file: whether its own are the same. */
#ifndef CLI_INPUT_TOKENS_H
#define CLI_INPUT_TOKENS_H

#include "cli/input/windows.h"

struct cli_tokens_given {
    const struct cli_windows *windows; /* of one text; documents are not compared */
    const struct eval_stream_options *options;
    const struct model_tokenizer *tokenizer; /* that made them, */
    const char *from;                        /* of this file */
};

/**
 * Make tokens of the text with the folder's own tokenizer.json, and say in a note where they
 * differ. A folder without one, and what is no folder, is passed over.   Fails: STATUS_MEMORY.
 */
enum status cli_tokens_compare(const struct cli_tokens_given *given, const char *folder,
                               struct status_why *why);

#endif

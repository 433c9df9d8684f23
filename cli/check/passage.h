/** A scored token in its text, for people. */
#ifndef CLI_CHECK_PASSAGE_H
#define CLI_CHECK_PASSAGE_H

#include "eval/input/spelling.h"
#include "eval/input/window.h"

/** Where scored tokens are found. Zero-initialise `spelling`, release it afterwards. */
struct cli_passages {
    const struct model_tokenizer *tokenizer;
    const struct eval_stream *stream;
    const struct eval_plan *plan;
    struct eval_spelling spelling;
};

/**
 * Print the token that a position of window w is scored against, as <token>, behind the tokens of
 * the window before it (12 at most), and a newline.
 */
void cli_print_passage(struct cli_passages *passages, size_t w, size_t position);

#endif

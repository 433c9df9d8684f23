/** Texts of a task or a request side by side, and their tokens. */
#ifndef EVAL_UNITS_TEXTS_H
#define EVAL_UNITS_TEXTS_H

#include "base/buffer.h"
#include "model/tokenizer/tokenizer.h"

/** Put texts side by side, in place of what was there. Fails: STATUS_MEMORY. */
enum status eval_join(struct base_buffer *joined, const struct base_string *texts, size_t n,
                      struct status_why *why);

/** How texts become tokens. */
struct eval_tokenizing {
    const struct model_tokenizer *tokenizer;
    bool parse_special; /* recognise control tokens in the texts */
};

/**
 * Replace tokens by those of a text, after `front` where that is not negative. BOS stands there
 * once, also where control tokens are recognised and the text begins with it.
 * Fails: STATUS_MEMORY, as model_tokenize.
 */
enum status eval_tokenize(const struct eval_tokenizing *how, int32_t front, struct base_string text,
                          struct model_tokens *out, struct status_why *why);

#endif

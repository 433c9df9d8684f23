/** Requests about tokens alone: their bodies, and what is made of them. */
#ifndef SERVE_REQUESTS_TOKENS_H
#define SERVE_REQUESTS_TOKENS_H

#include "base/json/read.h"

#include "base/buffer.h"
#include "model/model.h"

/** Bytes of a text that is tokenised, and of one that tokens are spelled as, at most. */
enum { SERVE_TOKENS_MAX_TEXT = 4 << 20, SERVE_TOKENS_MAX_SPELLED = 16 << 20 };

/** POST /tokenize. */
struct serve_text_request {
    const char *text; /* of the body */
    bool with_bos;    /* where the vocabulary asks for it */
    bool parse_special;
    bool with_pieces;  /* a token is an object, with what it stands for */
    bool with_strings; /* a list of the vocabulary's own names beside it */
};

/** The body's reader keeps failures: STATUS_USAGE. */
void serve_tokens_read_text(struct serve_text_request *r, struct base_field body);
/** POST /detokenize: ids, none negative; free(out->ids), also after a failure. Failures: also
 * STATUS_MEMORY. */
void serve_tokens_read_ids(struct model_tokens *out, struct base_field body);

/**
 * The text that tokens stand for, after what the buffer has. A space that tokenising would put in
 * front, at the beginning or after a control token, is left out, so that the text gives the tokens
 * again. Fails: STATUS_USAGE (an id beyond the vocabulary, a text that is too long), STATUS_MEMORY.
 */
enum status serve_tokens_spell(struct base_buffer *out, const struct model_tokenizer *tokenizer,
                               const struct model_tokens *tokens, struct status_why *why);

/** Fails: STATUS_MEMORY. */
enum status serve_tokens_put_in_front(struct model_tokens *tokens, int32_t id,
                                      struct status_why *why);

#endif

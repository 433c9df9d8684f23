/** The token stream of a text: what windows are cut from. */
#ifndef EVAL_INPUT_STREAM_H
#define EVAL_INPUT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/content/text.h"
#include "base/digest.h"
#include "model/tokenizer/tokenizer.h"

struct eval_stream_options {
    bool bos_in_front;  /* put BOS before the text where the vocabulary asks for it */
    bool split_lines;   /* tokenise each line (with its newline) alone, then join the ids */
    bool parse_special; /* recognise control tokens in the text */
};

/** Zero-initialise; release with eval_stream_free. */
struct eval_stream {
    int32_t *ids;
    uint32_t *n_text_bytes; /* bytes of the text that each token stands for; 0 for BOS */
    size_t n;
    size_t n_dropped;      /* bytes of the text that the vocabulary has no token for */
    bool has_bos;          /* ids[0] was put in front */
    char sha256[BASE_HEX]; /* of ids as little-endian int32 */
};

/**
 * Tokenise a text. EOS is never added, whatever the vocabulary says: nothing would score it.
 * n_text_bytes adds up to the text's size, but for tokens that stand for other bytes than
 * those read (a BPE vocabulary's repaired UTF-8). The space that a SentencePiece
 * vocabulary puts in front of a text or after a control token is not counted.
 * Fails: as model_tokenize; STATUS_MEMORY.
 * Cost: as model_tokenize, plus 8 bytes a token.
 */
enum status eval_stream_make(struct eval_stream *out, const struct model_tokenizer *tokenizer,
                             const struct base_text *text,
                             const struct eval_stream_options *options, struct status_why *why);

/**
 * A stream of ids that come without a text: n_text_bytes is 0 throughout, has_bos false.
 * Fails: STATUS_MEMORY.
 */
enum status eval_stream_of_ids(struct eval_stream *out, const int32_t *ids, size_t n,
                               struct status_why *why);

/** A zero-initialised object is allowed. */
void eval_stream_free(struct eval_stream *stream);

#endif

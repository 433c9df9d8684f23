/**
 * Byte-level BPE: pieces of a pre-tokenised text, merged from bytes by the rank of pairs.
 * Inside the vocabulary each byte is written as a printable stand-in character (as in GPT-2).
 */
#ifndef MODEL_TOKENIZER_BPE_H
#define MODEL_TOKENIZER_BPE_H

#include "model/tokenizer/pretokenizer.h"
#include "model/tokenizer/run.h"
#include "model/tokenizer/vocab.h"

struct model_bpe {
    const struct model_vocab *vocab;
    struct model_pretokenizer pre; /* row NULL: pieces come from elsewhere */
    struct model_merges merges;
    bool ignore_merges;     /* a whole piece that is a token is taken as it is */
    uint32_t stand_in[256]; /* code point of each byte's stand-in */
    int32_t byte_id[256];   /* the token that is a byte's stand-in; -1: none */
};

/**
 * Read the merges and compile the pre-tokeniser called `pre`; as_llama_cpp: in llama.cpp's form.
 * pre.data NULL: there is none, and model_bpe_encode_piece() alone may be called.
 * Fails: as model_merges_init(); STATUS_UNSUPPORTED (pre-tokeniser).
 *        Half-built on failure: release with model_bpe_free in any case.
 */
enum status model_bpe_init(struct model_bpe *bpe, const struct model_vocab *vocab,
                           struct base_string pre, bool as_llama_cpp, struct status_why *why);
void model_bpe_free(struct model_bpe *bpe);

/**
 * Append the ids of a stretch of raw text without recognised tokens. Each byte that is not
 * well-formed UTF-8 counts as U+FFFD.
 * A byte without a token is left out and counted, as the model's authors' library does.
 * Fails: STATUS_MEMORY.
 */
enum status model_bpe_encode(const struct model_bpe *bpe, struct model_tok_run *run,
                             const char *text, size_t n_bytes);

/** The same of a piece that is merged as it stands: well-formed UTF-8, not cut. */
enum status model_bpe_encode_piece(const struct model_bpe *bpe, struct model_tok_run *run,
                                   struct base_string piece);

/** Bytes of a token in stand-ins (other characters stay): writes at most capacity, returns all. */
size_t model_bpe_token_bytes(struct base_string token, char *bytes, size_t capacity);

#endif

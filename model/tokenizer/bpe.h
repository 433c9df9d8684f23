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
    struct model_pretokenizer pre;
    struct model_bpe_pair *pairs; /* hash table: (left id, right id) -> rank */
    size_t mask;
    uint32_t *result;       /* [n_merges] by rank: the id of the joined token */
    uint32_t stand_in[256]; /* code point of each byte's stand-in */
    int32_t byte_id[256];   /* the token that is a byte's stand-in; -1: none */
};

/**
 * Read the merges and compile the pre-tokeniser called `pre`.
 * Fails: STATUS_FORMAT (merges missing or malformed, a part of one that is no token: the
 *        sentence has its index), STATUS_UNSUPPORTED (pre-tokeniser), STATUS_MEMORY.
 *        Half-built on failure: release with model_bpe_free in any case.
 */
enum status model_bpe_init(struct model_bpe *bpe, const struct model_vocab *vocab,
                           const struct gguf_file *file, struct base_string pre,
                           struct status_why *why);
void model_bpe_free(struct model_bpe *bpe);

/**
 * Append the ids of a stretch of raw text without recognised tokens. Each byte that is not
 * well-formed UTF-8 counts as U+FFFD.
 * Fails: STATUS_MEMORY; STATUS_UNSUPPORTED where the vocabulary has neither a token for a byte
 *        nor an unknown token.
 */
enum status model_bpe_encode(const struct model_bpe *bpe, struct model_tok_run *run,
                             const char *text, size_t n_bytes);

/** Bytes of a token in stand-ins (other characters stay): writes at most capacity, returns all. */
size_t model_bpe_token_bytes(struct base_string token, char *bytes, size_t capacity);

#endif

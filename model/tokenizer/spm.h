/**
 * SentencePiece-BPE: characters are merged by the score of what they become.
 * Source: the published algorithm; GGUF stores each token's score.
 */
#ifndef MODEL_TOKENIZER_SPM_H
#define MODEL_TOKENIZER_SPM_H

#include "model/tokenizer/run.h"
#include "model/tokenizer/vocab.h"

struct model_spm {
    const struct model_vocab *vocab;
    uint32_t *rank;        /* [vocab->n]: 0 = highest score; equal scores share a rank */
    int32_t byte_id[256];  /* the token <0xXX>, or the one that is that byte; -1: none */
    bool joins_ascii[128]; /* some token has U+2581 right after this character */
    uint32_t *joins;       /* the same for longer characters: their bytes, sorted */
    size_t n_joins;
};

/**
 * Read the scores. `vocab` and `file` must outlive the result.
 * Fails: STATUS_FORMAT (scores missing, not floats, NaN), STATUS_MEMORY. Half-built on
 *        failure: release with model_spm_free in any case.
 */
enum status model_spm_init(struct model_spm *spm, const struct model_vocab *vocab,
                           const struct gguf_file *file, struct status_why *why);
void model_spm_free(struct model_spm *spm);

/**
 * Append the ids of a stretch of raw text without recognised tokens.
 * space_prefix: as if a space stood in front of it.
 * Fails: STATUS_MEMORY; STATUS_UNSUPPORTED where the vocabulary has neither a token for a byte
 *        nor an unknown token.
 */
enum status model_spm_encode(const struct model_spm *spm, struct model_tok_run *run,
                             const char *text, size_t n_bytes, bool space_prefix);

/** Bytes that a token stands for: writes at most capacity, returns how many there are. */
size_t model_spm_token_bytes(const struct model_spm *spm, int32_t id, char *bytes, size_t capacity);

/** As model_token_span(), of a token that merging made. */
size_t model_spm_token_span(const struct model_spm *spm, int32_t id, const char *text,
                            size_t n_left);

#endif

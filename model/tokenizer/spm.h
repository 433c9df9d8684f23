/**
 * BPE of characters, in which U+2581 stands for a space and bytes for what is no token:
 * SentencePiece's, where the score of what a pair becomes decides, and gemma4's, where the rank
 * of the pair does.   Source: the published algorithms; GGUF stores the scores or the merges.
 */
#ifndef MODEL_TOKENIZER_SPM_H
#define MODEL_TOKENIZER_SPM_H

#include "model/tokenizer/run.h"
#include "model/tokenizer/vocab.h"

struct model_spm {
    const struct model_vocab *vocab;
    uint32_t *rank; /* [vocab->n]: higher scores have lower ranks, equal ones the same; or NULL: */
    struct model_merges merges;
    bool verbatim;         /* spaces stay as they are: a declared tokenizer replaces them */
    bool ignore_merges;    /* a whole piece that is a token is taken as it is */
    int32_t byte_id[256];  /* the token <0xXX>, or the one that is that byte; -1: none */
    bool joins_ascii[128]; /* some token has U+2581 right after this character */
    uint32_t *joins;       /* the same for longer characters: their bytes, sorted */
    size_t n_joins;
};

/**
 * Read the scores or, of gemma4, the merges. `vocab` must outlive the result.
 * Fails: STATUS_FORMAT (scores missing, no numbers, NaN), as model_merges_init(), STATUS_MEMORY.
 *        Half-built on failure: release with model_spm_free in any case.
 */
enum status model_spm_init(struct model_spm *spm, const struct model_vocab *vocab,
                           struct status_why *why);
void model_spm_free(struct model_spm *spm);

/**
 * Append the ids of a stretch of raw text without recognised tokens. With gemma4, each byte that
 * is not well-formed UTF-8 counts as U+FFFD.
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

/** The key tokenizer.ggml.merges: which adjacent pairs of tokens are joined, and in which order. */
#ifndef MODEL_TOKENIZER_MERGES_H
#define MODEL_TOKENIZER_MERGES_H

#include "model/tokenizer/vocab.h"

struct model_merges {
    uint64_t seed;
    struct model_merges_pair *pairs; /* hash table: (left id, right id) -> rank */
    size_t mask;
    uint32_t *result; /* [merges] by rank: the id of the joined token */
};

/**
 * Read the merges of a file. `vocab` is needed here only.
 * Fails: STATUS_FORMAT (missing or malformed, a part of one that is no token: the sentence has
 *        its index), STATUS_MEMORY. Half-built on failure: release with model_merges_free.
 */
enum status model_merges_init(struct model_merges *m, const struct model_vocab *vocab,
                              struct status_why *why);
void model_merges_free(struct model_merges *m);

/** The rank of a pair of ids, MODEL_MERGE_NONE where it is not joined. An id may be -1. */
uint32_t model_merges_rank(const struct model_merges *m, int32_t left, int32_t right);

#endif

/**
 * Merging of adjacent symbols: the common heart of SentencePiece-BPE and byte-level BPE.
 *
 * A piece of text is a row of slots (characters or bytes). A symbol is a run of slots. Again
 * and again the adjacent pair of symbols with the lowest rank is joined, the leftmost of
 * equals, until no pair has a rank.
 *
 * The queue is a tree of minima over the slots, sixteen children to a node, and not a heap: it
 * holds no outdated entries, so memory is 8.3 bytes a slot whatever happens, and "leftmost of
 * equals" needs no second key. n slots cost O(n log n); a word of up to 16 slots is a plain scan.
 */
#ifndef MODEL_TOKENIZER_MERGE_H
#define MODEL_TOKENIZER_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include "model/tokenizer/vocab.h"

enum {
    MODEL_MERGE_FANOUT = 16,
    MODEL_MERGE_LEVELS = 8 /* 16^8 = 2^32 slots */
};

/** The rank of a pair that is never joined, and the limit of slots. */
#define MODEL_MERGE_NONE UINT32_MAX

/** Scratch, reused from piece to piece: zero-initialise, release with model_merge_free. */
struct model_merge {
    /* other[i]: the last slot of the symbol that begins at i, the first slot of the symbol
     * that ends at i; meaningless inside a symbol. */
    uint32_t *other;
    uint32_t *level[MODEL_MERGE_LEVELS]; /* level 0: the rank of (symbol at slot, the next) */
    size_t n_levels;
    size_t capacity; /* slots */
};

struct model_merge_rules {
    /** Rank of joining the symbols [left, right) and [right, end), or MODEL_MERGE_NONE. */
    uint32_t (*rank)(const void *user, uint32_t left, uint32_t right, uint32_t end);
    /** Told of each join: the symbol at `left` now also covers its neighbour. May be NULL. */
    void (*joined)(void *user, uint32_t left, uint32_t rank);
    void *user;
};

/**
 * Merge n_slots >= 1 single slots until no rule applies.
 * Afterwards the symbols are found by: for (i = 0; i < n_slots; i = m->other[i] + 1).
 * Fails: STATUS_MEMORY; STATUS_UNSUPPORTED for 2^32 - 16 slots or more.
 */
enum status model_merge_run(struct model_merge *m, size_t n_slots,
                            const struct model_merge_rules *rules, struct status_why *why);
void model_merge_free(struct model_merge *m);

/** The key tokenizer.ggml.merges: which pairs of tokens are joined, and in which order. */
struct model_merges {
    uint64_t seed;
    struct model_merges_pair *pairs; /* hash table: (left id, right id) -> rank */
    size_t mask;
    size_t n;         /* entries */
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

/**
 * Whether two lists differ, and the first place where they do: the ids of the halves in a and in
 * b, -1 where that list has ended. Equal pairs count once.   Fails: STATUS_MEMORY.
 */
enum status model_merges_compare(const struct model_merges *a, const struct model_merges *b,
                                 bool *differ, int32_t halves[2][2], struct status_why *why);

/** The rank of a pair of ids, MODEL_MERGE_NONE where it is not joined. An id may be -1. */
uint32_t model_merges_rank(const struct model_merges *m, int32_t left, int32_t right);

#endif

/**
 * Recognition of special tokens in raw text, before anything is split or merged.
 *
 * The rule: the longest tokens are looked for first, in the whole text; what they leave over is
 * searched for the next shorter ones, and so on; within a length from left to right. So a long
 * token wins over a shorter one that begins before it.
 *
 * The method: an Aho-Corasick automaton finds where tokens end, in one pass; matches that
 * overlap are then settled by that rule, among themselves. Linear in the text.
 */
#ifndef MODEL_TOKENIZER_SPECIAL_H
#define MODEL_TOKENIZER_SPECIAL_H

#include "model/tokenizer/vocab.h"

/** A token and how it is written. */
struct model_special_item {
    struct base_string text; /* an empty one is passed over */
    int32_t token;
};

/** A set of tokens to be recognised; immutable after init. */
struct model_special {
    struct model_special_node *nodes; /* NULL: the set is empty */
    uint32_t n_nodes;
    uint32_t root_child[256]; /* 0: no token begins with this byte */
};

/** A set of these tokens; of equal texts the first counts.   Fails: STATUS_MEMORY. */
enum status model_special_build(struct model_special *s, const struct model_special_item *items,
                                size_t n, struct status_why *why);

/**
 * The tokens of the vocabulary that are recognised always and, if on_request, those that are
 * recognised on request.   Fails: STATUS_MEMORY.
 */
enum status model_special_init(struct model_special *s, const struct model_vocab *vocab,
                               bool on_request, struct status_why *why);
void model_special_free(struct model_special *s);

/** Bytes of the longest token that a text begins with, and its id; 0: there is none. */
size_t model_special_longest(const struct model_special *s, const char *text, size_t n_bytes,
                             int32_t *token);

/**
 * Called from left to right: raw text without special tokens (may be empty), then the token
 * that follows it, -1 at the end of the text.
 */
typedef enum status model_special_fn(void *user, const char *raw, size_t n_bytes, int32_t token);

/** Split a text. Returns the first failure of `fn`, or STATUS_MEMORY. */
enum status model_special_split(const struct model_special *s, const char *text, size_t n_bytes,
                                model_special_fn *fn, void *user, struct status_why *why);

#endif

/**
 * A cache of short pieces of text and their ids: natural text repeats its words.
 * Direct-mapped, of fixed size: a new piece takes the place of an older one.
 */
#ifndef MODEL_TOKENIZER_CACHE_H
#define MODEL_TOKENIZER_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { MODEL_TOK_CACHE_BYTES = 22, MODEL_TOK_CACHE_IDS = 10 };

/** One cache line. */
struct model_tok_entry {
    uint8_t n_bytes; /* 0: free */
    uint8_t n_ids;
    char bytes[MODEL_TOK_CACHE_BYTES];
    int32_t ids[MODEL_TOK_CACHE_IDS];
};

/** Zero-initialise; release with model_tok_cache_free. */
struct model_tok_cache {
    struct model_tok_entry *entries;
    size_t mask;
};

/** Room in proportion to a text of n_bytes, 4 MiB at most. Fails: STATUS_MEMORY. */
enum status model_tok_cache_init(struct model_tok_cache *c, size_t n_bytes, struct status_why *why);
void model_tok_cache_free(struct model_tok_cache *c);

/**
 * The place for a piece of 1..MODEL_TOK_CACHE_BYTES bytes. *hit tells whether the piece is
 * there; if not, the caller may fill the place with model_tok_cache_put.
 */
struct model_tok_entry *model_tok_cache_find(const struct model_tok_cache *c, const char *bytes,
                                             size_t n_bytes, int *hit);

/** Remember a piece's ids, unless there are more than MODEL_TOK_CACHE_IDS. */
void model_tok_cache_put(struct model_tok_entry *e, const char *bytes, size_t n_bytes,
                         const int32_t *ids, size_t n_ids);

#endif

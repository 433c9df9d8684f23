#include "model/tokenizer/cache.h"

#include <stdlib.h>

#include "base/text/hash.h"

enum status model_tok_cache_init(struct model_tok_cache *c, size_t n_bytes, struct status_why *why)
{
    size_t n_entries = 16;
    while (n_entries < 65536 && n_entries < n_bytes / 16)
        n_entries *= 2;
    c->mask = n_entries - 1;
    c->entries = calloc(n_entries, sizeof *c->entries);
    if (!c->entries)
        return status_fail(why, STATUS_MEMORY, "cannot allocate a cache of %zu words", n_entries);
    return STATUS_OK;
}

void model_tok_cache_free(struct model_tok_cache *c)
{
    free(c->entries);
    *c = (struct model_tok_cache){0};
}

struct model_tok_entry *model_tok_cache_find(const struct model_tok_cache *c, const char *bytes,
                                             size_t n_bytes, int *hit)
{
    struct model_tok_entry *e = &c->entries[base_hash_bytes(0, bytes, n_bytes) & c->mask];
    *hit = e->n_bytes == n_bytes && memcmp(e->bytes, bytes, n_bytes) == 0;
    return e;
}

void model_tok_cache_put(struct model_tok_entry *e, const char *bytes, size_t n_bytes,
                         const int32_t *ids, size_t n_ids)
{
    if (n_ids > MODEL_TOK_CACHE_IDS)
        return;
    e->n_bytes = (uint8_t)n_bytes;
    e->n_ids = (uint8_t)n_ids;
    memcpy(e->bytes, bytes, n_bytes);
    memcpy(e->ids, ids, n_ids * sizeof *ids);
}

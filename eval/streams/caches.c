#include "eval/streams/caches.h"

#include <assert.h>
#include <stdlib.h>

#include "base/array.h"

enum status eval_cached_open(struct eval_cached *c, struct status_why *why)
{
    return base_array_new(c->passes, c->caches.n, "caches", why);
}

void eval_cached_close(struct eval_cached *c)
{
    free(c->passes);
}

enum status eval_cached_enter(struct eval_streams *streams, struct eval_pass *passes,
                              size_t n_passes, struct status_why *why)
{
    struct eval_cached *c = (struct eval_cached *)streams;
    enum status status = STATUS_OK;
    assert(n_passes == c->caches.n);
    for (size_t i = 0; i < n_passes && !status; i++) {
        bool found;
        c->passes[i] = (struct eval_cache_pass){.cache = c->caches.items[i],
                                                .model = passes[i].model,
                                                .backend = passes[i].backend,
                                                .x = passes[i].x};
        status = eval_cache_begin(&c->passes[i], passes[i].batch, &passes[i].layer, &found, why);
    }
    return status;
}

size_t eval_cached_next(const struct eval_streams *streams, const struct eval_pass *passes,
                        size_t i)
{
    const struct eval_cached *c = (const struct eval_cached *)streams;
    return eval_cache_next(&c->passes[i], passes[i].layer);
}

enum status eval_cached_reach(struct eval_streams *streams, const struct eval_pass *passes,
                              size_t n_passes, size_t i, struct status_why *why)
{
    const struct eval_cached *c = (const struct eval_cached *)streams;
    (void)n_passes;
    return eval_cache_keep(&c->passes[i], passes[i].layer, why);
}

static void close_cached(struct eval_streams *streams)
{
    eval_cached_close((struct eval_cached *)streams);
    free(streams);
}

static enum status open_cached(void *user, struct kern_backend *backend, struct eval_streams **out,
                               struct status_why *why)
{
    static const struct eval_streams_kind kind = {.enter = eval_cached_enter,
                                                  .next = eval_cached_next,
                                                  .reach = eval_cached_reach,
                                                  .close = close_cached};
    struct eval_cached *c = calloc(1, sizeof *c);
    (void)backend;
    if (!c)
        return status_fail(why, STATUS_MEMORY, "no memory for streams");
    c->streams.kind = &kind;
    c->caches = *(const struct eval_caches *)user;
    *out = &c->streams;
    return eval_cached_open(c, why);
}

static double bytes(void *user, size_t n_tokens)
{
    const struct eval_caches *caches = user;
    double sum = 0;
    (void)n_tokens;
    for (size_t i = 0; i < caches->n; i++)
        sum += eval_cache_bytes(caches->items[i]);
    return sum;
}

struct eval_stream_source eval_caches_source(struct eval_caches *caches)
{
    return (struct eval_stream_source){.user = caches, .open = open_cached, .bytes = bytes};
}

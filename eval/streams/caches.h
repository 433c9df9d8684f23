/** Streams that earlier passes left in caches: of runs that follow one another. */
#ifndef EVAL_STREAMS_CACHES_H
#define EVAL_STREAMS_CACHES_H

#include "eval/scorer/streams.h"
#include "eval/streams/cache.h"

/** A cache for each of a run's models, which all scorers share. Everything is borrowed. */
struct eval_caches {
    struct eval_cache *const *items; /* [n]; one may be NULL */
    size_t n;
};

/** The source with these caches, which must outlive it. */
struct eval_stream_source eval_caches_source(struct eval_caches *caches);

/** Streams over caches: what the struct of a kind that uses caches begins with. */
struct eval_cached {
    struct eval_streams streams;
    struct eval_caches caches;
    struct eval_cache_pass *passes; /* [caches.n]: those of the batch at work */
};

/** Zero-initialise but for the kind and the caches. Fails: STATUS_MEMORY. */
enum status eval_cached_open(struct eval_cached *cached, struct status_why *why);
void eval_cached_close(struct eval_cached *cached);

/* Functions of such a kind, as struct eval_streams_kind has them. */

enum status eval_cached_enter(struct eval_streams *streams, struct eval_pass *passes,
                              size_t n_passes, struct status_why *why);
size_t eval_cached_next(const struct eval_streams *streams, const struct eval_pass *passes,
                        size_t i);
enum status eval_cached_reach(struct eval_streams *streams, const struct eval_pass *passes,
                              size_t n_passes, size_t i, struct status_why *why);

#endif

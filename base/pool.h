/**
 * A pool of threads for loops whose iterations are independent.
 *
 * The calling thread works too: a pool of n threads owns n - 1 workers, a pool of one none.
 * Iterations are claimed one by one from an atomic counter, so which thread runs which is not
 * fixed; what an iteration computes must not depend on it. Between loops the workers spin
 * briefly, then sleep on a condition variable.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/status.h"

struct base_pool;

/** A request for more threads is taken for a mistake. */
enum { BASE_POOL_MAX_THREADS = 1024 };

/** One iteration. index: 0 .. n - 1. thread: 0 .. n_threads - 1, to pick scratch memory by. */
typedef void base_pool_fn(void *context, size_t index, unsigned thread);

/** Processors that this process may run on; at least 1. */
unsigned base_pool_processors(void);

/**
 * Start a pool. n_threads 0: as many as the processors this process may run on.
 * Fails: STATUS_USAGE above BASE_POOL_MAX_THREADS; STATUS_MEMORY; STATUS_DEVICE if the system
 * refuses a thread. *out = NULL first.
 */
enum status base_pool_open(struct base_pool **out, unsigned n_threads, struct status_why *why);

/** Stop and join the workers. NULL is allowed. No loop may be running. */
void base_pool_close(struct base_pool *pool);

/** Threads that take part in a loop, the caller's included. */
unsigned base_pool_n_threads(const struct base_pool *pool);

/**
 * Run fn(context, i, thread) for every i below n; returns when all calls have returned.
 * What the calls wrote is visible to the caller. One loop at a time per pool, no nesting.
 * cancel: may be NULL; once it is true no further iteration starts and the result is
 * STATUS_CANCELLED, otherwise STATUS_OK.
 */
enum status base_pool_run(struct base_pool *pool, size_t n, base_pool_fn *fn, void *context,
                          const atomic_bool *cancel);

#endif

#include "base/pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arithmetic.h"
#include "base/condition.h"
#include "base/system/system.h"

/* About 20 microseconds: longer than the gap between two operations, far below a time slice. */
enum { SPIN_ROUNDS = 500 };

enum {
    CACHE_LINE = 64,
    STACK_BYTES = 1 << 20 /* of a worker; the largest frame of a kernel has 11 KB */
};

struct worker {
    struct base_pool *pool;
    pthread_t handle;
    unsigned index;
};

struct base_pool {
    unsigned n_threads;
    unsigned n_started; /* workers to join */
    struct worker *workers;

    pthread_mutex_t lock;
    pthread_cond_t wake;     /* a loop began, or the pool closes */
    pthread_cond_t finished; /* the last worker left the loop */
    bool closing;            /* under lock */

    /* The current loop. Written before `round` is advanced, read after it was seen to. */
    base_pool_fn *fn;
    void *context;
    size_t n;
    const atomic_bool *cancel;

    /* Each on a cache line of its own, because all threads write to them. */
    _Alignas(CACHE_LINE) atomic_uint round; /* number of loops begun */
    _Alignas(CACHE_LINE) atomic_size_t next;
    _Alignas(CACHE_LINE) atomic_uint n_inside; /* workers that have not left the loop */
};

static void claim_iterations(struct base_pool *pool, unsigned thread)
{
    for (;;) {
        if (pool->cancel && atomic_load_explicit(pool->cancel, memory_order_relaxed))
            return;
        size_t i = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (i >= pool->n)
            return;
        pool->fn(pool->context, i, thread);
    }
}

/** What a processor wants in a loop that waits. */
static inline void wait_a_little(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/** Wait for a loop after number `seen`; false if the pool closes instead. */
static bool await_round(struct base_pool *pool, unsigned seen)
{
    for (int i = 0; i < SPIN_ROUNDS; i++) {
        if (atomic_load_explicit(&pool->round, memory_order_acquire) != seen)
            return true;
        wait_a_little();
    }
    pthread_mutex_lock(&pool->lock);
    while (atomic_load_explicit(&pool->round, memory_order_acquire) == seen && !pool->closing)
        pthread_cond_wait(&pool->wake, &pool->lock);
    bool closing = pool->closing;
    pthread_mutex_unlock(&pool->lock);
    return !closing;
}

static void *worker_main(void *argument)
{
    const struct worker *self = argument;
    struct base_pool *pool = self->pool;
    for (unsigned seen = 0; await_round(pool, seen); seen++) {
        claim_iterations(pool, self->index);
        if (atomic_fetch_sub_explicit(&pool->n_inside, 1, memory_order_acq_rel) == 1) {
            pthread_mutex_lock(&pool->lock);
            pthread_cond_signal(&pool->finished);
            pthread_mutex_unlock(&pool->lock);
        }
    }
    return NULL;
}

/* With a stack that no inherited limit makes too small, nor too large for the address space. */
static int start_thread(struct worker *worker)
{
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error)
        return error;
    error = pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (!error)
        error = pthread_create(&worker->handle, &attributes, worker_main, worker);
    pthread_attr_destroy(&attributes);
    return error;
}

unsigned base_pool_processors(void)
{
    return (unsigned)base_min(base_system_processors(), BASE_POOL_MAX_THREADS);
}

enum status base_pool_open(struct base_pool **out, unsigned n_threads, struct status_why *why)
{
    *out = NULL;
    if (n_threads > BASE_POOL_MAX_THREADS)
        return status_fail(why, STATUS_USAGE, "%u threads; at most %d are possible", n_threads,
                           BASE_POOL_MAX_THREADS);
    struct base_pool *pool = aligned_alloc(CACHE_LINE, sizeof *pool);
    if (!pool)
        return status_fail(why, STATUS_MEMORY, "no memory for a thread pool");
    memset(pool, 0, sizeof *pool);
    pthread_mutex_init(&pool->lock, NULL);
    base_condition_init(&pool->wake);
    base_condition_init(&pool->finished);
    pool->n_threads = n_threads ? n_threads : base_pool_processors();

    enum status status = STATUS_OK;
    pool->workers = calloc(pool->n_threads, sizeof *pool->workers);
    if (!pool->workers) {
        status = status_fail(why, STATUS_MEMORY, "no memory for %u threads", pool->n_threads);
        goto fail;
    }
    for (unsigned i = 1; i < pool->n_threads; i++) {
        struct worker *worker = &pool->workers[i - 1];
        worker->pool = pool;
        worker->index = i;
        int error = start_thread(worker);
        if (error) {
            status = status_fail(why, STATUS_DEVICE, "the system refused thread %u of %u: %s",
                                 i + 1, pool->n_threads, strerror(error));
            goto fail;
        }
        pool->n_started++;
    }
    *out = pool;
    return STATUS_OK;

fail:
    base_pool_close(pool);
    return status;
}

void base_pool_close(struct base_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->n_started; i++)
        pthread_join(pool->workers[i].handle, NULL);
    pthread_cond_destroy(&pool->finished);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->lock);
    free(pool->workers);
    free(pool);
}

unsigned base_pool_n_threads(const struct base_pool *pool)
{
    return pool->n_threads;
}

static void await_workers(struct base_pool *pool)
{
    for (int i = 0; i < SPIN_ROUNDS; i++) {
        if (atomic_load_explicit(&pool->n_inside, memory_order_acquire) == 0)
            return;
        wait_a_little();
    }
    pthread_mutex_lock(&pool->lock);
    while (atomic_load_explicit(&pool->n_inside, memory_order_acquire) != 0)
        pthread_cond_wait(&pool->finished, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

enum status base_pool_run(struct base_pool *pool, size_t n, base_pool_fn *fn, void *context,
                          const atomic_bool *cancel)
{
    assert(n < SIZE_MAX / 2); /* `next` runs past n by at most one per thread */
    pool->fn = fn;
    pool->context = context;
    pool->n = n;
    pool->cancel = cancel;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    /* A single iteration is not worth waking anyone for. */
    bool with_workers = pool->n_threads > 1 && n > 1;
    if (with_workers) {
        atomic_store_explicit(&pool->n_inside, pool->n_threads - 1, memory_order_relaxed);
        pthread_mutex_lock(&pool->lock);
        atomic_fetch_add_explicit(&pool->round, 1, memory_order_release);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->lock);
    }
    claim_iterations(pool, 0);
    if (with_workers)
        await_workers(pool);
    bool cancelled = cancel && atomic_load_explicit(cancel, memory_order_relaxed);
    return cancelled ? STATUS_CANCELLED : STATUS_OK;
}

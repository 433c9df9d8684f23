/*
 * What beginning and ending a loop of the thread pool costs, in microseconds: right after the one
 * before, while the workers spin; after a pause, when they sleep; and the processor time of the
 * thread that wakes them. With more threads than processors only the last means anything.
 *
 * usage: bench_pool [THREADS ...]
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/pool.h"
#include "bench/bench.h"

enum { WARM_UP = 50, LOOPS = 500, PAUSE_US = 500 };

static void count(void *context, size_t index, unsigned thread)
{
    (void)index;
    (void)thread;
    atomic_fetch_add_explicit((atomic_size_t *)context, 1, memory_order_relaxed);
}

/** Long enough that the system gives each thread a processor of its own. */
static void work(void *context, size_t index, unsigned thread)
{
    double until = base_clock_seconds() + 1e-3;
    while (base_clock_seconds() < until)
        continue;
    count(context, index, thread);
}

/** Medians of a loop with an iteration for each thread, and of the caller's processor time in it.
 */
static void measure(struct base_pool *pool, unsigned pause_us, double *clock, double *own)
{
    static double whole[LOOPS], busy[LOOPS];
    atomic_size_t calls = 0;
    size_t n = base_pool_n_threads(pool);
    for (size_t i = 0; i < WARM_UP; i++)
        base_pool_run(pool, n, work, &calls, NULL);
    for (size_t i = 0; i < LOOPS; i++) {
        if (pause_us)
            usleep(pause_us);
        double begun = base_clock_seconds(), spent = base_clock_thread_seconds();
        base_pool_run(pool, n, count, &calls, NULL);
        busy[i] = base_clock_thread_seconds() - spent;
        whole[i] = base_clock_seconds() - begun;
    }
    if (calls != n * (LOOPS + WARM_UP))
        exit(1);
    bench_sort(whole, LOOPS);
    bench_sort(busy, LOOPS);
    *clock = whole[LOOPS / 2];
    *own = busy[LOOPS / 2];
}

int main(int argc, char **argv)
{
    bench_print_machine();
    printf("threads  spinning  sleeping  caller's own\n");
    for (int i = 1; i < argc || i == 1; i++) {
        struct base_pool *pool;
        struct status_why why;
        unsigned n = i < argc ? (unsigned)strtoul(argv[i], NULL, 10) : 0;
        if (base_pool_open(&pool, n, &why)) {
            fprintf(stderr, "bench_pool: %s\n", why.text);
            return 1;
        }
        double spinning, sleeping, own;
        measure(pool, 0, &spinning, &own);
        measure(pool, PAUSE_US, &sleeping, &own);
        printf("%7u  %8.2f  %8.2f  %8.2f\n", base_pool_n_threads(pool), 1e6 * spinning,
               1e6 * sleeping, 1e6 * own);
        base_pool_close(pool);
    }
    return 0;
}

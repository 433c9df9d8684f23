/* The thread pool: each index once, any number of threads, cancellation, many short loops. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/pool.h"
#include "tests/harness/cmocka.h"

enum { MAX_THREADS = 8, MAX_INDEX = 5000 };

struct loop {
    unsigned n_threads;
    unsigned char *n_calls; /* per index; not atomic: an index belongs to one thread */
    atomic_bool wrong_thread;
    atomic_bool stop;
    size_t stop_at;
};

static void count_call(void *context, size_t index, unsigned thread)
{
    struct loop *loop = context;
    if (thread >= loop->n_threads)
        atomic_store(&loop->wrong_thread, true);
    loop->n_calls[index]++;
    if (index == loop->stop_at)
        atomic_store(&loop->stop, true);
}

static void check_loop(struct base_pool *pool, size_t n)
{
    struct loop loop = {.n_threads = base_pool_n_threads(pool), .stop_at = SIZE_MAX};
    loop.n_calls = calloc(n + 1, 1);
    assert_int_equal(base_pool_run(pool, n, count_call, &loop, NULL), STATUS_OK);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(loop.n_calls[i], 1);
    assert_int_equal(loop.n_calls[n], 0);
    assert_false(atomic_load(&loop.wrong_thread));
    free(loop.n_calls);
}

static void test_each_index_once(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 3, 7, 100, MAX_INDEX};
    for (unsigned n_threads = 1; n_threads <= MAX_THREADS; n_threads++) {
        struct base_pool *pool = NULL;
        assert_int_equal(base_pool_open(&pool, n_threads, NULL), STATUS_OK);
        assert_int_equal(base_pool_n_threads(pool), n_threads);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            check_loop(pool, sizes[i]);
        base_pool_close(pool);
    }
}

static void add_square(void *context, size_t index, unsigned thread)
{
    (void)thread;
    uint64_t *squares = context;
    squares[index] += index * index;
}

/** Many loops in a row, with and without a pause that lets the workers fall asleep. */
static void test_many_loops(void **state)
{
    (void)state;
    enum { N_LOOPS = 2000, N = 16 };
    struct base_pool *pool = NULL;
    assert_int_equal(base_pool_open(&pool, 4, NULL), STATUS_OK);
    uint64_t squares[N] = {0};
    for (int i = 0; i < N_LOOPS; i++) {
        base_pool_run(pool, N, add_square, squares, NULL);
        if (i % 500 == 0) {
            struct timespec pause = {0, 2000000};
            nanosleep(&pause, NULL);
        }
    }
    for (uint64_t i = 0; i < N; i++)
        assert_int_equal(squares[i], N_LOOPS * i * i);
    base_pool_close(pool);
}

static void test_cancel_stops_the_loop(void **state)
{
    (void)state;
    for (unsigned n_threads = 1; n_threads <= 3; n_threads++) {
        struct base_pool *pool = NULL;
        assert_int_equal(base_pool_open(&pool, n_threads, NULL), STATUS_OK);
        struct loop loop = {.n_threads = n_threads, .stop_at = 10};
        loop.n_calls = calloc(MAX_INDEX, 1);
        enum status status = base_pool_run(pool, MAX_INDEX, count_call, &loop, &loop.stop);
        assert_int_equal(status, STATUS_CANCELLED);
        if (n_threads == 1)
            assert_int_equal(loop.n_calls[11], 0);
        /* With the flag set beforehand nothing runs; without it the pool works on. */
        memset(loop.n_calls, 0, MAX_INDEX);
        assert_int_equal(base_pool_run(pool, 5, count_call, &loop, &loop.stop), STATUS_CANCELLED);
        for (size_t i = 0; i < 5; i++)
            assert_int_equal(loop.n_calls[i], 0);
        check_loop(pool, 100);
        free(loop.n_calls);
        base_pool_close(pool);
    }
}

static void test_two_pools_at_once(void **state)
{
    (void)state;
    struct base_pool *a = NULL, *b = NULL;
    assert_int_equal(base_pool_open(&a, 2, NULL), STATUS_OK);
    assert_int_equal(base_pool_open(&b, 3, NULL), STATUS_OK);
    check_loop(a, 50);
    check_loop(b, 60);
    base_pool_close(a);
    check_loop(b, 70);
    base_pool_close(b);
    base_pool_close(NULL);
}

static void test_default_is_the_processors(void **state)
{
    (void)state;
    struct base_pool *pool = NULL;
    assert_int_equal(base_pool_open(&pool, 0, NULL), STATUS_OK);
    assert_true(base_pool_n_threads(pool) >= 1);
    base_pool_close(pool);
}

static void test_too_many_threads(void **state)
{
    (void)state;
    struct base_pool *pool = NULL;
    struct status_why why = {{0}};
    assert_int_equal(base_pool_open(&pool, 4000000000u, &why), STATUS_USAGE);
    assert_null(pool);
    assert_string_equal(why.text, "4000000000 threads; at most 1024 are possible");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_index_once),           cmocka_unit_test(test_many_loops),
        cmocka_unit_test(test_cancel_stops_the_loop),     cmocka_unit_test(test_two_pools_at_once),
        cmocka_unit_test(test_default_is_the_processors), cmocka_unit_test(test_too_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

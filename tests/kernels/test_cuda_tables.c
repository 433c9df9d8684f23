/** Small arrays that the CUDA backend uploads once (kernels/cuda/tables/tables.h). */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/context.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/rng.h"
#include "tests/kernels/cuda_pair.h"

/** The device has the bytes where tables_put() says, in order after all that was queued. */
static void check(struct cuda_pair *p, struct kern_cuda_array *arrays, size_t n)
{
    assert_int_equal(kern_cuda_tables_put(kern_cuda_of(p->cuda), arrays, n, NULL), STATUS_OK);
    for (size_t i = 0; i < n; i++) {
        if (arrays[i].n_bytes == 0) {
            assert_null(arrays[i].to);
            continue;
        }
        char *found = malloc(arrays[i].n_bytes);
        assert_non_null(found);
        assert_int_equal(kern_download(p->cuda, found, arrays[i].to, arrays[i].n_bytes, NULL),
                         STATUS_OK);
        assert_memory_equal(found, arrays[i].from, arrays[i].n_bytes);
        free(found);
    }
}

static void test_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUDA_PAIR_N_WAYS; i++) {
        struct rng r = rng_open(rng_seed(), i);
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(i);
        cuda_pair_open(&p, KERN_PRECISION_EXACT, &way);
        for (int k = 0; k < 200; k++) {
            uint8_t bytes[3][40];
            struct kern_cuda_array arrays[3];
            for (size_t a = 0; a < 3; a++) {
                /* Few different ones, so that many come again, and some that are alike in part. */
                memset(bytes[a], (int)rng_below(&r, 15), sizeof bytes[a]);
                bytes[a][39] = (uint8_t)rng_below(&r, 4);
                arrays[a] = (struct kern_cuda_array){bytes[a], 20 * rng_below(&r, 3), NULL};
            }
            check(&p, arrays, 3);
        }
        cuda_pair_close(&p);
    }
}

/** Uploads are counted: none of what is there; again what was not used for longest. */
static void test_uploads(void **state)
{
    (void)state;
    struct cuda_pair p;
    cuda_pair_open(&p, KERN_PRECISION_EXACT, &(struct host_device_options){0});
    const size_t *n_copies = &p.log.n_copies_in;
    uint32_t number[KERN_CUDA_N_TABLES + 1];
    struct kern_cuda_array arrays[KERN_CUDA_N_TABLES + 1];
    for (uint32_t i = 0; i <= KERN_CUDA_N_TABLES; i++) {
        number[i] = i;
        arrays[i] = (struct kern_cuda_array){&number[i], sizeof number[i], NULL};
    }
    check(&p, arrays, KERN_CUDA_N_TABLES);
    assert_int_equal(*n_copies, KERN_CUDA_N_TABLES);
    size_t n_allocs = p.log.n_allocs;
    check(&p, arrays, KERN_CUDA_N_TABLES);
    assert_int_equal(*n_copies, KERN_CUDA_N_TABLES);
    const uint32_t elsewhere = 0;
    check(&p, &(struct kern_cuda_array){&elsewhere, sizeof elsewhere, NULL}, 1);
    assert_int_equal(*n_copies, KERN_CUDA_N_TABLES);
    check(&p, &arrays[KERN_CUDA_N_TABLES], 1); /* in place of number 1 */
    check(&p, &arrays[0], 1);
    assert_int_equal(*n_copies, KERN_CUDA_N_TABLES + 1);
    check(&p, &arrays[1], 1);
    assert_int_equal(*n_copies, KERN_CUDA_N_TABLES + 2);
    assert_int_equal(p.log.n_allocs, n_allocs);
    cuda_pair_close(&p);
}

/** Larger ones than there is room for; whichever call fails, the next one finds no half of it. */
static void test_failures(void **state)
{
    (void)state;
    enum { N_BYTES = 70000 };
    uint8_t *bytes = calloc(2, N_BYTES);
    assert_non_null(bytes);
    bytes[N_BYTES + 5] = 1;
    bool failed = true;
    for (size_t at = 1; failed; at++) {
        struct cuda_pair p;
        cuda_pair_open(&p, KERN_PRECISION_EXACT, &(struct host_device_options){.fail_at = at + 1});
        failed = false;
        for (size_t k = 0; k < 2; k++) {
            struct kern_cuda_array array = {bytes + k * N_BYTES, N_BYTES, NULL};
            if (kern_cuda_tables_put(kern_cuda_of(p.cuda), &array, 1, NULL)) {
                failed = true;
                check(&p, &array, 1);
            }
        }
        assert_true(failed == (at <= 4)); /* memory and a copy of each */
        cuda_pair_close(&p);
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_uploads),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/**
 * The block formats' headers on a GPU against themselves on the CPU, over random bits and to the
 * bit. Compiled and linked wherever nvcc is found; skipped where no device is.
 */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/quant/registry.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/rng.h"
#include "tests/kernels/cuda_decode.h"

enum { ROWS = 300, COLS = 512 };

static void test_random_bits(void **state)
{
    (void)state;
    struct rng rng = rng_open(rng_seed(), 0);
    const struct kern_quant *format;
    for (size_t i = 0; (format = kern_quant_at(i)) != NULL; i++) {
        const struct gguf_type_info *info = gguf_type_info(format->type);
        size_t row_bytes = kern_quant_bytes(format, COLS);
        if (format->plain != format->type)
            continue; /* a device decodes the other type's blocks */
        unsigned char *blocks = malloc(ROWS * row_bytes);
        float *expected = malloc(sizeof(float) * ROWS * COLS);
        float *found = malloc(sizeof(float) * ROWS * COLS);
        assert_true(blocks && expected && found);
        rng_bytes(&rng, blocks, ROWS * row_bytes);
        format->decode(blocks, expected, (size_t)ROWS * COLS);
        const char *error = cuda_decode_rows(format->type, blocks, row_bytes, found, ROWS, COLS);
        if (error)
            fail_msg("%s: %s", info->name, error);
        size_t at = compare_bits(found, expected, (size_t)ROWS * COLS);
        if (at < (size_t)ROWS * COLS)
            fail_msg("%s: element %zu is %a, expected %a", info->name, at, (double)found[at],
                     (double)expected[at]);
        free(blocks);
        free(expected);
        free(found);
    }
}

int main(void)
{
    if (cuda_decode_n_devices() == 0) {
        puts("skipped: no CUDA device here");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

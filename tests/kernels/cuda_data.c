#include "tests/kernels/cuda_data.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/quant/registry.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/random_blocks.h"

float *cuda_data_floats(struct rng *r, size_t n, float size)
{
    float *x = malloc((n + 1) * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = size * rng_normal(r);
    return x;
}

float *cuda_data_copy(const float *x, size_t n)
{
    float *copy = malloc((n + 1) * sizeof *copy);
    assert_non_null(copy);
    memcpy(copy, x, n * sizeof *x);
    return copy;
}

float *cuda_data_repeat(const float *x, size_t n, size_t width, size_t times)
{
    float *to = malloc((n * times * width + 1) * sizeof *to);
    assert_non_null(to);
    for (size_t i = 0; i < n * times; i++)
        memcpy(to + i * width, x + i / times * width, width * sizeof *to);
    return to;
}

void cuda_data_assert_same(const float *found, const float *expected, size_t n, const char *what)
{
    size_t i = compare_bits(found, expected, n);
    if (i < n)
        fail_msg("%s: element %zu of %zu is %a, expected %a", what, i, n, (double)found[i],
                 (double)expected[i]);
}

/** Scales for types that have them apart, in blocks of 3 rows and 64 columns; from row 1 on. */
static struct gguf_scales random_scales(struct rng *r, enum gguf_type type, uint8_t *to, size_t n,
                                        size_t n_cols)
{
    if (gguf_type_info((uint32_t)type)->scale_elems == 0)
        return (struct gguf_scales){0};
    const struct kern_quant *quant = kern_quant_find(type);
    bool whole = type == GGUF_TYPE_I2_S;
    rng_bytes(r, to, n * sizeof(float));
    for (size_t i = 0; i < n && !quant->unweave; i++) {
        float scale = rng_normal(r);
        memcpy(to + i * sizeof scale, &scale, sizeof scale);
    }
    return (struct gguf_scales){.data = to,
                                .type = quant->unweave ? GGUF_SCALE_E8M0 : GGUF_SCALE_F32,
                                .block_rows = 3,
                                .block_cols = whole ? GGUF_SCALES_ALL : 64,
                                .n_cols = whole ? 1 : (n_cols + 63) / 64,
                                .first_row = 1};
}

struct kern_weight cuda_data_random_weight(struct rng *r, enum gguf_type type, size_t n_rows,
                                           size_t n_cols)
{
    size_t row_bytes = random_blocks_row_bytes(type, n_cols);
    row_bytes += rng_below(r, 2) * 5;
    const size_t n_bytes = n_rows * row_bytes, n_scales = (n_rows / 3 + 2) * (n_cols / 64 + 1);
    uint8_t *data = malloc(n_bytes + n_scales * sizeof(float));
    assert_non_null(data);
    rng_bytes(r, data, n_bytes);
    static uint64_t generation;
    return (struct kern_weight){.type = type,
                                .n_rows = n_rows,
                                .n_cols = n_cols,
                                .row_bytes = row_bytes,
                                .data = data,
                                .scales = random_scales(r, type, data + n_bytes, n_scales, n_cols),
                                .scale = 1.0f,
                                .generation = ++generation};
}

struct kern_weight cuda_data_float_weight(struct rng *r, size_t n_rows, size_t n_cols)
{
    struct kern_weight w = cuda_data_random_weight(r, GGUF_TYPE_F32, n_rows, n_cols);
    for (size_t i = 0; i < n_rows; i++) {
        for (size_t k = 0; k < n_cols; k++) {
            float x = rng_normal(r);
            memcpy((uint8_t *)(uintptr_t)w.data + i * w.row_bytes + k * sizeof x, &x, sizeof x);
        }
    }
    return w;
}

void cuda_data_weight_free(struct kern_weight *w)
{
    free((void *)(uintptr_t)w->data);
}

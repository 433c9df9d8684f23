/* Packing, unpacking and scaling of panels with AVX2: blocks of 8 x 8 are transposed. */
#include <immintrin.h>

#include "base/arithmetic.h"
#include "kernels/cpu/avx2/gemm/gemm.h"
#include "kernels/cpu/avx2/gemm/transpose.h"

enum { WIDTH = 8, LINE = 16 };

/** Lanes lane .. lane + 7, all of them tokens. */
static void pack_eight(const float *x, size_t x_stride, size_t n_k, float *out)
{
    size_t k = 0;
    for (; k + WIDTH <= n_k; k += WIDTH) {
        __m256 m[WIDTH];
        for (size_t i = 0; i < WIDTH; i++)
            m[i] = _mm256_loadu_ps(x + i * x_stride + k);
        transpose8(m);
        for (size_t i = 0; i < WIDTH; i++)
            _mm256_store_ps(out + (k + i) * KERN_PANEL, m[i]);
    }
    for (; k < n_k; k++)
        for (size_t i = 0; i < WIDTH; i++)
            out[k * KERN_PANEL + i] = x[i * x_stride + k];
}

void kern_avx2_panel_pack(const struct kern_panel_pack *op)
{
    const float *x = op->x;
    float *out = op->out;
    size_t x_stride = op->x_stride, n_k = op->n_k, lane = 0;
    /* A cache line of each row at a time: rows may lie where they evict one another. */
    for (size_t k = 0; k < n_k; k += LINE) {
        size_t n = base_min(n_k - k, LINE);
        for (lane = 0; lane + WIDTH <= op->n_lanes; lane += WIDTH)
            pack_eight(x + lane * x_stride + k, x_stride, n, out + k * KERN_PANEL + lane);
    }
    for (; lane < KERN_PANEL; lane++)
        for (size_t k = 0; k < n_k; k++)
            out[k * KERN_PANEL + lane] = lane < op->n_lanes ? x[lane * x_stride + k] : 0.0f;
}

static float finish(const struct kern_panel_unpack *op, size_t r, size_t lane, float y)
{
    float value = op->acc[r * KERN_PANEL + lane];
    if (op->scale != 1.0f)
        value *= op->scale;
    if (op->bias)
        value += op->bias[r];
    return op->accumulate ? value + y : value;
}

/** Rows r .. r + 7 of lanes lane .. lane + 7, of which n_lanes are tokens. */
static void unpack_block(const struct kern_panel_unpack *op, size_t r, size_t lane, size_t n_lanes)
{
    __m256 m[WIDTH];
    for (size_t i = 0; i < WIDTH; i++)
        m[i] = _mm256_load_ps(op->acc + (r + i) * KERN_PANEL + lane);
    transpose8(m);
    for (size_t i = 0; i < n_lanes; i++) {
        float *y = op->y + (lane + i) * op->y_stride + r;
        __m256 value = m[i];
        if (op->scale != 1.0f)
            value = _mm256_mul_ps(value, _mm256_set1_ps(op->scale));
        if (op->bias)
            value = _mm256_add_ps(value, _mm256_loadu_ps(op->bias + r));
        if (op->accumulate)
            value = _mm256_add_ps(value, _mm256_loadu_ps(y));
        _mm256_storeu_ps(y, value);
    }
}

void kern_avx2_panel_unpack(const struct kern_panel_unpack *op)
{
    size_t n_whole = op->n_rows / WIDTH * WIDTH, r;
    /* Lanes outside: rows of y one after the other, as the processor expects what is written. */
    for (size_t lane = 0; lane < op->n_lanes; lane += WIDTH) {
        size_t n_lanes = base_min(op->n_lanes - lane, WIDTH);
        for (r = 0; r < n_whole; r += WIDTH)
            unpack_block(op, r, lane, n_lanes);
    }
    for (r = n_whole; r < op->n_rows; r++) {
        for (size_t lane = 0; lane < op->n_lanes; lane++) {
            float *y = &op->y[lane * op->y_stride + r];
            *y = finish(op, r, lane, op->accumulate ? *y : 0.0f);
        }
    }
}

void kern_avx2_panel_scale(float *acc, size_t n_rows, const float *factor)
{
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t lane = 0; lane < KERN_PANEL; lane += WIDTH) {
            float *a = acc + r * KERN_PANEL + lane;
            _mm256_store_ps(a, _mm256_mul_ps(_mm256_load_ps(a), _mm256_load_ps(factor + lane)));
        }
    }
}

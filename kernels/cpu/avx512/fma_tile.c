/* kern_table.fma_tile with AVX-512: up to 12 rows of two vectors of 16 tokens in registers. */
#include <immintrin.h>

#include "kernels/cpu/avx512/gemm.h"

enum { WIDTH = 16, MAX_ROWS = 12 };

/** One step: a weight per row times 32 tokens. With 12 rows 24 multiply-adds for 14 loads. */
static inline __attribute__((always_inline)) void step(__m512 acc[MAX_ROWS][2], size_t n_rows,
                                                       const float *w, size_t w_row, const float *x)
{
    __m512 x0 = _mm512_load_ps(x);
    __m512 x1 = _mm512_load_ps(x + WIDTH);
    for (size_t r = 0; r < n_rows; r++) {
        __m512 weight = _mm512_set1_ps(w[r * w_row]);
        acc[r][0] = _mm512_fmadd_ps(weight, x0, acc[r][0]);
        acc[r][1] = _mm512_fmadd_ps(weight, x1, acc[r][1]);
    }
}

/**
 * n_rows rows, beginning with first_row. After inlining n_rows is a constant, so that acc lives
 * in registers, and one of the strides is 1. `ahead` is what to fetch into L2 meanwhile.
 */
static inline __attribute__((always_inline)) void multiply(const struct kern_fma_tile *op,
                                                           size_t first_row, size_t n_rows,
                                                           size_t w_row, size_t w_col,
                                                           const float *ahead)
{
    const float *w = op->w + first_row * w_row;
    const float *x = op->x;
    float *out = op->acc + first_row * KERN_PANEL;
    __m512 acc[MAX_ROWS][2];
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t v = 0; v < 2; v++) {
            float *at = out + r * KERN_PANEL + v * WIDTH;
            acc[r][v] = op->resume ? _mm512_load_ps(at) : _mm512_setzero_ps();
            _mm_prefetch((const char *)(at + n_rows * KERN_PANEL), _MM_HINT_T0);
        }
    }
    size_t k = 0;
    for (; k + 4 <= op->n_k; k += 4) {
        _mm_prefetch((const char *)ahead, _MM_HINT_T1);
        ahead += WIDTH;
        step(acc, n_rows, w, w_row, x);
        step(acc, n_rows, w + w_col, w_row, x + KERN_PANEL);
        step(acc, n_rows, w + 2 * w_col, w_row, x + 2 * KERN_PANEL);
        step(acc, n_rows, w + 3 * w_col, w_row, x + 3 * KERN_PANEL);
        w += 4 * w_col;
        x += 4 * KERN_PANEL;
    }
    for (; k < op->n_k; k++) {
        step(acc, n_rows, w, w_row, x);
        w += w_col;
        x += KERN_PANEL;
    }
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t v = 0; v < 2; v++)
            _mm512_store_ps(out + r * KERN_PANEL + v * WIDTH, acc[r][v]);
    }
}

static inline __attribute__((always_inline)) void multiply_rows(const struct kern_fma_tile *op,
                                                                size_t first_row, size_t n_rows,
                                                                size_t w_row, size_t w_col,
                                                                const float *ahead)
{
    switch (n_rows) {
    case 1:
        multiply(op, first_row, 1, w_row, w_col, ahead);
        break;
    case 2:
        multiply(op, first_row, 2, w_row, w_col, ahead);
        break;
    case 3:
        multiply(op, first_row, 3, w_row, w_col, ahead);
        break;
    case 4:
        multiply(op, first_row, 4, w_row, w_col, ahead);
        break;
    case 5:
        multiply(op, first_row, 5, w_row, w_col, ahead);
        break;
    case 6:
        multiply(op, first_row, 6, w_row, w_col, ahead);
        break;
    case 7:
        multiply(op, first_row, 7, w_row, w_col, ahead);
        break;
    case 8:
        multiply(op, first_row, 8, w_row, w_col, ahead);
        break;
    case 9:
        multiply(op, first_row, 9, w_row, w_col, ahead);
        break;
    case 10:
        multiply(op, first_row, 10, w_row, w_col, ahead);
        break;
    case 11:
        multiply(op, first_row, 11, w_row, w_col, ahead);
        break;
    default:
        multiply(op, first_row, MAX_ROWS, w_row, w_col, ahead);
        break;
    }
}

void kern_avx512_fma_tile(const struct kern_fma_tile *op)
{
    /* Groups of nearly the same size: a group of one or two rows would wait on its chains. */
    size_t n_groups = (op->n_rows + MAX_ROWS - 1) / MAX_ROWS;
    for (size_t i = 0, row = 0; i < n_groups; i++) {
        size_t end = op->n_rows * (i + 1) / n_groups;
        /* A line for every four steps; the next call's x has two for each. */
        size_t fetched = i * (op->n_k / 4) * WIDTH;
        bool fetch = op->next_x && fetched < op->n_k * KERN_PANEL;
        const float *ahead = fetch ? op->next_x + fetched : op->x;
        if (op->w_col == 1)
            multiply_rows(op, row, end - row, op->w_row, 1, ahead);
        else
            multiply_rows(op, row, end - row, 1, op->w_col, ahead);
        row = end;
    }
}

/* kern_table.fma_tile with AVX2: up to 6 rows of two vectors of 8 tokens in registers. */
#include <immintrin.h>

#include "kernels/cpu/avx2/gemm.h"

enum { WIDTH = 8, MAX_ROWS = 6, COLUMNS = 2 * WIDTH };

/**
 * n_rows rows, beginning with first_row, of the 16 tokens from `lane` on. Each step broadcasts
 * one weight per row: with 6 rows 12 multiply-adds for 8 loads. After inlining n_rows is a
 * constant, so that acc lives in registers, and one of the strides is 1.
 */
static inline __attribute__((always_inline)) void multiply(const struct kern_fma_tile *op,
                                                           size_t first_row, size_t n_rows,
                                                           size_t w_row, size_t w_col, size_t lane)
{
    const float *w = op->w + first_row * w_row;
    const float *x = op->x + lane;
    float *out = op->acc + first_row * KERN_PANEL + lane;
    __m256 acc[MAX_ROWS][2];
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t v = 0; v < 2; v++)
            acc[r][v] =
                op->resume ? _mm256_load_ps(out + r * KERN_PANEL + v * WIDTH) : _mm256_setzero_ps();
    }
    for (size_t k = 0; k < op->n_k; k++) {
        __m256 x0 = _mm256_load_ps(x);
        __m256 x1 = _mm256_load_ps(x + WIDTH);
        for (size_t r = 0; r < n_rows; r++) {
            __m256 weight = _mm256_broadcast_ss(&w[r * w_row]);
            acc[r][0] = _mm256_fmadd_ps(weight, x0, acc[r][0]);
            acc[r][1] = _mm256_fmadd_ps(weight, x1, acc[r][1]);
        }
        w += w_col;
        x += KERN_PANEL;
    }
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t v = 0; v < 2; v++)
            _mm256_store_ps(out + r * KERN_PANEL + v * WIDTH, acc[r][v]);
    }
}

static inline __attribute__((always_inline)) void multiply_rows(const struct kern_fma_tile *op,
                                                                size_t first_row, size_t n_rows,
                                                                size_t w_row, size_t w_col)
{
    size_t n_lanes = op->narrow ? KERN_NARROW : KERN_PANEL;
    for (size_t lane = 0; lane < n_lanes; lane += COLUMNS) {
        switch (n_rows) {
        case 1:
            multiply(op, first_row, 1, w_row, w_col, lane);
            break;
        case 2:
            multiply(op, first_row, 2, w_row, w_col, lane);
            break;
        case 3:
            multiply(op, first_row, 3, w_row, w_col, lane);
            break;
        case 4:
            multiply(op, first_row, 4, w_row, w_col, lane);
            break;
        case 5:
            multiply(op, first_row, 5, w_row, w_col, lane);
            break;
        default:
            multiply(op, first_row, MAX_ROWS, w_row, w_col, lane);
            break;
        }
    }
}

void kern_avx2_fma_tile(const struct kern_fma_tile *op)
{
    /* Groups of nearly the same size: a group of one or two rows would wait on its chains. */
    size_t n_groups = (op->n_rows + MAX_ROWS - 1) / MAX_ROWS;
    for (size_t i = 0, row = 0; i < n_groups; i++) {
        size_t end = op->n_rows * (i + 1) / n_groups;
        if (op->w_col == 1)
            multiply_rows(op, row, end - row, op->w_row, 1);
        else
            multiply_rows(op, row, end - row, 1, op->w_col);
        row = end;
    }
}

/* The kernel fma_tile with AVX-512: up to 12 rows of two vectors of 16 tokens in registers. */
#include <immintrin.h>

#include "base/arithmetic.h"
#include "kernels/cpu/avx512/gemm/gemm.h"

enum { WIDTH = 16, MAX_ROWS = 12 };

/** How much a call of multiply() takes in. After inlining all of it is constant. */
struct extent {
    size_t n_rows, n_vectors;
    size_t w_row, w_col; /* one of them is 1 */
};

/** One step: a weight per row times 32 tokens. With 12 rows 24 multiply-adds for 14 loads. */
static inline __attribute__((always_inline)) void step(__m512 acc[MAX_ROWS][2], struct extent e,
                                                       const float *w, const float *x)
{
    __m512 x0 = _mm512_load_ps(x);
    __m512 x1 = e.n_vectors > 1 ? _mm512_load_ps(x + WIDTH) : x0;
    for (size_t r = 0; r < e.n_rows; r++) {
        __m512 weight = _mm512_set1_ps(w[r * e.w_row]);
        acc[r][0] = _mm512_fmadd_ps(weight, x0, acc[r][0]);
        if (e.n_vectors > 1)
            acc[r][1] = _mm512_fmadd_ps(weight, x1, acc[r][1]);
    }
}

/**
 * Rows first_row .. first_row + e.n_rows - 1. e is known when this is inlined, so that acc lives
 * in registers. `ahead` is what to fetch into L2 meanwhile.
 */
static inline __attribute__((always_inline)) void
multiply(const struct kern_fma_tile *op, size_t first_row, struct extent e, const float *ahead)
{
    const float *w = op->w + first_row * e.w_row;
    const float *x = op->x;
    float *out = op->acc + first_row * KERN_PANEL;
    __m512 acc[MAX_ROWS][2];
    for (size_t r = 0; r < e.n_rows; r++) {
        for (size_t v = 0; v < e.n_vectors; v++) {
            float *at = out + r * KERN_PANEL + v * WIDTH;
            acc[r][v] = op->resume ? _mm512_load_ps(at) : _mm512_setzero_ps();
            _mm_prefetch((const char *)(at + e.n_rows * KERN_PANEL), _MM_HINT_T0);
        }
    }
    size_t k = 0;
    for (; k + 4 <= op->n_k; k += 4) {
        _mm_prefetch((const char *)ahead, _MM_HINT_T1);
        ahead += WIDTH;
        step(acc, e, w, x);
        step(acc, e, w + e.w_col, x + KERN_PANEL);
        step(acc, e, w + 2 * e.w_col, x + 2 * KERN_PANEL);
        step(acc, e, w + 3 * e.w_col, x + 3 * KERN_PANEL);
        w += 4 * e.w_col;
        x += 4 * KERN_PANEL;
    }
    for (; k < op->n_k; k++) {
        step(acc, e, w, x);
        w += e.w_col;
        x += KERN_PANEL;
    }
    for (size_t r = 0; r < e.n_rows; r++)
        for (size_t v = 0; v < e.n_vectors; v++)
            _mm512_store_ps(out + r * KERN_PANEL + v * WIDTH, acc[r][v]);
}

/** multiply() with a number of rows that the compiler knows. With a sanitizer it does not know it:
 * to compile each would take minutes. */
#define CASE(n)                                                                                    \
    case n:                                                                                        \
        e.n_rows = n;                                                                              \
        multiply(op, first_row, e, ahead);                                                         \
        break

static inline __attribute__((always_inline)) void
multiply_rows(const struct kern_fma_tile *op, size_t first_row, struct extent e, const float *ahead)
{
    if (ASSAY_SANITIZED) {
        multiply(op, first_row, e, ahead);
        return;
    }
    switch (e.n_rows) {
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
        CASE(6);
        CASE(7);
        CASE(8);
        CASE(9);
        CASE(10);
        CASE(11);
        CASE(12);
    }
}

/** Choose what is constant in the loops. */
static void multiply_group(const struct kern_fma_tile *op, size_t first_row, size_t n_rows,
                           const float *ahead)
{
    struct extent e = {.n_rows = n_rows, .n_vectors = 2, .w_row = op->w_row, .w_col = 1};
    if (op->w_col == 1 && op->narrow) {
        e.n_vectors = 1;
        multiply_rows(op, first_row, e, ahead);
    } else if (op->w_col == 1) {
        multiply_rows(op, first_row, e, ahead);
    } else {
        e.w_row = 1;
        e.w_col = op->w_col;
        multiply_rows(op, first_row, e, ahead);
    }
}

void kern_avx512_fma_tile(const struct kern_fma_tile *op)
{
    /* Groups of nearly the same size: a group of one or two rows would wait on its chains. */
    size_t n_groups = base_div_up(op->n_rows, MAX_ROWS);
    for (size_t i = 0, row = 0; i < n_groups; i++) {
        size_t end = op->n_rows * (i + 1) / n_groups;
        /* A line for every four steps; the next call's x has two for each. */
        size_t fetched = i * (op->n_k / 4) * WIDTH;
        bool fetch = op->next_x && fetched < op->n_k * KERN_PANEL;
        const float *ahead = fetch ? op->next_x + fetched : op->x;
        multiply_group(op, row, end - row, ahead);
        row = end;
    }
}

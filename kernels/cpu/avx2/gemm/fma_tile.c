/* The kernel fma_tile with AVX2: 12 vectors of 8 tokens in registers. */
#include <immintrin.h>

#include "base/arithmetic.h"
#include "kernels/cpu/avx2/gemm/gemm.h"

enum {
    WIDTH = 8,
    LINE = 16,       /* floats of a cache line */
    WIDE_ROWS = 3,   /* times four vectors: 32 tokens */
    NARROW_ROWS = 6, /* times two: 16 */
    MAX_VECTORS = 4,
    /* Columns of x that meet all rows before the next ones do: 16 KiB, half of the smallest L1. */
    BLOCK_K = 128
};

/** How much a call of multiply() takes in. After inlining all of it is constant. */
struct extent {
    size_t n_rows, n_vectors;
    size_t w_row, w_col; /* one of them is 1 */
};

/**
 * One step: a weight per row times 32 or 16 tokens. 32 tokens keep the weights in registers and
 * take 12 multiply-adds for 7 loads; with 16 tokens it is their vectors that stay, and 8 loads.
 */
static inline __attribute__((always_inline)) void
step(__m256 acc[NARROW_ROWS][MAX_VECTORS], struct extent e, const float *w, const float *x)
{
    if (e.n_vectors == MAX_VECTORS) {
        __m256 weight[WIDE_ROWS];
        for (size_t r = 0; r < e.n_rows; r++)
            weight[r] = _mm256_broadcast_ss(&w[r * e.w_row]);
        for (size_t v = 0; v < MAX_VECTORS; v++) {
            __m256 tokens = _mm256_load_ps(x + v * WIDTH);
            for (size_t r = 0; r < e.n_rows; r++)
                acc[r][v] = _mm256_fmadd_ps(weight[r], tokens, acc[r][v]);
        }
        return;
    }
    __m256 x0 = _mm256_load_ps(x), x1 = _mm256_load_ps(x + WIDTH);
    for (size_t r = 0; r < e.n_rows; r++) {
        __m256 weight = _mm256_broadcast_ss(&w[r * e.w_row]);
        acc[r][0] = _mm256_fmadd_ps(weight, x0, acc[r][0]);
        acc[r][1] = _mm256_fmadd_ps(weight, x1, acc[r][1]);
    }
}

/** Rows first_row .. first_row + e.n_rows - 1; e is known when this is inlined. */
static inline __attribute__((always_inline)) void multiply(const struct kern_fma_tile *op,
                                                           size_t first_row, struct extent e)
{
    const float *w = op->w + first_row * e.w_row;
    const float *x = op->x;
    float *out = op->acc + first_row * KERN_PANEL;
    size_t n_k = op->n_k, k = 0;
    __m256 acc[NARROW_ROWS][MAX_VECTORS];
    for (size_t r = 0; r < e.n_rows; r++) {
        for (size_t v = 0; v < e.n_vectors; v++)
            acc[r][v] =
                op->resume ? _mm256_load_ps(out + r * KERN_PANEL + v * WIDTH) : _mm256_setzero_ps();
    }
    for (; k + LINE <= n_k; k += LINE) {
        /* The processor's own prefetching does not see that the next rows follow these. */
        for (size_t r = e.n_rows; e.w_col == 1 && r < 2 * e.n_rows; r++)
            _mm_prefetch((const char *)(w + r * e.w_row), _MM_HINT_T0);
        for (size_t i = 0; i < LINE; i += 2) {
            step(acc, e, w, x);
            step(acc, e, w + e.w_col, x + KERN_PANEL);
            w += 2 * e.w_col;
            x += 2 * KERN_PANEL;
        }
    }
    for (; k < n_k; k++) {
        step(acc, e, w, x);
        w += e.w_col;
        x += KERN_PANEL;
    }
    for (size_t r = 0; r < e.n_rows; r++)
        for (size_t v = 0; v < e.n_vectors; v++)
            _mm256_store_ps(out + r * KERN_PANEL + v * WIDTH, acc[r][v]);
}

/** multiply() with a number of rows that the compiler knows. With a sanitizer it does not know it:
 * to compile each would take minutes. */
#define CASE(n)                                                                                    \
    case n:                                                                                        \
        e.n_rows = n;                                                                              \
        multiply(op, first_row, e);                                                                \
        break

static inline __attribute__((always_inline)) void
multiply_wide(const struct kern_fma_tile *op, size_t first_row, size_t n_rows, struct extent e)
{
    e.n_vectors = MAX_VECTORS;
    e.n_rows = n_rows;
    if (ASSAY_SANITIZED) {
        multiply(op, first_row, e);
        return;
    }
    switch (n_rows) {
        CASE(1);
        CASE(2);
        CASE(WIDE_ROWS);
    }
}

static inline __attribute__((always_inline)) void
multiply_narrow(const struct kern_fma_tile *op, size_t first_row, size_t n_rows, struct extent e)
{
    e.n_vectors = 2;
    e.n_rows = n_rows;
    if (ASSAY_SANITIZED) {
        multiply(op, first_row, e);
        return;
    }
    switch (n_rows) {
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
        CASE(NARROW_ROWS);
    }
}

/** Have lines [first, end) of what begins at `ahead` brought to L2. */
static void fetch(const float *ahead, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        _mm_prefetch((const char *)(ahead + i * LINE), _MM_HINT_T1);
}

/**
 * All rows times at most BLOCK_K columns, while these columns of the next panel are fetched.
 * Choose what is constant in the loops.
 */
static void multiply_block(const struct kern_fma_tile *op)
{
    struct extent in_row = {.w_row = op->w_row, .w_col = 1};
    struct extent in_column = {.w_row = 1, .w_col = op->w_col};
    size_t most = op->narrow ? NARROW_ROWS : WIDE_ROWS;
    /* Groups of nearly the same size: a group of one or two rows would wait on its chains. */
    size_t n_groups = base_div_up(op->n_rows, most);
    size_t n_lines = op->next_x ? op->n_k * KERN_PANEL / LINE : 0;
    for (size_t i = 0, row = 0; i < n_groups; i++) {
        size_t end = op->n_rows * (i + 1) / n_groups;
        fetch(op->next_x, n_lines * i / n_groups, n_lines * (i + 1) / n_groups);
        if (op->narrow && op->w_col == 1)
            multiply_narrow(op, row, end - row, in_row);
        else if (op->narrow)
            multiply_narrow(op, row, end - row, in_column);
        else if (op->w_col == 1)
            multiply_wide(op, row, end - row, in_row);
        else
            multiply_wide(op, row, end - row, in_column);
        row = end;
    }
}

void kern_avx2_fma_tile(const struct kern_fma_tile *op)
{
    struct kern_fma_tile block = *op;
    for (size_t k = 0; k < op->n_k || k == 0; k += BLOCK_K) {
        block.w = op->w + k * op->w_col;
        block.x = op->x + k * KERN_PANEL;
        block.next_x = op->next_x ? op->next_x + k * KERN_PANEL : NULL;
        block.n_k = base_min(op->n_k - k, BLOCK_K);
        block.resume = op->resume || k > 0;
        multiply_block(&block);
    }
}

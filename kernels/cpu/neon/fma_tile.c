/* The kernel fma_tile with NEON: 6 rows of 16 tokens in registers. */
#include <arm_neon.h>

#include "base/arithmetic.h"
#include "kernels/cpu/neon/neon.h"

enum {
    WIDTH = 4,
    VECTORS = KERN_NARROW / WIDTH,
    MAX_ROWS = 6,
    LINE = 16, /* floats of a cache line */
    /* Columns of x that meet all rows before the next ones do: 16 KiB. */
    BLOCK_K = 128
};

#define TILE_INLINE static inline __attribute__((always_inline))

/** How much a call of multiply() takes in. After inlining all of it is constant but the strides. */
struct extent {
    size_t n_rows;
    size_t w_row, w_col; /* one of them is 1 */
};

/** One step: `lane` of a weight vector per row times 16 tokens. */
#define STEP(weight, lane, x)                                                                      \
    for (size_t v = 0; v < VECTORS; v++) {                                                         \
        float32x4_t tokens = vld1q_f32((x) + v * WIDTH);                                           \
        for (size_t r = 0; r < e.n_rows; r++)                                                      \
            acc[r][v] = vfmaq_laneq_f32(acc[r][v], tokens, weight[r], lane);                       \
    }

/** Rows first_row .. first_row + e.n_rows - 1, of 16 tokens from `token` on. */
TILE_INLINE void multiply(const struct kern_fma_tile *op, size_t first_row, size_t token,
                          struct extent e)
{
    const float *w = op->w + first_row * e.w_row, *x = op->x + token;
    float *out = op->acc + first_row * KERN_PANEL + token;
    float32x4_t acc[MAX_ROWS][VECTORS], weight[MAX_ROWS];
    size_t k = 0;
    for (size_t r = 0; r < e.n_rows; r++)
        for (size_t v = 0; v < VECTORS; v++)
            acc[r][v] =
                op->resume ? vld1q_f32(out + r * KERN_PANEL + v * WIDTH) : vdupq_n_f32(0.0f);
    for (; e.w_col == 1 && k + WIDTH <= op->n_k; k += WIDTH, x += WIDTH * KERN_PANEL) {
        for (size_t r = 0; r < e.n_rows; r++)
            weight[r] = vld1q_f32(w + r * e.w_row + k);
        STEP(weight, 0, x)
        STEP(weight, 1, x + KERN_PANEL)
        STEP(weight, 2, x + 2 * KERN_PANEL)
        STEP(weight, 3, x + 3 * KERN_PANEL)
    }
    for (; k < op->n_k; k++, x += KERN_PANEL) {
        for (size_t r = 0; r < e.n_rows; r++)
            weight[r] = vld1q_dup_f32(w + r * e.w_row + k * e.w_col);
        STEP(weight, 0, x)
    }
    for (size_t r = 0; r < e.n_rows; r++)
        for (size_t v = 0; v < VECTORS; v++)
            vst1q_f32(out + r * KERN_PANEL + v * WIDTH, acc[r][v]);
}

/** multiply() with a number of rows that the compiler knows. */
#define CASE(n)                                                                                    \
    case n:                                                                                        \
        e.n_rows = n;                                                                              \
        multiply(op, first_row, token, e);                                                         \
        break

TILE_INLINE void multiply_rows(const struct kern_fma_tile *op, size_t first_row, size_t token,
                               struct extent e)
{
    switch (e.n_rows) {
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
        CASE(MAX_ROWS);
    }
}

/** Have lines [first, end) of what begins at `ahead` brought to L2. */
static void fetch(const float *ahead, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        __builtin_prefetch(ahead + i * LINE, 0, 2);
}

/** All rows times at most BLOCK_K columns, while these columns of the next panel are fetched. */
static void multiply_block(const struct kern_fma_tile *op)
{
    /* Groups of nearly the same size: a group of one or two rows would wait on its chains. */
    size_t n_groups = base_div_up(op->n_rows, MAX_ROWS);
    size_t n_lines = op->next_x ? op->n_k * KERN_PANEL / LINE : 0;
    for (size_t i = 0, row = 0; i < n_groups; i++) {
        size_t end = op->n_rows * (i + 1) / n_groups;
        fetch(op->next_x, n_lines * i / n_groups, n_lines * (i + 1) / n_groups);
        struct extent in_row = {end - row, op->w_row, 1}, in_column = {end - row, 1, op->w_col};
        for (size_t token = 0; token < (op->narrow ? KERN_NARROW : KERN_PANEL);
             token += KERN_NARROW) {
            if (op->w_col == 1)
                multiply_rows(op, row, token, in_row);
            else
                multiply_rows(op, row, token, in_column);
        }
        row = end;
    }
}

void kern_neon_fma_tile(const struct kern_fma_tile *op)
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

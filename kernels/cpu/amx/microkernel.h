/**
 * Products in bfloat16 on tiles. Include it after tile_hardware.h or tile_emulated.h; it defines
 * multiply_one() and multiply_triple(), whose contract is in amx.h.
 *
 * A block is 32 rows times 32 tokens: tiles 0 to 3 hold its sums, 4 and 5 weights of its first
 * and last 16 rows, 6 and 7 tokens. Twelve multiplications of triples take eight loads.
 */
#ifndef KERNELS_CPU_AMX_MICROKERNEL_H
#define KERNELS_CPU_AMX_MICROKERNEL_H

#include <stdbool.h>

#include "base/arithmetic.h"
#include "kernels/cpu/kernels.h"

enum { HALF = KERN_BF16_TILE_LINES, TILE_STRIDE = 2 * KERN_BF16_CHUNK_K };

/** Sums of 16 rows: KERN_PANEL floats per row, of which there may be fewer than 16. */
struct sums {
    float *acc;
    size_t n_rows;
    _Alignas(64) float spare[KERN_BF16_TILE_LINES * KERN_PANEL];
};

/** Where tiles are loaded from and stored to: the sums, or a copy if they end early. */
static inline float *sums_open(struct sums *s, float *acc, size_t n_rows, bool resume)
{
    s->acc = acc;
    s->n_rows = n_rows;
    if (n_rows == HALF)
        return acc;
    memset(s->spare, 0, sizeof s->spare);
    if (resume)
        memcpy(s->spare, acc, n_rows * KERN_PANEL * sizeof(float));
    return s->spare;
}

static inline void sums_close(const struct sums *s)
{
    if (s->n_rows < HALF)
        memcpy(s->acc, s->spare, s->n_rows * KERN_PANEL * sizeof(float));
}

/** How much of a block there is, known when what takes it is inlined. */
struct extent {
    bool two_rows, two_tokens; /* both halves */
    unsigned n_parts;
};

static inline __attribute__((always_inline)) void
load_weights(struct tiles *tiles, const uint16_t *tile, struct extent e)
{
    TILE_LOAD(tiles, 4, tile, TILE_STRIDE);
    if (e.two_rows)
        TILE_LOAD(tiles, 5, tile + KERN_BF16_TILE, TILE_STRIDE);
}

static inline __attribute__((always_inline)) void load_tokens(struct tiles *tiles,
                                                              const uint16_t *tile, struct extent e)
{
    TILE_LOAD(tiles, 6, tile, TILE_STRIDE);
    if (e.two_tokens)
        TILE_LOAD(tiles, 7, tile + KERN_BF16_TILE, TILE_STRIDE);
}

static inline __attribute__((always_inline)) void multiply_add(struct tiles *tiles, struct extent e)
{
    TILE_MULTIPLY_ADD(tiles, 0, 4, 6);
    if (e.two_tokens)
        TILE_MULTIPLY_ADD(tiles, 1, 4, 7);
    if (e.two_rows)
        TILE_MULTIPLY_ADD(tiles, 2, 5, 6);
    if (e.two_rows && e.two_tokens)
        TILE_MULTIPLY_ADD(tiles, 3, 5, 7);
}

/** All columns of a block. `ahead`: memory to fetch into L2 meanwhile, as much as x has. */
static inline __attribute__((always_inline)) void
multiply_chunks(struct tiles *tiles, const uint16_t *w, const uint16_t *x, size_t n_k,
                struct extent e, const char *ahead)
{
    const size_t part = 2 * (size_t)KERN_BF16_TILE, chunk = part * e.n_parts;
    for (size_t k = 0; k < n_k; k += KERN_BF16_CHUNK_K) {
        if (e.n_parts > 1) {
            load_weights(tiles, w + part, e);
            load_tokens(tiles, x, e);
            multiply_add(tiles, e);
            load_weights(tiles, w, e);
            multiply_add(tiles, e);
            load_tokens(tiles, x + part, e);
            multiply_add(tiles, e);
        } else {
            load_weights(tiles, w, e);
            load_tokens(tiles, x, e);
            multiply_add(tiles, e);
        }
        for (size_t line = 0; ahead && line < chunk * sizeof *x; line += 64)
            __builtin_prefetch(ahead + line, 0, 2);
        ahead = ahead ? ahead + chunk * sizeof *x : NULL;
        w += chunk;
        x += chunk;
    }
}

/** A block's sums: from acc, or from zero. */
static inline __attribute__((always_inline)) void load_sums(struct tiles *tiles, bool resume,
                                                            float *const at[2], struct extent e)
{
    const size_t stride = KERN_PANEL * sizeof(float);
    if (!resume) {
        TILE_ZERO(tiles, 0);
        TILE_ZERO(tiles, 1);
        TILE_ZERO(tiles, 2);
        TILE_ZERO(tiles, 3);
        return;
    }
    TILE_LOAD(tiles, 0, at[0], stride);
    if (e.two_tokens)
        TILE_LOAD(tiles, 1, at[0] + HALF, stride);
    if (e.two_rows)
        TILE_LOAD(tiles, 2, at[1], stride);
    if (e.two_rows && e.two_tokens)
        TILE_LOAD(tiles, 3, at[1] + HALF, stride);
}

static inline __attribute__((always_inline)) void store_sums(struct tiles *tiles,
                                                             float *const at[2], struct extent e)
{
    const size_t stride = KERN_PANEL * sizeof(float);
    TILE_STORE(tiles, 0, at[0], stride);
    if (e.two_tokens)
        TILE_STORE(tiles, 1, at[0] + HALF, stride);
    if (e.two_rows)
        TILE_STORE(tiles, 2, at[1], stride);
    if (e.two_rows && e.two_tokens)
        TILE_STORE(tiles, 3, at[1] + HALF, stride);
}

/** Rows row .. row + 31 of op, or as many as there are. */
static inline __attribute__((always_inline)) void
multiply_block(struct tiles *tiles, const struct kern_fma_tile *op, size_t row, struct extent e)
{
    size_t left = op->n_rows - row;
    float *acc = op->acc + row * KERN_PANEL, *at[2] = {NULL, NULL};
    struct sums first, last;
    at[0] = sums_open(&first, acc, base_min(left, HALF), op->resume);
    if (e.two_rows)
        at[1] = sums_open(&last, acc + HALF * KERN_PANEL, base_min(left - HALF, HALF), op->resume);
    load_sums(tiles, op->resume, at, e);
    multiply_chunks(tiles, (const uint16_t *)(const void *)(op->w + row * op->w_row),
                    (const uint16_t *)(const void *)op->x, op->n_k, e,
                    row == 0 ? (const char *)op->next_x : NULL);
    store_sums(tiles, at, e);
    sums_close(&first);
    if (e.two_rows)
        sums_close(&last);
}

static inline __attribute__((always_inline)) void multiply(const struct kern_fma_tile *op,
                                                           unsigned n_parts)
{
    struct tiles tiles;
    tiles_open(&tiles);
    for (size_t row = 0; row < op->n_rows; row += 2 * HALF) {
        bool two_rows = op->n_rows - row > HALF;
        if (two_rows && !op->narrow)
            multiply_block(&tiles, op, row, (struct extent){true, true, n_parts});
        else if (two_rows)
            multiply_block(&tiles, op, row, (struct extent){true, false, n_parts});
        else if (!op->narrow)
            multiply_block(&tiles, op, row, (struct extent){false, true, n_parts});
        else
            multiply_block(&tiles, op, row, (struct extent){false, false, n_parts});
    }
    tiles_close(&tiles);
}

static void multiply_one(const struct kern_fma_tile *op)
{
    multiply(op, 1);
}

static void multiply_triple(const struct kern_fma_tile *op)
{
    multiply(op, 2);
}

#endif

/**
 * The kernel int16_tile for AVX2 and AVX-512, with or without VNNI. The file that includes this
 * has the words of vec.h, and before it
 *     TILE_ROWS   how many rows of two vectors of sums fit the registers, with as many results
 *     dot16()     sums of 32 bits, plus what pairs of 16 bits give
 */
#ifndef KERNELS_CPU_SIMD_INT16_TILE_H
#define KERNELS_CPU_SIMD_INT16_TILE_H

#include <string.h>

#include "base/arithmetic.h"
#include "kernels/cpu/kernels.h"

#define TILE_INLINE static inline __attribute__((always_inline))

enum {
    TILE_VECTORS = 2,
    TILE_LANES = TILE_VECTORS * VEC_FLOATS,
    TILE_HALF = 16,
    LINE_BYTES = 64,
    CHUNK_LINES = sizeof(struct kern_int16_chunk) / LINE_BYTES
};

/** What is constant after inlining. */
struct int16_extent {
    size_t n_rows; /* at most TILE_ROWS */
    size_t run;
    bool has_min;
};

/** Where the rows of a call are. */
struct int16_rows {
    const int16_t *w;
    const float *scales, *mins;
    size_t stride; /* floats to the next row, of all three */
    float *acc;
    size_t lane; /* the first of TILE_LANES */
};

/** The weights of two columns in all lanes. */
TILE_INLINE vec_i broadcast_pair(const int16_t *w)
{
    int32_t pair;
    memcpy(&pair, w, sizeof pair);
    return V(set1_epi32)(pair);
}

/** Vector v of the numbers at `lane` of 16 tokens' pairs. */
TILE_INLINE vec_i load_pairs(const struct kern_int16_chunk *x, size_t pair, size_t lane, size_t v)
{
    size_t at = lane + v * VEC_FLOATS;
    return load_i(x->x[at / TILE_HALF][pair][at % TILE_HALF]);
}

/** The integer sums of one run: pairs first_pair to first_pair + run / 2 - 1 of a chunk. */
TILE_INLINE void add_run(vec_i sums[TILE_ROWS][TILE_VECTORS], const struct int16_rows *rows,
                         struct int16_extent e, const struct kern_int16_chunk *x, size_t first_pair)
{
    for (size_t r = 0; r < e.n_rows; r++)
        for (size_t v = 0; v < TILE_VECTORS; v++)
            sums[r][v] = V(set1_epi32)(0);
#pragma GCC unroll 16
    for (size_t i = 0; i < e.run / 2; i++) {
        vec_i x0 = load_pairs(x, first_pair + i, rows->lane, 0);
        vec_i x1 = load_pairs(x, first_pair + i, rows->lane, 1);
        for (size_t r = 0; r < e.n_rows; r++) {
            vec_i w = broadcast_pair(rows->w + 2 * (r * rows->stride + i));
            sums[r][0] = dot16(sums[r][0], w, x0);
            sums[r][1] = dot16(sums[r][1], w, x1);
        }
    }
}

/** Run `i` of a chunk, of all rows: the sums, scaled, onto the parts. */
TILE_INLINE void add_scaled_run(vec_f parts[TILE_ROWS][TILE_VECTORS], const struct int16_rows *rows,
                                struct int16_extent e, const struct kern_int16_chunk *x, size_t i)
{
    vec_i sums[TILE_ROWS][TILE_VECTORS];
    add_run(sums, rows, e, x, i * e.run / 2);
    const float *x_sums = x->sum[e.run == KERN_INT16_COLUMNS ? 2 : i] + rows->lane;
    for (size_t r = 0; r < e.n_rows; r++) {
        vec_f scale = V(set1_ps)(rows->scales[r * rows->stride]);
        for (size_t v = 0; v < TILE_VECTORS; v++)
            parts[r][v] = V(fmadd_ps)(V(cvtepi32_ps)(sums[r][v]), scale, parts[r][v]);
    }
    for (size_t v = 0; e.has_min && v < TILE_VECTORS; v++) {
        vec_f x_sum = V(load_ps)(x_sums + v * VEC_FLOATS);
        for (size_t r = 0; r < e.n_rows; r++)
            parts[r][v] = V(fmadd_ps)(x_sum, V(set1_ps)(rows->mins[r * rows->stride]), parts[r][v]);
    }
}

/** The parts of a block, scaled, onto the results. */
TILE_INLINE void add_block(vec_f parts[TILE_ROWS][TILE_VECTORS], const struct int16_rows *rows,
                           size_t n_rows, const float *x_scale, bool first)
{
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t v = 0; v < TILE_VECTORS; v++) {
            float *acc = rows->acc + r * KERN_PANEL + v * VEC_FLOATS;
            vec_f before = first ? V(setzero_ps)() : V(load_ps)(acc);
            vec_f scale = V(load_ps)(x_scale + rows->lane + v * VEC_FLOATS);
            V(store_ps)(acc, V(fmadd_ps)(parts[r][v], scale, before));
            parts[r][v] = V(setzero_ps)();
        }
    }
}

/** Have a line of each of the next rows brought to L1: the processor's own prefetching does not
 * see that they follow. */
TILE_INLINE void fetch_rows(const float *at, size_t stride, size_t n_rows)
{
    for (size_t r = n_rows; r < 2 * n_rows; r++)
        _mm_prefetch((const char *)(at + r * stride), _MM_HINT_T0);
}

TILE_INLINE void multiply(const struct kern_fma_tile *op, struct int16_rows rows,
                          struct int16_extent e)
{
    const struct kern_int16_chunk *x = (const void *)op->x;
    vec_f parts[TILE_ROWS][TILE_VECTORS];
    for (size_t r = 0; r < e.n_rows; r++)
        for (size_t v = 0; v < TILE_VECTORS; v++)
            parts[r][v] = V(setzero_ps)();
    fetch_rows(rows.scales, rows.stride, e.n_rows);
    fetch_rows(rows.mins, rows.stride, e.n_rows);
    fetch_rows(rows.acc, KERN_PANEL, e.n_rows);
    fetch_rows(rows.acc + VEC_FLOATS, KERN_PANEL, e.n_rows);
    for (size_t k = 0; k < op->n_k; k += KERN_INT16_COLUMNS, x++) {
        fetch_rows((const void *)rows.w, rows.stride, e.n_rows);
        for (size_t i = 0; i < KERN_INT16_COLUMNS / e.run; i++) {
            add_scaled_run(parts, &rows, e, x, i);
            rows.w += e.run;
            rows.scales++;
            rows.mins++;
        }
        size_t end = k + KERN_INT16_COLUMNS;
        if (end % KERN_INT16_BLOCK == 0 || end == op->n_k)
            add_block(parts, &rows, e.n_rows, x->scale, k < KERN_INT16_BLOCK && !op->resume);
    }
}

/** multiply() with a number of rows that the compiler knows. */
#define TILE_CASE(n)                                                                               \
    case n:                                                                                        \
        if ((n) <= TILE_ROWS) {                                                                    \
            e.n_rows = n;                                                                          \
            multiply(op, rows, e);                                                                 \
        }                                                                                          \
        break

TILE_INLINE void multiply_rows(const struct kern_fma_tile *op, struct int16_rows rows,
                               struct int16_extent e)
{
    switch (e.n_rows) {
        TILE_CASE(1);
        TILE_CASE(2);
        TILE_CASE(3);
        TILE_CASE(4);
        TILE_CASE(5);
        TILE_CASE(6);
    }
}

/** All rows, in groups of nearly the same size. */
TILE_INLINE void multiply_all(const struct kern_fma_tile *op, struct int16_extent e)
{
    size_t n_groups = base_div_up(op->n_rows, TILE_ROWS);
    size_t n_lines = op->next_x ? op->n_k / KERN_INT16_COLUMNS * CHUNK_LINES : 0;
    for (size_t lane = 0; lane < KERN_PANEL; lane += TILE_LANES) {
        for (size_t i = 0, row = 0; i < n_groups; i++) {
            size_t end = op->n_rows * (i + 1) / n_groups;
            for (size_t l = n_lines * i / n_groups; l < n_lines * (i + 1) / n_groups; l++)
                _mm_prefetch((const char *)op->next_x + l * LINE_BYTES, _MM_HINT_T1);
            const float *w = op->w + row * op->w_row;
            struct int16_rows rows = {.w = (const void *)w,
                                      .scales = w + op->n_k / 2,
                                      .mins = w + op->n_k / 2 + op->n_k / e.run,
                                      .stride = op->w_row,
                                      .acc = op->acc + row * KERN_PANEL + lane,
                                      .lane = lane};
            e.n_rows = end - row;
            multiply_rows(op, rows, e);
            row = end;
        }
    }
}

static inline void int16_tile(const struct kern_fma_tile *op)
{
    const struct kern_integers *format = op->format;
    if (format->run == KERN_INT16_COLUMNS && format->has_min)
        multiply_all(op, (struct int16_extent){.run = KERN_INT16_COLUMNS, .has_min = true});
    else if (format->run == KERN_INT16_COLUMNS)
        multiply_all(op, (struct int16_extent){.run = KERN_INT16_COLUMNS});
    else if (format->has_min)
        multiply_all(op, (struct int16_extent){.run = KERN_INT16_COLUMNS / 2, .has_min = true});
    else
        multiply_all(op, (struct int16_extent){.run = KERN_INT16_COLUMNS / 2});
}

#endif

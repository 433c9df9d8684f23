/* The kernels int16_tile and int8_tile: four pairs of rows times eight tokens. A body: a set's file
 * defines TILE_BYTES, 1 or 0, and TILE_FUNCTION, then includes it. integer_pack.c lays the
 * operands. */
#include "base/arithmetic.h"
#include "kernels/cpu/neon/integer_words.h"

#if TILE_BYTES
typedef struct kern_int8_chunk tile_chunk;
enum { TILE_BLOCK = KERN_INT8_BLOCK };
#else
typedef struct kern_int16_chunk tile_chunk;
enum { TILE_BLOCK = KERN_INT16_BLOCK };
#endif

enum {
    TILE_COLUMNS = KERN_ROUNDED_COLUMNS,
    TILE_HALF = TILE_COLUMNS / 2,
    TILE_PLANE = TILE_COLUMNS * KERN_ROUNDED_TOKENS,
    TILE_PAIRS = 4,
    TILE_ROWS = 2 * TILE_PAIRS,
    TILE_FOURS = 2, /* of tokens */
    TILE_LANES = 4 * TILE_FOURS
};

/** What is constant after inlining. */
struct tile_extent {
    size_t n_pairs;
    size_t run, min_run; /* as in struct kern_integers */
    bool wide;           /* weights have factors */
};

/** Where the rows of a call are; the second of the last pair may be the first once more. */
struct tile_rows {
    const float *w[TILE_ROWS];
    float *acc;
    size_t n_rows, n_k, lane;
};

typedef int32x4_t tile_sums[TILE_PAIRS][TILE_FOURS][2];

/** Columns k to k + run - 1: the weights times a plane of x, onto the sums. */
WORD_INLINE void add_plane(tile_sums sums, const struct tile_rows *rows, struct tile_extent e,
                           const tile_chunk *x, size_t k, size_t x_plane)
{
    for (size_t i = k; i < k + e.run; i += TILE_HALF) {
        int8x16_t w[TILE_PAIRS][2];
        for (size_t p = 0; p < e.n_pairs; p++)
            load_rows(w[p], (const int8_t *)rows->w[2 * p] + i,
                      (const int8_t *)rows->w[2 * p + 1] + i);
        const int8_t *half = (const int8_t *)(x + i / TILE_COLUMNS) + x_plane * TILE_PLANE +
                             i / TILE_HALF % 2 * (TILE_PLANE / 2) + rows->lane * TILE_HALF;
        for (size_t f = 0; f < TILE_FOURS; f++) {
            int8x16_t cells[4];
            for (size_t j = 0; j < 4; j++)
                cells[j] = vld1q_s8(half + 64 * f + 16 * j);
            for (size_t p = 0; p < e.n_pairs; p++)
                add_products(sums[p][f], w[p], cells);
        }
    }
}

WORD_INLINE void times_256(tile_sums sums, struct tile_extent e)
{
    for (size_t i = 0; i < e.n_pairs * TILE_FOURS * 2; i++) {
        int32x4_t *sum = &sums[i / 4][i / 2 % 2][i % 2];
        *sum = vshlq_n_s32(*sum, 8);
    }
}

WORD_INLINE void clear(tile_sums sums, struct tile_extent e)
{
    for (size_t i = 0; i < e.n_pairs * TILE_FOURS * 2; i++)
        sums[i / 4][i / 2 % 2][i % 2] = vdupq_n_s32(0);
}

/** The sums of the run at column k, modulo 2^32, but for what a row adds to them. */
WORD_INLINE void sum_bytes(tile_sums sums, const struct tile_rows *rows, struct tile_extent e,
                           const tile_chunk *x, size_t k)
{
    clear(sums, e);
    add_plane(sums, rows, e, x, k, 0);
    if (!TILE_BYTES) {
        times_256(sums, e);
        add_plane(sums, rows, e, x, k, 1);
    }
}

/** The factors of a pair of rows at column k. */
WORD_INLINE void add_pair(int32x4_t totals[TILE_FOURS][2], int32x4_t sums[TILE_FOURS][2],
                          const struct tile_rows *rows, size_t pair, size_t k)
{
    const int32_t *of[2];
    for (size_t r = 0; r < 2; r++)
        of[r] = (const void *)((const int8_t *)rows->w[2 * pair + r] + rows->n_k);
    for (size_t f = 0; f < TILE_FOURS; f++)
        add_times(totals[f], sums[f], of[0][k / TILE_HALF], of[1][k / TILE_HALF]);
}

/** sum_bytes(), of weights with factors or without. */
WORD_INLINE void sum_run(tile_sums totals, const struct tile_rows *rows, struct tile_extent e,
                         const tile_chunk *x, size_t k)
{
    if (!e.wide) {
        sum_bytes(totals, rows, e, x, k);
        return;
    }
    clear(totals, e);
    struct tile_extent part = e;
    part.run = word_factor_run(e.min_run);
    for (size_t i = k; i < k + e.run; i += part.run) {
        tile_sums sums;
        sum_bytes(sums, rows, part, x, i);
        for (size_t p = 0; p < e.n_pairs; p++)
            add_pair(totals[p], sums[p], rows, p, i);
    }
}

typedef float32x4_t tile_parts[TILE_ROWS][TILE_FOURS];

/** The run at column k, scaled, and its minima onto the parts. */
WORD_INLINE void add_run(tile_parts parts, const struct tile_rows *rows, struct tile_extent e,
                         const tile_chunk *x, size_t k)
{
    tile_sums sums;
    sum_run(sums, rows, e, x, k);
    size_t n_integers = rows->n_k / (TILE_BYTES ? 4 : 2), n_runs = rows->n_k / e.run;
    for (size_t i = 0; i < e.n_pairs * TILE_FOURS; i++)
        part_rows(sums[i / TILE_FOURS][i % TILE_FOURS]);
    for (size_t r = 0; r < 2 * e.n_pairs; r++) {
        const float *factors = rows->w[r] + n_integers;
        int32_t begin = TILE_BYTES ? 0 : ((const int32_t *)(const void *)factors)[k / e.run];
        const float *scale = factors + n_runs + k / e.run;
        for (size_t f = 0; f < TILE_FOURS; f++) {
            int32x4_t sum = vaddq_s32(sums[r / 2][f][r % 2], vdupq_n_s32(begin));
            parts[r][f] = vfmaq_n_f32(parts[r][f], vcvtq_f32_s32(sum), *scale);
        }
        const float *mins = factors + 2 * n_runs;
        for (size_t i = k; e.min_run > 0 && i < k + e.run; i += e.min_run) {
            size_t which = e.min_run == TILE_COLUMNS ? 2 : i / e.min_run % 2;
            const float *x_sums = x[i / TILE_COLUMNS].of.sum[which] + rows->lane;
            for (size_t f = 0; f < TILE_FOURS; f++)
                parts[r][f] =
                    vfmaq_n_f32(parts[r][f], vld1q_f32(x_sums + 4 * f), mins[i / e.min_run]);
        }
    }
}

WORD_INLINE void multiply(const struct tile_rows *rows, struct tile_extent e, const tile_chunk *x,
                          bool resume)
{
    for (size_t k = 0; k < rows->n_k; k += TILE_BLOCK) {
        tile_parts parts;
        for (size_t i = 0; i < 2 * e.n_pairs * TILE_FOURS; i++)
            parts[i / TILE_FOURS][i % TILE_FOURS] = vdupq_n_f32(0.0f);
        for (size_t i = k; i < k + TILE_BLOCK && i < rows->n_k; i += e.run)
            add_run(parts, rows, e, x, i);
        const float *scale = x[k / TILE_COLUMNS].of.scale + rows->lane;
        for (size_t r = 0; r < 2 * e.n_pairs && r < rows->n_rows; r++) {
            float *acc = rows->acc + r * KERN_PANEL + rows->lane;
            for (size_t f = 0; f < TILE_FOURS; f++) {
                float32x4_t before = resume || k > 0 ? vld1q_f32(acc + 4 * f) : vdupq_n_f32(0.0f);
                vst1q_f32(acc + 4 * f, vfmaq_f32(before, parts[r][f], vld1q_f32(scale + 4 * f)));
            }
        }
    }
}

#define TILE_CASE(n)                                                                               \
    case n:                                                                                        \
        e.n_pairs = n;                                                                             \
        multiply(&rows, e, (const void *)op->x, op->resume);                                       \
        break

/** All rows, in groups of nearly the same size. */
WORD_INLINE void multiply_all(const struct kern_fma_tile *op, struct tile_extent e)
{
    /* Totals take as many registers as sums. */
    size_t n_groups = base_div_up(op->n_rows, e.wide ? TILE_ROWS / 2 : TILE_ROWS);
    for (size_t i = 0, row = 0; i < n_groups; i++) {
        size_t end = op->n_rows * (i + 1) / n_groups;
        struct tile_rows rows = {
            .acc = op->acc + row * KERN_PANEL, .n_rows = end - row, .n_k = op->n_k};
        for (size_t r = 0; r < TILE_ROWS; r++)
            rows.w[r] = op->w + base_min(row + r, end - 1) * op->w_row;
        for (; rows.lane < KERN_PANEL; rows.lane += TILE_LANES) {
            switch (base_div_up(rows.n_rows, 2)) {
                TILE_CASE(1);
                TILE_CASE(2);
                TILE_CASE(3);
                TILE_CASE(TILE_PAIRS);
            }
        }
        row = end;
    }
}

TILE_FUNCTION(const struct kern_fma_tile *op)
{
    const struct kern_integers *format = op->format;
    const bool wide = word_wide(format);
#define RUNS(columns, min_columns, high)                                                           \
    if (format->run == (columns) && format->min_run == (min_columns) && wide == (high))            \
    multiply_all(op, (struct tile_extent){0, columns, min_columns, high})
    RUNS(16, 0, false);
    RUNS(16, 16, false);
    RUNS(32, 0, false);
    RUNS(32, 32, false);
#if !TILE_BYTES
    RUNS(64, 0, false);
    RUNS(64, 16, false);
    RUNS(64, 32, false);
    RUNS(64, 0, true);
    RUNS(64, 16, true);
    RUNS(64, 32, true);
#endif
#undef RUNS
}

/* The kernels int16_tile and int8_tile: groups of three pairs of rows times eight tokens
 * (integer_words.h). A body: a set's file defines TILE_BYTES, 1 or 0, and TILE_FUNCTION, then
 * includes it. integer_pack.c lays the operands. */
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
    TILE_PLANES = TILE_BYTES ? 1 : 2,
    TILE_MOST = 512 /* columns of a group */
};

/** What is constant after inlining. */
struct word_extent {
    size_t run, min_run; /* as in struct kern_integers */
    size_t factor_run;   /* word_factor_run() */
    bool planes;         /* word_in_planes() */
    bool exactly;        /* kern_fma_tile's, which is not constant */
};

typedef float tile_numbers[WORD_NUMBERS];

/** The rows of a group, laid for all tokens of a call: the last row as often as there are too few.
 * Numbers of rows: scales, minima, and factors of integers, which are int32_t. */
struct tile_group {
    _Alignas(64) int8_t w[TILE_MOST / TILE_HALF][WORD_W];
    _Alignas(16) tile_numbers scales[TILE_MOST / TILE_HALF], mins[TILE_MOST / TILE_HALF],
        factors[TILE_MOST / TILE_HALF];
    size_t n_k, n_rows;
    float *acc;
};

/** Where a block of columns of a group is, and eight tokens of it. */
struct tile_block {
    const int8_t *w;
    const tile_numbers *scales, *mins, *factors;
    const tile_chunk *x;
    size_t lane, plane; /* bytes from the low ones of w to the high ones */
};

/** n columns from k on, onto the sums. */
WORD_INLINE void add_plane(int32x4_t *sums, const struct tile_block *b, size_t plane, size_t k,
                           size_t n)
{
    const int8_t *w = b->w + k / TILE_HALF * WORD_W;
    for (size_t at = k; at < k + n; at += TILE_COLUMNS) {
        const int8_t *x = (const int8_t *)(b->x + at / TILE_COLUMNS) +
                          b->lane / WORD_LANES * WORD_CHUNK * TILE_PLANES + plane * WORD_CHUNK +
                          at / TILE_HALF % 2 * WORD_X;
        add_products(sums, &w, &x);
        if (n > TILE_HALF)
            add_products(sums, &w, &x);
    }
}

/** The sums of n columns from k on. */
WORD_INLINE void sum_bytes(int32x4_t *sums, const struct tile_block *b, size_t k, size_t n)
{
    for (size_t i = 0; i < WORD_VECTORS; i++)
        sums[i] = (int32x4_t)word_zero();
    add_plane(sums, b, 0, k, n);
    if (TILE_BYTES)
        return;
    for (size_t i = 0; i < WORD_VECTORS; i++)
        sums[i] = vshlq_n_s32(sums[i], 8);
    add_plane(sums, b, 1, k, n);
}

/** The sums of the columns that share a factor, from k on, times it. */
WORD_INLINE void add_times(int32x4_t *totals, const struct tile_block *b, struct word_extent e,
                           size_t k)
{
    int32x4_t sums[WORD_VECTORS];
    sum_bytes(sums, b, k, e.factor_run);
    const float *factors = b->factors[k / e.factor_run];
    for (size_t i = 0; i < WORD_VECTORS; i++)
        totals[i] = vmlaq_s32(totals[i], sums[i], (int32x4_t)of_rows(factors, i));
}

/** The sums of the high bytes of the run at column k, times 256, onto those of its low ones. */
WORD_INLINE void add_high(int32x4_t *sums, struct tile_block b, struct word_extent e, size_t k)
{
    int32x4_t high[WORD_VECTORS];
    b.w += b.plane;
    sum_bytes(high, &b, k, e.run);
    for (size_t i = 0; i < WORD_VECTORS; i++)
        sums[i] = vaddq_s32(sums[i], vshlq_n_s32(high[i], 8));
}

/** The sums of the run at column k. */
WORD_INLINE void sum_run(int32x4_t *sums, const struct tile_block *b, struct word_extent e,
                         size_t k)
{
    if (e.factor_run == 0) {
        sum_bytes(sums, b, k, e.run);
        if (e.planes)
            add_high(sums, *b, e, k);
        return;
    }
    for (size_t i = 0; i < WORD_VECTORS; i++)
        sums[i] = (int32x4_t)word_zero();
    add_times(sums, b, e, k);
    add_times(sums, b, e, k + e.factor_run);
    if (2 * e.factor_run < e.run) {
        add_times(sums, b, e, k + 2 * e.factor_run);
        add_times(sums, b, e, k + 3 * e.factor_run);
    }
}

/** The sums of the run at column k, which 32 bits may not hold: those of the columns that share a
 * factor, times it, are added up in double. */
static __attribute__((noinline, unused)) void
sum_exactly(float32x4_t *out, const struct tile_block *b, struct word_extent e, size_t k)
{
    float64x2_t totals[WORD_VECTORS][2] = {{{0}}};
    for (size_t at = k; at < k + e.run; at += e.factor_run) {
        int32x4_t sums[WORD_VECTORS];
        sum_bytes(sums, b, at, e.factor_run);
        for (size_t i = 0; i < WORD_VECTORS; i++) {
            int32x4_t factors = (int32x4_t)of_rows(b->factors[at / e.factor_run], i);
            int64x2_t low = vmull_s32(vget_low_s32(sums[i]), vget_low_s32(factors));
            int64x2_t high = vmull_high_s32(sums[i], factors);
            totals[i][0] = vaddq_f64(totals[i][0], vcvtq_f64_s64(low));
            totals[i][1] = vaddq_f64(totals[i][1], vcvtq_f64_s64(high));
        }
    }
    for (size_t i = 0; i < WORD_VECTORS; i++)
        out[i] = vcombine_f32(vcvt_f32_f64(totals[i][0]), vcvt_f32_f64(totals[i][1]));
}

/** The run at column k, scaled, onto the parts, which begin with column 0. */
WORD_INLINE void add_scaled(float32x4_t *parts, const struct tile_block *b, struct word_extent e,
                            size_t k)
{
    const float *scales = b->scales[k / e.run];
    if (e.factor_run > 0 && e.exactly) {
        float32x4_t exact[WORD_VECTORS];
        sum_exactly(exact, b, e, k);
        for (size_t i = 0; i < WORD_VECTORS; i++)
            parts[i] = vfmaq_f32(k == 0 ? word_zero() : parts[i], exact[i], of_rows(scales, i));
        return;
    }
    int32x4_t sums[WORD_VECTORS];
    sum_run(sums, b, e, k);
    for (size_t i = 0; i < WORD_VECTORS; i++)
        parts[i] =
            vfmaq_f32(k == 0 ? word_zero() : parts[i], vcvtq_f32_s32(sums[i]), of_rows(scales, i));
}

/** The run at column k, scaled, and its minima onto the parts. */
WORD_INLINE void add_run(float32x4_t *parts, const struct tile_block *b, struct word_extent e,
                         size_t k)
{
    add_scaled(parts, b, e, k);
    for (size_t at = k; e.min_run > 0 && at < k + e.run; at += e.min_run) {
        size_t which = e.min_run == TILE_COLUMNS ? 2 : at / e.min_run % 2;
        const float *x_sums = b->x[at / TILE_COLUMNS].of.sum[which] + b->lane;
        const float *mins = b->mins[at / e.min_run];
        for (size_t i = 0; i < WORD_VECTORS; i++)
            parts[i] = vfmaq_f32(parts[i], of_tokens(x_sums, i), of_rows(mins, i));
    }
}

/** A block of n columns onto acc. */
WORD_INLINE void add_block(float32x4_t *acc, const struct tile_block *b, struct word_extent e,
                           size_t n)
{
    float32x4_t parts[WORD_VECTORS], before[WORD_VECTORS], scales[4];
    add_run(parts, b, e, 0);
    if (e.run < n)
        add_run(parts, b, e, e.run);
    if (2 * e.run < n) {
        add_run(parts, b, e, 2 * e.run);
        add_run(parts, b, e, 3 * e.run);
    }
    for (size_t i = 0; i < 4; i++)
        scales[i] = of_tokens(b->x->of.scale + b->lane, i);
    if (!TILE_BYTES) /* sums and parts take the registers: acc is in memory */
        __asm__ volatile("" : "+r"(acc));
    for (size_t i = 0; i < WORD_VECTORS; i++)
        before[i] = acc[i];
    for (size_t i = 0; i < WORD_VECTORS; i++)
        before[i] = vfmaq_f32(before[i], parts[i], scales[i % 4]);
    for (size_t i = 0; i < WORD_VECTORS; i++)
        acc[i] = before[i];
}

/** All columns of a group onto acc. */
WORD_INLINE void add_blocks(float32x4_t *acc, const struct tile_group *g, struct word_extent e,
                            const tile_chunk *x, size_t lane)
{
    size_t plane = g->n_k / TILE_HALF * WORD_W;
    struct tile_block b = {g->w[0], g->scales, g->mins, g->factors, x, lane, plane};
    size_t k = 0;
    for (; k + TILE_BLOCK <= g->n_k; k += TILE_BLOCK) {
        add_block(acc, &b, e, TILE_BLOCK);
        b.w += TILE_BLOCK / TILE_HALF * WORD_W;
        b.scales += TILE_BLOCK / e.run;
        b.mins += e.min_run > 0 ? TILE_BLOCK / e.min_run : 0;
        b.factors += e.factor_run > 0 ? TILE_BLOCK / e.factor_run : 0;
        b.x += TILE_BLOCK / TILE_COLUMNS;
    }
    if (e.run < TILE_BLOCK && k < g->n_k)
        add_block(acc, &b, e, TILE_COLUMNS);
}

/** Eight tokens. */
WORD_INLINE void multiply(const struct tile_group *g, struct word_extent e, const tile_chunk *x,
                          size_t lane, bool resume)
{
    float *out[WORD_ROWS];
    for (size_t r = 0; r < WORD_ROWS; r++)
        out[r] = g->acc + base_min(r, g->n_rows - 1) * KERN_PANEL + lane;
    float32x4_t here[WORD_VECTORS], *acc = here, v[4];
    if (!TILE_BYTES) /* sums and parts take the registers: this is in memory */
        __asm__("" : "+r"(acc) : : "memory");
    for (size_t i = 0; i < WORD_VECTORS; i += 4) {
        for (size_t j = 0; j < 4; j++)
            v[j] = resume ? vld1q_f32(out[(i + j) / 2] + j % 2 * 4) : vdupq_n_f32(0.0f);
        part_rows(v);
        for (size_t j = 0; j < 4; j++)
            acc[i + j] = v[j];
    }
    add_blocks(acc, g, e, x, lane);
    for (size_t i = 0; i < WORD_VECTORS; i += 4) {
        for (size_t j = 0; j < 4; j++)
            v[j] = acc[i + j];
        part_rows(v);
        for (size_t j = 0; j < 4; j++)
            vst1q_f32(out[(i + j) / 2] + j % 2 * 4, v[j]);
    }
}

/** Lay a number of each row for each of n runs: they are `after` those of another kind. */
WORD_INLINE void lay_numbers(tile_numbers *out, const float *const *rows, size_t after, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t r = 0; r < WORD_ROWS; r++)
            for (size_t j = 0; j < WORD_TIMES; j++)
                out[i][r * WORD_TIMES + j] = rows[r][after + i];
}

/** Lay n bytes of each row, those from `from` on. */
WORD_INLINE void lay_bytes(int8_t *out, const float *const *rows, size_t from, size_t n)
{
    for (size_t at = from; at < from + n; at += TILE_HALF, out += WORD_W)
        for (size_t p = 0; p < WORD_PAIRS; p++)
            lay_rows(out, p, (const int8_t *)rows[2 * p] + at,
                     (const int8_t *)rows[2 * p + 1] + at);
}

/** Columns from k on of all rows of a group. */
WORD_INLINE void lay_group(struct tile_group *g, const struct kern_fma_tile *op, size_t row,
                           struct word_extent e, size_t k)
{
    const float *rows[WORD_ROWS];
    const size_t n_k = g->n_k, n_runs = op->n_k / e.run;
    size_t scales = op->n_k / (TILE_BYTES ? 4 : 2) + n_runs;
    for (size_t r = 0; r < WORD_ROWS; r++)
        rows[r] = op->w + (row + base_min(r, g->n_rows - 1)) * op->w_row;
    lay_numbers(g->scales, rows, scales + k / e.run, n_k / e.run);
    if (e.min_run > 0)
        lay_numbers(g->mins, rows, scales + n_runs + k / e.min_run, n_k / e.min_run);
    if (e.factor_run > 0)
        lay_numbers(g->factors, rows, op->n_k / 4 + k / e.factor_run, n_k / e.factor_run);
    lay_bytes(g->w[0], rows, k, n_k);
    if (e.planes)
        lay_bytes(g->w[n_k / TILE_HALF], rows, op->n_k + k, n_k);
}

/** All rows and tokens, at most TILE_MOST columns of a group at a time. */
WORD_INLINE void multiply_all(const struct kern_fma_tile *op, struct word_extent e)
{
    struct tile_group g;
    const size_t most = e.planes ? TILE_MOST / 2 : TILE_MOST;
    for (size_t row = 0; row < op->n_rows; row += WORD_ROWS) {
        g.n_rows = base_min(op->n_rows - row, WORD_ROWS);
        g.acc = op->acc + row * KERN_PANEL;
        for (size_t k = 0; k < op->n_k; k += most) {
            g.n_k = base_min(op->n_k - k, most);
            lay_group(&g, op, row, e, k);
            const tile_chunk *x = (const tile_chunk *)(const void *)op->x + k / TILE_COLUMNS;
            for (size_t lane = 0; lane < KERN_PANEL; lane += WORD_LANES)
                multiply(&g, e, x, lane, op->resume || k > 0);
        }
    }
}

TILE_FUNCTION(const struct kern_fma_tile *op)
{
    const struct kern_integers *format = op->format;
    size_t factor_run = word_factor_run(format);
    bool planes = word_in_planes(format);
#define RUNS(columns, min_columns, factor_columns)                                                 \
    if (!planes && format->run == (columns) && format->min_run == (min_columns) &&                 \
        factor_run == (factor_columns))                                                            \
    multiply_all(op, (struct word_extent){columns, min_columns, factor_columns, false, op->exactly})
    RUNS(16, 0, 0);
    RUNS(16, 16, 0);
    RUNS(32, 0, 0);
    RUNS(32, 32, 0);
#if !TILE_BYTES
    RUNS(64, 0, 0);
    RUNS(64, 16, 0);
    RUNS(64, 0, 16);
    RUNS(64, 0, 32);
    RUNS(64, 32, 32);
    if (planes && format->run == 32)
        multiply_all(op, (struct word_extent){32, 0, 0, true, false});
    if (planes && format->run == 64)
        multiply_all(op, (struct word_extent){64, 0, 0, true, false});
#endif
#undef RUNS
}

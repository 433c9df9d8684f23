/**
 * The kernels int16_tile, int8_tile and words_tile for AVX2 and AVX-512, with or without VNNI. The
 * file that includes this has the words of vec.h, and before it
 *
 * - TILE_BYTES: 1 is int8_tile, 0 int16_tile
 * - TILE_WORDS: if defined, with TILE_BYTES 0, words_tile
 * - TILE_PAIRS: if defined, two columns share a multiplication (rounded.h)
 * - TILE_ROWS: how many rows of two vectors of sums fit the registers, with as many results
 * - TILE_DOT: VNNI's instruction, sums of 32 bits plus what cells of tokens and a cell of weights
 *   give; without VNNI int8_tile has TILE_SHORT_SUMS instead
 * - TILE_FUNCTION: the head of the function that is defined here
 */
#ifndef KERNELS_CPU_SIMD_INTEGER_TILE_H
#define KERNELS_CPU_SIMD_INTEGER_TILE_H

#include <string.h>

#include "base/arithmetic.h"
#include "kernels/cpu/kernels.h"

/** An empty instruction keeps the compiler from adding up many products before it adds the sums,
 * for which there are no registers. */
#define KEEP(x) __asm__("" : "+v"(x))

#define TILE_INLINE static inline __attribute__((always_inline))

#ifndef TILE_SHORT_SUMS
static inline vec_i dot(vec_i sums, vec_i x, vec_i w)
{
#ifdef TILE_DOT
    return TILE_DOT(sums, x, w);
#else
    sums = V(add_epi32)(sums, V(madd_epi16)(x, w));
    KEEP(sums);
    return sums;
#endif
}
#endif

#if TILE_BYTES
typedef struct kern_int8_chunk tile_chunk;
typedef int8_t tile_integer;
enum { TILE_BLOCK = KERN_INT8_BLOCK };
#else
typedef struct kern_int16_chunk tile_chunk;
typedef int16_t tile_integer;
#ifdef TILE_WORDS
enum { TILE_BLOCK = KERN_INT8_BLOCK };
#else
enum { TILE_BLOCK = KERN_INT16_BLOCK };
#endif
#endif

enum {
    TILE_COLUMNS = KERN_ROUNDED_COLUMNS,
    TILE_CELL = 4 / sizeof(tile_integer),  /* columns of a cell */
    TILE_CELLS = TILE_COLUMNS / TILE_CELL, /* of a chunk */
    TILE_VECTORS = 2,
    TILE_LANES = TILE_VECTORS * VEC_FLOATS,
    TILE_HALF = 16,
    LINE_BYTES = 64,
    LINE_COLUMNS = LINE_BYTES / sizeof(tile_integer),
    CHUNK_LINES = sizeof(tile_chunk) / LINE_BYTES
};

/** What is constant after inlining. */
struct tile_extent {
    size_t n_rows;       /* at most TILE_ROWS */
    size_t run, min_run; /* as in struct kern_integers */
    int n_short;         /* for TILE_SHORT_SUMS (short_sums.h) */
};

/** Where the rows of a call are. */
struct tile_rows {
    const tile_integer *w;
    const int32_t *begins; /* where the sum of a run begins */
    const float *scales, *mins;
    size_t stride; /* floats to the next row, of all four */
    float *acc;
    size_t lane; /* the first of TILE_LANES */
};

/** Where the integers of each row are; the compiler is not to see that these are multiples of a
 * stride: it would keep a number for each cell. */
struct tile_cells {
    const tile_integer *of_row[TILE_ROWS];
};

TILE_INLINE struct tile_cells cells_of(const struct tile_rows *rows, size_t n_rows)
{
    struct tile_cells cells;
    for (size_t r = 0; r < n_rows; r++) {
        cells.of_row[r] = rows->w + r * rows->stride * TILE_CELL;
        __asm__("" : "+r"(cells.of_row[r]));
    }
    return cells;
}

/** Cell i of row r in all lanes. */
TILE_INLINE vec_i broadcast_cell(const struct tile_cells *w, size_t r, size_t i)
{
    int32_t cell;
    memcpy(&cell, w->of_row[r] + i * TILE_CELL, sizeof cell);
    return V(set1_epi32)(cell);
}

/** Vector v of the cells at `lane` of 16 tokens; cell: of x or of the chunks after it. */
TILE_INLINE vec_i load_cells(const tile_chunk *x, size_t cell, size_t lane, size_t v)
{
    size_t at = lane + v * VEC_FLOATS;
    return load_i(x[cell / TILE_CELLS].x[at / TILE_HALF][cell % TILE_CELLS][at % TILE_HALF]);
}

/** Where the sums of row r begin. */
TILE_INLINE vec_i first_sum(const struct tile_rows *rows, size_t r)
{
    return V(set1_epi32)(TILE_BYTES ? rows->begins[r * rows->stride] : 0);
}

#if !defined TILE_SHORT_SUMS
/** Cell i, of all rows and both vectors, onto the sums of a run, whose cell i_w it is. */
TILE_INLINE void add_cell(vec_i sums[TILE_ROWS][TILE_VECTORS], const struct tile_cells *w,
                          size_t n_rows, size_t i_w, const tile_chunk *x, size_t i, size_t lane)
{
    vec_i x0 = load_cells(x, i, lane, 0), x1 = load_cells(x, i, lane, 1);
    for (size_t r = 0; r < n_rows; r++) {
        vec_i cell = broadcast_cell(w, r, i_w);
        sums[r][0] = dot(sums[r][0], x0, cell);
        sums[r][1] = dot(sums[r][1], x1, cell);
    }
}
#endif

/** The integer sums of one run: cells first_cell to first_cell + run / TILE_CELL - 1. */
#if defined TILE_PAIRS
/** Add cells i and i + 1. */
TILE_INLINE void add_pair(vec_i sums[TILE_ROWS][TILE_VECTORS], const struct tile_cells *w,
                          size_t n_rows, size_t i_w, const tile_chunk *x, size_t i, size_t lane)
{
    vec_i x0[TILE_VECTORS], x1[TILE_VECTORS];
    for (size_t v = 0; v < TILE_VECTORS; v++) {
        x0[v] = load_cells(x, i, lane, v);
        x1[v] = load_cells(x, i + 1, lane, v);
        KEEP(x0[v]); /* not to be loaded again by each addition */
        KEEP(x1[v]);
    }
    for (size_t r = 0; r < n_rows; r++) {
        vec_i w0 = broadcast_cell(w, r, i_w), w1 = broadcast_cell(w, r, i_w + 1);
        for (size_t v = 0; v < TILE_VECTORS; v++) {
            sums[r][v] = dot(sums[r][v], add_cells(x0[v], w1), add_cells(x1[v], w0));
            KEEP(sums[r][v]);
        }
    }
}

/** Where the sums of a vector of tokens begin, for 16 columns. */
TILE_INLINE vec_i first_sums(const tile_chunk *x, size_t cell, size_t lane)
{
    return load_i(x[cell / TILE_CELLS].begins[cell % TILE_CELLS > 0] + lane);
}

TILE_INLINE void add_run(vec_i sums[TILE_ROWS][TILE_VECTORS], const struct tile_rows *rows,
                         struct tile_extent e, const tile_chunk *x, size_t first_cell)
{
    for (size_t v = 0; v < TILE_VECTORS; v++) {
        vec_i begin = first_sums(x, first_cell, rows->lane + v * VEC_FLOATS);
        for (size_t i = TILE_CELLS / 2; i < e.run / TILE_CELL; i += TILE_CELLS / 2)
            begin = V(add_epi32)(begin, first_sums(x, first_cell + i, rows->lane + v * VEC_FLOATS));
        for (size_t r = 0; r < e.n_rows; r++)
            sums[r][v] = V(add_epi32)(begin, V(set1_epi32)(rows->begins[r * rows->stride]));
    }
    struct tile_cells w = cells_of(rows, e.n_rows);
    size_t end = first_cell + e.run / TILE_CELL;
#pragma GCC unroll 4
    for (size_t eight = first_cell / 8 * 8; eight < end; eight += 8) {
#pragma GCC unroll 3
        for (size_t i = 0; i < KERN_ROUNDED_PAIRED; i += 2) {
            size_t pair = eight + i, single = eight + KERN_ROUNDED_PAIRED + i / 2;
            if (pair >= first_cell && pair < end)
                add_pair(sums, &w, e.n_rows, pair - first_cell, x, pair, rows->lane);
            if (single >= first_cell && single < base_min(end, eight + 8))
                add_cell(sums, &w, e.n_rows, single - first_cell, x, single, rows->lane);
        }
    }
}
#elif !defined TILE_SHORT_SUMS
TILE_INLINE void add_run(vec_i sums[TILE_ROWS][TILE_VECTORS], const struct tile_rows *rows,
                         struct tile_extent e, const tile_chunk *x, size_t first_cell)
{
    for (size_t r = 0; r < e.n_rows; r++)
        for (size_t v = 0; v < TILE_VECTORS; v++)
            sums[r][v] = first_sum(rows, r);
    struct tile_cells w = cells_of(rows, e.n_rows);
#pragma GCC unroll 32
    for (size_t i = 0; i < e.run / TILE_CELL; i++)
        add_cell(sums, &w, e.n_rows, i, x, first_cell + i, rows->lane);
}
#else
#include "kernels/cpu/simd/short_sums.h"
#endif

/** The run that begins at column k of x, of all rows: the sums, scaled, onto the parts. */
TILE_INLINE void add_scaled_run(vec_f parts[TILE_ROWS][TILE_VECTORS], const struct tile_rows *rows,
                                struct tile_extent e, const tile_chunk *x, size_t k)
{
    vec_i sums[TILE_ROWS][TILE_VECTORS];
    add_run(sums, rows, e, x, k / TILE_CELL);
    for (size_t r = 0; r < e.n_rows; r++) {
        vec_f scale = V(set1_ps)(rows->scales[r * rows->stride]);
        for (size_t v = 0; v < TILE_VECTORS; v++)
            parts[r][v] = V(fmadd_ps)(V(cvtepi32_ps)(sums[r][v]), scale, parts[r][v]);
    }
    size_t n_mins = e.min_run > 0 ? e.run / e.min_run : 0;
    for (size_t i = 0; i < n_mins; i++, k += e.min_run) {
        size_t which = e.min_run == TILE_COLUMNS ? 2 : k / e.min_run % 2;
        const float *x_sums = x[k / TILE_COLUMNS].of.sum[which] + rows->lane;
        for (size_t v = 0; v < TILE_VECTORS; v++) {
            vec_f x_sum = V(load_ps)(x_sums + v * VEC_FLOATS);
            for (size_t r = 0; r < e.n_rows; r++) {
                vec_f min = V(set1_ps)(rows->mins[r * rows->stride + i]);
                parts[r][v] = V(fmadd_ps)(x_sum, min, parts[r][v]);
            }
        }
    }
}

/** The parts of a block, scaled, onto the results. */
TILE_INLINE void add_block(vec_f results[TILE_ROWS][TILE_VECTORS],
                           vec_f parts[TILE_ROWS][TILE_VECTORS], size_t n_rows,
                           const float *x_scale)
{
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t v = 0; v < TILE_VECTORS; v++) {
            vec_f scale = V(load_ps)(x_scale + v * VEC_FLOATS);
            results[r][v] = V(fmadd_ps)(parts[r][v], scale, results[r][v]);
            parts[r][v] = V(setzero_ps)();
        }
    }
}

TILE_INLINE void load_results(vec_f results[TILE_ROWS][TILE_VECTORS], const struct tile_rows *rows,
                              size_t n_rows, bool begin)
{
    for (size_t r = 0; r < n_rows; r++)
        for (size_t v = 0; v < TILE_VECTORS; v++)
            results[r][v] =
                begin ? V(setzero_ps)() : V(load_ps)(rows->acc + r * KERN_PANEL + v * VEC_FLOATS);
}

TILE_INLINE void store_results(vec_f results[TILE_ROWS][TILE_VECTORS], const struct tile_rows *rows,
                               size_t n_rows)
{
    for (size_t r = 0; r < n_rows; r++)
        for (size_t v = 0; v < TILE_VECTORS; v++)
            V(store_ps)(rows->acc + r * KERN_PANEL + v * VEC_FLOATS, results[r][v]);
}

/** Whether weights must be asked for: the processors that TILE_PAIRS is for see what follows. */
#ifdef TILE_PAIRS
enum { FETCHES = 0 };
#else
enum { FETCHES = 1 };
#endif

/** Have a line of each of the next rows brought to L1: the processor's own prefetching does not
 * see that they follow. */
TILE_INLINE void fetch_rows(const float *at, size_t stride, size_t n_rows)
{
    for (size_t r = n_rows; r < 2 * n_rows; r++)
        _mm_prefetch((const char *)(at + r * stride), _MM_HINT_T0);
}

/** Sums and parts fill the registers. Where a block is one run there are no parts for long, and
 * results stay in registers; else they are in memory, and taken up once per block. */
TILE_INLINE void multiply(const struct kern_fma_tile *op, struct tile_rows rows,
                          struct tile_extent e)
{
    const tile_chunk *x = (const void *)op->x;
    const bool stay = e.run == TILE_BLOCK;
    vec_f parts[TILE_ROWS][TILE_VECTORS], results[TILE_ROWS][TILE_VECTORS];
    for (size_t r = 0; r < e.n_rows; r++)
        for (size_t v = 0; v < TILE_VECTORS; v++)
            parts[r][v] = V(setzero_ps)();
    if (stay)
        load_results(results, &rows, e.n_rows, !op->resume);
    fetch_rows(rows.scales, rows.stride, e.n_rows);
    fetch_rows(rows.mins, rows.stride, e.n_rows);
    fetch_rows(rows.acc, KERN_PANEL, e.n_rows);
    fetch_rows(rows.acc + VEC_FLOATS, KERN_PANEL, e.n_rows);
    const size_t step = base_max(e.run, TILE_COLUMNS);
    for (size_t k = 0; k < op->n_k; k += step, x += step / TILE_COLUMNS) {
        for (size_t i = 0; i < step && FETCHES && (k + i) % LINE_COLUMNS == 0; i += LINE_COLUMNS)
            fetch_rows((const void *)(rows.w + i), rows.stride, e.n_rows);
#pragma GCC unroll 2
        for (size_t i = 0; i < step; i += e.run) {
            add_scaled_run(parts, &rows, e, x, i);
            rows.w += e.run;
            rows.begins++;
            rows.scales++;
            rows.mins += e.min_run > 0 ? e.run / e.min_run : 0;
        }
        size_t end = k + step;
        if (end % TILE_BLOCK != 0 && end != op->n_k)
            continue;
        if (!stay)
            load_results(results, &rows, e.n_rows, k < TILE_BLOCK && !op->resume);
        add_block(results, parts, e.n_rows, x->of.scale + rows.lane);
        if (!stay)
            store_results(results, &rows, e.n_rows);
    }
    if (stay)
        store_results(results, &rows, e.n_rows);
}

/** multiply() with a number of rows that the compiler knows. With a sanitizer it does not know it:
 * to compile each would take minutes. */
#define TILE_CASE(n)                                                                               \
    case n:                                                                                        \
        if ((n) <= TILE_ROWS) {                                                                    \
            e.n_rows = n;                                                                          \
            multiply(op, rows, e);                                                                 \
        }                                                                                          \
        break

TILE_INLINE void multiply_rows(const struct kern_fma_tile *op, struct tile_rows rows,
                               struct tile_extent e)
{
    if (ASSAY_SANITIZED) {
        multiply(op, rows, e);
        return;
    }
    switch (e.n_rows) {
        TILE_CASE(1);
        TILE_CASE(2);
        TILE_CASE(3);
        TILE_CASE(4);
        TILE_CASE(5);
        TILE_CASE(6);
    }
}

/** All rows times the tokens of TILE_LANES lanes, in groups of nearly the same size. */
TILE_INLINE void multiply_lanes(const struct kern_fma_tile *op, struct tile_rows rows,
                                struct tile_extent e)
{
    size_t n_groups = base_div_up(op->n_rows, TILE_ROWS);
    size_t n_lines = op->next_x ? op->n_k / TILE_COLUMNS * CHUNK_LINES : 0;
    struct tile_rows group = rows;
    for (size_t i = 0, row = 0; i < n_groups; i++) {
        size_t end = op->n_rows * (i + 1) / n_groups;
        for (size_t l = n_lines * i / n_groups; l < n_lines * (i + 1) / n_groups; l++)
            _mm_prefetch((const char *)op->next_x + l * LINE_BYTES, _MM_HINT_T1);
        group.w = rows.w + row * rows.stride * TILE_CELL;
        group.begins = rows.begins + row * rows.stride;
        group.scales = rows.scales + row * rows.stride;
        group.mins = rows.mins + row * rows.stride;
        group.acc = rows.acc + row * KERN_PANEL;
        e.n_rows = end - row;
        multiply_rows(op, group, e);
        row = end;
    }
}

#if !TILE_BYTES && !defined TILE_WORDS
/** Sums of sixteen columns onto those of a run, in double. */
TILE_INLINE void add_sixteen(vec_d totals[2], const struct tile_cells *w, const tile_chunk *x,
                             size_t cell, size_t lane)
{
    vec_i sums = V(set1_epi32)(0);
    for (size_t i = cell; i < cell + TILE_CELLS / 2; i++)
        sums = dot(sums, load_cells(x, i, lane, 0), broadcast_cell(w, 0, i));
    vec_d wide[2];
    widen_i(sums, wide);
    totals[0] = V(add_pd)(totals[0], wide[0]);
    totals[1] = V(add_pd)(totals[1], wide[1]);
}

/** A row times the tokens of a vector, whose runs' sums 32 bits may not hold. */
static void multiply_row_exactly(const struct kern_fma_tile *op, struct tile_rows row)
{
    const size_t run = KERN_INT16_BLOCK, min_run = op->format->min_run;
    const tile_chunk *x = (const void *)op->x;
    struct tile_cells w = {{row.w}};
    vec_f result = op->resume ? V(load_ps)(row.acc) : V(setzero_ps)();
    for (size_t k = 0; k < op->n_k; k += run, x += run / TILE_COLUMNS) {
        vec_d totals[2] = {V(setzero_pd)(), V(setzero_pd)()};
        for (size_t cell = 0; cell < 2 * TILE_CELLS; cell += TILE_CELLS / 2)
            add_sixteen(totals, &w, x, cell, row.lane);
        vec_f part = V(fmadd_ps)(narrow(totals), V(set1_ps)(*row.scales++), V(setzero_ps)());
        for (size_t at = 0; min_run > 0 && at < run; at += min_run) {
            size_t which = min_run == TILE_COLUMNS ? 2 : at / min_run % 2;
            vec_f sum = V(load_ps)(x[at / TILE_COLUMNS].of.sum[which] + row.lane);
            part = V(fmadd_ps)(sum, V(set1_ps)(*row.mins++), part);
        }
        result = V(fmadd_ps)(part, V(load_ps)(x->of.scale + row.lane), result);
        w.of_row[0] += run;
    }
    V(store_ps)(row.acc, result);
}

/** Multiply as kern_fma_tile.exactly asks. */
static __attribute__((noinline)) void multiply_exactly(const struct kern_fma_tile *op)
{
    for (size_t r = 0; r < op->n_rows; r++) {
        const float *w = op->w + r * op->w_row, *scales = w + kern_int16_floats(op->n_k, 64);
        struct tile_rows row = {
            .w = (const void *)w, .scales = scales, .mins = scales + op->n_k / 64};
        for (; row.lane < KERN_PANEL; row.lane += VEC_FLOATS) {
            row.acc = op->acc + r * KERN_PANEL + row.lane;
            multiply_row_exactly(op, row);
        }
    }
}
#endif

TILE_INLINE void multiply_all(const struct kern_fma_tile *op, struct tile_extent e)
{
    const float *factors = op->w + op->n_k / TILE_CELL;
    struct tile_rows rows = {.w = (const void *)op->w,
                             .begins = (const void *)factors,
                             .scales = factors + op->n_k / e.run,
                             .mins = factors + 2 * (op->n_k / e.run),
                             .stride = op->w_row};
    for (; rows.lane < KERN_PANEL; rows.lane += TILE_LANES) {
        rows.acc = op->acc + rows.lane;
        multiply_lanes(op, rows, e);
    }
}

TILE_INLINE void multiply_short(const struct kern_fma_tile *op, int n_short)
{
    const struct kern_integers *format = op->format;
    if (ASSAY_SANITIZED)
        multiply_all(op, (struct tile_extent){0, format->run, format->min_run, n_short});
#define RUNS(columns, min_columns)                                                                 \
    else if (format->run == (columns) && format->min_run == (min_columns))                         \
        multiply_all(op, (struct tile_extent){0, columns, min_columns, n_short})
    RUNS(16, 0);
    RUNS(16, 16);
    RUNS(32, 0);
    RUNS(32, 32);
#if !TILE_BYTES && !defined TILE_WORDS
    RUNS(64, 0);
    RUNS(64, 16);
    RUNS(64, 32);
#endif
#undef RUNS
}

TILE_FUNCTION(const struct kern_fma_tile *op)
{
#if !TILE_BYTES && !defined TILE_WORDS
    if (op->exactly) {
        multiply_exactly(op);
        return;
    }
#endif
#ifdef TILE_SHORT_SUMS
    int n_short = choose_short(op);
    if (ASSAY_SANITIZED)
        multiply_short(op, n_short);
    else if (n_short == 8)
        multiply_short(op, 8);
    else if (n_short == 4)
        multiply_short(op, 4);
    else if (n_short == 2)
        multiply_short(op, 2);
    else
        multiply_short(op, 1);
#else
    multiply_short(op, 0);
#endif
}

#endif

/**
 * Part of integer_tile.h: the sums of a run in bytes without VNNI.
 *
 * vpmaddubsw gives sums of two products of an unsigned and a signed byte in 16 bits, and saturates.
 * So as many of them are added up in 16 bits as cannot: n_short = 32767 / (2 * 255 * the format's
 * largest integer) of each cell.
 *
 * Where that is 0, integers are multiplied as magnitudes: a sum is 2 * 128 * 127 < 2^15 at most
 * then. Of x, which has no -128, tokens' magnitudes meet the weight with their signs (BY_SIGN);
 * integers and magnitudes of x are laid once for all rows. That is wrong for a weight of -128,
 * whose opposite is no byte: rows with one, which int8_row marks, take the weight's magnitude and x
 * with its sign (BY_WEIGHT), which is an instruction more.
 */
enum { BY_SIGN = 0, BY_WEIGHT = -1, SIGNED_CHUNKS = 16 };

TILE_INLINE void add_short_run(vec_i sums[TILE_ROWS][TILE_VECTORS], const struct tile_rows *rows,
                               struct tile_extent e, const tile_chunk *x, size_t first_cell)
{
    size_t n_cells = e.run / TILE_CELL, step = base_min((size_t)e.n_short, n_cells);
    for (size_t r = 0; r < e.n_rows; r++)
        for (size_t v = 0; v < TILE_VECTORS; v++)
            sums[r][v] = first_sum(rows, r);
    struct tile_cells w = cells_of(rows, e.n_rows);
#pragma GCC unroll 8
    for (size_t i = 0; i < n_cells; i += step) {
        vec_i few[TILE_ROWS][TILE_VECTORS];
#pragma GCC unroll 8
        for (size_t j = 0; j < step; j++) {
            vec_i x0 = load_cells(x, first_cell + i + j, rows->lane, 0);
            vec_i x1 = load_cells(x, first_cell + i + j, rows->lane, 1);
            for (size_t r = 0; r < e.n_rows; r++) {
                vec_i cell = broadcast_cell(&w, r, i + j);
                vec_i s0 = V(maddubs_epi16)(x0, cell), s1 = V(maddubs_epi16)(x1, cell);
                few[r][0] = j > 0 ? V(add_epi16)(few[r][0], s0) : s0;
                few[r][1] = j > 0 ? V(add_epi16)(few[r][1], s1) : s1;
                KEEP(few[r][0]);
                KEEP(few[r][1]);
            }
        }
        for (size_t r = 0; r < e.n_rows; r++) {
            for (size_t v = 0; v < TILE_VECTORS; v++) {
                vec_i wide = V(madd_epi16)(few[r][v], V(set1_epi16)(1));
                sums[r][v] = V(add_epi32)(sums[r][v], wide);
                KEEP(sums[r][v]);
            }
        }
    }
}

/** The products of four columns, in 32 bits, of a cell of weights with integers and magnitudes. */
TILE_INLINE vec_i signed_sums(vec_i w, vec_i x, vec_i magnitudes, int n_short)
{
    vec_i sums = n_short == BY_SIGN ? V(maddubs_epi16)(magnitudes, V(sign_epi8)(w, x))
                                    : V(maddubs_epi16)(V(abs_epi8)(w), V(sign_epi8)(x, w));
    return V(madd_epi16)(sums, V(set1_epi16)(1));
}

/** x: laid by lay_signed(). */
TILE_INLINE void add_signed_run(vec_i sums[TILE_ROWS][TILE_VECTORS], const struct tile_rows *rows,
                                struct tile_extent e, const tile_chunk *x, size_t first_cell)
{
    struct tile_cells w = cells_of(rows, e.n_rows);
    vec_i cells[TILE_VECTORS], magnitudes[TILE_VECTORS];
#pragma GCC unroll 8
    for (size_t i = 0; i < e.run / TILE_CELL; i++) {
        for (size_t v = 0; v < TILE_VECTORS; v++) {
            cells[v] = load_cells(x, first_cell + i, rows->lane, v);
            magnitudes[v] = load_cells(x, first_cell + i, rows->lane ^ TILE_HALF, v);
            KEEP(cells[v]); /* not to be loaded again for each row */
            KEEP(magnitudes[v]);
        }
        for (size_t r = 0; r < e.n_rows; r++) {
            vec_i cell = broadcast_cell(&w, r, i);
            for (size_t v = 0; v < TILE_VECTORS; v++) {
                vec_i s = signed_sums(cell, cells[v], magnitudes[v], e.n_short);
                sums[r][v] = i > 0 ? V(add_epi32)(sums[r][v], s) : s;
                KEEP(sums[r][v]);
            }
        }
    }
}

TILE_INLINE void add_run(vec_i sums[TILE_ROWS][TILE_VECTORS], const struct tile_rows *rows,
                         struct tile_extent e, const tile_chunk *x, size_t first_cell)
{
    if (e.n_short > 0)
        add_short_run(sums, rows, e, x, first_cell);
    else
        add_signed_run(sums, rows, e, x, first_cell);
}

static int choose_short(const struct kern_fma_tile *op)
{
    int n = 32767 / (2 * 255 * op->format->largest);
    return n >= 8 ? 8 : n >= 4 ? 4 : n >= 2 ? 2 : n;
}

/** Whether a weight of the rows' n_k columns is -128: their int8_row has marked its run. */
TILE_INLINE bool has_least(const struct tile_rows *rows, struct tile_extent e, size_t n_k)
{
    int32_t marks = 0;
    for (size_t r = 0; r < e.n_rows; r++)
        for (size_t i = 0; i < n_k / e.run; i++)
            marks |= rows->begins[r * rows->stride + i];
    return marks != 0;
}

/** Chunks as add_signed_run() reads them: integers at TILE_LANES lanes from `lane` on, their
 * magnitudes at the others. */
static void lay_signed(tile_chunk *out, const tile_chunk *x, size_t n, size_t lane)
{
    for (size_t c = 0; c < n; c++, x++, out++) {
        out->of = x->of;
        for (size_t cell = 0; cell < TILE_CELLS; cell++) {
            for (size_t v = 0; v < TILE_VECTORS; v++) {
                vec_i cells = load_cells(x, cell, lane, v);
                cells = V(xor_si256)(cells, V(set1_epi8)((char)KERN_INT8_OFFSET));
                size_t at = v * VEC_FLOATS, half = lane / TILE_HALF;
                V(store_si256)((vec_i *)(void *)out->x[half][cell][at], cells);
                V(store_si256)((vec_i *)(void *)out->x[1 - half][cell][at], V(abs_epi8)(cells));
            }
        }
    }
}

TILE_INLINE void multiply_lanes(const struct kern_fma_tile *op, struct tile_rows rows,
                                struct tile_extent e);

/** multiply_lanes() of integers that are multiplied as magnitudes, some columns at a time. */
TILE_INLINE void multiply_signed(const struct kern_fma_tile *op, struct tile_rows rows,
                                 struct tile_extent e)
{
    _Alignas(LINE_BYTES) tile_chunk x[SIGNED_CHUNKS];
    const tile_chunk *from = (const void *)op->x;
    struct kern_fma_tile some = *op;
    some.x = (const void *)x;
    for (size_t k = 0; k < op->n_k || k == 0; k += some.n_k, from += SIGNED_CHUNKS) {
        some.n_k = base_min(op->n_k - k, (size_t)SIGNED_CHUNKS * TILE_COLUMNS);
        some.resume = op->resume || k > 0;
        lay_signed(x, from, some.n_k / TILE_COLUMNS, rows.lane);
        multiply_lanes(&some, rows, e);
        rows.w += some.n_k;
        rows.begins += some.n_k / e.run;
        rows.scales += some.n_k / e.run;
        rows.mins += e.min_run > 0 ? some.n_k / e.min_run : 0;
    }
}

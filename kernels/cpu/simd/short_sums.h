/**
 * Part of integer_tile.h: the sums of a run in bytes without VNNI.
 *
 * vpmaddubsw gives sums of two products of an unsigned and a signed byte in 16 bits, and saturates.
 * So as many of them are added up in 16 bits as cannot: n_short = 32767 / (2 * 255 * the format's
 * largest integer) of each cell.
 */
TILE_INLINE void add_run(vec_i sums[TILE_ROWS][TILE_VECTORS], const struct tile_rows *rows,
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

static int choose_short(const struct kern_fma_tile *op)
{
    int n = 32767 / (2 * 255 * op->format->largest);
    return n >= 8 ? 8 : n >= 4 ? 4 : n >= 2 ? 2 : n;
}

#include "kernels/cuda/device/staging.h"

#include <string.h>

#include "base/arithmetic.h"
#include "kernels/quant/rows.h"

enum {
    PIECE_BYTES = 256 << 10, /* of a thread at a time */
    FEW_BYTES = 1 << 20      /* not worth waking anybody */
};

struct gathering {
    const struct kern_cuda_rows *rows;
    size_t begin, n_bytes;
    char *to;
};

enum { UNIT = 256 /* columns that are copied together: a multiple of every block */ };

/** Bytes at .. at + n - 1 of a row that is copied as blocks. */
static void gather_blocks(const struct kern_cuda_rows *rows, size_t row, size_t at, size_t n,
                          char *to)
{
    const struct kern_rows stored = {rows->type, rows->first,  rows->stride,
                                     NULL,       rows->scales, rows->col_step};
    char work[KERN_ROWS_WORK_BYTES * UNIT];
    size_t unit_bytes = kern_quant_bytes(kern_quant_find(rows->type), UNIT);
    while (n > 0) {
        size_t col = at / unit_bytes * UNIT, from = at % unit_bytes;
        size_t n_cols = base_min(rows->n_cols - col, UNIT);
        size_t n_copied = base_min(unit_bytes - from, n);
        const char *blocks = kern_rows_blocks(&stored, rows->first_row + row, col, n_cols, work);
        memcpy(to, blocks + from, n_copied);
        to += n_copied;
        at += n_copied;
        n -= n_copied;
    }
}

/** Bytes begin .. end - 1 of the rows, where the first of them belongs at `to`. */
static void gather(const struct kern_cuda_rows *rows, size_t begin, size_t end, char *to)
{
    while (begin < end) {
        size_t row = begin / rows->row_bytes, at = begin % rows->row_bytes;
        size_t left = rows->row_bytes - at, n = end - begin < left ? end - begin : left;
        row = rows->which ? (size_t)rows->which[row] : row;
        if (rows->n_cols)
            gather_blocks(rows, row, at, n, to);
        else
            memcpy(to, (const char *)rows->first + row * rows->stride + at, n);
        to += n;
        begin += n;
    }
}

static void gather_piece(void *context, size_t index, unsigned thread)
{
    const struct gathering *g = context;
    size_t first = index * PIECE_BYTES, left = g->n_bytes - first;
    size_t n = left < PIECE_BYTES ? left : PIECE_BYTES;
    (void)thread;
    gather(g->rows, g->begin + first, g->begin + first + n, g->to + first);
}

void kern_cuda_rows_gather(struct base_pool *pool, const struct kern_cuda_rows *rows, size_t begin,
                           size_t n_bytes, void *to)
{
    struct gathering g = {.rows = rows, .begin = begin, .n_bytes = n_bytes, .to = to};
    if (!pool || n_bytes < FEW_BYTES) {
        gather(rows, begin, begin + n_bytes, to);
        return;
    }
    (void)base_pool_run(pool, (n_bytes + PIECE_BYTES - 1) / PIECE_BYTES, gather_piece, &g, NULL);
}

#include "kernels/cuda/device/staging.h"

#include <string.h>

enum {
    PIECE_BYTES = 256 << 10, /* of a thread at a time */
    FEW_BYTES = 1 << 20      /* not worth waking anybody */
};

struct gathering {
    const struct kern_cuda_rows *rows;
    size_t begin, n_bytes;
    char *to;
};

/** Bytes begin .. end - 1 of the rows, where the first of them belongs at `to`. */
static void gather(const struct kern_cuda_rows *rows, size_t begin, size_t end, char *to)
{
    while (begin < end) {
        size_t row = begin / rows->row_bytes, at = begin % rows->row_bytes;
        size_t left = rows->row_bytes - at, n = end - begin < left ? end - begin : left;
        row = rows->which ? (size_t)rows->which[row] : row;
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

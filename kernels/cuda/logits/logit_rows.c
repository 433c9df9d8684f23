/* Rows of logits: tiles of the vocabulary as for scores, copied to the host and turned round there.
 */
#include <stdlib.h>

#include "kernels/cuda/operations.h"
#include "kernels/cuda/walk.h"

struct writing {
    struct kern_cuda *cuda;
    const struct kern_logit_rows *op;
    struct kern_cuda_walk walk;
    struct kern_cuda_walk_head head;
    float *host; /* [tile_vocab, room] */
};

/** Logits of the tile from vocab_row on, those that the operation wants of it. */
static enum status write_tile(struct writing *w, size_t first_row, size_t vocab_row,
                              struct status_why *why)
{
    const struct kern_logit_rows *op = w->op;
    const struct kern_cuda_walk *walk = &w->walk;
    size_t n = base_min(walk->n_vocab - vocab_row, walk->tile_vocab);
    enum status status = kern_cuda_walk_multiply(walk, &w->head, vocab_row, n, w->head.logits, why);
    if (!status)
        status = kern_cuda_walk_finish(walk, &w->head, n, w->head.logits, why);
    if (!status)
        status = kern_cuda_get(w->cuda, w->host, w->head.logits, n * walk->stride * sizeof *w->host,
                               why);
    if (status)
        return status;
    size_t first = base_max(vocab_row, op->first), end = base_min(vocab_row + n, op->first + op->n);
    for (size_t row = 0; row < walk->n_rows; row++)
        for (size_t token = first; token < end; token++)
            op->logits[(first_row + row) * op->n + (token - op->first)] =
                w->host[(token - vocab_row) * walk->stride + row];
    return STATUS_OK;
}

static enum status write_rows(struct writing *w, struct status_why *why)
{
    size_t tile = w->walk.tile_vocab, most = w->walk.max_rows;
    enum status status = STATUS_OK;
    for (size_t row = 0; !status && row < w->op->n_rows; row += most) {
        status =
            kern_cuda_walk_begin(&w->walk, &w->head, row, base_min(w->op->n_rows - row, most), why);
        for (size_t v = w->op->first / tile * tile; !status && v < w->op->first + w->op->n;
             v += tile)
            status = write_tile(w, row, v, why);
    }
    return status;
}

enum status kern_cuda_logit_rows(struct kern_backend *b, const struct kern_logit_rows *op,
                                 struct status_why *why)
{
    struct writing w = {.cuda = kern_cuda_of(b), .op = op, .head = {.head = &op->head}};
    w.walk = kern_cuda_walk_of(w.cuda, op->n_rows, &op->head, 1);
    void *memory = NULL;
    enum status status = kern_cuda_walk_prepare(&w.walk, &w.head, why);
    struct kern_cuda_arena arena = {0};
    kern_cuda_walk_divide(&w.walk, &w.head, 1, &arena);
    if (!status)
        status = kern_cuda_scratch(w.cuda, &memory, arena.used, why);
    arena = (struct kern_cuda_arena){.base = memory};
    kern_cuda_walk_divide(&w.walk, &w.head, 1, &arena);
    w.host = malloc(w.walk.tile_vocab * kern_cuda_walk_room(&w.walk) * sizeof *w.host);
    if (!status && !w.host)
        status = status_fail(why, STATUS_MEMORY, "no memory for %zu rows of logits", op->n_rows);
    if (!status)
        status = write_rows(&w, why);
    free(w.host);
    return status;
}

/* Rows of logits: a tile of the vocabulary at a time is multiplied as for scores, and turned round.
 */
#include "kernels/cpu/operations.h"
#include "kernels/cpu/score/walk.h"

enum {
    CHUNK_ROWS = 2048,       /* hidden rows that share one walk through the vocabulary */
    LOGITS_FLOATS = 4 << 20, /* of a tile: 16 MiB */
    SQUARE = 64              /* tokens that are turned round together */
};

struct writing {
    struct kern_walk walk;
    const struct kern_logit_rows *op;
};

/** The tile's logits of a panel: lanes side by side there, tokens side by side in the result. */
static void write_panel(void *context, size_t panel, unsigned thread)
{
    (void)thread;
    const struct writing *w = context;
    const struct kern_walk *walk = &w->walk;
    const float *from = kern_walk_logits(walk, 0, panel);
    size_t row = panel * KERN_PANEL, n_lanes = base_min(walk->chunk.n_rows - row, KERN_PANEL);
    float *to =
        w->op->logits + (walk->chunk.first_row + row) * w->op->n + (walk->vocab_row - w->op->first);
    for (size_t square = 0; square < walk->n_vocab_rows; square += SQUARE) {
        size_t end = base_min(walk->n_vocab_rows, square + SQUARE);
        for (size_t lane = 0; lane < n_lanes; lane++)
            for (size_t token = square; token < end; token++)
                to[lane * w->op->n + token] = from[token * walk->row_stride + lane];
    }
}

static enum status write_chunk(struct writing *w, size_t first_row, size_t n_rows)
{
    struct kern_walk *walk = &w->walk;
    walk->chunk = (struct kern_score_chunk){.first_row = first_row, .n_rows = n_rows};
    enum status status = kern_walk_pack(walk, first_row, n_rows);
    size_t end = w->op->first + w->op->n;
    for (size_t row = w->op->first; !status && row < end; row += walk->tile_rows) {
        walk->vocab_row = row;
        walk->n_vocab_rows = base_min(end - row, walk->tile_rows);
        status = kern_walk_multiply(walk);
        if (!status)
            status = kern_cpu_run(walk->cpu, walk->n_panels, write_panel, w);
    }
    return status;
}

enum status kern_cpu_logit_rows(struct kern_backend *b, const struct kern_logit_rows *op,
                                struct status_why *why)
{
    struct kern_score score = {.n_heads = 1, .heads = &op->head, .n_rows = op->n_rows};
    size_t n_rows = base_min(op->n_rows, CHUNK_ROWS);
    size_t lanes = kern_panel_count(n_rows) * KERN_PANEL;
    const struct kern_walk_limits limits = {.n_rows = n_rows,
                                            .tile_rows = base_min(op->n, LOGITS_FLOATS / lanes)};
    struct writing w = {.op = op};
    enum status status = kern_walk_open(&w.walk, kern_cpu_of(b), &score, &limits, why);
    for (size_t row = 0; !status && row < op->n_rows; row += CHUNK_ROWS)
        status = write_chunk(&w, row, base_min(op->n_rows - row, CHUNK_ROWS));
    kern_walk_close(&w.walk);
    return status;
}

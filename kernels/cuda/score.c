/*
 * Scores. Every head is multiplied a tile of the vocabulary at a time, and the tile is folded into
 * running sums on the device. Only these sums reach the host, some dozen bytes per row.
 */
#include <math.h>

#include "kernels/cuda/score.h"

#include "kernels/cuda/operations.h"

/** The logits of the targets first .. first + n - 1 of the chunk under a head. */
static enum status target_logits(struct kern_cuda_scoring *s, size_t h, size_t first, size_t n,
                                 struct status_why *why)
{
    const struct kern_cuda_walk_head *head = &s->heads[h];
    const struct kern_weight *matrix = head->head->matrix;
    int32_t tokens[KERN_CUDA_TARGET_ROWS];
    for (size_t i = 0; i < n; i++)
        tokens[i] = s->op->targets[s->chunk.targets[first + i].index].token;
    bool rounded = s->cuda->options.precision == KERN_PRECISION_FAST;
    const struct kern_cuda_single_rows rows = {
        .weight = matrix,
        .rows = tokens,
        .n_rows = n,
        .packed = s->target_packed,
        .y = s->target_weights,
        .largest = rounded ? s->target_largest : NULL,
    };
    enum status status = kern_cuda_rows_decode(s->cuda, &rows, why);
    struct kern_target_args args = {
        .targets = s->state.targets + first,
        .n_targets = n,
        .hidden = head->rows,
        .weights = s->target_weights,
        .hidden_largest = rounded ? head->hidden.largest : NULL,
        .weights_largest = rows.largest,
        .n_cols = matrix->n_cols,
        .bias = head->bias,
        .scale = matrix->scale,
        .soft_cap = head->head->soft_cap,
        .ranks = kern_cuda_scoring_ranks(s, h),
    };
    if (!status)
        status =
            kern_cuda_run(s->cuda, KERN_CUDA_TARGET, base_div_up(n, KERN_TARGET_SIDE), &args, why);
    return status;
}

/** Hidden rows and targets' logits of every live head. */
static enum status begin_heads(struct kern_cuda_scoring *s, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t h = s->first_live; !status && h < s->op->n_heads; h++) {
        status =
            kern_cuda_walk_begin(&s->walk, &s->heads[h], s->chunk.first_row, s->chunk.n_rows, why);
        for (size_t i = 0; !status && i < s->chunk.n_targets; i += KERN_CUDA_TARGET_ROWS)
            status = target_logits(s, h, i, base_min(s->chunk.n_targets - i, KERN_CUDA_TARGET_ROWS),
                                   why);
    }
    return status;
}

/** A head's tile, for a kernel that makes logits of it where it is not logits yet. */
static struct kern_logits tile_of(const struct kern_cuda_scoring *s, size_t h, size_t vocab_row)
{
    return kern_cuda_walk_tile(&s->walk, &s->heads[h], vocab_row, s->heads[h].logits);
}

/** Take the logits of the targets out of the tile. */
static enum status take(struct kern_cuda_scoring *s, size_t h, size_t vocab_row,
                        struct status_why *why)
{
    struct kern_take_args args = {
        .targets = s->state.targets,
        .n_targets = s->chunk.n_targets,
        .logits = s->heads[h].logits,
        .stride = s->walk.stride,
        .n_vocab = kern_cuda_scoring_rows(s, vocab_row),
        .first_token = (int32_t)vocab_row,
        .taken = s->state.taken + h * s->chunk.n_slots * KERN_LANES,
    };
    return kern_cuda_run(s->cuda, KERN_CUDA_TAKE, base_div_up(args.n_targets, KERN_TAKE_THREADS),
                         &args, why);
}

/** The logits of every head for a tile; of the last one its sums, where it has them. */
static enum status make_tile(struct kern_cuda_scoring *s, size_t vocab_row, struct status_why *why)
{
    enum status status = s->first_live > 0 ? kern_cuda_scoring_decode(s, vocab_row, why)
                                           : kern_cuda_cancelled(s->cuda);
    for (size_t h = s->first_live; !status && h < s->op->n_heads; h++) {
        struct kern_cuda_walk_head *head = &s->heads[h];
        size_t n = kern_cuda_scoring_rows(s, vocab_row);
        status = kern_cuda_walk_multiply(&s->walk, head, vocab_row, n, head->logits, why);
        if (!status && h + 1 < s->op->n_heads)
            status = kern_cuda_walk_finish(&s->walk, head, n, head->logits, why);
    }
    return status;
}

static enum status fold_pairs(struct kern_cuda_scoring *s, size_t vocab_row, struct status_why *why)
{
    const struct kern_recorded *recorded = s->op->heads[0].recorded;
    enum status status = STATUS_OK;
    for (size_t h = 1; !status && h < s->op->n_heads; h++) {
        struct kern_pair_args args = {
            .base = tile_of(s, 0, vocab_row),
            .other = tile_of(s, h, vocab_row),
            .base_sums = s->state.sums,
            .other_sums = s->state.sums + h * s->chunk.n_groups,
            .pairs = s->state.pairs + h * s->chunk.n_groups,
            .cut = recorded ? recorded->cut : -(double)INFINITY,
        };
        status = kern_cuda_run(s->cuda, KERN_CUDA_PAIR, s->chunk.n_groups, &args, why);
    }
    return status;
}

static enum status fold_tile(struct kern_cuda_scoring *s, size_t vocab_row, struct status_why *why)
{
    enum status status = s->op->pairs ? fold_pairs(s, vocab_row, why) : STATUS_OK;
    for (size_t h = 0; !status && h < s->op->n_heads; h++) {
        size_t at = h * s->chunk.n_groups;
        struct kern_fold_args args = {
            .tile = tile_of(s, h, vocab_row),
            .sums = s->state.sums + at,
            .ranks = kern_cuda_scoring_ranks(s, h),
            .slot_begin = s->state.slot_begin,
            .tops = s->state.tops ? s->state.tops + at : NULL,
        };
        status = kern_cuda_run(s->cuda, KERN_CUDA_FOLD, s->chunk.n_groups, &args, why);
        if (!status && h >= s->first_live && kern_cuda_uses_halves(s->cuda))
            status = take(s, h, vocab_row, why);
    }
    return status;
}

static enum status fold_js(struct kern_cuda_scoring *s, size_t vocab_row, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t h = 1; !status && h < s->op->n_heads; h++) {
        struct kern_js_args args = {
            .base = tile_of(s, 0, vocab_row),
            .other = tile_of(s, h, vocab_row),
            .js = s->state.js + h * s->chunk.n_groups,
        };
        status = kern_cuda_run(s->cuda, KERN_CUDA_JS, s->chunk.n_groups, &args, why);
    }
    return status;
}

static enum status walk_vocabulary(struct kern_cuda_scoring *s,
                                   enum status (*fold)(struct kern_cuda_scoring *, size_t,
                                                       struct status_why *),
                                   struct status_why *why)
{
    enum status status = s->first_live > 0 ? kern_cuda_scoring_begin_codes(s, why) : STATUS_OK;
    for (size_t row = 0; !status && row < s->walk.n_vocab; row += s->walk.tile_vocab) {
        status = make_tile(s, row, why);
        if (!status)
            status = fold(s, row, why);
        if (!status && s->first_live > 0)
            status = kern_cuda_scoring_upload_next(s, row, why);
    }
    return status;
}

static enum status second_pass(struct kern_cuda_scoring *s, struct status_why *why)
{
    struct kern_score_chunk *c = &s->chunk;
    size_t n_bytes = s->op->n_heads * c->n_groups * sizeof *c->js;
    kern_score_chunk_begin_js(c);
    enum status status = kern_cuda_put(s->cuda, s->state.js, c->js, n_bytes, why);
    if (!status)
        status = walk_vocabulary(s, fold_js, why);
    if (!status)
        status = kern_cuda_get(s->cuda, c->js, s->state.js, n_bytes, why);
    if (!status)
        kern_score_chunk_finish_js(c);
    return status;
}

/** Everything for the hidden rows of one chunk. */
static enum status score_chunk(struct kern_cuda_scoring *s, size_t first_row, size_t n_rows,
                               struct status_why *why)
{
    enum status status = kern_cuda_scoring_begin(s, first_row, n_rows, why);
    if (!status)
        status = begin_heads(s, why);
    if (!status && s->first_live > 0)
        status = kern_cuda_scoring_put_scales(s, why);
    if (!status)
        status = walk_vocabulary(s, fold_tile, why);
    if (!status)
        status = kern_cuda_scoring_get(s, why);
    if (status)
        return status;
    kern_score_chunk_finish(&s->chunk);
    return s->op->want_js ? second_pass(s, why) : STATUS_OK;
}

enum status kern_cuda_score(struct kern_backend *b, const struct kern_score *op,
                            struct status_why *why)
{
    struct kern_cuda_scoring s;
    enum status status = kern_cuda_scoring_open(&s, kern_cuda_of(b), op, why);
    for (size_t h = s.first_live; !status && h < op->n_heads; h++)
        status = kern_cuda_walk_prepare(&s.walk, &s.heads[h], why);
    for (size_t row = 0; !status && row < op->n_rows; row += s.walk.max_rows) {
        status = score_chunk(&s, row, base_min(op->n_rows - row, s.walk.max_rows), why);
        kern_score_chunk_close(&s.chunk);
    }
    kern_cuda_scoring_close(&s);
    return status;
}

/*
 * Scores of hidden rows: every head is multiplied a tile of vocabulary rows at a time, and the
 * logits of a tile are folded into running sums before the next one. All sums run down the
 * vocabulary, a hidden row per lane, so that neither tiles nor threads can change a bit.
 */
#include <math.h>

#include "kernels/cpu/operations.h"
#include "kernels/cpu/score/walk.h"

enum {
    CHUNK_ROWS = 2048,       /* hidden rows that share one walk through the vocabulary */
    LOGITS_FLOATS = 4 << 20, /* held at once, all heads together: 16 MiB */
    MIN_TILE_ROWS = 8 * KERN_SCORE_BLOCK,
    GROUPS = KERN_PANEL / KERN_LANES
};

/** Hidden rows at a time, and vocabulary rows: whole score blocks, within the memory for logits. */
static struct kern_walk_limits choose_limits(const struct kern_score *op)
{
    size_t n_recorded = op->heads[0].recorded ? 1 : 0;
    size_t n_vocab = op->heads[n_recorded].matrix->n_rows;
    size_t n_rows = base_min(op->n_rows, CHUNK_ROWS);
    size_t lanes = kern_panel_count(n_rows) * KERN_PANEL;
    size_t rows = base_max(LOGITS_FLOATS / lanes / (op->n_heads - n_recorded), MIN_TILE_ROWS);
    rows = base_min(rows, n_vocab + KERN_SCORE_BLOCK - 1);
    return (struct kern_walk_limits){.n_rows = n_rows,
                                     .tile_rows = rows / KERN_SCORE_BLOCK * KERN_SCORE_BLOCK};
}

/** A group of hidden rows in the current tile. */
struct group {
    const struct kern_walk *walk;
    size_t index;
    struct kern_code_rows recorded; /* if head 0 is */
    float decoded[KERN_SCORE_BLOCK * KERN_LANES];
};

static void group_open(struct group *g, const struct kern_walk *walk, size_t index)
{
    g->walk = walk;
    g->index = index;
    const struct kern_recorded *recorded = walk->op->heads[0].recorded;
    if (!recorded)
        return;
    size_t row = index * KERN_LANES;
    const uint16_t *first = recorded->records + (walk->chunk.first_row + row) * recorded->stride;
    kern_code_rows_read(&g->recorded, first, recorded->stride,
                        base_min(walk->chunk.n_rows - row, KERN_LANES));
}

/** A score block of a head: n_rows vocabulary rows from `row` of the current tile. */
static struct kern_logit_tile block_of(struct group *g, size_t h, size_t row)
{
    const struct kern_walk *walk = g->walk;
    struct kern_logit_tile block = {
        .n_rows = base_min(walk->n_vocab_rows - row, KERN_SCORE_BLOCK),
        .first_row = (int32_t)(walk->vocab_row + row),
    };
    if (h >= walk->first_live) {
        block.logits = kern_walk_logits(walk, h, g->index / GROUPS) + row * walk->row_stride +
                       g->index % GROUPS * KERN_LANES;
        block.stride = walk->row_stride;
        return block;
    }
    struct kern_decoded out = {.logits = g->decoded,
                               .stride = KERN_LANES,
                               .n_rows = block.n_rows,
                               .first_row = walk->vocab_row + row};
    walk->cpu->kernels.ops.decode_codes(&g->recorded, &out);
    block.logits = g->decoded;
    block.stride = KERN_LANES;
    return block;
}

static void fold_ranks(const struct group *g, size_t h, const struct kern_logit_tile *block)
{
    const struct kern_score_chunk *chunk = &g->walk->chunk;
    size_t end = chunk->slot_begin[g->index + 1];
    for (size_t slot = chunk->slot_begin[g->index]; slot < end; slot++)
        g->walk->cpu->kernels.ops.score_rank(&chunk->ranks[h * chunk->n_slots + slot], block);
}

/** Fold one block of all heads into their sums, pairs, lists and ranks. */
static void fold_block(struct group *g, size_t row)
{
    const struct kern_score *op = g->walk->op;
    const struct kern_score_chunk *chunk = &g->walk->chunk;
    const struct kern_ops *ops = &g->walk->cpu->kernels.ops;
    struct kern_logit_tile base, other;
    struct kern_block_exps base_exps, other_exps;
    struct kern_pair_block pair = {
        .base = &base,
        .other = &other,
        .base_exps = &base_exps,
        .other_exps = &other_exps,
        .cut = op->heads[0].recorded ? op->heads[0].recorded->cut : -(double)INFINITY,
    };
    for (size_t h = 0; h < op->n_heads; h++) {
        size_t at = h * chunk->n_groups + g->index;
        struct kern_logit_tile *block = h == 0 ? &base : &other;
        *block = block_of(g, h, row);
        struct kern_block_exps *exps = h == 0 ? &base_exps : &other_exps;
        ops->score_update(&chunk->sums[at], block, op->pairs ? exps : NULL);
        fold_ranks(g, h, block);
        if (chunk->tops)
            ops->score_top(&chunk->tops[at], block);
        if (op->pairs && h > 0)
            ops->score_pair(&chunk->pairs[at], &pair);
    }
}

static void fold_group(void *context, size_t index, unsigned thread)
{
    (void)thread;
    const struct kern_walk *walk = context;
    struct group g;
    uint64_t begun = kern_clock_now();
    group_open(&g, walk, index);
    for (size_t row = 0; row < walk->n_vocab_rows; row += KERN_SCORE_BLOCK)
        fold_block(&g, row);
    kern_clock_count(walk->cpu->base.clock, KERN_PHASE_FOLD, kern_clock_now() - begun);
}

/** The second pass: add the tile's terms of the Jensen-Shannon divergences. */
static void fold_js(void *context, size_t index, unsigned thread)
{
    (void)thread;
    const struct kern_walk *walk = context;
    struct group g;
    uint64_t begun = kern_clock_now();
    group_open(&g, walk, index);
    for (size_t row = 0; row < walk->n_vocab_rows; row += KERN_SCORE_BLOCK) {
        struct kern_logit_tile base = block_of(&g, 0, row);
        for (size_t h = 1; h < walk->op->n_heads; h++) {
            struct kern_logit_tile other = block_of(&g, h, row);
            walk->cpu->kernels.ops.score_js(&walk->chunk.js[h * walk->chunk.n_groups + index],
                                            &base, &other);
        }
    }
    kern_clock_count(walk->cpu->base.clock, KERN_PHASE_FOLD, kern_clock_now() - begun);
}

static enum status walk_vocabulary(struct kern_walk *walk, base_pool_fn *fold)
{
    enum status status = STATUS_OK;
    for (size_t row = 0; !status && row < walk->n_vocab; row += walk->tile_rows) {
        walk->vocab_row = row;
        walk->n_vocab_rows = base_min(walk->n_vocab - row, walk->tile_rows);
        status = kern_walk_multiply(walk);
        if (!status)
            status = kern_cpu_run(walk->cpu, walk->chunk.n_groups, fold, walk);
    }
    return status;
}

/** Everything for the hidden rows of one chunk. */
static enum status score_chunk(struct kern_walk *walk, size_t first_row, size_t n_rows,
                               struct status_why *why)
{
    enum status status = kern_score_chunk_open(&walk->chunk, walk->op, first_row, n_rows, why);
    if (!status)
        status = kern_walk_pack(walk, first_row, n_rows);
    if (!status)
        status = kern_walk_targets(walk);
    if (!status)
        status = walk_vocabulary(walk, fold_group);
    if (!status)
        kern_score_chunk_finish(&walk->chunk);
    if (!status && walk->op->want_js) {
        kern_score_chunk_begin_js(&walk->chunk);
        status = walk_vocabulary(walk, fold_js);
        if (!status)
            kern_score_chunk_finish_js(&walk->chunk);
    }
    kern_score_chunk_close(&walk->chunk);
    return status;
}

size_t kern_cpu_score_bytes(struct kern_backend *b, const struct kern_score *op)
{
    struct kern_walk_limits limits = choose_limits(op);
    return kern_walk_bytes(kern_cpu_of(b), op, &limits) + kern_score_chunk_bytes(op, limits.n_rows);
}

enum status kern_cpu_score(struct kern_backend *b, const struct kern_score *op,
                           struct status_why *why)
{
    struct kern_walk walk;
    struct kern_walk_limits limits = choose_limits(op);
    enum status status = kern_walk_open(&walk, kern_cpu_of(b), op, &limits, why);
    for (size_t row = 0; !status && row < op->n_rows; row += CHUNK_ROWS)
        status = score_chunk(&walk, row, base_min(op->n_rows - row, CHUNK_ROWS), why);
    kern_walk_close(&walk);
    return status;
}

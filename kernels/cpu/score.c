/*
 * Scores of hidden rows: every head is multiplied a tile of vocabulary rows at a time, and the
 * logits of a tile are folded into running sums before the next one. All sums run down the
 * vocabulary, a hidden row per lane, so that neither tiles nor threads can change a bit.
 */
#include <stdlib.h>

#include "kernels/cpu/blas.h"
#include "kernels/cpu/score_walk.h"

enum {
    CHUNK_ROWS = 2048,       /* hidden rows that share one walk through the vocabulary */
    LOGITS_FLOATS = 4 << 20, /* held at once, all heads together: 16 MiB */
    MIN_TILE_ROWS = 8 * KERN_SCORE_BLOCK,
    GROUPS = KERN_PANEL / KERN_LANES
};

static size_t smaller_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/** Vocabulary rows per tile: whole score blocks, within the memory for logits. */
static size_t choose_tile_rows(size_t n_panels, size_t n_heads, size_t n_vocab)
{
    size_t rows = LOGITS_FLOATS / (n_panels * KERN_PANEL) / n_heads;
    if (rows < MIN_TILE_ROWS)
        rows = MIN_TILE_ROWS;
    rows = smaller_of(rows, n_vocab + KERN_SCORE_BLOCK - 1);
    return rows / KERN_SCORE_BLOCK * KERN_SCORE_BLOCK;
}

/** Fold the tile's logits of one group of hidden rows into its sums and ranks. */
static void fold_group(void *context, size_t group, unsigned thread)
{
    (void)thread;
    const struct kern_walk *walk = context;
    const struct kern_score_chunk *chunk = &walk->chunk;
    const struct kern_ops *ops = &walk->cpu->table.ops;
    struct kern_logit_tile base = {0};
    for (size_t h = 0; h < walk->op->n_heads; h++) {
        struct kern_logit_tile tile = {
            .logits = kern_walk_logits(walk, h, group / GROUPS) + group % GROUPS * KERN_LANES,
            .stride = walk->row_stride,
            .n_rows = walk->n_vocab_rows,
            .first_row = (int32_t)walk->vocab_row,
        };
        ops->score_update(&chunk->sums[h * chunk->n_groups + group], &tile);
        if (h == 0)
            base = tile;
        else if (walk->op->pairs)
            ops->score_pair(&chunk->pairs[h * chunk->n_groups + group], &base, &tile);
        for (size_t slot = chunk->slot_begin[group]; slot < chunk->slot_begin[group + 1]; slot++)
            ops->score_rank(&chunk->ranks[h * chunk->n_slots + slot], &tile);
    }
}

static enum status walk_vocabulary(struct kern_walk *walk)
{
    size_t n_vocab = walk->op->heads[0].matrix->n_rows;
    enum status status = STATUS_OK;
    for (size_t row = 0; status == STATUS_OK && row < n_vocab; row += walk->tile_rows) {
        walk->vocab_row = row;
        walk->n_vocab_rows = smaller_of(n_vocab - row, walk->tile_rows);
        status = kern_walk_multiply(walk);
        if (status == STATUS_OK)
            status = kern_cpu_run(walk->cpu, walk->chunk.n_groups, fold_group, walk);
    }
    return status;
}

/** Everything for the hidden rows of one chunk. */
static enum status score_chunk(struct kern_walk *walk, size_t first_row, size_t n_rows,
                               struct status_why *why)
{
    const struct kern_score *op = walk->op;
    walk->n_panels = kern_panel_count(n_rows);
    enum status status = kern_score_chunk_open(&walk->chunk, op, first_row, n_rows, why);
    for (size_t h = 0; status == STATUS_OK && h < op->n_heads; h++) {
        size_t width = op->heads[h].matrix->n_cols;
        status = kern_panels_pack(walk->cpu, op->heads[h].hidden + first_row * width, n_rows, width,
                                  walk->heads[h].packed);
    }
    if (status == STATUS_OK)
        status = kern_walk_targets(walk);
    if (status == STATUS_OK)
        status = walk_vocabulary(walk);
    if (status == STATUS_OK)
        kern_score_chunk_finish(&walk->chunk);
    kern_score_chunk_close(&walk->chunk);
    return status;
}

/** A piece of memory to be divided; without a base only the sizes count. */
struct arena {
    float *base;
    size_t used;
};

/** The next n floats, beginning on a cache line. */
static float *take(struct arena *arena, size_t n)
{
    float *taken = arena->base ? arena->base + arena->used : NULL;
    arena->used += (n + 15) / 16 * 16;
    return taken;
}

/** Choose sizes and divide the memory. */
static void walk_divide(struct kern_walk *walk, struct arena *arena)
{
    const struct kern_score *op = walk->op;
    size_t lanes = walk->n_panels * KERN_PANEL, blas_floats = 0;
    for (size_t h = 0; h < op->n_heads; h++) {
        const struct kern_weight *matrix = op->heads[h].matrix;
        struct kern_walk_head *head = &walk->heads[h];
        head->plan = kern_gemm_plan(walk->cpu, matrix, walk->tile_rows);
        head->packed = take(arena, lanes * matrix->n_cols);
        head->logits = take(arena, lanes * walk->tile_rows);
        head->bias = op->heads[h].bias ? take(arena, matrix->n_rows) : NULL;
        size_t panel_floats = kern_blas_panel_floats(matrix);
        blas_floats = panel_floats > blas_floats ? panel_floats : blas_floats;
    }
    walk->thread_floats = kern_walk_thread_floats(walk);
    walk->per_thread = take(arena, walk->thread_floats * kern_pool_n_threads(walk->cpu->pool));
    walk->blas_panel = walk->cpu->sgemm ? take(arena, blas_floats) : NULL;
    walk->row_stride = walk->cpu->sgemm ? lanes : KERN_PANEL;
    walk->panel_stride = walk->cpu->sgemm ? KERN_PANEL : walk->tile_rows * KERN_PANEL;
}

/** Choose sizes; *n_floats: the scratch memory. The heads must be freed in any case. */
static enum status walk_size(struct kern_walk *walk, struct kern_cpu *cpu,
                             const struct kern_score *op, size_t *n_floats, struct status_why *why)
{
    *n_floats = 0;
    *walk = (struct kern_walk){.cpu = cpu, .op = op};
    walk->heads = calloc(op->n_heads, sizeof *walk->heads);
    if (!walk->heads)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu heads", op->n_heads);
    walk->n_panels = kern_panel_count(smaller_of(op->n_rows, CHUNK_ROWS));
    walk->tile_rows = choose_tile_rows(walk->n_panels, op->n_heads, op->heads[0].matrix->n_rows);
    struct arena arena = {0};
    walk_divide(walk, &arena);
    *n_floats = arena.used;
    return STATUS_OK;
}

size_t kern_cpu_score_bytes(struct kern_backend *b, const struct kern_score *op)
{
    struct kern_walk walk;
    size_t n_floats;
    (void)walk_size(&walk, kern_cpu_of(b), op, &n_floats, NULL);
    free(walk.heads);
    size_t n_rows = smaller_of(op->n_rows, CHUNK_ROWS);
    return n_floats * sizeof(float) + kern_score_chunk_bytes(op->n_heads, n_rows, op->n_targets);
}

static enum status walk_open(struct kern_walk *walk, struct kern_cpu *cpu,
                             const struct kern_score *op, struct status_why *why)
{
    size_t n_floats;
    void *memory = NULL;
    enum status status = walk_size(walk, cpu, op, &n_floats, why);
    if (status == STATUS_OK)
        status = kern_cpu_scratch(cpu, &memory, n_floats * sizeof(float), why);
    if (status != STATUS_OK)
        return status;
    struct arena arena = {.base = memory};
    walk_divide(walk, &arena);
    for (size_t h = 0; h < op->n_heads; h++) {
        if (op->heads[h].bias)
            kern_weight_decode_row(cpu, op->heads[h].bias, 0, walk->heads[h].bias);
    }
    return STATUS_OK;
}

enum status kern_cpu_score(struct kern_backend *b, const struct kern_score *op,
                           struct status_why *why)
{
    struct kern_walk walk;
    enum status status = walk_open(&walk, kern_cpu_of(b), op, why);
    for (size_t row = 0; status == STATUS_OK && row < op->n_rows; row += CHUNK_ROWS)
        status = score_chunk(&walk, row, smaller_of(op->n_rows - row, CHUNK_ROWS), why);
    free(walk.heads);
    return status;
}

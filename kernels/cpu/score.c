/*
 * Scores of hidden rows: every head is multiplied a tile of vocabulary rows at a time, and the
 * logits of a tile are folded into running sums before the next one. All sums run down the
 * vocabulary, a hidden row per lane, so that neither tiles nor threads can change a bit.
 */
#include <stdlib.h>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/score_chunk.h"

enum {
    CHUNK_ROWS = 2048,       /* hidden rows that share one walk through the vocabulary */
    LOGITS_FLOATS = 4 << 20, /* held at once, all heads together: 16 MiB */
    MIN_TILE_ROWS = 8 * KERN_SCORE_BLOCK,
    GROUPS = KERN_PANEL / KERN_LANES
};

/** What a head needs beyond its struct kern_head. */
struct walk_head {
    struct kern_gemm_plan plan;
    float *packed; /* the chunk's hidden rows */
    float *bias;   /* [V] decoded, or NULL */
    float *logits; /* per panel a panel array [tile_rows] */
};

/** A walk through the vocabulary for the rows of one chunk. */
struct walk {
    struct kern_cpu *cpu;
    const struct kern_score *op;
    struct kern_score_chunk chunk;
    struct walk_head *heads; /* [n_heads] */
    size_t n_panels;
    size_t tile_rows;
    float *per_thread;
    size_t thread_floats;
    size_t vocab_row, n_vocab_rows; /* the tile at hand */
};

static size_t smaller_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t div_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit;
}

/** Vocabulary rows per tile: whole score blocks, within the memory for logits. */
static size_t choose_tile_rows(size_t n_panels, size_t n_heads, size_t n_vocab)
{
    size_t rows = LOGITS_FLOATS / (n_panels * KERN_PANEL) / n_heads;
    if (rows < MIN_TILE_ROWS)
        rows = MIN_TILE_ROWS;
    return smaller_of(rows, n_vocab + KERN_SCORE_BLOCK - 1) / KERN_SCORE_BLOCK * KERN_SCORE_BLOCK;
}

/** acc * scale + bias, as linear does it. */
static void finish_logits(const struct kern_table *table, float *logits, size_t n_rows, float scale,
                          const float *bias)
{
    if (scale != 1.0f) {
        _Alignas(64) float factor[KERN_PANEL];
        for (size_t lane = 0; lane < KERN_PANEL; lane++)
            factor[lane] = scale;
        table->panel_scale(logits, n_rows, factor);
    }
    for (size_t r = 0; bias && r < n_rows; r++) {
        for (size_t lane = 0; lane < KERN_PANEL; lane++)
            logits[r * KERN_PANEL + lane] += bias[r];
    }
}

/** The logit of one target under every head, by the chain that gives it in the walk. */
static void target_logits(void *context, size_t index, unsigned thread)
{
    const struct walk *walk = context;
    const struct kern_table *table = &walk->cpu->table;
    const struct kern_chunk_target *target = &walk->chunk.targets[index];
    int32_t token = walk->op->targets[target->index].token;
    float *acc = walk->per_thread + thread * walk->thread_floats;
    float *weights = acc + KERN_PANEL;
    for (size_t h = 0; h < walk->op->n_heads; h++) {
        const struct walk_head *head = &walk->heads[h];
        const struct kern_weight *matrix = walk->op->heads[h].matrix;
        kern_weight_decode_row(walk->cpu, matrix, (size_t)token, weights);
        table->fma_tile(&(struct kern_fma_tile){
            .w = weights,
            .x = head->packed + target->row / KERN_PANEL * KERN_PANEL * matrix->n_cols,
            .w_col = 1,
            .acc = acc,
            .n_rows = 1,
            .n_k = matrix->n_cols,
        });
        finish_logits(table, acc, 1, matrix->scale, head->bias ? head->bias + token : NULL);
        struct kern_rank_lanes *rank = kern_score_chunk_rank(&walk->chunk, h, target);
        rank->logit[target->row % KERN_LANES] = acc[target->row % KERN_PANEL];
        rank->token[target->row % KERN_LANES] = token;
    }
}

/** Some vocabulary rows of one head times all hidden rows of the chunk. */
static void multiply_rows(void *context, size_t index, unsigned thread)
{
    const struct walk *walk = context;
    size_t h = 0, n_tasks;
    while (index >= (n_tasks = div_up(walk->n_vocab_rows, walk->heads[h].plan.n_rows))) {
        index -= n_tasks;
        h++;
    }
    const struct walk_head *head = &walk->heads[h];
    size_t row = index * head->plan.n_rows;
    size_t n_rows = smaller_of(walk->n_vocab_rows - row, head->plan.n_rows);
    struct kern_gemm_rows product = {
        .cpu = walk->cpu,
        .weight = walk->op->heads[h].matrix,
        .plan = &head->plan,
        .x = head->packed,
        .n_panels = walk->n_panels,
        .row = walk->vocab_row + row,
        .n_rows = n_rows,
        .tile = walk->per_thread + thread * walk->thread_floats,
        .acc = head->logits + row * KERN_PANEL,
        .acc_stride = walk->tile_rows * KERN_PANEL,
    };
    kern_gemm_run(&product);
    for (size_t p = 0; p < walk->n_panels; p++)
        finish_logits(&walk->cpu->table, product.acc + p * product.acc_stride, n_rows,
                      product.weight->scale, head->bias ? head->bias + product.row : NULL);
}

/** Fold the tile's logits of one group of hidden rows into its sums and ranks. */
static void fold_group(void *context, size_t group, unsigned thread)
{
    (void)thread;
    const struct walk *walk = context;
    const struct kern_score_chunk *chunk = &walk->chunk;
    const struct kern_ops *ops = &walk->cpu->table.ops;
    struct kern_logit_tile base = {0};
    for (size_t h = 0; h < walk->op->n_heads; h++) {
        size_t panel = group / GROUPS;
        struct kern_logit_tile tile = {
            .logits = walk->heads[h].logits + panel * walk->tile_rows * KERN_PANEL +
                      group % GROUPS * KERN_LANES,
            .stride = KERN_PANEL,
            .n_rows = walk->n_vocab_rows,
            .first_row = (int32_t)walk->vocab_row,
        };
        ops->score_update(&chunk->sums[h * chunk->n_groups + group], &tile);
        if (h == 0)
            base = tile;
        else
            ops->score_pair(&chunk->pairs[h * chunk->n_groups + group], &base, &tile);
        for (size_t slot = chunk->slot_begin[group]; slot < chunk->slot_begin[group + 1]; slot++)
            ops->score_rank(&chunk->ranks[h * chunk->n_slots + slot], &tile);
    }
}

static enum status walk_vocabulary(struct walk *walk)
{
    const struct kern_score *op = walk->op;
    size_t n_vocab = op->heads[0].matrix->n_rows;
    enum status status = STATUS_OK;
    for (size_t row = 0; status == STATUS_OK && row < n_vocab; row += walk->tile_rows) {
        walk->vocab_row = row;
        walk->n_vocab_rows = smaller_of(n_vocab - row, walk->tile_rows);
        size_t n_tasks = 0;
        for (size_t h = 0; h < op->n_heads; h++)
            n_tasks += div_up(walk->n_vocab_rows, walk->heads[h].plan.n_rows);
        status = kern_cpu_run(walk->cpu, n_tasks, multiply_rows, walk);
        if (status == STATUS_OK)
            status = kern_cpu_run(walk->cpu, walk->chunk.n_groups, fold_group, walk);
    }
    return status;
}

/** Everything for the hidden rows of one chunk. */
static enum status score_chunk(struct walk *walk, size_t first_row, size_t n_rows,
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
        status = kern_cpu_run(walk->cpu, walk->chunk.n_targets, target_logits, walk);
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
static void walk_divide(struct walk *walk, struct arena *arena)
{
    const struct kern_score *op = walk->op;
    size_t max_width = 0, tile_floats = 0;
    for (size_t h = 0; h < op->n_heads; h++) {
        const struct kern_weight *matrix = op->heads[h].matrix;
        struct walk_head *head = &walk->heads[h];
        head->plan = kern_gemm_plan(walk->cpu, matrix, walk->tile_rows);
        head->packed = take(arena, walk->n_panels * KERN_PANEL * matrix->n_cols);
        head->logits = take(arena, walk->n_panels * KERN_PANEL * walk->tile_rows);
        head->bias = op->heads[h].bias ? take(arena, matrix->n_rows) : NULL;
        if (matrix->n_cols > max_width)
            max_width = matrix->n_cols;
        if (head->plan.tile_floats > tile_floats)
            tile_floats = head->plan.tile_floats;
    }
    size_t row_floats = KERN_PANEL + (max_width + 15) / 16 * 16; /* see target_logits() */
    walk->thread_floats = tile_floats > row_floats ? tile_floats : row_floats;
    walk->per_thread = take(arena, walk->thread_floats * kern_pool_n_threads(walk->cpu->pool));
}

static enum status walk_open(struct walk *walk, struct kern_cpu *cpu, const struct kern_score *op,
                             struct status_why *why)
{
    *walk = (struct walk){.cpu = cpu, .op = op};
    walk->heads = calloc(op->n_heads, sizeof *walk->heads);
    if (!walk->heads)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu heads", op->n_heads);
    walk->n_panels = kern_panel_count(smaller_of(op->n_rows, CHUNK_ROWS));
    walk->tile_rows = choose_tile_rows(walk->n_panels, op->n_heads, op->heads[0].matrix->n_rows);
    struct arena arena = {0};
    walk_divide(walk, &arena);
    void *memory;
    enum status status = kern_cpu_scratch(cpu, &memory, arena.used * sizeof(float), why);
    if (status != STATUS_OK)
        return status;
    arena = (struct arena){.base = memory};
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
    struct walk walk;
    enum status status = walk_open(&walk, kern_cpu_of(b), op, why);
    for (size_t row = 0; status == STATUS_OK && row < op->n_rows; row += CHUNK_ROWS)
        status = score_chunk(&walk, row, smaller_of(op->n_rows - row, CHUNK_ROWS), why);
    free(walk.heads);
    return status;
}

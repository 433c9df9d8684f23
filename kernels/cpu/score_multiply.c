/* The products of scoring: logits of a tile of vocabulary rows, and of the targets. */
#include "kernels/cpu/blas.h"
#include "kernels/cpu/score_walk.h"

static size_t smaller_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t n_row_tasks(const struct kern_walk *walk, size_t h)
{
    if (h < walk->first_live)
        return 0;
    size_t rows = walk->heads[h].plan.n_rows;
    return (walk->n_vocab_rows + rows - 1) / rows;
}

size_t kern_walk_thread_floats(const struct kern_walk *walk)
{
    size_t most = 0;
    for (size_t h = walk->first_live; h < walk->op->n_heads; h++) {
        /* A tile of weights, or what target_logit() needs: a panel row and a weight row. */
        size_t tile = walk->heads[h].plan.tile_floats;
        size_t row = KERN_PANEL + (walk->op->heads[h].matrix->n_cols + 15) / 16 * 16;
        most = most > tile ? most : tile;
        most = most > row ? most : row;
    }
    return most;
}

/** acc * scale + bias of a panel, as linear does it. bias: n_rows floats, or NULL. */
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

/** The logit of a target under a head, by the chain that gives it in the walk. */
static float target_logit(const struct kern_walk *walk, size_t h,
                          const struct kern_chunk_target *target, float *memory)
{
    const struct kern_table *table = &walk->cpu->table;
    const struct kern_walk_head *head = &walk->heads[h];
    const struct kern_weight *matrix = walk->op->heads[h].matrix;
    int32_t token = walk->op->targets[target->index].token;
    float *acc = memory, *weights = memory + KERN_PANEL;
    kern_weight_decode_row(walk->cpu, matrix, (size_t)token, weights);
    table->fma_tile(&(struct kern_fma_tile){
        .w = weights,
        .w_col = 1,
        .x = head->packed + target->row / KERN_PANEL * KERN_PANEL * matrix->n_cols,
        .acc = acc,
        .n_rows = 1,
        .n_k = matrix->n_cols,
    });
    finish_logits(table, acc, 1, matrix->scale, head->bias ? head->bias + token : NULL);
    return acc[target->row % KERN_PANEL];
}

/** The logits of one target under every head; of a recorded one, what is stored. */
static void target_logits(void *context, size_t index, unsigned thread)
{
    const struct kern_walk *walk = context;
    const struct kern_chunk_target *target = &walk->chunk.targets[index];
    int32_t token = walk->op->targets[target->index].token;
    float *memory = walk->per_thread + thread * walk->thread_floats;
    for (size_t h = 0; h < walk->op->n_heads; h++) {
        const struct kern_recorded *recorded = walk->op->heads[h].recorded;
        struct kern_rank_lanes *rank = kern_score_chunk_rank(&walk->chunk, h, target);
        size_t row = walk->chunk.first_row + target->row;
        rank->token[target->row % KERN_LANES] = token;
        rank->logit[target->row % KERN_LANES] =
            recorded ? kern_code_log_prob(recorded->records + row * recorded->stride, (size_t)token)
                     : target_logit(walk, h, target, memory);
    }
}

enum status kern_walk_targets(struct kern_walk *walk)
{
    return kern_cpu_run(walk->cpu, walk->chunk.n_targets, target_logits, walk);
}

/** Of one head; what its products' ends need. */
struct head_product {
    const struct kern_walk *walk;
    size_t head;
};

static void finish_panel(void *context, size_t panel, size_t row, size_t n_rows, float *acc)
{
    (void)panel;
    const struct head_product *p = context;
    const float *bias = p->walk->heads[p->head].bias;
    finish_logits(&p->walk->cpu->table, acc, n_rows, p->walk->op->heads[p->head].matrix->scale,
                  bias ? bias + row : NULL);
}

/** Some vocabulary rows of one head times all hidden rows of the chunk. */
static void multiply_rows(void *context, size_t index, unsigned thread)
{
    const struct kern_walk *walk = context;
    size_t h = 0;
    while (index >= n_row_tasks(walk, h))
        index -= n_row_tasks(walk, h++);
    const struct kern_walk_head *head = &walk->heads[h];
    size_t row = index * head->plan.n_rows;
    struct head_product context_of_head = {.walk = walk, .head = h};
    kern_gemm_run(&(struct kern_gemm_rows){
        .cpu = walk->cpu,
        .weight = walk->op->heads[h].matrix,
        .plan = &head->plan,
        .x = head->packed,
        .n_panels = walk->n_panels,
        .row = walk->vocab_row + row,
        .n_rows = smaller_of(walk->n_vocab_rows - row, head->plan.n_rows),
        .tile = walk->per_thread + thread * walk->thread_floats,
        .acc = head->logits + row * KERN_PANEL,
        .acc_stride = walk->panel_stride,
        .done = finish_panel,
        .context = &context_of_head,
    });
}

static enum status multiply_own(struct kern_walk *walk)
{
    size_t n_tasks = 0;
    for (size_t h = 0; h < walk->op->n_heads; h++)
        n_tasks += n_row_tasks(walk, h);
    return kern_cpu_run(walk->cpu, n_tasks, multiply_rows, walk);
}

/**
 * The targets' logits come from chains of their own and are compared with those of the tile
 * for ranks: a foreign product may differ in the last bits, so put the same number there.
 */
static void restore_targets(const struct kern_walk *walk, size_t h)
{
    for (size_t i = 0; i < walk->chunk.n_targets; i++) {
        const struct kern_chunk_target *target = &walk->chunk.targets[i];
        size_t token = (size_t)walk->op->targets[target->index].token;
        if (token < walk->vocab_row || token - walk->vocab_row >= walk->n_vocab_rows)
            continue;
        float *logits = kern_walk_logits(walk, h, target->row / KERN_PANEL);
        logits[(token - walk->vocab_row) * walk->row_stride + target->row % KERN_PANEL] =
            kern_score_chunk_rank(&walk->chunk, h, target)->logit[target->row % KERN_LANES];
    }
}

/** The tile's logits of one head by cpu->sgemm. */
static enum status multiply_blas(struct kern_walk *walk, size_t h)
{
    const struct kern_head *head = &walk->op->heads[h];
    const struct kern_weight *matrix = head->matrix;
    float *logits = walk->heads[h].logits;
    size_t panel_rows = kern_blas_panel_rows(matrix);
    for (size_t row = 0; row < walk->n_vocab_rows; row += panel_rows) {
        size_t n_rows = smaller_of(walk->n_vocab_rows - row, panel_rows);
        enum status status =
            kern_weight_decode(walk->cpu, matrix, walk->vocab_row + row, n_rows, walk->blas_panel);
        if (status != STATUS_OK)
            return status;
        walk->cpu->sgemm(&(struct kern_sgemm){
            .n_rows = n_rows,
            .n_cols = walk->chunk.n_rows,
            .n_k = matrix->n_cols,
            .a = walk->blas_panel,
            .a_stride = matrix->n_cols,
            .b = head->hidden + walk->chunk.first_row * matrix->n_cols,
            .b_stride = matrix->n_cols,
            .c = logits + row * walk->row_stride,
            .c_stride = walk->row_stride,
            .alpha = matrix->scale,
            .n_threads = kern_pool_n_threads(walk->cpu->pool),
        });
    }
    const float *bias = walk->heads[h].bias;
    for (size_t r = 0; bias && r < walk->n_vocab_rows; r++) {
        for (size_t row = 0; row < walk->chunk.n_rows; row++)
            logits[r * walk->row_stride + row] += bias[walk->vocab_row + r];
    }
    restore_targets(walk, h);
    return STATUS_OK;
}

enum status kern_walk_multiply(struct kern_walk *walk)
{
    if (!walk->cpu->sgemm)
        return multiply_own(walk);
    enum status status = STATUS_OK;
    for (size_t h = walk->first_live; status == STATUS_OK && h < walk->op->n_heads; h++)
        status = multiply_blas(walk, h);
    return status;
}

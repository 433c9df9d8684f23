/* The products of scoring: logits of a tile of vocabulary rows, and of the targets. */
#include <string.h>

#include "kernels/cpu/gemm/blas.h"
#include "kernels/cpu/score/walk.h"
#include "kernels/scoring.h"

static size_t n_head_tasks(const struct kern_walk *walk, size_t h)
{
    if (h < walk->first_live)
        return 0;
    return kern_gemm_n_tasks(&walk->heads[h].plan, walk->n_vocab_rows, walk->n_panels);
}

size_t kern_walk_thread_floats(const struct kern_walk *walk)
{
    size_t most = 0;
    for (size_t h = walk->first_live; h < walk->op->n_heads; h++) {
        /* A tile of weights, and the sums that target_logit() needs. */
        most = base_max(most, walk->heads[h].plan.tile_floats + KERN_PANEL);
    }
    return most;
}

/** Scale and bias of a panel, as linear does them, and the soft cap. bias: n_rows floats, or NULL.
 */
static void finish_logits(const struct kern_kernels *kernels, float *logits, size_t n_rows,
                          const struct kern_head *head, const float *bias)
{
    float scale = head->matrix->scale;
    if (scale != 1.0f) {
        _Alignas(64) float factor[KERN_PANEL];
        for (size_t lane = 0; lane < KERN_PANEL; lane++)
            factor[lane] = scale;
        kernels->panel_scale(logits, n_rows, factor);
    }
    for (size_t r = 0; bias && r < n_rows; r++)
        for (size_t lane = 0; lane < KERN_PANEL; lane++)
            logits[r * KERN_PANEL + lane] += bias[r];
    if (head->soft_cap > 0)
        kernels->ops.soft_cap(logits, n_rows * KERN_PANEL, 1.0f, head->soft_cap);
}

/** What finishing the products of one head needs. */
struct head_product {
    const struct kern_walk *walk;
    size_t head;
};

static void finish_panel(void *context, size_t panel, size_t row, size_t n_rows, float *acc)
{
    (void)panel;
    const struct head_product *p = context;
    const float *bias = p->walk->heads[p->head].bias;
    finish_logits(&p->walk->cpu->kernels, acc, n_rows, &p->walk->op->heads[p->head],
                  bias ? bias + row : NULL);
}

/** The logit of a target under a head, by the sums that give it in the walk. */
static float target_logit(const struct kern_walk *walk, size_t h,
                          const struct kern_chunk_target *target, float *memory)
{
    const struct kern_walk_head *head = &walk->heads[h];
    struct head_product context = {.walk = walk, .head = h};
    float *acc = memory + walk->thread_floats - KERN_PANEL;
    kern_gemm_run(&(struct kern_gemm_rows){
        .cpu = walk->cpu,
        .weight = walk->op->heads[h].matrix,
        .plan = &head->plan,
        .x = head->packed,
        .n_tokens = walk->chunk.n_rows,
        .first_panel = target->row / KERN_PANEL,
        .n_panels = 1,
        .row = (size_t)walk->op->targets[target->index].token,
        .n_rows = 1,
        .tile = memory,
        .acc = acc,
        .done = finish_panel,
        .context = &context,
    });
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

/** Some vocabulary rows of one head times some hidden rows of the chunk. */
static void multiply_task(void *context, size_t index, unsigned thread)
{
    const struct kern_walk *walk = context;
    size_t h = 0;
    while (index >= n_head_tasks(walk, h))
        index -= n_head_tasks(walk, h++);
    const struct kern_walk_head *head = &walk->heads[h];
    struct head_product context_of_head = {.walk = walk, .head = h};
    struct kern_gemm_rows task = {
        .cpu = walk->cpu,
        .weight = walk->op->heads[h].matrix,
        .plan = &head->plan,
        .x = head->packed,
        .n_tokens = walk->chunk.n_rows,
        .tile = walk->per_thread + thread * walk->thread_floats,
        .acc_stride = walk->panel_stride,
        .done = finish_panel,
        .context = &context_of_head,
    };
    kern_gemm_task(&task, walk->n_vocab_rows, index);
    task.acc = head->logits + task.first_panel * walk->panel_stride + task.row * KERN_PANEL;
    task.row += walk->vocab_row;
    kern_gemm_run(&task);
}

static enum status multiply_own(struct kern_walk *walk)
{
    size_t n_tasks = 0;
    for (size_t h = 0; h < walk->op->n_heads; h++)
        n_tasks += n_head_tasks(walk, h);
    return kern_cpu_run(walk->cpu, n_tasks, multiply_task, walk);
}

/**
 * For ranks the targets' logits are compared with those of the tile. The targets' come from our
 * own chains and a foreign product may differ in the last bits, so put the same number there.
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
        size_t n_rows = base_min(walk->n_vocab_rows - row, panel_rows);
        enum status status =
            kern_weight_decode(walk->cpu, matrix, walk->vocab_row + row, n_rows, walk->blas_panel);
        if (status)
            return status;
        status = kern_blas_multiply(walk->cpu,
                                    &(struct kern_sgemm){
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
                                    });
        if (status)
            return status;
    }
    /* Lanes without a row, which nobody looks at: no products of ours have set them to 0. */
    size_t n_unused = walk->n_panels * KERN_PANEL - walk->chunk.n_rows;
    for (size_t r = 0; r < walk->n_vocab_rows; r++)
        memset(logits + r * walk->row_stride + walk->chunk.n_rows, 0, n_unused * sizeof *logits);
    const float *bias = walk->heads[h].bias;
    for (size_t r = 0; bias && r < walk->n_vocab_rows; r++)
        for (size_t row = 0; row < walk->chunk.n_rows; row++)
            logits[r * walk->row_stride + row] += bias[walk->vocab_row + r];
    for (size_t r = 0; head->soft_cap > 0 && r < walk->n_vocab_rows; r++)
        walk->cpu->kernels.ops.soft_cap(logits + r * walk->row_stride, walk->chunk.n_rows, 1.0f,
                                        head->soft_cap);
    restore_targets(walk, h);
    return STATUS_OK;
}

enum status kern_walk_multiply(struct kern_walk *walk)
{
    if (!walk->cpu->sgemm)
        return multiply_own(walk);
    enum status status = STATUS_OK;
    for (size_t h = walk->first_live; !status && h < walk->op->n_heads; h++)
        status = multiply_blas(walk, h);
    return status;
}

#include "kernels/cpu/score/walk.h"

#include <stdlib.h>

#include "base/array.h"
#include "kernels/cpu/gemm/blas.h"
#include "kernels/scoring.h"

/** A piece of memory to be divided; without a base only the sizes count. */
struct arena {
    float *base;
    size_t used;
};

/** The next n floats, beginning on a cache line. */
static float *take(struct arena *arena, size_t n)
{
    float *taken = arena->base ? arena->base + arena->used : NULL;
    arena->used += base_round_up(n, 16);
    return taken;
}

/** Choose sizes and divide the memory. */
static void walk_divide(struct kern_walk *walk, struct arena *arena)
{
    const struct kern_score *op = walk->op;
    size_t lanes = walk->n_panels * KERN_PANEL, blas_floats = 0;
    for (size_t h = walk->first_live; h < op->n_heads; h++) {
        const struct kern_weight *matrix = op->heads[h].matrix;
        struct kern_walk_head *head = &walk->heads[h];
        const struct kern_product *product = kern_cpu_head_product_of(walk->cpu, matrix->type);
        head->plan = kern_gemm_plan(walk->cpu, product, matrix, walk->tile_rows, walk->n_panels);
        head->packed = take(
            arena, walk->n_panels * kern_product_panel_floats(head->plan.product, matrix->n_cols));
        head->logits = take(arena, lanes * walk->tile_rows);
        head->bias = op->heads[h].bias ? take(arena, matrix->n_rows) : NULL;
        blas_floats = base_max(blas_floats, kern_blas_panel_floats(matrix));
    }
    walk->thread_floats = kern_walk_thread_floats(walk);
    walk->per_thread = take(arena, walk->thread_floats * base_pool_n_threads(walk->cpu->pool));
    walk->blas_panel = walk->cpu->sgemm ? take(arena, blas_floats) : NULL;
    walk->row_stride = walk->cpu->sgemm ? lanes : KERN_PANEL;
    walk->panel_stride = walk->cpu->sgemm ? KERN_PANEL : walk->tile_rows * KERN_PANEL;
}

/** Choose sizes; *n_floats: the scratch memory. */
static enum status walk_size(struct kern_walk *walk, const struct kern_walk_limits *limits,
                             size_t *n_floats, struct status_why *why)
{
    const struct kern_score *op = walk->op;
    *n_floats = 0;
    walk->first_live = op->heads[0].recorded ? 1 : 0;
    walk->n_vocab = op->heads[walk->first_live].matrix->n_rows;
    walk->n_panels = kern_panel_count(limits->n_rows);
    walk->tile_rows = limits->tile_rows;
    if (base_array_new(walk->heads, op->n_heads, "heads", why))
        return STATUS_MEMORY;
    struct arena arena = {0};
    walk_divide(walk, &arena);
    *n_floats = arena.used;
    return STATUS_OK;
}

size_t kern_walk_bytes(struct kern_cpu *cpu, const struct kern_score *op,
                       const struct kern_walk_limits *limits)
{
    struct kern_walk walk = {.cpu = cpu, .op = op};
    size_t n_floats;
    (void)walk_size(&walk, limits, &n_floats, NULL);
    kern_walk_close(&walk);
    return n_floats * sizeof(float);
}

enum status kern_walk_open(struct kern_walk *walk, struct kern_cpu *cpu,
                           const struct kern_score *op, const struct kern_walk_limits *limits,
                           struct status_why *why)
{
    *walk = (struct kern_walk){.cpu = cpu, .op = op};
    size_t n_floats;
    void *memory = NULL;
    enum status status = walk_size(walk, limits, &n_floats, why);
    if (!status)
        status = kern_cpu_scratch(cpu, &memory, n_floats * sizeof(float), why);
    if (status)
        return status;
    struct arena arena = {.base = memory};
    walk_divide(walk, &arena);
    for (size_t h = walk->first_live; h < op->n_heads; h++)
        if (op->heads[h].bias)
            kern_weight_take_row(cpu, op->heads[h].bias, 0, walk->heads[h].bias);
    return STATUS_OK;
}

void kern_walk_close(struct kern_walk *walk)
{
    free(walk->heads);
    *walk = (struct kern_walk){0};
}

enum status kern_walk_pack(struct kern_walk *walk, size_t first_row, size_t n_rows)
{
    walk->n_panels = kern_panel_count(n_rows);
    enum status status = STATUS_OK;
    for (size_t h = walk->first_live; !status && h < walk->op->n_heads; h++) {
        const struct kern_head *head = &walk->op->heads[h];
        size_t width = head->matrix->n_cols;
        status = kern_panels_pack(walk->cpu, walk->heads[h].plan.product,
                                  head->hidden + first_row * width, n_rows, width,
                                  walk->heads[h].packed);
    }
    return status;
}

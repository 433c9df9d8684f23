/* Recurrent layers: the host's part of kernels/recurrent/. */
#include "kernels/cuda/kernels/recurrent/recurrent.h"

#include <stdlib.h>

#include "kernels/cuda/context.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/weights/weights.h"
#include "kernels/quant/rows.h"

enum { PARENT_BYTES = 64 << 20 /* for the ends of runs that others go on from, about */ };

/** A matrix as one row, on the device. */
static enum status flat(struct kern_cuda *cuda, const struct kern_weight *weight, const float **out,
                        struct status_why *why)
{
    const struct kern_quant *quant = kern_quant_find(weight->type);
    struct kern_weight row = *weight;
    row.n_rows = 1;
    row.n_cols *= weight->n_rows;
    row.row_bytes *= weight->n_rows;
    if (kern_rows_are_copied(weight->type) ||
        weight->row_bytes != kern_quant_bytes(quant, weight->n_cols))
        return status_fail(why, STATUS_UNSUPPORTED, "convolve: rows of weights with gaps");
    return kern_cuda_vector(cuda, &row, out, why);
}

/** Tasks of at most n_tokens tokens; or, with n_tokens 0, one for each run that saves its end. */
static size_t make_tasks(const struct kern_convolve *op, size_t n_tokens,
                         struct kern_convolve_task *out)
{
    size_t n = 0;
    for (size_t i = 0; i < op->n_runs; i++) {
        if (n_tokens == 0 && op->runs[i].to >= 0)
            out[n++] = (struct kern_convolve_task){(uint32_t)i, 0};
        for (size_t t = 0; n_tokens > 0 && t < op->runs[i].n; t += n_tokens)
            out[n++] = (struct kern_convolve_task){(uint32_t)i, (uint32_t)t};
    }
    return n;
}

/** tasks: those of tokens, then n_saved for the ends. */
static enum status convolve(struct kern_cuda *cuda, const struct kern_convolve *op,
                            const struct kern_convolve_task *tasks, size_t n_tasks, size_t n_saved,
                            struct status_why *why)
{
    struct kern_convolve_args args = {.rows = kern_tap_rows_of(op), .y = op->y, .bare = op->bare};
    struct kern_cuda_array arrays[] = {
        {op->runs, op->n_runs * sizeof *op->runs, NULL},
        {tasks, (n_tasks + n_saved) * sizeof *tasks, NULL},
    };
    enum status status = flat(cuda, op->weight, &args.weights, why);
    if (!status)
        status = kern_cuda_vector(cuda, op->bias, &args.bias, why);
    if (!status)
        status = kern_cuda_tables_put(cuda, arrays, 2, why);
    if (status)
        return status;
    size_t per_task = base_div_up(op->weight->n_rows, KERN_CONVOLVE_THREADS);
    args.rows.runs = arrays[0].to;
    args.tasks = arrays[1].to;
    status = kern_cuda_run(cuda, KERN_CUDA_CONVOLVE, n_tasks * per_task, &args, why);
    args.tasks += n_tasks;
    return status ? status : kern_cuda_run(cuda, KERN_CUDA_TAPS, n_saved * per_task, &args, why);
}

enum status kern_cuda_convolve(struct kern_backend *b, const struct kern_convolve *op,
                               struct status_why *why)
{
    size_t most = op->n_runs;
    for (size_t i = 0; i < op->n_runs; i++)
        most += base_div_up(op->runs[i].n, KERN_CONVOLVE_TOKENS);
    struct kern_convolve_task *tasks = malloc(most * sizeof *tasks);
    if (!tasks)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu runs", op->n_runs);
    size_t n_tasks = make_tasks(op, KERN_CONVOLVE_TOKENS, tasks);
    size_t n_saved = make_tasks(op, 0, tasks + n_tasks);
    enum status status = convolve(kern_cuda_of(b), op, tasks, n_tasks, n_saved, why);
    free(tasks);
    return status;
}

/** Blocks of a family. */
static size_t family_blocks(const struct kern_recur *op)
{
    return op->n_heads * kern_recur_n_groups(op);
}

/** How many families a launch takes, where runs have parents; at least 1. */
static size_t families_at_a_time(const struct kern_recur *op)
{
    size_t bytes = family_blocks(op) * kern_recur_record_floats(op) * sizeof(float);
    return base_max(PARENT_BYTES / bytes, 1);
}

/** Bytes of the ends of runs that others go on from. */
static size_t parent_bytes(const struct kern_recur *op, size_t n_families)
{
    n_families = base_min(n_families, families_at_a_time(op));
    return n_families * family_blocks(op) * kern_recur_record_floats(op) * sizeof(float);
}

size_t kern_cuda_recur_bytes(struct kern_backend *b, const struct kern_recur *op)
{
    (void)b;
    return parent_bytes(op, op->n_runs / 2) + (op->n_runs + 1) * (sizeof *op->runs + 4) + 512;
}

/** families: n_families + 1 numbers of runs. */
static enum status recur(struct kern_cuda *cuda, const struct kern_recur *op,
                         const uint32_t *families, size_t n_families, struct status_why *why)
{
    bool parents = n_families < op->n_runs;
    struct kern_recur_args args = {.op = *op};
    struct kern_cuda_array arrays[] = {
        {op->runs, op->n_runs * sizeof *op->runs, NULL},
        {families, (n_families + 1) * sizeof *families, NULL},
    };
    struct kern_cuda_array ends = {NULL, parents ? parent_bytes(op, n_families) : 0, NULL};
    enum status status = kern_cuda_vector(cuda, op->dt_bias, &args.dt_bias, why);
    if (!status)
        status = kern_cuda_vector(cuda, op->decay, &args.decay, why);
    if (!status)
        status = kern_cuda_vector(cuda, op->skip, &args.skip, why);
    if (!status)
        status = kern_cuda_tables_put(cuda, arrays, 2, why);
    if (!status && parents)
        status = kern_cuda_scratch_put(cuda, &ends, 1, why);
    args.op.runs = arrays[0].to;
    args.families = arrays[1].to;
    args.parents = ends.to;
    size_t n_at_a_time = parents ? families_at_a_time(op) : n_families;
    for (size_t i = 0; !status && i < n_families; i += n_at_a_time) {
        const struct kern_cuda_launch launch = {
            .kernel = op->by_channel ? KERN_CUDA_RECUR_STEPS : KERN_CUDA_RECUR,
            .n_blocks = base_min(n_families - i, n_at_a_time) * family_blocks(op),
            .shared_bytes = kern_cuda_recur_shared(op->k_size, op->by_channel),
            .args = &args,
        };
        status = kern_cuda_run_launch(cuda, &launch, why);
        args.families += n_at_a_time;
    }
    return status;
}

enum status kern_cuda_recur(struct kern_backend *b, const struct kern_recur *op,
                            struct status_why *why)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    if (kern_cuda_recur_shared(op->k_size, op->by_channel) > cuda->device->shared_bytes)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "recurrent heads with keys of %zu elements do not fit this device's "
                           "shared memory; --device cpu takes any",
                           op->k_size);
    uint32_t *families = malloc((op->n_runs + 1) * sizeof *families);
    size_t n_families = 0;
    if (!families || op->n_runs >= UINT32_MAX) {
        free(families);
        return status_fail(why, STATUS_MEMORY, "no memory for %zu runs", op->n_runs);
    }
    for (size_t i = 0; i < op->n_runs; i++)
        if (op->runs[i].parent == KERN_NONE)
            families[n_families++] = (uint32_t)i;
    families[n_families] = (uint32_t)op->n_runs;
    enum status status = recur(cuda, op, families, n_families, why);
    free(families);
    return status;
}

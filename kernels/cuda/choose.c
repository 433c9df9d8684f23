/* Choosing keys: the host's part of kernels/choose.h. */
#include "kernels/cuda/kernels/choose.h"

#include <stdlib.h>

#include "kernels/cuda/context.h"
#include "kernels/cuda/operations.h"

/** Scores on the device at a time, unless those of one task are more. */
static const size_t score_bytes = (size_t)64 << 20;

/** Bytes of the scores of a task. */
static size_t task_bytes(const struct kern_choose *op)
{
    return kern_choose_sets(op) * KERN_CHOOSE_QUERIES * kern_choose_most(op) * sizeof(float);
}

/** Tasks whose scores are on the device at a time. */
static size_t tasks_at_once(const struct kern_choose *op)
{
    return base_max(1, score_bytes / base_max(1, task_bytes(op)));
}

/** The tasks that ranges make, in host memory, and what the arrays hold. */
struct tasks {
    struct kern_attention_task *all; /* free() */
    size_t n, n_rows, n_seen;        /* tasks; rows of q; the most keys that a query sees */
};

static enum status make_tasks(const struct kern_choose *op, struct tasks *tasks,
                              struct status_why *why)
{
    for (size_t i = 0; i < op->n_ranges; i++)
        tasks->n += base_div_up(op->ranges[i].n_q, KERN_CHOOSE_QUERIES);
    struct kern_attention_task *task = tasks->all = malloc((tasks->n + 1) * sizeof *task);
    if (!task || op->n_ranges > UINT32_MAX)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu ranges", op->n_ranges);
    for (size_t i = 0; i < op->n_ranges; i++) {
        const struct kern_query_range *range = &op->ranges[i];
        tasks->n_rows = base_max(tasks->n_rows, range->q_row + range->n_q);
        for (size_t q = 0; q < range->n_q; q++)
            tasks->n_seen =
                base_max(tasks->n_seen, kern_choose_seen(op, range, q) / kern_choose_pool(op));
        for (size_t q = 0; q < range->n_q; q += KERN_CHOOSE_QUERIES)
            *task++ = (struct kern_attention_task){.range = (uint32_t)i, .first = (uint32_t)q};
    }
    return STATUS_OK;
}

/** Scores, then choices, of as many tasks as there is room for, until all are done. */
static enum status run(struct kern_cuda *cuda, const struct kern_choose *op,
                       const struct tasks *tasks, struct status_why *why)
{
    size_t at_once = base_min(tasks_at_once(op), tasks->n), n_sets = kern_choose_sets(op);
    struct kern_cuda_array arrays[] = {
        {op->ranges, op->n_ranges * sizeof *op->ranges, NULL},
        {tasks->all, tasks->n * sizeof *tasks->all, NULL},
        {op->n_seen, op->n_seen ? tasks->n_rows * sizeof *op->n_seen : 0, NULL},
    };
    struct kern_cuda_array scores = {NULL, at_once * task_bytes(op), NULL};
    enum status status = kern_cuda_tables_put(cuda, arrays, 3, why);
    if (!status)
        status = kern_cuda_scratch_put(cuda, &scores, 1, why);
    struct kern_choose_args args = {
        .q = op->q,
        .k = op->k,
        .weights = op->weights,
        .bits = op->bits,
        .scores = scores.to,
        .n_heads = op->n_heads,
        .n_sets = n_sets,
        .head_size = op->head_size,
        .k_stride = op->k_stride,
        .as_one = op->as_one,
        .fill = op->fill,
        .n_best = op->n_best,
        .pool = kern_choose_pool(op),
        .together = op->together,
        .n_local = op->n_local,
        .most_keys = kern_choose_most(op),
        .n_words = kern_chosen_words(op->most_keys),
        .n_seen = arrays[2].to,
        .ranges = arrays[0].to,
        .n_tiles = base_div_up(tasks->n_seen, KERN_CHOOSE_KEYS),
    };
    for (size_t i = 0; i < tasks->n && !status; i += at_once) {
        size_t n = base_min(tasks->n - i, at_once) * n_sets;
        args.tasks = (const struct kern_attention_task *)arrays[1].to + i;
        if (op->n_best > 0 && args.n_tiles > 0)
            status = kern_cuda_run(cuda, KERN_CUDA_CHOOSE_SCORES, n * args.n_tiles, &args, why);
        if (!status)
            status = kern_cuda_run(cuda, KERN_CUDA_CHOOSE, n * KERN_CHOOSE_QUERIES, &args, why);
    }
    return status;
}

size_t kern_cuda_choose_bytes(struct kern_backend *b, const struct kern_choose *op)
{
    (void)b;
    return tasks_at_once(op) * task_bytes(op) +
           op->n_ranges *
               (sizeof *op->ranges + sizeof(struct kern_attention_task) + sizeof *op->n_seen);
}

enum status kern_cuda_choose(struct kern_backend *b, const struct kern_choose *op,
                             struct status_why *why)
{
    struct tasks tasks = {0};
    enum status status = make_tasks(op, &tasks, why);
    if (!status && tasks.n > 0)
        status = run(kern_cuda_of(b), op, &tasks, why);
    free(tasks.all);
    return status;
}

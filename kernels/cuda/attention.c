/* Attention: the host's part of k_attention.h. */
#include "kernels/cuda/k_attention.h"

#include <stdlib.h>

#include "kernels/cuda/context.h"

/** Spans and the tasks that they make, in host memory; free(*out). */
static enum status make_tasks(const struct kern_attention *op, struct kern_attention_task **out,
                              size_t *n_tasks, struct status_why *why)
{
    *n_tasks = 0;
    for (size_t i = 0; i < op->n_spans; i++)
        *n_tasks += kern_cuda_divide_up(op->spans[i].n_q, KERN_ATTENTION_QUERIES);
    struct kern_attention_task *task = *out = malloc((*n_tasks + 1) * sizeof **out);
    if (!task || op->n_spans > UINT32_MAX)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu spans", op->n_spans);
    for (size_t i = 0; i < op->n_spans; i++) {
        for (size_t first = 0; first < op->spans[i].n_q; first += KERN_ATTENTION_QUERIES)
            *task++ = (struct kern_attention_task){(uint32_t)i, (uint32_t)first};
    }
    return STATUS_OK;
}

static enum status launch(struct kern_cuda *cuda, const struct kern_attention *op,
                          const struct kern_attention_task *tasks, size_t n_tasks,
                          struct status_why *why)
{
    struct kern_cuda_arena arena = {0};
    size_t span_bytes = op->n_spans * sizeof *op->spans, task_bytes = n_tasks * sizeof *tasks;
    void *spans = NULL, *to_tasks = NULL, *memory = NULL;
    enum status status = STATUS_OK;
    for (int pass = 0; status == STATUS_OK && pass < 2; pass++) {
        arena = (struct kern_cuda_arena){.base = memory};
        spans = kern_cuda_take(&arena, span_bytes);
        to_tasks = kern_cuda_take(&arena, task_bytes);
        if (pass == 0)
            status = kern_cuda_scratch(cuda, &memory, arena.used, why);
    }
    if (status == STATUS_OK)
        status = kern_cuda_put(cuda, spans, op->spans, span_bytes, why);
    if (status == STATUS_OK)
        status = kern_cuda_put(cuda, to_tasks, tasks, task_bytes, why);
    if (status != STATUS_OK)
        return status;
    struct kern_attention_args args = {
        .q = op->q,
        .k = op->k,
        .v = op->v,
        .out = op->out,
        .n_heads = op->n_heads,
        .n_kv_heads = op->n_kv_heads,
        .head_size = op->head_size,
        .scale = op->scale,
        .sliding_window = op->sliding_window,
        .spans = spans,
        .tasks = to_tasks,
    };
    return kern_cuda_run(cuda, KERN_CUDA_ATTENTION, n_tasks * op->n_heads,
                         kern_cuda_attention_shared(op->head_size), &args, why);
}

enum status kern_cuda_attention(struct kern_backend *b, const struct kern_attention *op,
                                struct status_why *why)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    if (op->head_size > KERN_ATTENTION_DIMS * KERN_ATTENTION_CHUNKS ||
        kern_cuda_attention_shared(op->head_size) > cuda->device->shared_bytes)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "heads of %zu elements do not fit this device's attention, which takes "
                           "up to %d; --device cpu takes any",
                           op->head_size, KERN_ATTENTION_DIMS * KERN_ATTENTION_CHUNKS);
    struct kern_attention_task *tasks;
    size_t n_tasks;
    enum status status = make_tasks(op, &tasks, &n_tasks, why);
    if (status == STATUS_OK)
        status = launch(cuda, op, tasks, n_tasks, why);
    free(tasks);
    return status;
}

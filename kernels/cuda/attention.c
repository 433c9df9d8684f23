/* Attention: the host's part of kernels/attention.h and kernels/flash.h. */
#include "kernels/cuda/kernels/attention.h"
#include "kernels/cuda/kernels/flash.h"

#include <stdlib.h>

#include "kernels/cuda/context.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/weights/weights.h"

/** Which kernel attends to an operation's heads, with how many queries per block. */
struct choice {
    enum kern_cuda_kernel kernel;
    size_t shared_bytes, n_queries;
    unsigned n_parts; /* blocks for the values of a head */
};

/**
 * `exact` has the CPU's chains; elsewhere tensor cores serve, if the device has the shared memory.
 * Numbers of two parts are short of what `high` promises, those of one of what a score needs.
 */
static struct choice choose(const struct kern_cuda *cuda, const struct kern_attention *op)
{
    size_t most = base_max(op->head_size, op->value_size);
    static const struct {
        enum kern_precision precision;
        enum kern_cuda_kernel kernel;
        size_t dims, parts;
    } flash[] = {
        {KERN_PRECISION_FAST, KERN_CUDA_FLASH2_64, 64, 2},
        {KERN_PRECISION_FAST, KERN_CUDA_FLASH2_128, 128, 2},
        {KERN_PRECISION_FAST, KERN_CUDA_FLASH2_256, 256, 2},
        {KERN_PRECISION_HIGH, KERN_CUDA_FLASH3_64, 64, 3},
        {KERN_PRECISION_HIGH, KERN_CUDA_FLASH3_128, 128, 3},
        {KERN_PRECISION_HIGH, KERN_CUDA_FLASH3_256, 256, 3},
    };
    for (size_t i = 0; i < sizeof flash / sizeof *flash; i++) {
        size_t shared_bytes = kern_cuda_flash_shared(flash[i].dims, flash[i].parts);
        if (cuda->options.precision == flash[i].precision && most <= flash[i].dims &&
            op->further.run == 0 && shared_bytes <= cuda->device->shared_bytes)
            return (struct choice){flash[i].kernel, shared_bytes, KERN_FLASH_QUERIES, 1};
    }
    return (struct choice){KERN_CUDA_ATTENTION, kern_cuda_attention_shared(op->head_size),
                           KERN_ATTENTION_QUERIES,
                           (unsigned)base_div_up(op->value_size, KERN_ATTENTION_MOST)};
}

/**
 * The tasks that ranges make, in host memory; free(*out). The last queries of a range see the most
 * keys, so they come first.
 */
static enum status make_tasks(const struct kern_attention *op, size_t n_queries,
                              struct kern_attention_task **out, size_t *n_tasks,
                              struct status_why *why)
{
    *n_tasks = 0;
    for (size_t i = 0; i < op->n_ranges; i++)
        *n_tasks += base_div_up(op->ranges[i].n_q, n_queries);
    struct kern_attention_task *task = *out = malloc((*n_tasks + 1) * sizeof **out);
    if (!task || op->n_ranges > UINT32_MAX)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu ranges", op->n_ranges);
    for (size_t i = 0; i < op->n_ranges; i++)
        for (size_t k = base_div_up(op->ranges[i].n_q, n_queries); k > 0; k--)
            *task++ = (struct kern_attention_task){(uint32_t)i, (uint32_t)((k - 1) * n_queries)};
    return STATUS_OK;
}

static enum status run(struct kern_cuda *cuda, const struct kern_attention *op,
                       const struct choice *choice, const struct kern_attention_task *tasks,
                       size_t n_tasks, struct status_why *why)
{
    struct kern_cuda_array arrays[] = {
        {op->ranges, op->n_ranges * sizeof *op->ranges, NULL},
        {tasks, n_tasks * sizeof *tasks, NULL},
        {op->further.ranges, op->further.run ? op->n_ranges * sizeof *op->ranges : 0, NULL},
    };
    const float *sinks;
    enum status status = kern_cuda_vector(cuda, op->sinks, &sinks, why);
    if (!status)
        status = kern_cuda_tables_put(cuda, arrays, 3, why);
    if (status)
        return status;
    struct kern_attention_args args = {
        .q = op->q,
        .k = op->k,
        .v = op->v,
        .out = op->out,
        .n_heads = op->n_heads,
        .n_kv_heads = op->n_kv_heads,
        .head_size = op->head_size,
        .value_size = op->value_size,
        .scale = op->scale,
        .soft_cap = op->soft_cap,
        .inverse_cap = 1.0f / op->soft_cap,
        .sliding_window = op->sliding_window,
        .chunk = op->chunk > UINT32_MAX ? 0 : (uint32_t)op->chunk,
        .sinks = sinks,
        .chosen = op->chosen.bits,
        .chosen_sets = op->chosen.n_sets,
        .chosen_words = kern_chosen_words(op->chosen.most_keys),
        .further_k = op->further.k,
        .further_v = op->further.v,
        .further_ranges = arrays[2].to,
        .further_run = (uint32_t)op->further.run,
        .ranges = arrays[0].to,
        .tasks = arrays[1].to,
        .n_parts = choice->n_parts,
    };
    const struct kern_cuda_launch launch = {
        .kernel = choice->kernel,
        .n_blocks = n_tasks * op->n_heads * choice->n_parts,
        .shared_bytes = choice->shared_bytes,
        .args = &args,
    };
    return kern_cuda_run_launch(cuda, &launch, why);
}

/** Room for a task for each range: long ranges have more tasks, and they are small beside all else.
 */
size_t kern_cuda_attention_bytes(struct kern_backend *b, const struct kern_attention *op)
{
    (void)b;
    return op->n_ranges * (2 * sizeof *op->ranges + sizeof(struct kern_attention_task));
}

enum status kern_cuda_attention(struct kern_backend *b, const struct kern_attention *op,
                                struct status_why *why)
{
    struct kern_cuda *cuda = kern_cuda_of(b);
    struct choice choice = choose(cuda, op);
    if (choice.shared_bytes > cuda->device->shared_bytes)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "attention with heads of %zu elements takes %zu bytes of a "
                           "multiprocessor's shared memory; this device has %zu",
                           op->head_size, choice.shared_bytes, cuda->device->shared_bytes);
    struct kern_attention_task *tasks;
    size_t n_tasks;
    enum status status = make_tasks(op, choice.n_queries, &tasks, &n_tasks, why);
    if (!status)
        status = run(cuda, op, &choice, tasks, n_tasks, why);
    free(tasks);
    return status;
}

/* Attention: the host's part of kernels/attention.h and kernels/flash/. */
#include "kernels/cuda/kernels/attention.h"
#include "kernels/cuda/kernels/flash/flash.h"
#include "kernels/cuda/kernels/flash/parts.h"

#include <stdlib.h>

#include "kernels/cuda/context.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/weights/weights.h"

/** Which kernel attends to an operation's heads, with how many queries and heads per block. */
struct choice {
    enum kern_cuda_kernel kernel;
    size_t shared_bytes, n_queries, group_heads;
    unsigned n_parts;     /* blocks for the values of a head */
    uint32_t dims, split; /* of flash.h: padded elements of a head, parts of a number; else 0 */
    size_t room; /* bytes of keys and values in parts at a time, unless a range's head needs more */
};

/** Bytes of KERN_FLASH_KEYS keys of a head, and their values, in parts; or 0. */
static size_t block_bytes(const struct choice *choice)
{
    return 2 * sizeof(struct kern_bytes16) * kern_flash_pieces(choice->dims, choice->split);
}

/**
 * `exact` has the CPU's chains; elsewhere tensor cores serve, if the device has the shared memory.
 * Numbers of two parts are short of what `high` promises, those of one of what a score needs. With
 * two tiles for each warp these are of two heads with the same keys, where heads come in pairs.
 */
static struct choice choose(const struct kern_cuda *cuda, const struct kern_attention *op)
{
    size_t most = base_max(op->head_size, op->value_size);
    static const struct {
        enum kern_precision precision;
        enum kern_cuda_kernel kernel;
        uint32_t dims, parts;
        unsigned tiles;
    } flash[] = {
        {KERN_PRECISION_FAST, KERN_CUDA_FLASH2_64, 64, 2, 2},
        {KERN_PRECISION_FAST, KERN_CUDA_FLASH2_128, 128, 2, 2},
        {KERN_PRECISION_FAST, KERN_CUDA_FLASH2_256, 256, 2, 1},
        {KERN_PRECISION_HIGH, KERN_CUDA_FLASH3_64, 64, 3, 2},
        {KERN_PRECISION_HIGH, KERN_CUDA_FLASH3_128, 128, 3, 2},
        {KERN_PRECISION_HIGH, KERN_CUDA_FLASH3_128_ONE, 128, 3, 1},
        {KERN_PRECISION_HIGH, KERN_CUDA_FLASH3_256, 256, 3, 1},
    };
    for (size_t i = 0; i < sizeof flash / sizeof *flash; i++) {
        unsigned tiles = flash[i].tiles;
        size_t shared_bytes = kern_cuda_flash_shared(flash[i].dims, flash[i].parts, tiles);
        if (cuda->options.precision != flash[i].precision || most > flash[i].dims ||
            op->further.run > 0 || shared_bytes > cuda->device->shared_bytes)
            continue;
        bool even = op->n_heads / op->n_kv_heads % 2 == 0;
        size_t group_heads = even ? tiles : 1;
        return (struct choice){.kernel = flash[i].kernel,
                               .shared_bytes = shared_bytes,
                               .n_queries = kern_flash_n_queries(tiles, group_heads),
                               .group_heads = group_heads,
                               .n_parts = 1,
                               .dims = flash[i].dims,
                               .split = flash[i].parts,
                               .room = cuda->options.parts_bytes};
    }
    return (struct choice){.kernel = KERN_CUDA_ATTENTION,
                           .shared_bytes = kern_cuda_attention_shared(op->head_size),
                           .n_queries = KERN_ATTENTION_QUERIES,
                           .group_heads = 1,
                           .n_parts = (unsigned)base_div_up(op->value_size, KERN_ATTENTION_MOST)};
}

/** What is launched together: tasks, and blocks of keys, before these. */
struct chunk {
    size_t task_end, block_end;
};

/** Tasks of queries, followed by the blocks of keys that are split into parts for them. */
struct plan {
    struct kern_attention_task *tasks; /* free() */
    struct chunk *chunks;              /* free() */
    size_t n_tasks, n_blocks, n_chunks;
};

/** The chunk as the kernels have it; 0: there is none, or no row of keys is as long. */
static uint32_t chunk_of(const struct kern_attention *op)
{
    return op->chunk > UINT32_MAX ? 0 : (uint32_t)op->chunk;
}

/** The first key that a block with the range's query `from` and later ones needs. */
static size_t first_key(const struct kern_attention *op, const struct kern_query_range *range,
                        size_t from)
{
    const struct kern_attention_args args = {
        .sliding_window = op->sliding_window,
        .chunk = chunk_of(op),
    };
    const struct kern_attention_view view = {.a = &args};
    size_t own = range->n_parent + range->q_offset + from;
    return kern_attention_window_begin(&view, own) / KERN_FLASH_KEYS * KERN_FLASH_KEYS;
}

/** How many blocks of keys are split for a range. */
static size_t blocks_of(const struct kern_attention *op, const struct choice *choice, size_t range)
{
    const struct kern_query_range *of = &op->ranges[range];
    if (choice->split == 0 || of->n_q == 0)
        return 0;
    size_t end = of->n_parent + of->q_offset + of->n_q;
    return base_div_up(end - first_key(op, of, 0), KERN_FLASH_KEYS);
}

/**
 * The tasks of a range, whose keys are split from the chunk's block `parts` on. Its last queries
 * see the most keys, so they come first. Returns where the next task goes.
 */
static struct kern_attention_task *put_tasks(const struct kern_attention *op,
                                             const struct choice *choice, size_t range,
                                             size_t parts, struct kern_attention_task *to)
{
    const struct kern_query_range *of = &op->ranges[range];
    for (size_t k = base_div_up(of->n_q, choice->n_queries); k > 0; k--) {
        size_t from = (k - 1) * choice->n_queries;
        size_t before = (first_key(op, of, from) - first_key(op, of, 0)) / KERN_FLASH_KEYS;
        *to++ = (struct kern_attention_task){(uint32_t)range, (uint32_t)from,
                                             (uint32_t)(parts + before)};
    }
    return to;
}

/** A chunk has as many ranges as have room for one head's parts, at least one. */
static void fill(const struct kern_attention *op, const struct choice *choice, struct plan *plan)
{
    struct kern_attention_task *task = plan->tasks, *blocks = plan->tasks + plan->n_tasks;
    size_t most = choice->split ? choice->room / block_bytes(choice) : 0, done = 0, first = 0;
    for (size_t i = 0; i < op->n_ranges; i++) {
        size_t n = blocks_of(op, choice, i), key = first_key(op, &op->ranges[i], 0);
        if (done > first && done + n > first + most) {
            plan->n_chunks++;
            first = done;
        }
        task = put_tasks(op, choice, i, done - first, task);
        for (; n > 0; n--, key += KERN_FLASH_KEYS)
            blocks[done++] = (struct kern_attention_task){(uint32_t)i, (uint32_t)key, 0};
        plan->chunks[plan->n_chunks] = (struct chunk){(size_t)(task - plan->tasks), done};
    }
    plan->n_chunks += op->n_ranges > 0;
}

static void close_plan(struct plan *plan)
{
    free(plan->tasks);
    free(plan->chunks);
}

static enum status make_plan(const struct kern_attention *op, const struct choice *choice,
                             struct plan *plan, struct status_why *why)
{
    *plan = (struct plan){0};
    for (size_t i = 0; i < op->n_ranges; i++) {
        plan->n_tasks += base_div_up(op->ranges[i].n_q, choice->n_queries);
        plan->n_blocks += blocks_of(op, choice, i);
    }
    plan->tasks = malloc((plan->n_tasks + plan->n_blocks + 1) * sizeof *plan->tasks);
    plan->chunks = malloc((op->n_ranges + 1) * sizeof *plan->chunks);
    if (!plan->tasks || !plan->chunks || op->n_ranges > UINT32_MAX)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu ranges", op->n_ranges);
    fill(op, choice, plan);
    return STATUS_OK;
}

/** How many heads of keys and values a chunk with so many blocks of keys has room for. */
static size_t heads_at_once(const struct kern_attention *op, const struct choice *choice,
                            size_t n_blocks)
{
    size_t bytes = base_max(1, n_blocks * block_bytes(choice));
    return base_min(base_max(1, choice->room / bytes), op->n_kv_heads);
}

/** The attention of heads of keys and values from first_head on, in the chunk of args. */
static enum status run_heads(struct kern_cuda *cuda, const struct choice *choice,
                             struct kern_attention_args *args, size_t n_tasks, size_t n_kv_heads,
                             struct status_why *why)
{
    args->n_groups = n_kv_heads * (args->n_heads / args->n_kv_heads) / args->group_heads;
    const struct kern_cuda_launch launch = {
        .kernel = choice->kernel,
        .n_blocks = n_tasks * args->n_groups * choice->n_parts,
        .shared_bytes = choice->shared_bytes,
        .args = args,
    };
    return kern_cuda_run_launch(cuda, &launch, why);
}

/** Run heads whose keys and values are split before; blocks: of keys, on the device. */
static enum status run_in_parts(struct kern_cuda *cuda, const struct choice *choice,
                                struct kern_attention_args *args, size_t n_tasks,
                                const struct kern_attention_task *blocks, size_t n_kv_heads,
                                struct status_why *why)
{
    const struct kern_parts_args split = {
        .of = *args,
        .tasks = blocks,
        .to = (struct kern_bytes16 *)(uintptr_t)args->parts,
        .first_head = args->first_head / (args->n_heads / args->n_kv_heads),
        .n_blocks = args->n_blocks,
        .dims = choice->dims,
        .n_parts = choice->split,
    };
    enum status status =
        kern_cuda_run(cuda, KERN_CUDA_PARTS, n_kv_heads * args->n_blocks, &split, why);
    return status ? status : run_heads(cuda, choice, args, n_tasks, n_kv_heads, why);
}

/** Chunk after chunk, and in each as many heads as there is room for. */
static enum status run_chunks(struct kern_cuda *cuda, const struct kern_attention *op,
                              const struct choice *choice, const struct plan *plan,
                              struct kern_attention_args *args, struct status_why *why)
{
    const struct kern_attention_task *tasks = args->tasks, *blocks = tasks + plan->n_tasks;
    struct chunk from = {0, 0};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < plan->n_chunks; from = plan->chunks[i++]) {
        size_t n_tasks = plan->chunks[i].task_end - from.task_end;
        args->tasks = tasks + from.task_end;
        args->n_blocks = plan->chunks[i].block_end - from.block_end;
        size_t at_once = heads_at_once(op, choice, args->n_blocks);
        for (size_t head = 0; head < op->n_kv_heads && !status; head += at_once) {
            size_t n = base_min(at_once, op->n_kv_heads - head);
            args->first_head = head * (op->n_heads / op->n_kv_heads);
            status = choice->split ? run_in_parts(cuda, choice, args, n_tasks,
                                                  blocks + from.block_end, n, why)
                                   : run_heads(cuda, choice, args, n_tasks, n, why);
        }
    }
    return status;
}

static struct kern_attention_args args_of(const struct kern_attention *op,
                                          const struct choice *choice)
{
    return (struct kern_attention_args){
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
        .chunk = chunk_of(op),
        .chosen = op->chosen.bits,
        .chosen_sets = op->chosen.n_sets,
        .chosen_words = kern_chosen_words(op->chosen.most_keys),
        .further_k = op->further.k,
        .further_v = op->further.v,
        .further_run = (uint32_t)op->further.run,
        .n_parts = choice->n_parts,
        .group_heads = choice->group_heads,
    };
}

/** Bytes of keys and values in parts at a time, the most of any chunk. */
static size_t most_parts(const struct kern_attention *op, const struct choice *choice,
                         const struct plan *plan)
{
    size_t most = 0, before = 0;
    for (size_t i = 0; i < plan->n_chunks; before = plan->chunks[i++].block_end) {
        size_t n = plan->chunks[i].block_end - before;
        most = base_max(most, n * heads_at_once(op, choice, n));
    }
    return most * block_bytes(choice);
}

static enum status run(struct kern_cuda *cuda, const struct kern_attention *op,
                       const struct choice *choice, const struct plan *plan, struct status_why *why)
{
    struct kern_cuda_array arrays[] = {
        {op->ranges, op->n_ranges * sizeof *op->ranges, NULL},
        {plan->tasks, (plan->n_tasks + plan->n_blocks) * sizeof *plan->tasks, NULL},
        {op->further.ranges, op->further.run ? op->n_ranges * sizeof *op->ranges : 0, NULL},
    };
    struct kern_attention_args args = args_of(op, choice);
    void *parts;
    enum status status = kern_cuda_vector(cuda, op->sinks, &args.sinks, why);
    if (!status)
        status = kern_cuda_tables_put(cuda, arrays, 3, why);
    if (!status)
        status = kern_cuda_scratch(cuda, &parts, most_parts(op, choice, plan), why);
    if (status)
        return status;
    args.ranges = arrays[0].to;
    args.tasks = arrays[1].to;
    args.further_ranges = arrays[2].to;
    args.parts = parts;
    return run_chunks(cuda, op, choice, plan, &args, why);
}

/** Room for a task for each range: long ranges have more tasks, and they are small beside all else.
 */
size_t kern_cuda_attention_bytes(struct kern_backend *b, const struct kern_attention *op)
{
    struct choice choice = choose(kern_cuda_of(b), op);
    return op->n_ranges * (2 * sizeof *op->ranges + sizeof(struct kern_attention_task)) +
           choice.room;
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
    struct plan plan;
    enum status status = make_plan(op, &choice, &plan, why);
    if (!status)
        status = run(cuda, op, &choice, &plan, why);
    close_plan(&plan);
    return status;
}

/*
 * Attention: queries are lanes, keys and values are broadcast. A task is a few blocks of
 * queries of one range and all heads that share a key head; it walks the keys once, a block at
 * a time: scores, online softmax, then values added up. Each output is a function of its own
 * query and the keys it sees, in the order of the keys.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/attention/products.h"

enum {
    GROUPS = KERN_PANEL / KERN_LANES,
    SHARING = 4 /* at least so many blocks of queries use a block of keys once it is gathered */
};

/** KERN_PANEL consecutive queries of a range under one head, and what is known of them so far. */
struct query_block {
    _Alignas(64) float max[KERN_PANEL], sum[KERN_PANEL]; /* see kern_softmax_block */
    float *q;                                            /* the queries, packed */
    float *out;                                          /* panel array [d]: sums of p * v */
    size_t first, n;                                     /* queries of the range */
    size_t head;
    size_t key_begin, key_end; /* seen by any of the queries; by index, see backend.h */
};

struct attention {
    const struct kern_cpu *cpu;
    const struct kern_attention *op;
    size_t n_shared;    /* query blocks per task and head */
    size_t *first_task; /* per range: tasks in the ranges before it; one more at the end */
    char *per_thread;
    size_t thread_bytes;
};

/** One task, with the memory of the thread that does it. */
struct attention_task {
    const struct attention *job;
    const struct kern_query_range *range;
    size_t kv_head;
    struct query_block *blocks;
    size_t n_blocks;
    struct kern_key_block keys; /* the current ones; their scores become probabilities */
    float *spare;               /* panel array [2 d] */
    bool careful;               /* hidden values may not be finite: see add_values_carefully() */
};

/** The keys that each lane sees, relative to the first current key. */
struct visible {
    size_t key; /* the first current one */
    int32_t begin[KERN_PANEL], end[KERN_PANEL];
};

/** First key that the query with this key index sees. */
static size_t window_begin(const struct kern_attention *op, size_t query)
{
    size_t w = op->sliding_window;
    return w > 0 && query + 1 > w ? query + 1 - w : 0;
}

/** Index of the own key of a query of the range. */
static size_t query_key(const struct kern_query_range *range, size_t query)
{
    return range->n_parent + range->q_offset + query;
}

static void find_visible(struct visible *visible, const struct attention_task *task,
                         const struct query_block *block, size_t key, size_t n_keys)
{
    visible->key = key;
    for (size_t lane = 0; lane < KERN_PANEL; lane++) {
        size_t begin = 0, end = 0;
        if (lane < block->n) {
            size_t query = query_key(task->range, block->first + lane);
            begin = base_max(window_begin(task->job->op, query), key) - key;
            end = base_min(base_max(query + 1, key) - key, n_keys);
        }
        visible->begin[lane] = (int32_t)base_min(begin, n_keys);
        visible->end[lane] = (int32_t)end;
    }
}

/** Where a key and its value begin in op->k and op->v: in the parent or in the segment. */
static size_t key_offset(const struct attention_task *task, size_t key)
{
    const struct kern_attention *op = task->job->op;
    const struct kern_query_range *range = task->range;
    size_t row =
        key < range->n_parent ? range->parent_kv_row + key : range->kv_row + key - range->n_parent;
    return (row * op->n_kv_heads + task->kv_head) * op->head_size;
}

/** Copy keys key .. key + n_keys - 1 and their values side by side. */
static void gather_keys(const struct attention_task *task, size_t key, size_t n_keys)
{
    const struct kern_attention *op = task->job->op;
    const struct kern_key_block *keys = &task->keys;
    for (size_t j = 0; j < n_keys; j++) {
        size_t offset = key_offset(task, key + j), n_bytes = op->head_size * sizeof(float);
        memcpy(keys->k + j * keys->stride, op->k + offset, n_bytes);
        memcpy(keys->v + j * keys->stride, op->v + offset, n_bytes);
    }
    kern_key_block_pack(keys, n_keys);
}

/** Gather the current values again, with zeros for those that a lane does not see. */
static void gather_seen_values(const struct attention_task *task, size_t n_keys,
                               const struct visible *visible, size_t lane)
{
    const struct kern_attention *op = task->job->op;
    const struct kern_key_block *keys = &task->keys;
    for (size_t j = 0; j < n_keys; j++) {
        size_t n_bytes = op->head_size * sizeof(float);
        float *v = keys->v + j * keys->stride;
        if ((int32_t)j < visible->begin[lane] || (int32_t)j >= visible->end[lane])
            memset(v, 0, n_bytes);
        else
            memcpy(v, op->v + key_offset(task, visible->key + j), n_bytes);
    }
    kern_key_block_pack(keys, n_keys);
}

/**
 * Add the current values where some are not finite: 0 times a value that a query must not see
 * would be NaN. Each query that does not see all values gets its own product, with zeros for the
 * hidden ones. The bits are those that finite hidden values would give.
 */
static void add_values_carefully(const struct attention_task *task, struct query_block *block,
                                 size_t n_keys, const struct visible *visible)
{
    size_t d = task->job->op->head_size, panel = d * KERN_PANEL * sizeof(float);
    float *before = task->spare, *sums = task->spare + d * KERN_PANEL;
    memcpy(before, block->out, panel);
    kern_key_block_multiply_values(&task->keys, n_keys, block->out);
    for (size_t lane = 0; lane < block->n; lane++) {
        if (visible->begin[lane] == 0 && visible->end[lane] == (int32_t)n_keys)
            continue;
        gather_seen_values(task, n_keys, visible, lane);
        memcpy(sums, before, panel);
        kern_key_block_multiply_values(&task->keys, n_keys, sums);
        for (size_t i = 0; i < d; i++)
            block->out[i * KERN_PANEL + lane] = sums[i * KERN_PANEL + lane];
    }
}

/** Online softmax of the scores; what was summed before is brought to the new maximum. */
static void softmax_and_rescale(const struct attention_task *task, struct query_block *block,
                                size_t n_keys, const struct visible *visible)
{
    const struct kern_kernels *kernels = &task->job->cpu->kernels;
    _Alignas(64) float rescale[KERN_PANEL];
    for (size_t group = 0; group < GROUPS; group++) {
        size_t lane = group * KERN_LANES;
        kernels->ops.softmax_block(&(struct kern_softmax_block){
            .s = task->keys.scores + lane,
            .stride = KERN_PANEL,
            .n_keys = n_keys,
            .scale = task->job->op->scale,
            .begin = visible->begin + lane,
            .end = visible->end + lane,
            .max = block->max + lane,
            .sum = block->sum + lane,
            .rescale = rescale + lane,
        });
    }
    kernels->panel_scale(block->out, task->job->op->head_size, rescale);
}

/** Take in the gathered keys key .. key + n_keys - 1. */
static void attend_keys(const struct attention_task *task, struct query_block *block, size_t key,
                        size_t n_keys)
{
    struct visible visible;
    find_visible(&visible, task, block, key, n_keys);
    kern_key_block_multiply_keys(&task->keys, block->q, n_keys);
    softmax_and_rescale(task, block, n_keys, &visible);
    if (task->careful)
        add_values_carefully(task, block, n_keys, &visible);
    else
        kern_key_block_multiply_values(&task->keys, n_keys, block->out);
}

/** Walk the keys for some query blocks; lanes without a query are undefined. */
static void attend(const struct attention_task *task, struct query_block *blocks, size_t n_blocks)
{
    size_t d = task->job->op->head_size, begin = SIZE_MAX, end = 0;
    for (size_t i = 0; i < n_blocks; i++) {
        for (size_t lane = 0; lane < KERN_PANEL; lane++) {
            blocks[i].max[lane] = -INFINITY;
            blocks[i].sum[lane] = 0.0f;
        }
        memset(blocks[i].out, 0, d * KERN_PANEL * sizeof(float));
        begin = base_min(begin, blocks[i].key_begin);
        end = base_max(end, blocks[i].key_end);
    }
    for (size_t key = begin; key < end; key += KERN_KEY_BLOCK) {
        if (kern_cpu_cancelled(task->job->cpu))
            return;
        gather_keys(task, key, base_min(end - key, KERN_KEY_BLOCK));
        for (size_t i = 0; i < n_blocks; i++) {
            if (key < blocks[i].key_begin || key >= blocks[i].key_end)
                continue;
            size_t n_keys = base_min(blocks[i].key_end - key, KERN_KEY_BLOCK);
            attend_keys(task, &blocks[i], key, n_keys);
        }
    }
    for (size_t i = 0; i < n_blocks; i++) {
        for (size_t lane = 0; lane < KERN_PANEL; lane++)
            blocks[i].sum[lane] = 1.0f / blocks[i].sum[lane];
        task->job->cpu->kernels.panel_scale(blocks[i].out, d, blocks[i].sum);
    }
}

/** Whether all outputs of a lane are finite; false if those of some query are not. */
static bool find_finite(const struct query_block *block, size_t head_size, bool finite[KERN_PANEL])
{
    memset(finite, true, KERN_PANEL * sizeof *finite);
    for (size_t i = 0; i < head_size; i++) {
        for (size_t lane = 0; lane < KERN_PANEL; lane++)
            finite[lane] &= fabsf(block->out[i * KERN_PANEL + lane]) < INFINITY;
    }
    return memchr(finite, false, block->n) == NULL;
}

static size_t query_offset(const struct attention_task *task, const struct query_block *block)
{
    const struct kern_attention *op = task->job->op;
    size_t row = task->range->q_row + block->first;
    return (row * op->n_heads + block->head) * op->head_size;
}

/** From a block's panel to rows of out. */
static void finish_block(struct attention_task *task, struct query_block *block)
{
    const struct kern_attention *op = task->job->op;
    size_t d = op->head_size, stride = op->n_heads * d;
    float *out = op->out + query_offset(task, block);
    task->job->cpu->kernels.panel_unpack(&(struct kern_panel_unpack){
        .acc = block->out,
        .n_rows = d,
        .n_lanes = block->n,
        .scale = 1.0f,
        .y = out,
        .y_stride = stride,
    });
    /* Rare: a value that some query must not see may not be finite. */
    bool finite[KERN_PANEL];
    if (find_finite(block, d, finite))
        return;
    task->careful = true;
    attend(task, block, 1);
    for (size_t lane = 0; lane < block->n; lane++) {
        for (size_t i = 0; !finite[lane] && i < d; i++)
            out[lane * stride + i] = block->out[i * KERN_PANEL + lane];
    }
}

/** All query blocks of a task, from q to out. */
static void attend_blocks(struct attention_task *task)
{
    const struct kern_attention *op = task->job->op;
    size_t stride = op->n_heads * op->head_size;
    for (size_t i = 0; i < task->n_blocks; i++) {
        struct query_block *block = &task->blocks[i];
        kern_query_panel_pack(&task->keys, op->q + query_offset(task, block), stride, block->n,
                              block->q);
    }
    attend(task, task->blocks, task->n_blocks);
    for (size_t i = 0; i < task->n_blocks; i++)
        finish_block(task, &task->blocks[i]);
}

/** The query blocks from query `first` of the range on, each under all heads of the key head. */
static void find_blocks(struct attention_task *task, size_t first)
{
    const struct kern_attention *op = task->job->op;
    const struct kern_query_range *range = task->range;
    size_t group = op->n_heads / op->n_kv_heads;
    task->n_blocks = 0;
    for (size_t b = 0; b < task->job->n_shared && first < range->n_q; b++, first += KERN_PANEL) {
        size_t n = base_min(range->n_q - first, KERN_PANEL);
        size_t begin = window_begin(op, query_key(range, first));
        for (size_t h = 0; h < group; h++) {
            struct query_block *block = &task->blocks[task->n_blocks++];
            block->first = first;
            block->n = n;
            block->head = task->kv_head * group + h;
            block->key_begin = begin / KERN_KEY_BLOCK * KERN_KEY_BLOCK;
            block->key_end = query_key(range, first + n - 1) + 1;
        }
    }
}

/** Floats of a query block's panels: packed queries, sums. */
static size_t block_floats(const struct attention *job)
{
    size_t d = job->op->head_size;
    return kern_query_panel_floats(job->cpu, d) + d * KERN_PANEL;
}

static size_t blocks_per_task(const struct attention *job)
{
    return job->n_shared * (job->op->n_heads / job->op->n_kv_heads);
}

/** Bytes of a thread's memory: blocks, their panels, the current keys, a spare panel. */
static size_t thread_size(const struct attention *job)
{
    size_t d = job->op->head_size;
    size_t n_floats = blocks_per_task(job) * block_floats(job) +
                      kern_key_block_floats(job->cpu, d) + 2 * d * KERN_PANEL;
    return blocks_per_task(job) * sizeof(struct query_block) + n_floats * sizeof(float);
}

static void divide_memory(struct attention_task *task, char *memory)
{
    const struct attention *job = task->job;
    size_t d = job->op->head_size, n_blocks = blocks_per_task(job);
    task->blocks = (struct query_block *)(void *)memory;
    float *next = (float *)(void *)(task->blocks + n_blocks);
    for (size_t i = 0; i < n_blocks; i++, next += block_floats(job)) {
        task->blocks[i].out = next;
        task->blocks[i].q = next + d * KERN_PANEL;
    }
    task->spare = next;
    kern_key_block_open(&task->keys, job->cpu, d, next + 2 * d * KERN_PANEL);
}

/** The range whose tasks contain `number`. */
static size_t find_range(const struct attention *job, size_t number)
{
    size_t low = 0, high = job->op->n_ranges;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (job->first_task[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/** The last queries of a range see the most keys, so they come first. */
static void run_task(void *context, size_t index, unsigned thread)
{
    const struct attention *job = context;
    const struct kern_attention *op = job->op;
    size_t number = job->first_task[op->n_ranges] * op->n_kv_heads - 1 - index;
    size_t block = number / op->n_kv_heads, i_range = find_range(job, block);
    struct attention_task task = {
        .job = job, .range = &op->ranges[i_range], .kv_head = number % op->n_kv_heads};
    divide_memory(&task, job->per_thread + thread * job->thread_bytes);
    find_blocks(&task, (block - job->first_task[i_range]) * job->n_shared * KERN_PANEL);
    attend_blocks(&task);
}

/** The threads' memory, and where each range's tasks begin. */
static void choose_sizes(struct attention *job, size_t *all_bytes, size_t *first_task_bytes)
{
    const struct kern_attention *op = job->op;
    job->n_shared = base_div_up(SHARING, op->n_heads / op->n_kv_heads);
    job->thread_bytes = thread_size(job);
    *all_bytes = job->thread_bytes * base_pool_n_threads(job->cpu->pool);
    *first_task_bytes = (op->n_ranges + 1) * sizeof(size_t);
}

size_t kern_cpu_attention_bytes(struct kern_backend *b, const struct kern_attention *op)
{
    struct attention job = {.cpu = kern_cpu_of(b), .op = op};
    size_t all_bytes, first_task_bytes;
    choose_sizes(&job, &all_bytes, &first_task_bytes);
    return all_bytes + first_task_bytes;
}

enum status kern_cpu_attention(struct kern_backend *b, const struct kern_attention *op,
                               struct status_why *why)
{
    struct kern_cpu *cpu = kern_cpu_of(b);
    struct attention job = {.cpu = cpu, .op = op};
    size_t all_bytes, first_task_bytes;
    void *scratch;
    choose_sizes(&job, &all_bytes, &first_task_bytes);
    enum status status = kern_cpu_scratch(cpu, &scratch, all_bytes + first_task_bytes, why);
    if (status != STATUS_OK)
        return status;
    job.per_thread = scratch;
    job.first_task = (size_t *)(void *)(job.per_thread + all_bytes);
    job.first_task[0] = 0;
    for (size_t i = 0; i < op->n_ranges; i++) {
        size_t queries = job.n_shared * KERN_PANEL;
        job.first_task[i + 1] = job.first_task[i] + base_div_up(op->ranges[i].n_q, queries);
    }
    return kern_cpu_run(cpu, job.first_task[op->n_ranges] * op->n_kv_heads, run_task, &job);
}

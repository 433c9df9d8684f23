/*
 * Attention: queries are lanes, keys and values are broadcast. A task is a few blocks of
 * queries of one range and all heads that share a key head; it walks the keys once, a block at
 * a time: scores, online softmax, then values added up. Each output is a function of its own
 * query and the keys it sees, in the order of the keys.
 */
#include <math.h>
#include <string.h>

#include "kernels/cpu/attention/task.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/operations.h"

enum {
    GROUPS = KERN_PANEL / KERN_LANES,
    SHARING = 4, /* at least so many blocks of queries use a block of keys once it is gathered */
    SHARED_BYTES = 512 << 10, /* and more, while their panels are no larger and stay in L2 */
    THREAD_TASKS = 16,        /* and each thread has so many tasks */
    MOST_HEADS = 16           /* of a task: their panels are a thread's memory */
};

/** The row of a key and its value, in the parent or in the segment, as a row of one head. */
static size_t key_row(const struct attention_task *task, size_t key)
{
    return kern_key_row(task->set.range, key) * task->job->op->n_kv_heads + task->kv_head;
}

/** Have a row brought to L2. */
static void fetch(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += 64 / sizeof *x)
        __builtin_prefetch(x + i, 0, 2);
}

/**
 * Copy the keys of the block that begins with `key`, before `end`, and their values side by side.
 * Their rows lie a whole token apart; those of the next block are fetched meanwhile.
 */
static void gather_keys(const struct attention_task *task, size_t key, size_t end)
{
    size_t n_keys = base_min(end - key, KERN_KEY_BLOCK);
    const struct kern_attention *op = task->job->op;
    const struct kern_key_block *keys = &task->keys;
    for (size_t j = 0; j < n_keys; j++) {
        size_t row = key_row(task, key + j), d = op->head_size, dv = op->value_size;
        memcpy(keys->k + j * keys->k_stride, task->set.k + row * d, d * sizeof(float));
        memcpy(keys->v + j * keys->v_stride, task->set.v + row * dv, dv * sizeof(float));
        if (key + j + KERN_KEY_BLOCK >= end)
            continue;
        row = key_row(task, key + j + KERN_KEY_BLOCK);
        fetch(task->set.k + row * d, d);
        fetch(task->set.v + row * dv, dv);
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
        size_t dv = op->value_size;
        float *v = keys->v + j * keys->v_stride;
        if (!kern_sees(visible, lane, j))
            memset(v, 0, dv * sizeof(float));
        else
            memcpy(v, task->set.v + key_row(task, visible->key + j) * dv, dv * sizeof(float));
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
    size_t dv = task->job->op->value_size, panel = dv * KERN_PANEL * sizeof(float);
    float *before = task->spare, *sums = task->spare + dv * KERN_PANEL;
    memcpy(before, block->out, panel);
    kern_key_block_multiply_values(&task->keys, n_keys, block->out);
    for (size_t lane = 0; lane < block->n; lane++) {
        if (visible->begin[lane] == 0 && visible->end[lane] == (int32_t)n_keys &&
            visible->hidden[lane] == 0)
            continue;
        gather_seen_values(task, n_keys, visible, lane);
        memcpy(sums, before, panel);
        kern_key_block_multiply_values(&task->keys, n_keys, sums);
        for (size_t i = 0; i < dv; i++)
            block->out[i * KERN_PANEL + lane] = sums[i * KERN_PANEL + lane];
    }
}

/** Keys that are not chosen get scores whose share is 0. */
static void hide_scores(float *scores, const struct visible *visible)
{
    for (size_t lane = 0; lane < KERN_PANEL; lane++)
        for (uint64_t hidden = visible->hidden[lane]; hidden; hidden &= hidden - 1)
            scores[(size_t)__builtin_ctzll(hidden) * KERN_PANEL + lane] = -INFINITY;
}

static bool all_one(const float factors[KERN_PANEL])
{
    bool all = true;
    for (size_t lane = 0; lane < KERN_PANEL; lane++)
        all &= factors[lane] == 1.0f;
    return all;
}

/** Online softmax of the scores; what was summed before is brought to the new maximum. */
static void softmax_and_rescale(const struct attention_task *task, struct query_block *block,
                                size_t n_keys, const struct visible *visible)
{
    const struct kern_kernels *kernels = &task->job->cpu->kernels;
    const struct kern_attention *op = task->job->op;
    _Alignas(64) float rescale[KERN_PANEL];
    if (op->soft_cap > 0)
        kernels->ops.soft_cap(task->keys.scores, n_keys * KERN_PANEL, op->scale, op->soft_cap);
    hide_scores(task->keys.scores, visible);
    for (size_t group = 0; group < GROUPS; group++) {
        size_t lane = group * KERN_LANES;
        kernels->ops.softmax_block(&(struct kern_softmax_block){
            .s = task->keys.scores + lane,
            .stride = KERN_PANEL,
            .n_keys = n_keys,
            .scale = op->soft_cap > 0 ? 1.0f : op->scale,
            .begin = visible->begin + lane,
            .end = visible->end + lane,
            .max = block->max + lane,
            .sum = block->sum + lane,
            .rescale = rescale + lane,
        });
    }
    if (!all_one(rescale)) /* as nearly always in a long context, once a maximum has been seen */
        kernels->panel_scale(block->out, op->value_size, rescale);
}

/** Take in the gathered keys, n_keys from visible->key on. */
static void attend_keys(const struct attention_task *task, struct query_block *block,
                        const struct visible *visible, size_t n_keys)
{
    kern_key_block_multiply_keys(&task->keys, block->q, n_keys);
    softmax_and_rescale(task, block, n_keys, visible);
    if (task->careful)
        add_values_carefully(task, block, n_keys, visible);
    else
        kern_key_block_multiply_values(&task->keys, n_keys, block->out);
}

/** Walk the keys of a set for some query blocks. */
static void walk_keys(struct attention_task *task, struct key_set set, struct query_block *blocks,
                      size_t n_blocks)
{
    size_t begin = SIZE_MAX, end = 0;
    task->set = set;
    for (size_t i = 0; i < n_blocks; i++) {
        size_t first = kern_query_key(task->range, blocks[i].first);
        blocks[i].key_begin = kern_seen_begin(task, first) / KERN_KEY_BLOCK * KERN_KEY_BLOCK;
        blocks[i].key_end = kern_seen_end(task, first + blocks[i].n - 1);
        begin = base_min(begin, blocks[i].key_begin);
        end = base_max(end, blocks[i].key_end);
    }
    for (size_t key = begin; key < end; key += KERN_KEY_BLOCK) {
        if (kern_cpu_cancelled(task->job->cpu))
            return;
        bool gathered = false;
        for (size_t i = 0; i < n_blocks; i++) {
            if (key < blocks[i].key_begin || key >= blocks[i].key_end)
                continue;
            struct visible visible;
            size_t n_keys = base_min(blocks[i].key_end - key, KERN_KEY_BLOCK);
            if (!kern_find_visible(&visible, task, &blocks[i], key, n_keys))
                continue;
            if (!gathered)
                gather_keys(task, key, end);
            gathered = true;
            attend_keys(task, &blocks[i], &visible, n_keys);
        }
    }
}

/** Attend to all keys for some query blocks; lanes without a query are undefined. */
static void attend(struct attention_task *task, struct query_block *blocks, size_t n_blocks)
{
    const struct kern_attention *op = task->job->op;
    size_t dv = op->value_size;
    for (size_t i = 0; i < n_blocks; i++) {
        /* A sink is as a key that comes first, with a value of zeros. */
        float sink = task->job->sinks ? task->job->sinks[blocks[i].head] : -INFINITY;
        for (size_t lane = 0; lane < KERN_PANEL; lane++) {
            blocks[i].max[lane] = sink;
            blocks[i].sum[lane] = sink == -INFINITY ? 0.0f : 1.0f;
        }
        memset(blocks[i].out, 0, dv * KERN_PANEL * sizeof(float));
    }
    size_t run = op->further.run;
    if (run > 0) {
        const struct kern_query_range *range = op->further.ranges + (task->range - op->ranges);
        walk_keys(task, (struct key_set){op->further.k, op->further.v, range, run, op->chosen.bits},
                  blocks, n_blocks);
    }
    walk_keys(task, (struct key_set){op->k, op->v, task->range, 0, op->chosen.bits && !run}, blocks,
              n_blocks);
    for (size_t i = 0; i < n_blocks; i++) {
        for (size_t lane = 0; lane < KERN_PANEL; lane++)
            blocks[i].sum[lane] = 1.0f / blocks[i].sum[lane];
        task->job->cpu->kernels.panel_scale(blocks[i].out, dv, blocks[i].sum);
    }
}

/** Whether all outputs of a lane are finite; false if those of some query are not. */
static bool find_finite(const struct query_block *block, size_t value_size, bool finite[KERN_PANEL])
{
    memset(finite, true, KERN_PANEL * sizeof *finite);
    for (size_t i = 0; i < value_size; i++)
        for (size_t lane = 0; lane < KERN_PANEL; lane++)
            finite[lane] &= fabsf(block->out[i * KERN_PANEL + lane]) < INFINITY;
    return memchr(finite, false, block->n) == NULL;
}

/** The first query's row of q and out, as a row of one head. */
static size_t query_row(const struct attention_task *task, const struct query_block *block)
{
    return (task->range->q_row + block->first) * task->job->op->n_heads + block->head;
}

/** From a block's panel to rows of out. */
static void finish_block(struct attention_task *task, struct query_block *block)
{
    const struct kern_attention *op = task->job->op;
    size_t dv = op->value_size, stride = op->n_heads * dv;
    float *out = op->out + query_row(task, block) * dv;
    task->job->cpu->kernels.panel_unpack(&(struct kern_panel_unpack){
        .acc = block->out,
        .n_rows = dv,
        .n_lanes = block->n,
        .scale = 1.0f,
        .y = out,
        .y_stride = stride,
    });
    /* Rare: a value that some query must not see may not be finite. */
    bool finite[KERN_PANEL];
    if (find_finite(block, dv, finite))
        return;
    task->careful = true;
    attend(task, block, 1);
    for (size_t lane = 0; lane < block->n; lane++)
        for (size_t i = 0; !finite[lane] && i < dv; i++)
            out[lane * stride + i] = block->out[i * KERN_PANEL + lane];
}

/** All query blocks of a task, from q to out. */
static void attend_blocks(struct attention_task *task)
{
    const struct kern_attention *op = task->job->op;
    size_t d = op->head_size;
    for (size_t i = 0; i < task->n_blocks; i++) {
        struct query_block *block = &task->blocks[i];
        kern_query_panel_pack(&task->keys, op->q + query_row(task, block) * d, op->n_heads * d,
                              block->n, block->q);
    }
    attend(task, task->blocks, task->n_blocks);
    for (size_t i = 0; i < task->n_blocks; i++)
        finish_block(task, &task->blocks[i]);
}

/** The query blocks from query `first` of the range on, each under the task's heads. */
static void find_blocks(struct attention_task *task, size_t first)
{
    const struct kern_attention *op = task->job->op;
    const struct kern_query_range *range = task->range;
    size_t group = op->n_heads / op->n_kv_heads;
    size_t n_heads = base_min(group - task->first_head, task->job->n_task_heads);
    task->n_blocks = 0;
    for (size_t b = 0; b < task->job->n_shared && first < range->n_q; b++, first += KERN_PANEL) {
        size_t n = base_min(range->n_q - first, KERN_PANEL);
        for (size_t h = 0; h < n_heads; h++) {
            struct query_block *block = &task->blocks[task->n_blocks++];
            block->first = first;
            block->n = n;
            block->head = task->kv_head * group + task->first_head + h;
        }
    }
}

/** Floats of a query block's panels: packed queries, sums. */
static size_t block_floats(const struct attention *job)
{
    return kern_query_panel_floats(job->cpu, job->op) + job->op->value_size * KERN_PANEL;
}

static size_t blocks_per_task(const struct attention *job)
{
    return job->n_shared * job->n_task_heads;
}

/** Bytes of a thread's memory: blocks, their panels, the current keys, a spare panel. */
static size_t thread_size(const struct attention *job)
{
    size_t n_floats = blocks_per_task(job) * block_floats(job) +
                      kern_key_block_floats(job->cpu, job->op) +
                      2 * job->op->value_size * KERN_PANEL;
    return blocks_per_task(job) * sizeof(struct query_block) + n_floats * sizeof(float);
}

static void divide_memory(struct attention_task *task, char *memory)
{
    const struct attention *job = task->job;
    size_t dv = job->op->value_size, n_blocks = blocks_per_task(job);
    task->blocks = (struct query_block *)(void *)memory;
    float *next = (float *)(void *)(task->blocks + n_blocks);
    for (size_t i = 0; i < n_blocks; i++, next += block_floats(job)) {
        task->blocks[i].out = next;
        task->blocks[i].q = next + dv * KERN_PANEL;
    }
    task->spare = next;
    kern_key_block_open(&task->keys, job->cpu, job->op, next + 2 * dv * KERN_PANEL);
}

/** The last queries of a range see the most keys, so they come first. */
static void run_task(void *context, size_t index, unsigned thread)
{
    const struct attention *job = context;
    const struct kern_attention *op = job->op;
    size_t n_tasks = op->n_kv_heads * job->n_parts; /* of a block */
    size_t number = job->first_task[op->n_ranges] * n_tasks - 1 - index;
    size_t block = number / n_tasks,
           i_range = kern_find_range(job->first_task, op->n_ranges, block);
    struct attention_task task = {.job = job,
                                  .range = &op->ranges[i_range],
                                  .kv_head = number % n_tasks / job->n_parts,
                                  .first_head = number % job->n_parts * job->n_task_heads};
    divide_memory(&task, job->per_thread + thread * job->thread_bytes);
    find_blocks(&task, (block - job->first_task[i_range]) * job->n_shared * KERN_PANEL);
    attend_blocks(&task);
}

/** The query blocks that a task may have under each of its heads. */
static size_t most_shared(const struct attention *job)
{
    size_t n_bytes = block_floats(job) * sizeof(float) * job->n_task_heads;
    return base_max(base_div_up(SHARING, job->n_task_heads), SHARED_BYTES / n_bytes);
}

/** Fewer, if threads would have too few tasks. */
static size_t fewer_shared(const struct attention *job)
{
    const struct kern_attention *op = job->op;
    size_t n_blocks = 0, least = base_div_up(SHARING, job->n_task_heads);
    for (size_t i = 0; i < op->n_ranges; i++)
        n_blocks += base_div_up(op->ranges[i].n_q, KERN_PANEL);
    size_t n_tasks = THREAD_TASKS * base_pool_n_threads(job->cpu->pool);
    size_t enough = n_blocks * op->n_kv_heads * job->n_parts / n_tasks;
    return base_min(job->n_shared, base_max(least, enough));
}

/** How the work is cut; returns the bytes of the threads, of first_task and of the sinks. */
static size_t choose_sizes(struct attention *job)
{
    const struct kern_attention *op = job->op;
    size_t group = op->n_heads / op->n_kv_heads;
    job->n_parts = base_div_up(group, MOST_HEADS);
    job->n_task_heads = base_div_up(group, job->n_parts);
    job->n_shared = most_shared(job);
    job->thread_bytes = thread_size(job);
    return job->thread_bytes * base_pool_n_threads(job->cpu->pool) +
           (op->n_ranges + 1) * sizeof(size_t) + (op->sinks ? op->n_heads * sizeof(float) : 0);
}

size_t kern_cpu_attention_bytes(struct kern_backend *b, const struct kern_attention *op)
{
    struct attention job = {.cpu = kern_cpu_of(b), .op = op};
    return choose_sizes(&job);
}

enum status kern_cpu_attention(struct kern_backend *b, const struct kern_attention *op,
                               struct status_why *why)
{
    struct kern_cpu *cpu = kern_cpu_of(b);
    struct attention job = {.cpu = cpu, .op = op};
    void *scratch;
    enum status status = kern_cpu_scratch(cpu, &scratch, choose_sizes(&job), why);
    if (status)
        return status;
    job.per_thread = scratch;
    size_t all_bytes = job.thread_bytes * base_pool_n_threads(cpu->pool);
    job.first_task = (size_t *)(void *)(job.per_thread + all_bytes);
    if (op->sinks) {
        job.sinks = (float *)(void *)(job.first_task + op->n_ranges + 1);
        kern_weight_decode_row(cpu, op->sinks, 0, job.sinks);
    }
    job.n_shared = fewer_shared(&job);
    kern_count_tasks(job.first_task, op->ranges, op->n_ranges, job.n_shared * KERN_PANEL);
    size_t n_tasks = job.first_task[op->n_ranges] * op->n_kv_heads * job.n_parts;
    return kern_cpu_run(cpu, n_tasks, run_task, &job);
}

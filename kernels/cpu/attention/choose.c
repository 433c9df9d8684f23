/*
 * Choosing keys: a task is KERN_PANEL queries of one range and one set of heads. Queries are lanes,
 * keys are broadcast, so that a score is a chain of its own. Then each query's keys are chosen by
 * counting the bytes of their scores from the highest one on.
 */
#include <string.h>

#include "kernels/cpu/attention/ranges.h"
#include "kernels/cpu/context.h"
#include "kernels/cpu/operations.h"
#include "kernels/portable/chosen.h"

enum { CHUNK = 64 /* keys whose scores are made at a time */ };

struct choose {
    const struct kern_cpu *cpu;
    const struct kern_choose *op;
    size_t n_sets, n_set_heads;
    size_t *first_task; /* see kern_count_tasks(); of one set */
    char *per_thread;
    size_t thread_bytes;
};

/** One task, with the memory of the thread that does it. */
struct choose_task {
    const struct choose *job;
    const struct kern_query_range *range;
    size_t first, n, set; /* queries of the range */
    float *q;             /* panel arrays: [the set's heads, d] */
    float *weights;       /* [heads] */
    float *dots, *sums;   /* [CHUNK] */
    float *scores;        /* [KERN_PANEL, kern_choose_most()]: a row for each query */
    uint32_t *orders;     /* [kern_choose_most()]: of one query */
};

/** Keys that a query sees; *n_positions: positions, which are more where keys are pools. */
static size_t seen(const struct choose_task *task, size_t query, size_t *n_positions)
{
    const struct kern_choose *op = task->job->op;
    *n_positions = kern_choose_seen(op, task->range, task->first + query);
    return *n_positions / kern_choose_pool(op);
}

/** Whether a query that sees so many keys must leave some out. */
static bool decides(const struct kern_choose *op, size_t n_seen)
{
    return base_div_up(n_seen, op->together) > op->n_best && op->n_best > 0;
}

static size_t query_row(const struct choose_task *task)
{
    return task->range->q_row + task->first;
}

static void pack_queries(const struct choose_task *task)
{
    const struct kern_choose *op = task->job->op;
    size_t n_heads = task->job->n_set_heads, d = op->head_size, row = query_row(task);
    struct kern_panel_pack pack = {
        .x = op->q + (row * op->n_heads + task->set * n_heads) * d,
        .x_stride = op->n_heads * d,
        .n_lanes = task->n,
        .n_k = n_heads * d,
        .out = task->q,
    };
    task->job->cpu->kernels.panel_pack(&pack);
    for (size_t i = 0; op->as_one && i < n_heads * KERN_PANEL; i++)
        task->weights[i] = 1;
    if (!op->weights)
        return;
    pack.x = op->weights + row * n_heads;
    pack.x_stride = pack.n_k = n_heads;
    pack.out = task->weights;
    task->job->cpu->kernels.panel_pack(&pack);
}

/** Scores of n_keys keys in consecutive rows. */
static void score_rows(const struct choose_task *task, size_t row, size_t n_keys)
{
    const struct kern_choose *op = task->job->op;
    const struct kern_kernels *kernels = &task->job->cpu->kernels;
    bool joint = op->weights || op->as_one;
    memset(task->sums, 0, n_keys * KERN_PANEL * sizeof(float));
    for (size_t head = 0; head < task->job->n_set_heads; head++) {
        kernels->fma_tile(&(struct kern_fma_tile){
            .w = op->k + row * op->k_stride,
            .w_row = op->k_stride,
            .w_col = 1,
            .x = task->q + head * op->head_size * KERN_PANEL,
            .acc = joint ? task->dots : task->sums,
            .n_rows = n_keys,
            .n_k = op->head_size,
        });
        if (joint)
            kernels->ops.add_rectified(task->sums, task->dots, task->weights + head * KERN_PANEL,
                                       KERN_PANEL, n_keys);
    }
}

/** Scores of keys 0 .. n_keys - 1. */
static void score(const struct choose_task *task, size_t n_keys)
{
    const struct choose *job = task->job;
    size_t n;
    pack_queries(task);
    for (size_t key = 0; key < n_keys && !kern_cpu_cancelled(job->cpu); key += n) {
        n = base_min(n_keys - key, CHUNK);
        if (key < task->range->n_parent)
            n = base_min(n, task->range->n_parent - key);
        score_rows(task, kern_key_row(task->range, key), n);
        job->cpu->kernels.panel_unpack(&(struct kern_panel_unpack){
            .acc = task->sums,
            .n_rows = n,
            .n_lanes = task->n,
            .scale = 1.0f,
            .y = task->scores + key,
            .y_stride = kern_choose_most(job->op),
        });
    }
}

/** The n_best-th largest of n numbers; *n_equal: how many of the n_best are equal to it. */
static uint32_t find_last(const uint32_t *orders, size_t n, size_t n_best, size_t *n_equal)
{
    uint32_t last = 0;
    for (unsigned shift = 32; shift > 0; shift -= 8) {
        uint32_t counts[256] = {0}, byte = 255;
        for (size_t i = 0; i < n; i++)
            if ((uint64_t)(orders[i] ^ last) >> shift == 0)
                counts[orders[i] >> (shift - 8) & 255]++;
        for (; counts[byte] < n_best; byte--)
            n_best -= counts[byte];
        last |= byte << (shift - 8);
    }
    *n_equal = n_best;
    return last;
}

/** The scores of a query as numbers; a run of keys has its largest one. */
static void find_orders(const struct kern_choose *op, const float *scores, size_t n_seen,
                        uint32_t *orders)
{
    size_t n = base_div_up(n_seen, op->together);
    for (size_t i = 0; i < n; i++) {
        uint32_t most = 0;
        size_t end = base_min((i + 1) * op->together, n_seen);
        for (size_t key = i * op->together; key < end; key++)
            most = base_max(most, kern_order_of(scores[key]));
        orders[i] = i + op->n_local >= n ? KERN_ORDER_FIRST : most;
    }
}

/** Bits begin .. end - 1. */
static void set_bits(uint64_t *bits, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        bits[i / 64] |= (uint64_t)1 << i % 64;
}

static void choose_keys(const struct choose_task *task, size_t query)
{
    const struct kern_choose *op = task->job->op;
    size_t pool = kern_choose_pool(op), n_positions;
    size_t n_seen = seen(task, query, &n_positions), n = base_div_up(n_seen, op->together);
    size_t n_words = kern_chosen_words(op->most_keys), n_equal = n;
    uint64_t *bits =
        op->bits + ((query_row(task) + query) * task->job->n_sets + task->set) * n_words;
    bool some = decides(op, n_seen), fill = some && op->fill;
    uint32_t last = 0;
    memset(bits, 0, n_words * sizeof *bits);
    set_bits(bits, n_seen * pool, n_positions);
    if (op->n_best == 0)
        return;
    if (some) { /* the last one to be filled up with */
        find_orders(op, task->scores + query * kern_choose_most(op), n_seen, task->orders);
        last = find_last(task->orders, n, op->n_best + fill, &n_equal);
    }
    for (size_t i = 0; i < n; i++) {
        bool equal = !some || task->orders[i] == last;
        size_t end = base_min((i + 1) * op->together, n_seen) * pool;
        if (fill && equal && n_equal == 1)
            end -= 1 + n_positions - n_seen * pool;
        if (equal ? n_equal > 0 : task->orders[i] > last)
            set_bits(bits, i * op->together * pool, end);
        n_equal -= equal && n_equal > 0;
    }
}

/** Divide a thread's memory, which may be NULL; returns the bytes that the parts take. */
static size_t divide_memory(struct choose_task *task, const struct choose *job, char *memory)
{
    const struct kern_choose *op = job->op;
    size_t n_heads = job->n_set_heads, most = base_round_up(kern_choose_most(op), 16);
    const size_t sizes[] = {n_heads * op->head_size * KERN_PANEL, n_heads * KERN_PANEL,
                            CHUNK * KERN_PANEL, CHUNK * KERN_PANEL, KERN_PANEL * most};
    float **const parts[] = {&task->q, &task->weights, &task->dots, &task->sums, &task->scores};
    float *next = (float *)(void *)memory;
    size_t n_floats = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        *parts[i] = memory ? next + n_floats : NULL;
        n_floats += sizes[i];
    }
    task->orders = memory ? (uint32_t *)(void *)(next + n_floats) : NULL;
    return n_floats * sizeof(float) + most * sizeof(uint32_t);
}

static void run_task(void *context, size_t index, unsigned thread)
{
    const struct choose *job = context;
    const struct kern_choose *op = job->op;
    size_t number = index / job->n_sets, most = 0, n_positions;
    size_t i_range = kern_find_range(job->first_task, op->n_ranges, number);
    struct choose_task task = {.job = job, .range = &op->ranges[i_range]};
    task.set = index % job->n_sets;
    task.first = (number - job->first_task[i_range]) * KERN_PANEL;
    task.n = base_min(task.range->n_q - task.first, KERN_PANEL);
    (void)divide_memory(&task, job, job->per_thread + thread * job->thread_bytes);
    for (size_t i = 0; i < task.n; i++)
        most = base_max(most, seen(&task, i, &n_positions));
    if (decides(op, most))
        score(&task, most);
    for (size_t i = 0; i < task.n; i++)
        choose_keys(&task, i);
}

/** How the work is cut; returns the bytes of the threads and of first_task. */
static size_t choose_sizes(struct choose *job)
{
    struct choose_task task;
    job->n_sets = kern_choose_sets(job->op);
    job->n_set_heads = job->op->n_heads / job->n_sets;
    job->thread_bytes = divide_memory(&task, job, NULL);
    return job->thread_bytes * base_pool_n_threads(job->cpu->pool) +
           (job->op->n_ranges + 1) * sizeof(size_t);
}

size_t kern_cpu_choose_bytes(struct kern_backend *b, const struct kern_choose *op)
{
    struct choose job = {.cpu = kern_cpu_of(b), .op = op};
    return choose_sizes(&job);
}

enum status kern_cpu_choose(struct kern_backend *b, const struct kern_choose *op,
                            struct status_why *why)
{
    struct kern_cpu *cpu = kern_cpu_of(b);
    struct choose job = {.cpu = cpu, .op = op};
    void *scratch;
    enum status status = kern_cpu_scratch(cpu, &scratch, choose_sizes(&job), why);
    if (status)
        return status;
    job.per_thread = scratch;
    size_t all_bytes = job.thread_bytes * base_pool_n_threads(cpu->pool);
    job.first_task = (size_t *)(void *)(job.per_thread + all_bytes);
    kern_count_tasks(job.first_task, op->ranges, op->n_ranges, KERN_PANEL);
    return kern_cpu_run(cpu, job.first_task[op->n_ranges] * job.n_sets, run_task, &job);
}

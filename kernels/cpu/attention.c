/*
 * Attention per span, key head and block of queries: queries are lanes, keys and values are
 * broadcast. A block of keys at a time: scores, online softmax, then values added up.
 * Each output is a function of its own query and the keys it sees, in the order of the keys.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/context.h"

enum { GROUPS = KERN_PANEL / KERN_LANES };

/** Working memory of a thread; `q` and `out` have head_size rows. */
struct attention_scratch {
    float *q;   /* panel array [d]: the queries */
    float *s;   /* panel array [KERN_KEY_BLOCK]: scores, then probabilities */
    float *out; /* panel array [d]: sums of p * v */
};

struct attention {
    const struct kern_cpu *cpu;
    const struct kern_attention *op;
    size_t *first_block; /* per span: query blocks in the spans before it; one more at the end */
    float *per_thread;
    size_t thread_floats;
};

/** Up to KERN_PANEL consecutive queries of a span under one head. Keys by index, see backend.h. */
struct query_block {
    const struct kern_span *span;
    size_t first, n; /* queries of the span */
    size_t head, kv_head;
    size_t key_begin, key_end; /* seen by any of the queries */
    bool careful;              /* give no masked key to the products, not even with factor 0 */
};

/** Per lane, relative to some key: the keys it sees. */
struct visible {
    int32_t begin[KERN_PANEL], end[KERN_PANEL];
    bool all; /* every query sees every key */
};

static size_t larger_of(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t smaller_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/** First key that the query with this key index sees. */
static size_t window_begin(const struct kern_attention *op, size_t query)
{
    size_t w = op->sliding_window;
    return w > 0 && query + 1 > w ? query + 1 - w : 0;
}

/** Index of the query's own key. */
static size_t query_key(const struct query_block *block, size_t lane)
{
    return block->span->n_parent + block->span->q_offset + block->first + lane;
}

static void find_visible(struct visible *visible, const struct kern_attention *op,
                         const struct query_block *block, size_t key, size_t n_keys)
{
    visible->all = true;
    for (size_t lane = 0; lane < KERN_PANEL; lane++) {
        size_t begin = 0, end = 0;
        if (lane < block->n) {
            size_t query = query_key(block, lane);
            begin = larger_of(window_begin(op, query), key) - key;
            end = smaller_of(larger_of(query + 1, key) - key, n_keys);
            if (begin > 0 || end < n_keys)
                visible->all = false;
        }
        visible->begin[lane] = (int32_t)smaller_of(begin, n_keys);
        visible->end[lane] = (int32_t)end;
    }
}

/**
 * Where key `key` lies in k and v; *n is cut to the keys that follow it in memory: a block may
 * begin in the parent and end in the segment.
 */
static size_t key_row(const struct kern_span *span, size_t key, size_t *n)
{
    if (key >= span->n_parent)
        return span->kv_row + (key - span->n_parent);
    *n = smaller_of(*n, span->n_parent - key);
    return span->parent_kv_row + key;
}

/** s[j] = q k of keys key .. key + n_keys - 1. */
static void block_scores(const struct attention *job, const struct query_block *block,
                         const struct attention_scratch *scratch, size_t key, size_t n_keys)
{
    const struct kern_attention *op = job->op;
    size_t d = op->head_size, stride = op->n_kv_heads * d;
    for (size_t j = 0, n; j < n_keys; j += n) {
        n = n_keys - j;
        size_t row = key_row(block->span, key + j, &n);
        job->cpu->table.fma_tile(&(struct kern_fma_tile){
            .w = op->k + row * stride + block->kv_head * d,
            .w_row = stride,
            .w_col = 1,
            .x = scratch->q,
            .acc = scratch->s + j * KERN_PANEL,
            .n_rows = n,
            .n_k = d,
        });
    }
}

/** out[i] += sum_j v[j][i] p[j], keys in order. */
static void add_values(const struct attention *job, const struct query_block *block,
                       const struct attention_scratch *scratch, size_t key, size_t n_keys)
{
    const struct kern_attention *op = job->op;
    size_t d = op->head_size, stride = op->n_kv_heads * d;
    for (size_t j = 0, n; j < n_keys; j += n) {
        n = n_keys - j;
        size_t row = key_row(block->span, key + j, &n);
        job->cpu->table.fma_tile(&(struct kern_fma_tile){
            .w = op->v + row * stride + block->kv_head * d,
            .w_row = 1,
            .w_col = stride,
            .x = scratch->s + j * KERN_PANEL,
            .acc = scratch->out,
            .n_rows = d,
            .n_k = n,
            .resume = true,
        });
    }
}

/**
 * The same without touching masked keys: 0 times an infinity or NaN in a value that a query
 * must not see would be NaN.
 */
static void add_visible_values(const struct attention *job, const struct query_block *block,
                               const struct attention_scratch *scratch, size_t key,
                               const struct visible *visible)
{
    const struct kern_attention *op = job->op;
    size_t d = op->head_size, stride = op->n_kv_heads * d;
    for (size_t lane = 0; lane < block->n; lane++) {
        for (int32_t j = visible->begin[lane]; j < visible->end[lane]; j++) {
            size_t n = 1, row = key_row(block->span, key + (size_t)j, &n);
            const float *v = op->v + row * stride + block->kv_head * d;
            float p = scratch->s[(size_t)j * KERN_PANEL + lane];
            for (size_t i = 0; i < d; i++) {
                float *out = &scratch->out[i * KERN_PANEL + lane];
                *out = fmaf(v[i], p, *out);
            }
        }
    }
}

/** Online softmax of the block's scores; what was summed before is brought to the new maximum. */
static void softmax_and_rescale(const struct attention *job,
                                const struct attention_scratch *scratch, size_t n_keys,
                                const struct visible *visible, float *max, float *sum)
{
    _Alignas(64) float rescale[KERN_PANEL];
    for (size_t group = 0; group < GROUPS; group++) {
        size_t lane = group * KERN_LANES;
        job->cpu->table.ops.softmax_block(&(struct kern_softmax_block){
            .s = scratch->s + lane,
            .stride = KERN_PANEL,
            .n_keys = n_keys,
            .scale = job->op->scale,
            .begin = visible->begin + lane,
            .end = visible->end + lane,
            .max = max + lane,
            .sum = sum + lane,
            .rescale = rescale + lane,
        });
    }
    job->cpu->table.panel_scale(scratch->out, job->op->head_size, rescale);
}

/** All of one query block; the result is scratch->out, lanes beyond the queries rubbish. */
static void attend(const struct attention *job, const struct query_block *block,
                   const struct attention_scratch *scratch)
{
    _Alignas(64) float max[KERN_PANEL], sum[KERN_PANEL];
    for (size_t lane = 0; lane < KERN_PANEL; lane++) {
        max[lane] = -INFINITY;
        sum[lane] = 0.0f;
    }
    memset(scratch->out, 0, job->op->head_size * KERN_PANEL * sizeof(float));
    for (size_t key = block->key_begin; key < block->key_end; key += KERN_KEY_BLOCK) {
        size_t n_keys = smaller_of(block->key_end - key, KERN_KEY_BLOCK);
        struct visible visible;
        find_visible(&visible, job->op, block, key, n_keys);
        block_scores(job, block, scratch, key, n_keys);
        softmax_and_rescale(job, scratch, n_keys, &visible, max, sum);
        if (block->careful && !visible.all)
            add_visible_values(job, block, scratch, key, &visible);
        else
            add_values(job, block, scratch, key, n_keys);
    }
    for (size_t lane = 0; lane < KERN_PANEL; lane++)
        sum[lane] = 1.0f / sum[lane];
    job->cpu->table.panel_scale(scratch->out, job->op->head_size, sum);
}

static bool is_finite(const struct attention_scratch *scratch, size_t head_size, size_t n_lanes)
{
    for (size_t i = 0; i < head_size; i++) {
        for (size_t lane = 0; lane < n_lanes; lane++) {
            if (!isfinite(scratch->out[i * KERN_PANEL + lane]))
                return false;
        }
    }
    return true;
}

static void attend_heads(const struct attention *job, struct query_block *block,
                         const struct attention_scratch *scratch)
{
    const struct kern_attention *op = job->op;
    const struct kern_table *table = &job->cpu->table;
    size_t d = op->head_size, stride = op->n_heads * d;
    size_t group = op->n_heads / op->n_kv_heads;
    size_t row = block->span->q_row + block->first;
    for (size_t h = 0; h < group && !kern_cpu_cancelled(job->cpu); h++) {
        block->head = block->kv_head * group + h;
        size_t offset = row * stride + block->head * d;
        table->panel_pack(op->q + offset, stride, block->n, d, scratch->q);
        block->careful = false;
        attend(job, block, scratch);
        /* Rare: find out whether a value that some query must not see was not finite. */
        if (!is_finite(scratch, d, block->n)) {
            block->careful = true;
            attend(job, block, scratch);
        }
        table->panel_unpack(&(struct kern_panel_unpack){
            .acc = scratch->out,
            .n_rows = d,
            .n_lanes = block->n,
            .scale = 1.0f,
            .y = op->out + offset,
            .y_stride = stride,
        });
    }
}

/** Task number index: the last blocks of a span see the most keys, so they come first. */
static void attend_task(void *context, size_t index, unsigned thread)
{
    const struct attention *job = context;
    const struct kern_attention *op = job->op;
    size_t n_tasks = job->first_block[op->n_spans] * op->n_kv_heads;
    size_t task = n_tasks - 1 - index;
    size_t number = task / op->n_kv_heads;

    size_t low = 0, high = op->n_spans; /* the span whose blocks contain `number` */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (job->first_block[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    struct query_block block = {.span = &op->spans[low], .kv_head = task % op->n_kv_heads};
    block.first = (number - job->first_block[low]) * KERN_PANEL;
    block.n = smaller_of(block.span->n_q - block.first, KERN_PANEL);
    block.key_begin = window_begin(op, query_key(&block, 0)) / KERN_KEY_BLOCK * KERN_KEY_BLOCK;
    block.key_end = query_key(&block, block.n - 1) + 1;

    struct attention_scratch scratch;
    scratch.q = job->per_thread + thread * job->thread_floats;
    scratch.s = scratch.q + op->head_size * KERN_PANEL;
    scratch.out = scratch.s + KERN_KEY_BLOCK * KERN_PANEL;
    attend_heads(job, &block, &scratch);
}

enum status kern_cpu_attention(struct kern_backend *b, const struct kern_attention *op,
                               struct status_why *why)
{
    struct kern_cpu *cpu = kern_cpu_of(b);
    struct attention job = {.cpu = cpu, .op = op};
    job.thread_floats = (2 * op->head_size + KERN_KEY_BLOCK) * KERN_PANEL;
    size_t thread_bytes = job.thread_floats * kern_pool_n_threads(cpu->pool) * sizeof(float);
    void *scratch;
    enum status status =
        kern_cpu_scratch(cpu, &scratch, thread_bytes + (op->n_spans + 1) * sizeof(size_t), why);
    if (status != STATUS_OK)
        return status;
    job.per_thread = scratch;
    job.first_block = (size_t *)((char *)scratch + thread_bytes);
    job.first_block[0] = 0;
    for (size_t i = 0; i < op->n_spans; i++) {
        size_t n_blocks = (op->spans[i].n_q + KERN_PANEL - 1) / KERN_PANEL;
        job.first_block[i + 1] = job.first_block[i] + n_blocks;
    }
    return kern_cpu_run(cpu, job.first_block[op->n_spans] * op->n_kv_heads, attend_task, &job);
}

/**
 * Choosing keys (struct kern_choose) in two kernels: scores of KERN_CHOOSE_QUERIES queries of one
 * range with KERN_CHOOSE_KEYS keys, then for each query the keys whose scores are the largest.
 * Scores are the CPU's chains, so the bits are the CPU's.
 *
 * For a query and a key, scores take Hi d multiply-adds in float32. A block reads its keys and
 * queries once for each head (from L2). Scores are written once and read some five times: a byte of
 * them is looked at in each reading, from the highest one on. Bytes of the index follow where
 * scores are equal.
 */
#ifndef KERNELS_CUDA_KERNELS_CHOOSE_H
#define KERNELS_CUDA_KERNELS_CHOOSE_H

#include "kernels/cuda/kernels/attention_view.h"

enum {
    KERN_CHOOSE_THREADS = 128,
    KERN_CHOOSE_QUERIES = 32,
    KERN_CHOOSE_KEYS = 64,
    KERN_CHOOSE_DIMS = 64, /* of queries and keys in shared memory at a time */
    KERN_CHOOSE_PITCH = KERN_CHOOSE_KEYS + 4,
    KERN_CHOOSE_Q_PITCH = KERN_CHOOSE_QUERIES + 4
};

struct kern_choose_args {
    const float *q, *k, *weights; /* weights: or NULL */
    uint64_t *bits;
    float *scores; /* [tasks, n_sets, KERN_CHOOSE_QUERIES, most_keys] */
    size_t n_heads, n_sets, head_size, k_stride;
    size_t n_best, pool, together, n_local, most_keys, n_words; /* most_keys: kern_choose_most() */
    bool as_one, fill;
    const uint32_t *n_seen; /* by row of q, or NULL */
    const struct kern_query_range *ranges;
    const struct kern_attention_task *tasks;
    size_t n_tiles; /* of keys: blocks of scores for each task and set */
};

/** A task's queries, and the set of keys that they choose. */
struct kern_choose_view {
    struct kern_query_range range;
    size_t number, first, n_queries, set;
};

KERN_INLINE struct kern_choose_view kern_choose_view_of(const struct kern_choose_args *a,
                                                        size_t number)
{
    struct kern_attention_task task = a->tasks[number / a->n_sets];
    struct kern_choose_view b;
    b.range = a->ranges[task.range];
    b.number = number;
    b.first = task.first;
    b.set = number % a->n_sets;
    size_t left = b.range.n_q - b.first;
    b.n_queries = left < KERN_CHOOSE_QUERIES ? left : KERN_CHOOSE_QUERIES;
    return b;
}

/** Row of q of the i-th query, and how many keys, or positions of pools, that one sees. */
KERN_INLINE size_t kern_choose_row(const struct kern_choose_view *b, size_t i)
{
    return b->range.q_row + b->first + i;
}

KERN_INLINE size_t kern_choose_n_seen(const struct kern_choose_args *a,
                                      const struct kern_choose_view *b, size_t i)
{
    return a->n_seen ? a->n_seen[kern_choose_row(b, i)]
                     : b->range.n_parent + b->range.q_offset + b->first + i + 1;
}

/** Whether a query that sees so many keys must leave some out. */
KERN_INLINE bool kern_choose_decides(const struct kern_choose_args *a, size_t n_seen)
{
    return (n_seen + a->together - 1) / a->together > a->n_best;
}

struct kern_choose_shared {
    float k[KERN_CHOOSE_DIMS * KERN_CHOOSE_PITCH];   /* [element][key] */
    float q[KERN_CHOOSE_DIMS * KERN_CHOOSE_Q_PITCH]; /* [element][query] */
    uint32_t n_seen;                                 /* the most of those that decide */
} __attribute__((aligned(16)));

/** Elements from .. from + n - 1 of the block's keys and of its queries under one head. */
KERN_INLINE void kern_choose_load(const struct kern_choose_args *a,
                                  const struct kern_choose_view *b, struct kern_choose_shared *s,
                                  size_t key, size_t head, size_t from, unsigned n)
{
    for (unsigned t = kern_thread_begin(); t < KERN_CHOOSE_THREADS;
         t += kern_thread_step(KERN_CHOOSE_THREADS)) {
        unsigned e = t % KERN_CHOOSE_DIMS, step = KERN_CHOOSE_THREADS / KERN_CHOOSE_DIMS;
        for (unsigned j = t / KERN_CHOOSE_DIMS; e < n && j < KERN_CHOOSE_KEYS; j += step) {
            size_t at = key + j, row = at < b->range.n_parent
                                           ? b->range.parent_kv_row + at
                                           : b->range.kv_row + at - b->range.n_parent;
            s->k[e * KERN_CHOOSE_PITCH + j] =
                at < s->n_seen ? a->k[row * a->k_stride + from + e] : 0.0f;
        }
        for (unsigned i = t / KERN_CHOOSE_DIMS; e < n && i < KERN_CHOOSE_QUERIES; i += step)
            s->q[e * KERN_CHOOSE_Q_PITCH + i] =
                i < b->n_queries
                    ? a->q[(kern_choose_row(b, i) * a->n_heads + head) * a->head_size + from + e]
                    : 0.0f;
    }
}

/** A thread's dot products: 4 queries times 4 keys. */
KERN_INLINE void kern_choose_multiply(const struct kern_choose_shared *s, unsigned t, unsigned n,
                                      float (*dots)[4])
{
    const float *q = s->q + t / 16 * 4, *k = s->k + t % 16 * 4;
    for (unsigned e = 0; e < n; e++) {
        for (unsigned i = 0; i < 16; i++)
            dots[i / 4][i % 4] = fmaf(k[e * KERN_CHOOSE_PITCH + i % 4],
                                      q[e * KERN_CHOOSE_Q_PITCH + i / 4], dots[i / 4][i % 4]);
    }
}

/** A head's dot products become, or are added to, a thread's scores. */
KERN_INLINE void kern_choose_add(const struct kern_choose_args *a, const struct kern_choose_view *b,
                                 size_t head, unsigned t, const float (*dots)[4], float (*sums)[4])
{
    for (unsigned i = 0; i < 16; i++) {
        unsigned query = t / 16 * 4 + i / 4;
        float dot = dots[i / 4][i % 4];
        if (!a->weights)
            sums[i / 4][i % 4] = a->as_one ? sums[i / 4][i % 4] + (dot > 0.0f ? dot : 0.0f) : dot;
        else if (query < b->n_queries)
            sums[i / 4][i % 4] += a->weights[kern_choose_row(b, query) * a->n_heads + head] *
                                  (dot > 0.0f ? dot : 0.0f);
    }
}

KERN_INLINE void kern_choose_store(const struct kern_choose_args *a,
                                   const struct kern_choose_view *b, size_t key, unsigned t,
                                   const float (*sums)[4])
{
    for (unsigned i = 0; i < 16; i++) {
        unsigned query = t / 16 * 4 + i / 4;
        size_t at = key + t % 16 * 4 + i % 4;
        if (query < b->n_queries && at < a->most_keys)
            a->scores[(b->number * KERN_CHOOSE_QUERIES + query) * a->most_keys + at] =
                sums[i / 4][i % 4];
    }
}

/** Scores of a task's queries with one tile of keys, unless all of them are chosen anyway. */
KERN_INLINE void kern_choose_scores_block(const struct kern_choose_args *a, size_t block,
                                          void *shared)
{
    struct kern_choose_shared *s = (struct kern_choose_shared *)shared;
    struct kern_choose_view b = kern_choose_view_of(a, block / a->n_tiles);
    size_t key = block % a->n_tiles * KERN_CHOOSE_KEYS, n_heads = a->n_heads / a->n_sets;
    float sums[KERN_SLOTS(KERN_CHOOSE_THREADS)][4][4], dots[KERN_SLOTS(KERN_CHOOSE_THREADS)][4][4];
    for (unsigned t = kern_thread_begin(); t < KERN_CHOOSE_THREADS;
         t += kern_thread_step(KERN_CHOOSE_THREADS)) {
        for (unsigned i = 0; i < 16; i++)
            sums[kern_slot(t)][i / 4][i % 4] = 0.0f;
        if (t == 0)
            s->n_seen = 0;
    }
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < KERN_CHOOSE_QUERIES;
         t += kern_thread_step(KERN_CHOOSE_THREADS)) {
        size_t n_seen = t < b.n_queries ? kern_choose_n_seen(a, &b, t) / a->pool : 0;
        if (kern_choose_decides(a, n_seen))
            kern_atomic_max(&s->n_seen, (uint32_t)n_seen);
    }
    kern_barrier();
    if (key >= s->n_seen)
        return;
    for (size_t head = b.set * n_heads; head < (b.set + 1) * n_heads; head++) {
        for (unsigned t = kern_thread_begin(); t < KERN_CHOOSE_THREADS;
             t += kern_thread_step(KERN_CHOOSE_THREADS)) {
            for (unsigned i = 0; i < 16; i++)
                dots[kern_slot(t)][i / 4][i % 4] = 0.0f;
        }
        for (size_t from = 0; from < a->head_size; from += KERN_CHOOSE_DIMS) {
            size_t left = a->head_size - from;
            unsigned n = left < KERN_CHOOSE_DIMS ? (unsigned)left : KERN_CHOOSE_DIMS;
            kern_choose_load(a, &b, s, key, head, from, n);
            kern_barrier();
            for (unsigned t = kern_thread_begin(); t < KERN_CHOOSE_THREADS;
                 t += kern_thread_step(KERN_CHOOSE_THREADS))
                kern_choose_multiply(s, t, n, dots[kern_slot(t)]);
            kern_barrier();
        }
        for (unsigned t = kern_thread_begin(); t < KERN_CHOOSE_THREADS;
             t += kern_thread_step(KERN_CHOOSE_THREADS))
            kern_choose_add(a, &b, head, t, dots[kern_slot(t)], sums[kern_slot(t)]);
    }
    for (unsigned t = kern_thread_begin(); t < KERN_CHOOSE_THREADS;
         t += kern_thread_step(KERN_CHOOSE_THREADS))
        kern_choose_store(a, &b, key, t, sums[kern_slot(t)]);
}

/** One query's choice. */
struct kern_choice {
    const struct kern_choose_args *a;
    const float *scores;
    size_t n_positions, n_seen, n; /* positions, keys, runs of them */
};

/** The i-th run's score and place, as a number: no two are equal. */
KERN_INLINE uint64_t kern_choice_order(const struct kern_choice *c, size_t i)
{
    uint32_t most = 0;
    size_t end = (i + 1) * c->a->together;
    if (i + c->a->n_local >= c->n)
        return kern_order_at(KERN_ORDER_FIRST, i);
    for (size_t key = i * c->a->together; key < end && key < c->n_seen; key++) {
        uint32_t order = kern_order_of(c->scores[key]);
        most = order > most ? order : most;
    }
    return kern_order_at(most, i);
}

struct kern_choice_shared {
    uint64_t last; /* the smallest number that is chosen, as far as it is known */
    uint32_t counts[256];
    uint32_t n_best;
    uint32_t done; /* all that have the known bytes are chosen */
};

/** Find the next byte of `last`, by counting the numbers whose bytes above it are known. */
KERN_INLINE void kern_choice_step(const struct kern_choice *c, struct kern_choice_shared *s,
                                  unsigned shift)
{
    for (unsigned t = kern_thread_begin(); t < KERN_CHOOSE_THREADS;
         t += kern_thread_step(KERN_CHOOSE_THREADS)) {
        for (unsigned i = t; i < 256; i += KERN_CHOOSE_THREADS)
            s->counts[i] = 0;
    }
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < KERN_CHOOSE_THREADS;
         t += kern_thread_step(KERN_CHOOSE_THREADS)) {
        uint64_t last = s->last;
        for (size_t i = t; i < c->n; i += KERN_CHOOSE_THREADS) {
            uint64_t order = kern_choice_order(c, i);
            if ((order ^ last) >> shift >> 8 == 0)
                kern_atomic_add(&s->counts[order >> shift & 255], 1);
        }
    }
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < 1; t += kern_thread_step(KERN_CHOOSE_THREADS)) {
        unsigned byte = 255;
        for (; s->counts[byte] < s->n_best; byte--)
            s->n_best -= s->counts[byte];
        s->last |= (uint64_t)byte << shift;
        s->done = s->counts[byte] == s->n_best;
    }
    kern_barrier();
}

/** Words of bits: all keys if the query decides nothing, else those of runs not below `last`; and
 * the positions after pools. */
KERN_INLINE void kern_choice_store(const struct kern_choice *c, uint64_t last, bool some,
                                   uint64_t *bits)
{
    size_t pool = c->a->pool, n_pooled = c->n_seen * pool;
    for (unsigned t = kern_thread_begin(); t < KERN_CHOOSE_THREADS;
         t += kern_thread_step(KERN_CHOOSE_THREADS)) {
        for (size_t w = t; w < c->a->n_words; w += KERN_CHOOSE_THREADS) {
            uint64_t word = 0;
            for (size_t at = w * 64; at < (w + 1) * 64 && at < n_pooled && c->n > 0;) {
                size_t i = at / pool / c->a->together, end = (i + 1) * c->a->together * pool;
                uint64_t order = some ? kern_choice_order(c, i) : UINT64_MAX;
                size_t part = some && c->a->fill && order == last
                                  ? end - 1 - (c->n_positions - n_pooled)
                                  : end;
                for (; at < end && at < (w + 1) * 64 && at < n_pooled; at++)
                    word |= (uint64_t)(order >= last && at < part) << at % 64;
            }
            size_t tail = w * 64 > n_pooled ? w * 64 : n_pooled;
            for (size_t at = tail; at < c->n_positions && at < (w + 1) * 64; at++)
                word |= (uint64_t)1 << at % 64;
            bits[w] = word;
        }
    }
}

/** A query of a task. */
KERN_INLINE void kern_choose_block(const struct kern_choose_args *a, size_t block, void *shared)
{
    struct kern_choice_shared *s = (struct kern_choice_shared *)shared;
    struct kern_choose_view b = kern_choose_view_of(a, block / KERN_CHOOSE_QUERIES);
    size_t query = block % KERN_CHOOSE_QUERIES;
    if (query >= b.n_queries)
        return;
    struct kern_choice c;
    c.a = a;
    c.scores = a->scores + block * a->most_keys;
    c.n_positions = kern_choose_n_seen(a, &b, query);
    c.n_seen = c.n_positions / a->pool;
    bool some = kern_choose_decides(a, c.n_seen);
    c.n = a->n_best > 0 ? (c.n_seen + a->together - 1) / a->together : 0;
    for (unsigned t = kern_thread_begin(); t < 1; t += kern_thread_step(KERN_CHOOSE_THREADS)) {
        s->last = 0;
        s->n_best = (uint32_t)a->n_best + (some && a->fill);
        s->done = 0;
    }
    kern_barrier();
    for (unsigned shift = 64; some && c.n > 0 && shift > 0 && (a->fill || !s->done); shift -= 8)
        kern_choice_step(&c, s, shift - 8);
    kern_choice_store(&c, s->last, some,
                      a->bits + (kern_choose_row(&b, query) * a->n_sets + b.set) * a->n_words);
}

#endif

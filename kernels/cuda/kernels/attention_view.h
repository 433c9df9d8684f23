/**
 * What the attention kernels have in common: their arguments, and which keys a block's queries see.
 * attention.h has the one in float32, flash/ the one on tensor cores.
 */
#ifndef KERNELS_CUDA_KERNELS_ATTENTION_VIEW_H
#define KERNELS_CUDA_KERNELS_ATTENTION_VIEW_H

#include <math.h>
#include <stdbool.h>

#include "kernels/cuda/kernels/thread.h"
#include "kernels/numerics/fmath.h"
#include "kernels/portable/chosen.h"
#include "kernels/types.h"

/** Queries first .. of a range; or keys, for flash.h, which splits them into parts. */
struct kern_attention_task {
    uint32_t range, first;
    uint32_t parts; /* flash.h: which block of split keys has the first one that a query sees */
};

struct kern_attention_args {
    const float *q, *k, *v;
    float *out;
    size_t n_heads, n_kv_heads, head_size, value_size;
    float scale, soft_cap, inverse_cap; /* 1 / soft_cap */
    size_t sliding_window;
    uint32_t chunk;     /* 0: none; in 32 bits, which is all that indices of keys have */
    const float *sinks; /* [n_heads] or NULL */
    /* Which keys each query has chosen; see struct kern_chosen. NULL: all. */
    const uint64_t *chosen;
    size_t chosen_sets, chosen_words;
    const float *further_k, *further_v; /* see struct kern_further */
    const struct kern_query_range *further_ranges;
    uint32_t further_run;
    const struct kern_query_range *ranges;
    const struct kern_attention_task *tasks; /* n_groups blocks for each, times n_parts */
    unsigned n_parts;                        /* attention.h: blocks that share a head's values */
    size_t first_head;                       /* of this launch */
    size_t n_groups, group_heads;            /* of its heads; a block takes a group */
    /* flash.h: keys and values in parts, n_blocks of a head; see struct kern_parts_args. */
    const struct kern_bytes16 *parts;
    size_t n_blocks;
};

/** A block's queries, their head, and the keys that any of them sees. */
struct kern_attention_view {
    const struct kern_attention_args *a;
    struct kern_query_range range;
    size_t first, n_queries, head, kv_head, key_begin, key_end; /* head: the first of the group */
    size_t own;   /* index of the first query's own key */
    uint32_t run; /* the keys are the further ones, whose rows `range` has; 0: those of tokens */
};

/** First key that the query with this key index sees. */
KERN_INLINE size_t kern_attention_window_begin(const struct kern_attention_view *b, size_t query)
{
    size_t w = b->a->sliding_window, begin = w > 0 && query + 1 > w ? query + 1 - w : 0;
    uint32_t chunk = b->a->chunk, first = chunk > 0 ? (uint32_t)query / chunk * chunk : 0;
    return begin > first ? begin : first;
}

/** Index of the own key of the block's i-th query. */
KERN_INLINE size_t kern_attention_key(const struct kern_attention_view *b, size_t i)
{
    return b->own + i;
}

/** The keys that the query with this key index sees: from, and up to. */
KERN_INLINE size_t kern_attention_seen_begin(const struct kern_attention_view *b, size_t query)
{
    return b->run ? 0 : kern_attention_window_begin(b, query);
}

KERN_INLINE size_t kern_attention_seen_end(const struct kern_attention_view *b, size_t query)
{
    return b->run ? (uint32_t)(query + 1) / b->run : query + 1;
}

/** Whether the keys are those of which queries choose. */
KERN_INLINE bool kern_attention_chooses(const struct kern_attention_view *b)
{
    return b->a->chosen && (b->run || !b->a->further_run);
}

/** Bit j: whether the i-th query has chosen key + j, up to the next multiple of 64. */
KERN_INLINE uint64_t kern_attention_chosen(const struct kern_attention_view *b, size_t i,
                                           size_t key)
{
    const struct kern_attention_args *a = b->a;
    size_t row = (b->range.q_row + b->first + i) * a->chosen_sets;
    row += a->chosen_sets > 1 ? b->kv_head : 0;
    return kern_chosen_keys(a->chosen + row * a->chosen_words, key);
}

KERN_INLINE bool kern_attention_sees(const struct kern_attention_view *b, size_t i, size_t key)
{
    size_t query = kern_attention_key(b, i);
    return i < b->n_queries && key < kern_attention_seen_end(b, query) &&
           key >= kern_attention_seen_begin(b, query) &&
           (!kern_attention_chooses(b) || (kern_attention_chosen(b, i, key) & 1));
}

/** Bit j: whether the i-th query sees key + j; of n keys from a multiple of 64 on, n at most 64. */
KERN_INLINE uint64_t kern_attention_seen(const struct kern_attention_view *b, size_t i, size_t key,
                                         size_t n)
{
    size_t query = kern_attention_key(b, i);
    size_t begin = kern_attention_seen_begin(b, query), end = kern_attention_seen_end(b, query);
    begin = begin > key ? begin : key;
    end = end < key + n ? end : key + n;
    if (i >= b->n_queries || begin >= end)
        return 0;
    uint64_t seen = UINT64_MAX >> (64 - (end - begin)) << (begin - key);
    return kern_attention_chooses(b) ? seen & kern_attention_chosen(b, i, key) : seen;
}

/** Whether none of the block's queries has chosen one of the n keys. All threads ask. */
KERN_INLINE bool kern_attention_skips(const struct kern_attention_view *b, uint32_t *any,
                                      unsigned n_threads, size_t key, size_t n)
{
    if (!kern_attention_chooses(b))
        return false;
    for (unsigned t = kern_thread_begin(); t < 1; t += kern_thread_step(n_threads))
        *any = 0;
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < b->n_queries; t += kern_thread_step(n_threads)) {
        if (kern_attention_chosen(b, t, key) << (64 - n))
            kern_atomic_max(any, 1);
    }
    kern_barrier();
    bool none = *any == 0;
    kern_barrier();
    return none;
}

/** A product with the scale and the soft cap. */
KERN_INLINE float kern_attention_score(const struct kern_attention_args *a, float product)
{
    float s = product * a->scale;
    return a->soft_cap > 0.0f ? fmath_soft_cap_f32(s, a->soft_cap, a->inverse_cap) : s;
}

/** What a query's maximum begins with: the head's sink, as if it were a key that comes first. */
KERN_INLINE float kern_attention_sink(const struct kern_attention_view *b)
{
    return b->a->sinks ? b->a->sinks[b->head] : -INFINITY;
}

/** A key and its value are in this row of k and v, if that has the elements of one head. */
KERN_INLINE size_t kern_attention_row(const struct kern_attention_view *b, size_t key)
{
    size_t row = key < b->range.n_parent ? b->range.parent_kv_row + key
                                         : b->range.kv_row + key - b->range.n_parent;
    return row * b->a->n_kv_heads + b->kv_head;
}

/** A query is in this row of q and out, if that has the elements of one head. */
KERN_INLINE size_t kern_attention_query_row(const struct kern_attention_view *b, size_t i)
{
    return (b->range.q_row + b->first + i) * b->a->n_heads + b->head;
}

/** Whether all rows begin at multiples of 16 bytes. */
KERN_INLINE bool kern_attention_aligned(const struct kern_attention_args *a)
{
    uintptr_t addresses = (uintptr_t)a->q | (uintptr_t)a->k | (uintptr_t)a->v | (uintptr_t)a->out |
                          (uintptr_t)a->further_k | (uintptr_t)a->further_v;
    return a->head_size % 4 == 0 && a->value_size % 4 == 0 && addresses % 16 == 0;
}

/**
 * Elements from .. from + 3 of a row of d; zeros where there are none. A row that is not real is
 * one that may be read. Without branches where rows are aligned, so that loads can be under way
 * side by side.
 */
KERN_INLINE struct kern_vec4 kern_attention_four(const float *row, unsigned d, bool real,
                                                 unsigned from, bool aligned)
{
    struct kern_vec4 x;
    if (aligned) {
        x = *(const struct kern_vec4 *)(const void *)(row + (from < d ? from : 0));
        real = real && from < d;
        KERN_UNROLL
        for (unsigned i = 0; i < 4; i++)
            x.v[i] = real ? x.v[i] : 0.0f;
        return x;
    }
    KERN_UNROLL
    for (unsigned i = 0; i < 4; i++)
        x.v[i] = real && from + i < d ? row[from + i] : 0.0f;
    return x;
}

/**
 * The work of block `block` of a grid, where a task has up to n_queries queries and keys come
 * n_keys at a time. They begin at a multiple of that, so that a query's sums do not depend on the
 * others.
 */
KERN_INLINE struct kern_attention_view kern_attention_view_of(const struct kern_attention_args *a,
                                                              size_t block, size_t n_queries,
                                                              size_t n_keys)
{
    struct kern_attention_task task = a->tasks[block / a->n_groups];
    struct kern_attention_view b;
    b.a = a;
    b.range = a->ranges[task.range];
    b.first = task.first;
    b.head = a->first_head + block % a->n_groups * a->group_heads;
    b.kv_head = b.head / (a->n_heads / a->n_kv_heads);
    size_t left = b.range.n_q - b.first;
    b.n_queries = left < n_queries ? left : n_queries;
    b.own = b.range.n_parent + b.range.q_offset + b.first;
    b.run = 0;
    size_t begin = kern_attention_window_begin(&b, kern_attention_key(&b, 0));
    b.key_begin = begin / n_keys * n_keys;
    b.key_end = kern_attention_key(&b, b.n_queries - 1) + 1;
    return b;
}

/** The view of these queries with the further keys. */
KERN_INLINE struct kern_attention_view kern_attention_further(const struct kern_attention_view *of,
                                                              size_t block)
{
    struct kern_attention_view b = *of;
    const struct kern_attention_args *a = b.a;
    b.range = a->further_ranges[a->tasks[block / a->n_groups].range];
    b.run = a->further_run;
    b.key_begin = 0;
    b.key_end = kern_attention_seen_end(&b, kern_attention_key(&b, b.n_queries - 1));
    return b;
}

#endif

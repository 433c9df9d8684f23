/** A task of attention: its query blocks, the keys that it walks, and which of them a query sees.
 */
#ifndef KERNELS_CPU_ATTENTION_TASK_H
#define KERNELS_CPU_ATTENTION_TASK_H

#include <assert.h>

#include "kernels/cpu/attention/products.h"
#include "kernels/cpu/attention/ranges.h"
#include "kernels/operations.h"

/** KERN_PANEL consecutive queries of a range under one head, and what is known of them so far. */
struct query_block {
    _Alignas(64) float max[KERN_PANEL], sum[KERN_PANEL]; /* see kern_softmax_block */
    float *q;                                            /* the queries, packed */
    float *out;                                          /* panel array [dv]: sums of p * v */
    size_t first, n;                                     /* queries of the range */
    size_t head;
    size_t key_begin, key_end; /* of the set, seen by any of the queries; see operations.h */
};

struct attention {
    const struct kern_cpu *cpu;
    const struct kern_attention *op;
    size_t n_task_heads, n_parts; /* heads per task; tasks that the heads of a key head make */
    size_t n_shared;              /* query blocks per task and head */
    size_t *first_task; /* per range: tasks in the ranges before it; one more at the end */
    float *sinks;       /* [H], or NULL */
    char *per_thread;
    size_t thread_bytes;
};

/** The keys that are walked: of tokens, or the further ones. */
struct key_set {
    const float *k, *v;
    const struct kern_query_range *range; /* where they lie */
    size_t run;                           /* of a further key; 0: they are of tokens */
    bool chosen;                          /* queries see those that they have chosen */
};

/** One task, with the memory of the thread that does it. */
struct attention_task {
    const struct attention *job;
    const struct kern_query_range *range;
    struct key_set set;
    size_t kv_head, first_head; /* first_head: of the key head's */
    struct query_block *blocks;
    size_t n_blocks;
    struct kern_key_block keys; /* the current ones; their scores become probabilities */
    float *spare;               /* panel array [2 dv] */
    bool careful;               /* hidden values may not be finite: see add_values_carefully() */
};

static_assert(KERN_KEY_BLOCK == 64, "a bit for each key of a block");

/** The keys that each lane sees, relative to the first current key. */
struct visible {
    size_t key; /* the first current one */
    int32_t begin[KERN_PANEL], end[KERN_PANEL];
    uint64_t hidden[KERN_PANEL]; /* bits of those from begin to end that are not chosen */
};

/** The keys of the current set that the query with this key index sees: from, and up to. */
size_t kern_seen_begin(const struct attention_task *task, size_t query);
size_t kern_seen_end(const struct attention_task *task, size_t query);

/** Find those among the n_keys keys from `key` on. Returns false if no lane sees any of them. */
bool kern_find_visible(struct visible *visible, const struct attention_task *task,
                       const struct query_block *block, size_t key, size_t n_keys);

/** Whether a lane sees the j-th of the current keys. */
bool kern_sees(const struct visible *visible, size_t lane, size_t j);

#endif

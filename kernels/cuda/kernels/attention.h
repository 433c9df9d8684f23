/**
 * Causal attention in flash style. A block of threads takes KERN_ATTENTION_QUERIES queries of one
 * range under one head and walks their keys KERN_KEY_BLOCK at a time: scores, online softmax,
 * values. Scores never leave the chip.
 *
 * Per token and layer it must do 4 d H operations for each key that a query sees, in float32
 * without tensor cores; it must read q and write out once (8 d H bytes per token) and read the
 * keys and values of the range once per KERN_ATTENTION_QUERIES queries and head (from L2: all
 * blocks of a range read the same ones). At 512 tokens of context it is bound by arithmetic.
 *
 * Values of more than KERN_ATTENTION_MOST elements are added up by several blocks, a part each.
 * Each of them computes the scores.
 *
 * Every output is the CPU's chain (kernels/cpu/attention/attention.c, softmax.c): scores along d,
 * the sum along the keys of a block, values along the keys. So the bits are the CPU's. As there, a
 * value that a query must not see is multiplied by 0. Where a result is not finite, the walk is
 * repeated without the products that are masked.
 */
#ifndef KERNELS_CUDA_KERNELS_ATTENTION_H
#define KERNELS_CUDA_KERNELS_ATTENTION_H

#include "kernels/cuda/kernels/attention_view.h"

enum {
    KERN_ATTENTION_THREADS = 128,
    KERN_ATTENTION_QUERIES = 32,
    KERN_ATTENTION_DIMS = 64,  /* of keys or values in shared memory at a time */
    KERN_ATTENTION_CHUNKS = 4, /* of those: values that a block adds up, queries that it keeps */
    KERN_ATTENTION_MOST = KERN_ATTENTION_DIMS * KERN_ATTENTION_CHUNKS,
    KERN_ATTENTION_PITCH = 64 + 4,
    KERN_ATTENTION_Q_PITCH = KERN_ATTENTION_QUERIES + 4
};

/**
 * Followed by the queries, turned: [d][KERN_ATTENTION_Q_PITCH], d at most KERN_ATTENTION_MOST; of
 * larger heads it has the elements that are being multiplied. A multiple of 16 bytes, so
 * that four neighbours of any of these arrays are one load.
 */
struct kern_attention_shared {
    float kv[KERN_ATTENTION_DIMS * KERN_ATTENTION_PITCH]; /* keys turned, or values */
    float s[KERN_KEY_BLOCK * KERN_ATTENTION_Q_PITCH];     /* [key][query] */
    float max[KERN_ATTENTION_QUERIES], sum[KERN_ATTENTION_QUERIES];
    float part[4][KERN_ATTENTION_QUERIES]; /* maxima of quarters of the keys */
    float rescale[KERN_ATTENTION_QUERIES], reference[KERN_ATTENTION_QUERIES];
    uint64_t seen[KERN_ATTENTION_QUERIES]; /* of the keys that are here, a bit each */
    uint32_t not_finite, any_chosen;
} __attribute__((aligned(16)));

/** What all threads of a block know. */
struct kern_attention_block {
    struct kern_attention_view view;
    struct kern_attention_shared *s;
    float *q;
    size_t first_value; /* of the elements that this block adds up */
    bool aligned;       /* rows, to 16 bytes */
    bool careful;
};

/** Sums of values: 4 queries times 4 elements of each chunk. */
struct kern_attention_sums {
    float out[KERN_ATTENTION_CHUNKS][4][4];
};

/**
 * Elements from .. from + n - 1 of the queries. Eight lanes have neighbouring queries, others the
 * next four elements.
 */
KERN_INLINE void kern_attention_load_queries(const struct kern_attention_block *b, size_t from,
                                             unsigned n)
{
    const float *q = b->view.a->q + from;
    size_t d = b->view.a->head_size;
    for (unsigned t = kern_thread_begin(); t < KERN_ATTENTION_THREADS;
         t += kern_thread_step(KERN_ATTENTION_THREADS)) {
        for (unsigned e = t / 8 * 4; e < n; e += KERN_ATTENTION_DIMS) {
            KERN_UNROLL
            for (unsigned i = 0; i < KERN_ATTENTION_QUERIES / 8; i++) {
                unsigned query = t % 8 + 8 * i;
                bool real = query < b->view.n_queries;
                size_t row = kern_attention_query_row(&b->view, real ? query : 0);
                struct kern_vec4 x = kern_attention_four(q + row * d, n, real, e, b->aligned);
                KERN_UNROLL
                for (unsigned k = 0; k < 4; k++) {
                    if (e + k < n)
                        b->q[(e + k) * KERN_ATTENTION_Q_PITCH + query] = x.v[k];
                }
            }
        }
    }
}

/**
 * Elements from `from` on of n_keys keys, turned: kv[element][key], or values: kv[key][element].
 * Eight lanes have neighbouring keys, others the next four elements.
 */
KERN_INLINE void kern_attention_load(const struct kern_attention_block *b, size_t key,
                                     size_t n_keys, size_t from, bool turned)
{
    const struct kern_attention_args *a = b->view.a;
    const float *rows = turned ? a->k : a->v;
    if (b->view.run)
        rows = turned ? a->further_k : a->further_v;
    size_t width = turned ? a->head_size : a->value_size, left = width - from;
    unsigned n = left < KERN_ATTENTION_DIMS ? (unsigned)left : KERN_ATTENTION_DIMS;
    for (unsigned t = kern_thread_begin(); t < KERN_ATTENTION_THREADS;
         t += kern_thread_step(KERN_ATTENTION_THREADS)) {
        unsigned e = t / 8 * 4;
        for (unsigned half = 0; half < KERN_KEY_BLOCK; half += KERN_KEY_BLOCK / 2) {
            struct kern_vec4 x[KERN_KEY_BLOCK / 16]; /* on their way together */
            KERN_UNROLL
            for (unsigned i = 0; i < KERN_KEY_BLOCK / 16; i++) {
                unsigned j = half + i * 8 + t % 8;
                size_t row = kern_attention_row(&b->view, key + (j < n_keys ? j : 0));
                x[i] = kern_attention_four(rows + row * width + from, n, j < n_keys, e, b->aligned);
            }
            KERN_UNROLL
            for (unsigned i = 0; i < KERN_KEY_BLOCK / 16; i++) {
                unsigned j = half + i * 8 + t % 8;
                if (!turned)
                    *(struct kern_vec4 *)(void *)(b->s->kv + j * KERN_ATTENTION_PITCH + e) = x[i];
                KERN_UNROLL
                for (unsigned k = 0; turned && k < 4; k++)
                    b->s->kv[(e + k) * KERN_ATTENTION_PITCH + j] = x[i].v[k];
            }
        }
    }
}

/** s[key][query] = q . k: a thread has 4 queries and 4 keys, and chains along the elements. */
KERN_INLINE void kern_attention_scores(const struct kern_attention_block *b, size_t key,
                                       size_t n_keys)
{
    float sums[KERN_SLOTS(KERN_ATTENTION_THREADS)][4][4];
    struct kern_attention_shared *s = b->s;
    size_t d = b->view.a->head_size;
    for (unsigned t = kern_thread_begin(); t < KERN_ATTENTION_THREADS;
         t += kern_thread_step(KERN_ATTENTION_THREADS)) {
        for (unsigned i = 0; i < 16; i++)
            sums[kern_slot(t)][i / 4][i % 4] = 0.0f;
    }
    for (size_t from = 0; from < d; from += KERN_ATTENTION_DIMS) {
        unsigned n = d - from < KERN_ATTENTION_DIMS ? (unsigned)(d - from) : KERN_ATTENTION_DIMS;
        kern_attention_load(b, key, n_keys, from, true);
        if (d > KERN_ATTENTION_MOST)
            kern_attention_load_queries(b, from, n);
        kern_barrier();
        for (unsigned t = kern_thread_begin(); t < KERN_ATTENTION_THREADS;
             t += kern_thread_step(KERN_ATTENTION_THREADS)) {
            const float *q = b->q + t / 16 * 4;
            q += d > KERN_ATTENTION_MOST ? 0 : from * KERN_ATTENTION_Q_PITCH;
            const float *k = s->kv + t % 16 * 4;
            for (unsigned e = 0; e < n; e++) {
                for (unsigned i = 0; i < 16; i++) {
                    float *sum = &sums[kern_slot(t)][i / 4][i % 4];
                    *sum = fmaf(k[e * KERN_ATTENTION_PITCH + i % 4],
                                q[e * KERN_ATTENTION_Q_PITCH + i / 4], *sum);
                }
            }
        }
        kern_barrier();
    }
    for (unsigned t = kern_thread_begin(); t < KERN_ATTENTION_THREADS;
         t += kern_thread_step(KERN_ATTENTION_THREADS)) {
        for (unsigned i = 0; i < 16; i++)
            s->s[(t % 16 * 4 + i % 4) * KERN_ATTENTION_Q_PITCH + t / 16 * 4 + i / 4] =
                kern_attention_score(b->view.a, sums[kern_slot(t)][i / 4][i % 4]);
    }
    kern_barrier();
}

/** The softmax of a block of keys; see struct kern_softmax_block. Four threads share a query. */
KERN_INLINE void kern_attention_softmax(const struct kern_attention_block *b, size_t n_keys)
{
    struct kern_attention_shared *s = b->s;
    for (unsigned t = kern_thread_begin(); t < KERN_ATTENTION_THREADS;
         t += kern_thread_step(KERN_ATTENTION_THREADS)) {
        unsigned query = t % KERN_ATTENTION_QUERIES, part = t / KERN_ATTENTION_QUERIES;
        unsigned seen = (unsigned)(s->seen[query] >> 16 * part);
        float max = -INFINITY;
        for (unsigned j = 0; j < 16; j++) {
            float x = s->s[(16 * part + j) * KERN_ATTENTION_Q_PITCH + query];
            if ((seen >> j & 1) && x > max)
                max = x;
        }
        s->part[part][query] = max;
    }
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < KERN_ATTENTION_QUERIES;
         t += kern_thread_step(KERN_ATTENTION_THREADS)) {
        float old = s->max[t], max = old;
        for (unsigned part = 0; part < 4; part++)
            max = s->part[part][t] > max ? s->part[part][t] : max;
        s->reference[t] = max == -INFINITY ? 0.0f : max;
        s->rescale[t] = old == -INFINITY ? 1.0f : fmath_exp_f32(old - max);
        s->max[t] = max;
    }
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < KERN_ATTENTION_THREADS;
         t += kern_thread_step(KERN_ATTENTION_THREADS)) {
        unsigned query = t % KERN_ATTENTION_QUERIES, part = t / KERN_ATTENTION_QUERIES;
        unsigned seen = (unsigned)(s->seen[query] >> 16 * part);
        for (unsigned j = 0; j < 16; j++) {
            float *x = &s->s[(16 * part + j) * KERN_ATTENTION_Q_PITCH + query];
            float p = fmath_exp_f32(*x - s->reference[query]);
            *x = seen >> j & 1 ? p : 0.0f;
        }
    }
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < KERN_ATTENTION_QUERIES;
         t += kern_thread_step(KERN_ATTENTION_THREADS)) {
        float sum = 0.0f;
        for (unsigned j = 0; j < n_keys; j++)
            sum += s->s[j * KERN_ATTENTION_Q_PITCH + t];
        s->sum[t] = fmaf(s->sum[t], s->rescale[t], sum);
    }
}

/** One thread's part of adding p times v of a chunk of elements. */
KERN_INLINE void kern_attention_add(const struct kern_attention_block *b, size_t n_keys, unsigned t,
                                    float (*out)[4])
{
    const float *p = b->s->s + t / 16 * 4, *v = b->s->kv + t % 16 * 4;
    for (unsigned i = 0; i < 16; i++)
        out[i / 4][i % 4] *= b->s->rescale[t / 16 * 4 + i / 4];
    for (unsigned j = 0; j < n_keys; j++) {
        for (unsigned i = 0; i < 16; i++) {
            if (b->careful && !(b->s->seen[t / 16 * 4 + i / 4] >> j & 1))
                continue;
            out[i / 4][i % 4] = fmaf(v[j * KERN_ATTENTION_PITCH + i % 4],
                                     p[j * KERN_ATTENTION_Q_PITCH + i / 4], out[i / 4][i % 4]);
        }
    }
}

KERN_INLINE void kern_attention_values(const struct kern_attention_block *b, size_t key,
                                       size_t n_keys, struct kern_attention_sums *sums)
{
    KERN_UNROLL
    for (unsigned chunk = 0; chunk < KERN_ATTENTION_CHUNKS; chunk++) {
        size_t from = b->first_value + (size_t)chunk * KERN_ATTENTION_DIMS;
        if (from >= b->view.a->value_size)
            break;
        kern_attention_load(b, key, n_keys, from, false);
        kern_barrier();
        for (unsigned t = kern_thread_begin(); t < KERN_ATTENTION_THREADS;
             t += kern_thread_step(KERN_ATTENTION_THREADS))
            kern_attention_add(b, n_keys, t, sums[kern_slot(t)].out[chunk]);
        kern_barrier();
    }
}

/** The element of a thread's sums, or a number that is not the head's. */
KERN_INLINE size_t kern_attention_element(const struct kern_attention_block *b, unsigned t,
                                          unsigned chunk, unsigned i)
{
    return b->first_value + (size_t)chunk * KERN_ATTENTION_DIMS + t % 16 * 4 + i % 4;
}

/** Divide by the sums, note what is not finite, write. */
KERN_INLINE void kern_attention_finish(const struct kern_attention_block *b,
                                       struct kern_attention_sums *sums)
{
    size_t dv = b->view.a->value_size;
    for (unsigned t = kern_thread_begin(); t < KERN_ATTENTION_THREADS;
         t += kern_thread_step(KERN_ATTENTION_THREADS)) {
        KERN_UNROLL
        for (unsigned chunk = 0; chunk < KERN_ATTENTION_CHUNKS; chunk++) {
            for (unsigned i = 0; i < 16; i++) {
                unsigned query = t / 16 * 4 + i / 4;
                size_t e = kern_attention_element(b, t, chunk, i);
                if (query >= b->view.n_queries || e >= dv)
                    continue;
                float x = sums[kern_slot(t)].out[chunk][i / 4][i % 4] * (1.0f / b->s->sum[query]);
                b->view.a->out[kern_attention_query_row(&b->view, query) * dv + e] = x;
                if (!(fabsf(x) < INFINITY))
                    kern_atomic_max(&b->s->not_finite, 1);
            }
        }
    }
    kern_barrier();
}

/** The keys of b's view. */
KERN_INLINE void kern_attention_walk_keys(const struct kern_attention_block *b,
                                          struct kern_attention_sums *sums)
{
    for (size_t key = b->view.key_begin; key < b->view.key_end; key += KERN_KEY_BLOCK) {
        size_t left = b->view.key_end - key, n_keys = left < KERN_KEY_BLOCK ? left : KERN_KEY_BLOCK;
        if (kern_attention_skips(&b->view, &b->s->any_chosen, KERN_ATTENTION_THREADS, key, n_keys))
            continue;
        for (unsigned t = kern_thread_begin(); t < KERN_ATTENTION_QUERIES;
             t += kern_thread_step(KERN_ATTENTION_THREADS))
            b->s->seen[t] = kern_attention_seen(&b->view, t, key, n_keys);
        kern_attention_scores(b, key, n_keys); /* its barriers come before the first use */
        kern_attention_softmax(b, n_keys);
        kern_attention_values(b, key, n_keys, sums);
    }
}

KERN_INLINE void kern_attention_walk(const struct kern_attention_block *b, size_t block)
{
    struct kern_attention_sums sums[KERN_SLOTS(KERN_ATTENTION_THREADS)];
    for (unsigned t = kern_thread_begin(); t < KERN_ATTENTION_THREADS;
         t += kern_thread_step(KERN_ATTENTION_THREADS)) {
        for (unsigned i = 0; i < KERN_ATTENTION_CHUNKS * 16; i++)
            sums[kern_slot(t)].out[i / 16][i / 4 % 4][i % 4] = 0.0f;
        if (t < KERN_ATTENTION_QUERIES) {
            float sink = kern_attention_sink(&b->view);
            b->s->max[t] = sink;
            b->s->sum[t] = sink == -INFINITY ? 0.0f : 1.0f;
        }
        if (t == 0)
            b->s->not_finite = 0;
    }
    kern_barrier();
    for (unsigned further = b->view.a->further_run ? 1 : 0; further < 2; further--) {
        struct kern_attention_block of = *b;
        if (further)
            of.view = kern_attention_further(&b->view, block);
        kern_attention_walk_keys(&of, sums);
    }
    kern_attention_finish(b, sums);
}

KERN_INLINE void kern_attend_block(const struct kern_attention_args *a, size_t block, void *shared)
{
    struct kern_attention_block b;
    b.view = kern_attention_view_of(a, block / a->n_parts, KERN_ATTENTION_QUERIES, KERN_KEY_BLOCK);
    b.first_value = block % a->n_parts * KERN_ATTENTION_MOST;
    b.s = (struct kern_attention_shared *)shared;
    b.q = (float *)(b.s + 1);
    b.aligned = kern_attention_aligned(a);
    if (a->head_size <= KERN_ATTENTION_MOST)
        kern_attention_load_queries(&b, 0, (unsigned)a->head_size);
    b.careful = false;
    kern_attention_walk(&b, block / a->n_parts);
    if (b.s->not_finite) {
        kern_barrier();
        b.careful = true;
        kern_attention_walk(&b, block / a->n_parts);
    }
}

#endif

/** What a block of threads works on: a head's rows of q, k and v, and a group of columns of S. */
#ifndef KERNELS_CUDA_KERNELS_RECURRENT_BLOCK_H
#define KERNELS_CUDA_KERNELS_RECURRENT_BLOCK_H

#include "kernels/cuda/kernels/thread.h"
#include "kernels/recurrent/check.h"
#include "kernels/recurrent/gates.h"

enum { KERN_RECUR_THREADS = 128, KERN_RECUR_PARTS = KERN_RECUR_THREADS / KERN_RECUR_LANES };

/** A block per family (a run and those that go on from it), head and group of columns: fastest. */
struct kern_recur_args {
    struct kern_recur op;                /* all but the weights is on the device */
    const float *dt_bias, *decay, *skip; /* skip: or NULL */
    const uint32_t *families;            /* their first runs; n_runs after the last one */
    float *parents;                      /* a record for each block; NULL: no run has a parent */
};

/** After it: S [dk][KERN_RECUR_LANES], k and q [KERN_CHUNK][dk + 1]; by_channel also the decays. */
struct kern_recur_shared {
    double log[KERN_CHUNK], dt[KERN_CHUNK];
    float beta[KERN_CHUNK], decay[KERN_CHUNK], factors[KERN_CHUNK];
    float k_factors[KERN_CHUNK], q_factors[KERN_CHUNK];
    float solve[KERN_CHUNK][KERN_CHUNK], read[KERN_CHUNK][KERN_CHUNK];
    float e[KERN_CHUNK][KERN_RECUR_LANES];
    float held[KERN_STEP_CHAINS][KERN_RECUR_LANES], out[KERN_STEP_CHAINS][KERN_RECUR_LANES];
};

/** What a block works on: tokens n .. end - 1 of a chunk are rows from `row` on. */
struct kern_recur_block {
    const struct kern_recur_args *a;
    struct kern_recur_shared *s;
    float *state, *k, *q, *decay;
    size_t head, k_head, group, width; /* columns of the group that v has */
    unsigned n, end;
    size_t row;
    bool begun; /* S is not 0 */
    bool steps; /* token by token: op.by_channel, as a constant */
};

/** A loop over the block's threads t. */
#define KERN_RECUR_EACH_T                                                                          \
    for (unsigned t = kern_thread_begin(); t < KERN_RECUR_THREADS;                                 \
         t += kern_thread_step(KERN_RECUR_THREADS))

/** What dt and beta of new token t are; by_channel beta alone. */
KERN_INLINE void kern_recur_load_gates(const struct kern_recur_block *b, unsigned t)
{
    const struct kern_recur *op = &b->a->op;
    size_t row = b->row + t - b->n;
    double dt = 0.0;
    if (!b->steps)
        dt = kern_recur_dt(op->dt[row * op->dt_stride + b->head], b->a->dt_bias[b->head],
                           op->dt_min);
    b->s->dt[t] = dt * (double)b->a->decay[b->head];
    b->s->beta[t] =
        op->beta ? kern_sigmoid_f32(op->beta[row * op->beta_stride + b->head]) : (float)dt;
}

/** k and q of the new tokens as they are, and what their dt and beta, or decays, are. */
KERN_INLINE void kern_recur_load_rows(const struct kern_recur_block *b)
{
    const struct kern_recur *op = &b->a->op;
    size_t dk = op->k_size;
    KERN_RECUR_EACH_T
    {
        for (size_t i = t; i < (b->end - b->n) * dk; i += KERN_RECUR_THREADS) {
            size_t token = i / dk, column = i % dk;
            size_t from = (b->row + token) * op->stride + b->k_head * dk + column;
            size_t to = (b->n + token) * (dk + 1) + column;
            b->k[to] = op->k[from];
            b->q[to] = op->q[from];
        }
        if (t >= b->n && t < b->end)
            kern_recur_load_gates(b, t);
        size_t n_decays = b->steps ? (b->end - b->n) * dk : 0;
        for (size_t i = t; i < n_decays; i += KERN_RECUR_THREADS) {
            size_t column = b->head * dk + i % dk;
            float dt = op->dt[(b->row + i / dk) * op->dt_stride + column];
            const struct kern_decay decay = {b->a->decay[b->head], op->dt_min, op->least_log};
            b->decay[i] = kern_recur_decay(dt, b->a->dt_bias[column], &decay);
        }
    }
    kern_barrier();
}

KERN_INLINE float kern_recur_unit(const struct kern_recur *op, const float *x, float scale)
{
    double lanes[KERN_UNIT_LANES];
    if (op->unit == KERN_UNIT_NONE)
        return scale;
    KERN_ROLLED
    for (unsigned lane = 0; lane < KERN_UNIT_LANES; lane++) {
        lanes[lane] = 0.0;
        for (size_t i = lane; i < op->k_size; i += KERN_UNIT_LANES)
            lanes[lane] += (double)x[i] * (double)x[i];
    }
    return kern_unit_factor(op->unit, kern_unit_sum(lanes), op->eps, scale);
}

/** Lengths of k and q; sums of the log decays. */
KERN_INLINE void kern_recur_load_factors(const struct kern_recur_block *b)
{
    const struct kern_recur *op = &b->a->op;
    struct kern_recur_shared *s = b->s;
    size_t pitch = op->k_size + 1;
    KERN_RECUR_EACH_T
    {
        unsigned token = t % KERN_CHUNK;
        bool is_new = token >= b->n && token < b->end;
        if (is_new && t / KERN_CHUNK == 0)
            s->k_factors[token] = kern_recur_unit(op, b->k + token * pitch, 1.0f);
        if (is_new && t / KERN_CHUNK == 1)
            s->q_factors[token] = kern_recur_unit(op, b->q + token * pitch, op->scale);
        if (t == 2 * KERN_CHUNK) {
            double sum = b->n > 0 ? s->log[b->n - 1] : 0.0;
            for (unsigned i = b->n; i < b->end; i++)
                s->log[i] = sum += s->dt[i];
        }
    }
    kern_barrier();
}

KERN_INLINE void kern_recur_scale_rows(const struct kern_recur_block *b)
{
    struct kern_recur_shared *s = b->s;
    size_t dk = b->a->op.k_size;
    KERN_RECUR_EACH_T
    {
        for (size_t i = t; i < (b->end - b->n) * dk; i += KERN_RECUR_THREADS) {
            unsigned token = b->n + (unsigned)(i / dk);
            b->k[token * (dk + 1) + i % dk] *= s->k_factors[token];
            b->q[token * (dk + 1) + i % dk] *= s->q_factors[token];
        }
        if (t >= b->n && t < b->end)
            s->decay[t] = fmath_exp_f32((float)s->log[t]);
    }
    kern_barrier();
}

/** v of a new token. */
KERN_INLINE float kern_recur_v(const struct kern_recur_block *b, unsigned token, unsigned lane)
{
    const struct kern_recur *op = &b->a->op;
    size_t column = b->head * op->v_size + b->group * KERN_RECUR_LANES + lane;
    return lane < b->width ? op->v[(b->row + token - b->n) * op->stride + column] : 0.0f;
}

/**
 * Copy the state to a record, or from it; `save` says which. A thread has the same numbers both
 * ways, so it may follow itself without a barrier.
 */
KERN_INLINE void kern_recur_move(const struct kern_recur_block *b, float *record, bool save)
{
    struct kern_recur_shared *s = b->s;
    size_t dk = b->a->op.k_size;
    float *k = record + dk * KERN_RECUR_LANES, *e = k + dk * KERN_CHUNK;
    double *log = (double *)(void *)(e + KERN_CHUNK * KERN_RECUR_LANES);
    KERN_RECUR_EACH_T
    {
        for (size_t i = t; b->begun && i < dk * KERN_RECUR_LANES; i += KERN_RECUR_THREADS)
            *(save ? record + i : b->state + i) = save ? b->state[i] : record[i];
        for (size_t i = t; i < b->n * dk; i += KERN_RECUR_THREADS) {
            float *here = b->k + i / dk * (dk + 1) + i % dk;
            *(save ? k + i : here) = save ? *here : k[i];
        }
        for (unsigned i = t; i < b->n * KERN_RECUR_LANES; i += KERN_RECUR_THREADS) {
            float *here = &s->e[i / KERN_RECUR_LANES][i % KERN_RECUR_LANES];
            *(save ? e + i : here) = save ? *here : e[i];
        }
        if (t < b->n)
            *(save ? log + t : s->log + t) = save ? s->log[t] : log[t];
    }
}

#endif

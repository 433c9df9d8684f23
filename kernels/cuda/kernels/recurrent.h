/**
 * Kernels of recurrent layers: the causal convolution, and states in chunks of tokens. Formulas and
 * orders are those of kernels/recurrent/op.h and kernels/cpu/recurrent/chunk.h, so the bits are the
 * CPU's.
 *
 * The convolution is bound by memory: 8 bytes per token and channel, as neighbours share what they
 * read. A state takes 6 dk dv + 2 KERN_CHUNK (dk + dv) operations per token and head in float32;
 * blocks of a head repeat the products of q and k, which is the smaller part.
 */
#ifndef KERNELS_CUDA_KERNELS_RECURRENT_H
#define KERNELS_CUDA_KERNELS_RECURRENT_H

#include "kernels/cuda/kernels/thread.h"
#include "kernels/recurrent/check.h"
#include "kernels/recurrent/gates.h"

enum {
    KERN_CONVOLVE_THREADS = 128, /* a channel each */
    KERN_CONVOLVE_TOKENS = 32,   /* of a block */
    KERN_RECUR_THREADS = 128,
    KERN_RECUR_PARTS = KERN_RECUR_THREADS / KERN_RECUR_LANES
};

/** Tokens from `first` of a run on. */
struct kern_convolve_task {
    uint32_t run, first;
};

/** A block has a task and KERN_CONVOLVE_THREADS channels; the next block has the next channels. */
struct kern_convolve_args {
    struct kern_tap_rows rows; /* all on the device */
    float *y;
    const float *weights; /* [n_channels, n_taps] */
    const float *bias;    /* or NULL */
    bool bare;
    const struct kern_convolve_task *tasks;
};

KERN_INLINE float kern_convolve_at(const struct kern_convolve_args *a, const struct kern_run *run,
                                   size_t t, size_t channel)
{
    size_t n_taps = a->rows.n_taps;
    float z = a->bias ? a->bias[channel] : 0.0f;
    for (size_t j = 0; j < n_taps; j++) {
        const float *row = kern_tap_row(&a->rows, run, t, n_taps - 1 - j);
        if (row)
            z = fmaf(a->weights[channel * n_taps + j], row[channel], z);
    }
    return a->bare ? z : z / (1.0f + fmath_exp_f32(-z));
}

KERN_INLINE void kern_convolve_block(const struct kern_convolve_args *a, size_t block, void *shared)
{
    (void)shared;
    size_t n_channels = a->rows.n_channels;
    size_t per_task = (n_channels + KERN_CONVOLVE_THREADS - 1) / KERN_CONVOLVE_THREADS;
    struct kern_convolve_task task = a->tasks[block / per_task];
    const struct kern_run *run = &a->rows.runs[task.run];
    size_t first = block % per_task * KERN_CONVOLVE_THREADS;
    for (unsigned i = kern_thread_begin(); i < KERN_CONVOLVE_THREADS;
         i += kern_thread_step(KERN_CONVOLVE_THREADS)) {
        for (size_t t = task.first;
             first + i < n_channels && t < run->n && t < (size_t)task.first + KERN_CONVOLVE_TOKENS;
             t++)
            a->y[(run->row + t) * n_channels + first + i] = kern_convolve_at(a, run, t, first + i);
    }
}

/** Save the ends of runs, once no block of KERN_CUDA_CONVOLVE reads the states: a task per run. */
KERN_INLINE void kern_taps_block(const struct kern_convolve_args *a, size_t block, void *shared)
{
    (void)shared;
    size_t n_channels = a->rows.n_channels;
    size_t per_task = (n_channels + KERN_CONVOLVE_THREADS - 1) / KERN_CONVOLVE_THREADS;
    const struct kern_run *run = &a->rows.runs[a->tasks[block / per_task].run];
    size_t first = block % per_task * KERN_CONVOLVE_THREADS;
    for (unsigned i = kern_thread_begin(); i < KERN_CONVOLVE_THREADS;
         i += kern_thread_step(KERN_CONVOLVE_THREADS)) {
        if (first + i < n_channels)
            kern_tap_save(&a->rows, run, first + i);
    }
}

/** A block per family (a run and those that go on from it), head and group of columns: fastest. */
struct kern_recur_args {
    struct kern_recur op;                /* all but the weights is on the device */
    const float *dt_bias, *decay, *skip; /* skip: or NULL */
    const uint32_t *families;            /* their first runs; n_runs after the last one */
    float *parents;                      /* a record for each block; NULL: no run has a parent */
};

/** After it: S [dk][KERN_RECUR_LANES], k and q [KERN_CHUNK][dk + 1]. */
struct kern_recur_shared {
    double log[KERN_CHUNK], dt[KERN_CHUNK];
    float beta[KERN_CHUNK], decay[KERN_CHUNK], factors[KERN_CHUNK];
    float k_factors[KERN_CHUNK], q_factors[KERN_CHUNK];
    float solve[KERN_CHUNK][KERN_CHUNK], read[KERN_CHUNK][KERN_CHUNK];
    float e[KERN_CHUNK][KERN_RECUR_LANES];
};

/** What a block works on: tokens n .. end - 1 of a chunk are rows from `row` on. */
struct kern_recur_block {
    const struct kern_recur_args *a;
    struct kern_recur_shared *s;
    float *state, *k, *q;
    size_t head, k_head, group, width; /* columns of the group that v has */
    unsigned n, end;
    size_t row;
    bool begun; /* S is not 0 */
};

/** A loop over the block's threads t. */
#define KERN_RECUR_EACH_T                                                                          \
    for (unsigned t = kern_thread_begin(); t < KERN_RECUR_THREADS;                                 \
         t += kern_thread_step(KERN_RECUR_THREADS))

/** k and q of the new tokens as they are, and what their dt and beta are. */
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
        if (t >= b->n && t < b->end) {
            size_t gate = (b->row + t - b->n) * op->gate_stride + b->head;
            double dt = kern_recur_dt(op->dt[gate], b->a->dt_bias[b->head], op->dt_min);
            b->s->dt[t] = dt * (double)b->a->decay[b->head];
            b->s->beta[t] = op->beta ? kern_sigmoid_f32(op->beta[gate]) : (float)dt;
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

/** How much of e_i goes into e_t and o_t: they are read after the barrier in kern_recur_changes().
 */
KERN_INLINE void kern_recur_triangles(const struct kern_recur_block *b)
{
    struct kern_recur_shared *s = b->s;
    size_t dk = b->a->op.k_size;
    KERN_RECUR_EACH_T
    {
        unsigned i = t % KERN_CHUNK;
        for (unsigned token = t / KERN_CHUNK; token < b->end; token += KERN_RECUR_PARTS) {
            if (token < b->n || i > token)
                continue;
            const float *k = b->k + i * (dk + 1);
            const float *own_k = b->k + token * (dk + 1), *own_q = b->q + token * (dk + 1);
            float by_k = 0.0f, by_q = 0.0f;
            for (size_t c = 0; c < dk; c++) {
                by_k = fmaf(own_k[c], k[c], by_k);
                by_q = fmaf(own_q[c], k[c], by_q);
            }
            float factor = fmath_exp_f32((float)(s->log[token] - s->log[i]));
            s->read[token][i] = by_q * factor;
            s->solve[token][i] = by_k * (factor * -s->beta[token]);
        }
    }
}

/** sum + the row of w, each number times factor, times S. */
KERN_INLINE float kern_recur_of_state(const struct kern_recur_block *b, const float *w,
                                      float factor, unsigned lane, float sum)
{
    for (size_t c = 0; b->begun && c < b->a->op.k_size; c++)
        sum = fmaf(w[c] * factor, b->state[c * KERN_RECUR_LANES + lane], sum);
    return sum;
}

/** v of a new token. */
KERN_INLINE float kern_recur_v(const struct kern_recur_block *b, unsigned token, unsigned lane)
{
    const struct kern_recur *op = &b->a->op;
    size_t column = b->head * op->v_size + b->group * KERN_RECUR_LANES + lane;
    return lane < b->width ? op->v[(b->row + token - b->n) * op->stride + column] : 0.0f;
}

/** e of the new tokens: what S makes of them, then what those before make. */
KERN_INLINE void kern_recur_changes(const struct kern_recur_block *b)
{
    struct kern_recur_shared *s = b->s;
    size_t pitch = b->a->op.k_size + 1;
    bool delta = b->a->op.beta != NULL;
    KERN_RECUR_EACH_T
    {
        unsigned lane = t % KERN_RECUR_LANES;
        for (unsigned token = b->n + t / KERN_RECUR_LANES; token < b->end;
             token += KERN_RECUR_PARTS) {
            float e = kern_recur_v(b, token, lane) * s->beta[token];
            s->e[token][lane] =
                delta ? kern_recur_of_state(b, b->k + token * pitch,
                                            -s->beta[token] * s->decay[token], lane, e)
                      : e;
        }
    }
    kern_barrier();
    if (!delta)
        return;
    KERN_RECUR_EACH_T
    {
        for (unsigned token = b->n; t < KERN_RECUR_LANES && token < b->end; token++) {
            float e = s->e[token][t];
            for (unsigned i = 0; i < token; i++)
                e = fmaf(s->solve[token][i], s->e[i][t], e);
            s->e[token][t] = e;
        }
    }
    kern_barrier();
}

KERN_INLINE void kern_recur_outputs(const struct kern_recur_block *b)
{
    const struct kern_recur *op = &b->a->op;
    struct kern_recur_shared *s = b->s;
    KERN_RECUR_EACH_T
    {
        unsigned lane = t % KERN_RECUR_LANES;
        for (unsigned token = b->n + t / KERN_RECUR_LANES; lane < b->width && token < b->end;
             token += KERN_RECUR_PARTS) {
            float out = kern_recur_of_state(b, b->q + token * (op->k_size + 1), s->decay[token],
                                            lane, 0.0f);
            for (unsigned i = 0; i <= token; i++)
                out = fmaf(s->read[token][i], s->e[i][lane], out);
            if (b->a->skip)
                out = fmaf(b->a->skip[b->head], kern_recur_v(b, token, lane), out);
            size_t row = (b->row + token - b->n) * op->n_heads + b->head;
            op->out[row * op->v_size + b->group * KERN_RECUR_LANES + lane] = out;
        }
    }
    kern_barrier();
}

/** The chunk is full: S for the next one. */
KERN_INLINE void kern_recur_finish(struct kern_recur_block *b)
{
    struct kern_recur_shared *s = b->s;
    size_t dk = b->a->op.k_size;
    KERN_RECUR_EACH_T
    {
        if (t < KERN_CHUNK)
            s->factors[t] = fmath_exp_f32((float)(s->log[KERN_CHUNK - 1] - s->log[t]));
    }
    kern_barrier();
    KERN_RECUR_EACH_T
    {
        unsigned lane = t % KERN_RECUR_LANES;
        for (size_t c = t / KERN_RECUR_LANES; c < dk; c += KERN_RECUR_PARTS) {
            float *at = b->state + c * KERN_RECUR_LANES + lane;
            float sum = b->begun ? *at * s->decay[KERN_CHUNK - 1] : 0.0f;
            for (unsigned i = 0; i < KERN_CHUNK; i++)
                sum = fmaf(b->k[i * (dk + 1) + c] * s->factors[i], s->e[i][lane], sum);
            *at = sum;
        }
    }
    kern_barrier();
    b->begun = true;
    b->n = 0;
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

KERN_INLINE void kern_recur_run(struct kern_recur_block *b, const struct kern_run *run, bool keep)
{
    for (size_t done = 0; done < run->n;) {
        size_t left = run->n - done, room = KERN_CHUNK - b->n;
        b->end = b->n + (unsigned)(left < room ? left : room);
        b->row = run->row + done;
        done += b->end - b->n;
        kern_recur_load_rows(b);
        kern_recur_load_factors(b);
        kern_recur_scale_rows(b);
        kern_recur_triangles(b);
        kern_recur_changes(b);
        kern_recur_outputs(b);
        b->n = b->end;
        if (b->n == KERN_CHUNK && (keep || done < run->n))
            kern_recur_finish(b);
    }
}

/** The block's record of a saved state. */
KERN_INLINE float *kern_recur_saved(const struct kern_recur_block *b, ptrdiff_t state)
{
    const struct kern_recur *op = &b->a->op;
    size_t record = ((size_t)state * op->n_heads + b->head) * kern_recur_n_groups(op) + b->group;
    return op->states + record * kern_recur_record_floats(op);
}

KERN_INLINE void kern_recur_family(const struct kern_recur_args *a, size_t block, void *shared)
{
    const struct kern_recur *op = &a->op;
    struct kern_recur_block b = {a, (struct kern_recur_shared *)shared};
    size_t n_groups = kern_recur_n_groups(op), family = block / n_groups / op->n_heads;
    b.state = (float *)(b.s + 1);
    b.k = b.state + op->k_size * KERN_RECUR_LANES;
    b.q = b.k + KERN_CHUNK * (op->k_size + 1);
    b.group = block % n_groups;
    b.head = block / n_groups % op->n_heads;
    b.k_head = op->alternate ? b.head % op->n_k_heads : b.head / (op->n_heads / op->n_k_heads);
    b.width = op->v_size - b.group * KERN_RECUR_LANES;
    b.width = b.width < KERN_RECUR_LANES ? b.width : KERN_RECUR_LANES;
    uint32_t begin = a->families[family], end = a->families[family + 1];
    float *parent = a->parents + (a->parents ? block * kern_recur_record_floats(op) : 0);
    for (uint32_t i = begin; i < end; i++) {
        const struct kern_run *run = &op->runs[i];
        bool is_parent = i == begin && end > begin + 1;
        b.n = (unsigned)(run->index % KERN_CHUNK);
        b.begun = run->index >= KERN_CHUNK;
        if (run->index > 0)
            kern_recur_move(&b, i > begin ? parent : kern_recur_saved(&b, run->from), false);
        kern_barrier();
        kern_recur_run(&b, run, is_parent || run->to >= 0);
        if (is_parent)
            kern_recur_move(&b, parent, true);
        if (run->to >= 0)
            kern_recur_move(&b, kern_recur_saved(&b, run->to), true);
    }
}

#endif

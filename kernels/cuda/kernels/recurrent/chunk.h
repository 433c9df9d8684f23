/**
 * A chunk of tokens, as kernels/cpu/recurrent/chunk.h has it: 6 dk dv + 2 KERN_CHUNK (dk + dv)
 * operations per token and head in float32. Blocks of a head repeat the products of q and k, which
 * is the smaller part.
 */
#ifndef KERNELS_CUDA_KERNELS_RECURRENT_CHUNK_H
#define KERNELS_CUDA_KERNELS_RECURRENT_CHUNK_H

#include "kernels/cuda/kernels/recurrent/block.h"

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

KERN_INLINE void kern_recur_chunk_run(struct kern_recur_block *b, const struct kern_run *run,
                                      bool keep)
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

#endif

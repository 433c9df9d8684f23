/** Tokens one by one, where channels have decays of their own: 4 dk dv multiply-adds each. */
#ifndef KERNELS_CUDA_KERNELS_RECURRENT_STEPS_H
#define KERNELS_CUDA_KERNELS_RECURRENT_STEPS_H

#include "kernels/cuda/kernels/recurrent/block.h"

/** Chains 0 .. 3 of a column. */
KERN_INLINE float kern_recur_add_chains(float (*chains)[KERN_RECUR_LANES], unsigned lane)
{
    return (chains[0][lane] + chains[1][lane]) + (chains[2][lane] + chains[3][lane]);
}

/** Token i of those that are loaded: a thread has every fourth channel of a column. */
KERN_INLINE void kern_recur_step(const struct kern_recur_block *b, unsigned i)
{
    const struct kern_recur *op = &b->a->op;
    struct kern_recur_shared *s = b->s;
    size_t dk = op->k_size;
    const float *k = b->k + i * (dk + 1), *q = b->q + i * (dk + 1), *decay = b->decay + i * dk;
    KERN_RECUR_EACH_T
    {
        unsigned lane = t % KERN_RECUR_LANES, chain = t / KERN_RECUR_LANES;
        float held = 0.0f;
        for (size_t c = chain; c < dk; c += KERN_STEP_CHAINS) {
            float *at = b->state + c * KERN_RECUR_LANES + lane;
            *at *= decay[c];
            held = fmaf(k[c], *at, held);
        }
        s->held[chain][lane] = held;
    }
    kern_barrier();
    KERN_RECUR_EACH_T
    {
        unsigned lane = t % KERN_RECUR_LANES, chain = t / KERN_RECUR_LANES;
        float e = s->beta[i] * (kern_recur_v(b, i, lane) - kern_recur_add_chains(s->held, lane));
        float out = 0.0f;
        for (size_t c = chain; c < dk; c += KERN_STEP_CHAINS) {
            float *at = b->state + c * KERN_RECUR_LANES + lane;
            *at = fmaf(k[c], e, *at);
            out = fmaf(q[c], *at, out);
        }
        s->out[chain][lane] = out;
    }
    kern_barrier();
    KERN_RECUR_EACH_T
    {
        size_t row = (b->row + i) * op->n_heads + b->head;
        if (t < b->width)
            op->out[row * op->v_size + b->group * KERN_RECUR_LANES + t] =
                kern_recur_add_chains(s->out, t);
    }
}

/** A run token by token, KERN_CHUNK of them loaded at a time; S goes on. */
KERN_INLINE void kern_recur_step_run(struct kern_recur_block *b, const struct kern_run *run)
{
    size_t dk = b->a->op.k_size;
    if (!b->begun) {
        KERN_RECUR_EACH_T
        {
            for (size_t i = t; i < dk * KERN_RECUR_LANES; i += KERN_RECUR_THREADS)
                b->state[i] = 0.0f;
        }
    }
    b->begun = true;
    for (size_t done = 0; done < run->n; done += b->end) {
        size_t left = run->n - done;
        b->end = left < KERN_CHUNK ? (unsigned)left : KERN_CHUNK;
        b->row = run->row + done;
        kern_recur_load_rows(b);
        kern_recur_load_factors(b);
        kern_recur_scale_rows(b);
        for (unsigned i = 0; i < b->end; i++)
            kern_recur_step(b, i);
    }
}

#endif

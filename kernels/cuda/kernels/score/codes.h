/**
 * Rows of log-probabilities in 16 bits.
 *
 *   codes   codes to log-probabilities, or logits to codes: 2 bytes and 4 per token
 *   lowest  the smallest logit of each row: 4 bytes per token
 */
#ifndef KERNELS_CUDA_KERNELS_SCORE_CODES_H
#define KERNELS_CUDA_KERNELS_SCORE_CODES_H

#include <math.h>
#include <stdbool.h>

#include "kernels/cuda/kernels/thread.h"
#include "kernels/numerics/terms.h"

enum {
    KERN_CODES_THREADS = 256,
    KERN_CODES_SIDE = 32, /* tokens and rows of a block */
    KERN_LOWEST_THREADS = 512,
    KERN_LOWEST_RUN = 8 /* loads of a thread at a time */
};

/** Scale and floor of a row of codes: of its log-probabilities, or to encode, of its logits. */
struct kern_code_scale {
    float scale, floor;
};

/** Squares of KERN_CODES_SIDE tokens and rows; a block each, rows fastest. */
struct kern_codes_args {
    uint16_t *codes; /* [n_rows, code_stride], that of the tile's first token first */
    size_t code_stride;
    const struct kern_code_scale *scales; /* [n_rows] */
    float *logits;                        /* [n_vocab, stride] */
    size_t stride, n_rows, n_vocab;
    bool encode;
};

struct kern_codes_shared {
    float x[KERN_CODES_SIDE][KERN_CODES_SIDE + 1]; /* [token][row] */
};

/** The square's numbers go through shared memory, so that both sides are coalesced. */
KERN_INLINE void kern_codes_block(const struct kern_codes_args *a, size_t block, void *shared)
{
    struct kern_codes_shared *s = (struct kern_codes_shared *)shared;
    size_t across = (a->n_rows + KERN_CODES_SIDE - 1) / KERN_CODES_SIDE;
    size_t row0 = block % across * KERN_CODES_SIDE, token0 = block / across * KERN_CODES_SIDE;
    const unsigned n = KERN_CODES_SIDE * KERN_CODES_SIDE;
    for (unsigned t = kern_thread_begin(); t < KERN_CODES_THREADS;
         t += kern_thread_step(KERN_CODES_THREADS)) {
        for (unsigned i = t; i < n; i += KERN_CODES_THREADS) {
            unsigned fast = i % KERN_CODES_SIDE, slow = i / KERN_CODES_SIDE;
            size_t row = row0 + (a->encode ? fast : slow);
            size_t token = token0 + (a->encode ? slow : fast);
            if (row >= a->n_rows || token >= a->n_vocab)
                continue;
            if (a->encode)
                s->x[slow][fast] = a->logits[token * a->stride + row];
            else
                s->x[fast][slow] = (float)a->codes[row * a->code_stride + token];
        }
    }
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < KERN_CODES_THREADS;
         t += kern_thread_step(KERN_CODES_THREADS)) {
        for (unsigned i = t; i < n; i += KERN_CODES_THREADS) {
            unsigned fast = i % KERN_CODES_SIDE, slow = i / KERN_CODES_SIDE;
            size_t row = row0 + (a->encode ? slow : fast);
            size_t token = token0 + (a->encode ? fast : slow);
            if (row >= a->n_rows || token >= a->n_vocab)
                continue;
            struct kern_code_scale scale = a->scales[row];
            if (a->encode)
                a->codes[row * a->code_stride + token] =
                    kern_encode(s->x[fast][slow], scale.floor, scale.scale);
            else
                a->logits[token * a->stride + row] =
                    fmaf(scale.scale, s->x[slow][fast], scale.floor);
        }
    }
}

/** Lower each row's smallest logit to that of a tile, NaN passed over. A block per KERN_LANES rows.
 */
struct kern_lowest_args {
    const float *logits; /* [n_vocab, stride] */
    size_t stride, n_vocab;
    float *lowest; /* [rows, whole groups] */
};

struct kern_lowest_shared {
    float lowest[KERN_LOWEST_THREADS];
};

KERN_INLINE void kern_lowest_block(const struct kern_lowest_args *a, size_t group, void *shared)
{
    struct kern_lowest_shared *s = (struct kern_lowest_shared *)shared;
    const size_t strips = KERN_LOWEST_THREADS / KERN_LANES;
    for (unsigned t = kern_thread_begin(); t < KERN_LOWEST_THREADS;
         t += kern_thread_step(KERN_LOWEST_THREADS)) {
        const float *logits = a->logits + group * KERN_LANES + t % KERN_LANES;
        float lowest = INFINITY;
        for (size_t v = t / KERN_LANES; v < a->n_vocab; v += KERN_LOWEST_RUN * strips) {
            float x[KERN_LOWEST_RUN]; /* on their way together */
            KERN_UNROLL
            for (unsigned i = 0; i < KERN_LOWEST_RUN; i++)
                x[i] =
                    v + i * strips < a->n_vocab ? logits[(v + i * strips) * a->stride] : INFINITY;
            KERN_UNROLL
            for (unsigned i = 0; i < KERN_LOWEST_RUN; i++)
                lowest = x[i] < lowest ? x[i] : lowest;
        }
        s->lowest[t] = lowest;
    }
    kern_barrier();
    for (unsigned t = kern_thread_begin(); t < KERN_LANES;
         t += kern_thread_step(KERN_LOWEST_THREADS)) {
        float lowest = a->lowest[group * KERN_LANES + t];
        for (unsigned i = t; i < KERN_LOWEST_THREADS; i += KERN_LANES)
            lowest = s->lowest[i] < lowest ? s->lowest[i] : lowest;
        a->lowest[group * KERN_LANES + t] = lowest;
    }
}

#endif

/**
 * Activations to records of 16-bit integers (records.h), rounded as kernels/cpu/gemm/rounded.h
 * says: 4 bytes of a number read, 2.3 written.
 */
#ifndef KERNELS_CUDA_KERNELS_INTEGERS_PACK_H
#define KERNELS_CUDA_KERNELS_INTEGERS_PACK_H

#include <math.h>

#include "kernels/cuda/kernels/half.h"
#include "kernels/cuda/kernels/integers/records.h"
#include "kernels/cuda/kernels/warp.h"

enum {
    KERN_PACK_THREADS = 256,
    KERN_PACK_RECORDS = KERN_PACK_THREADS / 32, /* of a block, one for each warp */
    KERN_PACK_LANE = 16                         /* columns of a lane */
};
#define KERN_PACK_LEAST 0x1p-100f /* a block's largest magnitude below it counts as 0 */

struct kern_pack_args {
    const float *x; /* [n_tokens, n_cols] */
    struct kern_records to;
    size_t n_tokens, n_cols; /* of a multiple of 32 columns */
    float largest;           /* integer: 31743, or 28671 for weights of long types */
};

/** What a lane has of its token. */
struct kern_pack_lane {
    float x[KERN_PACK_LANE];
};

/** A lane's columns; zeros where there is no token or no column. Returns their largest magnitude,
 * infinity if one is NaN. */
KERN_INLINE float kern_pack_load(const struct kern_pack_args *a, size_t token, size_t column,
                                 struct kern_pack_lane *lane)
{
    bool is_there = token < a->n_tokens && column < a->n_cols;
    const float *x = is_there ? a->x + token * a->n_cols + column : a->x;
    uint32_t most = 0;
    KERN_UNROLL
    for (unsigned i = 0; i < KERN_PACK_LANE; i += 4) {
        struct kern_vec4 four = kern_load4(x + i, is_there ? 4 : 0);
        KERN_UNROLL
        for (unsigned k = 0; k < 4; k++) {
            uint32_t bits = kern_magnitude_bits(four.v[k]);
            lane->x[i + k] = four.v[k];
            most = bits > most ? bits : most;
        }
    }
    return kern_float_from_bits(most < 0x7f800000u ? most : 0x7f800000u);
}

/** The nearest integer, halves to even, of a magnitude below 2^31. */
KERN_INLINE int kern_nearest(float x)
{
#ifdef __CUDACC__
    return __float2int_rn(x);
#else
    return (int)nearbyintf(x);
#endif
}

/** A lane's integers, their sum and the block's scale. g, q: its token and columns of the record.
 */
KERN_INLINE void kern_pack_store(uint32_t *record, unsigned g, unsigned q, float most,
                                 float largest, const struct kern_pack_lane *lane)
{
    bool is_finite = most < INFINITY, counts = is_finite && most >= KERN_PACK_LEAST;
    float inverse = counts ? largest / most : 0.0f;
    uint32_t *words = record + kern_record_place(g, KERN_PACK_LANE * q);
    int sum = 0;
    KERN_UNROLL
    for (unsigned i = 0; i < KERN_PACK_LANE; i += 4) {
        int high[4], low[4];
        KERN_UNROLL
        for (unsigned k = 0; k < 4; k++) {
            int x = counts ? kern_nearest(lane->x[i + k] * inverse) : 0;
            sum += x;
            high[k] = (x + 128) >> 8;
            low[k] = x - 256 * high[k];
        }
        words[i] = kern_record_word(high[0], high[1], high[2], high[3]);
        words[i + 2] = kern_record_word(low[0], low[1], low[2], low[3]);
    }
    record[KERN_TOKEN_SUMS + q * KERN_RECORD_TOKENS + g] = kern_bits_of((float)sum);
    if (q == 0)
        record[KERN_RECORD_INTEGERS + g] = kern_bits_of(counts      ? most / largest
                                                        : is_finite ? 0.0f
                                                                    : NAN);
}

/** A block packs KERN_PACK_RECORDS records, one after the other in memory. */
KERN_INLINE void kern_pack_block(const struct kern_pack_args *a, size_t block, void *shared)
{
    (void)shared;
    size_t n = (a->n_tokens + KERN_RECORD_TOKENS - 1) / KERN_RECORD_TOKENS * a->to.n_blocks;
    for (unsigned w = kern_warp_begin(); w < KERN_PACK_RECORDS;
         w = kern_warp_next(w, KERN_PACK_RECORDS)) {
        size_t i = block * KERN_PACK_RECORDS + w;
        if (i >= n)
            continue;
        size_t token = i / a->to.n_blocks * KERN_RECORD_TOKENS;
        size_t column = i % a->to.n_blocks * KERN_RECORD_COLUMNS;
        struct kern_pack_lane lanes[KERN_WARP_SLOTS];
        float most[KERN_WARP_SLOTS];
        for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane))
            most[kern_slot(lane)] =
                kern_pack_load(a, token + lane / KERN_QUAD,
                               column + lane % KERN_QUAD * KERN_PACK_LANE, &lanes[kern_slot(lane)]);
        kern_quad_max(most);
        for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane))
            kern_pack_store(a->to.words + i * KERN_TOKEN_WORDS, lane / KERN_QUAD, lane % KERN_QUAD,
                            most[kern_slot(lane)], a->largest, &lanes[kern_slot(lane)]);
    }
}

#endif

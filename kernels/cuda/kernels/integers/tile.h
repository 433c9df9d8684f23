/**
 * What a warp does with 64 columns of products in 16-bit integers: product.h has the whole.
 *
 * A warp has 64 rows of weights by 32 tokens, as 4 x 4 tiles of 16 by 8. Of 64 columns a tile takes
 * 4 products of 32 columns of bytes (or 8 of 16), which are 32768 operations, and for each output
 *
 *     runs of 32 columns   9 instructions in float32, with minima 11
 *     of 16                17
 *     wide, of 32          2, with minima 4; 4 on integers, a conversion
 *     wide, of 16          2, with minima 6; 8 on integers, a conversion
 *     long                 likewise, with integers of 64 bits
 *
 * Sums to float32. A sum of bytes over a run begins at the bits of 1.5 * 2^23 as a float. So it
 * comes out as the float 1.5 * 2^23 + sum: |sum| <= 32 * 128 * 128 < 2^22. Taking that away is
 * exact, and 256 high + low in one multiply-add rounds once, as a conversion of the integer would.
 * Conversions are slow on some cards. A wide type's sums are added up as integers and converted.
 */
#ifndef KERNELS_CUDA_KERNELS_INTEGERS_TILE_H
#define KERNELS_CUDA_KERNELS_INTEGERS_TILE_H

#include <math.h>

#include "kernels/cuda/kernels/integers/mma.h"
#include "kernels/cuda/kernels/integers/records.h"

enum {
    KERN_INTEGERS_TILES = 4,         /* of a warp, at each side */
    KERN_INTEGERS_BEGIN = 0x4b400000 /* the bits of KERN_INTEGERS_OFFSET */
};
#define KERN_INTEGERS_OFFSET 0x1.8p23f

/** Words of a record of tokens that are wanted: sums are for minima. */
#define KERN_TOKENS_WANTED(min) ((min) ? KERN_TOKEN_WORDS : KERN_TOKEN_SUMS)

/** What a lane has of 8 tokens: integers of both halves, and of tokens 2 q and 2 q + 1 the rest. */
struct kern_integer_tokens {
    struct kern_bytes16 x[2][KERN_WARP_SLOTS];
    struct kern_bytes8 scale[KERN_WARP_SLOTS];
    struct kern_bytes8 sum[4][KERN_WARP_SLOTS]; /* of each run */
};

/** What a lane has of 16 rows: integers of both halves, and of rows g and g + 8 the rest. */
struct kern_integer_weights {
    struct kern_bytes16 w[2][KERN_WARP_SLOTS];
    struct kern_bytes8 scale[4][KERN_WARP_SLOTS];  /* of each run; of a wide type only the first */
    struct kern_bytes8 factor[4][KERN_WARP_SLOTS]; /* sub-scales */
    struct kern_bytes8 min[4][KERN_WARP_SLOTS];
};

/** A lane's sums of tokens and rows. */
struct kern_integer_sums {
    float v[4];
};

KERN_INLINE struct kern_bytes8 kern_record_pair(const uint32_t *words)
{
    return *(const struct kern_bytes8 *)(const void *)words;
}

KERN_INLINE float kern_pair_float(const struct kern_bytes8 *pair, unsigned i)
{
    return kern_float_from_bits(pair->v[i]);
}

/** The sums of a token's columns over run n. */
KERN_INLINE struct kern_bytes8 kern_token_sums(const uint32_t *record, unsigned run, unsigned n,
                                               unsigned q)
{
    const uint32_t *sums = record + KERN_TOKEN_SUMS + 2 * q;
    if (run == KERN_RECORD_SUM)
        return kern_record_pair(sums + n * KERN_RECORD_TOKENS);
    struct kern_bytes8 first = kern_record_pair(sums + 2 * n * KERN_RECORD_TOKENS);
    struct kern_bytes8 second = kern_record_pair(sums + (2 * n + 1) * KERN_RECORD_TOKENS);
    KERN_UNROLL /* exact: sums are below 2^24 */
        for (unsigned i = 0; i < 2; i++)
    {
        first.v[i] = kern_bits_of(kern_pair_float(&first, i) + kern_pair_float(&second, i));
    }
    return first;
}

KERN_INLINE void kern_integer_load_tokens(struct kern_integer_tokens *to, const uint32_t *record,
                                          struct kern_integer_form form)
{
    for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
        unsigned s = kern_slot(lane), q = lane % KERN_QUAD;
        const struct kern_bytes16 *x = (const struct kern_bytes16 *)(const void *)record;
        to->x[0][s] = x[lane];
        to->x[1][s] = x[KERN_WARP + lane];
        to->scale[s] = kern_record_pair(record + KERN_RECORD_INTEGERS + 2 * q);
        KERN_UNROLL
        for (unsigned n = 0; n < 4; n++) {
            if (form.min && n < KERN_RECORD_RUNS(form.run))
                to->sum[n][s] = kern_token_sums(record, form.run, n, q);
        }
    }
}

KERN_INLINE void kern_integer_load_weights(struct kern_integer_weights *to, const uint32_t *record,
                                           struct kern_integer_form form)
{
    const unsigned n_runs = KERN_RECORD_RUNS(form.run);
    const unsigned n_scales = KERN_RECORD_SCALES(form.run, form.wide);
    for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
        unsigned s = kern_slot(lane);
        const struct kern_bytes16 *w = (const struct kern_bytes16 *)(const void *)record;
        const uint32_t *group = record + KERN_RECORD_INTEGERS + lane / KERN_QUAD * 2;
        to->w[0][s] = w[lane];
        to->w[1][s] = w[KERN_WARP + lane];
        KERN_UNROLL
        for (unsigned n = 0; n < 4; n++) {
            const uint32_t *after = group + (n_scales + n) * KERN_RECORD_GROUP;
            if (n < n_scales)
                to->scale[n][s] = kern_record_pair(group + n * KERN_RECORD_GROUP);
            if (n < n_runs && form.wide)
                to->factor[n][s] = kern_record_pair(after);
            if (n < n_runs && form.min)
                to->min[n][s] =
                    kern_record_pair(after + (form.wide ? n_runs : 0) * KERN_RECORD_GROUP);
        }
    }
}

/** high, low: begin + the sums over run n of bytes with those of the activations. */
KERN_INLINE void kern_integer_multiply(struct kern_mma_sums *high, struct kern_mma_sums *low,
                                       int32_t begin, const struct kern_integer_weights *a,
                                       const struct kern_integer_tokens *b, unsigned run,
                                       unsigned n)
{
    if (run == 32) {
        kern_mma_bytes32(high, begin, a->w[n % 2], b->x[n % 2], 0);
        kern_mma_bytes32(low, begin, a->w[n % 2], b->x[n % 2], 1);
    } else {
        kern_mma_bytes16(high, begin, a->w[n / 2 % 2], b->x[n / 2 % 2], 0, n % 2);
        kern_mma_bytes16(low, begin, a->w[n / 2 % 2], b->x[n / 2 % 2], 1, n % 2);
    }
}

/** part += the runs' sums times scales, and sums of activations times minima, in their order. */
KERN_INLINE void kern_integer_narrow(struct kern_integer_sums *part,
                                     const struct kern_integer_weights *a,
                                     const struct kern_integer_tokens *b,
                                     struct kern_integer_form form)
{
    KERN_UNROLL
    for (unsigned n = 0; n < KERN_RECORD_RUNS(form.run); n++) {
        struct kern_mma_sums high[KERN_WARP_SLOTS], low[KERN_WARP_SLOTS];
        kern_integer_multiply(high, low, KERN_INTEGERS_BEGIN, a, b, form.run, n);
        for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
            unsigned s = kern_slot(lane);
            KERN_UNROLL
            for (unsigned i = 0; i < 4; i++) {
                float x = kern_float_from_bits((uint32_t)high[s].v[i]) - KERN_INTEGERS_OFFSET;
                float y = kern_float_from_bits((uint32_t)low[s].v[i]) - KERN_INTEGERS_OFFSET;
                float *to = &part[s].v[i];
                *to = fmaf(fmaf(x, 256.0f, y), kern_pair_float(&a->scale[n][s], i / 2), *to);
                if (form.min)
                    *to = fmaf(kern_pair_float(&b->sum[n][s], i % 2),
                               kern_pair_float(&a->min[n][s], i / 2), *to);
            }
        }
    }
}

/** Sums over all columns times scales, and sums of activations times minima, onto part. */
KERN_INLINE void kern_integer_add(struct kern_integer_sums *part,
                                  const struct kern_integer_sums *total,
                                  const struct kern_integer_weights *a,
                                  const struct kern_integer_tokens *b,
                                  struct kern_integer_form form)
{
    for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
        unsigned s = kern_slot(lane);
        KERN_UNROLL
        for (unsigned i = 0; i < 4; i++) {
            float *to = &part[s].v[i];
            *to = fmaf(total[s].v[i], kern_pair_float(&a->scale[0][s], i / 2), *to);
            KERN_UNROLL
            for (unsigned n = 0; n < 4; n++) {
                if (form.min && n < KERN_RECORD_RUNS(form.run))
                    *to = fmaf(kern_pair_float(&b->sum[n][s], i % 2),
                               kern_pair_float(&a->min[n][s], i / 2), *to);
            }
        }
    }
}

/** Sums over all columns of a wide type. */
KERN_INLINE void kern_integer_wide(struct kern_integer_sums *total,
                                   const struct kern_integer_weights *a,
                                   const struct kern_integer_tokens *b,
                                   struct kern_integer_form form)
{
    struct kern_bytes16 sums[KERN_WARP_SLOTS]; /* modulo 2^32 */
    KERN_UNROLL
    for (unsigned n = 0; n < KERN_RECORD_RUNS(form.run); n++) {
        struct kern_mma_sums high[KERN_WARP_SLOTS], low[KERN_WARP_SLOTS];
        kern_integer_multiply(high, low, 0, a, b, form.run, n);
        for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
            unsigned s = kern_slot(lane);
            KERN_UNROLL
            for (unsigned i = 0; i < 4; i++) {
                uint32_t sum = (uint32_t)high[s].v[i] * 256 + (uint32_t)low[s].v[i];
                sum *= a->factor[n][s].v[i / 2];
                sums[s].v[i] = n == 0 ? sum : sums[s].v[i] + sum;
            }
        }
    }
    for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
        unsigned s = kern_slot(lane);
        KERN_UNROLL
        for (unsigned i = 0; i < 4; i++)
            total[s].v[i] = (float)(int32_t)sums[s].v[i];
    }
}

/** A lane's sums that 32 bits may not hold. */
struct kern_long_sums {
    int64_t v[4];
};

/** The nearest float. Conversions of 64 bits are slow on some cards, and hardly ever needed. */
KERN_INLINE float kern_long_float(int64_t sum)
{
    int32_t word = (int32_t)sum;
    return word == sum ? (float)word : (float)sum;
}

/** Sums over all columns of a long type. */
KERN_INLINE void kern_integer_long(struct kern_integer_sums *total,
                                   const struct kern_integer_weights *a,
                                   const struct kern_integer_tokens *b,
                                   struct kern_integer_form form)
{
    struct kern_long_sums sums[KERN_WARP_SLOTS];
    KERN_UNROLL
    for (unsigned n = 0; n < KERN_RECORD_RUNS(form.run); n++) {
        struct kern_mma_sums high[KERN_WARP_SLOTS], low[KERN_WARP_SLOTS];
        kern_integer_multiply(high, low, 0, a, b, form.run, n);
        for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
            unsigned s = kern_slot(lane);
            KERN_UNROLL
            for (unsigned i = 0; i < 4; i++) {
                int32_t run = high[s].v[i] * 256 + low[s].v[i];
                int64_t sum = (int64_t)run * (int32_t)a->factor[n][s].v[i / 2];
                sums[s].v[i] = n == 0 ? sum : sums[s].v[i] + sum;
            }
        }
    }
    for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
        unsigned s = kern_slot(lane);
        KERN_UNROLL
        for (unsigned i = 0; i < 4; i++)
            total[s].v[i] = kern_long_float(sums[s].v[i]);
    }
}

/** 64 columns of a tile of 16 rows by 8 tokens onto its sums. */
KERN_INLINE void kern_integer_tile(struct kern_integer_sums *sums,
                                   const struct kern_integer_weights *a,
                                   const struct kern_integer_tokens *b,
                                   struct kern_integer_form form)
{
    struct kern_integer_sums part[KERN_WARP_SLOTS];
    for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
        KERN_UNROLL
        for (unsigned i = 0; i < 4; i++)
            part[kern_slot(lane)].v[i] = 0.0f;
    }
    if (form.wide) {
        struct kern_integer_sums total[KERN_WARP_SLOTS];
        if (form.is_long)
            kern_integer_long(total, a, b, form);
        else
            kern_integer_wide(total, a, b, form);
        kern_integer_add(part, total, a, b, form);
    } else {
        kern_integer_narrow(part, a, b, form);
    }
    for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
        unsigned s = kern_slot(lane);
        KERN_UNROLL
        for (unsigned i = 0; i < 4; i++)
            sums[s].v[i] = fmaf(part[s].v[i], kern_pair_float(&b->scale[s], i % 2), sums[s].v[i]);
    }
}

/** The sums of a warp's tiles. */
struct kern_integer_warp {
    struct kern_integer_sums of[KERN_INTEGERS_TILES][KERN_INTEGERS_TILES][KERN_WARP_SLOTS];
};

KERN_INLINE void kern_integer_clear(struct kern_integer_warp *sums)
{
    for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
        KERN_UNROLL
        for (unsigned n = 0; n < KERN_INTEGERS_TILES * KERN_INTEGERS_TILES; n++) {
            KERN_UNROLL
            for (unsigned i = 0; i < 4; i++)
                sums->of[n / KERN_INTEGERS_TILES][n % KERN_INTEGERS_TILES][kern_slot(lane)].v[i] =
                    0.0f;
        }
    }
}

/** A stage's columns of a warp. a, b: its first records. */
KERN_INLINE void kern_integer_step(struct kern_integer_warp *sums, const uint32_t *a,
                                   const uint32_t *b, struct kern_integer_form form)
{
    struct kern_integer_tokens tokens[KERN_INTEGERS_TILES];
    KERN_UNROLL
    for (unsigned j = 0; j < KERN_INTEGERS_TILES; j++)
        kern_integer_load_tokens(&tokens[j], b + j * KERN_TOKENS_WANTED(form.min), form);
    KERN_UNROLL
    for (unsigned i = 0; i < KERN_INTEGERS_TILES; i++) {
        struct kern_integer_weights weights;
        kern_integer_load_weights(&weights, a + i * kern_record_words(form), form);
        KERN_UNROLL
        for (unsigned j = 0; j < KERN_INTEGERS_TILES; j++)
            kern_integer_tile(sums->of[i][j], &weights, &tokens[j], form);
    }
}

#endif

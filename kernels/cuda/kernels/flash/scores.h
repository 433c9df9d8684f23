/**
 * Scores of flash.h, and the probabilities that they become: what a warp makes of the current keys.
 */
#ifndef KERNELS_CUDA_KERNELS_FLASH_SCORES_H
#define KERNELS_CUDA_KERNELS_FLASH_SCORES_H

#include "kernels/cuda/kernels/flash/load.h"

/** What a warp keeps of a tile of queries, of a lane's two rows ... */
struct kern_flash_tile {
    struct kern_mma_c out[KERN_FLASH_MAX_DIMS / KERN_MMA_COLUMNS][KERN_WARP_SLOTS];
    struct kern_parts_a p[KERN_FLASH_KEYS / KERN_MMA_DEPTH]; /* probabilities of current keys */
    float max[2][KERN_WARP_SLOTS];
    float sum[2][KERN_WARP_SLOTS];     /* of the lane's own columns */
    float rescale[2][KERN_WARP_SLOTS]; /* what out is yet to be multiplied with */
};

struct kern_flash_warp {
    struct kern_flash_tile tile[KERN_FLASH_MAX_TILES];
};

/** Scores of the current keys, which become probabilities, in tiles of KERN_MMA_COLUMNS. */
struct kern_flash_scores {
    struct kern_mma_c s[KERN_FLASH_KEYS / KERN_MMA_COLUMNS][KERN_WARP_SLOTS];
};

/**
 * Products are added in passes over the whole depth: one of all products, or with three parts one
 * of all but the largest, and one of the largest, so that few sums are rounded at full size.
 */
KERN_INLINE struct kern_parts_orders kern_flash_pass(const struct kern_flash_block *b,
                                                     unsigned pass)
{
    struct kern_parts_orders orders;
    orders.n_parts = b->parts;
    orders.least = b->parts - 2 - pass;
    orders.end = pass == 0 ? b->parts : orders.least + 1;
    return orders;
}

/** Whether any query of the warp sees any of the keys. */
KERN_INLINE bool kern_flash_any_seen(const struct kern_flash_block *b, unsigned w, size_t key)
{
    struct kern_attention_view view = kern_flash_view(b, 0);
    size_t first = kern_flash_first(b, w, 0);
    size_t last = kern_flash_first(b, w, b->tiles - 1) + KERN_MMA_ROWS - 1;
    return first < view.n_queries && key <= kern_attention_key(&view, last) &&
           key + KERN_FLASH_KEYS >
               kern_attention_window_begin(&view, kern_attention_key(&view, first));
}

/** Whether every query of a tile sees all of the keys. */
KERN_INLINE bool kern_flash_all_seen(const struct kern_flash_block *b, unsigned w, unsigned tile,
                                     size_t key)
{
    struct kern_attention_view view = kern_flash_view(b, tile);
    size_t first = kern_attention_key(&view, kern_flash_first(b, w, tile));
    return !b->a->chosen && key + KERN_FLASH_KEYS <= first + 1 &&
           key >= kern_attention_window_begin(&view, first + KERN_MMA_ROWS - 1);
}

/** How many of the current keys come before the one with this index. */
KERN_INLINE unsigned kern_flash_nth_key(size_t key, size_t index)
{
    size_t n = index > key ? index - key : 0;
    return n < KERN_FLASH_KEYS ? (unsigned)n : KERN_FLASH_KEYS;
}

/** Minus infinity for the scores of what is not seen: their probability will be 0. */
KERN_INLINE void kern_flash_mask(const struct kern_flash_block *b, unsigned w, unsigned tile,
                                 size_t key, struct kern_flash_scores *scores)
{
    struct kern_attention_view view = kern_flash_view(b, tile);
    for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
        KERN_UNROLL
        for (unsigned r = 0; r < 2; r++) {
            unsigned query = kern_flash_query(b, w, tile, lane, r);
            size_t own = kern_attention_key(&view, query);
            unsigned begin = kern_flash_nth_key(key, kern_attention_window_begin(&view, own));
            unsigned end = kern_flash_nth_key(key, query < view.n_queries ? own + 1 : 0);
            uint64_t chosen = UINT64_MAX;
            if (b->a->chosen && begin < end)
                chosen = kern_attention_chosen(&view, query, key);
            KERN_UNROLL
            for (unsigned n = 0; n < KERN_FLASH_KEYS / KERN_MMA_COLUMNS; n++) {
                KERN_UNROLL
                for (unsigned i = 0; i < 2; i++) {
                    unsigned j = n * KERN_MMA_COLUMNS + lane % KERN_QUAD * 2 + i;
                    if (j < begin || j >= end || !(chosen >> j & 1))
                        scores->s[n][kern_slot(lane)].v[2 * r + i] = -INFINITY;
                }
            }
        }
    }
}

/** The parts of queries that a pass wants, 16 elements from k on. */
KERN_INLINE void kern_flash_get_queries(const struct kern_flash_block *b,
                                        const struct kern_mma_a *from, unsigned k, unsigned n_parts,
                                        struct kern_parts_a *q)
{
    for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
        KERN_UNROLL
        for (unsigned p = 0; p < KERN_MAX_PARTS; p++) {
            if (p < n_parts)
                q->part[p][kern_slot(lane)] = from[(size_t)(k * b->parts + p) * KERN_WARP + lane];
        }
    }
}

/** Columns' tiles that a warp multiplies at a time, with all its tiles of queries. */
KERN_INLINE unsigned kern_flash_group(const struct kern_flash_block *b)
{
    return KERN_MMA_GROUP / b->tiles;
}

/** Fragments of rows 16 k .. of a product's b, which has n_columns, from tile n of columns on. */
KERN_INLINE const struct kern_mma_b2 *kern_flash_at(const struct kern_flash_block *b,
                                                    const struct kern_mma_b2 *all, unsigned k,
                                                    unsigned n_columns, unsigned n)
{
    return all + (size_t)(k * (n_columns / KERN_MMA_COLUMNS) + n) / 2 * b->parts * KERN_WARP;
}

/** s = q k^T, a warp's, of all its tiles. */
KERN_INLINE void kern_flash_multiply(const struct kern_flash_block *b, unsigned w,
                                     struct kern_flash_scores *scores)
{
    const unsigned group = kern_flash_group(b);
    unsigned depth = ((unsigned)b->a->head_size + KERN_MMA_DEPTH - 1) / KERN_MMA_DEPTH;
    for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
        KERN_UNROLL
        for (unsigned i = 0; i < b->tiles * KERN_FLASH_KEYS / 2; i++)
            scores[i / 16].s[i / 4 % 4][kern_slot(lane)].v[i % 4] = 0.0f;
    }
    KERN_UNROLL
    for (unsigned pass = 0; pass < b->parts - 1; pass++) {
        struct kern_parts_orders orders = kern_flash_pass(b, pass);
        KERN_ROLLED
        for (unsigned k = 0; k < depth; k++) {
            struct kern_parts_a q[KERN_FLASH_MAX_TILES];
            KERN_UNROLL
            for (unsigned tile = 0; tile < b->tiles; tile++)
                kern_flash_get_queries(b, kern_flash_queries(b, w, tile), k, orders.end, &q[tile]);
            KERN_UNROLL
            for (unsigned n = 0; n < KERN_FLASH_KEYS / KERN_MMA_COLUMNS; n += group) {
                struct kern_parts_b keys;
                kern_parts_load_b(kern_flash_at(b, b->keys, k, KERN_FLASH_KEYS, n), group, orders,
                                  &keys);
                KERN_UNROLL
                for (unsigned tile = 0; tile < b->tiles; tile++)
                    kern_parts_multiply(scores[tile].s + n, &q[tile], &keys, group, orders);
            }
        }
    }
}

/** s = cap(s scale) */
KERN_INLINE void kern_flash_scale(const struct kern_flash_block *b,
                                  struct kern_flash_scores *scores)
{
    for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
        KERN_UNROLL
        for (unsigned i = 0; i < KERN_FLASH_KEYS / 2; i++)
            scores->s[i / 4][kern_slot(lane)].v[i % 4] *= b->a->scale;
        if (!(b->a->soft_cap > 0.0f))
            continue;
        KERN_UNROLL
        for (unsigned i = 0; i < KERN_FLASH_KEYS / 2; i++)
            scores->s[i / 4][kern_slot(lane)].v[i % 4] = fmath_soft_cap_f32(
                scores->s[i / 4][kern_slot(lane)].v[i % 4], b->a->soft_cap, b->a->inverse_cap);
    }
}

/** The scores of a lane's r-th row become probabilities; returns their sum. */
KERN_INLINE float kern_flash_exponentials(unsigned slot, unsigned r, float reference,
                                          struct kern_flash_scores *scores)
{
    float sum = 0.0f;
    KERN_UNROLL
    for (unsigned i = 0; i < KERN_FLASH_KEYS / 4; i++) {
        float *x = &scores->s[i / 2][slot].v[2 * r + i % 2];
        *x = fmath_exp_f32(*x - reference);
        sum += *x;
    }
    return sum;
}

/** The probabilities in parts. What a lane has of two tiles of scores is its fragment of one. */
KERN_INLINE void kern_flash_split(const struct kern_flash_block *b,
                                  const struct kern_flash_scores *scores,
                                  struct kern_flash_tile *state)
{
    for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
        unsigned slot = kern_slot(lane);
        KERN_UNROLL
        for (unsigned i = 0; i < KERN_FLASH_KEYS / 4; i++) {
            const float *x = scores->s[i / 2][slot].v + i % 2 * 2;
            uint32_t words[KERN_MAX_PARTS];
            kern_parts_of(x[0], x[1], b->parts, words);
            KERN_UNROLL
            for (unsigned part = 0; part < b->parts; part++)
                state->p[i / 4].part[part][slot].v[i % 4] = words[part];
        }
    }
}

/** Online softmax: what was summed before is brought to the new maximum. */
KERN_INLINE void kern_flash_softmax(const struct kern_flash_block *b,
                                    struct kern_flash_scores *scores, struct kern_flash_tile *state)
{
    KERN_UNROLL
    for (unsigned r = 0; r < 2; r++) {
        float max[KERN_WARP_SLOTS];
        for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
            unsigned slot = kern_slot(lane);
            max[slot] = state->max[r][slot];
            KERN_UNROLL
            for (unsigned i = 0; i < KERN_FLASH_KEYS / 4; i++) {
                float x = scores->s[i / 2][slot].v[2 * r + i % 2];
                max[slot] = x > max[slot] ? x : max[slot];
            }
        }
        kern_quad_max(max);
        for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
            unsigned slot = kern_slot(lane);
            float old = state->max[r][slot], now = max[slot];
            float rescale = old == -INFINITY ? 1.0f : fmath_exp_f32(old - now);
            float sum = kern_flash_exponentials(slot, r, now == -INFINITY ? 0.0f : now, scores);
            state->sum[r][slot] = fmaf(state->sum[r][slot], rescale, sum);
            state->max[r][slot] = now;
            state->rescale[r][slot] = rescale;
        }
    }
    kern_flash_split(b, scores, state);
}

/** Scores and probabilities of the current keys, one warp's. */
KERN_INLINE void kern_flash_attend_keys(const struct kern_flash_block *b, unsigned w, size_t key,
                                        struct kern_flash_warp *state)
{
    struct kern_flash_scores scores[KERN_FLASH_MAX_TILES];
    kern_flash_multiply(b, w, scores);
    KERN_UNROLL
    for (unsigned tile = 0; tile < b->tiles; tile++) {
        kern_flash_scale(b, &scores[tile]);
        if (!kern_flash_all_seen(b, w, tile, key))
            kern_flash_mask(b, w, tile, key, &scores[tile]);
        kern_flash_softmax(b, &scores[tile], &state->tile[tile]);
    }
}

#endif

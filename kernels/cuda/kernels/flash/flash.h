/**
 * Causal attention on tensor cores, in flash style. A warp takes one tile of KERN_MMA_ROWS queries
 * of a range, or two: the same queries under two heads that share their keys and values, or twice
 * as many under one head. A block has KERN_FLASH_WARPS warps. They walk their keys KERN_FLASH_KEYS
 * at a time: scores, online softmax, values. Scores never leave the registers. What a warp reads of
 * keys and values is used by all its tiles. Two tiles take twice the registers and queries in
 * shared memory, so heads above 128 have one, and those above 64 in three parts on cards with
 * little.
 *
 * Both products are of bfloat16 in two parts or three (mma.h). A score is off by at most 3 2^-16,
 * or 4 2^-24, of the sum of its products' magnitudes. An output is off by as much of its own, next
 * to the rounding of sums and to the effect of the scores' errors.
 *
 * Two parts are for `fast`: a score is an exponent, so one part is not enough. Three are as
 * faithful as float32 if sums are. So the largest products come last, and the sums of one block of
 * keys and the next are added outside of the tensor cores. Everything else is as in attention.h.
 *
 * Per token and layer it must do three or six times 4 d H operations in bfloat16 for each key
 * that a query sees, and read and write what the float32 kernel does. 64 queries and 64 keys
 * of 128 elements in two parts take (counted, for two heads), with cycles of a multiprocessor of an
 * H200 at its best: 1450 instructions of the tensor cores, 1450 cycles; 1860 cycles of shared
 * memory; 9700 instructions in all, 2430 of each of the four schedulers.
 *
 * A query's sums depend on its own keys only. Keys come in blocks that begin at multiples of
 * their size, whatever the batch. A row of a tile does not see the others. A key that a query must
 * not see has probability 0, so that it adds 0. That fails for values that are infinite or NaN:
 * where an output is not finite, the walk is repeated with zeros instead of them. Outputs of
 * queries that see one become NaN.
 */
#ifndef KERNELS_CUDA_KERNELS_FLASH_FLASH_H
#define KERNELS_CUDA_KERNELS_FLASH_FLASH_H

#include "kernels/cuda/kernels/flash/scores.h"

/** out = out rescale + c, for columns' tiles n .. n + n_tiles - 1. */
KERN_INLINE void kern_flash_add(struct kern_mma_c (*c)[KERN_WARP_SLOTS], unsigned n,
                                unsigned n_tiles, struct kern_flash_tile *state)
{
    for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
        unsigned slot = kern_slot(lane);
        KERN_UNROLL
        for (unsigned i = 0; i < n_tiles * 4; i++) {
            float *out = &state->out[n + i / 4][slot].v[i % 4];
            *out = fmaf(*out, state->rescale[i % 4 / 2][slot], c[i / 4][slot].v[i % 4]);
        }
    }
}

/**
 * out = out rescale + p v, one warp's. Tensor cores add up no more than the current keys, float32
 * the rest.
 */
KERN_INLINE void kern_flash_values(const struct kern_flash_block *b, struct kern_flash_warp *state)
{
    const unsigned group = kern_flash_group(b), depth = KERN_FLASH_KEYS / KERN_MMA_DEPTH;
    KERN_UNROLL
    for (unsigned n = 0; n < b->dims / KERN_MMA_COLUMNS; n += group) {
        if (n / KERN_MMA_GROUP * KERN_FLASH_GROUP >= (unsigned)b->a->value_size)
            break; /* only padding is left */
        struct kern_mma_c c[KERN_FLASH_MAX_TILES][KERN_MMA_GROUP][KERN_WARP_SLOTS];
        for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
            KERN_UNROLL
            for (unsigned i = 0; i < b->tiles * group * 4; i++)
                c[i / 4 / group][i / 4 % group][kern_slot(lane)].v[i % 4] = 0.0f;
        }
        KERN_UNROLL
        for (unsigned i = 0; i < (b->parts - 1) * depth; i++) {
            struct kern_parts_orders orders = kern_flash_pass(b, i / depth);
            struct kern_parts_b values;
            kern_parts_load_b(kern_flash_at(b, b->values, i % depth, b->dims, n), group, orders,
                              &values);
            KERN_UNROLL
            for (unsigned tile = 0; tile < b->tiles; tile++)
                kern_parts_multiply(c[tile], &state->tile[tile].p[i % depth], &values, group,
                                    orders);
        }
        KERN_UNROLL
        for (unsigned tile = 0; tile < b->tiles; tile++)
            kern_flash_add(c[tile], n, group, &state->tile[tile]);
    }
}

/** Whether a query sees a value that counts as infinite or NaN; slow, and rarely asked. */
KERN_INLINE bool kern_flash_meets(const struct kern_flash_block *b, unsigned query, unsigned e)
{
    struct kern_attention_view view = kern_flash_view(b, 0); /* heads of a block have these keys */
    for (size_t key = view.key_begin; key < view.key_end; key++) {
        if (kern_attention_sees(&view, query, key) &&
            !kern_bf16_holds(b->a->v[kern_attention_row(&view, key) * b->a->value_size + e]))
            return true;
    }
    return false;
}

/** In the second walk: NaN for what the first one found not to be finite, if it is no accident. */
KERN_INLINE void kern_flash_spoil(const struct kern_flash_block *b, unsigned query, unsigned e,
                                  const float *first, struct kern_vec4 *x)
{
    for (unsigned i = 0; i < 4 && e + i < b->a->value_size; i++) {
        /* What is NaN even so has it from the scores: there is nothing to ask. */
        if (!isnan(x->v[i]) && !(fabsf(first[i]) < INFINITY) && kern_flash_meets(b, query, e + i))
            x->v[i] = NAN;
    }
}

/** Elements e .. e + 3 of an output. */
KERN_INLINE void kern_flash_store(const struct kern_flash_block *b, unsigned tile, unsigned query,
                                  unsigned e, struct kern_vec4 x)
{
    struct kern_attention_view view = kern_flash_view(b, tile);
    unsigned d = (unsigned)b->a->value_size;
    if (e >= d)
        return;
    float *out = b->a->out + kern_attention_query_row(&view, query) * d + e;
    if (b->careful)
        kern_flash_spoil(b, query, e, out, &x);
    bool finite = true;
    KERN_UNROLL
    for (unsigned i = 0; i < 4; i++)
        finite = finite && (e + i >= d || fabsf(x.v[i]) < INFINITY);
    if (!finite)
        kern_atomic_max(&b->s->not_finite, 1);
    if (b->aligned) {
        *(struct kern_vec4 *)(void *)out = x;
        return;
    }
    for (unsigned i = 0; i < 4 && e + i < d; i++)
        out[i] = x.v[i];
}

/** Divide by the sums, note what is not finite, write. */
KERN_INLINE void kern_flash_finish(const struct kern_flash_block *b, unsigned w, unsigned tile,
                                   struct kern_flash_tile *state)
{
    struct kern_attention_view view = kern_flash_view(b, tile);
    KERN_UNROLL
    for (unsigned r = 0; r < 2; r++) {
        kern_quad_sum(state->sum[r]);
        for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
            unsigned query = kern_flash_query(b, w, tile, lane, r), slot = kern_slot(lane);
            if (query >= view.n_queries)
                continue;
            float inverse = 1.0f / state->sum[r][slot];
            KERN_UNROLL
            for (unsigned i = 0; i < b->dims / 16; i++) {
                struct kern_vec4 x;
                KERN_UNROLL
                for (unsigned k = 0; k < KERN_MMA_GROUP; k++) {
                    unsigned n = i / 2 * KERN_MMA_GROUP + k;
                    /* 0 is added so that -0, which blocks of unseen keys make +0, is always +0. */
                    x.v[k] = state->out[n][slot].v[2 * r + i % 2] * inverse + 0.0f;
                }
                kern_flash_store(b, tile, query,
                                 i / 2 * KERN_FLASH_GROUP + lane % KERN_QUAD * 8 + i % 2 * 4, x);
            }
        }
    }
}

KERN_INLINE void kern_flash_begin(const struct kern_flash_block *b, unsigned tile,
                                  struct kern_flash_tile *state)
{
    struct kern_attention_view view = kern_flash_view(b, tile);
    float sink = kern_attention_sink(&view);
    for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
        unsigned slot = kern_slot(lane);
        KERN_UNROLL
        for (unsigned i = 0; i < b->dims / 2; i++)
            state->out[i / 4][slot].v[i % 4] = 0.0f;
        KERN_UNROLL
        for (unsigned r = 0; r < 2; r++) {
            state->max[r][slot] = sink;
            state->sum[r][slot] = sink == -INFINITY || lane % KERN_QUAD > 0 ? 0.0f : 1.0f;
        }
    }
}

/** The first of the blocks of keys from `key` on of which a query may see one; or key_end. */
KERN_INLINE size_t kern_flash_next(const struct kern_flash_block *b, size_t key)
{
    struct kern_attention_view view = kern_flash_view(b, 0);
    for (; key < view.key_end; key += KERN_FLASH_KEYS) {
        size_t left = view.key_end - key, n = left < KERN_FLASH_KEYS ? left : KERN_FLASH_KEYS;
        if (!kern_attention_skips(&view, &b->s->any_chosen, KERN_FLASH_THREADS, key, n))
            return key;
    }
    return view.key_end;
}

/** The current values, which have been copied, and what the warps make of them. */
KERN_INLINE void kern_flash_use_values(const struct kern_flash_block *b, size_t key,
                                       struct kern_flash_warp *state)
{
    if (b->careful) {
        kern_flash_clean(b);
        kern_barrier();
    }
    for (unsigned w = kern_warp_begin(); w < KERN_FLASH_WARPS;
         w = kern_warp_next(w, KERN_FLASH_WARPS)) {
        if (kern_flash_any_seen(b, w, key))
            kern_flash_values(b, &state[kern_slot(w)]);
    }
}

/**
 * Values are copied while scores are computed, and the next keys while values are added up. Where
 * both have one place, each is copied when nobody needs the other.
 */
KERN_INLINE void kern_flash_walk_keys(const struct kern_flash_block *b,
                                      struct kern_flash_warp *state)
{
    const bool is_double = kern_flash_is_double(b->dims);
    size_t end = b->s->view.key_end, key = kern_flash_next(b, b->s->view.key_begin);
    if (key < end)
        kern_flash_fetch(b, key, false);
    while (key < end) {
        kern_copies_wait();
        kern_barrier();
        if (is_double)
            kern_flash_fetch(b, key, true);
        for (unsigned w = kern_warp_begin(); w < KERN_FLASH_WARPS;
             w = kern_warp_next(w, KERN_FLASH_WARPS)) {
            if (kern_flash_any_seen(b, w, key))
                kern_flash_attend_keys(b, w, key, &state[kern_slot(w)]);
        }
        if (!is_double) {
            kern_barrier();
            kern_flash_fetch(b, key, true);
        }
        kern_copies_wait();
        kern_barrier();
        size_t next = kern_flash_next(b, key + KERN_FLASH_KEYS);
        if (is_double && next < end)
            kern_flash_fetch(b, next, false);
        kern_flash_use_values(b, key, state);
        if (!is_double && next < end) {
            kern_barrier();
            kern_flash_fetch(b, next, false);
        }
        key = next;
    }
}

KERN_INLINE void kern_flash_walk(const struct kern_flash_block *b)
{
    struct kern_flash_warp state[KERN_SLOTS(KERN_FLASH_WARPS)];
    for (unsigned w = kern_warp_begin(); w < KERN_FLASH_WARPS;
         w = kern_warp_next(w, KERN_FLASH_WARPS)) {
        KERN_UNROLL
        for (unsigned tile = 0; tile < b->tiles; tile++)
            kern_flash_begin(b, tile, &state[kern_slot(w)].tile[tile]);
    }
    kern_flash_walk_keys(b, state);
    for (unsigned w = kern_warp_begin(); w < KERN_FLASH_WARPS;
         w = kern_warp_next(w, KERN_FLASH_WARPS)) {
        KERN_UNROLL
        for (unsigned tile = 0; tile < b->tiles; tile++)
            kern_flash_finish(b, w, tile, &state[kern_slot(w)].tile[tile]);
    }
}

/** The queries of a block, which has as many of each head of a group. */
KERN_INLINE size_t kern_flash_n_queries(unsigned tiles, size_t group_heads)
{
    return (size_t)KERN_FLASH_WARPS * KERN_MMA_ROWS * tiles / group_heads;
}

/**
 * dims, parts, tiles: constants; 64, 128 or 256, at least the heads' and values' size; 2 or 3; of
 * queries for each warp.
 */
KERN_INLINE void kern_flash_attend(const struct kern_attention_args *a, size_t block, void *shared,
                                   unsigned dims, unsigned parts, unsigned tiles)
{
    struct kern_flash_block b;
    unsigned n = kern_flash_pieces(dims, parts);
    b.dims = dims;
    b.parts = parts;
    b.tiles = tiles;
    b.s = (struct kern_flash_shared *)shared;
    b.a = a;
    b.q = (struct kern_mma_a *)(b.s + 1);
    b.keys = (struct kern_mma_b2 *)(void *)(b.q + (size_t)KERN_FLASH_WARPS * tiles * dims /
                                                      KERN_MMA_DEPTH * parts * KERN_WARP);
    b.values = b.keys + (kern_flash_is_double(dims) ? n : 0);
    b.aligned = kern_attention_aligned(a);
    for (unsigned t = kern_thread_begin(); t < 1; t += kern_thread_step(KERN_FLASH_THREADS)) {
        struct kern_attention_view view = kern_attention_view_of(
            a, block, kern_flash_n_queries(tiles, a->group_heads), KERN_FLASH_KEYS);
        size_t head = view.kv_head - a->first_head / (a->n_heads / a->n_kv_heads);
        view.a = NULL; /* kept in memory, it would keep the arguments from being constants */
        b.s->view = view;
        b.s->parts = a->parts + (head * a->n_blocks + a->tasks[block / a->n_groups].parts) * 2 * n;
        b.s->not_finite = 0;
    }
    kern_barrier();
    KERN_UNROLL
    for (unsigned tile = 0; tile < tiles; tile++)
        kern_flash_load_queries(&b, tile);
    for (unsigned walk = 0; walk < 2; walk++) {
        b.careful = walk > 0;
        kern_flash_walk(&b);
        kern_barrier();
        if (!b.s->not_finite)
            break;
    }
}

#endif

/**
 * Products in 16-bit integers: quantised weights times activations of 16 bits, both as records
 * (records.h), with the CPU's bits of `high` (docs/forward.md has the definition).
 *
 * A block of threads computes a tile of 128 rows of weights by 128 tokens, a record's 64 columns
 * at a time: these come to shared memory while the ones before are multiplied (tile.h). It reads
 * 0.15 bytes for a weight and token of 64 columns from the second-level cache, and does
 * 4 R T K operations on bytes for R rows, T tokens and K columns.
 */
#ifndef KERNELS_CUDA_KERNELS_INTEGERS_PRODUCT_H
#define KERNELS_CUDA_KERNELS_INTEGERS_PRODUCT_H

#include "kernels/cuda/kernels/copies.h"
#include "kernels/cuda/kernels/integers/tile.h"

enum {
    KERN_INTEGERS_THREADS = 256,
    KERN_INTEGERS_WARPS = KERN_INTEGERS_THREADS / 32,
    KERN_INTEGERS_ROWS = 128, /* of a block */
    KERN_INTEGERS_TOKENS = 128,
    KERN_INTEGERS_ACROSS = 2, /* warps of a block along the rows */
    KERN_INTEGERS_GROUP =
        16, /* blocks along the rows that meet the same tokens one after another */
    KERN_INTEGERS_A = KERN_INTEGERS_ROWS / KERN_RECORD_ROWS, /* records of a stage */
    KERN_INTEGERS_B = KERN_INTEGERS_TOKENS / KERN_RECORD_TOKENS,
    KERN_STAGE_COPIES = 5 /* of 16 bytes, of a thread: what 16 records of tokens take at most */
};

/** Words of a stage, and bytes of two. */
#define KERN_STAGE_WORDS(run, wide, min)                                                           \
    (KERN_INTEGERS_A * KERN_RECORD_WORDS(run, wide, min) +                                         \
     KERN_INTEGERS_B * KERN_TOKENS_WANTED(min))
#define KERN_INTEGERS_SHARED(run, wide, min) (8 * KERN_STAGE_WORDS(run, wide, min))

/**
 * out = scale * (weights times tokens) + bias + (accumulate) out, each rounded on its own.
 * A row's output of a token is out[row * row_step + token * token_step].
 */
struct kern_integers_args {
    const uint32_t *weights, *tokens; /* records */
    size_t n_blocks;                  /* of a row */
    float *out;
    size_t row_step, token_step;
    size_t n_rows, n_tokens;
    const float *bias; /* of rows, or NULL */
    float scale;
    bool accumulate;
};

/** Where a block's tile begins. Blocks go through a group of rows for some tokens, then for the
 * next tokens, so that those at work at a time share both. */
KERN_INLINE void kern_integers_place(const struct kern_integers_args *a, size_t block, size_t *row,
                                     size_t *token)
{
    /* Blocks are fewer than 2^31. */
    uint32_t n_a = (uint32_t)((a->n_rows + KERN_INTEGERS_ROWS - 1) / KERN_INTEGERS_ROWS);
    uint32_t n_b = (uint32_t)((a->n_tokens + KERN_INTEGERS_TOKENS - 1) / KERN_INTEGERS_TOKENS);
    uint32_t first = (uint32_t)block / (KERN_INTEGERS_GROUP * n_b) * KERN_INTEGERS_GROUP;
    uint32_t in = (uint32_t)block - first * n_b, left = n_a - first;
    uint32_t n_group = left < KERN_INTEGERS_GROUP ? left : KERN_INTEGERS_GROUP;
    *row = (size_t)(first + in % n_group) * KERN_INTEGERS_ROWS;
    *token = (size_t)(in / n_group) * KERN_INTEGERS_TOKENS;
}

/** Records that come to shared memory, 64 columns of them at a time. */
struct kern_stage_from {
    const uint32_t *records; /* the first row's or token's */
    size_t n_blocks;
    unsigned n, n_words, n_wanted; /* records, words from one to the next, words of one that come */
    uint32_t last;                 /* record that there is */
};

KERN_INLINE struct kern_stage_from kern_stage_of(const uint32_t *records, size_t n_blocks,
                                                 size_t first, size_t last, unsigned n,
                                                 unsigned n_words, unsigned n_wanted)
{
    struct kern_stage_from f;
    f.records = records + first * n_blocks * n_words;
    f.n_blocks = n_blocks;
    f.n = n;
    f.n_words = n_words;
    f.n_wanted = n_wanted;
    f.last = last - first < n ? (uint32_t)(last - first) : n - 1;
    return f;
}

/** Where thread t's copies of 16 bytes are from, which is the same for all columns. Instead of a
 * record that is not there the last one comes again: nothing of that is stored. */
KERN_INLINE void kern_stage_plan(const struct kern_stage_from *f, unsigned t, uint32_t *from)
{
    unsigned per_record = f->n_wanted / 4;
    KERN_UNROLL
    for (unsigned c = 0; c < KERN_STAGE_COPIES; c++) {
        unsigned i = t + c * KERN_INTEGERS_THREADS, record = i / per_record;
        record = record < f->last ? record : f->last;
        from[c] = record * (uint32_t)f->n_blocks * f->n_words + 4 * (i % per_record);
    }
}

/** Thread t's copies of a block of columns. */
KERN_INLINE void kern_stage_records(const struct kern_stage_from *f, size_t column_block,
                                    const uint32_t *from, uint32_t *to, unsigned t)
{
    const uint32_t *records = f->records + column_block * f->n_words;
    KERN_UNROLL
    for (unsigned c = 0; c < KERN_STAGE_COPIES; c++) {
        unsigned before = c * KERN_INTEGERS_THREADS, n = f->n * f->n_wanted / 4;
        if (before + KERN_INTEGERS_THREADS <= n || (before < n && t < n - before))
            kern_copy16(to + 4 * (before + t), records + from[c]);
    }
}

/** A lane's outputs of row r, of the tiles that begin at this token. */
KERN_INLINE void kern_integer_store_row(const struct kern_integers_args *a,
                                        const struct kern_integer_warp *sums, unsigned tile,
                                        unsigned half, size_t row, size_t token, unsigned lane)
{
    /* Nothing changes by a factor of 1, or by adding -0. With ends, instead of questions whether
     * there is any, the compiler writes this twice, not four times. */
    size_t n_bias = a->bias ? a->n_rows : 0, n_old = a->accumulate ? a->n_tokens : 0;
    float bias = row < n_bias ? a->bias[row] : -0.0f;
    float *out = a->out + row * a->row_step + token * a->token_step;
    KERN_UNROLL
    for (unsigned n = 0; n < 2 * KERN_INTEGERS_TILES; n++) {
        unsigned t = n / 2 * KERN_RECORD_TOKENS + n % 2;
        if (token + t >= a->n_tokens)
            continue;
        float *to = out + t * a->token_step, old = token + t < n_old ? *to : -0.0f;
        float sum = sums->of[tile][n / 2][kern_slot(lane)].v[2 * half + n % 2];
        *to = sum * a->scale + bias + old;
    }
}

KERN_INLINE void kern_integer_store_warp(const struct kern_integers_args *a,
                                         const struct kern_integer_warp *sums, size_t row,
                                         size_t token)
{
    for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
        KERN_UNROLL
        for (unsigned n = 0; n < 2 * KERN_INTEGERS_TILES; n++) {
            size_t r = row + n * (KERN_RECORD_ROWS / 2) + lane / KERN_QUAD;
            if (r < a->n_rows)
                kern_integer_store_row(a, sums, n / 2, n % 2, r, token + lane % KERN_QUAD * 2,
                                       lane);
        }
    }
}

/** The part of a block's tile that a warp does. */
struct kern_integers_part {
    size_t row, token;
    bool is_empty;
};

KERN_INLINE struct kern_integers_part kern_integers_part_of(const struct kern_integers_args *a,
                                                            size_t row, size_t token, unsigned w)
{
    struct kern_integers_part part;
    part.row = row + w % KERN_INTEGERS_ACROSS * KERN_INTEGERS_TILES * KERN_RECORD_ROWS;
    part.token = token + w / KERN_INTEGERS_ACROSS * KERN_INTEGERS_TILES * KERN_RECORD_TOKENS;
    part.is_empty = part.row >= a->n_rows || part.token >= a->n_tokens;
    return part;
}

/** The block's tile; run, wide, min: constants, the weights' form; wide is 2 where it is long. */
KERN_INLINE void kern_integers_block(const struct kern_integers_args *a, size_t block, void *shared,
                                     unsigned run, unsigned wide, bool min)
{
    const struct kern_integer_form form = {run, 0, wide > 0, wide > 1, min};
    const unsigned n_words = KERN_RECORD_WORDS(run, wide, min), n_a = KERN_INTEGERS_A * n_words;
    const unsigned n_wanted = KERN_TOKENS_WANTED(min);
    uint32_t *stages = (uint32_t *)shared;
    struct kern_integer_warp sums[KERN_SLOTS(KERN_INTEGERS_WARPS)];
    size_t row, token;
    kern_integers_place(a, block, &row, &token);
    const struct kern_stage_from weights =
        kern_stage_of(a->weights, a->n_blocks, row / KERN_RECORD_ROWS,
                      (a->n_rows - 1) / KERN_RECORD_ROWS, KERN_INTEGERS_A, n_words, n_words);
    const struct kern_stage_from tokens = kern_stage_of(
        a->tokens, a->n_blocks, token / KERN_RECORD_TOKENS, (a->n_tokens - 1) / KERN_RECORD_TOKENS,
        KERN_INTEGERS_B, KERN_TOKEN_WORDS, n_wanted);
    uint32_t from[KERN_SLOTS(KERN_INTEGERS_THREADS)][2][KERN_STAGE_COPIES];
    for (unsigned t = kern_thread_begin(); t < KERN_INTEGERS_THREADS;
         t += kern_thread_step(KERN_INTEGERS_THREADS)) {
        kern_stage_plan(&weights, t, from[kern_slot(t)][0]);
        kern_stage_plan(&tokens, t, from[kern_slot(t)][1]);
    }
    for (unsigned w = kern_warp_begin(); w < KERN_INTEGERS_WARPS;
         w = kern_warp_next(w, KERN_INTEGERS_WARPS))
        kern_integer_clear(&sums[kern_slot(w)]);
    for (size_t k = 0; k <= a->n_blocks; k++) {
        uint32_t *next = stages + k % 2 * KERN_STAGE_WORDS(run, wide, min);
        const uint32_t *now = stages + (k + 1) % 2 * KERN_STAGE_WORDS(run, wide, min);
        kern_copies_wait();
        kern_barrier();
        for (unsigned t = kern_thread_begin(); k < a->n_blocks && t < KERN_INTEGERS_THREADS;
             t += kern_thread_step(KERN_INTEGERS_THREADS)) {
            kern_stage_records(&weights, k, from[kern_slot(t)][0], next, t);
            kern_stage_records(&tokens, k, from[kern_slot(t)][1], next + n_a, t);
        }
        for (unsigned w = kern_warp_begin(); k > 0 && w < KERN_INTEGERS_WARPS;
             w = kern_warp_next(w, KERN_INTEGERS_WARPS)) {
            struct kern_integers_part part = kern_integers_part_of(a, row, token, w);
            if (part.is_empty)
                continue;
            unsigned first = w % KERN_INTEGERS_ACROSS * KERN_INTEGERS_TILES;
            unsigned second = w / KERN_INTEGERS_ACROSS * KERN_INTEGERS_TILES;
            kern_integer_step(&sums[kern_slot(w)], now + first * n_words,
                              now + n_a + second * n_wanted, form);
        }
    }
    for (unsigned w = kern_warp_begin(); w < KERN_INTEGERS_WARPS;
         w = kern_warp_next(w, KERN_INTEGERS_WARPS)) {
        struct kern_integers_part part = kern_integers_part_of(a, row, token, w);
        if (!part.is_empty)
            kern_integer_store_warp(a, &sums[kern_slot(w)], part.row, part.token);
    }
}

#endif

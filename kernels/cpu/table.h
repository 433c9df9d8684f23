/**
 * The table of CPU kernels: one function pointer per inner loop.
 *
 * Every row has a scalar version, the reference. The folders avx2/ and avx512/ each export one
 * table with rows of their own; kern_table_build() lays them over the scalar ones. All versions
 * of a row give the same bits (but for the sign and payload of a NaN), so which of them runs
 * can never change a result.
 *
 * Lanes. Products, attention and scores hold tokens side by side: a "lane array" is
 * [n][KERN_LANES] floats, aligned to 64 bytes, where lane l of every row belongs to the same
 * token. Kernels work on all lanes of a row at once and never mix lanes, so no order of
 * summation depends on a vector's width. Unused lanes hold zeros or rubbish and are ignored.
 */
#ifndef KERNELS_CPU_TABLE_H
#define KERNELS_CPU_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gguf/type.h"
#include "kernels/cpu/isa.h"

enum { KERN_LANES = 32 };

/** n elements of a row of blocks to float32; see kernels/quant/registry.h. */
typedef void kern_decode_fn(const void *blocks, float *y, size_t n);

/**
 * A product of broadcast numbers with a lane array:
 *     acc[r][lane] = fmaf(w[r * w_row + k * w_col], x[k][lane], acc[r][lane])
 * for k = 0, 1, ... n_k - 1 in this order, each acc one chain of fused multiply-adds.
 * It begins at +0 without reading acc, or goes on from what acc holds (`resume`): cutting a
 * chain into pieces changes nothing.
 */
struct kern_fma_tile {
    const float *w; /* any alignment */
    size_t w_row;   /* floats from w of row r to that of row r + 1 */
    size_t w_col;   /* floats from w of step k to that of step k + 1 */
    const float *x; /* lane array [n_k] */
    float *acc;     /* lane array [n_rows] */
    size_t n_rows;  /* any number, 0 included */
    size_t n_k;     /* likewise */
    bool resume;
};
typedef void kern_fma_tile_fn(const struct kern_fma_tile *op);

/**
 * Rows to lanes: out[k][l] = x[l * x_stride + k] for l < n_lanes, 0 in the lanes after.
 * x: n_lanes <= KERN_LANES rows of n_k floats, any alignment.   out: lane array [n_k].
 */
typedef void kern_lanes_pack_fn(const float *x, size_t x_stride, size_t n_lanes, size_t n_k,
                                float *out);

/**
 * Lanes to rows, the end of a product: for l < n_lanes and r < n_rows
 *     y[l * y_stride + r] = acc[r][l] * scale + bias[r] + y[l * y_stride + r]
 * with each operation rounded on its own and left out where it has nothing to do: scale == 1,
 * bias == NULL, accumulate == false (then y is not read).
 */
struct kern_lanes_unpack {
    const float *acc; /* lane array [n_rows] */
    size_t n_rows, n_lanes;
    float scale;
    const float *bias; /* n_rows floats, or NULL */
    float *y;          /* any alignment */
    size_t y_stride;
    bool accumulate;
};
typedef void kern_lanes_unpack_fn(const struct kern_lanes_unpack *op);

/** What softmax over blocks of keys remembers of each lane. Begin with max -infinity, sum 0. */
struct kern_softmax_lanes {
    _Alignas(64) float max[KERN_LANES];
    float sum[KERN_LANES]; /* of exp(s - max) over the keys so far */
};

/**
 * One block of online softmax, every lane by itself, keys in order.
 * s: lane array [n_keys] of scores, n_keys <= KERN_KEY_BLOCK; becomes exp(s - max), max being
 * the lane's maximum over all blocks so far.
 * rescale: KERN_LANES floats, out: exp(old max - new max), by which the caller multiplies what
 * it summed before. state->sum = state->sum * rescale + the new terms, one addition per key.
 *
 * A score of -infinity is a masked key: its term is exactly 0. A lane with nothing but masked
 * keys so far keeps max -infinity and sum 0; its terms are 0, its rescale 1. A NaN or +infinity
 * makes the lane's sum NaN from then on.
 */
typedef void kern_softmax_block_fn(float *s, size_t n_keys, struct kern_softmax_lanes *state,
                                   float *rescale);

/**
 * What scoring remembers of each lane while it walks the vocabulary in order.
 * Begin with kern_score_lanes_init().
 */
struct kern_score_lanes {
    _Alignas(64) float max[KERN_LANES]; /* of the finite logits; -infinity while none */
    int32_t argmax[KERN_LANES];         /* the first of equals; -1 while none is finite */
    double sum[KERN_LANES];             /* of exp(l - max) */
    double dot[KERN_LANES];             /* of exp(l - max) * (l - max) */
    /* Against the logits a of head 0; untouched where there are none. */
    float base_max[KERN_LANES];
    double cross[KERN_LANES]; /* of exp(a - base_max) * (a - l) */
};
void kern_score_lanes_init(struct kern_score_lanes *state);

/** Vocabulary rows per call of score_update, counted from 0; only the last call has fewer. */
enum { KERN_SCORE_BLOCK = 64 };

/**
 * Take in the logits of vocabulary rows first_row .. first_row + n_rows - 1.
 * logits, base: lane arrays [n_rows]; base: those of head 0, or NULL.
 * First the block's maximum per lane and the rescaling of what was summed before, then the
 * terms in order of the rows, all sums in double. A lane that meets a NaN or an infinity
 * has sum NaN from then on; max and argmax go on over its finite logits.
 */
typedef void kern_score_update_fn(const float *logits, const float *base, size_t n_rows,
                                  size_t first_row, struct kern_score_lanes *state);

/** One target per lane, to be ranked among all logits. */
struct kern_rank_lanes {
    _Alignas(64) float logit[KERN_LANES];
    int32_t token[KERN_LANES];
    uint32_t n_before[KERN_LANES]; /* rank - 1, so far */
};

/**
 * Count the rows i of the block with l_i > logit, or l_i == logit and i < token.
 * logits: lane array [n_rows], of vocabulary rows from first_row on.
 */
typedef void kern_rank_update_fn(const float *logits, size_t n_rows, size_t first_row,
                                 struct kern_rank_lanes *state);

/** The rows. NULL in an ISA's own table: that ISA has no version of it. */
struct kern_table {
    kern_decode_fn *decode[GGUF_TYPE_LIMIT]; /* by type; NULL: the type cannot be decoded */
    kern_fma_tile_fn *fma_tile;
    kern_lanes_pack_fn *lanes_pack;
    kern_lanes_unpack_fn *lanes_unpack;
    kern_softmax_block_fn *softmax_block;
    kern_score_update_fn *score_update;
    kern_rank_update_fn *rank_update;
};

/** One table per ISA: its own rows only. */
extern const struct kern_table kern_table_scalar, kern_table_avx2, kern_table_avx512;

/** That of an ISA, for tests and benchmarks; it may be run only up to kern_isa_detect(). */
const struct kern_table *kern_table_of(enum kern_isa isa);

/**
 * Fill `out` with the best rows of min(cap, kern_isa_detect()); returns that ISA.
 * The result is constant from then on.
 */
enum kern_isa kern_table_build(struct kern_table *out, enum kern_isa cap);

#endif

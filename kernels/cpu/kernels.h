/**
 * The kernel set of the CPU: one function pointer per inner loop.
 *
 * Every kernel has a scalar version, the reference. The folders avx2/, avx512/ and neon/ each
 * export a set with kernels of their own; kern_kernels_build() lays them over the scalar ones. All
 * versions of a kernel give the same bits (but for the sign and payload of a NaN), so the choice
 * never changes a result.
 *
 * Panels. Products hold tokens side by side: a "panel array" is [n][KERN_PANEL] floats, aligned
 * to 64 bytes, where lane l of every row belongs to the same token. Kernels work on all lanes of
 * a row at once and never mix lanes, so no order of summation depends on a vector's width.
 * Lanes without a token are ignored; their contents are undefined. The vertical kernels of lanes.h
 * take a panel as KERN_PANEL / KERN_LANES groups of columns.
 */
#ifndef KERNELS_CPU_KERNELS_H
#define KERNELS_CPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gguf/type.h"
#include "kernels/cpu/gemm/rounded.h"
#include "kernels/cpu/isa.h"
#include "kernels/numerics/bf16.h"
#include "kernels/numerics/ops.h"
#include "kernels/quant/integers.h"
#include "kernels/quant/registry.h"

enum { KERN_PANEL = 32, KERN_NARROW = 16 };

/**
 * A product of broadcast numbers with a panel array:
 *     acc[r][lane] = fmaf(w[r * w_row + k * w_col], x[k][lane], acc[r][lane])
 * for k = 0, 1, ... n_k - 1 in this order, each acc one chain of fused multiply-adds.
 * It begins at +0 without reading acc, or goes on from what acc holds (`resume`): cutting a
 * chain into pieces changes nothing.
 */
struct kern_fma_tile {
    const float *w; /* any alignment */
    size_t w_row;   /* floats from w of row r to that of row r + 1 */
    size_t w_col;   /* floats from w of step k to that of step k + 1; it or w_row is 1 */
    const float *x; /* panel array [n_k] */
    float *acc;     /* panel array [n_rows] */
    size_t n_rows;  /* any number, 0 included */
    size_t n_k;     /* likewise */
    bool resume;
    bool narrow;                        /* only the first KERN_NARROW lanes of acc are wanted */
    const float *next_x;                /* a hint: x of the next call, or NULL */
    const struct kern_integers *format; /* for int16_tile and int8_tile only */
    bool exactly; /* int16_tile, of whole blocks and a long format: 32 bits may not hold a sum */
};
typedef void kern_fma_tile_fn(const struct kern_fma_tile *op);

/**
 * Rows to lanes: out[k][l] = x[l * x_stride + k] for l < n_lanes, 0 in the lanes after.
 * out: panel array [n_k].
 */
typedef void kern_panel_pack_fn(const struct kern_panel_pack *op);

/**
 * Lanes to rows, the end of a product: for l < n_lanes and r < n_rows
 *     y[l * y_stride + r] = acc[r][l] * scale + bias[r] + y[l * y_stride + r]
 * with each operation rounded on its own and left out where it has nothing to do: scale == 1,
 * bias == NULL, accumulate == false (then y is not read).
 */
struct kern_panel_unpack {
    const float *acc; /* panel array [n_rows] */
    size_t n_rows, n_lanes;
    float scale;
    const float *bias; /* n_rows floats, or NULL */
    float *y;          /* any alignment */
    size_t y_stride;
    bool accumulate;
};
typedef void kern_panel_unpack_fn(const struct kern_panel_unpack *op);

/** acc[r][l] *= factor[l]. acc: panel array [n_rows]; factor: panel array [1]. */
typedef void kern_panel_scale_fn(float *acc, size_t n_rows, const float *factor);

/**
 * The products that kernels/cpu/gemm/rounded.h defines. They take the same struct, with
 *     w    rows: integers (n_k int16_t or int8_t), n_k / run int32_t where sums begin, n_k / run
 *          scales and, with minima, n_k / min_run of these
 *     x    struct kern_int16_chunk or kern_int8_chunk [n_k / 32], aligned to 64
 * w_row is in floats, w_col and narrow are not looked at, and n_k is a multiple of 32. A call that
 * another one resumes has whole blocks.
 */
typedef kern_fma_tile_fn kern_int16_tile_fn, kern_int8_tile_fn;
typedef kern_panel_pack_fn kern_int16_pack_fn, kern_int8_pack_fn;
/** int8_tile and int8_pack with activations and weights that lie as those of int16_tile do, for
 * weights that are larger than `bytes_most`. The bits of the results are the same. */
typedef kern_fma_tile_fn kern_words_tile_fn;
typedef kern_panel_pack_fn kern_words_pack_fn;
/** A decoded neutral row (kernels/quant/integers.h) as integers. n: a multiple of 32. */
typedef void kern_to_int16_fn(const float *y, size_t n, int16_t *integers);
typedef void kern_to_int8_fn(const float *y, size_t n, int8_t *integers);
/**
 * Lay a row: its integers, and where the sum of each run begins. n_k: a multiple of 32. out:
 * kern_int16_floats(), kern_int8_floats(). The tiles of the same kernels are the only readers of
 * these rows: they may lie as it wants them, and what it does not read need not be written.
 * Integers of 16 bits that may be beyond a byte are products: those that share a scale for
 * activations of 8 bits (kernels/quant/integers.h) have a divisor that leaves -128..127.
 * Attention's, which have the type F32, may be any.
 */
typedef void kern_int16_row_fn(const int16_t *integers, size_t n_k,
                               const struct kern_integers *format, float *out);
typedef void kern_int8_row_fn(const int8_t *integers, size_t n_k,
                              const struct kern_integers *format, float *out);

/** Floats that the integers of a row take: those before its scales. */
static inline size_t kern_int16_floats(size_t n_k, size_t run)
{
    return n_k / 2 + n_k / run;
}

static inline size_t kern_int8_floats(size_t n_k, size_t run)
{
    return n_k / 4 + n_k / run;
}

/** Operands of products in bfloat16: split and packed as kernels/numerics/bf16.h has it. */
typedef void kern_bf16_pack_row_fn(const float *w, size_t n_k, unsigned n_parts, size_t row,
                                   uint16_t *out);
typedef kern_panel_pack_fn kern_bf16_pack_panel_fn;
/** Operands of a panel array x [n_k]: its lanes are the tokens. */
typedef void kern_bf16_pack_lanes_fn(const float *x, size_t n_k, unsigned n_parts, uint16_t *out);

/**
 * Operands of attention's products in 16 bits (rounded.h): lanes of a panel array, multiplied with
 * rows that int16_round makes: n numbers, a multiple of 16, are one block; it returns their scale.
 * int16_turn: out[c][r] = x[r][c], of n_rows, a multiple of 16, and n_cols, a multiple of 8.
 */
typedef void kern_int16_pack_lanes_fn(const struct kern_lanes_pack *op);
typedef float kern_int16_round_fn(const float *x, size_t n, int largest, int16_t *integers);
typedef void kern_int16_turn_fn(const int16_t *x, size_t n_rows, size_t n_cols, int16_t *out);

/** The list of the product kernels above: X(name) for each. */
/* clang-format off */
#define KERN_PRODUCT_KERNELS(X)                                                                    \
    X(fma_tile) X(panel_pack) X(panel_unpack) X(panel_scale) X(bf16_pack_row) X(bf16_pack_panel)   \
    X(bf16_pack_lanes) X(int16_tile) X(int16_pack) X(to_int16) X(int16_row) X(int8_tile)           \
    X(int8_pack) X(to_int8) X(int8_row) X(words_tile) X(words_pack) X(int16_pack_lanes)            \
    X(int16_round) X(int16_turn)
/* clang-format on */

#define KERN_PRODUCT_MEMBER(name) kern_##name##_fn *(name);
/** The kernels. NULL in an ISA's own set: that ISA has no version of it. */
struct kern_kernels {
    kern_decode_fn *decode[GGUF_TYPE_LIMIT]; /* by type; NULL: the type cannot be decoded */
    /* To int8_t and to int16_t; NULL: its neutral blocks are decoded. */
    kern_straight_fn *straight8[GGUF_TYPE_LIMIT], *straight16[GGUF_TYPE_LIMIT];
    KERN_PRODUCT_KERNELS(KERN_PRODUCT_MEMBER)
    int bytes_most;      /* the largest integer of weights that int8_tile takes */
    struct kern_ops ops; /* what is not a product; taken whole from the highest ISA */
};

/** Each ISA's own kernels (without `ops`), and what VNNI and kern_isa_adds_more() change. */
extern const struct kern_kernels kern_kernels_scalar, kern_kernels_avx2, kern_kernels_avx512;
extern const struct kern_kernels kern_kernels_avx2_vnni, kern_kernels_avx512_vnni;
extern const struct kern_kernels kern_kernels_avx512_pairs;
extern const struct kern_kernels kern_kernels_neon, kern_kernels_dotprod, kern_kernels_i8mm;

/** What an ISA of this kind of processor has. */
struct kern_set {
    const char *name;
    const struct kern_kernels *own;
    const struct kern_kernels *vnni;  /* on top with VNNI; or NULL */
    const struct kern_kernels *pairs; /* on top with VNNI and kern_isa_adds_more(); or NULL */
    const struct kern_ops *ops;       /* all of them */
};
extern const struct kern_set kern_sets[KERN_ISA_COUNT];

/**
 * Fill `out` with the best kernels of min(cap, kern_isa_detect()); returns that ISA.
 * The result is constant from then on.
 */
enum kern_isa kern_kernels_build(struct kern_kernels *out, enum kern_isa cap);

#endif

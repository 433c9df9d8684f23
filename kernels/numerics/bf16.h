/**
 * Float32 numbers as one or two bfloat16, and how products in bfloat16 want them to lie.
 *
 * Parts. x = hi + lo + e: hi is x rounded to the nearest bfloat16 (halves to even; towards zero
 * where that would give infinity), lo is x - hi, which float32 holds exactly, rounded likewise,
 * and |e| <= 2^-16 |x| unless lo is a denormal. For an infinity or NaN, hi is the same and lo
 * is 0. With one part there is only hi, and |x - hi| <= 2^-8 |x|.
 *
 * Tiles. What one tile instruction takes is a tile of 1 KiB: 16 lines of 32 numbers.
 *   - Of weights: line i is row i, with 32 successive columns.
 *   - Of activations: line i holds columns 2i and 2i + 1 of 16 tokens, as pairs side by side.
 * A chunk is 32 columns of 32 rows or tokens: two tiles (the first 16, the last 16) of hi, then,
 * with two parts, two of lo. Chunks follow one another in the order of the columns. Columns up to
 * the next multiple of 32, and rows and lanes that there are none of, hold zeros.
 */
#ifndef KERNELS_NUMERICS_BF16_H
#define KERNELS_NUMERICS_BF16_H

#include <stddef.h>
#include <stdint.h>

#include "base/arithmetic.h"
#include "kernels/portable/portable.h"

enum {
    KERN_BF16_TILE_LINES = 16,
    KERN_BF16_CHUNK_K = 32, /* columns of a tile */
    KERN_BF16_TILE = KERN_BF16_TILE_LINES * KERN_BF16_CHUNK_K,
    KERN_BF16_GROUP = 2 * KERN_BF16_TILE_LINES /* rows or tokens of a chunk */
};

/** Numbers that a group of 32 rows or tokens takes. */
static inline size_t kern_bf16_group_size(size_t n_k, unsigned n_parts)
{
    return base_div_up(n_k, KERN_BF16_CHUNK_K) * 2 * n_parts * KERN_BF16_TILE;
}

static inline float kern_bf16_to_float(uint16_t b)
{
    return kern_float_from_bits((uint32_t)b << 16);
}

/** The nearest bfloat16; the definition that the packers of every ISA follow to the bit. */
static inline uint16_t kern_bf16_round(float x)
{
    const uint32_t infinity = 0x7f800000u, quiet = 0x00400000u;
    uint32_t bits = kern_bits_of(x);
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > infinity)
        return (uint16_t)((bits | quiet) >> 16);
    uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1);
    if (magnitude < infinity && (rounded & infinity) == infinity)
        rounded = bits; /* towards zero */
    return (uint16_t)(rounded >> 16);
}

/** What kern_bf16_round() leaves, rounded; 0 if hi is not finite. */
static inline uint16_t kern_bf16_rest(float x, uint16_t hi)
{
    return (hi & 0x7f80u) == 0x7f80u ? 0 : kern_bf16_round(x - kern_bf16_to_float(hi));
}

/** Activations to be packed into a panel, whatever their numbers are to be. */
struct kern_panel_pack {
    const float *x; /* n_lanes <= 32 tokens of n_k floats, any alignment */
    size_t x_stride, n_lanes, n_k;
    unsigned n_parts; /* of bfloat16: 1 or 2; not read by others */
    int largest;      /* of integers; not read by others */
    void *out;        /* aligned to 64 */
};

/**
 * Row `row` (0 to 31) of a group of weights: split w [n_k] into the lines that are its own of
 * `out` [kern_bf16_group_size()].
 */
void kern_scalar_bf16_pack_row(const float *w, size_t n_k, unsigned n_parts, size_t row,
                               uint16_t *out);
/** A panel of activations. out: kern_bf16_group_size() numbers. */
void kern_scalar_bf16_pack_panel(const struct kern_panel_pack *op);
/** Activations that lie side by side already: x [n_k][32], aligned to 64. */
void kern_scalar_bf16_pack_lanes(const float *x, size_t n_k, unsigned n_parts, uint16_t *out);

#endif

/**
 * Products on tensor cores of float32 numbers that come as two or three bfloat16.
 *
 * Parts. The first part of x is x rounded to the nearest bfloat16, ties to even; the next is what
 * that leaves, which float32 holds exactly, rounded likewise, and so on. What n parts leave is at
 * most 2^-8n |x|, unless the last is subnormal. A bfloat16 has float32's exponents, so nothing
 * needs scaling. For an infinity or NaN, and for a number that is rounded to infinity (from
 * 0x1.ffp127 on), the other parts are infinite or NaN, and what it is multiplied with becomes NaN.
 *
 * A product of numbers in n parts is the sum of the products of parts i and j with i + j < n, the
 * smallest first: three for two parts, six for three. The rest is at most (n + 1) 2^-8n of it,
 * next to the rounding of float32 sums.
 *
 * Tiles. One instruction, mma.sync.m16n8k16, adds to 16 x 8 sums c the products of 16 x 16
 * numbers a and 16 x 8 numbers b. A lane of the warp has a few of each, its fragment: with
 * g = lane / 4 and q = lane % 4 (PTX ISA, "Matrix Fragments for mma.m16n8k16"),
 *
 *     c.v[2 r + i]        row g + 8 r, column 2 q + i                       r, i: 0, 1
 *     a.v[r + 2 h]        row g + 8 r, columns 8 h + 2 q and 8 h + 2 q + 1, as a pair of 16 bits
 *     b.v[h]              rows 8 h + 2 q and 8 h + 2 q + 1, column g        (the lower half first)
 *
 * Products of two bfloat16 are exact. The maker of the instruction does not say how it adds. What
 * was found is that it rounds towards zero (Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of
 * NVIDIA tensor cores", 2021), once for 8 or 16 products. So long chains lose. Sums that must be
 * as good as float32's are kept short, and large terms come last. The host adds 16 products
 * to c in float64, and rounds towards zero.
 */
#ifndef KERNELS_CUDA_KERNELS_MMA_H
#define KERNELS_CUDA_KERNELS_MMA_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/cuda/kernels/half.h"
#include "kernels/cuda/kernels/warp.h"

enum {
    KERN_MMA_ROWS = 16,
    KERN_MMA_COLUMNS = 8,
    KERN_MMA_DEPTH = 16,
    KERN_MMA_GROUP = 4, /* tiles that kern_parts_multiply() holds at a time */
    KERN_MAX_PARTS = 3
};

struct kern_mma_a {
    uint32_t v[4];
} __attribute__((aligned(16)));

struct kern_mma_b {
    uint32_t v[2];
} __attribute__((aligned(8)));

/** A lane's fragments of two tiles b side by side: one load of 16 bytes. */
struct kern_mma_b2 {
    struct kern_mma_b tile[2];
} __attribute__((aligned(16)));

struct kern_mma_c {
    float v[4];
};

#ifndef __CUDACC__

/** Both numbers of a pair, `step` apart. */
static inline void kern_mma_pair(float *to, size_t step, uint32_t pair)
{
    to[0] = kern_float_from_bits(pair << 16);
    to[step] = kern_float_from_bits(pair & 0xffff0000u);
}

static inline float kern_mma_towards_zero(double x)
{
    float rounded = (float)x;
    unsigned larger = fabs((double)rounded) > fabs(x);
    return kern_float_from_bits(kern_bits_of(rounded) - larger);
}

/** One row of c += a b: a sum for each column, which stay in registers from product to product. */
static inline void kern_mma_row(double sums[KERN_MMA_COLUMNS], const float x[KERN_MMA_DEPTH],
                                const float y[KERN_MMA_DEPTH][KERN_MMA_COLUMNS])
{
    typedef float floats __attribute__((vector_size(KERN_MMA_COLUMNS / 2 * sizeof(float))));
    typedef double doubles __attribute__((vector_size(KERN_MMA_COLUMNS / 2 * sizeof(double))));
    doubles halves[2];
    memcpy(halves, sums, sizeof halves);
    for (unsigned k = 0; k < KERN_MMA_DEPTH; k++) {
        floats factors[2];
        memcpy(factors, y[k], sizeof factors);
        halves[0] += __builtin_convertvector(x[k] * factors[0], doubles);
        halves[1] += __builtin_convertvector(x[k] * factors[1], doubles);
    }
    memcpy(sums, halves, sizeof halves);
}

/* Without inner loops, which gcc leaves rolled at -O2: tests spend most of their time here. */
static inline void kern_mma_on_host(struct kern_mma_c *c, const struct kern_mma_a *a,
                                    const struct kern_mma_b *b)
{
    float x[KERN_MMA_ROWS][KERN_MMA_DEPTH], y[KERN_MMA_DEPTH][KERN_MMA_COLUMNS];
    for (unsigned lane = 0; lane < KERN_WARP; lane++) {
        unsigned g = lane / KERN_QUAD, q = lane % KERN_QUAD;
        kern_mma_pair(&x[g][2 * q], 1, a[lane].v[0]);
        kern_mma_pair(&x[g + 8][2 * q], 1, a[lane].v[1]);
        kern_mma_pair(&x[g][8 + 2 * q], 1, a[lane].v[2]);
        kern_mma_pair(&x[g + 8][8 + 2 * q], 1, a[lane].v[3]);
        kern_mma_pair(&y[2 * q][g], KERN_MMA_COLUMNS, b[lane].v[0]);
        kern_mma_pair(&y[8 + 2 * q][g], KERN_MMA_COLUMNS, b[lane].v[1]);
    }
    for (unsigned row = 0; row < KERN_MMA_ROWS; row++) {
        struct kern_mma_c *of_row = c + row % 8 * KERN_QUAD;
        unsigned at = row / 8 * 2;
        double sums[KERN_MMA_COLUMNS];
        for (unsigned q = 0; q < KERN_QUAD; q++) {
            sums[2 * q] = (double)of_row[q].v[at];
            sums[2 * q + 1] = (double)of_row[q].v[at + 1];
        }
        kern_mma_row(sums, x[row], y);
        for (unsigned q = 0; q < KERN_QUAD; q++) {
            of_row[q].v[at] = kern_mma_towards_zero(sums[2 * q]);
            of_row[q].v[at + 1] = kern_mma_towards_zero(sums[2 * q + 1]);
        }
    }
}

#endif

/** c += a b. Fragments of all lanes: KERN_WARP_SLOTS of each. */
KERN_INLINE void kern_mma_bf16(struct kern_mma_c *c, const struct kern_mma_a *a,
                               const struct kern_mma_b *b)
{
#ifdef __CUDACC__
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c->v[0]), "+f"(c->v[1]), "+f"(c->v[2]), "+f"(c->v[3])
                 : "r"(a->v[0]), "r"(a->v[1]), "r"(a->v[2]), "r"(a->v[3]), "r"(b->v[0]),
                   "r"(b->v[1]));
#else
    kern_mma_on_host(c, a, b);
#endif
}

/** The nearest bfloat16 of x (the lower half) and y, ties to even. */
KERN_INLINE uint32_t kern_bf16_pair(float x, float y)
{
#ifdef __CUDACC__
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(y), "f"(x));
    return pair;
#else
    const float both[2] = {x, y};
    uint32_t rounded[2];
    for (unsigned i = 0; i < 2; i++) {
        uint32_t bits = kern_bits_of(both[i]);
        bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
        rounded[i] = nan ? 0x7fff : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    }
    return rounded[0] | rounded[1] << 16;
#endif
}

/** Whether a number's parts are finite. */
KERN_INLINE bool kern_bf16_holds(float x)
{
    return kern_magnitude_bits(x) < 0x7f7f8000u;
}

/** x and y side by side, in parts[0 .. n_parts - 1]. */
KERN_INLINE void kern_parts_of(float x, float y, unsigned n_parts, uint32_t *parts)
{
    KERN_UNROLL
    for (unsigned p = 0; p < n_parts; p++) {
        parts[p] = kern_bf16_pair(x, y);
        x -= kern_float_from_bits(parts[p] << 16);
        y -= kern_float_from_bits(parts[p] & 0xffff0000u);
    }
}

/**
 * A lane's fragments of the parts of two tiles b side by side, from its four numbers of each: one
 * every KERN_WARP.
 */
KERN_INLINE void kern_parts_store_b(const struct kern_vec4 *x, unsigned n_parts,
                                    struct kern_mma_b2 *to)
{
    uint32_t words[4][KERN_MAX_PARTS];
    KERN_UNROLL
    for (unsigned i = 0; i < 4; i++)
        kern_parts_of(x[i / 2].v[i % 2 * 2], x[i / 2].v[i % 2 * 2 + 1], n_parts, words[i]);
    KERN_UNROLL
    for (unsigned p = 0; p < n_parts; p++) {
        struct kern_mma_b2 b = {{{{words[0][p], words[1][p]}}, {{words[2][p], words[3][p]}}}};
        to[p * KERN_WARP] = b;
    }
}

/** The parts of a tile a: the fragments of all lanes. */
struct kern_parts_a {
    struct kern_mma_a part[KERN_MAX_PARTS][KERN_WARP_SLOTS];
};

/** Which products of parts i and j: those with least <= i + j < end, the smallest products first.
 */
struct kern_parts_orders {
    unsigned n_parts, least, end;
};

/** The parts of up to KERN_MMA_GROUP tiles b side by side: the fragments of all lanes. */
struct kern_parts_b {
    struct kern_mma_b part[KERN_MMA_GROUP][KERN_MAX_PARTS][KERN_WARP_SLOTS];
};

/**
 * The parts that `orders` want of n tiles, 2 or 4, whose fragments are from[two tiles][part][lane],
 * as kern_parts_store_b() has them.
 */
KERN_INLINE void kern_parts_load_b(const struct kern_mma_b2 *from, unsigned n,
                                   struct kern_parts_orders orders, struct kern_parts_b *to)
{
    /* Bounds that are plain numbers: whatever surrounds these loops, they are unrolled first. */
    KERN_UNROLL
    for (unsigned i = 0; i < KERN_MMA_GROUP / 2 * KERN_MAX_PARTS; i++) {
        unsigned pair = i / KERN_MAX_PARTS, part = i % KERN_MAX_PARTS;
        if (part >= orders.end || 2 * pair >= n)
            continue;
        for (unsigned lane = kern_lane_begin(); lane < KERN_WARP; lane = kern_lane_next(lane)) {
            struct kern_mma_b2 b = from[(pair * orders.n_parts + part) * KERN_WARP + lane];
            to->part[2 * pair][part][kern_slot(lane)] = b.tile[0];
            to->part[2 * pair + 1][part][kern_slot(lane)] = b.tile[1];
        }
    }
}

/**
 * c[i] += a b[i] for n tiles side by side. Tiles take turns, so that an instruction need not wait
 * for the one before it.
 */
KERN_INLINE void kern_parts_multiply(struct kern_mma_c (*c)[KERN_WARP_SLOTS],
                                     const struct kern_parts_a *a, const struct kern_parts_b *b,
                                     unsigned n, struct kern_parts_orders orders)
{
    KERN_UNROLL
    for (unsigned k = 0; k < KERN_MAX_PARTS * KERN_MAX_PARTS; k++) {
        unsigned sum = KERN_MAX_PARTS - 1 - k / KERN_MAX_PARTS, j = k % KERN_MAX_PARTS;
        if (sum < orders.least || sum >= orders.end || j > sum)
            continue;
        KERN_UNROLL
        for (unsigned i = 0; i < KERN_MMA_GROUP; i++) {
            if (i < n)
                kern_mma_bf16(c[i], a->part[sum - j], b->part[i][j]);
        }
    }
}

#endif

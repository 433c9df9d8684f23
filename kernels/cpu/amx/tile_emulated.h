/**
 * The tile instructions in C, with the names of tile_hardware.h. The sums of TDPBF16PS are those
 * of Intel's Software Developer's Manual: per output, the even and the odd columns of the tile
 * are two chains of fused multiply-adds that begin at 0; their sum is added to the output. All
 * operations round to nearest even; denormals count as zero, in operands and results.
 */
#ifndef KERNELS_CPU_AMX_TILE_EMULATED_H
#define KERNELS_CPU_AMX_TILE_EMULATED_H

#include <float.h>
#include <math.h>

#include "kernels/numerics/bf16.h"

enum { N_TILES = 8, LINE_BYTES = 64, LINE_FLOATS = 16 };

struct tiles {
    unsigned char tile[N_TILES][KERN_BF16_TILE_LINES][LINE_BYTES];
};

static inline void tiles_open(struct tiles *tiles)
{
    memset(tiles, 0, sizeof *tiles);
}

static inline void tiles_close(struct tiles *tiles)
{
    (void)tiles;
}

static inline void tile_load(struct tiles *tiles, int t, const void *from, size_t stride)
{
    for (size_t i = 0; i < KERN_BF16_TILE_LINES; i++)
        memcpy(tiles->tile[t][i], (const unsigned char *)from + i * stride, LINE_BYTES);
}

static inline void tile_store(const struct tiles *tiles, int t, void *to, size_t stride)
{
    for (size_t i = 0; i < KERN_BF16_TILE_LINES; i++)
        memcpy((unsigned char *)to + i * stride, tiles->tile[t][i], LINE_BYTES);
}

/** x, or the zero of its sign for a denormal. */
static inline float flushed(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0.0f, x) : x;
}

/** Number i of a line. */
static inline float bf16_at(const unsigned char *line, size_t i)
{
    uint16_t b;
    memcpy(&b, line + i * sizeof b, sizeof b);
    return flushed(kern_bf16_to_float(b));
}

/** What is added to output (m, n) by tiles a and b. */
static inline float tile_dot(unsigned char (*a)[LINE_BYTES], unsigned char (*b)[LINE_BYTES],
                             size_t m, size_t n)
{
    float sum[2] = {0.0f, 0.0f};
    for (size_t pair = 0; pair < KERN_BF16_TILE_LINES; pair++) {
        for (size_t i = 0; i < 2; i++)
            sum[i] =
                flushed(fmaf(bf16_at(a[m], 2 * pair + i), bf16_at(b[pair], 2 * n + i), sum[i]));
    }
    return flushed(sum[0] + sum[1]);
}

static inline void tile_multiply_add(struct tiles *tiles, int c, int a, int b)
{
    for (size_t m = 0; m < KERN_BF16_TILE_LINES; m++) {
        float out[LINE_FLOATS];
        memcpy(out, tiles->tile[c][m], sizeof out);
        for (size_t n = 0; n < LINE_FLOATS; n++)
            out[n] = flushed(flushed(out[n]) + tile_dot(tiles->tile[a], tiles->tile[b], m, n));
        memcpy(tiles->tile[c][m], out, sizeof out);
    }
}

#define TILE_ZERO(tiles, t)               memset((tiles)->tile[t], 0, sizeof(tiles)->tile[t])
#define TILE_LOAD(tiles, t, from, stride) tile_load(tiles, t, from, stride)
#define TILE_STORE(tiles, t, to, stride)  tile_store(tiles, t, to, stride)
#define TILE_MULTIPLY_ADD(tiles, c, a, b) tile_multiply_add(tiles, c, a, b)

#endif

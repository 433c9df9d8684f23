/**
 * The tile instructions in C, with the names of tile_hardware.h. The sums of TDPBF16PS are those
 * of Intel's Software Developer's Manual: per output, the even and the odd columns of the tile
 * are two chains of fused multiply-adds that begin at 0; their sum is added to the output. All
 * operations round to nearest even; denormals count as zero, in operands and results.
 */
#ifndef KERNELS_CPU_AMX_TILE_EMULATED_H
#define KERNELS_CPU_AMX_TILE_EMULATED_H

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

/** x, or the zero of its sign for a denormal; without a branch, which nobody could foresee. */
static inline float flushed(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= (bits & 0x7f800000) == 0 ? 0x80000000 : 0xffffffff;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/** The numbers of a tile of bfloat16: of each line the even and the odd ones. */
struct tile_numbers {
    float of_line[KERN_BF16_TILE_LINES][2][LINE_FLOATS];
};

#define TILE_INLINE static inline __attribute__((always_inline))

TILE_INLINE void tile_read(const struct tiles *tiles, int t, struct tile_numbers *out)
{
    for (size_t line = 0; line < KERN_BF16_TILE_LINES; line++) {
        uint16_t numbers[LINE_FLOATS][2];
        memcpy(numbers, tiles->tile[t][line], sizeof numbers);
        for (size_t i = 0; i < 2; i++)
            for (size_t n = 0; n < LINE_FLOATS; n++)
                out->of_line[line][i][n] = flushed(kern_bf16_to_float(numbers[n][i]));
    }
}

/** All outputs of a line go forward together: each has its own chains. */
TILE_INLINE void multiply_tiles(struct tiles *tiles, int c, int a, int b)
{
    struct tile_numbers left, right;
    tile_read(tiles, a, &left);
    tile_read(tiles, b, &right);
    for (size_t m = 0; m < KERN_BF16_TILE_LINES; m++) {
        float out[LINE_FLOATS], sums[2][LINE_FLOATS] = {{0.0f}};
        memcpy(out, tiles->tile[c][m], sizeof out);
        for (size_t k = 0; k < KERN_BF16_TILE_LINES; k++)
            for (size_t i = 0; i < 2; i++)
                for (size_t n = 0; n < LINE_FLOATS; n++)
                    sums[i][n] =
                        flushed(fmaf(left.of_line[m][i][k], right.of_line[k][i][n], sums[i][n]));
        for (size_t n = 0; n < LINE_FLOATS; n++)
            out[n] = flushed(flushed(out[n]) + flushed(sums[0][n] + sums[1][n]));
        memcpy(tiles->tile[c][m], out, sizeof out);
    }
}

#ifdef __x86_64__
/** The product with an instruction for fmaf(), where there is one, makes tests take a fraction of
 * the time. */
__attribute__((target("avx2,fma"))) static void multiply_tiles_fma(struct tiles *tiles, int c,
                                                                   int a, int b)
{
    multiply_tiles(tiles, c, a, b);
}

static inline void tile_multiply_add(struct tiles *tiles, int c, int a, int b)
{
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        multiply_tiles_fma(tiles, c, a, b);
    else
        multiply_tiles(tiles, c, a, b);
}
#else
static inline void tile_multiply_add(struct tiles *tiles, int c, int a, int b)
{
    multiply_tiles(tiles, c, a, b);
}
#endif

#define TILE_ZERO(tiles, t)               memset((tiles)->tile[t], 0, sizeof(tiles)->tile[t])
#define TILE_LOAD(tiles, t, from, stride) tile_load(tiles, t, from, stride)
#define TILE_STORE(tiles, t, to, stride)  tile_store(tiles, t, to, stride)
#define TILE_MULTIPLY_ADD(tiles, c, a, b) tile_multiply_add(tiles, c, a, b)

#endif

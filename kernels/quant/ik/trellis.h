/**
 * The KT formats of ik_llama.cpp: no codebook, but a generator. From a start of 32 bits it makes a
 * run of numbers, -126..126, 8 or 4 of them; a start's bits are what is stored.
 */
#ifndef KERNELS_QUANT_IK_TRELLIS_H
#define KERNELS_QUANT_IK_TRELLIS_H

#include "kernels/quant/ik/codes.h"

/** x = x * this mod 2^32 before each number; its k-th power is what gives number k at once. */
#define KERN_TRELLIS_FACTOR 0xcbac1fedu
enum { KERN_TRELLIS_START = 4096 /* added to every index */ };

/** The number of x: its bytes' low six bits, added up. */
KERN_INLINE int kern_trellis_number(uint32_t x)
{
    uint32_t bytes = x & 0x3f3f3f3fu;
    return (int)(bytes * 0x01010101u >> 24) - 126;
}

/** y[j] = scale * number j of the run that begins after x. */
KERN_INLINE void kern_trellis_run(uint32_t x, float scale, unsigned n, float *y)
{
    for (unsigned j = 0; j < n; j++) {
        x *= KERN_TRELLIS_FACTOR;
        y[j] = scale * (float)kern_trellis_number(x);
    }
}

/** Nibble of group g: of g < 4 the low one of byte g, of g + 4 the high one. */
KERN_INLINE unsigned kern_trellis_nibble(const uint8_t scales[4], unsigned g)
{
    return scales[g % 4] >> g / 4 * 4 & 15u;
}

/** IQ1_KT: 256 elements in 56 bytes, 1.75 bits per weight; 13 bits for eight elements. */
struct kern_block_iq1_kt {
    uint8_t d[4];   /* float32, the row's */
    uint8_t sh[8];  /* of a group: its scale as a code of 4 bits; the 13th bits of its runs */
    uint8_t ql[32]; /* the lowest eight bits of a run's index */
    uint8_t qh[16]; /* the next four: of run k < 16 the low nibble of byte k */
};

KERN_INLINE float kern_iq1_kt_scale(const struct kern_block_iq1_kt *block, unsigned run)
{
    return kern_load_float(block->d) * (float)kern_iq4_values[block->sh[run] & 15];
}

KERN_INLINE void kern_iq1_kt_group(const struct kern_block_iq1_kt *block, unsigned group, float *y)
{
    for (unsigned r = 0; r < 4; r++) {
        unsigned k = 4 * group + r;
        uint32_t index = block->ql[k] | (block->qh[k % 16] >> k / 16 * 4 & 15u) << 8 |
                         (block->sh[group] >> (4 + r) & 1u) << 12;
        kern_trellis_run(index + KERN_TRELLIS_START, kern_iq1_kt_scale(block, group), 8, y + 8 * r);
    }
}

/** Overwrite the scales: the block then decodes to its integers. */
KERN_INLINE void kern_iq1_kt_neutralise(struct kern_block_iq1_kt *block)
{
    for (int group = 0; group < 8; group++)
        block->sh[group] = (uint8_t)((block->sh[group] & 0xf0) | 8); /* the code of 1 */
    kern_store_float(block->d, 1.0f);
}

KERN_FORMAT_SCALES(iq1_kt, 256, 32)
KERN_FORMAT_ROW(iq1_kt, 256)

/** What the matrix kernels of ik_llama.cpp multiply the scales of two formats by. */
#define KERN_IQ2_KT_FACTOR 1.05f
#define KERN_IQ3_KT_FACTOR 1.01f

/** IQ2_KT: 256 elements in 68 bytes, 2.125 bits per weight; 16 bits for eight elements. */
struct kern_block_iq2_kt {
    uint8_t d[4]; /* float32, the row's */
    uint8_t scales[4];
    uint8_t ql[64]; /* 32 numbers of 16 bits */
};

KERN_INLINE float kern_iq2_kt_scale(const struct kern_block_iq2_kt *block, unsigned run)
{
    return kern_load_float(block->d) * KERN_IQ2_KT_FACTOR *
           (float)kern_iq4_values[kern_trellis_nibble(block->scales, run)];
}

KERN_INLINE void kern_iq2_kt_group(const struct kern_block_iq2_kt *block, unsigned group, float *y)
{
    for (unsigned k = 4 * group; k < 4 * group + 4; k++, y += 8)
        kern_trellis_run(kern_load_u16(block->ql + 2 * k) + KERN_TRELLIS_START,
                         kern_iq2_kt_scale(block, group), 8, y);
}

KERN_INLINE void kern_iq2_kt_neutralise(struct kern_block_iq2_kt *block)
{
    memset(block->scales, 0x88, sizeof block->scales); /* the code of 1 */
    kern_store_float(block->d, 1.0f / KERN_IQ2_KT_FACTOR);
}

KERN_FORMAT_SCALES(iq2_kt, 256, 32)
KERN_FORMAT_ROW(iq2_kt, 256)

/** IQ3_KT: 256 elements in 100 bytes, 3.125 bits per weight; magnitudes as IQ2_KT, and signs. */
struct kern_block_iq3_kt {
    uint8_t d[4]; /* float32, the row's */
    uint8_t scales[4];
    uint8_t ql[64];
    uint8_t qh[32]; /* bit g: element j of group g is negative, 0 then -0 */
};

KERN_INLINE float kern_iq3_kt_scale(const struct kern_block_iq3_kt *block, unsigned run)
{
    return kern_load_float(block->d) * KERN_IQ3_KT_FACTOR *
           (float)kern_trellis_nibble(block->scales, run);
}

KERN_INLINE void kern_iq3_kt_group(const struct kern_block_iq3_kt *block, unsigned group, float *y)
{
    float scale = kern_iq3_kt_scale(block, group);
    uint32_t x = 0;
    for (unsigned j = 0; j < 32; j++) {
        if (j % 8 == 0)
            x = kern_load_u16(block->ql + 8 * group + j / 8 * 2) + KERN_TRELLIS_START;
        x *= KERN_TRELLIS_FACTOR;
        int number = kern_trellis_number(x);
        float magnitude = scale * (float)(number < 0 ? -number : number);
        y[j] = (block->qh[j] >> group & 1) != 0 ? -magnitude : magnitude;
    }
}

KERN_INLINE void kern_iq3_kt_neutralise(struct kern_block_iq3_kt *block)
{
    memset(block->scales, 0x11, sizeof block->scales);
    kern_store_float(block->d, 1.0f / KERN_IQ3_KT_FACTOR);
}

KERN_FORMAT_SCALES(iq3_kt, 256, 32)
KERN_FORMAT_ROW(iq3_kt, 256)

/** IQ4_KT: 256 elements in 128 bytes, 4 bits per weight; 15 bits for four elements. */
struct kern_block_iq4_kt {
    uint8_t d[4]; /* float32, the row's */
    uint8_t
        s[32]; /* of a group 32 bits: another start, the scale, the uppermost bits of its runs */
    uint8_t ql[64]; /* the lowest eight bits of a run's index */
    uint8_t qh[32]; /* the next four: of run k < 32 the low nibble of byte k */
};

KERN_INLINE float kern_iq4_kt_scale(const struct kern_block_iq4_kt *block, unsigned run)
{
    return kern_load_float(block->d) * (float)((block->s[4 * run] >> 1) - 64);
}

KERN_INLINE void kern_iq4_kt_group(const struct kern_block_iq4_kt *block, unsigned group, float *y)
{
    uint32_t s = kern_load_u32(block->s + 4 * group);
    uint32_t start = KERN_TRELLIS_START + ((s & 1) << 15);
    for (unsigned r = 0; r < 8; r++) {
        unsigned k = 8 * group + r;
        uint32_t index = block->ql[k] | (block->qh[k % 32] >> k / 32 * 4 & 15u) << 8 |
                         (s >> (8 + 3 * r) & 7) << 12;
        kern_trellis_run(index + start, kern_iq4_kt_scale(block, group), 4, y + 4 * r);
    }
}

KERN_INLINE void kern_iq4_kt_neutralise(struct kern_block_iq4_kt *block)
{
    for (int i = 0; i < 32; i += 4)
        block->s[i] = (uint8_t)(130 | (block->s[i] & 1));
    kern_store_float(block->d, 1.0f);
}

KERN_FORMAT_SCALES(iq4_kt, 256, 32)
KERN_FORMAT_ROW(iq4_kt, 256)

#endif

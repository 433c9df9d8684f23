/**
 * How a bundle lays out codes, in words of four columns: the rows' words stand side by side, the
 * columns of a word in its four bytes. Word p of a group is columns 4p .. 4p + 3.
 */
#ifndef KERNELS_QUANT_IK_WEAVE_H
#define KERNELS_QUANT_IK_WEAVE_H

#include "kernels/quant/bytes.h"

enum { KERN_WORDS = 8 /* of a group */ };
#define KERN_EACH 0x01010101u /* times a number: it in each byte */

KERN_INLINE void kern_store_u32(uint8_t *p, uint32_t value)
{
    kern_store_u16(p, value);
    kern_store_u16(p + 2, value >> 16);
}

/** The row's word among those of `rows` rows, the i-th from `at` on. */
KERN_INLINE uint32_t kern_word(const uint8_t *at, unsigned rows, unsigned i, unsigned row)
{
    return kern_load_u32(at + 4 * (rows * i + row));
}

/**
 * Codes of four bits in bundles of four rows. Word p of a group is in place `place`, low nibbles or
 * `high` ones.
 */
struct kern_nibble_place {
    unsigned place, high;
};
KERN_INLINE struct kern_nibble_place kern_nibble_place(unsigned p)
{
    struct kern_nibble_place at = {p / 4 + p % 2 * 2, p % 4 / 2};
    return at;
}

/** A group's codes of four bits, a byte each. */
KERN_INLINE void kern_unweave_nibbles(const uint8_t *qs, unsigned row, uint32_t words[KERN_WORDS])
{
    for (unsigned p = 0; p < KERN_WORDS; p++) {
        struct kern_nibble_place at = kern_nibble_place(p);
        words[p] = kern_word(qs, 4, at.place, row) >> 4 * at.high & 15 * KERN_EACH;
    }
}

/** As blocks store them: word p in the low nibbles, p + 4 in the high ones of 16 bytes. */
KERN_INLINE void kern_pack_halves(const uint32_t words[KERN_WORDS], uint8_t *qs)
{
    for (unsigned p = 0; p < 4; p++)
        kern_store_u32(qs + 4 * p, words[p] | words[p + 4] << 4);
}

/** Add a group's bits to bytes that hold those of several: 32 bytes, shifted by `shift`. */
KERN_INLINE void kern_pack_bits(const uint32_t words[KERN_WORDS], unsigned shift, uint8_t *bytes)
{
    for (unsigned p = 0; p < KERN_WORDS; p++)
        kern_store_u32(bytes + 4 * p, kern_load_u32(bytes + 4 * p) | words[p] << shift);
}

/** Scale n of those of a bundle: four bits in `low`, two in `high`. */
KERN_INLINE unsigned kern_unweave_scale6(const uint8_t *low, const uint8_t *high, unsigned n)
{
    return (low[n % 32] >> n / 32 * 4 & 15u) | (high[n % 16] >> n / 16 * 2 & 3u) << 4;
}

/** Bit b of a byte becomes bit 2b. */
KERN_INLINE uint32_t kern_spread_bits(uint32_t byte)
{
    byte = (byte | byte << 4) & 0x0f0f;
    byte = (byte | byte << 2) & 0x3333;
    return (byte | byte << 1) & 0x5555;
}

#endif

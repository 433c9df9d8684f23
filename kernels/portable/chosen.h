/**
 * What choosing keys is made of, for the host and for a device: an order of scores that has no
 * equals, and rows of bits that say which keys are chosen. See struct kern_choose.
 */
#ifndef KERNELS_PORTABLE_CHOSEN_H
#define KERNELS_PORTABLE_CHOSEN_H

#include <stddef.h>

#include "kernels/portable/portable.h"

/** What comes before every score. */
#define KERN_ORDER_FIRST UINT32_MAX

/** An integer that grows with x: -0 is as +0, a NaN below everything. */
KERN_INLINE uint32_t kern_order_of(float x)
{
    uint32_t bits = kern_bits_of(x + 0.0f);
    if (x != x)
        return 0;
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/** The order with a place, of which the lower one is larger: no two of a row are equal. */
KERN_INLINE uint64_t kern_order_at(uint32_t order, size_t place)
{
    return (uint64_t)order << 32 | (uint32_t) ~(uint32_t)place;
}

/** Bit i: whether key + i is chosen, for keys up to the next multiple of 64. */
KERN_INLINE uint64_t kern_chosen_keys(const uint64_t *row, size_t key)
{
    return row[key / 64] >> key % 64;
}

#endif

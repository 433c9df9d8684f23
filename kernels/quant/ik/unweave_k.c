/** Rows out of bundles of four: K types, llama.cpp's and ik_llama.cpp's. */
#include "kernels/quant/ik/formats.h"
#include "kernels/quant/ik/unweave.h"
#include "kernels/quant/ik/weave.h"
#include "kernels/quant/q2_k.h"
#include "kernels/quant/q3_k.h"
#include "kernels/quant/q4_k.h"
#include "kernels/quant/q5_k.h"
#include "kernels/quant/q6_k.h"

/** 64 bytes of codes of two bits, as Q2_K has them. */
static void unweave_twos(const uint8_t *qs, unsigned row, uint8_t *out)
{
    for (unsigned half = 0; half < 2; half++)
        for (unsigned a = 0; a < 2; a++) {
            uint32_t words[4] = {0};
            for (unsigned b = 0; b < 4; b++) {
                uint32_t word = kern_word(qs + 128 * half + 32 * b, 4, a, row);
                for (unsigned m = 0; m < 4; m++)
                    words[m] |= (word >> 2 * m & 3 * KERN_EACH) << 2 * b;
            }
            for (unsigned m = 0; m < 4; m++)
                kern_store_u32(out + 32 * half + 16 * a + 4 * m, words[m]);
        }
}

/** 32 bytes with a third bit for each of the eight groups. */
static void unweave_thirds(const uint8_t *qh, unsigned row, uint8_t *out)
{
    memset(out, 0, 32);
    for (unsigned b = 0; b < 8; b++) {
        uint32_t words[KERN_WORDS], word = kern_word(qh, 4, b, row);
        for (unsigned p = 0; p < KERN_WORDS; p++)
            words[p] = word >> p & KERN_EACH;
        kern_pack_bits(words, b, out);
    }
}

/** 128 bytes of codes of four bits: low nibbles an even group, high ones the odd one after it. */
static void unweave_pairs(const uint8_t *qs, unsigned row, uint8_t *out)
{
    for (unsigned b = 0; b < 8; b += 2) {
        uint32_t even[KERN_WORDS], odd[KERN_WORDS];
        kern_unweave_nibbles(qs + 64 * b, row, even);
        kern_unweave_nibbles(qs + 64 * b + 64, row, odd);
        for (unsigned p = 0; p < KERN_WORDS; p++)
            kern_store_u32(out + 16 * b + 4 * p, even[p] | odd[p] << 4);
    }
}

/** Low nibbles half a group, high ones the other half. */
static void unweave_halves(const uint8_t *qs, unsigned row, uint8_t *out)
{
    for (unsigned b = 0; b < 8; b++) {
        uint32_t words[KERN_WORDS];
        kern_unweave_nibbles(qs + 64 * b, row, words);
        kern_pack_halves(words, out + 16 * b);
    }
}

/** 32 bytes with a fifth bit for each group. of_place: the bit in which it is stored, by place. */
static void unweave_fifths(const uint8_t *qh, unsigned row, const uint8_t of_place[4], uint8_t *out)
{
    memset(out, 0, 32);
    for (unsigned b = 0; b < 8; b++) {
        uint32_t words[KERN_WORDS], word = kern_word(qh, 4, b, row);
        for (unsigned p = 0; p < KERN_WORDS; p++) {
            struct kern_nibble_place at = kern_nibble_place(p);
            words[p] = word >> (of_place[at.place] + at.high) & KERN_EACH;
        }
        kern_pack_bits(words, b, out);
    }
}

/** The number of half a of group b, i = 2 * b + a, among those of four rows. */
static unsigned among(unsigned i, unsigned row)
{
    return 4 * i + row;
}

/** Sixteen scales of four bits: the row's bytes have i in the low nibble and i + 8 in the high one.
 */
static void unweave_scales4(const uint8_t *scales, unsigned row, uint8_t out[8])
{
    for (unsigned i = 0; i < 8; i += 2) {
        unsigned even = scales[among(i, row)], odd = scales[among(i + 1, row)];
        out[i / 2] = (uint8_t)((even & 15) | odd << 4);
        out[i / 2 + 4] = (uint8_t)(even >> 4 | (odd & 0xf0));
    }
}

static void unweave_scales6(const uint8_t *low, const uint8_t *high, unsigned row, uint8_t out_l[8],
                            uint8_t out_h[4])
{
    unweave_scales4(low, row, out_l);
    for (unsigned q = 0; q < 4; q++) { /* a byte has two bits of scales i, i + 4, i + 8, i + 12 */
        unsigned bits = 0;
        for (unsigned i = 0; i < 4; i++)
            bits |= (high[among(i, row)] >> 2 * q & 3u) << 2 * i;
        out_h[q] = (uint8_t)bits;
    }
}

/** A bit per run, of two bytes per row: bit b of byte a * 4 + row. */
static void unweave_run_bits(const uint8_t *bytes, unsigned row, uint8_t out[2])
{
    kern_store_u16(out, kern_spread_bits(bytes[row]) | kern_spread_bits(bytes[4 + row]) << 1);
}

void kern_unweave_q2_k_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    struct kern_block_q2_k *block = (void *)out;
    memcpy(block->d, woven + 2 * row, 2);
    memcpy(block->dmin, woven + 8 + 2 * row, 2);
    for (unsigned i = 0; i < 16; i++)
        block->scales[i] = woven[16 + among(i, row)];
    unweave_twos(woven + 80, row, block->qs);
}

void kern_unweave_q3_k_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    struct kern_block_q3_k *block = (void *)out;
    memcpy(block->d, woven + 2 * row, 2);
    memset(block->scales, 0, sizeof block->scales);
    for (unsigned i = 0; i < 16; i++) {
        unsigned scale = kern_unweave_scale6(woven + 24, woven + 8, among(i, row));
        block->scales[i % 8] |= (uint8_t)((scale & 15) << i / 8 * 4);
        block->scales[8 + i % 4] |= (uint8_t)(scale >> 4 << i / 4 * 2);
    }
    unweave_thirds(woven + 56, row, block->hmask);
    unweave_twos(woven + 184, row, block->qs);
}

/** Scales and minima of six bits, 32 columns each, in the twelve bytes of k_scales.h. */
static void unweave_k_scales(const uint8_t *low, const uint8_t *high, unsigned row, uint8_t *packed)
{
    memset(packed, 0, 12);
    for (unsigned b = 0; b < 8; b++) {
        unsigned n = 4 * b + row, upper = high[n % 16] >> n / 16 * 4 & 15u;
        unsigned scale = (low[n] & 15u) | (upper & 3) << 4, min = low[n] >> 4 | upper >> 2 << 4;
        if (b < 4) {
            packed[b] = (uint8_t)scale;
            packed[b + 4] = (uint8_t)min;
        } else {
            packed[b + 4] = (uint8_t)((scale & 15) | (min & 15) << 4);
            packed[b - 4] |= (uint8_t)(scale >> 4 << 6);
            packed[b] |= (uint8_t)(min >> 4 << 6);
        }
    }
}

void kern_unweave_q4_k_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    struct kern_block_q4_k *block = (void *)out;
    memcpy(block->d, woven + 2 * row, 2);
    memcpy(block->dmin, woven + 8 + 2 * row, 2);
    unweave_k_scales(woven + 32, woven + 16, row, block->scales);
    unweave_pairs(woven + 64, row, block->qs);
}

void kern_unweave_q5_k_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    struct kern_block_q5_k *block = (void *)out;
    memcpy(block->d, woven + 2 * row, 2);
    memcpy(block->dmin, woven + 8 + 2 * row, 2);
    unweave_k_scales(woven + 32, woven + 16, row, block->scales);
    unweave_fifths(woven + 64, row, (const uint8_t[]){0, 4, 2, 6}, block->qh);
    unweave_pairs(woven + 192, row, block->qs);
}

void kern_unweave_q6_k_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    struct kern_block_q6_k *block = (void *)out;
    memcpy(block->d, woven + 2 * row, 2);
    for (unsigned i = 0; i < 16; i++)
        block->scales[i] = woven[8 + among(i, row)];
    memset(block->ql, 0, sizeof block->ql);
    memset(block->qh, 0, sizeof block->qh);
    for (unsigned b = 0; b < 8; b++) {
        uint32_t words[KERN_WORDS];
        kern_unweave_nibbles(woven + 328 + 64 * b, row, words);
        kern_pack_bits(words, b % 4 / 2 * 4, block->ql + 64 * (b / 4) + 32 * (b % 2));
        for (unsigned p = 0; p < KERN_WORDS; p++) {
            struct kern_nibble_place at = kern_nibble_place(p);
            uint32_t word = kern_word(woven + 72 + 32 * b, 4, at.place % 2, row);
            words[p] = word >> (at.place / 2 * 4 + 2 * at.high) & 3 * KERN_EACH;
        }
        kern_pack_bits(words, 2 * (b % 4), block->qh + 32 * (b / 4));
    }
}

void kern_unweave_iq2_k_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    struct kern_block_iq2_k *block = (void *)out;
    memcpy(block->d, woven + 2 * row, 2);
    unweave_run_bits(woven + 8, row, block->extra);
    unweave_scales4(woven + 16, row, block->scales);
    unweave_twos(woven + 48, row, block->qs);
}

void kern_unweave_iq3_k_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    struct kern_block_iq3_k *block = (void *)out;
    memcpy(block->d, woven + 2 * row, 2);
    unweave_run_bits(woven + 8, row, block->extra);
    unweave_run_bits(woven + 16, row, block->scales_h);
    unweave_scales4(woven + 24, row, block->scales_l);
    unweave_twos(woven + 56, row, block->qs);
    unweave_thirds(woven + 312, row, block->qh);
}

void kern_unweave_iq4_k_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    struct kern_block_iq4_k *block = (void *)out;
    memcpy(block->d, woven + 2 * row, 2);
    unweave_run_bits(woven + 8, row, block->extra);
    unweave_scales6(woven + 32, woven + 16, row, block->scales_l, block->scales_h);
    unweave_halves(woven + 64, row, block->qs);
}

static const uint8_t fifths[4] = {0, 2, 4, 6};

void kern_unweave_iq5_k_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    struct kern_block_iq5_k *block = (void *)out;
    memcpy(block->d, woven + 2 * row, 2);
    unweave_run_bits(woven + 8, row, block->extra);
    unweave_scales6(woven + 32, woven + 16, row, block->scales_l, block->scales_h);
    unweave_pairs(woven + 64, row, block->qs);
    unweave_fifths(woven + 576, row, fifths, block->qh);
}

void kern_unweave_iq4_ks_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    for (unsigned b = 0; b < 8; b++)
        out[b] = woven[4 * b + row];
    unweave_halves(woven + 32, row, out + 8);
}

void kern_unweave_iq5_ks_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    for (unsigned b = 0; b < 8; b++)
        out[b] = woven[4 * b + row];
    unweave_pairs(woven + 32, row, out + 8);
    unweave_fifths(woven + 544, row, fifths, out + 136);
}

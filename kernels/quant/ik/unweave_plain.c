/** Rows out of bundles: blocks of 32 and 64 columns, plain numbers, IQ4_XS_R8. */
#include "kernels/quant/ik/formats.h"
#include "kernels/quant/ik/unweave.h"
#include "kernels/quant/ik/weave.h"
#include "kernels/quant/iq4_nl.h"
#include "kernels/quant/iq4_xs.h"

/** n words of a row, xor `flip`. */
static void copy_words(const uint8_t *from, unsigned rows, unsigned row, unsigned n, uint32_t flip,
                       uint8_t *to)
{
    for (unsigned i = 0; i < n; i++)
        kern_store_u32(to + 4 * i, kern_word(from, rows, i, row) ^ flip);
}

void kern_unweave_bf16_r16(const uint8_t *woven, unsigned row, uint8_t *block)
{
    memcpy(block, woven + 4 * row, 4);
}

/** Bundles of the scales of all rows, n bytes each, and then their words by turns. */
#define UNWEAVE_WORDS(name, n, rows, n_words, flip)                                                \
    void kern_unweave_##name(const uint8_t *woven, unsigned row, uint8_t *out)                     \
    {                                                                                              \
        memcpy(out, woven + (n)*row, n);                                                           \
        copy_words(woven + (n) * (rows), rows, row, n_words, flip, out + (n));                     \
    }
UNWEAVE_WORDS(q4_0_r8, 2, 8, 4, 0)
UNWEAVE_WORDS(mxfp4_r8, 1, 8, 4, 0)
UNWEAVE_WORDS(q8_0_r8, 2, 8, 8, 0)
UNWEAVE_WORDS(q8_k_r8, 2, 8, 64, 0)
UNWEAVE_WORDS(q8_k_r16, 2, 16, 64, 128 * KERN_EACH) /* q - 128 */
UNWEAVE_WORDS(q8_kv_r8, 0, 8, 8, 0)

void kern_unweave_iq4_nl_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    struct kern_block_iq4_nl *block = (void *)out;
    uint32_t words[KERN_WORDS];
    memcpy(block->d, woven + 2 * row, 2);
    kern_unweave_nibbles(woven + 8, row, words);
    kern_pack_halves(words, block->qs);
}

void kern_unweave_q5_0_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    struct kern_block_q5_0 *block = (void *)out;
    uint32_t words[KERN_WORDS], fifth = kern_word(woven + 8, 4, 0, row), bits = 0;
    memcpy(block->d, woven + 2 * row, 2);
    kern_unweave_nibbles(woven + 24, row, words);
    kern_pack_halves(words, block->qs);
    for (unsigned p = 0; p < KERN_WORDS; p++) {
        struct kern_nibble_place at = kern_nibble_place(p);
        uint32_t four = fifth >> (at.place + 4 * at.high) & KERN_EACH;
        bits |= (four * 0x01020408u >> 24 & 15) << 4 * p;
    }
    kern_store_u32(block->qh, bits);
}

void kern_unweave_q6_0_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    static const unsigned to[KERN_WORDS] = {0, 0, 4, 4, 2, 2, 6, 6};
    struct kern_block_q6_0 *block = (void *)out;
    uint32_t words[KERN_WORDS], high[2] = {0, 0};
    memcpy(block->d, woven + 2 * row, 2);
    kern_unweave_nibbles(woven + 40, row, words);
    kern_pack_halves(words, block->qs);
    for (unsigned p = 0; p < KERN_WORDS; p++) {
        struct kern_nibble_place at = kern_nibble_place(p);
        uint32_t word = kern_word(woven + 8, 4, at.place % 2, row);
        high[p % 2] |= (word >> (at.place / 2 * 2 + 4 * at.high) & 3 * KERN_EACH) << to[p];
    }
    kern_store_u32(block->qh, high[0]);
    kern_store_u32(block->qh + 4, high[1]);
}

void kern_unweave_iq2_bn_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    for (unsigned t = 0; t < 4; t++) {
        uint32_t word = 0;
        for (unsigned m = 0; m < 4; m++)
            word |= (kern_word(woven, 4, m, row) >> 2 * t & 3 * KERN_EACH) << 2 * m;
        kern_store_u32(out + 4 * t, word);
    }
}

void kern_unweave_iq1_s_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    for (unsigned l = 0; l < 4; l++)
        out[l] = woven[4 * l + row];
    memcpy(out + 4, woven + 16 + 2 * row, 2);
}

void kern_unweave_iq1_m_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    for (unsigned l = 0; l < 7; l++) /* indices, their upper bits, the scales */
        out[l] = woven[4 * l + row];
}

void kern_unweave_iq4_xs_r8(const uint8_t *woven, unsigned row, uint8_t *out)
{
    struct kern_block_iq4_xs *block = (void *)out;
    uint32_t words[KERN_WORDS], high = 0;
    memcpy(block->d, woven + 2 * row, 2);
    memset(block->scales_l, 0, sizeof block->scales_l);
    for (unsigned b = 0; b < 8; b++) {
        unsigned scale = kern_unweave_scale6(woven + 32, woven + 16, 8 * b + row);
        block->scales_l[b / 2] |= (uint8_t)((scale & 15) << b % 2 * 4);
        high |= scale >> 4 << 2 * b;
        for (unsigned p = 0; p < KERN_WORDS; p++)
            words[p] = kern_word(woven + 64 + 128 * b, 8, p / 2, row) >> p % 2 * 4 & 15 * KERN_EACH;
        kern_pack_halves(words, block->qs + 16 * b);
    }
    kern_store_u16(block->scales_h, high);
}

/** Rows out of bundles of four: the types with codebooks. */
#include "kernels/quant/ik/unweave.h"
#include "kernels/quant/ik/weave.h"
#include "kernels/quant/iq2_s.h"
#include "kernels/quant/iq2_xs.h"
#include "kernels/quant/iq2_xxs.h"
#include "kernels/quant/iq3_s.h"
#include "kernels/quant/iq3_xxs.h"

/**
 * A group's signs and scale, as IQ2_XXS and IQ3_XXS have them, from the bundle's: the lowest bits
 * of the four bytes are the scale, the seven above, each xor the next higher, the signs of an
 * octet.
 */
static uint32_t signs_and_scale(uint32_t woven)
{
    uint32_t word = 0;
    for (unsigned j = 0; j < 4; j++) {
        uint32_t byte = woven >> 8 * j & 255, high = byte & 254;
        word |= ((high ^ high >> 1) & 127) << 7 * j | (byte & 1) << (28 + j);
    }
    return word;
}

void kern_unweave_iq2_xxs_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    memcpy(out, woven + 2 * row, 2);
    for (unsigned b = 0; b < 8; b++) {
        memcpy(out + 2 + 8 * b, woven + 136 + 16 * b + 4 * row, 4);
        kern_store_u32(out + 6 + 8 * b, signs_and_scale(kern_word(woven + 8, 4, b, row)));
    }
}

void kern_unweave_iq3_xxs_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    memcpy(out, woven + 2 * row, 2);
    for (unsigned b = 0; b < 8; b++) {
        memcpy(out + 2 + 8 * b, woven + 136 + 32 * b + 8 * row, 8);
        kern_store_u32(out + 66 + 4 * b, signs_and_scale(kern_word(woven + 8, 4, b, row)));
    }
}

void kern_unweave_iq2_xs_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    struct kern_block_iq2_xs *block = (void *)out;
    memcpy(block->d, woven + 2 * row, 2);
    for (unsigned i = 0; i < 32; i++) {
        uint32_t code = kern_load_u16(woven + 8 + 2 * (i / 4 * 16 + 4 * row + i % 4));
        uint32_t signs = code >> 9;
        kern_store_u16(block->qs + 2 * i, (code & 511) | ((signs ^ signs << 1) & 127) << 9);
    }
    for (unsigned b = 0; b < 8; b++)
        block->scales[b] = woven[264 + 4 * b + row];
}

void kern_unweave_iq2_s_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    struct kern_block_iq2_s *block = (void *)out;
    memcpy(block->d, woven + 2 * row, 2);
    for (unsigned b = 0; b < 8; b++) {
        memcpy(block->qs + 4 * b, woven + 8 + 16 * b + 4 * row, 4);
        memcpy(block->signs + 4 * b, woven + 168 + 16 * b + 4 * row, 4);
        block->qh[b] = woven[136 + 4 * b + row];
        block->scales[b] = woven[296 + 4 * b + row];
    }
}

void kern_unweave_iq3_s_r4(const uint8_t *woven, unsigned row, uint8_t *out)
{
    struct kern_block_iq3_s *block = (void *)out;
    memcpy(block->d, woven + 2 * row, 2);
    memset(block->scales, 0, sizeof block->scales);
    for (unsigned b = 0; b < 8; b++) {
        unsigned n = 4 * b + row;
        block->scales[b / 2] |= (uint8_t)((woven[424 + n % 16] >> n / 16 * 4 & 15) << b % 2 * 4);
        block->qh[b] = woven[264 + n];
        /* Byte i has the signs of columns i, i + 4, ...: four bits of two words become a byte. */
        uint32_t word = kern_word(woven + 296, 4, b, row);
        for (unsigned p = 0; p < 8; p++) {
            block->qs[8 * b + p] = woven[8 + 32 * b + 8 * (p % 4) + 4 * (p / 4) + row];
            uint32_t four = (word >> p & KERN_EACH) * 0x01020408u >> 24 & 15;
            uint8_t *signs = &block->signs[4 * b + p / 2];
            *signs = (uint8_t)(p % 2 == 0 ? four : *signs | four << 4);
        }
    }
}

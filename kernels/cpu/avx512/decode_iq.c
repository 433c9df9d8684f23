/**
 * IQ1 and IQ2 (IQ3 gains nothing here and stays with AVX2). An entry's codes are looked up among
 * the products of the scale with the few values that entries are made of.
 *
 * The loops over a block are not inlined, for the reason that scales.h gives; inlined, they were
 * measured to be 1.4 times slower.
 */
#include "kernels/cpu/avx2/unpack_iq.h"
#include "kernels/cpu/avx512/decode.h"
#include "kernels/cpu/avx512/expand.h"

/** The sixteen codes of 2 bits of two entries, in the low bits of the lanes. */
static inline __m512i entry_codes(uint16_t first, uint16_t second)
{
    const __m512i shift =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    uint32_t both = first | (uint32_t)second << 16;
    return _mm512_srlv_epi32(_mm512_set1_epi32((int)both), shift);
}

/** value + delta by code, in each quarter of the register; delta is 1/8 or -1/8. */
static inline __m512 iq1_values(float delta)
{
    __m128 values = _mm_add_ps(_mm_setr_ps(-1, 0, 1, 2), _mm_set1_ps(delta));
    return _mm512_broadcast_f32x4(values);
}

static __attribute__((noinline)) void store_iq1_block(float *y, const struct kern_iq_block *b,
                                                      const uint16_t *table)
{
    const __m512 up = iq1_values(0.125f), down = iq1_values(-0.125f);
    const __m512 values[4] = {up, _mm512_mask_blend_ps(0x00ff, up, down),
                              _mm512_mask_blend_ps(0xff00, up, down), down};
    for (int i = 0; i < 16; i++, y += 16) {
        __m512 products = _mm512_mul_ps(_mm512_set1_ps(b->scales[i]), values[b->deltas[i]]);
        __m512i codes = entry_codes(table[b->indices[2 * i]], table[b->indices[2 * i + 1]]);
        _mm512_storeu_ps(y, _mm512_permutevar_ps(products, codes));
    }
}

static __attribute__((noinline)) void store_iq2_block(float *y, const struct kern_iq_block *b,
                                                      const uint16_t *codes)
{
    const __m512 values = _mm512_broadcast_f32x4(_mm_setr_ps(8, 25, 43, 0));
    for (int i = 0; i < 16; i++, y += 16) {
        __m512 products = _mm512_mul_ps(_mm512_set1_ps(b->scales[i]), values);
        __m512i lanes = entry_codes(codes[b->indices[2 * i]], codes[b->indices[2 * i + 1]]);
        __m512 magnitudes = _mm512_permutevar_ps(products, lanes);
        _mm512_storeu_ps(y, flip_signs16(magnitudes, b->signs[i]));
    }
}

KERN_IQ_DECODER(avx512, iq1_s, store_iq1_block, kern_iq1_codes)
KERN_IQ_DECODER(avx512, iq1_m, store_iq1_block, kern_iq1_codes)
KERN_IQ_DECODER(avx512, iq2_xxs, store_iq2_block, kern_iq2_xxs_codes)
KERN_IQ_DECODER(avx512, iq2_xs, store_iq2_block, kern_iq2_xs_codes)
KERN_IQ_DECODER(avx512, iq2_s, store_iq2_block, kern_iq2_s_codes)

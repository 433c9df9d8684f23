/* IQ1, IQ2 and IQ3 straight to integers. */
#include "kernels/cpu/avx2/unpack_iq.h"
#include "kernels/cpu/avx512/straight.h"

/** 64 integers from number i on, with the sub-scales of two groups. */
STRAIGHT_INLINE void store32x2(void *integers, size_t i, __m512i bytes, unsigned bits,
                               const int sub[2])
{
    store32(integers, i, _mm512_castsi512_si256(bytes), bits, sub[0]);
    store32(integers, i + 32, _mm512_extracti64x4_epi64(bytes, 1), bits, sub[1]);
}

/** 64 integers from number i on, with the sub-scales of four runs. */
STRAIGHT_INLINE void store16x4(void *integers, size_t i, __m512i bytes, unsigned bits,
                               const int sub[4])
{
    store16x2(integers, i, _mm512_castsi512_si256(bytes), bits, sub[0], sub[1]);
    store16x2(integers, i + 32, _mm512_extracti64x4_epi64(bytes, 1), bits, sub[2], sub[3]);
}

/** The bits of `low` where `mask` is set, else those of `high`. */
static inline __m512i select_bits(__m512i mask, __m512i low, __m512i high)
{
    return _mm512_ternarylogic_epi32(mask, low, high, 0xca);
}

/** Entries of a table of n numbers, 256 to 1024, at 32 indices. */
STRAIGHT_INLINE __m512i look_up_entries(const uint16_t *table, size_t n, __m512i indices)
{
    __m512i found[16];
    for (size_t i = 0; i < n / 64; i++, table += 64)
        found[i] = _mm512_permutex2var_epi16(_mm512_loadu_si512(table), indices,
                                             _mm512_loadu_si512(table + 32));
    for (size_t bit = 64; bit < n; bit *= 2) { /* half of them, by this bit of the indices */
        __mmask32 odd = _mm512_test_epi16_mask(indices, _mm512_set1_epi16((short)bit));
        for (size_t i = 0; i < n / bit / 2; i++)
            found[i] = _mm512_mask_mov_epi16(found[2 * i], odd, found[2 * i + 1]);
    }
    return found[0];
}

/** The codes of three bits of sixteen entries, a byte each. */
static inline __m512i iq3_codes(__m256i entries)
{
    __m512i codes = _mm512_cvtepu16_epi32(entries);
    codes = select_bits(_mm512_set1_epi32(0x3f), codes, _mm512_slli_epi32(codes, 10));
    codes = select_bits(_mm512_set1_epi16(7), codes, _mm512_slli_epi32(codes, 5));
    return _mm512_and_si512(codes, _mm512_set1_epi8(7));
}

/** A block of IQ3: indices of a table of n entries of four codes, eight values, and signs. */
struct iq3 {
    const uint8_t *low;
    uint64_t high; /* the ninth bit of each index */
    const uint16_t *table;
    size_t n;
    const uint8_t *values, *signs;
};

/** Its integers from number i on; sub: of the eight groups. */
STRAIGHT_INLINE void store_iq3(void *integers, size_t i, struct iq3 b, unsigned bits,
                               const int sub[8])
{
    const __m512i values = _mm512_set1_epi64((long long)load_u64(b.values));
    __m512i entries = _mm512_setzero_si512();
    for (size_t j = 0; j < 4; j++) { /* sixteen entries, 64 integers */
        if (j % 2 == 0) {
            __m512i indices = _mm512_cvtepu8_epi16(load32(b.low + 16 * j));
            __mmask32 ninth = (__mmask32)(b.high >> 16 * j);
            indices = _mm512_or_si512(indices, _mm512_maskz_set1_epi16(ninth, 256));
            entries = look_up_entries(b.table, b.n, indices);
        }
        __m256i sixteen =
            j % 2 == 0 ? _mm512_castsi512_si256(entries) : _mm512_extracti64x4_epi64(entries, 1);
        __m512i bytes = _mm512_shuffle_epi8(values, iq3_codes(sixteen));
        bytes =
            _mm512_mask_sub_epi8(bytes, load_u64(b.signs + 8 * j), _mm512_setzero_si512(), bytes);
        store32x2(integers, i + 64 * j, bytes, bits, sub + 2 * j);
    }
}

STRAIGHT_INLINE void iq3_s(const void *blocks, size_t n, void *integers, float *scales, float *mins,
                           unsigned bits)
{
    (void)mins;
    const struct kern_block_iq3_s *block = blocks;
    for (size_t i = 0; i < n; i += 256, block++) {
        int sub[8];
        for (unsigned g = 0; g < 8; g++)
            sub[g] = (int)(1 + 2 * kern_load_nibble(block->scales, g));
        const struct iq3 b = {block->qs, load_u64(block->qh), kern_iq3_s_codes,
                              512,       kern_iq3_s_values,   block->signs};
        store_iq3(integers, i, b, bits, sub);
        if (bits == 8)
            _mm256_storeu_ps(scales, iq3_s_scales(block));
        else
            store_block_scale(scales, kern_iq3_s_block_scale(block));
        scales += bits == 8 ? 8 : 4;
    }
}

STRAIGHT_INLINE void iq3_xxs(const void *blocks, size_t n, void *integers, float *scales,
                             float *mins, unsigned bits)
{
    (void)mins;
    const struct kern_block_iq3_xxs *block = blocks;
    for (size_t i = 0; i < n; i += 256, block++) {
        struct kern_iq_block unpacked;
        unpack_iq3_xxs(&unpacked, block);
        int sub[8];
        for (size_t g = 0; g < 8; g++)
            sub[g] = 1 + 2 * (block->signs_scale[4 * g + 3] >> 4);
        const struct iq3 b = {block->qs,           0,
                              kern_iq3_xxs_codes,  256,
                              kern_iq3_xxs_values, (const uint8_t *)unpacked.signs};
        store_iq3(integers, i, b, bits, sub);
        if (bits == 8)
            _mm256_storeu_ps(scales, _mm256_loadu_ps(unpacked.scales));
        else
            store_block_scale(scales, kern_iq3_xxs_block_scale(block));
        scales += bits == 8 ? 8 : 4;
    }
}

/** The codes of two bits of eight entries, a byte each. */
static inline __m512i codes_of_2_bits(__m128i entries)
{
    __m512i codes = _mm512_cvtepu16_epi64(entries);
    codes = select_bits(_mm512_set1_epi64(0xff), codes, _mm512_slli_epi64(codes, 24));
    codes = select_bits(_mm512_set1_epi32(0x0f), codes, _mm512_slli_epi32(codes, 12));
    codes = select_bits(_mm512_set1_epi16(3), codes, _mm512_slli_epi16(codes, 6));
    return _mm512_and_si512(codes, _mm512_set1_epi8(3));
}

/* An unpacked block is loaded in the halves that it was stored in: a load of more than one store
 * has to wait until these are in the cache. */

/** Its 32 indices. */
static inline __m512i load_indices(const struct kern_iq_block *b)
{
    const uint8_t *p = (const uint8_t *)b->indices;
    return _mm512_inserti64x4(_mm512_castsi256_si512(load32(p)), load32(p + 32), 1);
}

/** Its scales times a factor: all sixteen, of runs, or eight, of groups. */
STRAIGHT_INLINE void store_iq_scales(float *scales, const struct kern_iq_block *b, size_t n,
                                     float factor)
{
    __m256 low = _mm256_mul_ps(_mm256_loadu_ps(b->scales), _mm256_set1_ps(factor));
    __m256 high = _mm256_mul_ps(_mm256_loadu_ps(b->scales + 8), _mm256_set1_ps(factor));
    if (n == 8) { /* each is there twice */
        __m256i even = _mm256_castps_si256(_mm256_shuffle_ps(low, high, 0x88));
        low = _mm256_castsi256_ps(_mm256_permute4x64_epi64(even, 0xd8));
    }
    _mm256_storeu_ps(scales, low);
    if (n == 16)
        _mm256_storeu_ps(scales + 8, high);
}

/** The integers of an IQ2 block from number i on; table: of n entries of eight codes; sub: of the
 * sixteen runs. */
STRAIGHT_INLINE void store_iq2(void *integers, size_t i, const struct kern_iq_block *b,
                               const uint16_t *table, size_t n, unsigned bits, const int sub[16])
{
    const __m512i values = _mm512_set1_epi32((int)kern_load_u32(kern_iq2_values));
    __m512i entries = look_up_entries(table, n, load_indices(b));
    for (size_t j = 0; j < 4; j++) { /* eight entries, 64 integers */
        __m512i bytes =
            _mm512_shuffle_epi8(values, codes_of_2_bits(_mm512_castsi512_si128(entries)));
        entries = _mm512_shuffle_i64x2(entries, entries, 0x39); /* the next ones to the front */
        uint64_t signs = load_u64(b->signs + 4 * j);
        bytes = _mm512_mask_sub_epi8(bytes, signs, _mm512_setzero_si512(), bytes);
        store16x4(integers, i + 64 * j, bytes, bits, sub + 4 * j);
    }
}

/** scale_of: the four bits of run r. */
#define IQ2(name, entries, n_scales, scale_of)                                                     \
    STRAIGHT_INLINE void name(const void *blocks, size_t n, void *integers, float *scales,         \
                              float *mins, unsigned bits)                                          \
    {                                                                                              \
        (void)mins;                                                                                \
        const struct kern_block_##name *block = blocks;                                            \
        for (size_t i = 0; i < n; i += 256, block++) {                                             \
            struct kern_iq_block unpacked;                                                         \
            unpack_##name(&unpacked, block);                                                       \
            int sub[16];                                                                           \
            for (unsigned r = 0; r < 16; r++)                                                      \
                sub[r] = 1 + 2 * (int)(scale_of);                                                  \
            store_iq2(integers, i, &unpacked, kern_##name##_codes, entries, bits, sub);            \
            if (bits == 8)                                                                         \
                store_iq_scales(scales, &unpacked, n_scales, 1);                                   \
            else                                                                                   \
                store_block_scale(scales, kern_##name##_block_scale(block));                       \
            scales += bits == 8 ? (n_scales) : 4;                                                  \
        }                                                                                          \
    }
IQ2(iq2_xxs, 256, 8, block->qs[r / 2 * 8 + 7] >> 4)
IQ2(iq2_xs, 512, 16, kern_load_nibble(block->scales, r))
IQ2(iq2_s, 1024, 16, kern_load_nibble(block->scales, r))

/** Entries at eight indices. */
static inline __m128i iq1_entries(const uint16_t indices[8])
{
    __m128i entries = _mm_setzero_si128();
#define ENTRY(j) entries = _mm_insert_epi16(entries, kern_iq1_codes[indices[j]], j)
    ENTRY(0), ENTRY(1), ENTRY(2), ENTRY(3), ENTRY(4), ENTRY(5), ENTRY(6), ENTRY(7);
#undef ENTRY
    return entries;
}

/** The integers of an IQ1 block, eighths, from number i on; sub: of the sixteen runs. */
STRAIGHT_INLINE void store_iq1(void *integers, size_t i, const struct kern_iq_block *b,
                               unsigned bits, const int sub[16])
{
    /* 8 * (code - 1 + delta), by code; delta is 1/8, then -1/8 */
    static const int8_t up_down[8] = {-7, 1, 9, 17, -9, -1, 7, 15};
    const __m512i values = _mm512_set1_epi64((long long)load_u64(up_down));
    for (size_t j = 0; j < 4; j++) { /* four runs, 64 integers */
        __m512i codes = codes_of_2_bits(iq1_entries(b->indices + 8 * j));
        /* the deltas' two bits of four bytes, together */
        uint32_t down =
            (uint32_t)(load_u64(b->deltas + j / 2 * 8) >> j % 2 * 32) * 0x01041040u >> 24;
        codes = _mm512_mask_or_epi64(codes, (__mmask8)down, codes, _mm512_set1_epi8(4));
        __m512i bytes = _mm512_shuffle_epi8(values, codes);
        store16x4(integers, i + 64 * j, bytes, bits, sub + 4 * j);
    }
}

/** The scales of an IQ1 block: of its n runs, or in 16 bits its own; what comes after them. */
STRAIGHT_INLINE float *store_iq1_scales(float *scales, const struct kern_iq_block *b, unsigned bits,
                                        size_t n, float block_scale)
{
    if (bits == 8)
        store_iq_scales(scales, b, n, 0.125f);
    else
        store_block_scale(scales, block_scale);
    return scales + (bits == 8 ? n : 4);
}

STRAIGHT_INLINE void iq1_s(const void *blocks, size_t n, void *integers, float *scales, float *mins,
                           unsigned bits)
{
    (void)mins;
    const struct kern_block_iq1_s *block = blocks;
    for (size_t i = 0; i < n; i += 256, block++) {
        struct kern_iq_block unpacked;
        unpack_iq1_s(&unpacked, block);
        int sub[16];
        for (size_t r = 0; r < 16; r++)
            sub[r] = 2 * (block->qh[r / 2 * 2 + 1] >> 4 & 7) + 1;
        store_iq1(integers, i, &unpacked, bits, sub);
        scales = store_iq1_scales(scales, &unpacked, bits, 8, kern_iq1_s_block_scale(block));
    }
}

STRAIGHT_INLINE void iq1_m(const void *blocks, size_t n, void *integers, float *scales, float *mins,
                           unsigned bits)
{
    (void)mins;
    const struct kern_block_iq1_m *block = blocks;
    for (size_t i = 0; i < n; i += 256, block++) {
        struct kern_iq_block unpacked;
        unpack_iq1_m(&unpacked, block);
        int sub[16];
        for (size_t r = 0; r < 16; r++)
            sub[r] = (int)(2 * (kern_load_u16(block->scales + r / 4 * 2) >> r % 4 * 3 & 7) + 1);
        store_iq1(integers, i, &unpacked, bits, sub);
        scales = store_iq1_scales(scales, &unpacked, bits, 16, kern_iq1_m_block_scale(block));
    }
}

KERN_AVX512_STRAIGHT_IQ(KERN_STRAIGHT)

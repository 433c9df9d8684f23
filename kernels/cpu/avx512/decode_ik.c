/** ik_llama.cpp's K, KS and KL types: as with AVX2, but for the last step. */
#include "kernels/cpu/avx512/decode.h"
#include "kernels/cpu/avx512/expand.h"

#define IK(name) kern_avx512_decode_##name
static inline void store16(float *y, __m128i bytes, float scale)
{
    __m512 values = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
    _mm512_storeu_ps(y, _mm512_mul_ps(_mm512_set1_ps(scale), values));
}

#include "kernels/cpu/simd/decode_ik.h"

/** ik_llama.cpp's K, KS and KL types. */
#include "kernels/cpu/avx2/decode.h"
#include "kernels/cpu/avx2/expand.h"

#define IK(name) kern_avx2_decode_##name
static inline void store16(float *y, __m128i bytes, float scale)
{
    store_scaled16(y, bytes, _mm256_set1_ps(scale));
}

#include "kernels/cpu/simd/decode_ik.h"

/** F16 and BF16: a conversion per element; rows of any length. */
#include "kernels/cpu/avx2/decode.h"
#include "kernels/cpu/avx2/expand.h"
#include "kernels/quant/bf16.h"
#include "kernels/quant/f16.h"

void kern_avx2_decode_f16(const void *blocks, float *y, size_t n)
{
    const struct kern_block_f16 *x = blocks;
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(load16(x[i].value)));
    kern_f16_row(x + i, y + i, n - i);
}

void kern_avx2_decode_bf16(const void *blocks, float *y, size_t n)
{
    const struct kern_block_bf16 *x = blocks;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256i bits = _mm256_slli_epi32(_mm256_cvtepu16_epi32(load16(x[i].value)), 16);
        _mm256_storeu_ps(y + i, _mm256_castsi256_ps(bits));
    }
    kern_bf16_row(x + i, y + i, n - i);
}

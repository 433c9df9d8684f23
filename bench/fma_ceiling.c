#include "bench/fma_ceiling.h"

#include <immintrin.h>

/* More chains than two units with a latency of five cycles can have under way. */
enum { CHAINS = 12, STEPS = 100000 };

/* Keeps the results alive. */
static volatile float sink;

__attribute__((target("avx2,fma"))) void bench_fma_avx2(void *unused)
{
    (void)unused;
    __m256 acc[CHAINS];
    for (int i = 0; i < CHAINS; i++)
        acc[i] = _mm256_set1_ps((float)i);
    const __m256 a = _mm256_set1_ps(0.5f), b = _mm256_set1_ps(1.0f);
    for (int step = 0; step < STEPS; step++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++)
            acc[i] = _mm256_fmadd_ps(acc[i], a, b);
    }
    for (int i = 1; i < CHAINS; i++)
        acc[0] = _mm256_add_ps(acc[0], acc[i]);
    sink = _mm256_cvtss_f32(acc[0]);
}

__attribute__((target("avx512f"))) void bench_fma_avx512(void *unused)
{
    (void)unused;
    __m512 acc[CHAINS];
    for (int i = 0; i < CHAINS; i++)
        acc[i] = _mm512_set1_ps((float)i);
    const __m512 a = _mm512_set1_ps(0.5f), b = _mm512_set1_ps(1.0f);
    for (int step = 0; step < STEPS; step++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++)
            acc[i] = _mm512_fmadd_ps(acc[i], a, b);
    }
    for (int i = 1; i < CHAINS; i++)
        acc[0] = _mm512_add_ps(acc[0], acc[i]);
    sink = _mm512_cvtss_f32(acc[0]);
}

double bench_fma_flops(enum kern_isa isa)
{
    double width = isa == KERN_ISA_AVX512 ? 16.0 : 8.0;
    return 2.0 * width * CHAINS * STEPS;
}

/** Loops of nothing but fused multiply-adds: what no product can exceed. */
#ifndef BENCH_FMA_CEILING_H
#define BENCH_FMA_CEILING_H

#include <stddef.h>

#include "kernels/cpu/isa.h"

/** One call of the loop of an ISA (not KERN_ISA_SCALAR); for bench_measure(). */
void bench_fma_avx2(void *unused);
void bench_fma_avx512(void *unused);

/** Floating-point operations (a multiply-add is two) per call. */
double bench_fma_flops(enum kern_isa isa);

#endif

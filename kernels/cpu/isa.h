/** Instruction sets, from the plain one upwards, and what this processor has. */
#ifndef KERNELS_CPU_ISA_H
#define KERNELS_CPU_ISA_H

#include <stdbool.h>

enum kern_isa {
    KERN_ISA_SCALAR, /* plain C; fmaf where a fused multiply-add is meant */
#if defined __x86_64__
    KERN_ISA_AVX2,   /* AVX2, FMA, F16C */
    KERN_ISA_AVX512, /* AVX-512 F, BW, DQ, VL on top */
#elif defined __aarch64__
    KERN_ISA_NEON,    /* what every aarch64 has */
    KERN_ISA_DOTPROD, /* sdot on top */
    KERN_ISA_I8MM,    /* smmla on top */
#endif
    KERN_ISA_COUNT
};

/**
 * The highest ISA that CPUID reports and whose registers the operating system saves
 * (XGETBV), on aarch64 that the system reports. Decided by feature bits, never by model number.
 */
enum kern_isa kern_isa_detect(void);

/** Whether this processor has VNNI on top of such an ISA: AVX-VNNI, AVX-512 VNNI. */
bool kern_isa_has_vnni(enum kern_isa isa);

/**
 * Whether this processor adds vectors of 512 bits at twice the rate at which it multiplies them, as
 * AMD's do (Zen 4 and 5); Intel's have the same units for both. A question of speed alone.
 */
bool kern_isa_adds_more(void);

/** "scalar", "avx2", "avx512", "neon", "dotprod", "i8mm". */
const char *kern_isa_name(enum kern_isa isa);

#endif

/** Decoders with NEON; those that the list lacks are the scalar ones. */
#ifndef KERNELS_CPU_NEON_DECODE_H
#define KERNELS_CPU_NEON_DECODE_H

#include "kernels/quant/integers.h"

/* clang-format off */
/** X(TYPE, name, elements of a block, of a run) for each that has neither minima nor sub-scales in
 * its integers. */
#define KERN_NEON_SCALED(X)                                                                        \
    X(Q8_0, q8_0, 32, 32) X(Q4_0, q4_0, 32, 32) X(IQ4_NL, iq4_nl, 32, 32) X(MXFP4, mxfp4, 32, 32)  \
    X(NVFP4, nvfp4, 64, 16) X(IQ4_XS, iq4_xs, 256, 32) X(Q6_K, q6_k, 256, 16)
/** X(TYPE, name) for all that are integers. */
#define KERN_NEON_INTEGERS_OF(X)                                                                   \
    X(Q8_0, q8_0) X(Q4_0, q4_0) X(IQ4_NL, iq4_nl) X(IQ4_XS, iq4_xs) X(MXFP4, mxfp4)                \
    X(NVFP4, nvfp4) X(Q2_K, q2_k) X(Q3_K, q3_k) X(Q4_K, q4_k) X(Q5_K, q5_k) X(Q6_K, q6_k)
/* clang-format on */

kern_decode_fn kern_neon_decode_f16;
#define KERN_NEON_DECODER(TYPE, name)                                                              \
    kern_decode_fn kern_neon_decode_##name;                                                        \
    kern_straight_fn kern_neon_straight8_##name, kern_neon_straight16_##name;
KERN_NEON_INTEGERS_OF(KERN_NEON_DECODER)

#endif

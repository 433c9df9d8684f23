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
/** The same of all that are integers. */
#define KERN_NEON_INTEGERS_OF(X)                                                                   \
    KERN_NEON_SCALED(X)                                                                            \
    X(Q2_K, q2_k, 256, 16) X(Q3_K, q3_k, 256, 16) X(Q4_K, q4_k, 256, 32) X(Q5_K, q5_k, 256, 32)
/* clang-format on */

kern_decode_fn kern_neon_decode_f16;
#define KERN_NEON_DECODER(TYPE, name, elems, run)                                                  \
    kern_decode_fn kern_neon_decode_##name;                                                        \
    kern_straight_fn kern_neon_straight8_##name, kern_neon_straight16_##name;
KERN_NEON_INTEGERS_OF(KERN_NEON_DECODER)

#endif

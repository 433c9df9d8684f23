/** Which types are integers times scales, for those who make code for each: the host's table
 * (integers.c), the device's decoder (kernels/cuda/kernels/integers/decode.h). */
#ifndef KERNELS_QUANT_INTEGER_LIST_H
#define KERNELS_QUANT_INTEGER_LIST_H

#include "gguf/type_list.h"
#include "kernels/quant/formats.h"
#include "kernels/quant/ik/formats.h"

/** The rows of the table of types that are: SCALED and WITH_MIN take its columns. */
#define KERN_INTEGER_FORMATS(SCALED, WITH_MIN)                                                     \
    GGUF_TYPES(GGUF_NO_TYPE, GGUF_NO_TYPE, SCALED, WITH_MIN, GGUF_NO_TYPE, SCALED, GGUF_NO_TYPE)

/** Types whose integers may be multiplied by their sub-scales: WIDE(type, name, runs of a min or of
 * a narrow scale in a block of KERN_WIDE_ELEMS, elements that share a min, largest integer). */
/* clang-format off */
#define KERN_WIDE_FORMATS(WIDE)                                                                    \
    WIDE(Q2_K, q2_k, 16, 16, 45) WIDE(Q3_K, q3_k, 16, 0, 128) WIDE(Q4_K, q4_k, 8, 32, 945)         \
    WIDE(IQ1_S, iq1_s, 8, 0, 135) WIDE(IQ1_M, iq1_m, 16, 0, 135) WIDE(IQ3_S, iq3_s, 8, 0, 465)     \
    WIDE(TQ1_0, tq1_0, 8, 0, 1) WIDE(TQ2_0, tq2_0, 8, 0, 2)                                        \
    WIDE(Q5_K, q5_k, 8, 32, 1953) WIDE(Q6_K, q6_k, 16, 0, 4096) WIDE(IQ4_XS, iq4_xs, 8, 0, 4064)   \
    WIDE(IQ2_XXS, iq2_xxs, 8, 0, 1333) WIDE(IQ2_XS, iq2_xs, 16, 0, 1333)                           \
    WIDE(IQ2_S, iq2_s, 16, 0, 1333) WIDE(IQ3_XXS, iq3_xxs, 8, 0, 1922)
/* clang-format on */
enum { KERN_WIDE_RUN = 64, KERN_WIDE_ELEMS = 256 };
/** 32 bits hold every sum of a run of integers up to the first. Formats that are beyond it are
 * "long"; none is beyond the second. */
enum { KERN_INTEGER_WIDE = 1023, KERN_INTEGER_LONG = 4096 };

#endif

/**
 * The values that 4-bit codes stand for.
 */
#ifndef KERNELS_QUANT_CODEBOOK_4BIT_H
#define KERNELS_QUANT_CODEBOOK_4BIT_H

#include "kernels/quant/bytes.h"

/** IQ4_NL and IQ4_XS. */
KERN_CONSTANT int8_t kern_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                            1,    13,   25,  38,  53,  69,  89,  113};

/** MXFP4 and NVFP4: twice the number of format E2M1, so that it is an integer; -0 is 0. */
KERN_CONSTANT int8_t kern_fp4_values[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                            0, -1, -2, -3, -4, -6, -8, -12};

#endif

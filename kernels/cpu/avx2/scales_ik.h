/** Unpacking the scales of ik_llama.cpp's types: as kernels/cpu/avx2/scales.h, and not inline. */
#ifndef KERNELS_CPU_AVX2_SCALES_IK_H
#define KERNELS_CPU_AVX2_SCALES_IK_H

#include "kernels/quant/ik/formats.h"

/** What belongs to each run, of sixteen or eight: its scale, and what its values are above the
 * table's. */
struct kern_ik_runs {
    float scales[16];
    int8_t shifts[16];
};

/** X(name) for each type of 256 elements with runs. */
#define KERN_IK_RUNS(X)                                                                            \
    X(iq2_k)                                                                                       \
    X(iq3_k) X(iq4_k) X(iq5_k) X(iq6_k) X(iq2_ks) X(iq3_ks) X(iq4_ks) X(iq4_kss) X(iq5_ks) X(iq2_kl)
#define KERN_IK_RUNS_OF(name)                                                                      \
    void kern_avx2_##name##_runs(struct kern_ik_runs *out, const struct kern_block_##name *block);
KERN_IK_RUNS(KERN_IK_RUNS_OF)

/** IQ2_KL's values of the first and of the second element, by code. */
extern const uint8_t kern_ik_halves[2][32];

#endif

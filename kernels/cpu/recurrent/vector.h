/** Vectors among the weights. */
#ifndef KERNELS_CPU_RECURRENT_VECTOR_H
#define KERNELS_CPU_RECURRENT_VECTOR_H

#include "kernels/cpu/gemm/gemm.h"

/** y = the only row of w, decoded, times its scale; returns y, or NULL if w is NULL. */
static inline const float *kern_vector_decode(const struct kern_cpu *cpu,
                                              const struct kern_weight *w, float *y)
{
    if (w)
        kern_weight_take_row(cpu, w, 0, y);
    return w ? y : NULL;
}

#endif

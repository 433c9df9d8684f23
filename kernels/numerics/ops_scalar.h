/** The scalar reference kernels; ops.h says what each does. */
#ifndef KERNELS_NUMERICS_OPS_SCALAR_H
#define KERNELS_NUMERICS_OPS_SCALAR_H

#include "kernels/numerics/ops.h"

#define KERN_OPS_SCALAR(name) kern_op_##name##_fn kern_scalar_##name;
KERN_OPS(KERN_OPS_SCALAR)

/** The experts and shares of one token, as kern_top_experts() has them. */
void kern_scalar_top_experts(const float *logits, size_t n_experts, size_t n_used, int32_t *experts,
                             float *shares);

#endif

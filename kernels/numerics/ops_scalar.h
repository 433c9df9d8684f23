/** The scalar reference kernels; ops.h says what each does. */
#ifndef KERNELS_NUMERICS_OPS_SCALAR_H
#define KERNELS_NUMERICS_OPS_SCALAR_H

#include "kernels/numerics/ops.h"

#define KERN_OPS_SCALAR(name) kern_op_##name##_fn kern_scalar_##name;
KERN_OPS(KERN_OPS_SCALAR)

#endif

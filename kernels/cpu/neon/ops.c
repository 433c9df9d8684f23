/* The kernels of kernels/numerics/ops.h with NEON. */
#include "kernels/cpu/neon/neon.h"
#include "kernels/cpu/neon/vec.h"
#include "kernels/cpu/simd/bodies.h"

const struct kern_ops kern_ops_neon = {SIMD_OPS(kern_neon)};

/* The kernels of kernels/numerics/ops.h with AVX2. */
#include "kernels/cpu/avx2/memory_ops.h"
#include "kernels/cpu/avx2/vec.h"
#include "kernels/cpu/simd/bodies.h"

const struct kern_ops kern_ops_avx2 = {SIMD_OPS(kern_avx2)};

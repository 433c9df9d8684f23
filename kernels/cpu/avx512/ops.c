/* The kernels of kernels/numerics/ops.h with AVX-512. */
#include "kernels/cpu/avx2/memory_ops.h"
#include "kernels/cpu/avx512/vec.h"
#include "kernels/cpu/simd/bodies.h"

const struct kern_ops kern_ops_avx512 = {SIMD_OPS(kern_avx2)};

/* The kernel int16_pack_lanes with AVX2. */
#include "kernels/cpu/avx2/gemm/gemm.h"
#include "kernels/cpu/avx2/vec.h"

#define LANES_FUNCTION void kern_avx2_int16_pack_lanes
#include "kernels/cpu/simd/pack_lanes.h"

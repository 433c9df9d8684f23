/* The kernel int16_pack_lanes with AVX-512. */
#include "kernels/cpu/avx512/gemm/gemm.h"
#include "kernels/cpu/avx512/vec.h"

#define LANES_FUNCTION void kern_avx512_int16_pack_lanes
#include "kernels/cpu/simd/pack_lanes.h"

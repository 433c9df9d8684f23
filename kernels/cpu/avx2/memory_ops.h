/**
 * Kernels of kernels/numerics/ops.h with AVX2 that wait for memory more than they compute: AVX-512
 * has no faster ones.
 */
#ifndef KERNELS_CPU_AVX2_MEMORY_OPS_H
#define KERNELS_CPU_AVX2_MEMORY_OPS_H

#include "kernels/numerics/ops.h"

kern_op_score_top_fn kern_avx2_score_top;
kern_op_decode_codes_fn kern_avx2_decode_codes;
kern_op_encode_codes_fn kern_avx2_encode_codes;

#endif

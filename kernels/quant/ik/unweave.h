/** Taking rows out of bundles (gguf/type.h): for each type with bundles a function. */
#ifndef KERNELS_QUANT_IK_UNWEAVE_H
#define KERNELS_QUANT_IK_UNWEAVE_H

#include <stdint.h>

/**
 * One row of a bundle's block, as the block of another type that has the same values.
 * woven: bundle_rows * block_bytes bytes.   row: within the bundle.   block: out, without what the
 * prefix of the row becomes in it.
 */
typedef void kern_unweave_fn(const uint8_t *woven, unsigned row, uint8_t *block);

kern_unweave_fn kern_unweave_bf16_r16, kern_unweave_q4_0_r8, kern_unweave_mxfp4_r8;
kern_unweave_fn kern_unweave_q8_0_r8, kern_unweave_q8_k_r8, kern_unweave_q8_k_r16;
kern_unweave_fn kern_unweave_q8_kv_r8, kern_unweave_q5_0_r4, kern_unweave_q6_0_r4;
kern_unweave_fn kern_unweave_iq4_nl_r4, kern_unweave_iq2_bn_r4, kern_unweave_iq1_s_r4;
kern_unweave_fn kern_unweave_iq1_m_r4, kern_unweave_iq4_xs_r8;
kern_unweave_fn kern_unweave_q2_k_r4, kern_unweave_q3_k_r4, kern_unweave_q4_k_r4;
kern_unweave_fn kern_unweave_q5_k_r4, kern_unweave_q6_k_r4;
kern_unweave_fn kern_unweave_iq2_xxs_r4, kern_unweave_iq2_xs_r4, kern_unweave_iq2_s_r4;
kern_unweave_fn kern_unweave_iq3_xxs_r4, kern_unweave_iq3_s_r4;
kern_unweave_fn kern_unweave_iq2_k_r4, kern_unweave_iq3_k_r4, kern_unweave_iq4_k_r4;
kern_unweave_fn kern_unweave_iq5_k_r4, kern_unweave_iq4_ks_r4, kern_unweave_iq5_ks_r4;

#endif

/** Taking rows out of bundles (gguf/type.h): for each type with bundles a function. */
#ifndef KERNELS_QUANT_IK_UNWEAVE_H
#define KERNELS_QUANT_IK_UNWEAVE_H

#include <stdint.h>

#include "gguf/type_list.h"

/**
 * One row of a bundle's block, as the block of another type that has the same values.
 * woven: bundle_rows * block_bytes bytes.   row: within the bundle.   block: out, without what the
 * prefix of the row becomes in it.
 */
typedef void kern_unweave_fn(const uint8_t *woven, unsigned row, uint8_t *block);

#define KERN_UNWEAVE(TYPE, name, ...) kern_unweave_fn kern_unweave_##name;
GGUF_TYPES(GGUF_NO_TYPE, GGUF_NO_TYPE, GGUF_NO_TYPE, GGUF_NO_TYPE, KERN_UNWEAVE, KERN_UNWEAVE,
           GGUF_NO_TYPE)

#endif

/**
 * Types whose scales lie apart from their codes (struct gguf_scales): the scales as blocks have
 * them.
 */
#ifndef KERNELS_QUANT_APART_H
#define KERNELS_QUANT_APART_H

#include "kernels/quant/registry.h"

/** A scale as it is stored at `at`. */
float kern_scale_value(enum gguf_scale_type type, const uint8_t *at);

/** The scales of a row, from a column on. */
struct kern_scale_walk {
    const struct kern_quant *quant;
    const struct gguf_type_info *info;
    const struct gguf_scales *scales;
    const uint8_t *row; /* of scales; NULL: all are 1 */
    size_t col;         /* of the next scale */
    size_t end;         /* the column that has another one than what is in `bytes` */
    uint8_t bytes[4];
};

/** Begin with a block.   scales: must outlive the walk. */
struct kern_scale_walk kern_scale_walk(const struct kern_quant *quant,
                                       const struct gguf_scales *scales, size_t row, size_t col);

/** The scales of the next block, as it begins with them. */
void kern_scale_next(struct kern_scale_walk *walk, uint8_t *to);

/**
 * The index of the first of n scales that no block of the type may have, or n: one that is not
 * finite, one of NVFP4_APART that has a sign.   scales: as stored, at any address.
 */
size_t kern_scales_find_invalid(enum gguf_type type, enum gguf_scale_type stored,
                                const void *scales, size_t n);

#endif

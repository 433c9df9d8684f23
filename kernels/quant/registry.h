/**
 * The list of block formats that can be decoded, with the scalar decoder of each.
 * Tests, benchmarks and the kernel sets walk it. It is made of gguf/type_list.h: a new type is a
 * row there, and its header.
 */
#ifndef KERNELS_QUANT_REGISTRY_H
#define KERNELS_QUANT_REGISTRY_H

#include <stddef.h>

#include "gguf/type.h"
#include "kernels/quant/ik/unweave.h"

/**
 * Decode n elements of a row to float32.
 * blocks: n / block_elems blocks one after the other, at any alignment. Where rows have a prefix or
 *         are stored in bundles they are not the file's: kern_rows_blocks() makes them.
 * y: n floats.   n: a multiple of the type's block_elems; 0 is allowed.
 * Every bit pattern decodes, without reading or writing past the n elements. All variants of a
 * type give the same bits, the sign of zero included; only the sign and payload of a NaN may
 * differ. A NaN or infinite scale gives NaN or infinite elements, as the formula says.
 */
typedef void kern_decode_fn(const void *blocks, float *y, size_t n);

/** One block format. */
struct kern_quant {
    enum gguf_type type;
    size_t block_elems;     /* of the blocks that `decode` takes */
    size_t block_bytes;     /* sizeof their struct */
    kern_decode_fn *decode; /* the scalar reference */
    /**
     * The type whose blocks the rows of this one's bundles become: its integers, the device's
     * decoders and mostly `decode` are that one's. A type without bundles has itself here.
     */
    enum gguf_type plain;
    kern_unweave_fn *unweave; /* NULL: no bundles */
    /**
     * For a format with bit patterns that must not occur: the index of the first of n_blocks
     * that holds one, or n_blocks. NULL where every pattern is a number.
     */
    size_t (*find_invalid)(const void *blocks, size_t n_blocks);
};

/** Walk the list: the i-th format, NULL past the end. */
const struct kern_quant *kern_quant_at(size_t i);

/** The row of a type; NULL if it is not in the list. */
const struct kern_quant *kern_quant_find(enum gguf_type type);

/** Bytes of n elements in such blocks; n is a multiple of block_elems. */
static inline size_t kern_quant_bytes(const struct kern_quant *quant, size_t n)
{
    return n / quant->block_elems * quant->block_bytes;
}

#endif

/**
 * What a key/value cache of some type would hold of numbers: they are put into its blocks and
 * decoded again. See struct kern_round (kernels/operations.h). Common subset of C17 and CUDA C++.
 */
#ifndef KERNELS_QUANT_ROUND_H
#define KERNELS_QUANT_ROUND_H

#include "gguf/type.h"
#include "kernels/quant/pack.h"

/** The list of these types, in the order in which llama.cpp names them: X(TYPE, name). */
#define KERN_ROUND_BLOCKS(X)                                                                       \
    X(Q8_0, q8_0) X(Q4_0, q4_0) X(Q4_1, q4_1) X(IQ4_NL, iq4_nl) X(Q5_0, q5_0) X(Q5_1, q5_1)
#define KERN_ROUND_TYPES(X) X(F32, f32) X(F16, f16) X(BF16, bf16) KERN_ROUND_BLOCKS(X)

/** Elements of a block; 0: no type of a cache. */
static inline size_t kern_round_elems(enum gguf_type type)
{
    switch (type) {
    case GGUF_TYPE_F32:
    case GGUF_TYPE_F16:
    case GGUF_TYPE_BF16:
        return 1;
#define KERN_ROUND_CASE(TYPE, name) case GGUF_TYPE_##TYPE:
        KERN_ROUND_BLOCKS(KERN_ROUND_CASE)
#undef KERN_ROUND_CASE
        return KERN_PACK_ELEMS;
    default:
        return 0;
    }
}

#define KERN_ROUND_THROUGH(TYPE, name)                                                             \
    else if (type == GGUF_TYPE_##TYPE)                                                             \
    {                                                                                              \
        struct kern_block_##name block;                                                            \
        kern_##name##_pack(x, &block);                                                             \
        kern_##name##_group(&block, 0, x);                                                         \
    }

/** Round n numbers in place, at most KERN_PACK_ELEMS: one block, or any n of a type without. */
KERN_INLINE void kern_round_numbers(enum gguf_type type, float *x, size_t n)
{
    if (type == GGUF_TYPE_F16)
        for (size_t i = 0; i < n; i++)
            x[i] = kern_half_to_float(kern_half_from_float(x[i]));
    else if (type == GGUF_TYPE_BF16)
        for (size_t i = 0; i < n; i++)
            x[i] = kern_float_from_bits((uint32_t)kern_bf16_from_float(x[i]) << 16);
    KERN_ROUND_BLOCKS(KERN_ROUND_THROUGH)
}

/**
 * A turn by the orthonormal Walsh-Hadamard matrix of n_turn rows: steps of half = 1, 2, 4, ...
 * n_turn / 2, each of them of x[i] and x[i + half] for all i without the bit of `half`. The last
 * step has the scale n_turn^(-1/2), the others 1.
 */
KERN_INLINE void kern_turn_pair(float *x, size_t half, float scale)
{
    float a = x[0], b = x[half];
    x[0] = (a + b) * scale;
    x[half] = (a - b) * scale;
}

#endif

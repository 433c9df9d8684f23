/**
 * What a key/value cache of some type would hold of numbers: they are put into its blocks and
 * decoded again. See struct kern_round (kernels/operations.h). Common subset of C17 and CUDA C++.
 */
#ifndef KERNELS_QUANT_ROUND_H
#define KERNELS_QUANT_ROUND_H

#include "gguf/type.h"
#include "kernels/quant/pack.h"

/** The list of these types, in the order in which llama.cpp names them. */
#define KERN_ROUND_TYPES(X) X(F32) X(F16) X(BF16) X(Q8_0) X(Q4_0) X(Q4_1) X(IQ4_NL) X(Q5_0) X(Q5_1)

/** Elements of a block; 0: no type of a cache. */
static inline size_t kern_round_elems(enum gguf_type type)
{
    switch (type) {
    case GGUF_TYPE_F32:
    case GGUF_TYPE_F16:
    case GGUF_TYPE_BF16:
        return 1;
    case GGUF_TYPE_Q8_0:
    case GGUF_TYPE_Q4_0:
    case GGUF_TYPE_Q4_1:
    case GGUF_TYPE_IQ4_NL:
    case GGUF_TYPE_Q5_0:
    case GGUF_TYPE_Q5_1:
        return KERN_PACK_ELEMS;
    default:
        return 0;
    }
}

#define KERN_ROUND_THROUGH(name)                                                                   \
    do {                                                                                           \
        struct kern_block_##name block;                                                            \
        kern_##name##_pack(x, &block);                                                             \
        kern_##name##_group(&block, 0, x);                                                         \
    } while (0)

/** Round n numbers in place, at most KERN_PACK_ELEMS: one block, or any n of a type without. */
KERN_INLINE void kern_round_numbers(enum gguf_type type, float *x, size_t n)
{
    if (type == GGUF_TYPE_F16)
        for (size_t i = 0; i < n; i++)
            x[i] = kern_half_to_float(kern_half_from_float(x[i]));
    else if (type == GGUF_TYPE_BF16)
        for (size_t i = 0; i < n; i++)
            x[i] = kern_float_from_bits((uint32_t)kern_bf16_from_float(x[i]) << 16);
    else if (type == GGUF_TYPE_Q8_0)
        KERN_ROUND_THROUGH(q8_0);
    else if (type == GGUF_TYPE_Q4_0)
        KERN_ROUND_THROUGH(q4_0);
    else if (type == GGUF_TYPE_Q4_1)
        KERN_ROUND_THROUGH(q4_1);
    else if (type == GGUF_TYPE_IQ4_NL)
        KERN_ROUND_THROUGH(iq4_nl);
    else if (type == GGUF_TYPE_Q5_0)
        KERN_ROUND_THROUGH(q5_0);
    else if (type == GGUF_TYPE_Q5_1)
        KERN_ROUND_THROUGH(q5_1);
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

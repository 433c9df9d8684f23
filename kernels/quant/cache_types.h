/**
 * The types that a key/value cache may have, and their sizes; round.h has what they make of
 * numbers. Common subset of C17 and CUDA C++.
 */
#ifndef KERNELS_QUANT_CACHE_TYPES_H
#define KERNELS_QUANT_CACHE_TYPES_H

#include <stdbool.h>
#include <stddef.h>

#include "gguf/type.h"
#include "kernels/portable/portable.h"

enum { KERN_PACK_ELEMS = 32 /* of a block */ };

/**
 * Their list: X(TYPE, name). Those of llama.cpp, in the order in which it names them,
 * ik_llama.cpp's, vLLM's, and MXFP8 as the MX specification has it.
 */
#define KERN_ROUND_OF_LLAMA(X)                                                                     \
    X(Q8_0, q8_0) X(Q4_0, q4_0) X(Q4_1, q4_1) X(IQ4_NL, iq4_nl) X(Q5_0, q5_0) X(Q5_1, q5_1)
#define KERN_ROUND_BLOCKS(X) KERN_ROUND_OF_LLAMA(X) X(Q6_0, q6_0)
#define KERN_ROUND_FLOATS(X) X(F8_E4M3, fp8_e4m3) X(F8_E5M2, fp8_e5m2)
#define KERN_ROUND_TYPES(X)                                                                        \
    X(F32, f32)                                                                                    \
    X(F16, f16)                                                                                    \
    X(BF16, bf16)                                                                                  \
    KERN_ROUND_BLOCKS(X)                                                                           \
    X(Q8_KV, q8_kv)                                                                                \
    KERN_ROUND_FLOATS(X) X(MXFP8, mxfp8) X(NVFP4, nvfp4) X(FP8_DS_MLA, fp8_ds_mla)

enum { KERN_NVFP4_RUN = 16, KERN_DS_MLA_RUN = 128 /* elements that share a scale */ };

/** Elements of a block; 0: no type of a cache. A block of Q8_KV is a row, of whole such blocks. */
static inline size_t kern_round_elems(enum gguf_type type)
{
    switch (type) {
    case GGUF_TYPE_F32:
    case GGUF_TYPE_F16:
    case GGUF_TYPE_BF16:
    case GGUF_TYPE_F8_E4M3:
    case GGUF_TYPE_F8_E5M2:
        return 1;
    case GGUF_TYPE_NVFP4:
        return KERN_NVFP4_RUN;
    case GGUF_TYPE_FP8_DS_MLA:
        return KERN_DS_MLA_RUN;
    case GGUF_TYPE_MXFP8:
    case GGUF_TYPE_Q8_KV:
#define KERN_ROUND_CASE(TYPE, name) case GGUF_TYPE_##TYPE:
        KERN_ROUND_BLOCKS(KERN_ROUND_CASE)
        return KERN_PACK_ELEMS;
    default:
        return 0;
    }
}

/** How many numbers are rounded at a time: a block, or several. */
KERN_INLINE size_t kern_round_step(enum gguf_type type)
{
    return type == GGUF_TYPE_FP8_DS_MLA ? KERN_DS_MLA_RUN : KERN_PACK_ELEMS;
}

/** A tensor of it may have a scale: numbers are divided by it before, and multiplied after. */
static inline bool kern_round_is_scaled(enum gguf_type type)
{
    return type == GGUF_TYPE_F8_E4M3 || type == GGUF_TYPE_F8_E5M2;
}

/** llama.cpp's caches have it in blocks, and turn what they hold. */
static inline bool kern_round_is_turned(enum gguf_type type)
{
    switch (type) {
        KERN_ROUND_OF_LLAMA(KERN_ROUND_CASE)
        return true;
    default:
        return false;
    }
}
#undef KERN_ROUND_CASE

#endif

/**
 * What engines round the inputs of products to. A row of inputs is cut into blocks; each becomes
 * what its codes and its scale stand for. docs/formats.md has the formulas and their sources.
 */
#ifndef ACTIVATIONS_TYPES_H
#define ACTIVATIONS_TYPES_H

#include <stddef.h>

/** X(TYPE, type, name, elements of a block). 0: the block is the whole row. */
#define ACT_EACH_TYPE(X)                                                                           \
    X(F32, f32, "f32", 1)                                                                          \
    X(F16, f16, "f16", 1)                                                                          \
    X(BF16, bf16, "bf16", 1)                                                                       \
    X(Q8_0, q8_0, "q8_0", 32)                                                                      \
    X(Q8_1, q8_1, "q8_1", 32)                                                                      \
    X(Q8_K, q8_k, "q8_k", 256)                                                                     \
    X(MMQ, mmq, "mmq", 32)                                                                         \
    X(MMQ_64, mmq_64, "mmq-64", 64)                                                                \
    X(FP8, fp8, "fp8", 0)                                                                          \
    X(FP8_TENSOR, fp8_tensor, "fp8-tensor", 1)                                                     \
    X(MXFP8, mxfp8, "mxfp8", 32)                                                                   \
    X(MXFP4, mxfp4, "mxfp4", 32)                                                                   \
    X(NVFP4, nvfp4, "nvfp4", 16)

enum act_type {
#define ACT_TYPE_ID(TYPE, type, name, elems) ACT_##TYPE,
    ACT_EACH_TYPE(ACT_TYPE_ID)
#undef ACT_TYPE_ID
        ACT_N_TYPES
};

/** As options have it. */
const char *act_type_name(enum act_type type);
/** Elements of a block: rows are multiples of it. 1 where any row will do. */
size_t act_type_elems(enum act_type type);

/**
 * Round a row of n numbers, whole blocks, in place. A block with a NaN or an infinity becomes NaN
 * (F16, BF16, FP8_TENSOR: that number does; F16: infinities stay, and begin at 65520).
 * scale: of the tensor (input_scale), which FP8_TENSOR and NVFP4 take; 1 where there is none.
 */
void act_round_row(enum act_type type, float *x, size_t n, float scale);

#endif

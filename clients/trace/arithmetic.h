/** What a program whose tensors are compared rounds its values to. */
#ifndef TRACE_ARITHMETIC_H
#define TRACE_ARITHMETIC_H

enum trace_arithmetic {
    TRACE_AS_LLAMA,   /* the table of trace/rounded.h */
    TRACE_FLOAT32,    /* nothing to fewer bits */
    TRACE_BFLOAT16,   /* inputs and results of products, norms and attention */
    TRACE_COARSE,     /* the same, and inputs of products in 8 bits in blocks of 32 */
    TRACE_SMALL_CACHE /* as llama, and keys and values in 8 bits in blocks of 32 */
};

#endif

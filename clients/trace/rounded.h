/**
 * The errors to expect of a correct program that rounds more than this one: a backend computes
 * while each value that such a program rounds gets a random error of that size. Blocks of 8 bits
 * are rounded as such a program does, 2 % of a step of noise before it: an even error would be far
 * too large for what is small beside an outlier of its block.
 *
 * | where | rounded | error, even between - and + |
 * | --- | --- | --- |
 * | input of a product, weight of 32-blocks (Q4_0 .. Q8_0, IQ4_NL, MXFP4, NVFP4) | 8 bits | to
 *   steps of max of 32 / 127 |
 * | weight of superblocks (K, IQ, TQ) | 8 bits | to steps of max of 256 / 127 |
 * | weight F16, BF16 | the same type | half a step of it |
 * | every product | sum of K terms in float32 | 2^-24 sqrt(8 + K / 32) of each input |
 * | queries, keys, values | F16 | half a step |
 * | output of attention | sum of n terms in F16 | 2^-11 sqrt(n) / 2 of the head's RMS |
 * | GELU | from a table in F16 | half a step of its input and its result |
 * | norms, embedding, SiLU | float32 | 2^-23 |
 * | RoPE | angle by repeated products in float32 | 2^-24 (i + 1) of the angle of pair i |
 * | softplus of a recurrence | ln(1 + exp x) in float32 | 2^-24 |
 * | recurrence | float32, in chunks | 2^-19 of the head's RMS |
 *
 * Four more kinds of programs: one that keeps everything in float32, whose inputs of products,
 * queries, keys, values and GELU are not rounded, and attention by 2^-23 sqrt(n) / 2 of the head's
 * RMS; one that keeps everything in bfloat16; the coarsest of those that are still right, with
 * inputs of every product in 8 bits beside that; and the one of the table with keys and values in
 * 8 bits in blocks of 32.
 */
#ifndef TRACE_ROUNDED_H
#define TRACE_ROUNDED_H

#include "clients/trace/arithmetic.h"
#include "kernels/observer.h"

/** Zero-initialise, but for the arithmetic. */
struct trace_rounded {
    struct kern_observer observer;
    float *scratch;
    size_t capacity; /* floats of the scratch */
    uint64_t state;  /* of the random numbers */
    enum trace_arithmetic arithmetic;
};

/** From now on the backend rounds. Its memory must be the host's. seed: which errors. */
void trace_rounded_begin(struct trace_rounded *r, struct kern_backend *backend, uint64_t seed);
/** Between begin and end: round x[n_rows][n_cols of w], as the input of a product with w. */
void trace_rounded_input(struct trace_rounded *r, const struct kern_weight *w, float *x,
                         size_t n_rows);
/** The backend is exact again; frees the scratch. */
void trace_rounded_end(struct trace_rounded *r);

#endif

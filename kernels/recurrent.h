/**
 * The operations of recurrent layers: a causal convolution, and a state that every token changes
 * (the gated delta rule, Mamba-2). The conventions are those of
 * kernels/operations.h; kernels/recurrent_types.h has the runs that tokens come in.
 */
#ifndef KERNELS_RECURRENT_H
#define KERNELS_RECURRENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "kernels/portable/portable.h"
#include "kernels/recurrent_types.h"

struct kern_backend;
struct kern_weight;

/**
 * y[t][c] = silu(bias[c] + sum_j weight[c][j] x[t - (W - 1 - j) step][c]), j = 0 .. W - 1, where x
 * is 0 before the sequence; with `bare` the sum itself. The sum is one chain of fused multiply-adds
 * in the order of j, begun with the bias, or 0; products with what is before the sequence are left
 * out.
 */
struct kern_convolve {
    const float *x; /* [rows, x_stride], columns 0 .. C - 1 */
    size_t x_stride;
    float *y;                         /* [rows, C]; not x */
    const struct kern_weight *weight; /* [C, W], W from 1 to KERN_CONVOLVE_MAX */
    const struct kern_weight *bias;   /* 1 row of C, or NULL */
    bool bare;                        /* without silu */
    size_t step;                      /* tokens from a tap to the next; 0 stands for 1 */
    float *states; /* backend memory, kern_convolve_state_bytes() for each that runs name */
    const struct kern_run *runs; /* host */
    size_t n_runs;
};

/**
 * A state S [dk, dv] for each head, 0 before the sequence. For each token, with the head's q and k
 * (of dk elements) and v (of dv):
 *     dt  = max(softplus(dt[t][head] + dt_bias[head]), dt_min)
 *     S   = exp(dt * decay[head]) S
 *     e   = sigmoid(beta[t][head]) (v - S^T k)    the gated delta rule
 *     e   = dt v                                  Mamba-2 (beta is NULL): k is B, q is C, v is x
 *     S   = S + k e^T
 *     out = S^T q + skip[head] v
 * With `by_channel` (the Kimi delta net) each row c of S has a decay of its own: dt and dt_bias
 * have dk numbers for each head, S[c] = exp(dt[c] * decay[head]) S[c]. There beta is not NULL, skip
 * is. With a `least_log` below 0 too, a decay's logarithm lies between that and 0:
 *     S[c] = exp(least_log * sigmoid(|decay[head]| (dt[t][head][c] + dt_bias[head][c]))) S[c]
 * Divided by their length as `unit` says, q also times `scale`. Head j takes q and k of head
 * j mod Hk with `alternate`, else j / (Hv / Hk).
 *
 * Tokens are taken in chunks of KERN_CHUNK, which begin at multiples of that index in the sequence:
 * products of decays are exponentials of differences of sums in double, all other sums are
 * float32 chains. The error is that of float32 token by token. With `by_channel` they are taken one
 * by one, in float32: a chunk would need an exponential for each channel of each pair of tokens,
 * which takes longer than the products that it saves. Sums over channels are KERN_STEP_CHAINS
 * chains of fused multiply-adds, channel c in chain c mod 4, added as (0 + 1) + (2 + 3).
 */
struct kern_recur {
    const float *q, *k, *v; /* [rows, stride]: Hk heads of dk, Hk of dk, Hv of dv */
    size_t stride;
    const float *dt;   /* [rows, dt_stride], columns 0 .. Hv - 1; by_channel: Hv * dk columns */
    const float *beta; /* [rows, beta_stride], columns 0 .. Hv - 1; or NULL */
    size_t dt_stride, beta_stride;
    const struct kern_weight *dt_bias; /* 1 row of as many */
    const struct kern_weight *decay;   /* 1 row of Hv, as files have it; < 0 without least_log */
    bool by_channel;
    float least_log;                           /* 0: none */
    const struct kern_weight *skip;            /* 1 row of Hv, or NULL: 0 */
    float dt_min;                              /* 0: none */
    float *out;                                /* [rows, Hv * dv] */
    size_t n_k_heads, n_heads, k_size, v_size; /* Hk, Hv (a multiple of Hk), dk, dv */
    bool alternate;
    enum kern_unit unit;
    float eps, scale;
    float *states; /* backend memory, kern_recur_state_bytes() for each that runs name */
    const struct kern_run *runs; /* host */
    size_t n_runs;
};

/** Numbers of dt that a head has. */
KERN_INLINE size_t kern_recur_n_steps(const struct kern_recur *op)
{
    return op->by_channel ? op->k_size : 1;
}

/** Bytes of a saved state, a multiple of 64. Only shapes of `op` matter. */
size_t kern_convolve_state_bytes(const struct kern_convolve *op);
size_t kern_recur_state_bytes(const struct kern_recur *op);

typedef enum status kern_convolve_fn(struct kern_backend *b, const struct kern_convolve *op,
                                     struct status_why *why);
typedef enum status kern_recur_fn(struct kern_backend *b, const struct kern_recur *op,
                                  struct status_why *why);
/** Working memory; see kern_linear_bytes_fn. Only shapes and n_runs of `op` matter. */
typedef size_t kern_recur_bytes_fn(struct kern_backend *b, const struct kern_recur *op);

/* What kernels/backend.c checks. */

/** Fails with STATUS_USAGE unless the runs are as struct kern_run says. role: the operation. */
enum status kern_runs_check(const struct kern_run *runs, size_t n_runs, const char *role,
                            struct status_why *why);
/** Heads and sizes. */
enum status kern_recur_check(const struct kern_recur *op, struct status_why *why);

/** X(name) for each, as KERN_OPERATIONS has it. */
#define KERN_RECURRENT_OPERATIONS(X) X(convolve) X(recur) X(recur_bytes)

#define KERN_RECURRENT_DECLARE(name) kern_##name##_fn kern_##name;
KERN_RECURRENT_OPERATIONS(KERN_RECURRENT_DECLARE)

#endif

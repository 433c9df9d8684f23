/**
 * The operations that mix rows: the streams of a residual that has several rows for each token, and
 * the tokens of a run, of which one key is made; and those that measure a row and then change it.
 * The conventions are those of kernels/operations.h.
 */
#ifndef KERNELS_MIXING_H
#define KERNELS_MIXING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct kern_backend;
struct kern_weight;

enum { KERN_STREAMS_MAX = 8 };

/**
 * out[t][u] = y_weights[t][u] y[t] + sum over s of weights[t][s][u] x[t][s], rows of D: one chain
 * of fused multiply-adds in the order of s, begun with the rounded product with y, or without y
 * with that of s = 0. Without weights the streams are not mixed, but S = U: out[t][u] = x[t][u] +
 * y_weights[t][u] y[t], fused. To one row (U = 1, with weights) S may be any.
 */
struct kern_mix {
    const float *x;         /* [T, S, D] */
    const float *weights;   /* [T, stride]: a row begins with [S, U]; or NULL, with y */
    const float *y;         /* [T, D] or NULL */
    const float *y_weights; /* [T, stride]: a row begins with [U] */
    size_t stride;          /* 0: the same row of weights for all tokens */
    float *out;             /* [T, U, D]; may be x where U = S */
    size_t n_tokens, n_in, n_out, width; /* T; S and U, up to KERN_STREAMS_MAX but as above; D */
    bool by_output;                      /* a row of weights begins with [U, S] instead */
};

/** How the weights of streams come of products; see struct kern_stream_weights. */
struct kern_stream_rule {
    uint32_t n_streams; /* S, up to KERN_STREAMS_MAX */
    uint32_t n_rounds;
    float eps, magnitude;
    bool pre_only;
};

/**
 * Hyper-connections: the weights with which streams are mixed, from products a, in place. With
 * z = a * scale[part] + base: S numbers sigmoid(z) + eps, S numbers magnitude * sigmoid(z), and a
 * matrix [S, S], the softmax of each row of z, + eps. The matrix's columns are then divided by
 * their sum + eps, and n_rounds - 1 times its rows and its columns likewise. All in double, rounded
 * once. n_rounds 0: streams are not mixed, so that there is no matrix, and the second S numbers are
 * + eps, too. pre_only: the first S numbers alone.
 */
struct kern_stream_weights {
    float *a;                        /* [T, (2 + S) S], or [T, 2 S], or [T, S] */
    const struct kern_weight *scale; /* 1 row of 3, or of 2, or of 1 */
    const struct kern_weight *base;  /* 1 row, as many columns as a */
    size_t n_tokens;                 /* T */
    struct kern_stream_rule rule;
};

/** Columns of a. */
static inline size_t kern_stream_products(const struct kern_stream_rule *rule)
{
    size_t n = rule->n_streams;
    return rule->pre_only ? n : rule->n_rounds == 0 ? 2 * n : (2 + n) * n;
}

/**
 * y[i][e] = the mean of u over n_terms rows, weighted by the softmax of z over these rows for each
 * element e < width by itself; without z all weigh the same. Row rows[i][j] of u and of z is term j
 * of y[i]; UINT32_MAX: there is none. The first n_early terms take elements 0 .. width - 1 of their
 * rows, the others those from `late` on. In the order of the terms; at least one of them exists.
 */
struct kern_compress {
    const float *u, *z; /* [rows, stride]; z may be NULL */
    size_t stride;
    const uint32_t *rows; /* host: [n_out, n_terms] */
    size_t n_terms, n_early, late;
    float *y; /* [n_out, width] */
    size_t n_out, width;
};

/**
 * Keep of each row what lies above a threshold: x = max(0, x - (m + scale * s)), m being the mean
 * of the row and s its standard deviation, the root of the mean of (x - m)^2 or, with `sample`, of
 * their sum divided by width - 1. m, s and the threshold are in double.
 */
struct kern_sparsify {
    float *x; /* [n_rows, width], in place */
    size_t n_rows, width;
    float scale;
    bool sample;
};

/**
 * y = x of the length of `to`, row by row: x * sqrt(sum of to^2 / sum of x^2), where the latter sum
 * counts as at least least * width. The sums and the root are in double.
 */
struct kern_stretch {
    const float *x, *to; /* [n_rows, width] */
    float *y;            /* likewise; may be x, but not with `accumulate` */
    size_t n_rows, width;
    float least;
    bool accumulate; /* add to y instead of overwriting it */
};

/**
 * A share of v for each stream, by how well its k matches its q: out[t][s] = g v[t], where z =
 * k[t][s] . q[t][s] / sqrt(D) and g = sigmoid(sign(z) sqrt(max(|z|, 1e-6))), 1/2 where z is 0. The
 * product is summed in double, in the order of norms.
 */
struct kern_match {
    const float *k, *q; /* [T, S, D] */
    const float *v;     /* [T, D] */
    float *out;         /* [T, S, D]; may be k or q */
    size_t n_tokens, n_streams, width;
};

/** The first n numbers of each row become their softmax, in double and rounded once; others 0. */
struct kern_softmax {
    float *x; /* [n_rows, width], in place */
    size_t n_rows, width, n;
};

typedef enum status kern_mix_fn(struct kern_backend *b, const struct kern_mix *op,
                                struct status_why *why);
typedef enum status kern_stream_weights_fn(struct kern_backend *b,
                                           const struct kern_stream_weights *op,
                                           struct status_why *why);
typedef enum status kern_compress_fn(struct kern_backend *b, const struct kern_compress *op,
                                     struct status_why *why);

typedef enum status kern_sparsify_fn(struct kern_backend *b, const struct kern_sparsify *op,
                                     struct status_why *why);
typedef enum status kern_stretch_fn(struct kern_backend *b, const struct kern_stretch *op,
                                    struct status_why *why);
typedef enum status kern_softmax_fn(struct kern_backend *b, const struct kern_softmax *op,
                                    struct status_why *why);
typedef enum status kern_match_fn(struct kern_backend *b, const struct kern_match *op,
                                  struct status_why *why);

/** X(name) for each, as KERN_OPERATIONS has it. */
#define KERN_MIXING_OPERATIONS(X)                                                                  \
    X(mix) X(stream_weights) X(compress) X(sparsify) X(stretch) X(match) X(softmax)

#define KERN_MIXING_DECLARE(name) kern_##name##_fn kern_##name;
KERN_MIXING_OPERATIONS(KERN_MIXING_DECLARE)

#endif

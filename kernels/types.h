/**
 * What models and evaluations keep of the operations: weights, heads, scores, and the kinds of
 * activations and gates. The operations themselves are in kernels/operations.h.
 *
 * Shape letters, the same in the whole project: T tokens, D width, H heads, G key/value
 * heads, d head size, F feed-forward width, V vocabulary, E experts, K columns and R rows
 * of a weight. All matrices are row-major; [T, D] has D fastest.
 *
 * Memory: a `float *` named x, y, q, ... is backend memory from kern_alloc() (pointer
 * arithmetic is allowed, dereferencing is the backend's alone). Everything described as
 * "host" is ordinary memory. Weights are host memory, usually a read-only file mapping.
 */
#ifndef KERNELS_TYPES_H
#define KERNELS_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "gguf/type.h"

/** A weight matrix [R, K] as stored: a handle that can be pointed at other bytes. */
struct kern_weight {
    enum gguf_type type;
    size_t n_rows;             /* R: outputs */
    size_t n_cols;             /* K: inputs; a multiple of the type's block */
    size_t row_bytes;          /* from one row to the next; a bundle has so many times its rows */
    const void *data;          /* host, n_rows * row_bytes, or with `col_step` n_cols times that */
    const int32_t *rows;       /* [n_rows]: which row from `data` on each one is; NULL: all in their
                                * order. Not of vectors, embeddings, heads, or types with bundles */
    struct gguf_scales scales; /* of types with scale_elems, by numbers of rows from `data` on */
    size_t col_step; /* bytes from one element of a row to the next, of a type whose elements are
                      * bytes; 0: they touch. Of products alone, and of biases. */
    float scale;     /* of every output of the product, of every value of a vector or of an
                      * embedded row: a last multiplication; 1 where there is none */
    uint64_t generation; /* changes whenever the bytes do: what a device keys its copy by */
};

/** Rows first .. first + n - 1 of a weight; of a type with bundles, whole ones. */
static inline struct kern_weight kern_weight_rows(const struct kern_weight *w, size_t first,
                                                  size_t n)
{
    struct kern_weight part = *w;
    part.n_rows = n;
    if (w->rows) {
        part.rows = w->rows + first;
        return part;
    }
    part.data = (const uint8_t *)w->data + first * w->row_bytes;
    part.scales = gguf_scales_from(w->scales, first);
    return part;
}

/**
 * A generation that no weight of this process had before. New bytes at an old address need one: a
 * device may hold a copy of the old bytes.   Any thread.
 */
uint64_t kern_next_generation(void);

/**
 * What kern_activate() does to z = gate[i], given u = up[i], within a few half ulps.
 * sigmoid(z) = 1 / (1 + exp(-z)).
 */
enum kern_activation {
    KERN_SILU,         /* z sigmoid(z) u */
    KERN_GELU,         /* z / 2 (1 + tanh(sqrt(2 / pi) (z + 0.044715 z^3))) u */
    KERN_GELU_EXACT,   /* z Phi(z) u, Phi the normal distribution: (1 + erf(z / sqrt 2)) / 2 */
    KERN_SIGMOID,      /* sigmoid(z) u */
    KERN_RELU_SQUARED, /* max(z, 0)^2 u */
    KERN_TANH,         /* tanh(z) u */
    KERN_IDENTITY,     /* z u */
    KERN_SWIGLU_OAI,   /* a sigmoid(1.702 a) (c + 1), a = min(z, 7), c = u within -7 .. 7 */
    KERN_RELU,         /* max(z, 0) u */
    KERN_SOFTPLUS,     /* ln(1 + exp(z)) u */
    /* SwiGLU within limits: c = clamp, v = u within -c .. c */
    KERN_SWIGLU_CLAMP_BEFORE, /* a sigmoid(a) v, a = min(z, c) */
    KERN_SWIGLU_CLAMP_AFTER,  /* min(z sigmoid(z), c) v */
    /* rise z^2 + slope z where z > 0, else fall (exp(min(z, eps)) - 1 - z) + slope z; times u */
    KERN_XIELU,
    /* b tanh(z / b) sigmoid(z) v, b = beta, v = up_beta tanh(u / up_beta), or with an up_beta of 0
     * v = u */
    KERN_SITU,
    KERN_N_ACTIVATIONS
};

/** The numbers in some of their formulas. Those that a kind does not name are not read. */
struct kern_curve {
    float clamp;                   /* above 0 */
    float beta, up_beta;           /* above 0; the second may be 0 */
    double rise, fall, slope, eps; /* finite; eps at most 0 */
};

/** What the logits g of a token's router become: p. */
enum kern_gating {
    KERN_GATE_SOFTMAX,        /* of all experts */
    KERN_GATE_SIGMOID,        /* of each expert by itself */
    KERN_GATE_SOFTMAX_CHOSEN, /* of the chosen experts only; they are chosen by p = g */
    KERN_GATE_SQRT_SOFTPLUS,  /* sqrt(ln(1 + exp(g))) */
    KERN_GATE_SPARSEMIXER     /* each choice has its own softmax, and p = g; see below */
};

/**
 * The experts of each token and their shares. Experts are chosen by p + selection_bias (without
 * bias and groups: by g, which is the same order); equals: the lower index. With groups of E /
 * n_groups consecutive experts each, only those of the n_groups_used best groups can be chosen; a
 * group counts as the sum of its two best experts. The shares are p of the chosen, if `normalise`
 * divided by their sum or 6.1e-5, whichever is larger (by their sum + sum_eps, where that is above
 * 0), times scale; all in double, rounded once. Shares of a sparse mixer are not divided: each is
 * a softmax over the experts that were not chosen before it and whose logit g has c - g <= 0.02
 * max(|g|, c), c being the chosen one's. A
 * token with a logit that is NaN or +infinity (or no logit above -infinity; or such a p + bias)
 * gets the first experts and NaN as shares.
 */
struct kern_route {
    const float *logits; /* [T, E] */
    size_t n_tokens, n_experts, n_used;
    enum kern_gating gating;
    const struct kern_weight *selection_bias; /* 1 row of E columns, or NULL */
    const int32_t *given; /* host, [T, n_used], each below E: nothing is chosen; or NULL */
    size_t n_groups, n_groups_used; /* n_groups 0 or 1: no groups */
    bool groups_by_best; /* a group counts as its best expert instead of the sum of its two best */
    bool normalise;
    float sum_eps;
    float scale;      /* 0 stands for 1 */
    int32_t *experts; /* host, out: [T, n_used], best first */
    float *shares;    /* host, out: likewise */
};

/**
 * A run of queries that share their keys: they attend to all n_parent keys of the parent,
 * and to their own segment's keys up to themselves.
 */
struct kern_query_range {
    size_t q_row, n_q;    /* rows of q and out */
    size_t q_offset;      /* index of the first query in its segment */
    size_t kv_row;        /* row of k and v that holds the segment's first token */
    size_t parent_kv_row; /* first row of the parent's keys; any if n_parent is 0 */
    size_t n_parent;
};

/** Blocks of keys begin at multiples of it; see struct kern_attention. */
enum { KERN_KEY_BLOCK = 64 };
/** The most numbers that are turned together; see struct kern_round. */
enum { KERN_TURN_MAX = 1024 };

/**
 * Rows of log-probabilities as a base-logits file holds them, in host memory: a read-only
 * mapping will do. A record is a float32 scale, a float32 floor (together the first four codes),
 * V codes, and one unused code if V is odd: log p_i = scale * code_i + floor, rounded to float32
 * once. Records are read where they lie, all rows of a call side by side, from their beginning to
 * their end (twice with want_js).
 */
struct kern_recorded {
    const uint16_t *records; /* [n_rows, stride] */
    size_t stride;           /* codes per record: kern_record_codes(V) */
    double cut; /* tokens with log p <= cut are left out of kl (llama.cpp: -16); -INFINITY: none */
};

/** Codes of a record of n_vocab tokens: scale and floor, the tokens, one more if they are odd. */
static inline size_t kern_record_codes(size_t n_vocab)
{
    return 4 + (n_vocab + 1) / 2 * 2;
}

/**
 * Hidden rows (after the output norm) and the matrix that turns them into logits. The product is
 * multiplied by the matrix's scale, the bias is added. A soft cap c then makes c tanh(l / c) of a
 * logit l, and NaN of an infinite one.
 */
struct kern_head {
    const float *hidden;                  /* [n_rows, K] */
    const struct kern_weight *matrix;     /* [V, K] */
    const struct kern_weight *bias;       /* 1 row of V columns, or NULL */
    float soft_cap;                       /* finite, not negative; 0: none */
    const struct kern_recorded *recorded; /* head 0 of several only: instead of the above */
    /* Rows that the vocabulary of the others lacks, for the same hidden rows and as wide: no score
       knows of them but kern_row_score.beyond. NULL: none. */
    const struct kern_head *beyond;
};

/** What is scored: the log-probability of `token` after hidden row `row`. */
struct kern_target {
    uint32_t row;
    int32_t token;
};

/** Per head and row. Natural logarithms; sums in double. */
struct kern_row_score {
    double max_logit;
    double log_sum; /* ln sum_i exp(l_i - max_logit) */
    double entropy; /* -sum_i p_i ln p_i */
    int32_t argmax; /* the first of equals; -1 if no logit is above -infinity */
    double beyond;  /* what head->beyond has of the probability of both together; 0 without it */
};

/** Per head and target. */
struct kern_target_score {
    double log_prob; /* logit - max_logit - log_sum; of a recorded head: as stored */
    uint32_t rank;   /* 1 + number of tokens that are more likely (equals: lower id first) */
};

/** So many of the most likely tokens are kept; agreement is counted for this number of sizes. */
enum { KERN_N_TOPS = 3, KERN_TOP_MAX = 20 };

/** One of the most likely tokens of a row. */
struct kern_top {
    int32_t token;   /* -1: there are no more whose logit is above -infinity */
    double log_prob; /* as of a target */
};

/**
 * Per head h and row, p being the distribution of head 0 and q that of head h; natural
 * logarithms. Heads with the same logits give exactly 0, 0, 0 and full agreement.
 */
struct kern_pair_score {
    double kl;         /* KL(p || q) = sum_i p_i (ln p_i - ln q_i) */
    double reverse_kl; /* KL(q || p) */
    double js;         /* Jensen-Shannon: of p and q with their mean, averaged; 0 unless want_js */
    double tv;         /* total variation: sum_i |p_i - q_i| / 2; 0 unless want_js */
    /* How many of the 1, 5, 10 most likely tokens of head 0 (equals: lower id first) are among
     * those of head h; tokens of probability 0 are never counted. */
    uint8_t common_top[KERN_N_TOPS];
};

#endif

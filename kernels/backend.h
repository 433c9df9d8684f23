/**
 * THE interface between the model and the hardware: eager operations, in order,
 * on float32 arrays in the backend's memory. Two implementations: cpu, cuda.
 *
 * Shape letters, the same in the whole project: T tokens, D width, H heads, G key/value
 * heads, d head size, F feed-forward width, V vocabulary, E experts, K columns and R rows
 * of a weight. All matrices are row-major; [T, D] has D fastest.
 *
 * Memory: a `float *` named x, y, q, ... is backend memory from kern_alloc() (pointer
 * arithmetic is allowed, dereferencing is the backend's alone). Everything described as
 * "host" is ordinary memory. Weights are host memory, usually a read-only file mapping.
 *
 * Determinism: an output element is a fixed sequence of float32 operations that depends on
 * the operation's own inputs only, never on the number of tokens in the call, on blocking,
 * threads or the ISA (except that products on AMX tiles, where they are asked for, are sums of
 * their own kind; kernels/cpu/gemm/product.h). tests/kernels checks that for every operation.
 *
 * Every operation returns STATUS_CANCELLED soon after the cancel flag is set.
 */
#ifndef KERNELS_BACKEND_H
#define KERNELS_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "gguf/type.h"
#include "kernels/atomic.h"
#include "kernels/precision.h"
#include "kernels/recurrent/op.h"
#include "kernels/times.h"

/** A weight matrix [R, K] as stored: a handle that can be pointed at other bytes. */
struct kern_weight {
    enum gguf_type type;
    size_t n_rows;       /* R: outputs */
    size_t n_cols;       /* K: inputs; a multiple of the type's block */
    size_t row_bytes;    /* from one row to the next; a bundle has so many times its rows */
    const void *data;    /* host, n_rows * row_bytes */
    float scale;         /* of every output of the product, of every value of a vector or of an
                          * embedded row: a last multiplication; 1 where there is none */
    uint64_t generation; /* changes whenever the bytes do: what a device keys its copy by */
};

/**
 * Normalise n_rows rows of x. Row r, with m = 0 or, if `center`, the mean of the row:
 *     y = (x - m) / sqrt(mean((x - m)^2) + eps) * gain + bias
 * (RMSNorm, or LayerNorm). The means are in double. The gain and bias of row r are the part
 * r mod n_groups, of `width` values, of their vectors: the rows can be the heads of all tokens.
 */
struct kern_norm {
    const struct kern_weight *gain; /* 1 row of n_groups * width columns; NULL: all 1 */
    const struct kern_weight *bias; /* likewise; NULL: none */
    bool center;
    float eps;
    const float *x; /* [n_rows, width] */
    float *y;       /* likewise; may be x, but not with `accumulate` */
    size_t n_rows, width;
    size_t n_groups; /* at least 1 */
    bool accumulate; /* add to y instead of overwriting it */
};

/** y = W x for T rows of x, then, in this order: * scale, + bias, + what y held. */
struct kern_linear {
    const struct kern_weight *weight; /* [R, K] */
    const struct kern_weight *bias;   /* 1 row of R columns, or NULL */
    const float *x;                   /* [T, K] */
    float *y;                         /* [T, y_stride]; columns 0..R-1 are written */
    size_t y_stride;                  /* >= R */
    size_t n_tokens;                  /* T */
    bool accumulate;                  /* add to y (the residual) instead of overwriting it */
    /* A hint: the operation before this one was a linear with the same, unchanged x, so its packed
     * copy may be used again. */
    bool same_x;
};

/**
 * Rotate the first 2 * n_pairs elements of each head, in place.
 * Pair i is (2i, 2i+1), or (i, i + n_pairs) with `split_halves`.
 * angles: backend memory, [n_positions, n_pairs, 2] holding cos and sin of the pair's angle
 * at that position, each times the magnitude (YaRN's attention factor); see
 * kern_rope_fill(). positions: host, T entries below n_positions.
 */
struct kern_rope {
    float *x; /* [T, stride], heads one after the other from column 0 */
    size_t stride;
    size_t n_tokens, n_heads, head_size, n_pairs;
    bool split_halves;
    const float *angles;
    size_t n_positions;
    const int32_t *positions;
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

/**
 * out = softmax(cap(q k^T * scale), causal) v per head; query head i reads key head i / (H/G).
 * Keys count from the parent's first token: index 0 .. n_parent-1 is the parent, then the
 * segment. Blocks of keys begin at multiples of KERN_KEY_BLOCK of that index, so the bits do
 * not depend on whether a prefix was shared.
 *
 * What is 0 or NULL of the last fields is left out. sliding_window w: query index i sees only keys
 * with index j > i - w. chunk c: only those with j / c == i / c, in integers. Blocks of keys that
 * no query sees are not read. soft_cap c: cap(s) = c tanh(s / c), else s. sinks: each head's
 * softmax has one logit more, whose share is dropped; cap and scale do not concern it.
 */
struct kern_attention {
    const float *q;                                    /* [T, H * d] */
    const float *k;                                    /* [rows, G * d] */
    const float *v;                                    /* [rows, G * dv] */
    float *out;                                        /* [T, H * dv] */
    size_t n_heads, n_kv_heads, head_size, value_size; /* H, G, d, dv */
    float scale;
    float soft_cap; /* finite, not negative */
    size_t sliding_window, chunk;
    const struct kern_weight *sinks;       /* 1 row of H columns, of scale 1, or NULL */
    const struct kern_query_range *ranges; /* host */
    size_t n_ranges;
};
enum { KERN_KEY_BLOCK = 64 };

/**
 * Rows of log-probabilities as a base-logits file holds them, in host memory: a read-only
 * mapping will do. A record is a float32 scale, a float32 floor (together the first four codes),
 * V codes, and one unused code if V is odd: log p_i = scale * code_i + floor, rounded to float32
 * once. Records are read where they lie, all rows of a call side by side, from their begin to
 * their end (twice with want_js).
 */
struct kern_recorded {
    const uint16_t *records; /* [n_rows, stride] */
    size_t stride;           /* codes per record: kern_record_codes(V) */
    double cut; /* tokens with log p <= cut are left out of kl (llama.cpp: -16); -INFINITY: none */
};

/**
 * What kern_activate() does to z = gate[i], given u = up[i], within a few half ulps.
 * sigmoid(z) = 1 / (1 + exp(-z)).
 */
enum kern_activation {
    KERN_SILU,         /* z sigmoid(z) u */
    KERN_GELU,         /* z / 2 (1 + tanh(sqrt(2 / pi) (z + 0.044715 z^3))) u */
    KERN_SIGMOID,      /* sigmoid(z) u */
    KERN_RELU_SQUARED, /* max(z, 0)^2 u */
    KERN_SWIGLU_OAI,   /* a sigmoid(1.702 a) (c + 1), a = min(z, 7), c = u within -7 .. 7 */
    KERN_N_ACTIVATIONS
};

struct kern_activate {
    enum kern_activation kind;
    float *gate;     /* [n], in place */
    const float *up; /* [n]; NULL: all 1, which KERN_SWIGLU_OAI does not take */
    size_t n;
};

/** What the logits g of a token's router become: p. */
enum kern_gating {
    KERN_GATE_SOFTMAX,       /* of all experts */
    KERN_GATE_SIGMOID,       /* of each expert by itself */
    KERN_GATE_SOFTMAX_CHOSEN /* of the chosen experts only; they are chosen by p = g */
};

/**
 * The experts of each token and their shares. Experts are chosen by p + selection_bias (without
 * bias and groups: by g, which is the same order); equals: the lower index. With groups of E /
 * n_groups consecutive experts each, only those of the n_groups_used best groups can be chosen; a
 * group counts as the sum of its two best experts. The shares are p of the chosen, if `normalise`
 * divided by their sum or 6.1e-5, whichever is larger, times scale; all in double, rounded once. A
 * token with a logit that is NaN or +infinity (or no logit above -infinity; or such a p + bias)
 * gets the first experts and NaN as shares.
 */
struct kern_route {
    const float *logits; /* [T, E] */
    size_t n_tokens, n_experts, n_used;
    enum kern_gating gating;
    const struct kern_weight *selection_bias; /* 1 row of E columns, or NULL */
    size_t n_groups, n_groups_used;           /* n_groups 0 or 1: no groups */
    bool groups_by_best; /* a group counts as its best expert instead of the sum of its two best */
    bool normalise;
    float scale;      /* 0 stands for 1 */
    int32_t *experts; /* host, out: [T, n_used], best first */
    float *shares;    /* host, out: likewise */
};

/** y[r * y_stride + i] = x[r * x_stride + i] for i < width: cuts rows apart and joins them. */
struct kern_copy {
    const float *x;
    size_t x_stride; /* at least width, as is y_stride; or 0: one row for all */
    float *y;        /* apart from x */
    size_t y_stride;
    size_t width, n_rows;
};

/**
 * x becomes what the blocks of a key/value cache hold of it: packed, and decoded again
 * (kernels/quant/round.h). n_turn, a power of two: the cache holds turned numbers, so that runs of
 * n_turn of them are multiplied by the orthonormal Walsh-Hadamard matrix, rounded, and multiplied
 * by it again, which undoes the first product but for float32's rounding.
 */
struct kern_round {
    enum gguf_type type; /* one of KERN_ROUND_TYPES */
    float *x;            /* [n], in place */
    size_t n;            /* a multiple of the type's block and of n_turn */
    size_t n_turn;       /* 0: the numbers as they are; at most KERN_TURN_MAX */
};
enum { KERN_TURN_MAX = 1024 };

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
};

/** Per head and target. */
struct kern_target_score {
    double log_prob; /* logit - max_logit - log_sum; of a recorded head: as stored */
    uint32_t rank;   /* 1 + number of tokens that are more likely (equals: lower id first) */
};

/** The sizes of the most likely tokens whose agreement is counted. */
enum { KERN_N_TOPS = 3, KERN_TOP_MAX = 10 };

/**
 * Per head h and row, p being the distribution of head 0 and q that of head h; natural
 * logarithms. Heads with the same logits give exactly 0, 0, 0 and full agreement.
 */
struct kern_pair_score {
    double kl;         /* KL(p || q) = sum_i p_i (ln p_i - ln q_i) */
    double reverse_kl; /* KL(q || p) */
    double js;         /* Jensen-Shannon: of p and q with their mean, averaged; 0 unless want_js */
    /* Of the 1, 5, 10 most likely tokens of head 0 (equals: lower id first), how many are among
     * those of head h; tokens of probability 0 are never counted. */
    uint8_t common_top[KERN_N_TOPS];
};

/**
 * Score n_rows hidden rows under every head. Head 0 is the base of the pair scores.
 * The heads are multiplied a vocabulary tile at a time; no memory grows with rows x V, and
 * pair scores add less than 150 bytes per row and head to it (kern_score_bytes() has them);
 * recorded rows are decoded a cache line at a time.
 *
 * A recorded head 0 is taken as stored, not renormalised: its logits are the log p, so that
 * max_logit + log_sum, the logarithm of their sum, is about 0 (the codes put it 1.3e-4 off at
 * most, raising small p to the floor V e^-16; more, and no model wrote the record). reverse_kl +
 * that logarithm is the divergence from the renormalised record. kl = sum_i p_i (log p_i - ln q_i)
 * over the tokens above the cut may come out slightly negative, as may the others, and is passed on
 * so. Between live heads, what rounding leaves below 0 (down to -1e-9) is 0. A logit that is NaN or
 * +infinity, or a record whose scale or floor is not finite, makes the sums of its row NaN.
 */
struct kern_score {
    size_t n_heads;
    const struct kern_head *heads; /* host; all matrices have the same n_rows = V */
    size_t n_rows;
    size_t n_targets;
    const struct kern_target *targets;       /* host; any order, several per row allowed */
    struct kern_row_score *rows;             /* host, out: [n_heads, n_rows] */
    struct kern_target_score *target_scores; /* host, out: [n_heads, n_targets] */
    struct kern_pair_score *pairs; /* host, out: [n_heads, n_rows], head 0's zero; NULL: none */
    bool want_js;                  /* with pairs: costs a second pass over the vocabulary */
};

/**
 * Encode the log-probabilities of n_rows hidden rows as struct kern_recorded has them, from
 * float32 logits l with maximum M, m = max(min l, M - reach) and S = ln sum_i exp(l_i - M), summed
 * in double and rounded to float32: scale = (M - m) / 65535, floor = m - M - S in float32;
 * code_i = (l_i - m) / scale rounded, halves to even, where l_i > m, else 0. An unused code is 0.
 * A row with a NaN or +infinity gets a floor that is not finite.
 * Memory: whole rows of logits, as many as 64 MiB hold, at least 32.
 */
struct kern_record {
    struct kern_head head;
    size_t n_rows;
    uint16_t *records; /* host, out: [n_rows, stride] */
    size_t stride;     /* kern_record_codes(V) */
    float reach;       /* 0: 16, as llama.cpp records */
};

/**
 * A generation that no weight of this process had before. New bytes at an old address need one: a
 * device may hold a copy of the old bytes.   Any thread.
 */
uint64_t kern_next_generation(void);

struct kern_backend;

/** What computes (results name it), and which sizes suit it. */
struct kern_description {
    const char *device;   /* "cpu", "NVIDIA H200 (sm_90, CUDA 13.0)" */
    const char *isa;      /* "avx512", "cuda" */
    const char *products; /* what products are made of, as docs/json.md lists them */
    const char *remarks;  /* sentences for the user, each ending with a newline */
    unsigned n_threads;   /* of the host */
    bool own_memory;      /* what kern_alloc() gives is not the host's */
    size_t tile_tokens;   /* tokens of a tile of the forward pass; 0: the caller chooses */
    size_t batch_tokens;  /* tokens of a batch, likewise */
};

/* The operations. */

/** x[t] = row tokens[t] of the matrix, decoded, * scale. tokens: host, each below matrix->n_rows.
 */
typedef enum status kern_embed_fn(struct kern_backend *b, const struct kern_weight *matrix,
                                  const int32_t *tokens, size_t n_tokens, float *x,
                                  struct status_why *why);
typedef enum status kern_norm_fn(struct kern_backend *b, const struct kern_norm *op,
                                 struct status_why *why);
typedef enum status kern_linear_fn(struct kern_backend *b, const struct kern_linear *op,
                                   struct status_why *why);
typedef enum status kern_rope_fn(struct kern_backend *b, const struct kern_rope *op,
                                 struct status_why *why);
typedef enum status kern_attention_fn(struct kern_backend *b, const struct kern_attention *op,
                                      struct status_why *why);
typedef enum status kern_activate_fn(struct kern_backend *b, const struct kern_activate *op,
                                     struct status_why *why);
typedef enum status kern_route_fn(struct kern_backend *b, const struct kern_route *op,
                                  struct status_why *why);
/** x[r] *= factors[r] for rows of `width`; factors: host. */
typedef enum status kern_scale_rows_fn(struct kern_backend *b, float *x, size_t width,
                                       size_t n_rows, const float *factors, struct status_why *why);
typedef enum status kern_copy_rows_fn(struct kern_backend *b, const struct kern_copy *op,
                                      struct status_why *why);
typedef enum status kern_round_fn(struct kern_backend *b, const struct kern_round *op,
                                  struct status_why *why);
/** y[i] = x[rows[i]]; rows: host. */
typedef enum status kern_gather_fn(struct kern_backend *b, const float *x, size_t width,
                                   const uint32_t *rows, size_t n_rows, float *y,
                                   struct status_why *why);
/** y[rows[i]] += shares[i] * x[i], no row twice in a call; rows, shares: host. */
typedef enum status kern_scatter_add_fn(struct kern_backend *b, const float *x, size_t width,
                                        const uint32_t *rows, const float *shares, size_t n_rows,
                                        float *y, struct status_why *why);
typedef enum status kern_score_fn(struct kern_backend *b, const struct kern_score *op,
                                  struct status_why *why);
typedef enum status kern_record_fn(struct kern_backend *b, const struct kern_record *op,
                                   struct status_why *why);

/**
 * Working memory that an operation takes inside the backend, in bytes, to state limits before a
 * run. Only shapes, types and counts of `op` matter; no array is read. The backend keeps the
 * most that an operation took, so the largest of these is what a sequence of them needs.
 */
typedef size_t kern_linear_bytes_fn(struct kern_backend *b, const struct kern_linear *op);
typedef size_t kern_attention_bytes_fn(struct kern_backend *b, const struct kern_attention *op);
typedef size_t kern_score_bytes_fn(struct kern_backend *b, const struct kern_score *op);
typedef size_t kern_record_bytes_fn(struct kern_backend *b, const struct kern_record *op);

/**
 * How many rows to give to a call of kern_record(): a multiple of the rows that share one decoding
 * of the matrix. On a device also enough to compute some while others are copied to the host.
 */
typedef size_t kern_record_rows_fn(struct kern_backend *b, const struct kern_weight *matrix);

/** Their list: X(name) for each operation. A backend has all of them. */
/* clang-format off */
#define KERN_BACKEND_OPERATIONS(X)                                                                 \
    X(embed) X(norm) X(linear) X(rope) X(attention) X(activate) X(route) X(scale_rows)             \
    X(copy_rows) X(round) X(gather) X(scatter_add) X(score) X(record) X(linear_bytes)              \
    X(attention_bytes) X(score_bytes) X(record_bytes) X(record_rows) X(convolve) X(recur)          \
    X(recur_bytes)
/* clang-format on */

/** kern_embed(), kern_norm(), ...: they check the arguments and call the backend. */
#define KERN_OPERATION_DECLARE(name) kern_##name##_fn kern_##name;
KERN_BACKEND_OPERATIONS(KERN_OPERATION_DECLARE)

#define KERN_OPERATION_MEMBER(name) kern_##name##_fn *(name);
/** What an implementation has. Arguments have been checked by the functions of this header. */
struct kern_backend_ops {
    const char *name;
    void (*close)(struct kern_backend *b);
    enum status (*alloc)(struct kern_backend *b, void **out, size_t n_bytes,
                         struct status_why *why);
    void (*free)(struct kern_backend *b, void *memory);
    enum status (*upload)(struct kern_backend *b, void *to, const void *from, size_t n_bytes,
                          struct status_why *why);
    enum status (*download)(struct kern_backend *b, void *to, const void *from, size_t n_bytes,
                            struct status_why *why);
    /* These three are NULL where there is nothing to do. */
    enum status (*preload)(struct kern_backend *b, const struct kern_weight *weight,
                           struct status_why *why);
    enum status (*preload_heads)(struct kern_backend *b, const struct kern_head *heads,
                                 size_t n_heads, struct status_why *why);
    void (*forget)(struct kern_backend *b, const void *data, size_t n_bytes);
    struct kern_description (*describe)(const struct kern_backend *b);
    KERN_BACKEND_OPERATIONS(KERN_OPERATION_MEMBER)
    /* NULL where operations end when their calls return. Else: an operation begins, it ends (it may
     * have failed), and those that ended are to be counted into the clock. */
    void (*begin_phase)(struct kern_backend *b);
    void (*end_phase)(struct kern_backend *b, enum kern_phase phase);
    void (*collect_times)(struct kern_backend *b);
};

/** First member of every implementation's own struct. */
struct kern_backend {
    const struct kern_backend_ops *ops;
    const atomic_bool *cancel; /* may be NULL; set by kern_set_cancel() */
    struct kern_clock *clock;  /* the implementation's; backend.c counts operations into it */
};

/** Release the backend; its memory must have been freed. NULL is allowed. */
void kern_close(struct kern_backend *b);
/** The strings live as long as the backend. */
struct kern_description kern_describe(const struct kern_backend *b);
/** From now on operations end with STATUS_CANCELLED once *flag is true. NULL: never. */
void kern_set_cancel(struct kern_backend *b, const atomic_bool *flag);
/** Where the time of the operations so far went; waits for those of a device. */
void kern_times_read(struct kern_backend *b, struct kern_times *out);

/** Backend memory of at least n_bytes, aligned to 64; contents undefined. *out = NULL first. */
enum status kern_alloc(struct kern_backend *b, void **out, size_t n_bytes, struct status_why *why);
/** NULL is allowed. */
void kern_free(struct kern_backend *b, void *memory);
/** Host to backend, backend to host. Both end only when the bytes are there. */
enum status kern_upload(struct kern_backend *b, void *to, const void *from, size_t n_bytes,
                        struct status_why *why);
enum status kern_download(struct kern_backend *b, void *to, const void *from, size_t n_bytes,
                          struct status_why *why);

/**
 * Do in advance what the first kern_linear() of a weight would do: copy it to the device if there
 * is room for it to stay, and try the library's products. A CPU has nothing to do.
 */
enum status kern_preload(struct kern_backend *b, const struct kern_weight *weight,
                         struct status_why *why);
/** The same for the first kern_score() of these heads; those without a matrix do not count. */
enum status kern_preload_heads(struct kern_backend *b, const struct kern_head *heads,
                               size_t n_heads, struct status_why *why);
/**
 * Weights within these bytes of the host are not used for now: what a device has of them is freed,
 * and the bytes are not read again before an operation names them. Before they are unmapped.
 */
void kern_forget(struct kern_backend *b, const void *data, size_t n_bytes);

/** Codes of a record of n_vocab tokens: scale and floor, the tokens, one more if they are odd. */
static inline size_t kern_record_codes(size_t n_vocab)
{
    return 4 + (n_vocab + 1) / 2 * 2;
}

/**
 * Fill host memory with the angles for kern_rope: cos and sin of position * frequency[i], computed
 * in double and rounded once, times magnitude. angles: [n_positions, n_pairs, 2].
 */
void kern_rope_fill(float *angles, size_t n_positions, const double *frequency, size_t n_pairs,
                    double magnitude);

#endif

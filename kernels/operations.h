/**
 * The operations of layers: eager, in order, on float32 arrays in the backend's memory.
 * kernels/types.h has the shape letters and says what is backend memory and what is the host's.
 * Two families have headers of their own: kernels/scoring.h and kernels/recurrent.h.
 *
 * Determinism: an output element is a fixed sequence of float32 operations that depends on
 * the operation's own inputs only, never on the number of tokens in the call, on blocking,
 * threads or the ISA (except that products on AMX tiles, where they are asked for, are sums of
 * their own kind; kernels/cpu/gemm/product.h). tests/kernels checks that for every operation.
 *
 * Every operation returns STATUS_CANCELLED soon after the cancel flag is set.
 *
 * Only a file that calls or implements an operation includes its family's header, so that few files
 * are compiled again when a signature changes.
 */
#ifndef KERNELS_OPERATIONS_H
#define KERNELS_OPERATIONS_H

#include <stdbool.h>

#include "base/status.h"
#include "kernels/types.h"

struct kern_backend;

/**
 * Normalise n_rows rows of x. Row r, with m = 0 or, if `center`, the mean of the row:
 *     y = (x - m) / sqrt(mean((x - m)^2) + eps) * gain + bias
 * (RMSNorm, or LayerNorm). The means are in double. The gain and bias of row r are the part
 * r mod n_groups, of `width` values, of their vectors: the rows can be the heads of all tokens.
 * `plain` leaves out the division.
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
    bool plain;
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
    /* A hint: the operations after this one are an activation, with y as the gate or as `up`, and a
     * linear of that gate. Nobody reads y or the gate after these: they may hold anything then. */
    bool passing;
    /* For who watches products, as clients/imatrix/ does; no product depends on it. Row i counts
     * where marks[mark_rows[i]] is not 0; mark_rows NULL: marks[i]. Host; marks NULL: nobody said.
     */
    const uint8_t *marks;
    const uint32_t *mark_rows;
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
 * Which keys queries see, of those that they could: what kern_choose() wrote. A key that is not
 * chosen counts as one that comes after the query. Blocks of keys of which no query has chosen one
 * are not read. Where all are chosen the bits are those without a choice.
 */
struct kern_chosen {
    const uint64_t *bits; /* backend memory, [rows of q, n_sets, kern_chosen_words()]; NULL: all */
    size_t n_sets;        /* 1: of all heads; G: of each key head */
    size_t most_keys;     /* as in struct kern_choose */
};

/** Words of a row of bits. */
static inline size_t kern_chosen_words(size_t most_keys)
{
    return (most_keys + 63) / 64;
}

/**
 * For each query the n_best keys with the largest scores, as a row of bits: bit j of it is bit j %
 * 64 of word j / 64. Of equal scores (-0 is equal to +0) that of the lower index counts as larger;
 * a NaN counts as the lowest. A query sees n_seen keys, 0 .. n_seen - 1, which lie as those of
 * attention do. One that sees n_best or fewer has chosen all of them, and no score is computed.
 *
 * With weights all heads choose as one, by
 *     score(query, key) = sum over heads i = 0, 1, ... of weights[i] max(q_i . k, 0)
 * where each product with a weight and each sum is rounded on its own. Without weights each head
 * chooses for itself, by q_i . k, or with `as_one` all do as with weights of 1. A dot product is a
 * chain of fused multiply-adds along d.
 *
 * pool P > 1: each key is made of P positions, key w of w P .. w P + P - 1. Then n_seen, most_keys
 * and bits are of positions: a query that sees n of them sees n / P keys, rounded down. A chosen
 * key's positions are chosen, and those after the last key that it sees, whatever n_best is. With
 * `fill` n_best P + P - 1 positions are: where fewer than P - 1 come after the last key, the next
 * best one's first positions are chosen, too (together 1).
 *
 * together b > 1: runs of b keys, which begin at multiples of b, are chosen as one. A run's score
 * is the largest of the query's keys in it, and n_best counts runs. The last n_local runs of those
 * that a query sees come before all others.
 */
struct kern_choose {
    const float *q;       /* [T, Hi * d] */
    const float *k;       /* [rows, k_stride], of which the first d columns are the key */
    const float *weights; /* [T, Hi]; or NULL */
    bool as_one;          /* of heads without weights */
    uint64_t *bits;       /* out, backend memory: [T, sets, kern_chosen_words()] */
    size_t n_heads, head_size, k_stride; /* Hi, d, at least d */
    size_t n_best;
    size_t pool; /* 0 is 1 */
    bool fill;
    size_t together, n_local;              /* 1 or more; 0 or more */
    size_t most_keys;                      /* no query sees more */
    const uint32_t *n_seen;                /* host: by row of q; NULL: the query's index + 1 */
    const struct kern_query_range *ranges; /* host; n_parent and rows are of keys */
    size_t n_ranges;
};

/** Sets of keys that a query chooses. */
static inline size_t kern_choose_sets(const struct kern_choose *op)
{
    return op->weights || op->as_one ? 1 : op->n_heads;
}

static inline size_t kern_choose_pool(const struct kern_choose *op)
{
    return op->pool > 0 ? op->pool : 1;
}

/** Keys that no query sees more of: where they are pools, fewer than positions. */
static inline size_t kern_choose_most(const struct kern_choose *op)
{
    return op->most_keys / kern_choose_pool(op);
}

/** How many keys, or positions of pools, query q of a range sees. */
static inline size_t kern_choose_seen(const struct kern_choose *op,
                                      const struct kern_query_range *range, size_t q)
{
    return op->n_seen ? op->n_seen[range->q_row + q] : range->n_parent + range->q_offset + q + 1;
}

/**
 * out = softmax(cap(q k^T * scale), causal) v per head; query head i reads key head i / (H/G).
 * Keys count from the parent's first token: index 0 .. n_parent-1 is the parent, then the
 * segment. Blocks of keys begin at multiples of KERN_KEY_BLOCK of that index, so the bits do
 * not depend on whether a prefix was shared.
 *
 * further: keys that are not of single tokens. They come first, and neither window nor chunk
 * concerns them; the query with index i sees (i + 1) / run of them, in integers. `chosen` is then
 * of them alone.
 *
 * What is 0 or NULL of the last fields is left out. sliding_window w: query index i sees only keys
 * with index j > i - w. chunk c: only those with j / c == i / c, in integers. Blocks of keys that
 * no query sees are not read. soft_cap c: cap(s) = c tanh(s / c), else s. sinks: each head's
 * softmax has one logit more, whose share is dropped; cap and scale do not concern it.
 */
struct kern_further {
    const float *k, *v;                    /* [rows, G * d], [rows, G * dv] */
    const struct kern_query_range *ranges; /* host, as many as there are of queries: their rows */
    size_t run;                            /* tokens that each is of; 0: there are none */
};

struct kern_attention {
    const float *q;                                    /* [T, H * d] */
    const float *k;                                    /* [rows, G * d] */
    const float *v;                                    /* [rows, G * dv] */
    float *out;                                        /* [T, H * dv] */
    size_t n_heads, n_kv_heads, head_size, value_size; /* H, G, d, dv */
    float scale;
    float soft_cap; /* finite, not negative */
    size_t sliding_window, chunk;
    const struct kern_weight *sinks; /* 1 row of H columns, of scale 1, or NULL */
    struct kern_chosen chosen;       /* with it the scale is above 0 */
    struct kern_further further;
    /* What rows of k were rounded to, and turned for, as in struct kern_round: no backend reads it,
       but an observer may. */
    enum gguf_type k_type;
    size_t k_turn;
    const struct kern_query_range *ranges; /* host */
    size_t n_ranges;
};

struct kern_activate {
    enum kern_activation kind;
    struct kern_curve curve; /* the numbers that the kind names */
    float *gate;             /* [n], in place */
    const float
        *up; /* [n]; NULL: all 1, which kinds with limits of u do not take (KERN_SWIGLU_*) */
    size_t n;
};

/**
 * y[r * y_stride + i] = x[r * x_stride + i / spread] for i < width: cuts rows apart and joins them,
 * or gives each element of x to `spread` elements of y.
 */
struct kern_copy {
    const float *x;
    size_t x_stride; /* at least width / spread; or 0: one row for all */
    float *y;        /* apart from x */
    size_t y_stride; /* at least width */
    size_t width, n_rows;
    size_t spread; /* a divisor of width; 0 stands for 1 */
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
    size_t n_turn;       /* 0: as they are; of kern_round_is_turned(), at most KERN_TURN_MAX */
    size_t row;          /* of Q8_KV, which shares a scale in each: a divisor of n */
    float scale;         /* the tensor's, where kern_round_is_scaled(): above 0; 0 stands for 1 */
};

/** y[i] = x[rows[i]] for i < n. */
struct kern_gather {
    const float *x;
    const uint32_t *rows; /* host */
    size_t n, width;
    float *y;
};

/** y[rows[i]] += shares[i] * x[from[i]] for i < n. What is added to one row is added in order. */
struct kern_scatter {
    const float *x;
    const uint32_t *from; /* host; NULL: 0, 1, ... */
    const uint32_t *rows; /* host; equal ones stand side by side */
    const float *shares;  /* host */
    size_t n, width;
    float *y; /* apart from x */
};

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
typedef enum status kern_choose_fn(struct kern_backend *b, const struct kern_choose *op,
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
typedef enum status kern_gather_fn(struct kern_backend *b, const struct kern_gather *op,
                                   struct status_why *why);
typedef enum status kern_scatter_add_fn(struct kern_backend *b, const struct kern_scatter *op,
                                        struct status_why *why);

/**
 * Working memory that an operation takes inside the backend, in bytes, to state limits before a
 * run. Only shapes, types and counts of `op` matter; no array is read. The backend keeps the
 * most that an operation took, so the largest of these is what a sequence of them needs.
 */
typedef size_t kern_linear_bytes_fn(struct kern_backend *b, const struct kern_linear *op);
typedef size_t kern_attention_bytes_fn(struct kern_backend *b, const struct kern_attention *op);
typedef size_t kern_choose_bytes_fn(struct kern_backend *b, const struct kern_choose *op);

/** Their list: X(name) for each. A backend has all of them. */
#define KERN_OPERATIONS(X)                                                                         \
    X(embed)                                                                                       \
    X(norm)                                                                                        \
    X(linear)                                                                                      \
    X(rope)                                                                                        \
    X(attention)                                                                                   \
    X(choose)                                                                                      \
    X(activate)                                                                                    \
    X(route)                                                                                       \
    X(scale_rows)                                                                                  \
    X(copy_rows)                                                                                   \
    X(round) X(gather) X(scatter_add) X(linear_bytes) X(attention_bytes) X(choose_bytes)

/** kern_embed(), kern_norm(), ...: they check the arguments and call the backend. */
#define KERN_OPERATION_DECLARE(name) kern_##name##_fn kern_##name;
KERN_OPERATIONS(KERN_OPERATION_DECLARE)

/**
 * Fill host memory with the angles for kern_rope: cos and sin of position * frequency[i], computed
 * in double and rounded once, times magnitude, of n_positions positions from `first` on. angles:
 * [n_positions, n_pairs, 2].
 */
void kern_rope_fill(float *angles, size_t first, size_t n_positions, const double *frequency,
                    size_t n_pairs, double magnitude);

#endif

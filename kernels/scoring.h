/**
 * The operations of scoring: hidden rows meet heads, and scores or records come out. The
 * conventions are those of kernels/operations.h.
 */
#ifndef KERNELS_SCORING_H
#define KERNELS_SCORING_H

#include <stdbool.h>

#include "base/status.h"
#include "kernels/types.h"

struct kern_backend;

/**
 * Score n_rows hidden rows under every head. Head 0 is the base of the pair scores.
 * The heads are multiplied a vocabulary tile at a time; no memory grows with rows x V, and
 * pair scores add less than 250 bytes per row and head to it (kern_score_bytes() has them);
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
    /* host, out: [n_rows, KERN_TOP_MAX], of the last head, the most likely first (equals: lower id
       first); NULL: none */
    struct kern_top *tops;
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
 * Logits of n_rows hidden rows as kern_score() has them, of the tokens first .. first + n - 1 of
 * the vocabulary: what it makes log-probabilities of, by subtracting max_logit and then log_sum in
 * double.   Memory: some rows at a time, as many as 16 MiB hold.
 */
struct kern_logit_rows {
    struct kern_head head;
    size_t n_rows;
    size_t first, n;
    float *logits; /* host, out: [n_rows, n] */
};

typedef enum status kern_score_fn(struct kern_backend *b, const struct kern_score *op,
                                  struct status_why *why);
typedef enum status kern_record_fn(struct kern_backend *b, const struct kern_record *op,
                                   struct status_why *why);
typedef enum status kern_logit_rows_fn(struct kern_backend *b, const struct kern_logit_rows *op,
                                       struct status_why *why);

/** Working memory; see kern_linear_bytes_fn. */
typedef size_t kern_score_bytes_fn(struct kern_backend *b, const struct kern_score *op);
typedef size_t kern_record_bytes_fn(struct kern_backend *b, const struct kern_record *op);

/**
 * How many rows to give to a call of kern_record(): a multiple of the rows that share one decoding
 * of the matrix. On a device also enough to compute some while others are copied to the host.
 */
typedef size_t kern_record_rows_fn(struct kern_backend *b, const struct kern_weight *matrix);

/** X(name) for each, as KERN_OPERATIONS has it. */
#define KERN_SCORING_OPERATIONS(X)                                                                 \
    X(score) X(record) X(logit_rows) X(score_bytes) X(record_bytes) X(record_rows)

#define KERN_SCORING_DECLARE(name) kern_##name##_fn kern_##name;
KERN_SCORING_OPERATIONS(KERN_SCORING_DECLARE)

#endif

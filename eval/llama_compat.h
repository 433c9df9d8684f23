/**
 * What llama.cpp does differently: the numbers and rules that --llama-compat follows, in one place.
 * docs/peer-defects.md says what is wrong with each, and what assay does instead.
 *
 * Two rules are a condition where they apply: strided windows have no BOS (eval/input/window.c),
 * and of two equal endings of Winogrande the second wins (eval_choice_winners).
 */
#ifndef EVAL_LLAMA_COMPAT_H
#define EVAL_LLAMA_COMPAT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/string.h"

enum {
    EVAL_COMPAT_BATCH = 2048,       /* its -b where none is given */
    EVAL_COMPAT_LEAST_TOKENS = 100, /* it has no summary of divergences of fewer */
    EVAL_COMPAT_LEAST_TASKS = 100,  /* it has no score of fewer Winogrande tasks */
    EVAL_COMPAT_WINDOWS = 2,        /* a text must fill as many */
    EVAL_COMPAT_ROW_FIELDS = 5      /* of a row of Winogrande */
};

/**
 * How far the codes of its base-logits files reach below the largest log-probability. It leaves
 * out tokens whose log-probability in the base is at or below minus this.
 */
#define EVAL_COMPAT_LOGITS_REACH 16.0
/** ik_llama.cpp's reach further, but tokens are left out as in llama.cpp. */
#define EVAL_COMPAT_LOGITS_REACH_IK 24.0

/** Strided: the tokens of a window where -c is n_ctx. */
size_t eval_compat_strided_window(size_t n_ctx, size_t stride);

/**
 * --ppl-output-type 1: the window whose first token's index is printed for window w. It is the
 * first window of the batch. batch: tokens, -b.
 */
size_t eval_compat_offset_window(size_t w, size_t n_ctx, size_t batch);

/**
 * The log-probability as the strided mode computes it: through a probability in float32, which
 * is 0 (and its logarithm -inf) from about e^-103 downwards.
 * log_prob: ours.   log_sum: ln sum_i exp(l_i - max) of the same row.
 */
double eval_compat_strided_log_prob(double log_prob, double log_sum);

/**
 * Where an ending's scores begin: as many tokens in as the beginning alone has, though that may
 * be cut differently.   n_tokens: of the whole.
 */
size_t eval_compat_first_scored(size_t n_beginning, size_t n_tokens);

/**
 * Winogrande: whether the first log-probability of the second sequence is read from the row after
 * the last token of the first one. after_choice: only what follows the choice is scored.
 */
bool eval_compat_misreads(bool after_choice, size_t n_common);

/** Rows of a Winogrande file. */
struct eval_compat_rows {
    char *at, *end; /* the text that is left */
    size_t line;    /* of the row read last; from 1 */
};

/** The rows of a text, without its final newline. */
struct eval_compat_rows eval_compat_winogrande_rows(char *bytes, size_t n_bytes);

/**
 * The next row of five fields or more; false: no row is left. Rows with fewer are passed over, and
 * so is the one that ends with the text. Quotes group, but only those around the sentence go.
 */
bool eval_compat_winogrande_next(struct eval_compat_rows *rows,
                                 struct base_string fields[EVAL_COMPAT_ROW_FIELDS]);

#endif

/**
 * Log-probabilities of listed tokens at some positions of a window, exactly or as a program that
 * rounds makes them. All lists of a window share one evaluation.
 */
#ifndef PROBE_EXACT_EXACT_H
#define PROBE_EXACT_EXACT_H

#include "clients/probe/exact/ties.h"
#include "model/model.h"

/** Exactly, as trace/arithmetic.h has it, or with inputs of products as llama.cpp rounds them. */
enum probe_rounding {
    PROBE_EXACT,
    PROBE_AS_LLAMA,
    PROBE_BFLOAT16,
    PROBE_COARSE,
    PROBE_SMALL_CACHE,
    PROBE_SIMULATED
};

struct probe_evaluation {
    const struct model *model;
    struct kern_backend *backend; /* of host memory, precision exact */
    const int32_t *tokens;        /* [n_tokens] */
    size_t n_tokens;              /* above 0 */
    enum probe_rounding rounding;
    uint64_t seed;               /* which errors */
    struct probe_ties *ties;     /* told of the experts; NULL: they do not matter */
    model_progress_fn *progress; /* may be NULL */
    void *progress_user;
};

/** Log-probabilities of the tokens that a list lacks: -infinity where it lacks none. */
struct probe_unlisted {
    double most, least; /* of the likeliest and the unlikeliest */
};

/** What is wanted of a row. */
struct probe_want {
    size_t row;         /* its prediction follows tokens 0 .. row */
    const int32_t *ids; /* [n], within the vocabulary */
    size_t n;
    double *log_p;                  /* [n], out */
    struct probe_unlisted unlisted; /* out */
};

/**
 * Evaluate the window once. wants: [n_wants], in order of their rows.
 * Fails: STATUS_MEMORY, STATUS_CANCELLED, as model_forward; STATUS_NONFINITE; STATUS_UNSUPPORTED
 * (PROBE_SIMULATED, a product that llama.cpp has not).
 */
enum status probe_evaluate(const struct probe_evaluation *evaluation, struct probe_want *wants,
                           size_t n_wants, struct status_why *why);

#endif

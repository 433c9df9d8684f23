/**
 * Perplexity: pure functions of a plan, its stream and its table, in index order.
 * docs/protocols.md derives the formulas and says what each number means.
 */
#ifndef EVAL_METRICS_PERPLEXITY_H
#define EVAL_METRICS_PERPLEXITY_H

#include "base/moments.h"
#include "eval/input/window.h"
#include "eval/metrics/table.h"

/** Where a score was neither finite nor of use. */
struct eval_nonfinite {
    size_t n;        /* how many scored tokens */
    size_t window;   /* the first of them in index order; ... */
    size_t position; /* the position that predicts it */
    int32_t token;   /* its id */
};

/** Count scored token i of window w as one of them. */
void eval_nonfinite_note(struct eval_nonfinite *nonfinite, const struct eval_plan *plan,
                         const struct eval_stream *stream, size_t w, size_t i);

/**
 * A running evaluation: add finished windows in index order, ask after any of them.
 * Zero-initialise.
 */
struct eval_tally {
    size_t n_windows;
    struct base_moments nll; /* -log_prob of each token */
    double window_means;     /* sum of the windows' mean NLLs */
    double n_bytes;          /* of text that the scored tokens stand for */
    struct eval_nonfinite nonfinite;
    double finite_sum; /* of the finite NLLs alone */
};

/** Figures of a tally. Not finite where a score was not. */
struct eval_figures {
    struct base_estimate nll; /* mean; under the fixed protocol the mean of the windows' means. Its
                               * error: sqrt((mean(nll^2) - mean(nll)^2) / (n - 1)) */
    struct base_estimate ppl; /* exp(nll); its errors: ppl times those of nll */
};

/** Sums of one window, for files that someone else adds up. */
struct eval_window_sums {
    size_t n_tokens;
    double nll, nll_squared; /* sums over its tokens */
};

/** Everything that a perplexity run has to say; plain data. */
struct eval_perplexity_result {
    bool complete;     /* all windows of the plan are in it */
    bool of_documents; /* errors of lots are of these, not of windows */
    size_t n_windows;  /* finished windows that the figures cover */
    size_t n_tokens;   /* scored tokens that the figures cover */
    struct eval_figures figures;
    double bits_per_byte; /* sum of NLL / ln 2 / n_bytes; NaN without bytes */
    double n_bytes;       /* of text that the scored tokens stand for */
    struct eval_nonfinite nonfinite;
    double finite_nll; /* mean over the finite scores alone; NaN if there is none */
    double finite_ppl; /* exp(finite_nll): not a perplexity of the text */
};

/** Add window w, which must be done and follow the ones added before. Cost: O(n_scored). */
void eval_tally_add(struct eval_tally *tally, const struct eval_plan *plan,
                    const struct eval_stream *stream, const struct eval_table *table, size_t w);

/** The figures after the windows added so far; all 0 / ppl 1 for none. */
struct eval_figures eval_tally_figures(const struct eval_tally *tally, enum eval_protocol protocol);

struct eval_window_sums eval_window_sums(const struct eval_table *table, size_t w);

/** The result over all finished windows in index order. Cost: O(scored tokens). */
void eval_perplexity(struct eval_perplexity_result *out, const struct eval_plan *plan,
                     const struct eval_stream *stream, const struct eval_table *table);

#endif

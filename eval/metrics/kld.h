/**
 * How far a model's predictions are from a base model's: pure functions of the tables of both,
 * in index order. docs/divergence.md derives the formulas; the main ones are llama-perplexity's.
 *
 * p is the base's distribution after a token, q the candidate's; natural logarithms.
 */
#ifndef EVAL_METRICS_KLD_H
#define EVAL_METRICS_KLD_H

#include "base/moments.h"
#include "eval/metrics/perplexity.h"

/**
 * A running comparison: add finished windows in index order, ask after any of them.
 * Zero-initialise.
 */
struct eval_kld_tally {
    size_t n_windows;
    struct base_moments nll, base_nll, log_ratio; /* of q, of p, and their difference */
    struct base_moments kld, dp, dp_squared, same_top;
    double cross; /* sum of products of the distances of nll and base_nll from their means */
};

/** The figures of llama-perplexity's line for a window and of its summary. */
struct eval_kld_figures {
    struct base_estimate nll, base_nll; /* means, nats */
    struct base_estimate ppl, base_ppl; /* exp of them: infinite from a mean of 709.8 on */
    struct base_estimate log_ratio;     /* ln(PPL(q) / PPL(p)) */
    struct base_estimate ratio;         /* PPL(q) / PPL(p) */
    struct base_estimate difference;    /* PPL(q) - PPL(p) */
    double correlation;                 /* of the NLLs, -1 to 1; 1 where neither varies */
    struct base_estimate kld;           /* KL(p || q), nats */
    struct base_estimate dp;            /* q - p of the right token */
    struct base_estimate rms_dp;        /* sqrt(mean of its square) */
    struct base_estimate same_top;      /* share of tokens with the same most likely one */
};

/** Quantiles, from the maximum down to the minimum. */
enum { EVAL_N_QUANTILES = 13 };
extern const double eval_quantile_levels[EVAL_N_QUANTILES];

/** How well the right token is placed. */
struct eval_ranks {
    double mean, median;
    double first;      /* share of tokens that are the most likely ones */
    double reciprocal; /* mean of 1 / rank */
};

/** Tokens whose most likely alternative has a probability in [i / 10, (i + 1) / 10) in the base. */
enum { EVAL_N_BUCKETS = 10 };
struct eval_kld_bucket {
    struct base_moments kld;
    double dp_squared, same_top; /* sums */
};

/** Probability on ids that only one of two vocabularies has. */
struct eval_beyond {
    struct base_estimate mean;
    double largest;
};

/** A scored token. */
struct eval_scored_token {
    size_t window, index; /* eval_plan_position says where it is */
};

/** Everything that a comparison has to say; release with eval_kld_free. */
struct eval_kld_result {
    bool complete;     /* all windows of the plan are in it */
    bool of_documents; /* errors of lots are of these, not of windows */
    size_t n_windows, n_tokens;
    struct eval_kld_figures figures;
    /* Errors by those of the share of values below it; the extremes have none: NaN. */
    struct base_estimate kld_quantiles[EVAL_N_QUANTILES], dp_quantiles[EVAL_N_QUANTILES];
    struct base_estimate reverse_kld, js, tv;
    struct base_estimate acceptance;          /* 1 - tv: of a token that q drafts and p verifies */
    struct base_estimate common_5, common_10; /* share of the base's 5 and 10 that q has, too */
    struct eval_ranks ranks, base_ranks;      /* of the right token */
    /* Of p and q before they were cut to common ids; where they were not: 0. */
    struct eval_beyond base_beyond, beyond;
    struct eval_kld_bucket buckets[EVAL_N_BUCKETS];
    struct base_moments *positions;  /* [eval_table_n_points] KLD by position */
    struct eval_scored_token *worst; /* the tokens of the largest KLD, first of equals first */
    size_t n_worst;
    double bits_per_byte, base_bits_per_byte; /* NaN without bytes */
    double rounding; /* of the mean KLD, by eval_kld_rounding, where the caller has it; else NaN */
    struct eval_nonfinite nonfinite; /* scores of either, or comparisons, that are not */
};

/** Tables of the two models, from one eval_run. The candidate's says which windows are done. */
struct eval_kld_tables {
    const struct eval_plan *plan;
    const struct eval_stream *stream;
    const struct eval_table *base, *candidate;
};

/** A token: ln of what base and candidate give it, KL(p || q), whether both have the same top. */
struct eval_kld_token {
    double log_p, log_q, kl, same_top;
};
void eval_kld_tally_token(struct eval_kld_tally *tally, const struct eval_kld_token *token);
/** Tokens that are added from now on belong to this lot. */
void eval_kld_tally_lot(struct eval_kld_tally *tally, size_t lot);

/** Add window w, which must be done and follow the ones added before. Cost: O(n_scored). */
void eval_kld_tally_add(struct eval_kld_tally *tally, const struct eval_kld_tables *tables,
                        size_t w);

/** The figures after the windows added so far. */
struct eval_kld_figures eval_kld_tally_figures(const struct eval_kld_tally *tally);

/** Sums over the tokens of one window, for resampling windows. */
struct eval_kld_sums {
    size_t n_tokens;
    double nll, kld, dp, dp_squared, same_top;
};
struct eval_kld_sums eval_kld_window_sums(const struct eval_kld_tables *tables, size_t w);

/**
 * The result over all finished windows. n_worst: how many of the worst tokens to name.
 * Fails: STATUS_MEMORY.   Cost: O(n log n) of the scored tokens.
 */
enum status eval_kld(struct eval_kld_result *out, const struct eval_kld_tables *tables,
                     size_t n_worst, struct status_why *why);
/** A zero-initialised object is allowed. */
void eval_kld_free(struct eval_kld_result *result);

/**
 * The mean divergence from double precision, in nats, that products of a kind make by themselves:
 * the most on a text of two published models (docs/precision.md; of bfloat16 20 times that of tiny
 * ones, by which the others grow). Other models may round several times as much. products: as
 * `struct kern_description` names them. whole: no weight has fewer than 16 bits, so that products
 * in integers, which are of the others, are not used but for attention in `fast`. Returns NaN for
 * what was not measured.
 */
double eval_rounding_of(const char *products, bool whole);

/**
 * About how far a mean divergence of so many tokens may be from that of exact products, in nats:
 * own + min(2, 4 / sqrt(n_tokens)) * sqrt(mean * own). docs/precision.md says where that is from
 * and what was measured. own: of both models, added up. 0 for 0: what is equal is equally rounded.
 */
double eval_kld_rounding(double mean, size_t n_tokens, double own);

#endif

/**
 * What llama-perplexity --kl-divergence prints, beside our figures: labels, and how far its
 * numbers may be from ours, for two ways to run it.
 */
#ifndef TESTS_EVAL_KLD_LINES_H
#define TESTS_EVAL_KLD_LINES_H

#include "eval/metrics/kld.h"

/** A figure in the unit in which it is printed: Δp in percentage points. */
struct kld_figure {
    char label[40];      /* what its line begins with */
    double found, error; /* ours; error NaN: none is printed */
    double absolute, relative;
    double error_absolute, error_relative;
};

/** How many figures the summary has, and a row for a window. */
enum { KLD_FIGURES = 34, KLD_ROW_FIGURES = 5 };

/**
 * Our figures, with tolerances for llama-perplexity as people run it: activations are rounded to
 * 8 bits. They are those of the reference: means of KLD 5e-4 and 5 %, PPL 0.2 %, mean of Δp 0.05
 * points and 5 %, its RMS 0.1 and 5 %, same top 1 point, quantiles of KLD 1e-3 and 10 %. Where two
 * PPLs are compared, the tolerances of both. Quantiles of Δp: 0.05 points and 5 %, and three times
 * what the rounding adds to Δp, whose RMS shows it: sqrt(rms^2 - ours^2); of 2032 tokens the 0.1 %
 * quantiles are the third from the end, so they and the extremes have 25 % instead, and for a KLD
 * 2e-3. Uncertainties: 10 %, and what that rounding makes of those of differences.
 * llama_rms: the RMS of Δp that it printed.
 */
void kld_figures_rounded(struct kld_figure out[KLD_FIGURES], const struct eval_kld_result *r,
                         double llama_rms);
/**
 * The same of a row: after w windows the scatter is sqrt(16 / w) of that after 16. Most of a PPL's
 * error comes from one very unlikely token in window 10: 0.4 % where it weighs most.
 */
void kld_row_figures(struct kld_figure out[KLD_ROW_FIGURES], const struct eval_kld_figures *f,
                     size_t w);

/**
 * Our figures, with tolerances for llama-perplexity with weights and cache in float32, where all
 * that it rounds is the base's log-probabilities: to half a code of 16 bits, 16 / 65535 / 2 =
 * 1.2e-4, and those below the maximum less 16 to that. So a KLD is off by 1.2e-4 at most and a Δp
 * by 0.012 points, means by the hundredth part, and its float32 sums by 2e-5 of their value; PPL(Q)
 * knows no rounding, and PPL(base) is too low where a token was less likely than the clamp allows
 * (0.11 % here, by one token).
 */
void kld_figures_float32(struct kld_figure out[KLD_FIGURES], const struct eval_kld_result *r);

/** The numbers of a line that begins with a label: 0, 1, or 2 with one behind "±". */
int kld_line_numbers(const char *line, const char *label, double *value, double *error);

/** Fails the test unless the numbers are within the tolerances. */
void kld_check_value(const char *model, const struct kld_figure *f, double value);
void kld_check_error(const char *model, const struct kld_figure *f, double error);

#endif

/** Arithmetic of llama.cpp that changes a number, for --llama-compat. */
#ifndef EVAL_METRICS_COMPAT_H
#define EVAL_METRICS_COMPAT_H

/**
 * The log-probability as llama-perplexity's strided mode computes it: through a probability
 * in float32, which is 0 (and its logarithm -inf) from about e^-103 downwards.
 * log_prob: ours.   log_sum: ln sum_i exp(l_i - max) of the same row.
 */
double eval_compat_strided_log_prob(double log_prob, double log_sum);

#endif

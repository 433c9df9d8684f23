/** A mean divergence in words: how many tokens may be drawn otherwise than from the base. */
#ifndef DOCUMENTS_RESULTS_DRAWN_H
#define DOCUMENTS_RESULTS_DRAWN_H

/**
 * "at most 1 in 20", of the tokens that are drawn after the same text at temperature 1.
 * By Pinsker's inequality the total variation of two distributions, which is how often two draws
 * that are coupled as well as can be differ, is at most sqrt(D / 2), and so is its mean where D is
 * a mean.
 * kld: the mean divergence, in nats, finite; below 0, as rounded logits may make it, counts as 0.
 * rounding: what the rounding of products may have moved it by; NaN: not known.
 */
const char *doc_drawn_otherwise(double kld, double rounding);

#endif

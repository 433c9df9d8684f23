/**
 * How much arithmetic an evaluation takes: floating-point operations, a multiplication and an
 * addition counted as two. For progress, ETA and the size of a batch; no figure depends on it.
 */
#ifndef EVAL_SCORER_COST_H
#define EVAL_SCORER_COST_H

#include <stddef.h>

#include "model/model.h"

/** All layers for one segment of n_tokens: the products, and attention over n (n + 1) / 2 pairs. */
double eval_cost_forward(const struct model *model, size_t n_tokens);

/** The head for n_rows scored rows. */
double eval_cost_head(const struct model *model, size_t n_rows);

#endif

/**
 * How much arithmetic an evaluation takes: floating-point operations, a multiplication and an
 * addition counted as two. For progress, ETA and the size of a batch; no figure depends on it.
 */
#ifndef EVAL_SCORER_COST_H
#define EVAL_SCORER_COST_H

#include <stddef.h>

#include "model/model.h"

/** Layers whose queries see the same positions: all before, `window` of them, or those of a run. */
struct eval_cost_span {
    size_t window, chunk; /* 0: no limit */
    double pair;          /* operations of a query and a key that it sees, all these layers' */
};

enum { EVAL_COST_SPANS = 8 };

/** What segments of any length take in the layers of one model, or of several. */
struct eval_cost {
    double token; /* the products of a token */
    size_t n_spans;
    struct eval_cost_span spans[EVAL_COST_SPANS];
};

/**
 * Add a model's layers, and the block after them that is bound, to *cost, which is
 * zero-initialised. Windows of more lengths than there is room for count as the last of these.
 */
void eval_cost_add(struct eval_cost *cost, const struct model *model);

/** All layers for one segment of n_tokens: the products, and attention over the pairs it sees. */
double eval_cost_segment(const struct eval_cost *cost, size_t n_tokens);
double eval_cost_forward(const struct model *model, size_t n_tokens);

/** The head for n_rows scored rows. */
double eval_cost_head(const struct model *model, size_t n_rows);

#endif

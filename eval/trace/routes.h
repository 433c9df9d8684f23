/**
 * Which experts another program chose. Where two are nearly tied its rounding may choose the other
 * one, or put the two in another order: what these make is not compared then.
 */
#ifndef EVAL_TRACE_ROUTES_H
#define EVAL_TRACE_ROUTES_H

#include "eval/trace/compare.h"

/** Of the layer that was compared last. Zero-initialise, but for first_tied. */
struct eval_routes {
    int layer;
    size_t n_used;
    bool *other;    /* [n_rows, n_used]: another expert is in the slot */
    bool *diverged; /* [n_rows]: went through other experts, in this layer or before */
    size_t n_rows, n_diverged;
    int first_tied; /* the first layer where rounding chose other experts; INT_MAX: none */
};

/** Compare the chosen experts of a layer. Fails: STATUS_MEMORY. */
enum status eval_routes_compare(struct eval_routes *routes, struct eval_distance *d,
                                const struct eval_trace *trace, const struct eval_traced *file,
                                struct status_why *why);
/** Whether a value of a tensor is that of another expert, or of a row that has diverged. */
bool eval_routes_excuse(const struct eval_routes *routes, const struct eval_tensor *tensor,
                        size_t at);
void eval_routes_free(struct eval_routes *routes);

#endif

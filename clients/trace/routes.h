/**
 * Which experts another program chose. Where two are nearly tied its rounding may choose the other
 * one, or put the two in another order: what these make is not compared then.
 */
#ifndef TRACE_ROUTES_H
#define TRACE_ROUTES_H

#include "clients/trace/compare.h"

/** The experts of the layer that was compared last. Zero-initialise, but for first_tied. */
struct trace_routes {
    int layer;
    size_t n_used;
    bool *other;    /* [n_rows, n_used]: another expert is in the slot */
    bool *diverged; /* [n_rows]: went through other experts, in this layer or before */
    size_t n_rows, n_diverged;
    int first_tied; /* the first layer where rounding chose other experts; INT_MAX: none */
};

/** Compare the chosen experts of a layer. Fails: STATUS_MEMORY. */
enum status trace_routes_compare(struct trace_routes *routes, struct trace_distance *d,
                                 const struct trace *trace, const struct trace_file *file,
                                 struct status_why *why);
/** Whether a value of a tensor is that of another expert, or of a row that has diverged. */
bool trace_routes_excuse(const struct trace_routes *routes, const struct trace_tensor *tensor,
                         size_t at);
void trace_routes_free(struct trace_routes *routes);

#endif

/**
 * One window evaluated, with the tensors that the forward pass comes by; and, from further passes
 * that round at random, how far off a correct program may be at each of them.
 */
#ifndef TRACE_TRACE_H
#define TRACE_TRACE_H

#include <stdbool.h>

#include "clients/trace/arithmetic.h"
#include "clients/trace/names.h"
#include "model/forward/forward.h"

/** Rows of [n_heads, size], one for each token of the window, or for the last n_rows of them. */
struct trace_tensor {
    enum model_place place;
    int layer; /* -1: outside of all */
    size_t n_rows, n_heads, size;
    float *values;
    double *squares;     /* [n_rows, n_heads]: sums over the passes of squared errors */
    double mean_squares; /* of these */
    double sum_squares;  /* over the passes, of the error of the sum of all values */
};

/** In the order of the computation. Zero-initialise; release with trace_free. */
struct trace {
    struct trace_tensor *items;
    size_t n, capacity;
    size_t n_tokens;
    size_t n_passes;    /* that rounded */
    bool biased_choice; /* experts are chosen by more than their logits */
};

/** Whether a tensor is wanted. name: as trace_tensor_name has it. */
typedef bool trace_want_fn(void *user, enum model_place place, int layer, const char *name);

struct trace_task {
    const struct model *model;
    struct kern_backend *backend; /* of host memory, precision exact */
    const int32_t *tokens;
    size_t n_tokens;
    size_t n_logits;                  /* rows of logits: the last so many */
    size_t n_passes;                  /* that round; 0: no errors to expect are wanted */
    enum trace_arithmetic arithmetic; /* of these */
    trace_want_fn *want;              /* NULL: all */
    void *want_user;
};

/**
 * Evaluate the window.
 * Fails: STATUS_USAGE (a token beyond the vocabulary, a device with memory of its own),
 *        STATUS_MEMORY (with the sizes), and as model_forward.
 */
enum status trace_run(struct trace *out, const struct trace_task *task, struct status_why *why);
void trace_free(struct trace *trace);

/** The tensor of a place; NULL: there is none. */
const struct trace_tensor *trace_find(const struct trace *trace, enum model_place place, int layer);

/**
 * The error to expect, as a standard deviation, of values of a head of a row: what the passes were
 * off there, or in the whole tensor if that is more.
 */
double trace_tensor_error(const struct trace *trace, const struct trace_tensor *tensor, size_t row,
                          size_t head);

/** What tables say of the last n_rows rows. */
struct trace_tensor_figures {
    double sum;     /* in float32, one value after the other, as llama.cpp sums */
    double norm;    /* root of the sum of squares */
    double largest; /* absolute value */
    size_t n_nonfinite;
};
struct trace_tensor_figures trace_tensor_figures(const struct trace_tensor *tensor, size_t n_rows);

#endif

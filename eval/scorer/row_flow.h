/**
 * The scorer's side of eval/scorer/reference_rows.h: rows from a source become head 0 of a call of
 * kern_score, the rows of a model go to a sink. Buffers have the size of a slab of rows.
 */
#ifndef EVAL_SCORER_ROW_FLOW_H
#define EVAL_SCORER_ROW_FLOW_H

#include "eval/scorer/reference_rows.h"

/** Zero-initialise; filled by eval_row_flow_open. */
struct eval_row_flow {
    struct kern_backend *backend;
    const struct eval_row_source *source; /* NULL: none */
    const struct eval_row_sink *sink;     /* NULL: none */
    struct kern_recorded recorded;        /* what head 0 points to, if the source has codes */
    float *hidden;                        /* backend: hidden rows of the source, [max_rows, K] */
    void *out;                            /* host: rows on their way to the sink */
    size_t out_rows;                      /* rows that `out` holds */
};

/** Source and sink of a scorer, and the most rows of a slab. */
struct eval_row_flow_options {
    const struct eval_row_source *source;
    const struct eval_row_sink *sink;
    const struct kern_weight *head; /* of the model whose rows go to the sink */
    size_t max_rows;
};

/** Bytes of a row, as sources and sinks lay it out, of a model with this head. */
size_t eval_row_bytes(enum eval_row_kind kind, const struct kern_weight *head);

/** Allocate the buffers. Fails: STATUS_MEMORY, STATUS_DEVICE; close it nevertheless. */
enum status eval_row_flow_open(struct eval_row_flow *flow, struct kern_backend *backend,
                               const struct eval_row_flow_options *options, struct status_why *why);
void eval_row_flow_close(struct eval_row_flow *flow);

/** Bytes of the buffers, of the source, and (apart) of the backend while it records. */
double eval_row_flow_bytes(struct kern_backend *backend,
                           const struct eval_row_flow_options *options, size_t *operation);

/** Fetch n_rows rows from `first` on; *head is then head 0 of kern_score until the next call. */
enum status eval_row_flow_take(struct eval_row_flow *flow, size_t first, size_t n_rows,
                               struct kern_head *head, struct status_why *why);
/** Send the model's rows, which are hidden rows of `head`, to the sink. */
enum status eval_row_flow_give(struct eval_row_flow *flow, size_t first, size_t n_rows,
                               const struct kern_head *head, struct status_why *why);

#endif

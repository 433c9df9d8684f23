#include "eval/scorer/row_flow.h"

#include <stdlib.h>

#include "base/arithmetic.h"
#include "kernels/backend.h"
#include "kernels/scoring.h"

enum { OUT_BYTES = 32 << 20 /* of hidden rows that are handed to a sink at once */ };

size_t eval_row_bytes(enum eval_row_kind kind, const struct kern_weight *head)
{
    return kind == EVAL_ROWS_CODES ? kern_record_codes(head->n_rows) * sizeof(uint16_t)
                                   : head->n_cols * sizeof(float);
}

/** Codes: as the backend likes it best. In smaller calls it would decode the head more often. */
static size_t out_rows(struct kern_backend *backend, const struct eval_row_flow_options *options)
{
    size_t n = options->sink->kind == EVAL_ROWS_CODES
                   ? kern_record_rows(backend, options->head)
                   : OUT_BYTES / eval_row_bytes(options->sink->kind, options->head);
    return base_min(n ? n : 1, options->max_rows);
}

/** Bytes of the backend's buffer: a source's hidden rows have to be brought there. */
static size_t hidden_bytes(const struct eval_row_flow_options *options)
{
    const struct eval_row_source *source = options->source;
    return source && source->kind == EVAL_ROWS_HIDDEN
               ? options->max_rows * eval_row_bytes(source->kind, source->head)
               : 0;
}

static size_t out_bytes(struct kern_backend *backend, const struct eval_row_flow_options *options)
{
    return options->sink
               ? out_rows(backend, options) * eval_row_bytes(options->sink->kind, options->head)
               : 0;
}

double eval_row_flow_bytes(struct kern_backend *backend,
                           const struct eval_row_flow_options *options, size_t *operation)
{
    *operation = 0;
    if (options->sink && options->sink->kind == EVAL_ROWS_CODES) {
        struct kern_record op = {.head.matrix = options->head,
                                 .n_rows = out_rows(backend, options)};
        *operation = kern_record_bytes(backend, &op);
    }
    const struct eval_row_source *source = options->source;
    double n_bytes = (double)hidden_bytes(options) + (double)out_bytes(backend, options);
    if (source && source->kind == EVAL_ROWS_CODES) /* resident pages of the file */
        n_bytes += (double)options->max_rows * (double)eval_row_bytes(source->kind, options->head);
    return source ? n_bytes + source->n_bytes : n_bytes;
}

enum status eval_row_flow_open(struct eval_row_flow *flow, struct kern_backend *backend,
                               const struct eval_row_flow_options *options, struct status_why *why)
{
    *flow = (struct eval_row_flow){
        .backend = backend, .source = options->source, .sink = options->sink};
    void *hidden = NULL;
    enum status status = STATUS_OK;
    if (hidden_bytes(options))
        status = kern_alloc(backend, &hidden, hidden_bytes(options), why);
    flow->hidden = hidden;
    if (options->sink && !status) {
        flow->out_rows = out_rows(backend, options);
        flow->out = malloc(out_bytes(backend, options));
        if (!flow->out)
            status =
                status_fail(why, STATUS_MEMORY, "no memory to record %zu rows", flow->out_rows);
    }
    return status;
}

void eval_row_flow_close(struct eval_row_flow *flow)
{
    kern_free(flow->backend, flow->hidden);
    free(flow->out);
    *flow = (struct eval_row_flow){0};
}

enum status eval_row_flow_take(struct eval_row_flow *flow, size_t first, size_t n_rows,
                               struct kern_head *head, struct status_why *why)
{
    const struct eval_row_source *source = flow->source;
    const void *rows = NULL;
    enum status status = source->rows(source->user, first, n_rows, &rows, why);
    if (status)
        return status;
    if (source->kind == EVAL_ROWS_CODES) {
        flow->recorded =
            (struct kern_recorded){rows, kern_record_codes(source->n_vocab), source->cut};
        *head = (struct kern_head){.recorded = &flow->recorded};
        return STATUS_OK;
    }
    *head = (struct kern_head){.hidden = flow->hidden,
                               .matrix = source->head,
                               .bias = source->bias,
                               .soft_cap = source->soft_cap};
    return kern_upload(flow->backend, flow->hidden, rows,
                       n_rows * eval_row_bytes(source->kind, source->head), why);
}

/** Rows head->hidden of the model, n_rows of them, in the sink's kind into flow->out. */
static enum status convert(struct eval_row_flow *flow, size_t n_rows, const struct kern_head *head,
                           struct status_why *why)
{
    if (flow->sink->kind == EVAL_ROWS_HIDDEN)
        return kern_download(flow->backend, flow->out, head->hidden,
                             n_rows * eval_row_bytes(EVAL_ROWS_HIDDEN, head->matrix), why);
    struct kern_record op = {.head = *head,
                             .n_rows = n_rows,
                             .records = flow->out,
                             .stride = kern_record_codes(head->matrix->n_rows)};
    return kern_record(flow->backend, &op, why);
}

enum status eval_row_flow_give(struct eval_row_flow *flow, size_t first, size_t n_rows,
                               const struct kern_head *head, struct status_why *why)
{
    enum status status = STATUS_OK;
    struct kern_head part = *head;
    for (size_t done = 0; done < n_rows && !status;) {
        size_t n = base_min(n_rows - done, flow->out_rows);
        part.hidden = head->hidden + done * head->matrix->n_cols;
        status = convert(flow, n, &part, why);
        if (!status)
            status =
                flow->sink->write(flow->sink->user, flow->backend, first + done, n, flow->out, why);
        done += n;
    }
    return status;
}

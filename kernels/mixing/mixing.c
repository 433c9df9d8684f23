/* The operations of kernels/mixing.h: checks the arguments, counts the time, calls the backend. */
#include <assert.h>

#include "kernels/implementation.h"

enum status kern_mix(struct kern_backend *b, const struct kern_mix *op, struct status_why *why)
{
    assert(op->n_in > 0 && (op->n_in <= KERN_STREAMS_MAX || (op->n_out == 1 && op->weights)));
    assert(op->n_out > 0 && op->n_out <= KERN_STREAMS_MAX);
    assert(op->out != op->x || op->n_in == op->n_out);
    if (op->n_tokens == 0 || op->width == 0)
        return STATUS_OK;
    assert(op->x && op->out && (!op->y || op->y_weights));
    assert(op->weights || (op->y && op->n_in == op->n_out));
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_OTHER, begun, b->ops->mix(b, op, why));
}

enum status kern_stream_weights(struct kern_backend *b, const struct kern_stream_weights *op,
                                struct status_why *why)
{
    assert(op->rule.n_streams > 0 && op->rule.n_streams <= KERN_STREAMS_MAX);
    assert(op->scale->n_cols == (op->rule.pre_only ? 1 : op->rule.n_rounds > 0 ? 3 : 2));
    assert(op->scale->n_rows == 1 && op->base->n_cols == kern_stream_products(&op->rule));
    if (op->n_tokens == 0)
        return STATUS_OK;
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_OTHER, begun, b->ops->stream_weights(b, op, why));
}

enum status kern_compress(struct kern_backend *b, const struct kern_compress *op,
                          struct status_why *why)
{
    assert(op->n_terms > 0 && op->n_early <= op->n_terms && op->late + op->width <= op->stride);
    if (op->n_out == 0 || op->width == 0)
        return STATUS_OK;
    assert(op->u && op->rows && op->y);
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_OTHER, begun, b->ops->compress(b, op, why));
}

enum status kern_sparsify(struct kern_backend *b, const struct kern_sparsify *op,
                          struct status_why *why)
{
    assert(op->width > 0 && (op->x || op->n_rows == 0));
    if (op->n_rows == 0)
        return STATUS_OK;
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_GATE, begun, b->ops->sparsify(b, op, why));
}

enum status kern_stretch(struct kern_backend *b, const struct kern_stretch *op,
                         struct status_why *why)
{
    assert(op->width > 0 && !(op->accumulate && op->x == op->y));
    assert((op->x && op->to && op->y) || op->n_rows == 0);
    if (op->n_rows == 0)
        return STATUS_OK;
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_NORM, begun, b->ops->stretch(b, op, why));
}

enum status kern_match(struct kern_backend *b, const struct kern_match *op, struct status_why *why)
{
    assert(op->width > 0 && op->n_streams > 0);
    if (op->n_tokens == 0)
        return STATUS_OK;
    assert(op->k && op->q && op->v && op->out);
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_GATE, begun, b->ops->match(b, op, why));
}

enum status kern_softmax(struct kern_backend *b, const struct kern_softmax *op,
                         struct status_why *why)
{
    assert(op->n > 0 && op->n <= op->width && (op->x || op->n_rows == 0));
    if (op->n_rows == 0)
        return STATUS_OK;
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_OTHER, begun, b->ops->softmax(b, op, why));
}

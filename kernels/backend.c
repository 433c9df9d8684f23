/* The operations' front door: checks arguments once for all backends, then calls the backend. */
#include "kernels/backend.h"

#include <assert.h>

void kern_close(struct kern_backend *b)
{
    if (b)
        b->ops->close(b);
}

void kern_set_cancel(struct kern_backend *b, const atomic_bool *flag)
{
    b->cancel = flag;
}

enum status kern_alloc(struct kern_backend *b, void **out, size_t n_bytes, struct status_why *why)
{
    *out = NULL;
    return b->ops->alloc(b, out, n_bytes, why);
}

void kern_free(struct kern_backend *b, void *memory)
{
    if (memory)
        b->ops->free(b, memory);
}

enum status kern_upload(struct kern_backend *b, void *to, const void *from, size_t n_bytes,
                        struct status_why *why)
{
    assert((to && from) || n_bytes == 0);
    return n_bytes ? b->ops->upload(b, to, from, n_bytes, why) : STATUS_OK;
}

enum status kern_download(struct kern_backend *b, void *to, const void *from, size_t n_bytes,
                          struct status_why *why)
{
    assert((to && from) || n_bytes == 0);
    return n_bytes ? b->ops->download(b, to, from, n_bytes, why) : STATUS_OK;
}

enum status kern_rmsnorm(struct kern_backend *b, const struct kern_weight *gain, float eps,
                         const float *x, size_t n_tokens, float *y, struct status_why *why)
{
    assert(gain->n_rows == 1 && gain->n_cols > 0 && ((x && y) || n_tokens == 0));
    return n_tokens ? b->ops->rmsnorm(b, gain, eps, x, n_tokens, y, why) : STATUS_OK;
}

enum status kern_rope(struct kern_backend *b, const struct kern_rope *op, struct status_why *why)
{
    assert(2 * op->n_pairs <= op->head_size && op->n_heads * op->head_size <= op->stride);
    assert(op->n_tokens == 0 || (op->x && op->table && op->positions));
    for (size_t t = 0; t < op->n_tokens; t++)
        assert(op->positions[t] >= 0 && (size_t)op->positions[t] < op->n_positions);
    return op->n_tokens ? b->ops->rope(b, op, why) : STATUS_OK;
}

enum status kern_gate(struct kern_backend *b, float *gate, const float *up, size_t n,
                      struct status_why *why)
{
    assert((gate && up) || n == 0);
    return n ? b->ops->gate(b, gate, up, n, why) : STATUS_OK;
}

enum status kern_route(struct kern_backend *b, const float *logits, size_t n_tokens,
                       size_t n_experts, size_t n_used, int32_t *experts, float *shares,
                       struct status_why *why)
{
    assert(n_used > 0 && n_used <= n_experts && n_experts <= INT32_MAX);
    assert((logits && experts && shares) || n_tokens == 0);
    return n_tokens ? b->ops->route(b, logits, n_tokens, n_experts, n_used, experts, shares, why)
                    : STATUS_OK;
}

enum status kern_gather(struct kern_backend *b, const float *x, size_t width, const uint32_t *rows,
                        size_t n_rows, float *y, struct status_why *why)
{
    assert((x && rows && y) || n_rows == 0);
    return n_rows ? b->ops->gather(b, x, width, rows, n_rows, y, why) : STATUS_OK;
}

enum status kern_scatter_add(struct kern_backend *b, const float *x, size_t width,
                             const uint32_t *rows, const float *shares, size_t n_rows, float *y,
                             struct status_why *why)
{
    assert((x && rows && shares && y) || n_rows == 0);
    return n_rows ? b->ops->scatter_add(b, x, width, rows, shares, n_rows, y, why) : STATUS_OK;
}

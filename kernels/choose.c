#include "kernels/choose.h"

#include <assert.h>

#include "kernels/implementation.h"

/** Whether every range's queries fit the rows of bits; the last one sees the most. */
static bool fits(const struct kern_choose *op, const struct kern_query_range *range)
{
    for (size_t q = op->n_seen ? 0 : range->n_q - 1; q < range->n_q; q++)
        if (kern_choose_seen(op, range, q) > op->most_keys)
            return false;
    return true;
}

enum status kern_choose_check(const struct kern_choose *op, struct status_why *why)
{
    assert(op->n_heads > 0 && op->head_size > 0 && op->k_stride >= op->head_size);
    assert(op->together > 0 && (op->pool <= 1 || op->n_seen));
    assert(!op->fill || op->together == 1);
    for (size_t i = 0; i < op->n_ranges; i++)
        if (op->ranges[i].n_q > 0 && !fits(op, &op->ranges[i]))
            return status_fail(why, STATUS_USAGE,
                               "choose: queries of range %zu see more than the %zu keys that there "
                               "is room for",
                               i, op->most_keys);
    return STATUS_OK;
}

/** Scores of keys that are not chosen become -infinity before they are scaled. */
enum status kern_chosen_check(const struct kern_attention *op, struct status_why *why)
{
    const struct kern_chosen *c = &op->chosen;
    if (!c->bits)
        return STATUS_OK;
    if (c->n_sets != 1 && c->n_sets != op->n_kv_heads)
        return status_fail(why, STATUS_USAGE,
                           "attention: %zu sets of chosen keys; expected 1 or %zu", c->n_sets,
                           op->n_kv_heads);
    if (!(op->scale > 0))
        return status_fail(why, STATUS_USAGE,
                           "attention: a scale of %g with chosen keys; expected more than 0",
                           (double)op->scale);
    return STATUS_OK;
}

enum status kern_choose(struct kern_backend *b, const struct kern_choose *op,
                        struct status_why *why)
{
    enum status status = kern_choose_check(op, why);
    if (status || op->n_ranges == 0)
        return status;
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_ATTENTION, begun, b->ops->choose(b, op, why));
}

size_t kern_choose_bytes(struct kern_backend *b, const struct kern_choose *op)
{
    return b->ops->choose_bytes(b, op);
}

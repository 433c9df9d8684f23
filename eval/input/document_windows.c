/* Windows of documents; docs/protocols.md has the procedure. */
#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "eval/input/documents.h"

/** A plan under construction. */
struct builder {
    struct eval_plan *plan;
    const struct eval_documents *documents;
    size_t n, capacity; /* of plan->windows */
    size_t n_rows;
};

/** A window that scores those of the tokens target .. end - 1 that are to be scored. */
static enum status add_window(struct builder *b, struct eval_plan_window window, size_t target,
                              size_t end, struct status_why *why)
{
    struct eval_plan *plan = b->plan;
    if (base_array_reserve(plan->windows, b->capacity, b->n + 2, "windows", why))
        return STATUS_MEMORY;
    window.row = b->n_rows;
    for (; target < end; target++) {
        if (!b->documents->scored[target])
            continue;
        plan->positions[b->n_rows++] = (uint32_t)(target - window.first - 1);
        if (!plan->options.whole)
            window.n_inputs = target - window.first; /* nothing after it is scored */
    }
    if (window.n_inputs == 0)
        return STATUS_OK;
    plan->n_inputs = base_max(plan->n_inputs, window.n_inputs);
    plan->windows[b->n++] = window;
    plan->windows[b->n] = (struct eval_plan_window){.row = b->n_rows};
    return STATUS_OK;
}

static enum status add_document(struct builder *b, size_t i, struct status_why *why)
{
    const struct eval_document *d = &b->documents->items[i];
    const struct eval_plan_options *options = &b->plan->options;
    size_t end = d->first + d->n_tokens, target = d->first;
    enum status status = STATUS_OK;
    for (size_t first = d->first; first < end && !status; first += b->plan->step) {
        size_t n = base_min(b->plan->window, end - first);
        size_t target_end = base_min(first + n + options->apart, end);
        struct eval_plan_window window = {.first = first,
                                          .n_inputs = options->whole ? n : 0,
                                          .document = i,
                                          .begins = first == d->first};
        status = add_window(b, window, target, target_end, why);
        target = target_end;
    }
    return status;
}

enum status eval_plan_make_documents(struct eval_plan *plan,
                                     const struct eval_plan_options *options,
                                     const struct eval_documents *d, struct status_why *why)
{
    *plan = (struct eval_plan){.options = *options};
    plan->options.protocol = EVAL_PROTOCOL_DOCUMENTS;
    enum status status = eval_plan_check_size("the context size", options->n_ctx, 3, why);
    if (status)
        return status;
    plan->window = options->n_ctx;
    plan->step = options->apart ? options->n_ctx : options->n_ctx / 2;
    plan->bos_use = options->bos >= 0 ? EVAL_BOS_REPLACES : EVAL_BOS_NONE;
    status = base_array_new(plan->positions, d->n_scored, "scored tokens", why);
    struct builder b = {.plan = plan, .documents = d};
    for (size_t i = 0; i < d->n && !status; i++) {
        plan->n_stream += d->items[i].n_tokens;
        status = add_document(&b, i, why);
    }
    plan->n_windows = b.n;
    plan->n_scored = plan->n_inputs;
    if (!status)
        status = eval_plan_limit(plan, why);
    if (status)
        eval_plan_free(plan);
    return status;
}

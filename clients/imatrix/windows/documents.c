#include "clients/imatrix/windows/documents.h"

#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"

/** A plan under construction. */
struct builder {
    struct eval_plan *plan;
    const struct eval_documents *documents;
    size_t n, capacity; /* of plan->windows */
    size_t n_rows;
    bool masked;
};

/** A window of the n tokens from window.first on, in a document that ends at `end`. */
static enum status add_window(struct builder *b, struct eval_plan_window window, size_t n,
                              size_t end, struct status_why *why)
{
    struct eval_plan *plan = b->plan;
    if (base_array_reserve(plan->windows, b->capacity, b->n + 2, "windows", why))
        return STATUS_MEMORY;
    window.row = b->n_rows;
    window.n_inputs = b->masked ? 0 : n;
    for (size_t p = 0; p < n && window.first + p + 1 < end; p++) {
        if (!b->documents->scored[window.first + p + 1])
            continue;
        plan->positions[b->n_rows++] = (uint32_t)p;
        window.n_inputs = b->masked ? p + 1 : n;
    }
    if (window.n_inputs == 0)
        return STATUS_OK;
    plan->n_inputs = base_max(plan->n_inputs, window.n_inputs);
    plan->windows[b->n++] = window;
    plan->windows[b->n] = (struct eval_plan_window){.row = b->n_rows};
    return STATUS_OK;
}

enum status imat_plan_documents(struct eval_plan *plan, const struct eval_plan_options *options,
                                const struct eval_documents *d, bool masked, struct status_why *why)
{
    *plan = (struct eval_plan){.options = *options};
    plan->options.protocol = EVAL_PROTOCOL_DOCUMENTS;
    enum status status = eval_plan_check_size("the context size", options->n_ctx, 3, why);
    if (status)
        return status;
    plan->window = plan->step = options->n_ctx;
    plan->bos_use = options->bos >= 0 ? EVAL_BOS_REPLACES : EVAL_BOS_NONE;
    status = base_array_new(plan->positions, d->n_scored + 1, "scored tokens", why);
    struct builder b = {.plan = plan, .documents = d, .masked = masked};
    for (size_t i = 0; i < d->n && !status; i++) {
        size_t first = d->items[i].first, end = first + d->items[i].n_tokens;
        plan->n_stream += d->items[i].n_tokens;
        for (size_t at = first; at < end && !status; at += plan->window)
            status = add_window(
                &b, (struct eval_plan_window){.first = at, .document = i, .begins = at == first},
                base_min(plan->window, end - at), end, why);
    }
    plan->n_windows = b.n;
    plan->n_scored = plan->n_inputs;
    if (!status)
        status = eval_plan_limit(plan, why);
    if (status)
        eval_plan_free(plan);
    return status;
}

size_t imat_n_categories(const struct eval_documents *d)
{
    bool any_without = false;
    for (size_t i = 0; i < d->n; i++)
        any_without |= d->items[i].category == EVAL_NO_CATEGORY;
    return d->categories.n ? d->categories.n + any_without : 0;
}

size_t imat_category_of(const struct eval_documents *d, size_t document)
{
    int32_t category = d->items[document].category;
    return category == EVAL_NO_CATEGORY ? d->categories.n : (size_t)category;
}

enum status imat_name_categories(struct imat_matrix *m, const struct eval_documents *d,
                                 struct status_why *why)
{
    size_t n = imat_n_categories(d);
    enum status status = base_array_new(m->categories, n, "categories", why);
    for (size_t i = 0; i < n && !status; i++) {
        struct base_string name =
            i < d->categories.n ? d->categories.strings[i] : (struct base_string){"", 0};
        m->categories[m->n_categories] = strndup(name.data, name.n_bytes);
        if (!m->categories[m->n_categories++])
            status = status_fail(why, STATUS_MEMORY, "no memory for the name of a category");
    }
    return status;
}

#include "clients/probe/pass.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"

/** A pass at work. */
struct work {
    const struct probe_pass *p;
    const struct probe_sample **order; /* [n lists]: by window, then by position */
    struct probe_want *wants;          /* [n lists] */
    double *values;
    struct probe_unlisted *unlisted;
};

static int by_place(const void *a, const void *b)
{
    const struct probe_sample *x = *(const struct probe_sample *const *)a;
    const struct probe_sample *y = *(const struct probe_sample *const *)b;
    if (x->window != y->window)
        return (x->window > y->window) - (x->window < y->window);
    if (x->position != y->position)
        return (x->position > y->position) - (x->position < y->position);
    return (x > y) - (x < y);
}

/** The tokens of a window with the change; *moved: where row 0 of the window is now. */
static enum status change_tokens(struct model_tokens *out, const struct probe_pass *p,
                                 const struct probe_window *window, size_t n, ptrdiff_t *moved,
                                 struct status_why *why)
{
    size_t from = p->change == PROBE_NO_BOS;
    enum status status = STATUS_OK;
    *moved = p->change == PROBE_NO_BOS || p->change == PROBE_TOKEN_LESS ? -1
             : p->change == PROBE_TWO_BOS                               ? 1
                                                                        : 0;
    if (p->change == PROBE_TWO_BOS)
        status = model_tokens_add(out, model_token_bos(model_tokenizer(p->model)), why);
    for (size_t i = from; i < n && !status; i++)
        status = model_tokens_add(out, window->tokens.ids[i], why);
    return status;
}

/** By how many rows a list is off with the change, `moved` with all others. */
static ptrdiff_t row_of(const struct probe_pass *p, const struct probe_sample *s, ptrdiff_t moved)
{
    if (probe_is_of_prompt(s->length, s->position))
        moved += (p->change == PROBE_LISTS_AHEAD) - (p->change == PROBE_LISTS_BEHIND);
    return (ptrdiff_t)s->position - 1 + moved;
}

/** Evaluate one window for the n lists from `first` of the order. */
static enum status evaluate_window(struct work *w, size_t first, size_t n, struct status_why *why)
{
    const struct probe_pass *p = w->p;
    const struct probe_lists *l = p->lists;
    size_t window = w->order[first]->window, n_wants = 0;
    struct model_tokens tokens = {0};
    ptrdiff_t moved;
    const struct probe_sample *last = w->order[first + n - 1];
    size_t n_tokens = last->position + (p->change == PROBE_LISTS_AHEAD &&
                                        probe_is_of_prompt(last->length, last->position));
    enum status status = change_tokens(&tokens, p, &p->windows[window], n_tokens, &moved, why);
    for (size_t i = 0; i < n; i++) {
        const struct probe_sample *s = w->order[first + i];
        ptrdiff_t row = row_of(p, s, moved);
        for (size_t k = 0; row < 0 && k < s->n; k++)
            w->values[s->first + k] = (double)NAN;
        if (row >= 0)
            w->wants[n_wants++] = (struct probe_want){.row = (size_t)row,
                                                      .ids = l->ids + s->first,
                                                      .n = s->n,
                                                      .log_p = w->values + s->first};
    }
    const struct probe_evaluation e = {.model = p->model,
                                       .backend = p->backend,
                                       .tokens = tokens.ids,
                                       .n_tokens = tokens.n,
                                       .rounding = p->rounding,
                                       .seed = p->seed + window,
                                       .ties = p->ties ? &p->ties[window] : NULL,
                                       .progress = p->progress,
                                       .progress_user = p->user};
    if (!status && n_wants)
        status = probe_evaluate(&e, w->wants, n_wants, why);
    size_t skipped = n - n_wants;
    for (size_t i = 0; i < n_wants && !status && w->unlisted; i++)
        w->unlisted[w->order[first + skipped + i] - l->items] = w->wants[i].unlisted;
    free(tokens.ids);
    return status;
}

enum status probe_pass_run(const struct probe_pass *pass, double *values,
                           struct probe_unlisted *unlisted, struct status_why *why)
{
    struct work w = {.p = pass, .values = values, .unlisted = unlisted};
    const struct probe_lists *l = pass->lists;
    enum status status = base_array_new(w.order, l->n, "lists", why);
    if (!status)
        status = base_array_new(w.wants, l->n, "lists", why);
    for (size_t i = 0; !status && i < l->n; i++)
        w.order[i] = &l->items[i];
    if (!status)
        qsort(w.order, l->n, sizeof *w.order, by_place);
    for (size_t first = 0, n; first < l->n && !status; first += n) {
        size_t window = w.order[first]->window;
        n = 1;
        while (first + n < l->n && w.order[first + n]->window == window)
            n++;
        status = evaluate_window(&w, first, n, why);
        if (pass->window_done)
            pass->window_done(pass->user);
    }
    free(w.order);
    free(w.wants);
    return status;
}

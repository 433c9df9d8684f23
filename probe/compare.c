#include "probe/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/** What is evaluated at work. */
struct work {
    const struct probe_material *m;
    struct probe_comparison *out;
    size_t *order;            /* [n lists]: by window, then by position */
    struct probe_want *wants; /* [n lists] */
    struct probe_ties *ties;  /* [n_windows] */
    double *rounded;          /* of all entries: of a pass */
    struct probe_alternative *alternatives;
    double **alternative_values;
    size_t n_alternatives, n_steps, steps_done;
};

/** A way to evaluate all windows. */
struct variant {
    const struct model *model;
    enum probe_finding change; /* NO_BOS, TWO_BOS, TOKEN_LESS; else as the windows are */
    enum probe_rounding rounding;
    uint64_t seed;
    bool with_ties;
};

static void on_progress(void *user, size_t done, size_t total)
{
    const struct work *w = user;
    double at = (double)w->steps_done + (total ? (double)done / (double)total : 0);
    if (w->m->progress)
        w->m->progress(w->m->user, w->n_steps ? fmin(at / (double)w->n_steps, 1) : 0);
}

static int by_place(const void *a, const void *b, void *lists)
{
    const struct probe_sample *items = ((const struct probe_lists *)lists)->items;
    const struct probe_sample *x = &items[*(const size_t *)a];
    const struct probe_sample *y = &items[*(const size_t *)b];
    if (x->window != y->window)
        return (x->window > y->window) - (x->window < y->window);
    return (x->position > y->position) - (x->position < y->position);
}

/** The tokens of a window with a change; *moved: where row 0 of the window is now. */
static enum status change_tokens(struct model_tokens *out, const struct variant *v,
                                 const struct probe_window *window, size_t n, ptrdiff_t *moved,
                                 struct status_why *why)
{
    const struct model_tokenizer *t = model_tokenizer(v->model);
    size_t from = v->change == PROBE_NO_BOS;
    enum status status = STATUS_OK;
    *moved = v->change == PROBE_NO_BOS || v->change == PROBE_TOKEN_LESS ? -1
             : v->change == PROBE_TWO_BOS                               ? 1
                                                                        : 0;
    if (v->change == PROBE_TWO_BOS)
        status = model_tokens_add(out, model_token_bos(t), why);
    for (size_t i = from; i < n && !status; i++)
        status = model_tokens_add(out, window->tokens.ids[i], why);
    return status;
}

/** Evaluate one window for the n lists from `first` of the order. */
static enum status evaluate_window(struct work *w, const struct variant *v, size_t first, size_t n,
                                   double *values, struct status_why *why)
{
    const struct probe_lists *l = w->m->lists;
    size_t window = l->items[w->order[first]].window, n_wants = 0;
    struct model_tokens tokens = {0};
    ptrdiff_t moved;
    enum status status = change_tokens(&tokens, v, &w->m->windows[window],
                                       l->items[w->order[first + n - 1]].position, &moved, why);
    for (size_t i = 0; i < n; i++) {
        const struct probe_sample *s = &l->items[w->order[first + i]];
        ptrdiff_t row = (ptrdiff_t)s->position - 1 + moved;
        for (size_t k = 0; row < 0 && k < s->n; k++)
            values[s->first + k] = (double)NAN;
        if (row >= 0)
            w->wants[n_wants++] = (struct probe_want){(size_t)row, l->ids + s->first, s->n,
                                                      values + s->first, (double)NAN};
    }
    const struct probe_evaluation e = {.model = v->model,
                                       .backend = w->m->backend,
                                       .tokens = tokens.ids,
                                       .n_tokens = tokens.n,
                                       .rounding = v->rounding,
                                       .seed = v->seed + window,
                                       .ties = v->with_ties ? &w->ties[window] : NULL,
                                       .progress = on_progress,
                                       .progress_user = w};
    if (!status && n_wants)
        status = probe_evaluate(&e, w->wants, n_wants, why);
    size_t skipped = n - n_wants;
    if (!status && v->rounding == PROBE_EXACT && v->with_ties)
        for (size_t i = 0; i < n_wants; i++)
            w->out->log_missing[w->order[first + skipped + i]] = w->wants[i].log_missing;
    free(tokens.ids);
    w->steps_done++;
    return status;
}

static enum status evaluate(struct work *w, const struct variant *v, double *values,
                            struct status_why *why)
{
    const struct probe_lists *l = w->m->lists;
    enum status status = STATUS_OK;
    for (size_t first = 0, n; first < l->n && !status; first += n) {
        n = 1;
        while (first + n < l->n &&
               l->items[w->order[first + n]].window == l->items[w->order[first]].window)
            n++;
        status = evaluate_window(w, v, first, n, values, why);
    }
    return status;
}

/** What passes of a kind are off: squares by list are added to the member at `offset`. */
static enum status measure(struct work *w, enum probe_rounding rounding, bool coarse,
                           struct status_why *why)
{
    const struct probe_lists *l = w->m->lists;
    enum status status = STATUS_OK;
    double n = (double)w->m->n_passes;
    for (size_t pass = 0; pass < w->m->n_passes && !status; pass++) {
        const struct variant v = {w->m->model, PROBE_NOTHING, rounding,
                                  1 + 64 * pass + (coarse ? 4096 : 0), true};
        status = evaluate(w, &v, w->rounded, why);
        for (size_t i = 0; i < l->n && !status; i++) {
            const struct probe_sample *s = &l->items[i];
            struct probe_judged *j = &w->out->judged[i];
            double rms =
                probe_residual(w->rounded + s->first, w->out->log_p + s->first, s->n, 1, 0);
            *(coarse ? &j->coarse : &j->fine) += rms * rms / n;
        }
    }
    for (size_t i = 0; i < l->n; i++) {
        double *squares = coarse ? &w->out->judged[i].coarse : &w->out->judged[i].fine;
        *squares = sqrt(*squares);
    }
    return status;
}

static enum status add_alternative(struct work *w, enum probe_finding change,
                                   const struct probe_other *other, struct status_why *why)
{
    struct probe_alternative *a = &w->alternatives[w->n_alternatives];
    double **values = &w->alternative_values[w->n_alternatives];
    const struct variant v = {other ? other->model : w->m->model, change, PROBE_EXACT, 0, false};
    if (base_array_new(*values, w->m->lists->n_entries + 1, "values", why))
        return STATUS_MEMORY;
    *a = (struct probe_alternative){change, other ? other->path : NULL, *values};
    w->n_alternatives++;
    return evaluate(w, &v, *values, why);
}

/** The files that are named; and where the lists depart, what else may have happened to them. */
static enum status find_alternatives(struct work *w, struct status_why *why)
{
    const struct model_tokenizer *t = model_tokenizer(w->m->model);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < w->m->n_others && !status; i++)
        status = add_alternative(w, PROBE_OTHER_FILE, &w->m->others[i], why);
    if (w->out->verdict.outcome != PROBE_DIFFERS)
        return status;
    w->n_steps += 3 * w->m->n_windows;
    if (!status && w->m->windows[0].has_bos)
        status = add_alternative(w, PROBE_NO_BOS, NULL, why);
    if (!status && model_token_bos(t) >= 0)
        status = add_alternative(w, PROBE_TWO_BOS, NULL, why);
    return status ? status : add_alternative(w, PROBE_TOKEN_LESS, NULL, why);
}

/** The yardsticks, and which lists follow a near tie. */
static enum status prepare(struct work *w, struct status_why *why)
{
    const struct probe_lists *l = w->m->lists;
    const struct variant exact = {w->m->model, PROBE_NOTHING, PROBE_EXACT, 0, true};
    enum probe_rounding fine = w->m->arithmetic == PROBE_LIKE_GPU ? PROBE_BFLOAT16 : PROBE_AS_LLAMA;
    for (size_t i = 0; i < l->n; i++) {
        const struct probe_sample *s = &l->items[i];
        w->out->judged[i] = (struct probe_judged){.window = s->window,
                                                  .length = s->length,
                                                  .position = s->position,
                                                  .path = s->path,
                                                  .log_q = l->log_q + s->first,
                                                  .log_p = w->out->log_p + s->first,
                                                  .n = s->n,
                                                  .first = s->first};
    }
    enum status status = evaluate(w, &exact, w->out->log_p, why);
    if (!status)
        status = measure(w, fine, false, why);
    if (!status)
        status = measure(w, PROBE_COARSE, true, why);
    for (size_t i = 0; i < l->n && !status; i++) {
        struct probe_judged *j = &w->out->judged[i];
        j->excused =
            w->ties[j->window].n_tokens > 0 && j->position > probe_ties_first(&w->ties[j->window]);
    }
    return status;
}

/** Tokens that are not listed although they are clearly likelier than some that are. */
static void count_forgotten(struct probe_comparison *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct probe_judged *j = &out->judged[i];
        double least = (double)INFINITY;
        for (size_t k = 0; k < j->n; k++)
            least = fmin(least, j->log_q[k]);
        out->n_forgotten += out->log_missing[i] > least + 6 * fmax(j->coarse, out->verdict.coarse);
    }
}

/** The token that comes next, where a list has it. */
static void compare_next(const struct work *w)
{
    const struct probe_lists *l = w->m->lists;
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        const struct probe_sample *s = &l->items[i];
        const struct model_tokens *tokens = &w->m->windows[s->window].tokens;
        for (size_t k = s->first; k < s->first + s->n && s->position < tokens->n; k++)
            if (l->ids[k] == tokens->ids[s->position]) {
                sum += w->out->log_p[k] - l->log_q[k];
                n++;
            }
    }
    w->out->n_next = n;
    w->out->nll_difference = n ? sum / (double)n : (double)NAN;
}

static enum status judge(struct work *w, struct status_why *why)
{
    const struct probe_lists *l = w->m->lists;
    struct probe_comparison *out = w->out;
    probe_judge(&out->verdict, out->judged, l->n, l->n_spoilt, NULL, 0);
    if (out->verdict.outcome == PROBE_NO_RESULT)
        return STATUS_OK;
    enum status status = find_alternatives(w, why);
    if (status)
        return status;
    probe_judge(&out->verdict, out->judged, l->n, l->n_spoilt, w->alternatives, w->n_alternatives);
    for (size_t i = 0; i < w->m->n_others; i++) {
        double squares = 0;
        for (size_t k = 0; k < l->n; k++) {
            const struct probe_judged *j = &out->judged[k];
            double rms = probe_residual(j->log_q, w->alternatives[i].log_p + j->first, j->n, 1, 0);
            squares += rms * rms / (double)l->n;
        }
        out->other_rms[i] = sqrt(squares);
    }
    count_forgotten(out, l->n);
    compare_next(w);
    return STATUS_OK;
}

static enum status make_work(struct work *w, struct status_why *why)
{
    const struct probe_lists *l = w->m->lists;
    size_t n_alternatives = w->m->n_others + 3;
    if (base_array_new(w->out->judged, l->n, "lists", why) ||
        base_array_new(w->out->log_p, l->n_entries, "values", why) ||
        base_array_new(w->out->log_missing, l->n, "lists", why) ||
        base_array_new(w->out->other_rms, w->m->n_others, "files", why) ||
        base_array_new(w->order, l->n, "lists", why) ||
        base_array_new(w->wants, l->n, "lists", why) ||
        base_array_new(w->ties, w->m->n_windows, "windows", why) ||
        base_array_new(w->rounded, l->n_entries, "values", why) ||
        base_array_new(w->alternatives, n_alternatives, "explanations", why) ||
        base_array_new(w->alternative_values, n_alternatives, "explanations", why))
        return STATUS_MEMORY;
    for (size_t i = 0; i < l->n; i++)
        w->order[i] = i;
    struct probe_lists copy = *l; /* the walk takes lists that may change */
    qsort_r(w->order, l->n, sizeof *w->order, by_place, &copy);
    w->n_steps = w->m->n_windows * (1 + 2 * w->m->n_passes + w->m->n_others);
    return STATUS_OK;
}

enum status probe_compare(struct probe_comparison *out, const struct probe_material *material,
                          struct status_why *why)
{
    struct work w = {.m = material, .out = out};
    *out = (struct probe_comparison){.nll_difference = (double)NAN};
    enum status status = make_work(&w, why);
    if (!status && material->lists->n)
        status = prepare(&w, why);
    if (!status)
        status = judge(&w, why);
    for (size_t i = 0; w.ties && i < material->n_windows; i++)
        probe_ties_free(&w.ties[i]);
    for (size_t i = 0; w.alternative_values && i < w.n_alternatives; i++)
        free(w.alternative_values[i]);
    free(w.alternative_values);
    free(w.alternatives);
    free(w.order);
    free(w.wants);
    free(w.ties);
    free(w.rounded);
    return status;
}

void probe_comparison_free(struct probe_comparison *c)
{
    free(c->judged);
    free(c->log_p);
    free(c->log_missing);
    free(c->other_rms);
    *c = (struct probe_comparison){.judged = NULL};
}

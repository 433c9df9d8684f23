#include "eval/metrics/groups.h"

#include <math.h>
#include <stdlib.h>

#include "base/array.h"

struct base_estimate eval_group_estimate(const struct eval_group *group,
                                         enum eval_group_figure figure)
{
    const struct base_moments *m = &group->figures[figure];
    double n = (double)m->n;
    if (m->n == 0)
        return (struct base_estimate){(double)NAN, (double)NAN, (double)NAN};
    return (struct base_estimate){base_moments_mean(m),
                                  m->n > 1 ? sqrt(m->spread / n / (n - 1)) : 0,
                                  sqrt(base_moments_lot_variance(m))};
}

static void add_window(struct eval_group *group, const struct eval_kld_tables *t, size_t w,
                       size_t lot)
{
    size_t n = eval_table_n(t->candidate, w);
    for (size_t k = 0; k < EVAL_GROUP_N_OF_PAIR; k++)
        base_moments_lot(&group->figures[k], lot);
    const double *log_q = eval_table_row(t->candidate, EVAL_LOG_PROB, w);
    for (size_t i = 0; i < n; i++) {
        size_t position = eval_plan_position(t->plan, w, i);
        group->n_bytes += t->stream->n_text_bytes[eval_plan_target(t->plan, w, position)];
        base_moments_add(&group->figures[EVAL_GROUP_NLL], -log_q[i]);
        if (!t->base)
            continue;
        double log_p = eval_table_row(t->base, EVAL_LOG_PROB, w)[i];
        base_moments_add(&group->figures[EVAL_GROUP_BASE_NLL], -log_p);
        base_moments_add(&group->figures[EVAL_GROUP_LN_RATIO], log_p - log_q[i]);
        base_moments_add(&group->figures[EVAL_GROUP_KLD],
                         eval_table_row(t->candidate, EVAL_KL, w)[i]);
        base_moments_add(&group->figures[EVAL_GROUP_SAME_TOP],
                         eval_table_row(t->candidate, EVAL_SAME_TOP, w)[i]);
    }
    group->n_windows++;
    group->n_tokens += n;
}

static struct eval_group *category_of(struct eval_groups *out, const struct eval_documents *d,
                                      size_t i)
{
    int32_t category = d->items[i].category;
    if (!d->categories.n)
        return NULL;
    return &out->categories[category == EVAL_NO_CATEGORY ? d->categories.n : (size_t)category];
}

static void count_documents(struct eval_groups *out, const struct eval_documents *d)
{
    out->n_categories = d->categories.n;
    for (size_t i = 0; i < d->n; i++) {
        struct eval_group *category = category_of(out, d, i);
        out->documents[i].n_documents = 1;
        out->files[d->items[i].file].n_documents++;
        if (category)
            category->n_documents++;
        if (category && d->items[i].category == EVAL_NO_CATEGORY)
            out->n_categories = d->categories.n + 1;
    }
}

/** The mean of a figure over the groups that have it. */
static struct base_estimate average(const struct eval_group *groups, size_t n,
                                    enum eval_group_figure k, bool of_documents)
{
    struct base_moments means = {0};
    double squares = 0, lot_squares = 0;
    bool known = true;
    for (size_t g = 0; g < n; g++) {
        if (!groups[g].n_tokens)
            continue;
        struct base_estimate e = eval_group_estimate(&groups[g], k);
        base_moments_add(&means, e.value);
        squares += e.error * e.error;
        lot_squares += e.lot_error * e.lot_error;
        known &= e.lot_error > 0;
    }
    double n_groups = (double)means.n;
    struct base_estimate x = {base_moments_mean(&means), sqrt(squares) / n_groups, 0};
    if (of_documents) /* a document is one of many that might have been taken */
        x.lot_error = sqrt(base_moments_variance(&means));
    else if (known)
        x.lot_error = sqrt(lot_squares) / n_groups;
    return x;
}

enum status eval_groups_make(struct eval_groups *out, const struct eval_documents *d,
                             const struct eval_kld_tables *t, struct status_why *why)
{
    *out = (struct eval_groups){.n_figures = t->base ? EVAL_GROUP_N_OF_PAIR : EVAL_GROUP_N_OF_ONE};
    if (base_array_new(out->documents, d->n, "documents", why) ||
        base_array_new(out->files, d->n_files, "files", why) ||
        base_array_new(out->categories, d->categories.n + 1, "categories", why)) {
        eval_groups_free(out);
        return STATUS_MEMORY;
    }
    count_documents(out, d);
    out->all.n_documents = d->n;
    for (size_t w = 0; w < t->plan->n_windows; w++) {
        size_t i = eval_plan_document(t->plan, w);
        if (!t->candidate->done[w])
            continue;
        size_t lot = eval_plan_lot(t->plan, w);
        add_window(&out->all, t, w, lot);
        add_window(&out->documents[i], t, w, w);
        add_window(&out->files[d->items[i].file], t, w, lot);
        if (out->n_categories)
            add_window(category_of(out, d, i), t, w, lot);
    }
    bool of_documents = !out->n_categories;
    const struct eval_group *groups = of_documents ? out->documents : out->categories;
    size_t n = of_documents ? d->n : out->n_categories;
    for (size_t g = 0; g < n; g++)
        out->n_macro += groups[g].n_tokens > 0;
    for (size_t k = 0; k < out->n_figures; k++)
        out->macro[k] = average(groups, n, (enum eval_group_figure)k, of_documents);
    return STATUS_OK;
}

void eval_groups_free(struct eval_groups *groups)
{
    free(groups->documents);
    free(groups->files);
    free(groups->categories);
    *groups = (struct eval_groups){0};
}

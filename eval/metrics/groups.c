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
        return (struct base_estimate){(double)NAN, (double)NAN};
    return (struct base_estimate){base_moments_mean(m),
                                  m->n > 1 ? sqrt(m->spread / n / (n - 1)) : 0};
}

static void add_window(struct eval_group *group, const struct eval_kld_tables *t, size_t w)
{
    size_t n = eval_table_n(t->candidate, w);
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

static void average(struct eval_groups *out, const struct eval_group *groups, size_t n)
{
    for (size_t g = 0; g < n; g++) {
        if (!groups[g].n_tokens)
            continue;
        out->n_macro++;
        for (size_t k = 0; k < out->n_figures; k++) {
            struct base_estimate e = eval_group_estimate(&groups[g], (enum eval_group_figure)k);
            out->macro[k].value += e.value;
            out->macro[k].error += e.error * e.error;
        }
    }
    for (size_t k = 0; k < out->n_figures; k++) {
        out->macro[k].value /= (double)out->n_macro;
        out->macro[k].error = sqrt(out->macro[k].error) / (double)out->n_macro;
    }
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
        add_window(&out->all, t, w);
        add_window(&out->documents[i], t, w);
        add_window(&out->files[d->items[i].file], t, w);
        if (out->n_categories)
            add_window(category_of(out, d, i), t, w);
    }
    average(out, out->n_categories ? out->categories : out->documents,
            out->n_categories ? out->n_categories : d->n);
    return STATUS_OK;
}

void eval_groups_free(struct eval_groups *groups)
{
    free(groups->documents);
    free(groups->files);
    free(groups->categories);
    *groups = (struct eval_groups){0};
}

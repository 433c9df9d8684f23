/* Perplexity and divergence: sums of the windows that both results have, resampled. */
#include <math.h>
#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "clients/documents/compare/compare.h"

/* What of a window is read, and what is told: figures are functions of the sums' means. */
struct evaluator {
    const char *list; /* of windows, below a side's field */
    const char *sums[DOC_MAX_FIGURES];
    size_t n_sums;
    const char *mean; /* below a side's field: the mean of sum `mean_of` over all windows */
    size_t mean_of;
    struct doc_figure figures[DOC_MAX_FIGURES];
    size_t n_figures;
    void (*compute)(double *figures, const double *means);
};

static void perplexity_figures(double *figures, const double *means)
{
    figures[0] = exp(means[0]);
    figures[1] = means[0];
}

static void kld_figures(double *figures, const double *means)
{
    perplexity_figures(figures, means);
    figures[DOC_FIGURE_KLD] = means[1];
    figures[3] = means[2];
    figures[4] = sqrt(means[3]);
    figures[5] = means[4];
}

static const struct evaluator perplexity = {
    .list = "windows.sums",
    .sums = {"nll"},
    .n_sums = 1,
    .mean = "result.nll",
    .figures = {{"PPL", "ppl", 1, 4}, {"ln(PPL)", "nll", 1, 6}},
    .n_figures = 2,
    .compute = perplexity_figures,
};

static const struct evaluator kld = {
    .list = "windows",
    .sums = {"nll", "kld", "dp", "dp_squared", "same_top"},
    .n_sums = 5,
    .mean = "kld.mean",
    .mean_of = 1,
    .figures = {{"PPL", "ppl", 1, 4},
                {"ln(PPL)", "nll", 1, 6},
                {"Mean KLD", "kld", 1, 6},
                {"Mean Δp %", "dp", 100, 3},
                {"RMS Δp %", "rms_dp", 100, 3},
                {"Same top p %", "same_top", 100, 3}},
    .n_figures = 6,
    .compute = kld_figures,
};

/* Windows as they are read. */
struct windows {
    double *n_tokens, *sums[2];
    size_t n;
};

static void free_windows(struct windows *w)
{
    free(w->n_tokens);
    free(w->sums[0]);
    free(w->sums[1]);
}

static enum status make_windows(struct windows *w, size_t capacity, size_t n_sums,
                                struct status_why *why)
{
    enum status status = base_array_new(w->n_tokens, capacity, "windows", why);
    for (size_t side = 0; side < 2 && !status; side++)
        status = base_array_new(w->sums[side], capacity * n_sums, "sums", why);
    return status;
}

static enum status add_window(struct windows *w, const struct base_field items[2],
                              const struct evaluator *e, struct status_why *why)
{
    enum status status = doc_equal(items[0], items[1], "n_tokens", NULL, why);
    size_t n_tokens = doc_count(items[0], "n_tokens");
    for (size_t side = 0; side < 2 && !status; side++) {
        struct base_field item = items[side];
        double *sums = w->sums[side] + w->n * e->n_sums;
        for (size_t k = 0; k < e->n_sums; k++)
            sums[k] = base_field_real_or_null(item, e->sums[k]);
        if (n_tokens == 0)
            base_field_fail_member(item, "n_tokens", STATUS_FORMAT, "is 0, expected 1 or more");
        for (size_t k = 0; k < e->n_sums; k++)
            if (!isfinite(sums[k]))
                base_field_fail_member(item, e->sums[k], STATUS_NONFINITE,
                                       "is not finite: there is nothing to compare");
        status = base_json_status(item.reader, why);
    }
    w->n_tokens[w->n] = (double)n_tokens;
    w->n += !status;
    return status;
}

/* Both lists ascend by window; those that only one has are counted and left out. */
static enum status read_common(struct doc_compare *c, struct windows *w,
                               const struct base_field lists[2], const struct evaluator *e,
                               struct status_why *why)
{
    struct base_field items[2] = {{0}};
    bool more[2];
    for (size_t side = 0; side < 2; side++)
        more[side] = base_field_next(lists[side], &items[side]);
    while (more[0] && more[1]) {
        size_t at[2] = {doc_count(items[0], "window"), doc_count(items[1], "window")};
        enum status status = doc_compare_status(c, why);
        if (!status && at[0] == at[1])
            status = add_window(w, items, e, why);
        if (status)
            return status;
        for (size_t side = 0; side < 2; side++) {
            if (at[side] > at[!side])
                continue;
            c->n_only[side] += at[side] < at[!side];
            more[side] = base_field_next(lists[side], &items[side]);
        }
    }
    for (size_t side = 0; side < 2; side++)
        while (more[side]) {
            c->n_only[side]++;
            more[side] = base_field_next(lists[side], &items[side]);
        }
    return STATUS_OK;
}

/* Windows that ascend, and add up to what the document says of them all. */
static enum status check_list(struct base_field side, struct base_field list,
                              const struct evaluator *e, struct status_why *why)
{
    double sum = 0, n_tokens = 0;
    size_t least = 0;
    struct base_field item = {0};
    while (base_field_next(list, &item)) {
        size_t window = doc_count(item, "window");
        if (window < least)
            base_field_fail_member(item, "window", STATUS_FORMAT,
                                   "is %zu, expected %zu or more: windows ascend", window, least);
        least = window + 1;
        n_tokens += (double)doc_count(item, "n_tokens");
        sum += base_field_real_or_null(item, e->sums[e->mean_of]);
    }
    if (isfinite(sum) && n_tokens > 0 && base_field_find(side, e->mean).json) {
        double told = base_field_real_or_null(side, e->mean), found = sum / n_tokens;
        if (!(fabs(told - found) <= 1e-9 * fabs(found) + 1e-12))
            base_field_fail_member(
                side, e->mean, STATUS_FORMAT,
                "is %.9g, but its windows give %.9g: the file is not as it was written", told,
                found);
    }
    return base_json_status(list.reader, why);
}

static enum status check_figure(const struct doc_compare *c, size_t k, struct status_why *why)
{
    const struct doc_pair_figure *v = &c->values[k];
    return isfinite(v->high - v->low + v->difference)
               ? STATUS_OK
               : status_fail(why, STATUS_NONFINITE, "%s, %s: %s is not finite in all resamples",
                             c->sides[0].document.json.file, c->sides[1].document.json.file,
                             c->figures[k].name);
}

static enum status bootstrap(struct doc_compare *c, const struct windows *w,
                             const struct evaluator *e, struct status_why *why)
{
    if (w->n < 2 || w->n > UINT32_MAX)
        return status_fail(why, STATUS_USAGE,
                           "%s and %s have %zu window%s in common; an interval takes two or more",
                           c->sides[0].document.json.file, c->sides[1].document.json.file, w->n,
                           status_plural(w->n));
    struct doc_pair pair = {
        .n_windows = w->n,
        .n_tokens = w->n_tokens,
        .n_sums = e->n_sums,
        .sums = {w->sums[0], w->sums[1]},
        .n_figures = e->n_figures,
        .figures = e->compute,
        .n_resamples = (size_t)c->settings.n_resamples,
        .seed = (uint32_t)c->settings.seed,
    };
    c->n_figures = e->n_figures;
    c->figures = e->figures;
    c->n_windows = w->n;
    for (size_t i = 0; i < w->n; i++)
        c->n_tokens += (size_t)w->n_tokens[i];
    enum status status = doc_pair_bootstrap(c->values, &pair, why);
    for (size_t k = 1; k < e->n_figures && !status; k++)
        status = check_figure(c, k, why);
    return status;
}

/* The perplexity comes last: where it is too large for a number, its logarithm tells as much. */
enum status doc_compare_verdict(const struct doc_compare *c, struct status_why *why)
{
    double nll = fmax(c->values[1].a, c->values[1].b);
    if (c->n_figures && isinf(exp(nll)))
        return status_fail(why, STATUS_NONFINITE,
                           "%s: the perplexity, exp(%.4f), is larger than the largest number",
                           c->sides[c->values[1].b > c->values[1].a].document.json.file, nll);
    return c->n_figures ? check_figure(c, 0, why) : STATUS_OK;
}

/* What results say of it: null where it is not known, nothing in older ones. */
static double rounding_of_both(const struct doc_compare *c)
{
    double sum = 0;
    for (size_t side = 0; side < 2; side++) {
        struct base_field field = c->sides[side].field;
        bool known = base_field_find(field, "kld.rounding").json;
        sum += known ? base_field_real_or_null(field, "kld.rounding") : (double)NAN;
    }
    return sum;
}

enum status doc_compare_windows(struct doc_compare *c, struct status_why *why)
{
    const struct evaluator *e = c->sides[0].document.kind == DOC_KLD ? &kld : &perplexity;
    struct base_field lists[2];
    size_t n[2];
    if (e == &kld)
        c->kld_rounding = rounding_of_both(c);
    for (size_t side = 0; side < 2; side++)
        lists[side] = doc_list(&n[side], c->sides[side].field, e->list);
    struct windows windows = {0};
    enum status status = doc_compare_status(c, why);
    if (!status)
        status = make_windows(&windows, base_min(n[0], n[1]), e->n_sums, why);
    if (!status)
        status = read_common(c, &windows, lists, e, why);
    for (size_t side = 0; side < 2 && !status; side++)
        status = check_list(c->sides[side].field, lists[side], e, why);
    if (!status)
        status = bootstrap(c, &windows, e, why);
    free_windows(&windows);
    return status;
}

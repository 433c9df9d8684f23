#include "clients/documents/results/scoreboard.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/printable.h"

#define KLD_QUANTILE(label, key, of_new_type)                                                      \
    {                                                                                              \
        label, "kld_" key, "kld." key, "kld." key "_error", 1, 6, false, of_new_type               \
    }
#define DP_QUANTILE(label, key)                                                                    \
    {                                                                                              \
        label, "dp_" key "_percent", "dp." key, "dp." key "_error", 100, 3, false                  \
    }

enum { MAX_TYPE_NAME = 63 };

static const struct doc_metric metrics[DOC_N_METRICS] = {
    [DOC_METRIC_PPL] = {"PPL", "ppl", "ppl.value", "ppl.value_error", 1, 6, true, true},
    {"PPL(base)", "ppl_base", "ppl.base", "ppl.base_error", 1, 6, false},
    {"ΔPPL", "delta_ppl", "ppl.difference", "ppl.difference_error", 1, 6, true},
    {"PPL ratio", "ppl_ratio", "ppl.ratio", "ppl.ratio_error", 1, 6, false, true},
    {"ln(PPL ratio)", "ln_ppl_ratio", "ppl.ln_ratio", "ppl.ln_ratio_error", 1, 6, false},
    {"PPL correlation %", "ppl_correlation_percent", "ppl.correlation", NULL, 100, 2, false},
    [DOC_METRIC_KLD] = {"KLD", "kld", "kld.mean", "kld.mean_error", 1, 6, true, true},
    {"Maximum KLD", "kld_max", "kld.max", NULL, 1, 6, false, true},
    {"KLD 99.9 %", "kld_p99_9", "kld.p99_9", "kld.p99_9_error", 1, 6, true, true},
    KLD_QUANTILE("KLD 99.0 %", "p99", true),
    KLD_QUANTILE("KLD 95.0 %", "p95", false),
    KLD_QUANTILE("KLD 90.0 %", "p90", false),
    KLD_QUANTILE("Median KLD", "median", true),
    KLD_QUANTILE("KLD 10.0 %", "p10", false),
    KLD_QUANTILE("KLD 5.0 %", "p5", false),
    KLD_QUANTILE("KLD 1.0 %", "p1", false),
    KLD_QUANTILE("KLD 0.1 %", "p0_1", false),
    {"Minimum KLD", "kld_min", "kld.min", NULL, 1, 6, false},
    {"Mean Δp %", "mean_dp_percent", "dp.mean", "dp.mean_error", 100, 3, true},
    {"Maximum Δp %", "dp_max_percent", "dp.max", NULL, 100, 3, false},
    DP_QUANTILE("99.9% Δp %", "p99_9"),
    DP_QUANTILE("99.0% Δp %", "p99"),
    DP_QUANTILE("95.0% Δp %", "p95"),
    DP_QUANTILE("90.0% Δp %", "p90"),
    DP_QUANTILE("75.0% Δp %", "p75"),
    DP_QUANTILE("Median Δp %", "median"),
    DP_QUANTILE("25.0% Δp %", "p25"),
    DP_QUANTILE("10.0% Δp %", "p10"),
    DP_QUANTILE("5.0% Δp %", "p5"),
    DP_QUANTILE("1.0% Δp %", "p1"),
    DP_QUANTILE("0.1% Δp %", "p0_1"),
    {"Minimum Δp %", "dp_min_percent", "dp.min", NULL, 100, 3, false},
    {"RMS Δp %", "rms_dp_percent", "dp.rms", "dp.rms_error", 100, 3, true, true},
    {"Same top p %", "same_top_percent", "same_top", "same_top_error", 100, 3, true, true},
};

static const struct doc_metric task_metrics[] = {
    {"tasks", "n_tasks", "result.n_tasks", NULL, 1, 0, true},
    {"score %", "score_percent", "result.score.share", "result.score.error", 100, 3, true},
    {"acc %", "acc_percent", "result.acc.share", "result.acc.error", 100, 3, true},
    {"acc_norm %", "acc_norm_percent", "result.acc_norm.share", "result.acc_norm.error", 100, 3,
     true},
};

const struct doc_metric *doc_scoreboard_metrics(size_t *n, const struct doc_scoreboard *t)
{
    *n = t->of_tasks ? sizeof task_metrics / sizeof *task_metrics : DOC_N_METRICS;
    return t->of_tasks ? task_metrics : metrics;
}

/* The data set that an importance matrix was made from, or else the matrix, or "none". */
static const char *imatrix_of(struct base_field model)
{
    static const char *const paths[] = {"imatrix_dataset", "imatrix_file"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (base_field_find(model, paths[i]).json)
            return base_file_name(base_field_text(model, paths[i]));
    return "none";
}

/* A run of the model at a path. NULL: there is no memory. */
static struct doc_scoreboard_run *new_run(struct doc_scoreboard *t, struct base_field from,
                                          const char *path, struct status_why *why)
{
    if (base_array_reserve(t->runs, t->capacity, t->n + 1, "runs in a table", why))
        return NULL;
    struct doc_scoreboard_run *run = &t->runs[t->n++];
    struct base_field model = base_field_need(from, path);
    *run = (struct doc_scoreboard_run){
        .from = from,
        .file = doc_model_file_in(model),
        .given = doc_model_label_in(model),
        .name = base_field_text(model, "name"),
        .id = base_field_text(model, "id"),
        .imatrix = imatrix_of(model),
        .task = "",
        .model = model,
        .n_bytes = base_field_real_or_null(model, "n_bytes"),
        .bits_per_weight = base_field_real_or_null(model, "bits_per_weight"),
    };
    snprintf(run->quantisation, sizeof run->quantisation, "%.*s%s", MAX_TYPE_NAME,
             base_field_text(model, "quantisation"), doc_model_kv_in(run->kv, model));
    return run;
}

static struct doc_metric_value value_of(struct base_field from, const char *path,
                                        const char *error_path)
{
    struct doc_metric_value v = {.known = true, .value = base_field_real_or_null(from, path)};
    if (error_path)
        v.error = doc_error(from, error_path);
    return v;
}

/* The model of choice tasks, or a candidate of a divergence: all metrics. */
static enum status add_whole(struct doc_scoreboard *t, struct base_field from,
                             struct status_why *why)
{
    struct doc_scoreboard_run *run = new_run(t, from, "model", why);
    if (!run)
        return STATUS_MEMORY;
    size_t n;
    const struct doc_metric *m = doc_scoreboard_metrics(&n, t);
    for (size_t i = 0; i < n; i++)
        run->values[i] = value_of(from, m[i].path, m[i].error);
    if (t->of_tasks)
        run->task = base_field_text(from, "kind");
    return STATUS_OK;
}

/* How many windows a candidate of a divergence was evaluated on, and how many tokens. */
static void count_windows(struct base_field candidate, size_t *n_windows, size_t *n_tokens)
{
    struct base_field list = base_field_list_or_none(candidate, "windows"), item = {0};
    *n_windows = base_field_count(list);
    *n_tokens = 0;
    while (base_field_next(list, &item))
        *n_tokens += doc_count(item, "n_tokens");
}

/* The base of a divergence, unless it is no model, or a run of the same model with the same figure
 * is there. */
static enum status add_base(struct doc_scoreboard *t, struct base_field root,
                            struct base_field candidate, struct status_why *why)
{
    if (!base_field_find(root, "base.quantisation").json)
        return STATUS_OK;
    struct doc_scoreboard_run *run = new_run(t, root, "base", why);
    if (!run)
        return STATUS_MEMORY;
    run->is_base = true;
    count_windows(candidate, &run->n_windows, &run->n_tokens);
    struct doc_metric_value *ppl = &run->values[DOC_METRIC_PPL];
    *ppl = value_of(candidate, "ppl.base", "ppl.base_error");
    for (size_t i = 0; i + 1 < t->n; i++)
        if (t->runs[i].is_base && strcmp(t->runs[i].id, run->id) == 0 &&
            memcmp(&t->runs[i].values[DOC_METRIC_PPL].value, &ppl->value, sizeof ppl->value) == 0) {
            t->n--;
            break;
        }
    return STATUS_OK;
}

static enum status add_kld(struct doc_scoreboard *t, struct base_field root, struct status_why *why)
{
    size_t n, n_windows, n_tokens, most = 0;
    struct base_field list = doc_list(&n, root, "candidates"), item = {0}, longest = {0};
    while (base_field_next(list, &item)) {
        count_windows(item, &n_windows, &n_tokens);
        if (item.index == 0 || n_windows > most)
            longest = item;
        most = n_windows > most ? n_windows : most;
    }
    enum status status = n ? add_base(t, root, longest, why) : STATUS_OK;
    for (item = (struct base_field){0}; !status && base_field_next(list, &item);) {
        status = add_whole(t, item, why);
        if (status)
            break;
        struct doc_scoreboard_run *run = &t->runs[t->n - 1];
        count_windows(item, &run->n_windows, &run->n_tokens);
        run->fewer = run->n_windows < most;
    }
    return status;
}

static enum status add_perplexity(struct doc_scoreboard *t, struct base_field root,
                                  struct status_why *why)
{
    struct doc_scoreboard_run *run = new_run(t, root, "model", why);
    if (!run)
        return STATUS_MEMORY;
    run->values[DOC_METRIC_PPL] = value_of(root, "result.ppl", "result.ppl_error");
    return STATUS_OK;
}

enum status doc_scoreboard_add(struct doc_scoreboard *t, struct doc_document *d,
                               struct status_why *why)
{
    struct base_field root = doc_root(d);
    t->of_tasks = d->kind == DOC_TASKS;
    enum status status = t->of_tasks          ? add_whole(t, root, why)
                         : d->kind == DOC_KLD ? add_kld(t, root, why)
                                              : add_perplexity(t, root, why);
    return status ? status : doc_status(d, why);
}

enum status doc_scoreboard_label(struct doc_scoreboard *t, struct status_why *why)
{
    struct base_label *labels = NULL;
    struct base_named *models = NULL;
    enum status status = base_array_new(labels, t->n, "labels", why);
    if (!status)
        status = base_array_new(models, t->n, "labels", why);
    for (size_t i = 0; i < t->n && !status; i++)
        models[i] = (struct base_named){t->runs[i].file, t->runs[i].name, t->runs[i].quantisation};
    if (!status)
        status = base_labels(labels, models, t->n, why);
    for (size_t i = 0; i < t->n && !status; i++) {
        struct doc_scoreboard_run *run = &t->runs[i];
        if (run->given)
            base_label_fit(&labels[i], run->given, BASE_LABEL_WIDTH);
        snprintf(run->label, sizeof run->label, "%s%s", labels[i].text, run->kv);
    }
    free(models);
    free(labels);
    return status;
}

/* Where a run stands: bases, then those with a divergence, then the rest. */
static int class_of(const struct doc_scoreboard_run *run)
{
    return run->is_base ? 0 : run->values[DOC_METRIC_KLD].known ? 1 : 2;
}

static double key_of(const struct doc_scoreboard_run *run)
{
    double key = run->values[class_of(run) == 1 ? DOC_METRIC_KLD : DOC_METRIC_PPL].value;
    return isnan(key) ? (double)INFINITY : key;
}

static bool comes_before(const struct doc_scoreboard_run *a, const struct doc_scoreboard_run *b)
{
    int class_a = class_of(a), class_b = class_of(b);
    return class_a != class_b ? class_a < class_b : key_of(a) < key_of(b);
}

static bool kind_comes_before(const struct doc_scoreboard_run *a,
                              const struct doc_scoreboard_run *b)
{
    return strcmp(a->task, b->task) < 0;
}

/* By insertion, which leaves equals in their order; tables are short. */
void doc_scoreboard_sort(struct doc_scoreboard *t)
{
    bool (*before)(const struct doc_scoreboard_run *a, const struct doc_scoreboard_run *b) =
        t->of_tasks ? kind_comes_before : comes_before;
    for (size_t i = 1; i < t->n; i++) {
        struct doc_scoreboard_run run = t->runs[i];
        size_t at = i;
        for (; at > 0 && before(&run, &t->runs[at - 1]); at--)
            t->runs[at] = t->runs[at - 1];
        t->runs[at] = run;
    }
}

void doc_scoreboard_free(struct doc_scoreboard *t)
{
    free(t->runs);
    *t = (struct doc_scoreboard){0};
}

#include "clients/documents/results/scoreboard.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/printable.h"

enum { MAX_TYPE_NAME = 63 };

static const struct doc_format whole = {.scale = 1};
static const struct doc_metric of_tasks[] = {
    {"result.n_tasks", DOC_REAL, 0, &whole, "tasks", "n_tasks", DOC_ON_BOARD},
    {"result.score", DOC_SHARE, 0, &doc_as_percent, "score %", "score_percent", DOC_ON_BOARD},
    {"result.acc", DOC_SHARE, 0, &doc_as_percent, "acc %", "acc_percent", DOC_ON_BOARD},
    {"result.acc_norm", DOC_SHARE, 0, &doc_as_percent, "acc_norm %", "acc_norm_percent",
     DOC_ON_BOARD},
};

const struct doc_metric *doc_scoreboard_metrics(size_t *n, const struct doc_scoreboard *t)
{
    const struct doc_metric *of_texts = doc_kld_metrics(n);
    *n += t->has_speeds ? DOC_N_SPEEDS : 0;
    if (!t->of_tasks)
        return of_texts;
    *n = sizeof of_tasks / sizeof *of_tasks;
    return of_tasks;
}

size_t doc_scoreboard_find(const struct doc_scoreboard *t, const char *key)
{
    size_t n, i = 0;
    const struct doc_metric *f = doc_scoreboard_metrics(&n, t);
    while (i + 1 < n && (!f[i].key || strcmp(f[i].key, key) != 0))
        i++;
    return i;
}

double doc_run_rounding(const struct doc_scoreboard_run *run)
{
    return base_field_find(run->from, "kld.rounding").json
               ? base_field_real_or_null(run->from, "kld.rounding")
               : (double)NAN;
}

bool doc_run_is_of(const struct doc_scoreboard_run *run, const struct doc_document *document)
{
    return doc_of(run->from) == document;
}

bool doc_scoreboard_is_of_race(const struct doc_scoreboard *t, const struct doc_document *document)
{
    bool fewer = false;
    for (size_t i = 0; i < t->n; i++)
        fewer |= t->runs[i].fewer && doc_run_is_of(&t->runs[i], document);
    return fewer;
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

/* The member at a path, and its error. */
static struct doc_metric_value value_of(struct base_field from, enum doc_metric_kind kind,
                                        const char *path)
{
    char value[64], error[64];
    snprintf(value, sizeof value, "%s%s", path, kind == DOC_SHARE ? ".share" : "");
    snprintf(error, sizeof error, "%s%s", path, kind == DOC_SHARE ? ".error" : "_error");
    struct doc_metric_value v = {.known = true, .value = base_field_real_or_null(from, value)};
    if (kind != DOC_REAL)
        v.error = doc_error(from, error);
    return v;
}

/* The model of choice tasks, or a candidate of a divergence: all that tables have. */
static enum status add_whole(struct doc_scoreboard *t, struct base_field from,
                             struct status_why *why)
{
    struct doc_scoreboard_run *run = new_run(t, from, "model", why);
    if (!run)
        return STATUS_MEMORY;
    size_t n;
    const struct doc_metric *f = doc_scoreboard_metrics(&n, t);
    for (size_t i = 0; i < n; i++)
        if (f[i].label)
            run->values[i] = value_of(from, f[i].kind, f[i].path);
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
    *ppl = value_of(candidate, DOC_ESTIMATE, "ppl.base");
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
    run->values[DOC_METRIC_PPL] = value_of(root, DOC_ESTIMATE, "result.ppl");
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

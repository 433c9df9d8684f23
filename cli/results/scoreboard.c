#include "cli/results/scoreboard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KLD_QUANTILE(label, key)                                                                   \
    {                                                                                              \
        label, "kld_" key, "kld." key, NULL, 1, 6, false                                           \
    }
#define DP_QUANTILE(label, key)                                                                    \
    {                                                                                              \
        label, "dp_" key "_percent", "dp." key, NULL, 100, 3, false                                \
    }

const struct cli_metric cli_metrics[CLI_N_METRICS] = {
    [CLI_METRIC_PPL] = {"PPL", "ppl", "ppl.value", "ppl.value_error", 1, 6, true},
    {"PPL(base)", "ppl_base", "ppl.base", "ppl.base_error", 1, 6, false},
    {"ΔPPL", "delta_ppl", "ppl.difference", "ppl.difference_error", 1, 6, true},
    {"PPL ratio", "ppl_ratio", "ppl.ratio", "ppl.ratio_error", 1, 6, false},
    {"ln(PPL ratio)", "ln_ppl_ratio", "ppl.ln_ratio", "ppl.ln_ratio_error", 1, 6, false},
    {"PPL correlation %", "ppl_correlation_percent", "ppl.correlation", NULL, 100, 2, false},
    [CLI_METRIC_KLD] = {"KLD", "kld", "kld.mean", "kld.mean_error", 1, 6, true},
    KLD_QUANTILE("Maximum KLD", "max"),
    KLD_QUANTILE("99.9% KLD", "p99_9"),
    KLD_QUANTILE("99.0% KLD", "p99"),
    KLD_QUANTILE("95.0% KLD", "p95"),
    KLD_QUANTILE("90.0% KLD", "p90"),
    KLD_QUANTILE("Median KLD", "median"),
    KLD_QUANTILE("10.0% KLD", "p10"),
    KLD_QUANTILE("5.0% KLD", "p5"),
    KLD_QUANTILE("1.0% KLD", "p1"),
    KLD_QUANTILE("0.1% KLD", "p0_1"),
    KLD_QUANTILE("Minimum KLD", "min"),
    {"Mean Δp %", "mean_dp_percent", "dp.mean", "dp.mean_error", 100, 3, true},
    DP_QUANTILE("Maximum Δp %", "max"),
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
    DP_QUANTILE("Minimum Δp %", "min"),
    {"RMS Δp %", "rms_dp_percent", "dp.rms", "dp.rms_error", 100, 3, true},
    {"Same top p %", "same_top_percent", "same_top", "same_top_error", 100, 3, true},
};

static struct cli_scoreboard_run *new_run(struct cli_scoreboard *t, struct status_why *why)
{
    if (t->n == t->capacity) {
        size_t capacity = t->capacity ? 2 * t->capacity : 16;
        struct cli_scoreboard_run *runs = realloc(t->runs, capacity * sizeof *runs);
        if (!runs) {
            status_fail(why, STATUS_MEMORY, "no memory for a table of %zu runs", capacity);
            return NULL;
        }
        t->runs = runs;
        t->capacity = capacity;
    }
    t->runs[t->n] = (struct cli_scoreboard_run){0};
    return &t->runs[t->n++];
}

/* What comes behind the last slash. */
static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* The data set that an importance matrix was made from, or else the matrix, or "none". */
static enum status read_imatrix(const char **out, const struct cli_field *model,
                                struct status_why *why)
{
    static const char *const paths[] = {"imatrix_dataset", "imatrix_file"};
    enum status status = STATUS_OK;
    *out = "none";
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct cli_field place;
        if (!cli_field_find(&place, model, paths[i]))
            continue;
        status = cli_field_text(out, model, paths[i], why);
        *out = file_name(*out);
        break;
    }
    return status;
}

static enum status read_model(struct cli_scoreboard_run *run, const struct cli_field *from,
                              const char *path, struct status_why *why)
{
    struct cli_field model;
    run->file = from->file;
    enum status status = cli_field_at(&model, from, path, why);
    if (status == STATUS_OK)
        status = cli_field_text(&run->name, &model, "name", why);
    if (status == STATUS_OK)
        status = cli_field_text(&run->id, &model, "id", why);
    if (status == STATUS_OK)
        status = cli_field_text(&run->quantisation, &model, "quantisation", why);
    if (status == STATUS_OK)
        status = read_imatrix(&run->imatrix, &model, why);
    if (status == STATUS_OK)
        status = cli_field_real(&run->n_bytes, &model, "n_bytes", why);
    if (status == STATUS_OK)
        status = cli_field_real(&run->bits_per_weight, &model, "bits_per_weight", why);
    return status;
}

static enum status read_value(struct cli_metric_value *out, const struct cli_field *from,
                              const char *path, const char *error_path, struct status_why *why)
{
    out->known = true;
    enum status status = cli_field_real(&out->value, from, path, why);
    return status == STATUS_OK && error_path ? cli_field_real(&out->error, from, error_path, why)
                                             : status;
}

static enum status add_candidate(struct cli_scoreboard *t, const struct cli_field *candidate,
                                 struct status_why *why)
{
    struct cli_scoreboard_run *run = new_run(t, why);
    if (!run)
        return STATUS_MEMORY;
    enum status status = read_model(run, candidate, "model", why);
    for (size_t i = 0; i < CLI_N_METRICS && status == STATUS_OK; i++)
        status =
            read_value(&run->values[i], candidate, cli_metrics[i].path, cli_metrics[i].error, why);
    return status;
}

/* The base of a divergence, unless it is no model, or a run of the same model with the same figure
 * is there. */
static enum status add_base(struct cli_scoreboard *t, const struct cli_field *root,
                            const struct cli_field *candidate, struct status_why *why)
{
    struct cli_field found;
    if (!cli_field_find(&found, root, "base.quantisation"))
        return STATUS_OK;
    struct cli_scoreboard_run *run = new_run(t, why);
    if (!run)
        return STATUS_MEMORY;
    run->is_base = true;
    enum status status = read_model(run, root, "base", why);
    struct cli_metric_value *ppl = &run->values[CLI_METRIC_PPL];
    if (status == STATUS_OK)
        status = read_value(ppl, candidate, "ppl.base", "ppl.base_error", why);
    for (size_t i = 0; i + 1 < t->n && status == STATUS_OK; i++)
        if (t->runs[i].is_base && strcmp(t->runs[i].id, run->id) == 0 &&
            memcmp(&t->runs[i].values[CLI_METRIC_PPL].value, &ppl->value, sizeof ppl->value) == 0) {
            t->n--;
            break;
        }
    return status;
}

static enum status add_kld(struct cli_scoreboard *t, const struct cli_document *r,
                           struct status_why *why)
{
    struct cli_field root = cli_document_root(r), list, item = {0};
    size_t n;
    enum status status = cli_field_list(&list, &n, &root, "candidates", why);
    while (status == STATUS_OK && cli_field_next(&list, &item)) {
        if (item.index == 0)
            status = add_base(t, &root, &item, why);
        if (status == STATUS_OK)
            status = add_candidate(t, &item, why);
    }
    return status;
}

static enum status add_perplexity(struct cli_scoreboard *t, const struct cli_document *r,
                                  struct status_why *why)
{
    struct cli_field root = cli_document_root(r);
    struct cli_scoreboard_run *run = new_run(t, why);
    if (!run)
        return STATUS_MEMORY;
    enum status status = read_model(run, &root, "model", why);
    return status == STATUS_OK ? read_value(&run->values[CLI_METRIC_PPL], &root, "result.ppl",
                                            "result.ppl_error", why)
                               : status;
}

enum status cli_scoreboard_add(struct cli_scoreboard *t, const struct cli_document *r,
                               struct status_why *why)
{
    if (r->kind == CLI_DOCUMENT_KLD)
        return add_kld(t, r, why);
    if (r->kind == CLI_DOCUMENT_PERPLEXITY)
        return add_perplexity(t, r, why);
    return status_fail(why, STATUS_USAGE,
                       "%s is a result of choice tasks; the table takes results of assay kld and "
                       "of perplexities",
                       r->file);
}

/* Where a run stands: bases, then those with a divergence, then the rest. */
static int class_of(const struct cli_scoreboard_run *run)
{
    return run->is_base ? 0 : run->values[CLI_METRIC_KLD].known ? 1 : 2;
}

static double key_of(const struct cli_scoreboard_run *run)
{
    double key = run->values[class_of(run) == 1 ? CLI_METRIC_KLD : CLI_METRIC_PPL].value;
    return isnan(key) ? (double)INFINITY : key;
}

static bool comes_before(const struct cli_scoreboard_run *a, const struct cli_scoreboard_run *b)
{
    int class_a = class_of(a), class_b = class_of(b);
    return class_a != class_b ? class_a < class_b : key_of(a) < key_of(b);
}

/* By insertion, which leaves equals in their order; tables are short. */
void cli_scoreboard_sort(struct cli_scoreboard *t)
{
    for (size_t i = 1; i < t->n; i++) {
        struct cli_scoreboard_run run = t->runs[i];
        size_t at = i;
        for (; at > 0 && comes_before(&run, &t->runs[at - 1]); at--)
            t->runs[at] = t->runs[at - 1];
        t->runs[at] = run;
    }
}

void cli_scoreboard_free(struct cli_scoreboard *t)
{
    free(t->runs);
    *t = (struct cli_scoreboard){0};
}

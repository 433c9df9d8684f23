/*
 * The divergence of a recording from the base. The run compares the other way round, with the
 * recording as the base of assay kld; its reverse divergence is the one that is wanted.
 *
 * A base-logits file raises what is far below the largest: to q from r, which the program computed.
 * All else it has as it was, so that the divergence is too small by the sum of p ln(q / r) over the
 * raised tokens. Where p is about r that is less than the sum of q - r, for r ln(q / r) < q - r;
 * and this is by how much a row's sum is above 1.
 */
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "cli/explain/explain.h"
#include "cli/session/cluster.h"

struct measured {
    struct cli_kld k; /* first: the evaluator's */
    struct eval_row_source source;
    const struct eval_row_source *file; /* whose rows they are */
    double *log_sums;                   /* [rows of the plan] */
    struct cli_explain_recorded *out;
};

/* The source is the file's, but for its own pointer, and for the scores that pass here. */

static void expect(void *user, size_t first, size_t n_rows)
{
    const struct measured *m = user;
    m->file->expect(m->file->user, first, n_rows);
}

static enum status rows(void *user, size_t first, size_t n_rows, const void **out,
                        struct status_why *why)
{
    const struct measured *m = user;
    return m->file->rows(m->file->user, first, n_rows, out, why);
}

static enum status check(void *user, size_t first, size_t n_rows,
                         const struct kern_row_score *scores, struct status_why *why)
{
    struct measured *m = user;
    for (size_t i = 0; i < n_rows; i++)
        m->log_sums[first + i] = scores[i].max_logit + scores[i].log_sum;
    return m->file->check ? m->file->check(m->file->user, first, n_rows, scores, why) : STATUS_OK;
}

static enum status unchanged(void *user, struct status_why *why)
{
    const struct measured *m = user;
    return m->file->unchanged ? m->file->unchanged(m->file->user, why) : STATUS_OK;
}

static enum status open(void *self, struct status_why *why)
{
    struct measured *m = self;
    if (cli_cluster()->n_ranks > 1)
        return status_fail(why, STATUS_USAGE,
                           "--recorded is measured in one process, and %zu were started",
                           cli_cluster()->n_ranks);
    enum status status = cli_kld_evaluator.open(&m->k, why);
    if (status)
        return status;
    const struct eval_plan *plan = &m->k.windows.plan;
    m->file = m->k.e.models.base;
    m->source = *m->file;
    m->source.user = m;
    m->source.expect = m->file->expect ? expect : NULL;
    m->source.rows = rows;
    m->source.check = check;
    m->source.unchanged = unchanged;
    m->k.e.models.base = &m->source;
    return base_array_new(m->log_sums, plan->n_windows * plan->n_scored + 1, "rows", why);
}

static enum status summarise(void *self, struct status_why *why)
{
    struct measured *m = self;
    const struct eval_plan *plan = &m->k.windows.plan;
    struct cli_explain_recorded *out = m->out;
    const struct eval_table *table = &m->k.windows.tables[1];
    enum status status = cli_kld_evaluator.summarise(&m->k, why);
    size_t n = plan->n_windows * plan->n_scored;
    if (!status)
        status = base_array_new(out->kld, n + 1, "divergences", why);
    if (status)
        return status;
    out->n_windows = plan->n_windows;
    out->n_scored = plan->n_scored;
    out->n_ctx = plan->options.n_ctx;
    for (size_t i = 0; i < n; i++) {
        size_t w = i / plan->n_scored;
        const double *reverse = eval_table_row(table, EVAL_REVERSE_KL, w);
        out->kld[i] = reverse[i % plan->n_scored];
        out->share += expm1(m->log_sums[i]) / (double)n;
    }
    return STATUS_OK;
}

static void close(void *self)
{
    struct measured *m = self;
    cli_kld_close(&m->k);
    free(m->log_sums);
}

static void say_nothing(const void *self)
{
    (void)self;
}

static void say_no_figures(void *self)
{
    (void)self;
}

static const struct cli_lines lines = {.beginning = say_nothing, .end = say_no_figures};
static const struct cli_evaluator evaluator = {
    .lines = &lines,
    .members = &cli_kld_members,
    .open = open,
    .summarise = summarise,
    .verdict = cli_kld_verdict,
    .close = close,
};

enum status cli_explain_measure(struct cli_explain_recorded *out,
                                const struct cli_explain_settings *settings, struct status_why *why)
{
    enum status status = cli_base_check_logits(settings->recorded, why);
    if (status)
        return status;
    char *models[] = {(char *)(uintptr_t)settings->kld.base}; /* a list owns its items; not this */
    struct cli_kld_settings kld = settings->kld;
    kld.base = settings->recorded;
    kld.models = (struct cli_list){models, 1};
    kld.evaluate.state_file = NULL;
    kld.evaluate.output.json_file = NULL;
    cli_model_plain(&kld.evaluate.load);
    kld.evaluate.machine.activations = NULL;
    struct measured m = {.out = out,
                         .k = {.settings = &kld,
                               .e = {.kind = &evaluator,
                                     .settings = &kld.evaluate,
                                     .name = "explain",
                                     .inputs = {{"--recorded", kld.base}},
                                     .text = &kld.text,
                                     .model_paths = kld.models}}};
    return cli_evaluate(&m.k.e, why);
}

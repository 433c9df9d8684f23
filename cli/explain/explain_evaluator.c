#include <math.h>
#include <stdlib.h>

#include "cli/explain/explain.h"
#include "gguf/gguf.h"

/** Round what the readings differ in. */
static enum status round_readings(struct cli_explain *x, struct status_why *why)
{
    struct cli_evaluate_settings cache = x->settings->kld.evaluate;
    cache.machine.activations = NULL;
    struct cli_model *m = x->k.candidates;
    enum status status = cli_model_round(&m[CLI_EXPLAIN_CACHE], &cache, 0, why);
    if (!status)
        status = cli_model_round(&m[CLI_EXPLAIN_BOTH], &cache, 0, why);
    if (!status)
        status = cli_backends_round(&x->k.e.backends, model_file(m[CLI_EXPLAIN_INPUTS].model), why);
    return status
               ? status
               : cli_backends_round(&x->k.e.backends, model_file(m[CLI_EXPLAIN_BOTH].model), why);
}

static enum status open(void *self, struct status_why *why)
{
    struct cli_explain *x = self;
    enum status status = cli_kld_open_models(&x->k, why);
    if (!status)
        status = round_readings(x, why);
    if (!status)
        status = cli_kld_make_units(&x->k, why);
    const struct eval_plan *plan = &x->k.windows.plan;
    const struct cli_explain_recorded *r = &x->recorded;
    if (!status && r->kld && (plan->n_windows != r->n_windows || plan->n_scored != r->n_scored))
        status = status_fail(why, STATUS_USAGE,
                             "%s has %zu windows of %zu scored tokens, the text %zu of %zu; "
                             "expected the text that it was recorded from",
                             x->settings->recorded, r->n_windows, r->n_scored, plan->n_windows,
                             plan->n_scored);
    return status;
}

static void add_token(struct cli_explain *x, size_t w, size_t i)
{
    double d[CLI_N_READINGS], parts[CLI_N_PARTS] = {0};
    for (size_t c = 0; c < CLI_N_READINGS; c++)
        d[c] = eval_table_row(&x->k.windows.tables[1 + c], EVAL_KL, w)[i];
    parts[CLI_EXPLAIN_WEIGHTS] = d[CLI_EXPLAIN_PLAIN];
    parts[CLI_EXPLAIN_ACTIVATIONS] = d[CLI_EXPLAIN_INPUTS] - d[CLI_EXPLAIN_PLAIN];
    parts[CLI_EXPLAIN_KEYS] = d[CLI_EXPLAIN_CACHE] - d[CLI_EXPLAIN_PLAIN];
    parts[CLI_EXPLAIN_TOGETHER] = d[CLI_EXPLAIN_BOTH];
    parts[CLI_EXPLAIN_BEYOND] =
        d[CLI_EXPLAIN_BOTH] - d[CLI_EXPLAIN_INPUTS] - d[CLI_EXPLAIN_CACHE] + d[CLI_EXPLAIN_PLAIN];
    if (x->recorded.kld) {
        parts[CLI_EXPLAIN_RECORDED] = x->recorded.kld[w * x->recorded.n_scored + i];
        parts[CLI_EXPLAIN_LEFT] = parts[CLI_EXPLAIN_RECORDED] - d[CLI_EXPLAIN_BOTH];
    }
    for (size_t p = 0; p < CLI_N_PARTS; p++) {
        base_moments_lot(&x->parts[p], eval_table_lot(&x->k.windows.tables[0], w));
        base_moments_add(&x->parts[p], parts[p]);
    }
}

/** Hold the recording, which was closed, against its budget. */
static enum status judge(struct cli_explain *x, struct status_why *why)
{
    struct cli_base recorded = {0};
    const struct cli_evaluate_settings *settings = &x->settings->kld.evaluate;
    struct cli_budget_task task = {.recorded = &recorded,
                                   .model = &x->k.candidates[CLI_EXPLAIN_PLAIN],
                                   .simulated = x->k.candidates[CLI_EXPLAIN_BOTH].model,
                                   .activations = settings->machine.activations,
                                   .e = &x->k.e,
                                   .windows = &x->k.windows,
                                   .complete = x->k.results[0].complete,
                                   .beyond = (double)NAN};
    enum status status = cli_base_open(&recorded, x->settings->recorded, settings, why);
    if (!status)
        status = recorded.kind->use(&recorded, &x->k.windows.plan, false, why);
    if (!status)
        status = cli_budget_measure(&x->budget, &task, why);
    cli_base_close(&recorded);
    return status;
}

static enum status summarise(void *self, struct status_why *why)
{
    struct cli_explain *x = self;
    enum status status = cli_kld_evaluator.summarise(&x->k, why);
    const struct eval_table *table = &x->k.windows.tables[1];
    for (size_t w = 0; w < table->n_windows && !status; w++)
        for (size_t i = 0; table->done[w] && i < eval_table_n(table, w); i++)
            add_token(x, w, i);
    return status || !x->recorded.kld ? status : judge(x, why);
}

static const struct cli_evaluator evaluator = {
    .lines = &cli_explain_lines,
    .members = &cli_explain_members,
    .open = open,
    .summarise = summarise,
    .verdict = cli_kld_verdict,
    .close = cli_kld_close,
    .outlook = cli_kld_outlook,
};

enum status cli_explain_run(const struct cli_explain_settings *settings, struct status_why *why)
{
    /* A list owns its items, these are only read. */
    char *models[CLI_N_READINGS];
    for (size_t i = 0; i < CLI_N_READINGS; i++)
        models[i] = (char *)(uintptr_t)settings->model;
    const struct cli_kld_settings *s = &settings->kld;
    struct cli_explain x = {.settings = settings, .plain = *s};
    x.plain.models = (struct cli_list){models, CLI_N_READINGS};
    x.plain.evaluate.load.cache_k = x.plain.evaluate.load.cache_v = (struct cli_kv_list){0};
    x.plain.evaluate.machine.activations = NULL;
    x.k.settings = &x.plain;
    x.k.e =
        (struct cli_evaluation){.kind = &evaluator,
                                .settings = &s->evaluate,
                                .name = "explain",
                                .model_file = settings->model,
                                .inputs = {{"--base", s->base}, {"--recorded", settings->recorded}},
                                .model_paths = {models, 1},
                                .text = &s->text};
    enum status status = STATUS_OK;
    if (settings->recorded)
        status = cli_explain_measure(&x.recorded, settings, why);
    if (!status && settings->recorded) {
        x.plain.windows.n_ctx.value = (int64_t)x.recorded.n_ctx;
        x.plain.windows.n_chunks = (int64_t)x.recorded.n_windows;
    }
    if (!status)
        status = cli_evaluate(&x.k.e, why);
    free(x.recorded.kld);
    return status;
}

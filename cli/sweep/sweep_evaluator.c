#include "cli/sweep/sweep_evaluator.h"

#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "cli/sweep/donors.h"
#include "cli/sweep/order.h"
#include "eval/run.h"
#include "kernels/kernels.h"

enum { DEFAULT_BATCH = 2048 };

static enum status open_models(struct cli_sweep *s, struct status_why *why)
{
    const struct cli_sweep_settings *settings = s->settings;
    const struct cli_evaluate_settings *how = &settings->evaluate;
    size_t n = settings->from.n;
    if (base_array_new(s->candidates, n, "models", why) ||
        base_array_new(s->files, n, "models", why))
        return STATUS_MEMORY;
    enum status status = cli_model_open(&s->base, settings->base, how, false, why);
    if (!status && settings->around)
        status = cli_model_open(&s->around, settings->around, how, false, why);
    if (!status && s->around.model)
        status = eval_check_same_vocab(s->base.model, s->around.model, why);
    for (; s->n_candidates < n && !status; s->n_candidates++) {
        struct cli_model *candidate = &s->candidates[s->n_candidates];
        status = cli_model_open(candidate, settings->from.items[s->n_candidates], how, false, why);
        if (!status)
            status = eval_check_same_vocab(s->base.model, candidate->model, why);
        if (!status)
            s->files[s->n_candidates] = model_file(candidate->model);
    }
    s->swapped = s->around.model ? s->around.model : s->base.model;
    for (size_t i = 0; i < n && !status; i++)
        status = cli_backends_round(&s->e.backends, s->files[i], why);
    for (size_t i = 0; i < n && !status; i++)
        if (cli_remark_swapped(&s->e, settings->base, cli_model_size(&s->base), &s->candidates[i]))
            break;
    return status;
}

static enum status lay_windows(struct cli_sweep *s, struct status_why *why)
{
    const struct cli_sweep_settings *settings = s->settings;
    const struct model *model = s->base.model;
    struct eval_stream_options stream = {.bos_in_front = true,
                                         .parse_special = settings->text.parse_special};
    struct eval_plan_options plan =
        cli_plan_options(&settings->windows, model, CLI_DEFAULT_CONTEXT);
    enum status status =
        cli_windows_read(&s->windows, &settings->text, &stream, NULL, model_tokenizer(model), why);
    cli_evaluation_take_documents(&s->e, &s->windows.documents);
    return status ? status : cli_windows_lay(&s->windows, &plan, why);
}

static enum status make_groups(struct cli_sweep_groups *out, const struct cli_sweep *s,
                               const struct cli_sweep_names *names, struct status_why *why)
{
    const struct cli_sweep_candidates from = {s->candidates, s->n_candidates,
                                              s->settings->unmade != 0};
    return cli_sweep_groups_make(out, s->swapped, &from, names, why);
}

/** Batches are part of what a journal belongs to, so no measurement chooses them. */
static size_t batch_windows(const struct cli_sweep *s)
{
    size_t given = (size_t)s->settings->evaluate.machine.n_batch;
    size_t device = kern_describe(s->e.backends.items[0]).batch_tokens;
    size_t n_tokens = given ? given : device ? device : DEFAULT_BATCH;
    const struct eval_plan *plan = &s->windows.plan;
    return base_min(base_max(n_tokens / plan->n_inputs, 1), plan->n_windows);
}

static enum status open(void *self, struct status_why *why)
{
    struct cli_sweep *s = self;
    enum status status = cli_sweep_names_open(&s->names, (enum cli_sweep_by)s->settings->by,
                                              &s->settings->groups, why);
    if (!status)
        status = open_models(s, why);
    if (!status)
        status = lay_windows(s, why);
    if (!status)
        status = make_groups(&s->groups, s, s->names, why);
    if (!status)
        status = cli_sweep_order(s, why);
    if (status)
        return status;
    s->trials = (struct eval_trials){.plan = &s->windows.plan,
                                     .stream = &s->windows.stream,
                                     .batch_windows = batch_windows(s),
                                     .n_variants = s->n_variants,
                                     .costs = s->costs,
                                     .has_reference = s->around.model != NULL};
    s->all = (struct eval_variants){.model = s->base.model,
                                    .candidate = s->swapped,
                                    .items = s->variants,
                                    .n = s->n_variants,
                                    .files = s->files,
                                    .n_files = s->n_candidates};
    s->streams = eval_variants_source(&s->all);
    s->e.units = &s->trials.units;
    s->e.models = (struct eval_models){.model = s->base.model,
                                       .candidates = &s->swapped,
                                       .n_candidates = 1,
                                       .streams = &s->streams};
    s->e.sources = s->candidates;
    s->e.n_sources = s->n_candidates;
    return eval_trials_open(&s->trials, why);
}

static enum status start(void *self, struct status_why *why)
{
    return cli_sweep_find_odd(self, why);
}

static enum status verdict(const void *self, struct status_why *why)
{
    const struct cli_sweep *s = self;
    if (s->trials.out_of_memory)
        return status_fail(why, STATUS_MEMORY, "no memory for the scores of a batch");
    for (size_t i = 0; i < s->groups.n_choices; i++) {
        const struct cli_sweep_choice *c = &s->groups.choices[i];
        if (cli_sweep_figures(s, i).doubt == CLI_SWEEP_NONFINITE)
            return status_fail(why, STATUS_NONFINITE,
                               "%s with %s of %s: the divergence is not finite",
                               gguf_path(model_file(s->swapped)), s->groups.items[c->group].name,
                               s->candidates[c->candidate].path);
    }
    for (size_t k = 0; k < s->n_candidates; k++)
        if (cli_sweep_together(s, k).figures.doubt == CLI_SWEEP_NONFINITE)
            return status_fail(why, STATUS_NONFINITE,
                               "%s with all choices of %s: the divergence is not finite",
                               gguf_path(model_file(s->swapped)), s->candidates[k].path);
    return STATUS_OK;
}

static void close(void *self)
{
    struct cli_sweep *s = self;
    eval_trials_close(&s->trials);
    cli_sweep_groups_free(&s->groups);
    cli_sweep_names_close(s->names);
    cli_windows_close(&s->windows);
    for (size_t i = 0; s->candidates && i < s->settings->from.n; i++)
        cli_model_close(&s->candidates[i]);
    cli_model_close(&s->around);
    cli_model_close(&s->base);
    free(s->candidates);
    free(s->files);
    cli_sweep_order_free(s);
}

/** The arithmetic of the sweep with other groups. */
static enum status outlook_by(const struct cli_sweep *s, enum cli_sweep_by by,
                              struct cli_outlook_way *way, struct status_why *why)
{
    struct cli_sweep other = *s; /* with groups and variants of its own */
    other.groups = (struct cli_sweep_groups){0};
    other.names = NULL;
    cli_sweep_order_begin(&other);
    enum status status = cli_sweep_names_open(&other.names, by, &(struct cli_list){0}, why);
    if (!status)
        status = make_groups(&other.groups, s, other.names, why);
    if (!status)
        status = cli_sweep_order(&other, why);
    size_t n_windows = s->windows.plan.n_windows;
    double head = (double)s->windows.plan.n_scored *
                  (eval_cost_head(s->swapped, 1) + eval_cost_head(s->base.model, 1));
    for (size_t i = 0; i < other.n_variants && !status; i++) {
        way->forward += (other.costs[i] - head) * (double)n_windows;
        way->head += head * (double)n_windows;
    }
    cli_sweep_groups_free(&other.groups);
    cli_sweep_names_close(other.names);
    cli_sweep_order_free(&other);
    return status;
}

static enum status outlook(const void *self, struct cli_outlook *out, struct status_why *why)
{
    static const char *const options[] = {
        [CLI_SWEEP_BY_LAYER] = "--by layer", [CLI_SWEEP_BY_ROLE] = "--by role"};
    const struct cli_sweep *s = self;
    enum status status = STATUS_OK;
    if (s->settings->unmade)
        out->made = cli_donors_seconds(&out->n_made, &s->settings->types, s->settings->keep,
                                       (double)s->groups.n_weights);
    out->fewer = "--chunks";
    out->n_fewer = s->windows.plan.n_windows;
    for (int by = CLI_SWEEP_BY_LAYER; by <= CLI_SWEEP_BY_ROLE && !status; by++) {
        if (by == s->settings->by || s->settings->groups.n)
            continue;
        struct cli_outlook_way *way = &out->ways[out->n_ways++];
        way->option = options[by];
        status = outlook_by(s, (enum cli_sweep_by)by, way, why);
    }
    return status;
}

static const struct cli_evaluator evaluator = {
    .lines = &cli_sweep_lines,
    .members = &cli_sweep_members,
    .open = open,
    .start = start,
    .verdict = verdict,
    .close = close,
    .outlook = outlook,
};

enum status cli_sweep_run(const struct cli_sweep_settings *settings, struct status_why *why)
{
    struct cli_sweep s = {
        .settings = settings,
        .e = {.kind = &evaluator,
              .settings = &settings->evaluate,
              .name = "sweep",
              .inputs = {{"--base", settings->base}, {"--around", settings->around}},
              .model_paths = settings->from,
              .model_option = "--from",
              .model_file = settings->base,
              .text = &settings->text,
              .outputs = {{"--tsv", settings->tsv_file, BASE_SWEPT, .write = cli_sweep_write_tsv,
                           .only_whole = true},
                          {"--heatmap", settings->heatmap_file, BASE_CHART,
                           .write = cli_sweep_write_heatmap, .only_whole = true}}}};
    return cli_evaluate(&s.e, why);
}

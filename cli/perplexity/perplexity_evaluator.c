#include "cli/perplexity/perplexity_evaluator.h"
#include "cli/calibrate.h"
#include "cli/input/tokens.h"

#include <math.h>
#include <stdlib.h>

#include "eval/llama_compat.h"
#include "eval/metrics.h"

enum { DEFAULT_CONTEXT_FIXED = 4096 };

static struct eval_plan_options plan_options(const struct cli_perplexity *p)
{
    const struct cli_perplexity_settings *s = p->settings;
    bool fixed = s->protocol == CLI_PROTOCOL_FIXED;
    int64_t n_batch = s->evaluate.machine.n_batch;
    struct eval_plan_options plan = cli_plan_options(
        &s->windows, p->model.model, fixed ? DEFAULT_CONTEXT_FIXED : CLI_DEFAULT_CONTEXT);
    if (fixed)
        plan.protocol = EVAL_PROTOCOL_FIXED;
    else if (s->stride)
        plan.protocol = EVAL_PROTOCOL_STRIDED;
    plan.stride = (size_t)s->stride;
    plan.llama_compat = s->llama_compat;
    plan.compat_batch = n_batch ? (size_t)n_batch : EVAL_COMPAT_BATCH;
    return plan;
}

static enum status make_tables(struct cli_perplexity *p, struct status_why *why)
{
    enum status status = cli_windows_make_tables(&p->windows, 0, why);
    return status ? status : cli_windows_stop_at(&p->windows, p->settings->windows.stop_se, why);
}

static enum status open(void *self, struct status_why *why)
{
    struct cli_perplexity *p = self;
    const struct cli_perplexity_settings *s = p->settings;
    enum status status = cli_model_open(&p->model, s->model, &s->evaluate, s->llama_compat, why);
    if (!status)
        status = cli_backends_round(&p->e.backends, model_file(p->model.model), why);
    if (s->labels.n)
        p->model.label = s->labels.items[0];
    if (status)
        return status;
    struct eval_stream_options stream = {
        .bos_in_front = s->protocol != CLI_PROTOCOL_FIXED,
        .split_lines = s->split_lines,
        .parse_special = s->text.parse_special,
    };
    struct eval_plan_options plan = plan_options(p);
    status = cli_windows_read(&p->windows, &s->text, &stream, cli_perplexity_single(s),
                              model_tokenizer(p->model.model), why);
    const struct cli_tokens_given given = {&p->windows, &stream, model_tokenizer(p->model.model),
                                           s->evaluate.load.tokenizer};
    if (!status && given.from)
        status = cli_tokens_compare(&given, s->model, why);
    if (!status)
        status = cli_windows_lay(&p->windows, &plan, why);
    if (!status)
        status = cli_calibrate(&p->e, &p->model, &p->windows, why);
    if (!status)
        status = make_tables(p, why);
    cli_evaluation_take_documents(&p->e, &p->windows.documents);
    p->e.models.model = p->model.model;
    p->e.units = &p->windows.units.units;
    return status;
}

static enum status again(void *self, struct status_why *why)
{
    struct cli_perplexity *p = self;
    p->tally = (struct eval_tally){0};
    eval_curve_free(&p->curve);
    eval_groups_free(&p->groups);
    return make_tables(p, why);
}

static enum status summarise(void *self, struct status_why *why)
{
    struct cli_perplexity *p = self;
    struct cli_windows *w = &p->windows;
    cli_windows_close_plan(w);
    eval_perplexity(&p->result, &w->plan, &w->stream, w->tables);
    enum status status = STATUS_OK;
    if (w->documents.n)
        status =
            eval_groups_make(&p->groups, &w->documents,
                             &(struct eval_kld_tables){&w->plan, &w->stream, NULL, w->tables}, why);
    return status || !p->settings->curve.wanted ? status
                                                : eval_curve_make(&p->curve, w->tables, why);
}

/** A row of the table of several contexts; then the recording. */
static enum status finish(void *self, struct status_why *why)
{
    const struct cli_perplexity *p = self;
    const struct eval_perplexity_result *r = &p->result;
    if (p->settings->rows && r->complete)
        base_buffer_format(p->settings->rows, "| %zu | %zu | %zu | %.6f ± %.6f |\n",
                           p->windows.plan.options.n_ctx, p->windows.plan.n_windows, r->n_tokens,
                           r->figures.ppl.value, base_estimate_error(r->figures.ppl));
    return cli_recording_finish(self, why);
}

static enum status verdict(const void *self, struct status_why *why)
{
    const struct cli_perplexity *p = self;
    if (p->result.nonfinite.n)
        return status_fail(why, STATUS_NONFINITE, "the perplexity is not finite");
    if (isinf(p->result.figures.ppl.value))
        return status_fail(why, STATUS_NONFINITE,
                           "the perplexity, exp(%.4f), is larger than the largest number",
                           p->result.figures.nll.value);
    return STATUS_OK;
}

static struct cli_model *model(void *self, size_t i)
{
    struct cli_perplexity *p = self;
    return i ? NULL : &p->model;
}

static void close(void *self)
{
    struct cli_perplexity *p = self;
    cli_recording_close(p);
    eval_curve_free(&p->curve);
    eval_groups_free(&p->groups);
    cli_windows_close(&p->windows);
    cli_model_close(&p->model);
}

static enum status write_per_token(const void *self, struct base_file *file, struct status_why *why)
{
    const struct cli_perplexity *p = self;
    const struct cli_windows *w = &p->windows;
    return eval_per_token_write(file, &w->plan, &w->stream, w->tables,
                                model_tokenizer(p->model.model), why);
}

static const struct cli_evaluator evaluator = {
    .lines = &cli_perplexity_lines,
    .members = &cli_perplexity_members,
    .open = open,
    .start = cli_recording_begin,
    .resumed = cli_recording_check_resumed,
    .summarise = summarise,
    .finish = finish,
    .verdict = verdict,
    .close = close,
    .outlook = cli_recording_outlook,
    .again = again,
    .model = model,
};

enum status cli_perplexity_run(const struct cli_perplexity_settings *s, struct status_why *why)
{
    char *part = s->base_file ? base_part_name(s->base_file) : NULL;
    const char *option = s->is_record ? "-o" : "--kl-divergence-base";
    struct cli_perplexity p = {
        .settings = s,
        .e = {.kind = &evaluator,
              .settings = &s->evaluate,
              .name = "perplexity",
              .extends = !s->base_file,
              .model_file = s->model,
              .inputs = {{"-m", s->model}},
              .text = &s->text,
              .outputs = {{"--per-token", s->per_token_file, BASE_TOKENS, .write = write_per_token},
                          {option, s->base_file},
                          {option, part}}}};
    enum status status = cli_evaluate(&p.e, why);
    free(part);
    return status;
}

/* assay perplexity: how well a model predicts a text. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/choice/choice.h"
#include "cli/commands.h"
#include "cli/kld/kld.h"
#include "cli/perplexity/evaluation.h"
#include "cli/session/outputs.h"
#include "cli/session/state.h"
#include "eval/metrics/per_token.h"

enum { N_OUTPUTS = 5 };

static void list_outputs(struct cli_named_file outputs[N_OUTPUTS], const struct cli_perplexity *s)
{
    const char *recorded = s->kl_divergence ? NULL : s->base_file;
    outputs[0] = (struct cli_named_file){"--json", s->output.json_file};
    outputs[1] = (struct cli_named_file){"--per-token", s->per_token_file};
    outputs[2] = (struct cli_named_file){"--per-task", s->per_task_file};
    outputs[3] = (struct cli_named_file){"--state", s->state_file};
    outputs[4] = (struct cli_named_file){"--kl-divergence-base", recorded};
}

/* No output may be a file that is read, or another output. */
static enum status check_outputs(const struct cli_perplexity *s, struct status_why *why)
{
    struct cli_named_file outputs[N_OUTPUTS];
    list_outputs(outputs, s);
    const struct cli_named_file inputs[] = {
        {"-m", s->model}, {"-f", s->text.text_file}, {"-bf", s->text.binary_file}};
    return cli_outputs_check(outputs, N_OUTPUTS, inputs, sizeof inputs / sizeof *inputs, why);
}

/* --kl-divergence and the file that it is for. */
static enum status check_base(const struct cli_perplexity *s, struct status_why *why)
{
    if (s->kl_divergence && !s->base_file)
        return status_fail(why, STATUS_USAGE,
                           "--kl-divergence: --kl-divergence-base FILE is missing");
    if (s->force && (s->kl_divergence || !s->base_file))
        return status_fail(why, STATUS_USAGE,
                           "--force goes with --kl-divergence-base without --kl-divergence, which "
                           "records a file");
    if (!s->base_file)
        return STATUS_OK;
    if (cli_tasks_wanted(s) || s->protocol != CLI_PROTOCOL_DEFAULT || s->stride)
        return status_fail(why, STATUS_USAGE,
                           "--kl-divergence-base goes with the default windows only, not with "
                           "tasks, --protocol fixed or --ppl-stride");
    if (s->kl_divergence && cli_base_recognise(s->base_file) == CLI_BASE_MODEL) {
        struct eval_logits_file none; /* whose sentence says what is wrong with it */
        enum status status = eval_logits_open(&none, s->base_file, why);
        eval_logits_close(&none);
        return status;
    }
    return STATUS_OK;
}

/* What the table of options cannot say: what belongs together and what excludes each other. */
static enum status check_settings(const struct cli_perplexity *s, struct status_why *why)
{
    enum status status = check_base(s, why);
    if (status == STATUS_OK && !s->kl_divergence)
        status = cli_text_check(&s->text, why);
    if (status != STATUS_OK)
        return status;
    if (s->protocol == CLI_PROTOCOL_FIXED && s->stride)
        return status_fail(why, STATUS_USAGE, "--ppl-stride goes with --protocol default only");
    if (s->protocol != CLI_PROTOCOL_FIXED && s->split_lines)
        return status_fail(why, STATUS_USAGE, "--split-lines goes with --protocol fixed only");
    status = cli_window_check(&s->windows, why);
    if (status == STATUS_OK)
        status = cli_tasks_check(s, why);
    if (status == STATUS_OK)
        status = check_outputs(s, why);
    return status == STATUS_OK ? cli_model_check(&s->load, why) : status;
}

static void on_window(void *user, size_t w)
{
    cli_report_window(user, w);
}

static void on_progress(void *user, const struct eval_progress *now)
{
    struct cli_evaluation *e = user;
    cli_progress_update(&e->job.progress, now);
}

/* The outputs come before the computation, so that one that cannot be written costs no hours. */
static enum status create_outputs(struct cli_evaluation *e, struct status_why *why)
{
    const struct cli_perplexity *s = e->settings;
    struct cli_named_file outputs[N_OUTPUTS];
    list_outputs(outputs, s);
    enum status status = cli_outputs_check_model(outputs, N_OUTPUTS, "-m", e->model.model, why);
    if (status == STATUS_OK)
        status = cli_job_create_document(&e->job, why);
    if (status == STATUS_OK)
        status = cli_output_create(&e->per_token_file, s->per_token_file, why);
    return status;
}

/* Take the windows that the journal has. */
static enum status resume(struct cli_evaluation *e, struct status_why *why)
{
    struct eval_resume resume = {.journal = e->run_options.journal,
                                 .tables = &e->table,
                                 .n_tables = 1,
                                 .sink = cli_recording_runs(e) ? &e->sink : NULL};
    enum status status = cli_state_resume_windows(&resume, why);
    return status == STATUS_OK ? cli_recording_check_resumed(e, why) : status;
}

static enum status write_outputs(struct cli_evaluation *e, struct status_why *why)
{
    enum status status = STATUS_OK;
    if (e->per_token_file)
        status =
            cli_output_commit(&e->per_token_file,
                              eval_per_token_write(e->per_token_file, &e->plan, &e->stream,
                                                   &e->table, model_tokenizer(e->model.model), why),
                              why);
    if (status == STATUS_OK && e->job.json_file)
        status =
            cli_output_commit(&e->job.json_file, cli_report_json(e, e->job.json_file, why), why);
    return status;
}

/* What the run has come to, all else being well. */
static enum status verdict(const struct cli_evaluation *e, enum status run_status,
                           struct status_why *why)
{
    if (run_status == STATUS_CANCELLED)
        return cli_state_interrupted(e->settings->state_file, why);
    if (e->result.nonfinite.n)
        return status_fail(why, STATUS_NONFINITE, "the perplexity is not finite");
    return STATUS_OK;
}

/* The windows that are done are reported whether or not all of them are. */
static enum status evaluate(struct cli_evaluation *e, struct status_why *why)
{
    enum status status = create_outputs(e, why);
    if (status == STATUS_OK)
        status = resume(e, why);
    if (status != STATUS_OK)
        return status;
    cli_report_beginning(e);
    cli_job_begin(&e->job, true);
    e->run_options.window_done = on_window;
    e->run_options.progress = on_progress;
    e->run_options.user = e;

    struct eval_task task = cli_evaluation_task(e);
    enum status run_status = eval_run(&task, &e->run_options, &e->table, &e->job.stats, why);
    cli_progress_clear(&e->job.progress);
    if (run_status != STATUS_OK && run_status != STATUS_CANCELLED)
        return run_status;
    eval_perplexity(&e->result, &e->plan, &e->stream, &e->table);
    if (e->settings->context_curve)
        status = eval_curve_make(&e->curve, &e->table, why);
    if (status != STATUS_OK)
        return status;
    enum status recorded = cli_recording_finish(e, why);
    cli_report_end(e); /* also where the recording cannot be written: the figures are there */
    if (recorded != STATUS_OK)
        return recorded;
    status = write_outputs(e, why);
    return status == STATUS_OK ? verdict(e, run_status, why) : status;
}

/* With --kl-divergence it is assay kld under another name. */
static enum status compare(const struct cli_perplexity *s, struct status_why *why)
{
    /* A list owns its items, this one is only read. */
    char *models[] = {(char *)(uintptr_t)s->model};
    struct cli_kld kld;
    cli_kld_defaults(&kld);
    kld.base = s->base_file;
    kld.models = (struct cli_list){models, 1};
    kld.text = s->text;
    kld.windows = s->windows;
    kld.llama_compat = s->llama_compat;
    kld.load = s->load;
    kld.per_token_file = s->per_token_file;
    kld.divergence.context_curve = s->context_curve;
    kld.output = s->output;
    kld.state_file = s->state_file;
    kld.machine = s->machine;
    return cli_comparison_run(&kld, why);
}

enum status cli_evaluation_run(const struct cli_perplexity *settings, struct status_why *why)
{
    struct cli_evaluation e = {0};
    enum status status = cli_evaluation_open(&e, settings, why);
    if (status == STATUS_OK)
        status = evaluate(&e, why);
    cli_evaluation_close(&e);
    return status;
}

static enum status run_perplexity(const void *settings, const struct cli_args *args,
                                  struct status_why *why)
{
    (void)args;
    enum status status = check_settings(settings, why);
    if (status != STATUS_OK)
        return status;
    if (cli_tasks_wanted(settings))
        return cli_tasks_run(settings, why);
    const struct cli_perplexity *s = settings;
    if (s->kl_divergence)
        return compare(s, why);
    return cli_evaluation_run(s, why);
}

const struct cli_command cli_command_perplexity = {
    .name = "perplexity",
    .usage = "-m MODEL -f TEXT [options]",
    .summary = "Evaluate the perplexity of a model on a text.",
    .description =
        "Takes the options of llama-perplexity with its meaning. Those that cannot change a "
        "number here\n(-fa, -ub, --mlock, ...) are accepted and ignored; those that "
        "could, and are not\nimplemented, are errors.",
    .table = cli_perplexity_table,
    .settings_bytes = sizeof(struct cli_perplexity),
    .defaults = cli_perplexity_defaults,
    .run = run_perplexity,
};

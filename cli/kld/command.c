/* assay kld: how far models are from a base: another model, computed in the same pass, or a file.
 */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/kld/kld.h"
#include "cli/session/outputs.h"
#include "cli/session/state.h"
#include "eval/metrics/pair_per_token.h"

enum { N_OUTPUTS = 3 };

static void list_outputs(struct cli_named_file outputs[N_OUTPUTS], const struct cli_kld *s)
{
    outputs[0] = (struct cli_named_file){"--json", s->output.json_file};
    outputs[1] = (struct cli_named_file){"--per-token", s->per_token_file};
    outputs[2] = (struct cli_named_file){"--state", s->state_file};
}

/* No output may be a file that is read, or the other output. */
static enum status check_outputs(const struct cli_kld *s, struct status_why *why)
{
    struct cli_named_file outputs[N_OUTPUTS];
    list_outputs(outputs, s);
    const struct cli_named_file inputs[] = {
        {"--base", s->base}, {"-f", s->text.text_file}, {"-bf", s->text.binary_file}};
    enum status status =
        cli_outputs_check(outputs, N_OUTPUTS, inputs, sizeof inputs / sizeof *inputs, why);
    for (size_t i = 0; i < s->models.n && status == STATUS_OK; i++) {
        const struct cli_named_file model = {"-m", s->models.items[i]};
        status = cli_outputs_check(outputs, N_OUTPUTS, &model, 1, why);
    }
    return status;
}

/* Nor a part of a model, or the file that a compact base has its head from. */
static enum status check_outputs_opened(const struct cli_comparison *c, struct status_why *why)
{
    struct cli_named_file outputs[N_OUTPUTS];
    list_outputs(outputs, c->settings);
    enum status status = STATUS_OK;
    if (c->base.model.model)
        status = cli_outputs_check_model(outputs, N_OUTPUTS, "--base", c->base.model.model, why);
    if (status == STATUS_OK && c->base.head.model)
        status = cli_outputs_check_model(outputs, N_OUTPUTS, "--base", c->base.head.model, why);
    for (size_t i = 0; i < c->n_candidates && status == STATUS_OK; i++)
        status = cli_outputs_check_model(outputs, N_OUTPUTS, "-m", c->models[i], why);
    return status;
}

/* A model is compared on a text. Where there is none, a file that is no model may be why. */
static enum status check_text_of_model(const struct cli_kld *s, struct status_why *why)
{
    bool has_text = s->text.text_file || s->text.binary_file || s->text.prompt;
    struct gguf_file *base = NULL;
    enum status status = has_text ? STATUS_OK : gguf_open(&base, s->base, why);
    gguf_close(base);
    return status == STATUS_OK ? cli_text_check(&s->text, why) : status;
}

/* What goes with one kind of base only. */
static enum status check_against_base(const struct cli_kld *s, struct status_why *why)
{
    enum cli_base_kind kind = cli_base_recognise(s->base);
    if (s->llama_compat && kind != CLI_BASE_LOGITS)
        return status_fail(why, STATUS_USAGE,
                           "--llama-compat goes with a base-logits file only; %s is none", s->base);
    if (kind == CLI_BASE_MODEL)
        return check_text_of_model(s, why);
    if (s->text.text_file || s->text.binary_file || s->text.prompt)
        fprintf(stderr, "assay: note: the tokens are those of %s; the text is not read\n", s->base);
    return STATUS_OK;
}

static enum status check_settings(const struct cli_kld *s, struct status_why *why)
{
    enum status status = cli_window_check(&s->windows, why);
    if (status == STATUS_OK)
        status = check_against_base(s, why);
    if (status == STATUS_OK)
        status = check_outputs(s, why);
    return status == STATUS_OK ? cli_model_check(&s->load, why) : status;
}

static void on_window(void *user, size_t w)
{
    cli_kld_print_window(user, w);
}

static void on_progress(void *user, const struct eval_progress *now)
{
    struct cli_comparison *c = user;
    cli_progress_update(&c->job.progress, now);
}

static enum status write_per_token(const struct cli_comparison *c, struct status_why *why)
{
    const struct model_tokenizer *tokenizer = model_tokenizer(cli_comparison_reader(c));
    enum status status = STATUS_OK;
    for (size_t i = 0; i < c->n_candidates && status == STATUS_OK; i++) {
        struct eval_kld_tables tables = cli_comparison_tables(c, i);
        status = eval_pair_per_token_write(c->per_token_file, &tables, i, tokenizer, why);
    }
    return status;
}

static enum status write_outputs(struct cli_comparison *c, struct status_why *why)
{
    enum status status = STATUS_OK;
    if (c->per_token_file)
        status = cli_output_commit(&c->per_token_file, write_per_token(c, why), why);
    if (status == STATUS_OK && c->job.json_file)
        status =
            cli_output_commit(&c->job.json_file, cli_kld_write_json(c, c->job.json_file, why), why);
    return status;
}

/* The statistics of every candidate, the windows that are done reported whether or not all are. */
static enum status report(struct cli_comparison *c, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < c->n_candidates && status == STATUS_OK; i++) {
        struct eval_kld_tables tables = cli_comparison_tables(c, i);
        status = eval_kld(&c->results[i], &tables, (size_t)c->settings->divergence.n_worst, why);
    }
    if (status == STATUS_OK) {
        cli_kld_print_end(c);
        status = write_outputs(c, why);
    }
    return status;
}

static enum status compare(struct cli_comparison *c, struct status_why *why)
{
    const struct cli_kld *s = c->settings;
    cli_job_catch_interrupts(&c->job);
    enum status status = check_outputs_opened(c, why);
    if (status == STATUS_OK)
        status = cli_job_create_document(&c->job, why);
    if (status == STATUS_OK)
        status = cli_output_create(&c->per_token_file, s->per_token_file, why);
    if (status == STATUS_OK)
        status = cli_comparison_open_journal(c, why);
    if (status != STATUS_OK)
        return status;
    cli_kld_print_beginning(c);
    cli_job_begin(&c->job, true);
    c->run_options.window_done = on_window;
    c->run_options.progress = on_progress;
    c->run_options.user = c;
    struct eval_task task = cli_comparison_task(c);
    enum status run_status = eval_run(&task, &c->run_options, c->tables, &c->job.stats, why);
    cli_progress_clear(&c->job.progress);
    if (run_status != STATUS_OK && run_status != STATUS_CANCELLED)
        return run_status;
    status = report(c, why);
    if (status != STATUS_OK)
        return status;
    if (run_status == STATUS_CANCELLED)
        return cli_state_interrupted(c->settings->state_file, why);
    for (size_t i = 0; i < c->n_candidates; i++)
        if (c->results[i].nonfinite.n)
            return status_fail(why, STATUS_NONFINITE, "%s: the divergence is not finite",
                               c->candidates[i].path);
    return STATUS_OK;
}

enum status cli_comparison_run(const struct cli_kld *settings, struct status_why *why)
{
    struct cli_comparison c = {0};
    enum status status = check_settings(settings, why);
    if (status == STATUS_OK)
        status = cli_comparison_open(&c, settings, why);
    if (status == STATUS_OK)
        status = compare(&c, why);
    cli_comparison_close(&c);
    return status;
}

static enum status run_kld(const void *settings, const struct cli_args *args,
                           struct status_why *why)
{
    (void)args;
    return cli_comparison_run(settings, why);
}

const struct cli_command cli_command_kld = {
    .name = "kld",
    .usage = "-m MODEL [-m MODEL ...] --base MODEL|FILE [-f TEXT] [options]",
    .summary = "Compare the predictions of models with those of a base model.",
    .description =
        "Evaluates the base and all models in step and compares exact logits; no file lies\n"
        "between them. Or compares with a file that a base left behind, which has tokens and\n"
        "windows: exactly with that of assay record; rounded with a base-logits file, as assay\n"
        "perplexity --kl-divergence-base and llama-perplexity record it.\n"
        "Prints the lines of llama-perplexity --kl-divergence for each model.",
    .table = cli_kld_table,
    .settings_bytes = sizeof(struct cli_kld),
    .defaults = cli_kld_defaults,
    .run = run_kld,
};

/* assay check: how far what another program recorded is from the exact predictions. */
#include <math.h>
#include <stdio.h>

#include "cli/check/check.h"
#include "cli/commands.h"
#include "cli/session/outputs.h"
#include "cli/session/state.h"

enum { N_OUTPUTS = 3 };

static void list_outputs(struct cli_named_file outputs[N_OUTPUTS], const struct cli_check *s)
{
    outputs[0] = (struct cli_named_file){"--json", s->output.json_file};
    outputs[1] = (struct cli_named_file){"--per-token", s->per_token_file};
    outputs[2] = (struct cli_named_file){"--state", s->state_file};
}

static enum status check_settings(const struct cli_check *s, struct status_why *why)
{
    struct cli_named_file outputs[N_OUTPUTS];
    list_outputs(outputs, s);
    const struct cli_named_file inputs[] = {{"-m", s->model},
                                            {"--kl-divergence-base", s->recorded}};
    if (s->max_kld < 0 || s->max_beyond < 0)
        return status_fail(why, STATUS_USAGE, "%s: a limit below 0",
                           s->max_kld < 0 ? "--max-kld" : "--max-beyond");
    enum status status = cli_window_check(&s->windows, why);
    if (status == STATUS_OK)
        status = cli_outputs_check(outputs, N_OUTPUTS, inputs, sizeof inputs / sizeof *inputs, why);
    return status == STATUS_OK ? cli_model_check(&s->load, why) : status;
}

static enum status open_files(struct cli_checking *c, struct status_why *why)
{
    const struct cli_check *s = c->settings;
    /* Whatever is no base-logits file would be taken for a model: let the reader say what is wrong.
     */
    enum status status = eval_logits_open(&c->recorded.logits, s->recorded, why);
    eval_logits_close(&c->recorded.logits);
    if (status != STATUS_OK)
        return status;
    struct cli_base_options base = {.load = &s->load, .hash = s->output.hash_model};
    status = cli_base_open(&c->recorded, s->recorded, &base, why);
    if (status == STATUS_OK)
        status = cli_model_open(&c->model, s->model, &s->load, false, s->output.hash_model, why);
    if (status == STATUS_OK)
        status = cli_base_check(&c->recorded, c->model.model, why);
    return status;
}

static enum status lay_windows(struct cli_checking *c, struct status_why *why)
{
    const struct cli_check *s = c->settings;
    const struct model_tokenizer *tokenizer = model_tokenizer(c->model.model);
    struct eval_plan_options plan = cli_plan_options(&s->windows, tokenizer);
    enum status status = cli_base_tokens(&c->recorded, &c->stream, &plan.n_ctx, why);
    if (status == STATUS_OK)
        status = cli_base_limit(&c->recorded, &plan, why);
    if (status == STATUS_OK)
        status = eval_plan_make(&c->plan, &plan, c->stream.n, why);
    if (status == STATUS_OK)
        status = cli_base_place(&c->recorded, &c->plan, false, why);
    if (status == STATUS_OK)
        status = eval_table_make(&c->tables[0], c->plan.n_windows, c->plan.n_scored, why);
    if (status == STATUS_OK)
        status = eval_table_make_pair(&c->tables[1], c->plan.n_windows, c->plan.n_scored, why);
    return status;
}

static enum status prepare(struct cli_checking *c, struct status_why *why)
{
    struct eval_check_task check = {
        .model = c->model.model,
        .backend = c->job.backend,
        .plan = &c->plan,
        .stream = &c->stream,
        .recorded = &c->recorded.source,
    };
    enum status status = eval_check_open(&c->check, &check, why);
    if (status != STATUS_OK)
        return status;
    struct eval_task task = eval_check_run_task(c->check);
    return cli_job_prepare(&c->job, &task, &c->run_options, why);
}

static enum status open_all(struct cli_checking *c, struct status_why *why)
{
    const struct cli_check *s = c->settings;
    enum status status = cli_job_open(&c->job, &s->machine, &s->output, why);
    if (status == STATUS_OK)
        status = cli_job_check_one_device(&c->job, "assay check", why);
    if (status == STATUS_OK)
        status = open_files(c, why);
    if (status == STATUS_OK)
        status = lay_windows(c, why);
    if (status == STATUS_OK)
        status = prepare(c, why);
    cli_job_loaded(&c->job);
    return status;
}

static void close_all(struct cli_checking *c)
{
    base_file_abandon(c->per_token_file);
    eval_journal_close(c->run_options.journal);
    eval_check_result_free(&c->result);
    eval_check_close(c->check);
    eval_table_free(&c->tables[0]);
    eval_table_free(&c->tables[1]);
    eval_stream_free(&c->stream);
    cli_model_close(&c->model);
    cli_base_close(&c->recorded);
    cli_job_close(&c->job);
}

static void on_window(void *user, size_t w)
{
    struct cli_checking *c = user;
    eval_check_window(c->check, c->tables, w);
}

static void on_progress(void *user, const struct eval_progress *now)
{
    struct cli_checking *c = user;
    cli_progress_update(&c->job.progress, now);
}

void cli_check_limits(const struct cli_checking *c, struct cli_check_limit out[CLI_CHECK_LIMITS])
{
    out[0] = (struct cli_check_limit){"--max-kld", "the mean divergence", c->settings->max_kld,
                                      c->result.kld.figures.kld.value};
    out[1] = (struct cli_check_limit){"--max-beyond", "the mean divergence beyond the file's share",
                                      c->settings->max_beyond, c->result.beyond};
}

static enum status write_outputs(struct cli_checking *c, struct status_why *why)
{
    enum status status = STATUS_OK;
    if (c->per_token_file)
        status = cli_output_commit(&c->per_token_file,
                                   cli_check_write_table(c, c->per_token_file, why), why);
    if (status == STATUS_OK && c->job.json_file)
        status = cli_output_commit(&c->job.json_file,
                                   cli_check_write_json(c, c->job.json_file, why), why);
    return status;
}

/* What the run comes to, once everything is written. */
static enum status judge(const struct cli_checking *c, enum status run_status,
                         struct status_why *why)
{
    if (run_status == STATUS_CANCELLED)
        return cli_state_interrupted(c->settings->state_file, why);
    if (c->result.kld.nonfinite.n)
        return status_fail(why, STATUS_NONFINITE, "%s: the divergence is not finite",
                           c->recorded.path);
    struct cli_check_limit limits[CLI_CHECK_LIMITS];
    cli_check_limits(c, limits);
    for (size_t i = 0; i < CLI_CHECK_LIMITS; i++)
        if (limits[i].found > limits[i].limit) /* false without a limit */
            return status_fail(why, STATUS_EXCEEDED, "%s: %s is %.4e, above %s %g",
                               c->recorded.path, limits[i].what, limits[i].found, limits[i].option,
                               limits[i].limit);
    return STATUS_OK;
}

static enum status create_outputs(struct cli_checking *c, struct status_why *why)
{
    const struct cli_check *s = c->settings;
    struct cli_named_file outputs[N_OUTPUTS];
    list_outputs(outputs, s);
    enum status status = cli_outputs_check_model(outputs, N_OUTPUTS, "-m", c->model.model, why);
    if (status == STATUS_OK)
        status = cli_job_create_document(&c->job, why);
    if (status == STATUS_OK)
        status = cli_output_create(&c->per_token_file, s->per_token_file, why);
    return status == STATUS_OK ? cli_checking_open_journal(c, why) : status;
}

static enum status check(struct cli_checking *c, struct status_why *why)
{
    const struct cli_check *s = c->settings;
    cli_job_catch_interrupts(&c->job);
    enum status status = create_outputs(c, why);
    if (status != STATUS_OK)
        return status;
    cli_check_print_beginning(c);
    cli_job_begin(&c->job, true);
    c->run_options.window_done = on_window;
    c->run_options.progress = on_progress;
    c->run_options.user = c;
    struct eval_task task = eval_check_run_task(c->check);
    enum status run_status = eval_run(&task, &c->run_options, c->tables, &c->job.stats, why);
    cli_progress_clear(&c->job.progress);
    if (run_status != STATUS_OK && run_status != STATUS_CANCELLED)
        return run_status;
    status =
        eval_check_summarise(&c->result, c->check, c->tables, (size_t)s->divergence.n_worst, why);
    if (status != STATUS_OK)
        return status;
    cli_check_print_end(c);
    status = write_outputs(c, why);
    return status == STATUS_OK ? judge(c, run_status, why) : status;
}

static enum status run_check(const void *settings, const struct cli_args *args,
                             struct status_why *why)
{
    (void)args;
    struct cli_checking c = {.settings = settings};
    enum status status = check_settings(settings, why);
    if (status == STATUS_OK)
        status = open_all(&c, why);
    if (status == STATUS_OK)
        status = check(&c, why);
    close_all(&c);
    return status;
}

static void defaults(void *settings)
{
    struct cli_check *s = settings;
    *s = (struct cli_check){.max_kld = (double)NAN, .max_beyond = (double)NAN};
    cli_window_defaults(&s->windows);
    cli_model_defaults(&s->load);
    cli_machine_defaults(&s->machine);
}

#define AT(member) offsetof(struct cli_check, member)

static const struct cli_option table[] = {
    {.type = CLI_HEADING, .help = "Input"},
    {.type = CLI_GROUP,
     .group = cli_model_file_table,
     .offset = AT(model),
     .help = "; the one that the rows were recorded from"},
    {.names = "--kl-divergence-base --base",
     CLI_TEXT,
     "FILE",
     "what the other program recorded: llama-perplexity --kl-divergence-base FILE, say. It has "
     "the tokens, so no text is needed",
     AT(recorded),
     .required = true},

    {.type = CLI_HEADING, .help = "Evaluation"},
    {.type = CLI_GROUP,
     .group = cli_window_table,
     .offset = AT(windows),
     .help = "; refused if they are not the file's (default: the file's)"},
    {.type = CLI_GROUP, .group = cli_chunk_from_table, .offset = AT(windows)},
    {.names = "--max-kld",
     CLI_NUMBER,
     "X",
     "fail, with exit code 1, if the mean divergence is above X nats",
     AT(max_kld)},
    {.names = "--max-beyond",
     CLI_NUMBER,
     "X",
     "the same for what the divergence has beyond the share that the file's 16 bits make",
     AT(max_beyond)},

    {.type = CLI_GROUP, .group = cli_model_table, .offset = AT(load)},

    {.type = CLI_HEADING, .help = "Output"},
    {.type = CLI_GROUP, .group = cli_per_token_table, .offset = AT(per_token_file)},
    {.type = CLI_GROUP, .group = cli_divergence_table, .offset = AT(divergence)},
    {.type = CLI_GROUP, .group = cli_state_table, .offset = AT(state_file)},
    {.type = CLI_GROUP, .group = cli_output_table, .offset = AT(output)},

    {.type = CLI_GROUP, .group = cli_machine_table, .offset = AT(machine)},
    {.type = CLI_GROUP, .group = cli_foreign_table},
    {0},
};

const struct cli_command cli_command_check = {
    .name = "check",
    .usage = "-m MODEL --kl-divergence-base FILE [options]",
    .summary = "Validate another program: its recorded predictions against the exact ones.",
    .description =
        "FILE is what llama-perplexity (or any other program) recorded of this very model. Tells\n"
        "how far its probabilities are from the exact ones, and how much of that the file's 16\n"
        "bits make.",
    .table = table,
    .settings_bytes = sizeof(struct cli_check),
    .defaults = defaults,
    .run = run_check,
};

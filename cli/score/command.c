/* assay score: log-probabilities of the requests of an external harness. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/score/score.h"
#include "cli/session/outputs.h"
#include "cli/session/state.h"
#include "eval/run/resume.h"

enum { ANY = INT32_MAX, UNKNOWN_CONTEXT = 2048, N_OUTPUTS = 3 };

static void list_outputs(struct cli_named_file outputs[N_OUTPUTS], const struct cli_score *s)
{
    outputs[0] = (struct cli_named_file){"-o", s->out_file};
    outputs[1] = (struct cli_named_file){"--json", s->output.json_file};
    outputs[2] = (struct cli_named_file){"--state", s->state_file};
}

static enum status check_settings(const struct cli_score *s, const char *request_file,
                                  struct status_why *why)
{
    struct cli_named_file outputs[N_OUTPUTS];
    list_outputs(outputs, s);
    const struct cli_named_file inputs[] = {{"-m", s->model}, {"the command", request_file}};
    enum status status =
        cli_outputs_check(outputs, N_OUTPUTS, inputs, sizeof inputs / sizeof *inputs, why);
    return status == STATUS_OK ? cli_model_check(&s->load, why) : status;
}

static struct eval_request_options request_options(const struct cli_score *s,
                                                   const struct model *model)
{
    const struct model_tokenizer *tokenizer = model_tokenizer(model);
    size_t trained = model_hparams(model)->n_ctx_train;
    return (struct eval_request_options){
        .n_ctx = s->n_ctx  ? (size_t)s->n_ctx
                 : trained ? trained
                           : UNKNOWN_CONTEXT,
        .bos = s->bos == CLI_SCORE_BOS_AUTO ? model_adds_bos(tokenizer)
                                            : s->bos == CLI_SCORE_BOS_ALWAYS,
        .parse_special = s->parse_special,
    };
}

static enum status load(struct cli_scoring *s, struct status_why *why)
{
    const struct model_tokenizer *tokenizer = model_tokenizer(s->model.model);
    enum status status = eval_text_read_whole(&s->text, s->request_file, EVAL_TEXT_MAX_BYTES, why);
    if (status != STATUS_OK)
        return status;
    s->options = request_options(s->settings, s->model.model);
    if (s->options.bos && model_token_bos(tokenizer) < 0)
        return status_fail(why, STATUS_USAGE, "--bos always: the vocabulary of %s has no BOS",
                           s->model.path);
    status = eval_requests_read(&s->requests, s->text.data, s->text.n_bytes, why);
    if (status == STATUS_OK)
        status = eval_request_scores_make(&s->scores, &s->requests, &s->options, tokenizer, why);
    if (status != STATUS_OK)
        status_context(why, "%s", s->request_file);
    return status;
}

/* The path names one part of a model that is split. */
static enum status check_parts(const struct cli_scoring *s, struct status_why *why)
{
    struct cli_named_file outputs[N_OUTPUTS];
    list_outputs(outputs, s->settings);
    return cli_outputs_check_model(outputs, N_OUTPUTS, "-m", s->model.model, why);
}

static enum status open_all(struct cli_scoring *s, struct status_why *why)
{
    const struct cli_score *settings = s->settings;
    enum status status = cli_job_open(&s->job, &settings->machine, &settings->output, why);
    if (status == STATUS_OK)
        status = cli_job_check_one_device(&s->job, "assay score", why);
    if (status == STATUS_OK)
        status = cli_model_open(&s->model, settings->model, &settings->load, false,
                                settings->output.hash_model, why);
    if (status == STATUS_OK)
        status = check_parts(s, why);
    if (status == STATUS_OK)
        status = load(s, why);
    if (status == STATUS_OK)
        status = cli_output_create(&s->out, settings->out_file, why);
    if (status == STATUS_OK)
        status = cli_job_create_document(&s->job, why);
    if (status == STATUS_OK)
        status = cli_scoring_open_journal(s, why);
    if (status == STATUS_OK)
        status = cli_job_choose_batch(&s->job, s->model.model, s->scores.longest,
                                      s->scores.sequences.n, &s->batch_tokens, why);
    if (status == STATUS_OK)
        status = eval_sequences_group(&s->scores.sequences, s->batch_tokens, why);
    cli_job_loaded(&s->job);
    return status;
}

static void close_all(struct cli_scoring *s)
{
    base_file_abandon(s->out);
    eval_journal_close(s->journal);
    eval_request_scores_free(&s->scores);
    eval_requests_free(&s->requests);
    eval_text_free(&s->text);
    cli_model_close(&s->model);
    cli_job_close(&s->job);
}

/* The requests that are finished, up to the first that is not: into the journal and out. */
static enum status put_finished(struct cli_scoring *s, struct status_why *why)
{
    enum status status =
        s->journal ? eval_resume_keep_requests(s->journal, &s->scores, why) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    cli_progress_clear(&s->job.progress);
    cli_score_write_lines(s);
    return STATUS_OK;
}

static enum status on_group(void *user, size_t g, struct status_why *why)
{
    struct cli_scoring *s = user;
    eval_request_scores_take(&s->scores, g);
    return put_finished(s, why);
}

static void on_progress(void *user, const struct eval_progress *now)
{
    struct cli_scoring *s = user;
    cli_progress_update(&s->job.progress, now);
}

/* An interrupted run leaves no file with fewer lines than requests; standard output keeps what was
 * printed until then. */
static enum status write_outputs(struct cli_scoring *s, bool whole, struct status_why *why)
{
    enum status status = whole ? cli_output_commit(&s->out, STATUS_OK, why) : STATUS_OK;
    if (status == STATUS_OK && s->job.json_file)
        status = cli_output_commit(&s->job.json_file,
                                   cli_score_write_json(s, s->job.json_file, why), why);
    return status;
}

static enum status score(struct cli_scoring *s, struct status_why *why)
{
    cli_job_catch_interrupts(&s->job);
    struct eval_sequences_run run = {
        .model = s->model.model,
        .backend = s->job.backend,
        .batch_tokens = s->batch_tokens,
        .group_done = on_group,
        .progress = on_progress,
        .user = s,
    };
    if (s->scores.sequences.n)
        s->job.memory = eval_sequences_memory(&s->scores.sequences, &run);
    cli_score_report_beginning(s);
    cli_job_begin(&s->job, s->scores.sequences.n > 0);
    enum status run_status = put_finished(s, why); /* with nothing to evaluate, or resumed */
    if (run_status == STATUS_OK)
        run_status = eval_sequences_run(&s->scores.sequences, &run, &s->job.stats, why);
    run_status = eval_resume_end(s->journal, run_status, why);
    s->job.stats.n_resumed = s->n_resumed;
    cli_progress_clear(&s->job.progress);
    if (run_status != STATUS_OK && run_status != STATUS_CANCELLED)
        return run_status;
    enum status status = write_outputs(s, run_status == STATUS_OK, why);
    if (status != STATUS_OK)
        return status;
    cli_score_report_end(s);
    if (run_status == STATUS_CANCELLED)
        return cli_state_interrupted(s->settings->state_file, why);
    if (s->n_nonfinite)
        return status_fail(why, STATUS_NONFINITE,
                           "%zu of %zu request%s %s a score that is not finite; the first is "
                           "line %zu",
                           s->n_nonfinite, s->n_written, status_plural(s->n_written),
                           s->n_nonfinite == 1 ? "has" : "have", s->first_nonfinite);
    return STATUS_OK;
}

static enum status run_score(const void *settings, const struct cli_args *args,
                             struct status_why *why)
{
    struct cli_scoring s = {.settings = settings, .request_file = args->operands[0]};
    enum status status = check_settings(settings, s.request_file, why);
    if (status == STATUS_OK)
        status = open_all(&s, why);
    if (status == STATUS_OK)
        status = score(&s, why);
    close_all(&s);
    return status;
}

static void defaults(void *settings)
{
    struct cli_score *s = settings;
    *s = (struct cli_score){.out_file = "-"};
    cli_model_defaults(&s->load);
    cli_machine_defaults(&s->machine);
}

#define AT(member) offsetof(struct cli_score, member)

static const struct cli_option table[] = {
    {.type = CLI_HEADING, .help = "Input"},
    {.type = CLI_GROUP, .group = cli_model_file_table, .offset = AT(model)},
    {.type = CLI_GROUP, .group = cli_special_table, .offset = AT(parse_special)},
    {.names = "--bos",
     CLI_CHOICE,
     "WHEN",
     "begin contexts with BOS: auto, where the vocabulary asks for it (default); always; never",
     AT(bos),
     .choices = "auto always never"},

    {.type = CLI_HEADING, .help = "Evaluation"},
    {.names = "-c --ctx-size",
     CLI_COUNT,
     "N",
     "tokens that the model sees at once; longer contexts lose their begin, longer texts are cut "
     "into windows (default: 0, as the model was trained)",
     AT(n_ctx),
     0,
     ANY,
     .env = "LLAMA_ARG_CTX_SIZE"},

    {.type = CLI_GROUP, .group = cli_model_table, .offset = AT(load)},

    {.type = CLI_HEADING, .help = "Output"},
    {.names = "-o --output",
     CLI_TEXT,
     "FILE",
     "write the scores here, whole or not at all (default: -, standard output, as they come)",
     AT(out_file)},
    {.type = CLI_GROUP, .group = cli_state_table, .offset = AT(state_file)},
    {.type = CLI_GROUP, .group = cli_output_table, .offset = AT(output)},

    {.type = CLI_GROUP, .group = cli_machine_table, .offset = AT(machine)},
    {0},
};

const struct cli_command cli_command_score = {
    .name = "score",
    .usage = "-m MODEL FILE.jsonl [options]",
    .n_operands = 1,
    .summary = "Score the requests of an external harness: JSON lines in, JSON lines out.",
    .description =
        "A line {\"context\": ..., \"continuation\": ...} asks for the log-probability of the\n"
        "continuation, a line {\"text\": ...} for that of a whole text; - reads standard input.\n"
        "Each gives a line {\"logprob\": ..., \"tokens\": ..., \"is_greedy\": ...} in its place.\n"
        "Other members of a line, such as an id, are handed through.",
    .table = table,
    .settings_bytes = sizeof(struct cli_score),
    .defaults = defaults,
    .run = run_score,
};

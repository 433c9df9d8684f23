/* assay score: log-probabilities of the requests of an external harness. */
#include "cli/commands.h"
#include "cli/score/score.h"

enum { ANY = INT32_MAX, UNKNOWN_CONTEXT = 2048 };

static struct eval_request_options request_options(const struct cli_score_settings *s,
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

static enum status load(struct cli_score *s, struct status_why *why)
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

static enum status open(struct cli_evaluation *e, struct status_why *why)
{
    struct cli_score *s = (struct cli_score *)e;
    enum status status = cli_model_open(&s->model, s->settings->model, &s->settings->load, false,
                                        e->settings->output.hash_model, why);
    if (!status)
        status = load(s, why);
    e->models.model = s->model.model;
    e->units = &s->scores.sequences.units;
    return status;
}

static void close(struct cli_evaluation *e)
{
    struct cli_score *s = (struct cli_score *)e;
    eval_request_scores_free(&s->scores);
    eval_requests_free(&s->requests);
    eval_text_free(&s->text);
    cli_model_close(&s->model);
}

/* The lines are there already. */
static enum status end_lines(const struct cli_evaluation *e, struct base_file *file,
                             struct status_why *why)
{
    (void)e, (void)file, (void)why;
    return STATUS_OK;
}

static enum status verdict(const struct cli_evaluation *e, struct status_why *why)
{
    const struct cli_score *s = (const struct cli_score *)e;
    if (s->n_nonfinite)
        return status_fail(why, STATUS_NONFINITE,
                           "%zu of %zu request%s %s a score that is not finite; the first is "
                           "line %zu",
                           s->n_nonfinite, s->n_written, status_plural(s->n_written),
                           s->n_nonfinite == 1 ? "has" : "have", s->first_nonfinite);
    return STATUS_OK;
}

static const struct cli_evaluator evaluator = {
    .schema = "assay-score",
    .open = open,
    .describe = cli_score_describe,
    .print_beginning = cli_score_print_beginning,
    .unit_done = cli_score_write_line,
    .print_end = cli_score_print_end,
    .add_result = cli_score_add_result,
    .add_files = cli_score_add_files,
    .verdict = verdict,
    .close = close,
};

/* An interrupted run leaves no file with fewer lines than requests; standard output keeps what was
 * printed until then. */
static enum status run_score(const void *settings, const struct cli_args *args,
                             struct status_why *why)
{
    const struct cli_score_settings *s = settings;
    const char *requests = args->operands[0];
    enum status status = cli_model_check(&s->load, why);
    struct cli_score score = {
        .settings = s,
        .request_file = requests,
        .e = {.kind = &evaluator,
              .settings = &s->evaluate,
              .name = "score",
              .inputs = {{"-m", s->model}, {"the command", requests}},
              .text_file = requests,
              .outputs = {{"-o", s->out_file, .write = end_lines, .only_whole = true}}}};
    return status ? status : cli_evaluate(&score.e, why);
}

static void defaults(void *settings)
{
    struct cli_score_settings *s = settings;
    *s = (struct cli_score_settings){.out_file = "-"};
    cli_model_defaults(&s->load);
    cli_machine_defaults(&s->evaluate.machine);
}

#define AT(member) offsetof(struct cli_score_settings, member)

static const struct cli_option table[] = {
    {.type = CLI_HEADING, .help = "Input"},
    {.type = CLI_GROUP, .group = cli_model_file_table, .offset = AT(model)},
    {.type = CLI_GROUP, .group = cli_special_table, .offset = AT(parse_special)},
    {"--bos", CLI_CHOICE, "WHEN",
     "begin contexts with BOS: auto, where the vocabulary asks for it (default); always; never",
     AT(bos), .choices = "auto always never"},

    {.type = CLI_HEADING, .help = "Evaluation"},
    {"-c --ctx-size", CLI_COUNT, "N",
     "tokens that the model sees at once; longer contexts lose their begin, longer texts are cut "
     "into windows (default: 0, as the model was trained)",
     AT(n_ctx), 0, ANY, .env = "LLAMA_ARG_CTX_SIZE"},

    {.type = CLI_GROUP, .group = cli_model_table, .offset = AT(load)},

    {.type = CLI_HEADING, .help = "Output"},
    {"-o --output", CLI_TEXT, "FILE",
     "write the scores here, whole or not at all (default: -, standard output, as they come)",
     AT(out_file)},
    {.type = CLI_GROUP, .group = cli_evaluate_table, .offset = AT(evaluate)},
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
    .settings_bytes = sizeof(struct cli_score_settings),
    .defaults = defaults,
    .run = run_score,
};

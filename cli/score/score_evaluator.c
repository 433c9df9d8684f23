/* assay score: log-probabilities of the requests of an external harness. */
#include <math.h>
#include <stdio.h>

#include "base/content/kind.h"
#include "cli/commands.h"
#include "cli/evaluate.h"
#include "cli/output/json_parts.h"
#include "cli/process/say.h"
#include "cli/score/score.h"

enum { ANY = INT32_MAX, UNKNOWN_CONTEXT = 2048 };

struct settings {
    const char *model, *out_file;
    struct cli_score_settings score;
    struct cli_evaluate_settings evaluate;
};

struct score {
    struct cli_evaluation e;
    const struct settings *settings;
    const char *request_file;
    struct cli_model model;
    struct base_text text;
    struct eval_requests requests;
    struct eval_request_options options;
    struct eval_request_scores scores;
    size_t n_written;                    /* requests whose lines are written: all before it are */
    size_t n_nonfinite, first_nonfinite; /* of those; the line of the first */
};

enum status cli_score_options(struct eval_request_options *out, const struct cli_score_settings *s,
                              const struct model *model, struct status_why *why)
{
    enum { AUTO, ALWAYS, NEVER };
    const struct model_tokenizer *tokenizer = model_tokenizer(model);
    size_t trained = model_hparams(model)->n_ctx_train;
    *out = (struct eval_request_options){
        .n_ctx = s->n_ctx  ? (size_t)s->n_ctx
                 : trained ? trained
                           : UNKNOWN_CONTEXT,
        .bos = s->bos == AUTO ? model_adds_bos(tokenizer) : s->bos == ALWAYS,
        .parse_special = s->parse_special,
    };
    return out->bos && model_token_bos(tokenizer) < 0
               ? status_fail(why, STATUS_USAGE, "--bos always: the vocabulary of %s has no BOS",
                             gguf_path(model_file(model)))
               : STATUS_OK;
}

static enum status load(struct score *s, struct status_why *why)
{
    const struct model_tokenizer *tokenizer = model_tokenizer(s->model.model);
    enum status status = base_text_read_whole(&s->text, s->request_file, BASE_TEXT_MAX_BYTES, why);
    if (status)
        return status;
    status = cli_score_options(&s->options, &s->settings->score, s->model.model, why);
    if (status)
        return status;
    status = base_file_check_kind((struct base_string){s->text.data, s->text.n_bytes},
                                  "JSON lines with requests", why);
    if (!status)
        status = eval_requests_read(&s->requests, s->text.data, s->text.n_bytes, why);
    if (!status)
        status = eval_request_scores_make(&s->scores, &s->requests, &s->options, tokenizer, why);
    if (status)
        status_context(why, "%s", s->request_file);
    return status;
}

static enum status open(void *self, struct status_why *why)
{
    struct score *s = self;
    enum status status = cli_model_open(&s->model, s->settings->model, s->e.settings, false, why);
    if (!status)
        status = load(s, why);
    s->e.models.model = s->model.model;
    s->e.units = &s->scores.sequences.units;
    return status;
}

static void close(void *self)
{
    struct score *s = self;
    eval_request_scores_free(&s->scores);
    eval_requests_free(&s->requests);
    base_text_free(&s->text);
    cli_model_close(&s->model);
}

static void write_line(void *self, size_t i)
{
    struct score *s = self;
    struct base_file *out = s->e.outputs[0].file;
    const struct eval_request *request = &s->requests.items[i];
    const struct eval_request_score *score = &s->scores.items[i];
    double log_prob = eval_request_log_prob(score);
    base_file_write(out, "{", 1);
    base_json_put(out, request->handed.data, request->handed.n_bytes);
    base_file_printf(out, request->handed.n_bytes ? ", " : "");
    if (isfinite(log_prob)) {
        base_file_printf(out, "\"logprob\": %.17g", log_prob);
    } else {
        if (s->n_nonfinite++ == 0)
            s->first_nonfinite = request->line;
        base_file_printf(out, "\"logprob\": null");
    }
    base_file_printf(out, ", \"tokens\": %zu, \"is_greedy\": %s", score->n_scored,
                     score->greedy ? "true" : "false");
    if (score->n_truncated)
        base_file_printf(out, ", \"truncated\": %zu", score->n_truncated);
    base_file_write(out, "}\n", 2);
    base_file_flush(out);
    s->n_written++;
}

static void print_beginning(const void *self)
{
    const struct score *s = self;
    cli_say("assay: %zu request%s, %zu token%s to score, sequences of at most %zu, batches of %zu "
            "tokens\n",
            s->requests.n, status_plural(s->requests.n), s->scores.n_scored,
            status_plural(s->scores.n_scored), s->scores.longest, s->e.units->most.n_tokens);
    if (s->scores.n_truncated)
        cli_say("assay: note: %zu request%s longer than -c %zu: the first tokens are left out\n",
                s->scores.n_truncated, s->scores.n_truncated == 1 ? " is" : "s are",
                s->options.n_ctx);
}

static void print_end(void *self)
{
    const struct score *s = self;
    double n = (double)s->e.stats.n_inputs, n_alone = 0; /* if no two sequences shared a token */
    for (size_t i = 0; i < s->scores.sequences.n; i++)
        n_alone += (double)(s->scores.sequences.items[i].n_tokens - 1);
    bool complete = s->n_written == s->requests.n && n_alone > 0;
    cli_say("assay: %zu of %zu request%s; %zu token%s evaluated in %.1f s, %.1f tokens/s; sharing "
            "beginnings saves %.1f %%\n",
            s->n_written, s->requests.n, status_plural(s->requests.n), s->e.stats.n_inputs,
            status_plural(s->e.stats.n_inputs), s->e.stats.seconds,
            s->e.stats.seconds > 0 ? n / s->e.stats.seconds : 0,
            complete ? 100 * (1 - n / n_alone) : 0);
}

static void add_result(const void *self, struct base_json *json)
{
    const struct score *s = self;
    size_t n_scored = 0, n_truncated = 0, n_greedy = 0;
    double sum = 0;
    for (size_t i = 0; i < s->n_written; i++) {
        const struct eval_request_score *score = &s->scores.items[i];
        n_scored += score->n_scored;
        n_truncated += score->n_truncated > 0;
        n_greedy += score->greedy;
        sum += eval_request_log_prob(score);
    }
    cJSON *o = base_json_object(json, json->root, "result");
    base_json_flag(json, o, "complete", s->n_written == s->requests.n);
    base_json_uint(json, o, "n_requests", s->n_written);
    base_json_uint(json, o, "n_tokens", n_scored);
    base_json_real(json, o, "logprob", sum);
    base_json_uint(json, o, "n_greedy", n_greedy);
    base_json_uint(json, o, "n_truncated", n_truncated);
    base_json_uint(json, o, "n_nonfinite", s->n_nonfinite);
}

void cli_score_add_settings(struct base_json *json, cJSON *settings,
                            const struct eval_request_options *options)
{
    base_json_uint(json, settings, "n_ctx", options->n_ctx);
    base_json_flag(json, settings, "bos", options->bos);
    base_json_flag(json, settings, "parse_special", options->parse_special);
}

static void describe(const void *self, struct base_json *json, bool for_journal)
{
    const struct score *s = self;
    cJSON *settings = base_json_object(json, json->root, "settings");
    cli_score_add_settings(json, settings, &s->options);
    cli_json_add_computation(json, settings, &s->e);
    cli_json_add_model(json, json->root, "model", &s->model, !for_journal);
    cJSON *text = cli_json_add_input(json, &s->text);
    base_json_uint(json, text, "n_requests", s->requests.n);
}

/* The lines are there already. */
static enum status end_lines(const void *self, struct base_file *file, struct status_why *why)
{
    (void)self, (void)file, (void)why;
    return STATUS_OK;
}

static enum status verdict(const void *self, struct status_why *why)
{
    const struct score *s = self;
    if (s->n_nonfinite)
        return status_fail(why, STATUS_NONFINITE,
                           "%zu of %zu request%s %s a score that is not finite; the first is "
                           "line %zu",
                           s->n_nonfinite, s->n_written, status_plural(s->n_written),
                           s->n_nonfinite == 1 ? "has" : "have", s->first_nonfinite);
    return STATUS_OK;
}

static const struct cli_lines lines = {print_beginning, write_line, print_end};
static const struct cli_members members = {"assay-score", add_result, describe, NULL, NULL};
static const struct cli_evaluator evaluator = {
    .lines = &lines,
    .members = &members,
    .open = open,
    .verdict = verdict,
    .close = close,
};

/* An interrupted run leaves no file with fewer lines than requests; standard output keeps what was
 * printed until then. */
static enum status run_score(const void *settings, const struct cli_args *args,
                             struct status_why *why)
{
    const struct settings *s = settings;
    const char *requests = args->operands[0];
    struct score score = {.settings = s,
                          .request_file = requests,
                          .e = {.kind = &evaluator,
                                .settings = &s->evaluate,
                                .name = "score",
                                .model_file = s->model,
                                .inputs = {{"-m", s->model}, {"the command", requests}},
                                .text_file = requests,
                                .outputs = {{"-o", s->out_file, BASE_SCORES, .write = end_lines,
                                             .only_whole = true}}}};
    return cli_evaluate(&score.e, why);
}

static void defaults(void *settings)
{
    struct settings *s = settings;
    *s = (struct settings){.out_file = "-"};
    cli_evaluate_defaults(&s->evaluate);
}

#define AT(member) offsetof(struct settings, member)

static const struct cli_option options[] = {
    {.type = CLI_HEADING, .help = "Input"},
    {.type = CLI_GROUP, .group = cli_model_file_options, .offset = AT(model)},
    {.type = CLI_GROUP, .group = cli_special_options, .offset = AT(score.parse_special)},
    {"--bos", CLI_CHOICE, "WHEN",
     "begin contexts with BOS: auto, where the vocabulary asks for it (default); always; never",
     AT(score.bos), .choices = CLI_SCORE_BOS},

    {.type = CLI_HEADING, .help = "Evaluation"},
    {"-c --ctx-size", CLI_COUNT, "N",
     "tokens that the model sees at once; a longer context loses its first tokens, a longer text "
     "is cut into windows (default: 0, as the model was trained)",
     AT(score.n_ctx), 0, ANY, .env = "LLAMA_ARG_CTX_SIZE", .usual = true},

    {.type = CLI_GROUP, .group = cli_model_options, .offset = AT(evaluate.load)},

    {.type = CLI_HEADING, .help = "Output"},
    {"-o --output", CLI_TEXT, "FILE",
     "write the scores here, whole or not at all (default: -, standard output, as they come)",
     AT(out_file), .usual = true},
    {.type = CLI_GROUP, .group = cli_evaluate_options, .offset = AT(evaluate)},
    {0},
};

const struct cli_command cli_command_score = {
    .name = "score",
    .usage = "[-m] MODEL FILE.jsonl [options]",
    .n_operands = 1,
    .summary = "Score the requests of an external harness: JSON lines in, JSON lines out.",
    .description =
        "A line {\"context\": ..., \"continuation\": ...} asks for the log-probability of the\n"
        "continuation, a line {\"text\": ...} for that of a whole text; the name - reads\n"
        "standard input. Each line is answered, in its place, by a line {\"logprob\": ...,\n"
        "\"tokens\": ..., \"is_greedy\": ...}. Other members of a line, such as an id, are\n"
        "copied to its answer.",
    .examples = "assay score model.gguf requests.jsonl > scores.jsonl\n"
                "Log-probabilities for another harness.",
    .options = options,
    .settings_bytes = sizeof(struct settings),
    .evaluate = AT(evaluate),
    .defaults = defaults,
    .run = run_score,
};

/* What assay score writes: a line for each request, and a document about the run. */
#include <math.h>
#include <stdio.h>

#include "cli/output/json_parts.h"
#include "cli/score/score.h"
#include "cli/session/state.h"

static void write_line(struct cli_scoring *s, size_t i)
{
    const struct eval_request *request = &s->requests.items[i];
    const struct eval_request_score *score = &s->scores.items[i];
    double log_prob = eval_request_log_prob(score);
    base_file_write(s->out, "{", 1);
    base_file_write(s->out, request->handed.data, request->handed.n_bytes);
    base_file_printf(s->out, request->handed.n_bytes ? ", " : "");
    if (isfinite(log_prob)) {
        base_file_printf(s->out, "\"logprob\": %.17g", log_prob);
    } else {
        if (s->n_nonfinite++ == 0)
            s->first_nonfinite = request->line;
        base_file_printf(s->out, "\"logprob\": null");
    }
    base_file_printf(s->out, ", \"tokens\": %zu, \"is_greedy\": %s", score->n_scored,
                     score->greedy ? "true" : "false");
    if (score->n_truncated)
        base_file_printf(s->out, ", \"truncated\": %zu", score->n_truncated);
    base_file_write(s->out, "}\n", 2);
}

void cli_score_write_lines(struct cli_scoring *s)
{
    size_t n_before = s->n_written;
    for (; s->n_written < s->requests.n && s->scores.items[s->n_written].n_left == 0;
         s->n_written++)
        write_line(s, s->n_written);
    if (s->n_written > n_before)
        base_file_flush(s->out);
}

/** Tokens that the sequences evaluate, each by itself. */
static double n_inputs_alone(const struct cli_scoring *s)
{
    double n = 0;
    for (size_t i = 0; i < s->scores.sequences.n; i++)
        n += (double)(s->scores.sequences.items[i].n_tokens - 1);
    return n;
}

void cli_score_report_beginning(const struct cli_scoring *s)
{
    fprintf(stderr,
            "assay: %zu request%s, %zu token%s to score, sequences of at most %zu, batches of %zu "
            "tokens\n",
            s->requests.n, status_plural(s->requests.n), s->scores.n_scored,
            status_plural(s->scores.n_scored), s->scores.longest, s->batch_tokens);
    if (s->scores.n_truncated)
        fprintf(stderr,
                "assay: note: %zu request%s longer than -c %zu, of which the first tokens are left "
                "out\n",
                s->scores.n_truncated, status_plural(s->scores.n_truncated), s->options.n_ctx);
    if (s->scores.sequences.n)
        cli_print_memory(&s->job.memory, 1);
}

void cli_score_report_end(const struct cli_scoring *s)
{
    double n_alone = n_inputs_alone(s);
    fprintf(stderr,
            "assay: %zu of %zu request%s; %zu token%s evaluated in %.1f s, %.1f tokens/s; sharing "
            "beginnings saves %.1f %%\n",
            s->n_written, s->requests.n, status_plural(s->requests.n), s->job.stats.n_inputs,
            status_plural(s->job.stats.n_inputs), s->job.stats.seconds,
            s->job.stats.seconds > 0 ? (double)s->job.stats.n_inputs / s->job.stats.seconds : 0,
            n_alone > 0 && s->n_written == s->requests.n
                ? 100 * (1 - (double)s->job.stats.n_inputs / n_alone)
                : 0);
}

static void add_result(struct base_json *json, const struct cli_scoring *s)
{
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

static void add_settings(struct base_json *json, const struct cli_scoring *s)
{
    cJSON *o = base_json_object(json, json->root, "settings");
    base_json_uint(json, o, "n_ctx", s->options.n_ctx);
    base_json_flag(json, o, "bos", s->options.bos);
    base_json_flag(json, o, "parse_special", s->options.parse_special);
    cli_json_add_model_settings(json, o, &s->settings->load);
    cli_json_add_arithmetic(json, o, &s->settings->machine, s->job.backend);
}

/* What is evaluated and how. */
static void add_subject(struct base_json *json, const struct cli_scoring *s)
{
    add_settings(json, s);
    cli_json_add_model(json, json->root, "model", &s->model);
    cJSON *text = cli_json_add_input(json, &s->text);
    base_json_uint(json, text, "n_requests", s->requests.n);
}

enum status cli_scoring_open_journal(struct cli_scoring *s, struct status_why *why)
{
    struct base_json json;
    cli_state_begin(&json, "score");
    add_subject(&json, s);
    enum status status = cli_state_open(&s->journal, s->settings->state_file, &json, why);
    if (status == STATUS_OK)
        status = cli_state_resume_requests(s->journal, &s->scores, why);
    if (status == STATUS_OK && s->journal)
        s->n_resumed = (size_t)eval_journal_n(s->journal);
    return status;
}

enum status cli_score_write_json(const struct cli_scoring *s, struct base_file *file,
                                 struct status_why *why)
{
    struct base_json json;
    base_json_begin_document(&json, "assay-score");
    add_result(&json, s);
    add_subject(&json, s);
    struct cli_text_settings from = {.text_file = s->request_file};
    cJSON *run = cli_json_add_run(&json, &s->job, &from, s->journal);
    base_json_text(&json, run, "model_file", s->model.path);
    return cli_json_end_document(&json, file, why);
}

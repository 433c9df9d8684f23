/* What assay score writes: a line for each request, and a document about the run. */
#include <math.h>
#include <stdio.h>

#include "cli/output/json_parts.h"
#include "cli/score/score.h"

void cli_score_write_line(struct cli_evaluation *e, size_t i)
{
    struct cli_score *s = (struct cli_score *)e;
    struct base_file *out = e->outputs[0].file;
    const struct eval_request *request = &s->requests.items[i];
    const struct eval_request_score *score = &s->scores.items[i];
    double log_prob = eval_request_log_prob(score);
    base_file_write(out, "{", 1);
    base_file_write(out, request->handed.data, request->handed.n_bytes);
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

/** Tokens that the sequences evaluate, each by itself. */
static double n_inputs_alone(const struct cli_score *s)
{
    double n = 0;
    for (size_t i = 0; i < s->scores.sequences.n; i++)
        n += (double)(s->scores.sequences.items[i].n_tokens - 1);
    return n;
}

void cli_score_print_beginning(const struct cli_evaluation *e)
{
    const struct cli_score *s = (const struct cli_score *)e;
    fprintf(stderr,
            "assay: %zu request%s, %zu token%s to score, sequences of at most %zu, batches of %zu "
            "tokens\n",
            s->requests.n, status_plural(s->requests.n), s->scores.n_scored,
            status_plural(s->scores.n_scored), s->scores.longest, e->units->most.n_tokens);
    if (s->scores.n_truncated)
        fprintf(stderr,
                "assay: note: %zu request%s longer than -c %zu, of which the first tokens are left "
                "out\n",
                s->scores.n_truncated, status_plural(s->scores.n_truncated), s->options.n_ctx);
}

void cli_score_print_end(struct cli_evaluation *e)
{
    const struct cli_score *s = (const struct cli_score *)e;
    double n_alone = n_inputs_alone(s);
    fprintf(stderr,
            "assay: %zu of %zu request%s; %zu token%s evaluated in %.1f s, %.1f tokens/s; sharing "
            "beginnings saves %.1f %%\n",
            s->n_written, s->requests.n, status_plural(s->requests.n), e->stats.n_inputs,
            status_plural(e->stats.n_inputs), e->stats.seconds,
            e->stats.seconds > 0 ? (double)e->stats.n_inputs / e->stats.seconds : 0,
            n_alone > 0 && s->n_written == s->requests.n
                ? 100 * (1 - (double)e->stats.n_inputs / n_alone)
                : 0);
}

void cli_score_add_result(const struct cli_evaluation *e, struct base_json *json)
{
    const struct cli_score *s = (const struct cli_score *)e;
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

static void add_settings(struct base_json *json, const struct cli_score *s)
{
    cJSON *o = base_json_object(json, json->root, "settings");
    base_json_uint(json, o, "n_ctx", s->options.n_ctx);
    base_json_flag(json, o, "bos", s->options.bos);
    base_json_flag(json, o, "parse_special", s->options.parse_special);
    cli_json_add_model_settings(json, o, &s->settings->load);
    cli_json_add_arithmetic(json, o, &s->e);
}

void cli_score_describe(const struct cli_evaluation *e, struct base_json *json, bool for_journal)
{
    (void)for_journal;
    const struct cli_score *s = (const struct cli_score *)e;
    add_settings(json, s);
    cli_json_add_model(json, json->root, "model", &s->model);
    cJSON *text = cli_json_add_input(json, &s->text);
    base_json_uint(json, text, "n_requests", s->requests.n);
}

void cli_score_add_files(const struct cli_evaluation *e, struct base_json *json, cJSON *run)
{
    base_json_text(json, run, "model_file", ((const struct cli_score *)e)->model.path);
}

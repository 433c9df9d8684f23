/* POST /v1/score: the requests of a harness, as assay score takes and scores them. */
#include "cli/score/score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/json_parts.h"
#include "clients/serve/serve.h"

struct serve_score_request {
    char *lines; /* what `requests` points into */
    struct eval_requests requests;
    struct cli_score_settings settings;
};

static void free_request(void *request)
{
    struct serve_score_request *r = request;
    eval_requests_free(&r->requests);
    free(r->lines);
    free(r);
}

/** A reply has scores alone, in the order of the lines: there is nothing to hand through. */
static enum status check_members(const struct eval_requests *requests, struct status_why *why)
{
    for (size_t i = 0; i < requests->n; i++)
        if (requests->items[i].handed.n_bytes)
            return status_fail(why, STATUS_USAGE,
                               "line %zu: expected no members but \"context\" and "
                               "\"continuation\", or \"text\"",
                               requests->items[i].line);
    return STATUS_OK;
}

static enum status read_lines(struct serve_score_request *r, const char *text,
                              struct status_why *why)
{
    r->lines = strdup(text);
    if (!r->lines)
        return status_fail(why, STATUS_MEMORY, "no memory for a request");
    enum status status = eval_requests_read(&r->requests, r->lines, strlen(r->lines), why);
    return status ? status : check_members(&r->requests, why);
}

static void fill(void *request, const struct serve *serve, struct base_field body)
{
    (void)serve;
    struct serve_score_request *r = request;
    struct cli_score_settings *s = &r->settings;
    struct status_why why;
    serve_body_only(body, "text ctx_size bos parse_special wait stream");
    s->n_ctx = (int64_t)base_field_uint_or(body, "ctx_size", INT32_MAX, (uint64_t)s->n_ctx);
    s->bos = base_field_word_or(body, "bos", CLI_SCORE_BOS, s->bos);
    s->parse_special = base_field_flag_or(body, "parse_special", s->parse_special);
    const char *text = base_field_text_or(body, "text", NULL);
    if (!text)
        base_field_fail(body, STATUS_USAGE, "text: missing, lines as assay score reads them");
    if (body.reader->status)
        return;
    enum status status = read_lines(r, text, &why);
    if (status)
        base_field_fail(body, status, "text: %s", why.text);
}

static enum status add_scores(struct base_json *json, const struct serve_score_request *r,
                              const struct eval_request_scores *scores, struct status_why *why)
{
    cJSON *list = base_json_list(json, json->root, "scores");
    for (size_t i = 0; i < scores->n; i++) {
        const struct eval_request_score *score = &scores->items[i];
        double log_prob = eval_request_log_prob(score);
        if (!isfinite(log_prob))
            return status_fail(why, STATUS_NONFINITE, "text: line %zu: the score is not finite",
                               r->requests.items[i].line);
        cJSON *o = base_json_object(json, list, NULL);
        base_json_real(json, o, "logprob", log_prob);
        base_json_uint(json, o, "tokens", score->n_scored);
        base_json_flag(json, o, "is_greedy", score->greedy);
        if (score->n_truncated)
            base_json_uint(json, o, "truncated", score->n_truncated);
    }
    return STATUS_OK;
}

static enum status write_reply(char **out, const struct serve_score_request *r,
                               const struct eval_request_options *options,
                               const struct eval_request_scores *scores,
                               const struct cli_model *model, struct status_why *why)
{
    struct base_json json;
    base_json_begin(&json);
    cli_json_add_model(&json, json.root, "model", model, true);
    cJSON *settings = base_json_object(&json, json.root, "settings");
    cli_score_add_settings(&json, settings, options);
    enum status status = add_scores(&json, r, scores, why);
    if (!status)
        status = base_json_text_of(&json, out, why);
    base_json_free(&json);
    return status;
}

static enum status run(void *server, struct serve_job *job, struct status_why *why)
{
    struct serve *serve = server;
    const struct serve_score_request *r = job->input;
    const struct cli_model *model = &serve->resident.models[0];
    struct eval_request_options options;
    struct eval_request_scores scores = {0};
    enum status status = cli_score_options(&options, &r->settings, model->model, why);
    if (!status) {
        status = eval_request_scores_make(&scores, &r->requests, &options,
                                          model_tokenizer(model->model), why);
        if (status)
            status_context(why, "text");
    }
    if (!status)
        status = serve_score(serve, job, &scores, why);
    if (!status)
        status = write_reply(&job->result, r, &options, &scores, model, why);
    eval_request_scores_free(&scores);
    return status;
}

static size_t n_tokens(const void *input)
{
    return strlen(((const struct serve_score_request *)input)->lines);
}

/** A line has its tokens, its score, and an object in the reply. */
static size_t n_bytes(const void *request)
{
    enum { OF_LINE = 1024, OF_BYTE = 16 };
    const struct serve_score_request *r = request;
    return r->requests.n * OF_LINE + strlen(r->lines) * OF_BYTE;
}

const struct serve_post serve_scoring = {{"score", run, free_request, .n_tokens = n_tokens},
                                         sizeof(struct serve_score_request),
                                         fill,
                                         .waits = true,
                                         .n_bytes = n_bytes};

/* POST /v1/completions: the scores of prompts, and at most the one token after each. */
#include "clients/serve/requests/completions.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/score/score.h"
#include "clients/serve/requests/tokens.h"
#include "clients/serve/serve.h"
#include "eval/run.h"
#include "kernels/kernels.h"

enum { MAX_PROMPTS = 4096, MAX_TOKENS = 131072, BATCH_TOKENS = 2048 };

/** What is not done: a value other than this one is refused, not ignored. */
static const struct {
    const char *member;
    double value;
} fixed[] = {
    {"n", 1},     {"best_of", 1},          {"top_p", 1},
    {"top_k", 1}, {"presence_penalty", 0}, {"frequency_penalty", 0},
};
static const char members[] =
    "model prompt max_tokens echo logprobs temperature seed stop user stream n best_of top_p top_k "
    "presence_penalty frequency_penalty bos parse_special";

static void check_fixed(struct base_field body)
{
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        const cJSON *item = base_field_find(body, fixed[i].member).json;
        if (item && (!cJSON_IsNumber(item) || item->valuedouble != fixed[i].value))
            base_field_fail(body, STATUS_USAGE, "%s: expected %g or none", fixed[i].member,
                            fixed[i].value);
    }
}

/** One token at most, and that one the likeliest. */
static void check_generation(struct serve_completion *c, struct base_field body)
{
    const cJSON *temperature = base_field_get(body, "temperature").json;
    uint64_t n = base_field_uint_or(body, "max_tokens", INT32_MAX, UINT64_MAX);
    bool stream = base_field_flag_or(body, "stream", false);
    c->next = n == 1;
    if (n != 0 && n != 1)
        base_field_fail(body, STATUS_USAGE,
                        "max_tokens: expected 0 or 1: assay scores texts, it does not write them");
    if (c->next && !(cJSON_IsNumber(temperature) && temperature->valuedouble == 0))
        base_field_fail(body, STATUS_USAGE,
                        "temperature: expected 0 with max_tokens 1: the likeliest token is given, "
                        "none is drawn");
    if (stream)
        base_field_fail(body, STATUS_USAGE, "stream: expected false");
}

/** `logprobs`: a number of likeliest tokens, or a switch. */
static void read_logprobs(struct serve_completion *c, struct base_field body)
{
    const cJSON *item = base_field_find(body, "logprobs").json;
    c->logprobs = item && !cJSON_IsFalse(item);
    c->top = cJSON_IsBool(item) ? 0 : (size_t)base_field_uint_or(body, "logprobs", KERN_TOP_MAX, 0);
}

/** A string, or a list of ids. */
static void add_prompt(struct serve_completion *c, struct base_field item)
{
    struct serve_prompt *prompt = &c->prompts[c->n++];
    if (cJSON_IsArray(item.json)) {
        serve_body_ids(&prompt->tokens, item);
        return;
    }
    prompt->text = strdup(base_field_text(item, ""));
    if (!prompt->text)
        base_field_fail(item, STATUS_MEMORY, "is a text that there is no memory for");
}

/** A string, a list of ids, or a list of either. */
static void read_prompts(struct serve_completion *c, struct base_field body)
{
    struct base_field prompt = base_field_get(body, "prompt"), item = {0};
    struct status_why why;
    bool is_list = cJSON_IsArray(prompt.json);
    bool several = is_list && !cJSON_IsNumber(prompt.json->child);
    size_t n = several ? base_field_count(prompt) : 1;
    if (n < 1 || n > MAX_PROMPTS || !(cJSON_IsString(prompt.json) || is_list))
        base_field_fail(body, STATUS_USAGE,
                        "prompt: expected a string, a list of token ids, or a list of at most %d "
                        "of either",
                        MAX_PROMPTS);
    if (body.reader->status ||
        base_json_keep(body.reader, base_array_new(c->prompts, n, "prompts", &why), &why))
        return;
    if (!several)
        add_prompt(c, prompt);
    while (several && !body.reader->status && base_field_next(prompt, &item))
        add_prompt(c, item);
}

static void fill(void *input, const struct serve *serve, struct base_field body)
{
    (void)serve;
    struct serve_completion *c = input;
    serve_body_only(body, members);
    (void)base_field_text_or(body, "model", NULL); /* the names are ours to say */
    c->echo = base_field_flag_or(body, "echo", false);
    c->parse_special = base_field_flag_or(body, "parse_special", false);
    c->bos = base_field_word_or(body, "bos", CLI_SCORE_BOS, 0);
    check_fixed(body);
    check_generation(c, body);
    read_logprobs(c, body);
    read_prompts(c, body);
}

static void free_completion(void *completion)
{
    struct serve_completion *c = completion;
    for (size_t i = 0; i < c->n; i++) {
        free(c->prompts[i].text);
        free(c->prompts[i].tokens.ids);
    }
    free(c->prompts);
    free(c);
}

/* Evaluating it. */

/** Whether BOS stands in front of a text that does not begin with it. */
static bool wants_bos(const struct serve_completion *c, const struct serve_prompt *prompt,
                      const struct model_tokenizer *tokenizer)
{
    enum { AUTO, ALWAYS, NEVER };
    int32_t bos = model_token_bos(tokenizer);
    bool has = prompt->tokens.n && prompt->tokens.ids[0] == bos;
    return c->bos == ALWAYS ||
           (c->bos == AUTO && prompt->text && !has && model_adds_bos(tokenizer));
}

static enum status put_in_front(struct model_tokens *tokens, int32_t id, struct status_why *why)
{
    return id < 0 ? status_fail(why, STATUS_USAGE, "bos: the vocabulary has none")
                  : serve_tokens_put_in_front(tokens, id, why);
}

static enum status make_tokens(struct serve_completion *c, struct serve_prompt *prompt,
                               const struct model *model, struct status_why *why)
{
    const struct model_tokenizer *tokenizer = model_tokenizer(model);
    struct model_tokens *tokens = &prompt->tokens;
    enum status status = STATUS_OK;
    if (prompt->text)
        status = model_tokenize(tokenizer, prompt->text, strlen(prompt->text), c->parse_special,
                                tokens, why);
    prompt->n_front = !status && wants_bos(c, prompt, tokenizer);
    if (prompt->n_front)
        status = put_in_front(tokens, model_token_bos(tokenizer), why);
    size_t trained = model_hparams(model)->n_ctx_train;
    if (!status && tokens->n == 0)
        status = status_fail(why, STATUS_USAGE, "it has no tokens");
    if (!status && trained && tokens->n > trained)
        status =
            status_fail(why, STATUS_USAGE, "it has %zu tokens, but the model was trained on %zu",
                        tokens->n, trained);
    size_t n_vocab = model_hparams(model)->n_vocab;
    for (size_t i = 0; i < tokens->n && !status; i++)
        if ((size_t)tokens->ids[i] >= n_vocab)
            status = status_fail(why, STATUS_USAGE, "its token %zu is %d, expected ids below %zu",
                                 i, tokens->ids[i], n_vocab);
    return status;
}

static enum status tokenize(struct serve_completion *c, const struct model *model,
                            struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < c->n && !status; i++) {
        status = make_tokens(c, &c->prompts[i], model, why);
        if (status)
            status_context(why, "prompt %zu", i);
        c->n_tokens += c->prompts[i].tokens.n;
        if (!status && c->n_tokens > MAX_TOKENS)
            status = status_fail(why, STATUS_USAGE,
                                 "prompt: more than %d tokens; send fewer at a time", MAX_TOKENS);
    }
    return status;
}

enum status serve_score(struct serve *serve, struct serve_job *job,
                        struct eval_request_scores *scores, struct status_why *why)
{
    const struct serve_resident *resident = &serve->resident;
    struct serve_turn turn;
    serve_turn_begin(&turn, resident, serve->jobs, job);
    const struct eval_models models = {.model = resident->models[0].model,
                                       .backends = turn.backends.items,
                                       .n_backends = turn.backends.n,
                                       .crew = turn.with};
    const struct eval_run_options options = {.progress = serve_turn_progress, .user = &turn};
    struct eval_units *units = &scores->sequences.units;
    if (!scores->sequences.n)
        return STATUS_OK;
    int64_t n_batch = serve->settings->evaluate.machine.n_batch;
    enum status status =
        eval_run_prepare(units, &models, n_batch ? (size_t)n_batch : BATCH_TOKENS, why);
    if (!status)
        status = eval_run(units, &models, &options, NULL, why);
    if (!status)
        status = eval_models_check_unchanged(&models, why);
    return status ? status : serve_resident_check(resident, why);
}

static enum status run(void *server, struct serve_job *job, struct status_why *why)
{
    struct serve *serve = server;
    struct serve_completion *c = job->input;
    struct eval_request_scores scores = {0};
    enum status status = tokenize(c, serve->resident.models[0].model, why);
    struct model_tokens *prompts = NULL;
    if (!status)
        status = base_array_new(prompts, c->n, "prompts", why);
    for (size_t i = 0; i < c->n && !status; i++)
        prompts[i] = c->prompts[i].tokens;
    if (!status)
        status = eval_prompt_scores_make(&scores, prompts, c->n, c->next,
                                         serve_completion_n_likeliest(c), why);
    free(prompts);
    if (!status)
        status = serve_score(serve, job, &scores, why);
    if (!status)
        status = serve_completion_write(&job->result, c, &scores, &serve->resident.models[0], why);
    eval_request_scores_free(&scores);
    return status;
}

/** A byte of a text is a token at most. */
static size_t n_tokens(const void *input)
{
    const struct serve_completion *c = input;
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        n += 1 + (c->prompts[i].text ? strlen(c->prompts[i].text) : c->prompts[i].tokens.n);
    return n;
}

const struct serve_post serve_completing = {
    {"completions", run, free_completion, .n_tokens = n_tokens},
    sizeof(struct serve_completion),
    fill};

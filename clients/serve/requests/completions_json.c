#include <math.h>
#include <string.h>
#include <time.h>

#include "base/arithmetic.h"
#include "base/buffer.h"
#include "base/json/build.h"
#include "base/text/printable.h"
#include "base/text/utf8.h"
#include "clients/serve/requests/completions.h"

/** The reply that is being written. */
struct writer {
    struct base_json json;
    const struct serve_completion *c;
    const struct eval_request_scores *scores;
    const struct model_tokenizer *tokenizer;
    struct base_buffer text, token;
    size_t n_characters; /* of the text */
    cJSON *tokens, *token_logprobs, *top_logprobs, *text_offset;
};

/** The bytes of a token into w->token, as UTF-8. */
static const char *spell(struct writer *w, int32_t id)
{
    size_t n = model_token_bytes(w->tokenizer, id, NULL, 0);
    w->token.n = 0;
    if (!base_buffer_reserve(&w->token, 4 * n)) {
        w->json.failed = true;
        return "";
    }
    char *bytes = w->token.data + 3 * n;
    model_token_bytes(w->tokenizer, id, bytes, n);
    w->token.n = n;
    return bytes;
}

static void append(struct writer *w, const char *bytes, size_t n)
{
    base_buffer_add(&w->text, bytes, n);
    w->json.failed |= w->text.failed;
    for (size_t i = 0; i < n; i++)
        w->n_characters += ((unsigned char)bytes[i] & 0xc0) != 0x80;
}

/**
 * {"text of a likely token": its log-probability, ...}, the likeliest first. Of tokens with the
 * same text, as bytes that are no UTF-8 have it, an object can have only one: the likeliest.
 */
static void add_tops(struct writer *w, const struct kern_top *tops)
{
    cJSON *o = base_json_object(&w->json, w->top_logprobs, NULL);
    for (size_t i = 0; i < w->c->top && tops[i].token >= 0; i++) {
        const char *bytes = spell(w, tops[i].token);
        char *text = w->token.data;
        if (w->json.failed)
            return;
        text[base_utf8_repair(bytes, w->token.n, text)] = '\0'; /* there is room for it in front */
        if (!cJSON_GetObjectItemCaseSensitive(o, text))
            base_json_real(&w->json, o, text, tops[i].log_prob);
    }
}

/** A token, which begins where the text ends so far. tops NULL: nothing predicts it. */
static void list_token(struct writer *w, int32_t id, double log_prob, const struct kern_top *tops)
{
    if (!w->c->logprobs || w->json.failed)
        return;
    const char *bytes = spell(w, id);
    base_json_bytes(&w->json, w->tokens, NULL, bytes, w->token.n);
    base_json_real(&w->json, w->token_logprobs, NULL, log_prob);
    base_json_uint(&w->json, w->text_offset, NULL, w->n_characters);
    if (w->c->top && tops)
        add_tops(w, tops);
    else if (w->c->top)
        base_json_text(&w->json, w->top_logprobs, NULL, NULL);
}

/** The prompt's own tokens: of a text that was given the parts are the text's. */
static void add_prompt(struct writer *w, const struct serve_prompt *prompt,
                       const struct eval_request_score *s)
{
    size_t n_likeliest = serve_completion_n_likeliest(w->c);
    const char *left = prompt->text, *end = left ? left + strlen(left) : NULL;
    for (size_t k = prompt->n_front; k < prompt->tokens.n && !w->json.failed; k++) {
        int32_t id = prompt->tokens.ids[k];
        list_token(w, id, k ? s->log_probs[k - 1] : (double)NAN,
                   k ? &s->likeliest[(k - 1) * n_likeliest] : NULL);
        if (left) {
            size_t n_left = (size_t)(end - left);
            size_t n = base_min(model_token_span(w->tokenizer, id, left, n_left), n_left);
            append(w, left, n);
            left += n;
        } else {
            const char *bytes = spell(w, id);
            append(w, bytes, w->token.n);
        }
    }
    if (left)
        append(w, left, (size_t)(end - left));
}

static void add_choice(struct writer *w, cJSON *choices, size_t i)
{
    const struct serve_completion *c = w->c;
    const struct eval_request_score *s = &w->scores->items[i];
    struct base_json *json = &w->json;
    cJSON *o = base_json_object(json, choices, NULL);
    base_json_uint(json, o, "index", i);
    if (c->logprobs) {
        cJSON *lists = base_json_object(json, o, "logprobs");
        w->tokens = base_json_list(json, lists, "tokens");
        w->token_logprobs = base_json_list(json, lists, "token_logprobs");
        w->text_offset = base_json_list(json, lists, "text_offset");
        w->top_logprobs = c->top ? base_json_list(json, lists, "top_logprobs") : NULL;
    } else {
        base_json_text(json, o, "logprobs", NULL);
    }
    w->text.n = w->n_characters = 0;
    if (c->echo)
        add_prompt(w, &c->prompts[i], s);
    if (c->next) {
        const struct kern_top *next =
            &s->likeliest[(s->n_scored - 1) * serve_completion_n_likeliest(c)];
        list_token(w, next->token, next->log_prob, next);
        const char *bytes = spell(w, next->token);
        append(w, bytes, w->token.n);
    }
    base_json_bytes(json, o, "text", w->text.data ? w->text.data : "", w->text.n);
    base_json_text(json, o, "finish_reason", "length");
}

static enum status check_finite(const struct serve_completion *c,
                                const struct eval_request_scores *scores, struct status_why *why)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct eval_request_score *s = &scores->items[i];
        for (size_t k = 0; k < s->n_scored; k++)
            if (!isfinite(s->log_probs[k]) ||
                s->likeliest[k * serve_completion_n_likeliest(c)].token < 0)
                return status_fail(why, STATUS_NONFINITE,
                                   "prompt %zu: the score of its token %zu is not finite", i,
                                   k + 1);
    }
    return STATUS_OK;
}

enum status serve_completion_write(char **out, const struct serve_completion *c,
                                   const struct eval_request_scores *scores,
                                   const struct cli_model *model, struct status_why *why)
{
    struct writer w = {.c = c, .scores = scores, .tokenizer = model_tokenizer(model->model)};
    struct base_json *json = &w.json;
    size_t n_next = c->next ? c->n : 0;
    enum status status = check_finite(c, scores, why);
    if (status)
        return status;
    base_json_begin(json);
    base_json_text(json, json->root, "id", "cmpl");
    base_json_text(json, json->root, "object", "text_completion");
    base_json_int(json, json->root, "created", (int64_t)time(NULL));
    base_json_text(json, json->root, "model", base_file_name(model->path));
    base_json_text(json, json->root, "model_id", model->id);
    cJSON *choices = base_json_list(json, json->root, "choices");
    for (size_t i = 0; i < c->n; i++)
        add_choice(&w, choices, i);
    cJSON *usage = base_json_object(json, json->root, "usage");
    base_json_uint(json, usage, "prompt_tokens", c->n_tokens);
    base_json_uint(json, usage, "completion_tokens", n_next);
    base_json_uint(json, usage, "total_tokens", c->n_tokens + n_next);
    status = base_json_text_of(json, out, why);
    base_json_free(json);
    base_buffer_free(&w.text);
    base_buffer_free(&w.token);
    return status;
}

#include "clients/probe/ask/records.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json/lines.h"
#include "base/json/read.h"
#include "clients/probe/api/read.h"

enum { MOST_LISTS = 4096 };

/** The tokens of a prompt as a request or a response has it. */
static enum status tokens_of(struct model_tokens *out, const struct probe_records *r,
                             const cJSON *request, const struct probe_answer *a,
                             struct status_why *why)
{
    const cJSON *prompt = base_json_member(request, "prompt"), *id;
    enum status status = STATUS_OK;
    if (!prompt)
        prompt = base_json_member(request, "input_ids");
    if (!prompt)
        prompt = base_json_member(request, "text");
    if (cJSON_IsString(prompt)) {
        if (model_adds_bos(r->tokenizer))
            status = model_tokens_add(out, model_token_bos(r->tokenizer), why);
        return status ? status
                      : model_tokenize(r->tokenizer, prompt->valuestring,
                                       strlen(prompt->valuestring), false, out, why);
    }
    cJSON_ArrayForEach(id, prompt)
    {
        if (!status)
            status = model_tokens_add(out, probe_read_id(id), why);
    }
    for (size_t i = 0; !prompt && i < a->prompt.n && !status; i++)
        status = model_tokens_add(out, a->prompt.ids[i], why);
    return status;
}

/** The window that begins with these tokens, or which they continue; else a new one. */
static enum status window_of(struct probe_records *r, struct model_tokens *tokens, size_t *window,
                             struct status_why *why)
{
    for (size_t i = 0; i < r->n; i++) {
        struct probe_window *w = &r->windows[i];
        size_t common = model_tokens_common(&w->tokens, tokens);
        *window = i;
        if (common == tokens->n)
            return STATUS_OK;
        if (common == w->tokens.n) {
            struct model_tokens shorter = w->tokens;
            w->tokens = *tokens;
            w->n_prompt = tokens->n;
            *tokens = shorter;
            return STATUS_OK;
        }
    }
    if (base_array_reserve(r->windows, r->capacity, r->n + 1, "prompts", why))
        return STATUS_MEMORY;
    *window = r->n;
    r->windows[r->n++] = (struct probe_window){
        .tokens = *tokens,
        .n_prompt = tokens->n,
        .has_bos = tokens->ids[0] == model_token_bos(r->tokenizer),
    };
    *tokens = (struct model_tokens){0};
    return STATUS_OK;
}

static enum status take(struct probe_records *r, const cJSON *request, const struct probe_answer *a,
                        size_t number, struct status_why *why)
{
    struct model_tokens tokens = {0};
    size_t n_vocab = model_n_vocab(r->tokenizer);
    struct probe_asked asked = {.path = PROBE_RECORDED, .most = MOST_LISTS};
    enum status status = tokens_of(&tokens, r, request, a, why);
    asked.length = tokens.n;
    asked.ids = tokens.ids;
    if (!status && tokens.n == 0)
        status = status_fail(why, STATUS_FORMAT,
                             "line %zu: expected a prompt: request.prompt, request.input_ids or "
                             "prompt_token_ids",
                             number);
    for (size_t i = 0; i < tokens.n && !status; i++)
        if (tokens.ids[i] < 0 || (size_t)tokens.ids[i] >= n_vocab)
            status = status_fail(why, STATUS_FORMAT,
                                 "line %zu: token %zu of the prompt is none of the vocabulary's "
                                 "%zu ids",
                                 number, i, n_vocab);
    if (!status)
        status = window_of(r, &tokens, &asked.window, why);
    if (!status)
        status = probe_lists_add(&r->lists, a, &asked, r->names, why);
    free(tokens.ids);
    return status;
}

static enum status read_line(void *user, const struct base_json_line *line, const cJSON *object,
                             struct status_why *why)
{
    struct probe_records *r = user;
    if (line->number == 1 && base_json_member(object, "form"))
        return STATUS_OK; /* the first line of a file of --state */
    const cJSON *request = base_json_member(object, "request");
    const cJSON *response = base_json_member(object, "response");
    const cJSON *path = base_json_member(object, "path");
    if (cJSON_IsString(path) && !request)
        return STATUS_OK; /* a question about the server, not about a prompt */
    struct probe_answer answer;
    enum status status = probe_read_root(&answer, response ? response : object, why);
    if (status)
        status_context(why, "line %zu", line->number);
    if (!status && r->n_lines++ == 0)
        r->of_llama = answer.of_llama;
    if (!status)
        status = take(r, request, &answer, line->number, why);
    probe_answer_free(&answer);
    return status;
}

enum status probe_records_read(struct probe_records *out, char *bytes, size_t n_bytes,
                               const struct model_tokenizer *tokenizer,
                               const struct probe_names *names, struct status_why *why)
{
    *out = (struct probe_records){.tokenizer = tokenizer, .names = names};
    return base_json_lines_read(bytes, n_bytes, read_line, out, why);
}

void probe_records_free(struct probe_records *r)
{
    for (size_t i = 0; i < r->n; i++)
        probe_window_free(&r->windows[i]);
    free(r->windows);
    probe_lists_free(&r->lists);
    *r = (struct probe_records){.windows = NULL};
}

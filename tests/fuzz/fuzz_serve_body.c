/*
 * Bodies of HTTP requests: any bytes, as each of the requests that have one. What is refused says
 * why; what is not becomes a job, without a socket or a model.
 */
#include <stdlib.h>

#include "clients/serve/requests/completions.h"
#include "clients/serve/requests/tokens.h"
#include "clients/serve/serve.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tokenizer_input.h"

static void check(enum status status, const struct status_why *why, const void *made)
{
    require((status == STATUS_OK) == (made != NULL));
    require((status == STATUS_OK) == (why->text[0] == '\0'));
}

/** What a body becomes, for the request to look at; released by the caller. */
static void *input_of(const struct serve_post *post, cJSON *body, const char *base)
{
    struct status_why why = {""};
    void *input = NULL;
    const struct serve_settings settings = {
        .model = "model.gguf", .base = base, .text_file = "text"};
    const struct serve serve = {.settings = &settings};
    struct base_json_reader reader = serve_body_reader(body);
    enum status status = serve_post_parse(&input, post, &serve, base_json_root(&reader), &why);
    check(status, &why, input);
    return input;
}

static void try(const struct serve_post *post, cJSON *body, const char *base)
{
    void *input = input_of(post, body, base);
    if (input)
        post->job.free_input(input);
}

static void as_completion(cJSON *body)
{
    struct serve_completion *c = input_of(&serve_completing, body, NULL);
    if (!c)
        return;
    require(c->n > 0 && c->bos >= 0);
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->prompts[i].tokens.n; k++)
            require(!c->prompts[i].text && c->prompts[i].tokens.ids[k] >= 0);
    serve_completing.job.free_input(c);
}

static void as_text(cJSON *body)
{
    struct status_why why = {""};
    struct serve_text_request r;
    struct base_json_reader reader = serve_body_reader(body);
    serve_tokens_read_text(&r, base_json_root(&reader));
    enum status status = base_json_status(&reader, &why);
    require((status == STATUS_OK) == (why.text[0] == '\0'));
    require(status || (r.text && strlen(r.text) <= SERVE_TOKENS_MAX_TEXT));
    require(status || !(r.with_pieces && r.with_strings));
}

/** The ids, and the text that they stand for. */
static void as_ids(cJSON *body)
{
    struct status_why why = {""};
    struct model_tokens ids = {0};
    struct base_buffer text = {0};
    struct base_json_reader reader = serve_body_reader(body);
    serve_tokens_read_ids(&ids, base_json_root(&reader));
    enum status status = base_json_status(&reader, &why);
    for (size_t i = 0; i < ids.n; i++)
        require(ids.ids[i] >= 0);
    if (!status)
        status = serve_tokens_spell(&text, input_vocabulary(), &ids, &why);
    require((status == STATUS_OK) == (why.text[0] == '\0'));
    base_buffer_free(&text);
    free(ids.ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    char *bytes = fuzz_copy(data, n_bytes);
    struct status_why why = {""};
    cJSON *body = NULL;
    enum status status = serve_body_parse(&body, bytes, n_bytes, &why);
    check(status, &why, body);
    if (body) {
        struct base_json_reader reader = serve_body_reader(body);
        (void)serve_waiting_read(base_json_root(&reader));
        require((reader.status == STATUS_OK) == (reader.why.text[0] == '\0'));
        try(&serve_evaluating, body, NULL);
        try(&serve_evaluating, body, "no such base");
        try(&serve_adding, body, NULL);
        try(&serve_scoring, body, NULL);
        try(&serve_swapping, body, NULL);
        try(&serve_saving, body, NULL);
        try(&serve_templating, body, NULL);
        as_completion(body);
        as_text(body);
        as_ids(body);
        cJSON_Delete(body);
    }
    free(bytes);
    return 0;
}

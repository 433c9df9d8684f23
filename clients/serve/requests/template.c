/* POST /apply-template: a conversation as the text that the model's own chat template makes. */
#include <stdlib.h>
#include <string.h>

#include "base/json/parse.h"
#include "clients/serve/serve.h"
#include "model/chat/chat.h"

/** A conversation, and the JSON text that it was parsed from. */
struct conversation {
    cJSON *object;
    char *text;
};

static void free_conversation(void *input)
{
    struct conversation *c = input;
    cJSON_Delete(c->object);
    cJSON_free(c->text);
    free(c);
}

/** All members are names that the template sees; an answer is asked for unless told otherwise. */
static void fill(void *input, const struct serve *serve, struct base_field body)
{
    (void)serve;
    struct conversation *c = input;
    struct status_why why;
    if (!cJSON_IsArray(base_field_get(body, "messages").json)) {
        base_field_fail(body, STATUS_USAGE, "messages: expected a list of objects");
        return;
    }
    cJSON *object = cJSON_Duplicate(body.json, true);
    bool asks = !base_field_get(body, "add_generation_prompt").json;
    bool failed = !object || (asks && !cJSON_AddTrueToObject(object, "add_generation_prompt"));
    c->text = failed ? NULL : cJSON_PrintUnformatted(object);
    cJSON_Delete(object);
    if (!c->text)
        base_field_fail(body, STATUS_MEMORY, "no memory for a conversation");
    else
        base_json_keep(body.reader,
                       base_json_parse(&c->object, c->text, strlen(c->text), NULL, &why), &why);
}

static enum status render(const struct conversation *c, const struct model_tokenizer *tokenizer,
                          struct model_chat_text *out, struct status_why *why)
{
    struct base_string text;
    struct model_chat *chat = NULL;
    enum status status = model_tokenizer_chat_template(tokenizer, &text, why);
    if (!status && !text.n_bytes)
        return status_fail(why, STATUS_USAGE, "the model's file has no chat template");
    if (!status)
        status = model_chat_open(&chat, text, tokenizer, &jinja_default_limits, why);
    if (!status)
        status = model_chat_render(chat, c->object, (struct base_string){c->text, strlen(c->text)},
                                   MODEL_CHAT_ALL, out, why);
    model_chat_close(chat);
    return status;
}

static enum status run(void *server, struct serve_job *job, struct status_why *why)
{
    const struct serve *serve = server;
    struct model_chat_text text = {0};
    enum status status =
        render(job->input, model_tokenizer(serve->resident.models[0].model), &text, why);
    if (status)
        return status;
    struct base_json json;
    base_json_begin(&json);
    base_json_bytes(&json, json.root, "prompt", text.text, text.n_bytes);
    model_chat_text_free(&text);
    status = base_json_text_of(&json, &job->result, why);
    base_json_free(&json);
    return status;
}

static size_t n_tokens(const void *input)
{
    (void)input;
    return 0;
}

/** The text, what it is parsed to, and what the template sees of it. */
static size_t n_bytes(const void *input)
{
    const struct conversation *c = input;
    return 3 * base_json_memory(c->text, strlen(c->text));
}

const struct serve_post serve_templating = {
    {"apply-template", run, free_conversation, .n_tokens = n_tokens},
    sizeof(struct conversation),
    fill,
    .n_bytes = n_bytes};

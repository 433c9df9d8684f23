/* GET /v1/models and /tokenizer_info: what clients of OpenAI's API and of vLLM ask beforehand. */
#include <string.h>

#include "base/text/printable.h"
#include "clients/serve/serve.h"

const struct model *serve_hold_model(struct serve *serve, struct serve_http_reply *reply)
{
    pthread_rwlock_rdlock(&serve->holding);
    if (serve->model)
        return serve->model;
    pthread_rwlock_unlock(&serve->holding);
    serve_reply_busy(serve, reply);
    return NULL;
}

void serve_let_go_of_model(struct serve *serve)
{
    pthread_rwlock_unlock(&serve->holding);
}

void serve_get_models(struct serve *serve, const struct serve_http_request *request,
                      struct serve_http_reply *reply)
{
    (void)request;
    const struct model *model = serve_hold_model(serve, reply);
    if (!model)
        return;
    const char *name = base_file_name(serve->settings->model);
    struct base_json json;
    base_json_begin(&json);
    base_json_text(&json, json.root, "object", "list");
    cJSON *o = base_json_object(&json, base_json_list(&json, json.root, "data"), NULL);
    base_json_bytes(&json, o, "id", name, strlen(name));
    base_json_text(&json, o, "object", "model");
    base_json_int(&json, o, "created", (int64_t)serve->opened);
    base_json_text(&json, o, "owned_by", "assay");
    base_json_uint(&json, o, "max_model_len", model_hparams(model)->n_ctx_train);
    serve_let_go_of_model(serve);
    serve_reply_json(reply, 200, &json);
}

/** A special token as a text may have it; null where the vocabulary has none. */
static void add_token(struct base_json *json, const char *key,
                      const struct model_tokenizer *tokenizer, int32_t id)
{
    struct base_string text = {0};
    if (id >= 0)
        text = model_token_text(tokenizer, id);
    if (id < 0)
        base_json_text(json, json->root, key, NULL);
    else
        base_json_bytes(json, json->root, key, text.data, text.n_bytes);
}

void serve_get_tokenizer_info(struct serve *serve, const struct serve_http_request *request,
                              struct serve_http_reply *reply)
{
    (void)request;
    struct status_why why = {""};
    struct base_string text = {0};
    const struct model *model = serve_hold_model(serve, reply);
    if (!model)
        return;
    const struct model_tokenizer *tokenizer = model_tokenizer(model);
    struct base_json json;
    base_json_begin(&json);
    base_json_text(&json, json.root, "tokenizer_class", model_tokenizer_kind(tokenizer));
    add_token(&json, "bos_token", tokenizer, model_token_bos(tokenizer));
    add_token(&json, "eos_token", tokenizer, model_token_eos(tokenizer));
    add_token(&json, "unk_token", tokenizer, model_token_unknown(tokenizer));
    base_json_flag(&json, json.root, "add_bos_token", model_adds_bos(tokenizer));
    base_json_uint(&json, json.root, "vocab_size", model_n_vocab(tokenizer));
    base_json_uint(&json, json.root, "model_max_length", model_hparams(model)->n_ctx_train);
    enum status status = model_tokenizer_chat_template(tokenizer, &text, &why);
    if (text.n_bytes)
        base_json_bytes(&json, json.root, "chat_template", text.data, text.n_bytes);
    else
        base_json_text(&json, json.root, "chat_template", NULL);
    serve_let_go_of_model(serve);
    if (!status) {
        serve_reply_json(reply, 200, &json);
        return;
    }
    base_json_free(&json);
    serve_reply_failure(reply, status, &why);
}

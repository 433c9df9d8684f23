/*
 * POST /tokenize and /detokenize: texts and ids, in vLLM's form and in llama-server's. They are
 * answered beside the jobs: the tokenizer is never changed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/text/utf8.h"
#include "clients/serve/requests/tokens.h"
#include "clients/serve/serve.h"

void serve_tokens_read_text(struct serve_text_request *r, struct base_field body)
{
    serve_body_only(body, "model prompt add_special_tokens return_token_strs content add_special "
                          "with_pieces parse_special");
    (void)base_field_text_or(body, "model", NULL); /* the name is ours to say */
    const char *prompt = base_field_text_or(body, "prompt", NULL);
    const char *content = base_field_text_or(body, "content", NULL);
    if (!prompt == !content)
        base_field_fail(body, STATUS_USAGE,
                        "expected a text as prompt (as vLLM has it) or as content (as "
                        "llama-server has it)");
    /* Each as that server does unless told otherwise. */
    *r = (struct serve_text_request){
        .text = prompt ? prompt : content,
        .with_bos = base_field_flag_or(body, content ? "add_special" : "add_special_tokens",
                                       prompt != NULL),
        .with_pieces = content && base_field_flag_or(body, "with_pieces", false),
        .with_strings = !content && base_field_flag_or(body, "return_token_strs", false),
        .parse_special = base_field_flag_or(body, "parse_special", true),
    };
    const char *const others[] = {content ? "add_special_tokens" : "add_special",
                                  content ? "return_token_strs" : "with_pieces"};
    for (size_t i = 0; i < 2; i++)
        if (base_field_get(body, others[i]).json)
            base_field_fail(body, STATUS_USAGE, "%s: goes with %s only", others[i],
                            content ? "prompt" : "content");
    if (r->text && strlen(r->text) > SERVE_TOKENS_MAX_TEXT)
        base_field_fail(body, STATUS_USAGE, "%s: it has %zu bytes, expected at most %d",
                        content ? "content" : "prompt", strlen(r->text), SERVE_TOKENS_MAX_TEXT);
}

void serve_tokens_read_ids(struct model_tokens *out, struct base_field body)
{
    serve_body_only(body, "model tokens");
    (void)base_field_text_or(body, "model", NULL);
    serve_body_ids(out, base_field_list(body, "tokens"));
}

/* Replies. The lists may be long: they are written without a tree of values. */

/** The bytes of a token, after those that the buffer has. */
static void add_bytes(struct base_buffer *out, const struct model_tokenizer *tokenizer, int32_t id)
{
    size_t n = model_token_bytes(tokenizer, id, NULL, 0);
    if (!base_buffer_reserve(out, n))
        return;
    model_token_bytes(tokenizer, id, out->data + out->n, n);
    out->n += n;
    out->data[out->n] = '\0';
}

/** Bytes as a JSON string; what is no UTF-8 becomes U+FFFD. */
static void put_string(struct base_buffer *out, const char *bytes, size_t n)
{
    struct base_json json;
    base_json_begin(&json);
    base_json_bytes(&json, json.root, "s", bytes, n);
    char *text = json.failed ? NULL : cJSON_PrintUnformatted(json.root->child);
    base_json_free(&json);
    out->failed |= !text;
    if (text)
        base_buffer_add(out, text, strlen(text));
    cJSON_free(text);
}

/** As llama-server has it: a text, or a list of bytes that are not one. */
static void put_piece(struct base_buffer *out, const struct model_tokenizer *tokenizer, int32_t id)
{
    struct base_buffer piece = {0};
    add_bytes(&piece, tokenizer, id);
    out->failed |= piece.failed;
    base_buffer_format(out, "{\"id\":%d,\"piece\":", id);
    if (base_utf8_first_bad(piece.data ? piece.data : "", piece.n) == piece.n) {
        put_string(out, piece.data ? piece.data : "", piece.n);
    } else {
        for (size_t i = 0; i < piece.n; i++)
            base_buffer_format(out, "%c%u", i ? ',' : '[', (unsigned char)piece.data[i]);
        base_buffer_add(out, "]", 1);
    }
    base_buffer_add(out, "}", 1);
    base_buffer_free(&piece);
}

/** The tokens as the vocabulary has them. */
static void put_strings(struct base_buffer *out, const struct model_tokenizer *tokenizer,
                        const struct model_tokens *tokens)
{
    for (size_t i = 0; i < tokens->n; i++) {
        struct base_string text = model_token_text(tokenizer, tokens->ids[i]);
        base_buffer_add(out, i ? "," : "[", 1);
        put_string(out, text.data, text.n_bytes);
    }
    base_buffer_format(out, tokens->n ? "]" : "[]");
}

static void reply_buffer(struct serve_http_reply *reply, struct base_buffer *text)
{
    base_buffer_add(text, "\n", 1);
    size_t n = text->n;
    char *body = base_buffer_take(text);
    if (body)
        *reply = (struct serve_http_reply){.code = 200, .body = body, .n_body = n};
    else
        serve_reply_error(reply, 500, "memory", "no memory for the reply");
}

static void reply_tokens(struct serve_http_reply *reply, const struct serve_text_request *r,
                         const struct model *model, const struct model_tokens *tokens)
{
    const struct model_tokenizer *tokenizer = model_tokenizer(model);
    struct base_buffer text = {0};
    base_buffer_format(&text, "{\"count\":%zu,\"max_model_len\":%u,\"tokens\":[", tokens->n,
                       model_hparams(model)->n_ctx_train);
    for (size_t i = 0; i < tokens->n; i++) {
        base_buffer_format(&text, i ? "," : "");
        if (r->with_pieces)
            put_piece(&text, tokenizer, tokens->ids[i]);
        else
            base_buffer_format(&text, "%d", tokens->ids[i]);
    }
    base_buffer_format(&text, "],\"token_strs\":");
    if (r->with_strings)
        put_strings(&text, tokenizer, tokens);
    else
        base_buffer_format(&text, "null");
    base_buffer_format(&text, "}");
    reply_buffer(reply, &text);
}

/** What a text begins with, unless it brings that itself. */
static enum status tokenize(struct model_tokens *out, const struct serve_text_request *r,
                            const struct model_tokenizer *tokenizer, struct status_why *why)
{
    struct model_tokens text = {0};
    enum status status = r->with_bos ? model_begin_text(tokenizer, out, why) : STATUS_OK;
    if (!status)
        status = model_tokenize(tokenizer, r->text, strlen(r->text), r->parse_special, &text, why);
    if (model_tokens_common(out, &text) == out->n)
        out->n = 0;
    for (size_t i = 0; i < text.n && !status; i++)
        status = model_tokens_add(out, text.ids[i], why);
    free(text.ids);
    return status;
}

enum status serve_tokens_put_in_front(struct model_tokens *tokens, int32_t id,
                                      struct status_why *why)
{
    if (model_tokens_add(tokens, id, why))
        return STATUS_MEMORY;
    memmove(tokens->ids + 1, tokens->ids, (tokens->n - 1) * sizeof *tokens->ids);
    tokens->ids[0] = id;
    return STATUS_OK;
}

/** Whether a space stands in front of what is tokenised, at its beginning and after control tokens.
 */
static enum status puts_space(bool *out, const struct model_tokenizer *tokenizer,
                              struct status_why *why)
{
    struct model_tokens tokens = {0};
    char first = 0;
    enum status status = model_tokenize(tokenizer, "a", 1, false, &tokens, why);
    if (!status && tokens.n)
        model_token_bytes(tokenizer, tokens.ids[0], &first, 1);
    *out = first == ' ';
    free(tokens.ids);
    return status;
}

enum status serve_tokens_spell(struct base_buffer *out, const struct model_tokenizer *tokenizer,
                               const struct model_tokens *tokens, struct status_why *why)
{
    bool drops = false, at_start = true;
    enum status status = puts_space(&drops, tokenizer, why);
    for (size_t i = 0; i < tokens->n && !status; i++) {
        int32_t id = tokens->ids[i];
        if ((size_t)id >= model_n_vocab(tokenizer))
            return status_fail(why, STATUS_USAGE,
                               "tokens: number %zu is %d, expected ids below %zu", i, id,
                               model_n_vocab(tokenizer));
        enum model_token_type type = model_token_type(tokenizer, id);
        size_t before = out->n;
        add_bytes(out, tokenizer, id);
        if (drops && at_start && out->n > before && out->data[before] == ' ') {
            memmove(out->data + before, out->data + before + 1, out->n - before);
            out->n--;
        }
        at_start = type == MODEL_TOKEN_CONTROL || type == MODEL_TOKEN_USER_DEFINED;
        if (out->n > SERVE_TOKENS_MAX_SPELLED)
            return status_fail(why, STATUS_USAGE,
                               "tokens: their text has more than %d bytes; send fewer at a time",
                               SERVE_TOKENS_MAX_SPELLED);
    }
    return status ? status : base_buffer_check(out, "a text", why);
}

/** Memory of the tokens and the reply, where each byte is a token. */
static size_t memory_of(const struct serve_text_request *r)
{
    enum { AS_ID = 16, WITH_TEXT = 48 };
    return strlen(r->text) * (r->with_pieces || r->with_strings ? WITH_TEXT : AS_ID);
}

void serve_post_tokenize(struct serve *serve, const struct serve_http_request *request,
                         struct serve_http_reply *reply)
{
    struct status_why why = {""};
    struct serve_text_request r;
    struct model_tokens tokens = {0};
    size_t n_taken;
    cJSON *body = serve_body_read(&n_taken, request, reply);
    const struct model *model = body ? serve_hold_model(serve, reply) : NULL;
    if (model) {
        struct base_json_reader reader = serve_body_reader(body);
        serve_tokens_read_text(&r, base_json_root(&reader));
        enum status status = base_json_status(&reader, &why);
        bool fits = !status && serve_body_take(&n_taken, memory_of(&r), request, reply);
        if (fits)
            status = tokenize(&tokens, &r, model_tokenizer(model), &why);
        if (status)
            serve_reply_failure(reply, status, &why);
        else if (fits)
            reply_tokens(reply, &r, model, &tokens);
        serve_let_go_of_model(serve);
    }
    free(tokens.ids);
    cJSON_Delete(body);
    serve_budget_give(&serve->budget, n_taken);
}

void serve_post_detokenize(struct serve *serve, const struct serve_http_request *request,
                           struct serve_http_reply *reply)
{
    struct status_why why = {""};
    struct model_tokens tokens = {0};
    struct base_buffer text = {0}, out = {0};
    size_t n_taken;
    cJSON *body = serve_body_read(&n_taken, request, reply);
    const struct model *model = body ? serve_hold_model(serve, reply) : NULL;
    if (model) {
        struct base_json_reader reader = serve_body_reader(body);
        serve_tokens_read_ids(&tokens, base_json_root(&reader));
        enum status status = base_json_status(&reader, &why);
        if (!status)
            status = serve_tokens_spell(&text, model_tokenizer(model), &tokens, &why);
        serve_let_go_of_model(serve);
        static const char *const names[] = {"{\"prompt\":", ",\"content\":"};
        for (int i = 0; i < 2 && !status; i++) {
            base_buffer_format(&out, "%s", names[i]);
            put_string(&out, text.data ? text.data : "", text.n);
        }
        base_buffer_format(&out, "}");
        if (status)
            serve_reply_failure(reply, status, &why);
        else
            reply_buffer(reply, &out);
    }
    base_buffer_free(&out);
    base_buffer_free(&text);
    free(tokens.ids);
    cJSON_Delete(body);
    serve_budget_give(&serve->budget, n_taken);
}

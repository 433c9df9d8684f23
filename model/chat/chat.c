#include "model/chat/chat.h"

#include <stdlib.h>

#include "base/json/parse.h"
#include "model/chat/conversation.h"
#include "model/template/value/value_json.h"
#include "model/template/value/value_text.h"

/*
 * Which forms of a content the template takes: a text, a list of parts. Known by a message of the
 * user in either form: its text must be there, and the same text in both.
 */
static enum status probe(struct model_chat *chat, struct status_why *why)
{
    enum status status = STATUS_OK;
    static const char *const objects[] = {
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}",
        "{\"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": "
        "\"a\"}]}]}"};
    struct jinja_run runs[2] = {{0}};
    struct chat_rendering out[2];
    cJSON *parsed[2] = {NULL};
    bool takes[2] = {false};
    chat->takes_texts = chat->takes_lists = true; /* as they come */
    for (int i = 0; i < 2 && !status; i++) {
        struct status_why failure = {""};
        jinja_begin(&runs[i], &chat->limits, &failure);
        struct chat_conversation c = {.chat = chat, .r = &runs[i]};
        struct base_string text = {objects[i], strlen(objects[i])};
        const struct chat_view view = {.n = 1, .marks = CHAT_MARK_END, .only = 0};
        status = base_json_parse(&parsed[i], text.data, text.n_bytes, NULL, why);
        if (status)
            break;
        struct jinja_value object = jinja_of_json(&runs[i], parsed[i], text);
        model_chat_read(&c, &object);
        takes[i] = !runs[i].status && model_chat_view(&c, &view, &out[i], false) &&
                   out[i].marks[0] != SIZE_MAX;
        runs[i].why = NULL;
        if (runs[i].is_spent)
            status = status_fail(why, runs[i].status, "%s", failure.text);
    }
    chat->takes_texts = takes[0] || !takes[1];
    chat->takes_lists = takes[1] && (!takes[0] || jinja_same(out[0].text, out[1].text));
    for (int i = 0; i < 2; i++) {
        jinja_end(&runs[i]);
        cJSON_Delete(parsed[i]);
    }
    return status;
}

enum status model_chat_open(struct model_chat **out, struct base_string text,
                            const struct model_tokenizer *tokenizer,
                            const struct jinja_limits *limits, struct status_why *why)
{
    struct model_chat *chat = calloc(1, sizeof *chat);
    *out = NULL;
    if (!chat)
        return status_fail(why, STATUS_MEMORY, "out of memory");
    *chat = (struct model_chat){.tokenizer = tokenizer, .limits = *limits};
    enum status status = jinja_open(&chat->chat_template, text, limits, why);
    if (!status)
        status = probe(chat, why);
    if (status)
        model_chat_close(chat);
    else
        *out = chat;
    return status;
}

void model_chat_close(struct model_chat *chat)
{
    if (chat)
        jinja_close(chat->chat_template);
    free(chat);
}

static void copy_out(struct jinja_run *r, const struct chat_rendering *whole,
                     struct model_chat_text *out)
{
    out->text = malloc(whole->text.n_bytes + 1);
    out->spans = malloc((whole->n_spans + 1) * sizeof *out->spans);
    if (!out->text || !out->spans) {
        jinja_fail(r, STATUS_MEMORY, "out of memory");
        return;
    }
    out->n_bytes = whole->text.n_bytes;
    out->n_spans = whole->n_spans;
    if (out->n_bytes)
        memcpy(out->text, whole->text.data, out->n_bytes);
    if (out->n_spans)
        memcpy(out->spans, whole->spans, out->n_spans * sizeof *out->spans);
}

enum status model_chat_render(const struct model_chat *chat, const cJSON *object,
                              struct base_string text, enum model_chat_mask mask,
                              struct model_chat_text *out, struct status_why *why)
{
    struct jinja_run r;
    struct chat_conversation c = {.chat = chat, .r = &r};
    struct chat_rendering whole = {0};
    bool was_read;
    *out = (struct model_chat_text){0};
    jinja_begin(&r, &chat->limits, why);
    struct jinja_value value = jinja_of_json(&r, object, text);
    if (!r.status)
        model_chat_read(&c, &value);
    was_read = !r.status;
    const struct chat_view view = {.n = c.n};
    if (!r.status && model_chat_view(&c, &view, &whole, true))
        model_chat_find_spans(&c, mask, &whole);
    if (!r.status)
        copy_out(&r, &whole, out);
    if (r.status) {
        model_chat_text_free(out);
        out->refused = was_read && r.status == STATUS_FORMAT;
        out->is_spent = r.is_spent || r.is_full;
    }
    jinja_end(&r);
    return r.status;
}

void model_chat_text_free(struct model_chat_text *text)
{
    free(text->text);
    free(text->spans);
    *text = (struct model_chat_text){0};
}

#include "model/chat/prompts.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json/lines.h"
#include "base/json/read.h"
#include "model/chat/conversation.h"
#include "model/template/value/value_json.h"
#include "model/template/value/value_text.h"

/** Who is handed the conversations, and until when. */
struct visit {
    model_chat_visitor *visit;
    void *user;
    const atomic_bool *cancel;
    double deadline; /* of the thread's processor time */
};

static enum status visit_line(void *user, const struct base_json_line *line, const cJSON *object,
                              struct status_why *why)
{
    const struct visit *v = user;
    const struct model_chat_case one = {.name =
                                            cJSON_GetStringValue(base_json_member(object, "id")),
                                        .object = object,
                                        .bytes = {line->from, (size_t)(line->end - line->from)}};
    if (v->cancel && *v->cancel)
        return status_fail(why, STATUS_CANCELLED, "cancelled");
    if (base_clock_thread_seconds() > v->deadline)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "chat template: took more than %d seconds of processor time for "
                           "the conversations before '%s', the limit of a comparison",
                           MODEL_CHAT_SET_SECONDS, one.name);
    return v->visit(v->user, &one, why);
}

enum status model_chat_each(model_chat_visitor *visit, void *user, const atomic_bool *cancel,
                            struct status_why *why)
{
    const struct base_string set = model_chat_conversations_jsonl;
    struct visit v = {visit, user, cancel, base_clock_thread_seconds() + MODEL_CHAT_SET_SECONDS};
    char *bytes = malloc(set.n_bytes); /* which the reader writes to */
    if (!bytes)
        return status_fail(why, STATUS_MEMORY, "no memory for conversations");
    memcpy(bytes, set.data, set.n_bytes);
    enum status status = base_json_lines_read(bytes, set.n_bytes, visit_line, &v, why);
    free(bytes);
    return status;
}

/** Its tokens; the template's BOS takes the place of the one that texts begin with. */
static enum status make_tokens(struct model_chat_prompt *p, const struct model_tokenizer *t,
                               struct status_why *why)
{
    struct model_tokens text = {0};
    enum status status = model_tokenize(t, p->text.text, p->text.n_bytes, true, &text, why);
    bool has_bos = text.n > 0 && text.ids[0] == model_token_bos(t);
    p->has_bos_twice = has_bos && model_adds_bos(t);
    if (!status && !has_bos)
        status = model_begin_text(t, &p->tokens, why);
    for (size_t i = 0; i < text.n && !status; i++)
        status = model_tokens_add(&p->tokens, text.ids[i], why);
    free(text.ids);
    return status;
}

enum status model_chat_prompt(struct model_chat_prompt *out, const struct model_chat *chat,
                              const struct model_chat_case *one, enum model_chat_mask mask,
                              struct status_why *why)
{
    *out = (struct model_chat_prompt){0};
    enum status status =
        model_chat_render(chat, one->object, one->bytes, mask, &out->text, &out->why);
    if (!out->text.is_spent && (status == STATUS_FORMAT || status == STATUS_UNSUPPORTED)) {
        out->refused = status;
        return STATUS_OK;
    }
    if (status)
        return status_fail(why, status, "conversation '%s': %s", one->name, out->why.text);
    if (out->text.n_bytes > MODEL_CHAT_PROMPT_BYTES)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "conversation '%s': the chat template makes a prompt of %zu bytes, "
                           "expected at most %d",
                           one->name, out->text.n_bytes, MODEL_CHAT_PROMPT_BYTES);
    return make_tokens(out, chat->tokenizer, why);
}

enum status model_chat_asks(bool *asks, const struct model_chat *chat,
                            const struct model_chat_case *one, struct status_why *why)
{
    struct jinja_run r;
    struct chat_conversation c = {.chat = chat, .r = &r};
    struct chat_rendering with, without;
    struct status_why refused = {""};
    jinja_begin(&r, &chat->limits, &refused);
    struct jinja_value value = jinja_of_json(&r, one->object, one->bytes);
    if (!r.status)
        model_chat_read(&c, &value);
    const struct chat_view asked = {.n = c.n, .asking = CHAT_ASKED},
                           plain = {.n = c.n, .asking = CHAT_NOT_ASKED};
    *asks = !r.status && model_chat_view(&c, &asked, &with, false) &&
            model_chat_view(&c, &plain, &without, false) && !jinja_same(with.text, without.text);
    enum status status =
        r.status == STATUS_MEMORY ? status_fail(why, STATUS_MEMORY, "%s", refused.text) : STATUS_OK;
    jinja_end(&r);
    return status;
}

void model_chat_prompt_free(struct model_chat_prompt *prompt)
{
    model_chat_text_free(&prompt->text);
    free(prompt->tokens.ids);
    *prompt = (struct model_chat_prompt){0};
}

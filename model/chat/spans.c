/* Which part of a rendered conversation is whose, where no `generation` block says it. */
#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/text/utf8.h"
#include "model/chat/conversation.h"
#include "model/chat/value/text.h"

/* Where contents begin and end in the whole text; SIZE_MAX: not known. */
struct places {
    struct chat_conversation *c;
    struct base_string text;
    size_t *starts, *ends; /* [n]; NULL: not looked for yet */
};

/*
 * Where the marks of all contents are. A rendering with marks must be the text once they are taken
 * away: else the template looked at a content, and each message is marked alone.
 */
static size_t *find_places(struct places *p, enum chat_marks marks)
{
    struct chat_conversation *c = p->c;
    struct chat_view view = {.n = c->n, .marks = marks, .only = SIZE_MAX};
    struct chat_rendering found;
    if (model_chat_view(c, &view, &found, NULL) && chat_same(found.text, p->text))
        return found.marks;
    size_t *places = model_chat_alloc(c->r, c->n, sizeof *places);
    for (size_t i = 0; i < c->n && !c->r->status; i++) {
        view.only = i;
        bool same = model_chat_view(c, &view, &found, NULL) && chat_same(found.text, p->text);
        places[i] = same ? found.marks[i] : SIZE_MAX;
    }
    return c->r->status ? NULL : places;
}

static bool begins_with(struct base_string s, struct base_string prefix)
{
    return prefix.n_bytes <= s.n_bytes && chat_same(chat_part(s, 0, prefix.n_bytes), prefix);
}

/* Where an assistant's message begins: behind the text that asks for it; else its content's begin.
 */
static size_t find_begin(struct places *p, size_t i)
{
    struct chat_rendering asked;
    const struct chat_view view = {.n = i, .prompt = true};
    if (i > 0 && model_chat_view(p->c, &view, &asked, NULL) && begins_with(p->text, asked.text) &&
        asked.text.n_bytes <= p->ends[i])
        return asked.text.n_bytes;
    if (!p->starts)
        p->starts = find_places(p, CHAT_MARK_START);
    return p->starts ? p->starts[i] : SIZE_MAX;
}

/* The text that message i itself puts behind `at`, where its content ends in the whole text, or
 * where it begins: what a conversation that ends with it has there, as far as the text has it, too.
 * *whole: all of it. */
static struct base_string find_tail(struct places *p, size_t i, size_t at, bool *whole)
{
    struct base_string rest = chat_part(p->text, at, p->text.n_bytes), tail = rest;
    struct chat_rendering ending;
    bool has_mark = p->ends[i] != SIZE_MAX;
    const struct chat_view view = {
        .n = i + 1, .marks = has_mark ? CHAT_MARK_END : CHAT_UNMARKED, .only = i};
    *whole = false;
    if (!model_chat_view(p->c, &view, &ending, NULL))
        return chat_part(rest, 0, 0);
    if (has_mark && ending.marks[i] != SIZE_MAX)
        tail = chat_part(ending.text, ending.marks[i], ending.text.n_bytes);
    else if (!has_mark && begins_with(ending.text, chat_part(p->text, 0, at)))
        tail = chat_part(ending.text, at, ending.text.n_bytes);
    else
        return chat_part(rest, 0, 0);
    size_t n = 0;
    while (n < base_min(rest.n_bytes, tail.n_bytes) && rest.data[n] == tail.data[n])
        n++;
    *whole = n == tail.n_bytes;
    return chat_part(rest, 0, n);
}

/* Bytes of a tail up to the end of a turn: of the control tokens that it begins with, blanks before
 * them allowed, or of the last control token; 0: it has none there. */
static size_t control_end(struct chat_conversation *c, struct base_string tail, bool last)
{
    struct model_tokens tokens = {0};
    const struct model_tokenizer *t = c->chat->tokenizer;
    enum status status = tail.n_bytes
                             ? model_tokenize(t, tail.data, tail.n_bytes, true, &tokens, c->r->why)
                             : STATUS_OK;
    size_t at = 0, end = 0;
    if (status)
        c->r->status = status;
    for (size_t i = 0; i < tokens.n; i++) {
        const struct chat_value white = chat_absent();
        size_t n = model_token_span(t, tokens.ids[i], tail.data + at, tail.n_bytes - at);
        n = base_min(n, tail.n_bytes - at);
        bool is_control = model_token_type(t, tokens.ids[i]) == MODEL_TOKEN_CONTROL ||
                          tokens.ids[i] == model_token_eos(t);
        struct base_string between = chat_part(tail, at, at + n);
        bool is_blank = model_chat_strip(c->r, between, &white, CHAT_LEFT).string.n_bytes == 0;
        if (!last && !is_control && (end > 0 || !is_blank))
            break;
        at += n;
        if (is_control)
            end = at;
    }
    free(tokens.ids);
    return end;
}

/* Where an assistant's message ends, its end-of-turn token included; `begin`: where it begins. */
static size_t find_end(struct places *p, size_t i, size_t begin)
{
    const struct chat_value *calls =
        model_chat_dict_find(p->c->r, p->c->messages[i].dict, "tool_calls");
    bool goes_on = p->ends[i] == SIZE_MAX || (calls && model_chat_truth(calls)), whole;
    size_t at = p->ends[i] == SIZE_MAX ? begin : p->ends[i];
    const struct chat_value white = chat_absent();
    struct base_string tail = find_tail(p, i, at, &whole);
    size_t n = control_end(p->c, tail, goes_on);
    if (n == 0 && whole)
        n = model_chat_strip(p->c->r, tail, &white, CHAT_RIGHT).string.n_bytes;
    return n == 0 && p->ends[i] == SIZE_MAX ? SIZE_MAX : at + n;
}

/* What the messages of a role wrote. */
static void find_role(struct places *p, bool is_user, struct chat_rendering *whole)
{
    struct chat_conversation *c = p->c;
    const char *role = is_user ? "user" : "assistant";
    whole->spans = model_chat_alloc(c->r, c->n, sizeof *whole->spans);
    whole->n_spans = 0;
    for (size_t i = 0; i < c->n && !c->r->status; i++) {
        const struct chat_value *of = model_chat_dict_find(c->r, c->messages[i].dict, "role");
        if (!chat_is(of->string, role))
            continue;
        struct model_chat_span span = {SIZE_MAX, p->ends[i]};
        if (!is_user)
            span.from = find_begin(p, i);
        else if (p->starts || (p->starts = find_places(p, CHAT_MARK_START)))
            span.from = p->starts[i];
        if (!is_user && span.from != SIZE_MAX)
            span.to = find_end(p, i, span.from);
        if (c->r->status)
            return;
        if (span.from == SIZE_MAX || span.to == SIZE_MAX || span.to < span.from)
            model_chat_fail(c->r, STATUS_FORMAT,
                            "message %zu: cannot tell which part of the text the template makes of "
                            "it; score everything (--mask all), or give a template with "
                            "{%% generation %%} blocks (--chat-template)",
                            i + 1);
        else
            whole->spans[whole->n_spans++] = span;
    }
}

void model_chat_find_spans(struct chat_conversation *c, enum model_chat_mask mask,
                           struct chat_rendering *whole)
{
    struct places p = {.c = c, .text = whole->text};
    if (mask == MODEL_CHAT_ALL) {
        whole->spans = model_chat_alloc(c->r, 1, sizeof *whole->spans);
        whole->n_spans = 1;
        if (whole->spans)
            whole->spans[0] = (struct model_chat_span){0, whole->text.n_bytes};
    } else if (mask == MODEL_CHAT_USER || !model_chat_marks_generation(c->chat->chat_template)) {
        p.ends = find_places(&p, CHAT_MARK_END);
        if (!c->r->status)
            find_role(&p, mask == MODEL_CHAT_USER, whole);
    }
}

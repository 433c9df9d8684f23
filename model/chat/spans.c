/* Which part of a rendered conversation is whose, where no `generation` block says it. */
#include <stdlib.h>

#include "base/arithmetic.h"
#include "model/chat/conversation.h"
#include "model/template/value/value_text.h"

/* Where contents begin and end in the whole text; SIZE_MAX: not known. */
struct places {
    struct chat_conversation *c;
    struct base_string text;
    size_t *starts, *ends;                                /* [n]; NULL: not looked for yet */
    enum { NOT_KNOWN, IS_OBEYED, IS_PASSED_OVER } prompt; /* add_generation_prompt */
};

/* Where the mark of one content is, if the template puts it into the same text as without. */
static size_t find_place(struct places *p, size_t i, enum chat_marks marks)
{
    const struct chat_view view = {.n = p->c->n, .marks = marks, .only = i};
    struct chat_rendering found;
    bool same = model_chat_view(p->c, &view, &found, false) && jinja_same(found.text, p->text);
    return same ? found.marks[i] : SIZE_MAX;
}

/*
 * Where the marks of all contents are. A rendering with marks must be the text once they are taken
 * away: else the template looked at a content, and each message is marked alone.
 */
static size_t *find_places(struct places *p, enum chat_marks marks)
{
    struct chat_conversation *c = p->c;
    const struct chat_view view = {.n = c->n, .marks = marks, .only = SIZE_MAX};
    struct chat_rendering found;
    if (model_chat_view(c, &view, &found, false) && jinja_same(found.text, p->text))
        return found.marks;
    size_t *places = jinja_alloc(c->r, c->n, sizeof *places);
    for (size_t i = 0; i < c->n && !c->r->status; i++)
        places[i] = find_place(p, i, marks);
    return c->r->status ? NULL : places;
}

static bool begins_with(struct base_string s, struct base_string prefix)
{
    return prefix.n_bytes <= s.n_bytes && jinja_same(jinja_part(s, 0, prefix.n_bytes), prefix);
}

/* Whether the template passes over the generation prompt; asked: the first i messages with it. */
static bool passes_over(struct places *p, size_t i, struct base_string asked)
{
    const struct chat_view view = {.n = i, .asking = CHAT_NOT_ASKED};
    struct chat_rendering plain;
    if (p->prompt == NOT_KNOWN && model_chat_view(p->c, &view, &plain, false))
        p->prompt = jinja_same(plain.text, asked) ? IS_PASSED_OVER : IS_OBEYED;
    return p->prompt == IS_PASSED_OVER;
}

static size_t find_start(struct places *p, size_t i)
{
    if (!p->starts)
        p->starts = find_places(p, CHAT_MARK_START);
    return p->starts ? p->starts[i] : SIZE_MAX;
}

/* Where an assistant's message begins: after the text that asks for it; where the template has no
 * such text, or another one, where its content does, or, where thoughts are left out, after them.
 */
static size_t find_begin(struct places *p, size_t i)
{
    struct chat_rendering asked;
    const struct chat_view view = {.n = i, .asking = CHAT_ASKED};
    size_t begin = SIZE_MAX, start;
    if (i > 0 && model_chat_view(p->c, &view, &asked, false) && begins_with(p->text, asked.text) &&
        asked.text.n_bytes <= p->ends[i])
        begin = asked.text.n_bytes;
    if (begin != SIZE_MAX && !passes_over(p, i, asked.text))
        return begin;
    start = find_start(p, i);
    if (start != SIZE_MAX || begin != SIZE_MAX)
        return start != SIZE_MAX ? start : begin;
    return find_place(p, i, CHAT_MARK_ANSWER);
}

/* The text that a conversation that ends with message i has after its content, or, where that has
 * no mark, after `begin`. False: it is not known. */
static bool find_tail(struct places *p, size_t i, size_t begin, struct base_string *tail)
{
    struct chat_rendering ending;
    bool has_mark = p->ends[i] != SIZE_MAX;
    const struct chat_view view = {.n = i + 1,
                                   .asking = CHAT_NOT_ASKED,
                                   .marks = has_mark ? CHAT_MARK_END : CHAT_UNMARKED,
                                   .only = i};
    if (!model_chat_view(p->c, &view, &ending, false) ||
        (has_mark ? ending.marks[i] == SIZE_MAX
                  : !begins_with(ending.text, jinja_part(p->text, 0, begin))))
        return false;
    *tail = jinja_part(ending.text, has_mark ? ending.marks[i] : begin, ending.text.n_bytes);
    return true;
}

enum which { FIRST, RUN, UP_TO_EOS, LAST };

/*
 * Bytes of a text up to the end of control tokens: those that it begins with, blanks before them
 * allowed - the first, all, or all up to EOS, which must be among them -, or the last that it has.
 * 0: there are none.
 */
static size_t control_end(struct chat_conversation *c, struct base_string s, enum which which)
{
    struct model_tokens tokens = {0};
    const struct model_tokenizer *t = c->chat->tokenizer;
    const struct jinja_value white = jinja_absent();
    enum status status = STATUS_OK;
    size_t at = 0, end = 0;
    bool is_eos = false;
    jinja_work(c->r, s.n_bytes);
    if (c->r->status)
        return 0;
    if (s.n_bytes)
        status = model_tokenize(t, s.data, s.n_bytes, true, &tokens, c->r->why);
    if (status)
        c->r->status = status;
    for (size_t i = 0; i < tokens.n && !(is_eos && which != LAST); i++) {
        size_t n = model_token_span(t, tokens.ids[i], s.data + at, s.n_bytes - at);
        struct base_string text = jinja_part(s, at, at + base_min(n, s.n_bytes - at));
        is_eos = tokens.ids[i] == model_token_eos(t);
        bool is_control = is_eos || model_token_type(t, tokens.ids[i]) == MODEL_TOKEN_CONTROL;
        bool is_blank = jinja_strip(c->r, text, &white, JINJA_LEFT).string.n_bytes == 0;
        if (which != LAST && (is_control ? which == FIRST && end > 0 : end > 0 || !is_blank))
            break;
        at += text.n_bytes;
        if (is_control)
            end = at;
    }
    free(tokens.ids);
    return which == UP_TO_EOS && !is_eos ? 0 : end;
}

/* Whether a message's tail ends with `before`, what stands between the message before it and its
 * begin: then the template asks for the next answer without being told to. */
static bool asks_again(struct jinja_run *r, struct base_string tail, struct base_string before)
{
    const struct jinja_value white = jinja_absent();
    tail = jinja_strip(r, tail, &white, JINJA_BOTH).string;
    before = jinja_strip(r, before, &white, JINJA_BOTH).string;
    return before.n_bytes && before.n_bytes <= tail.n_bytes &&
           jinja_same(jinja_part(tail, tail.n_bytes - before.n_bytes, tail.n_bytes), before);
}

static bool has_calls(struct chat_conversation *c, size_t i)
{
    const struct jinja_value *calls = jinja_dict_find(c->r, c->messages[i].dict, "tool_calls");
    return calls && jinja_truth(calls);
}

/* Where an assistant's message, which begins at `begin`, ends: with the token that ends its turn.
 */
static size_t find_end(struct places *p, size_t i, size_t begin)
{
    struct chat_conversation *c = p->c;
    const struct jinja_value white = jinja_absent();
    bool has_mark = p->ends[i] != SIZE_MAX, goes_on = !has_mark || has_calls(c, i);
    size_t at = has_mark ? p->ends[i] : begin, n = 0, n_end;
    struct base_string rest = jinja_part(p->text, at, p->text.n_bytes), tail, before = {0};
    if (!has_mark && !has_calls(c, i) && model_chat_has_text(c, i))
        return SIZE_MAX; /* the template leaves it out, or changes it */
    if (!find_tail(p, i, begin, &tail))
        return has_mark ? at + control_end(c, rest, FIRST) : SIZE_MAX;
    while (n < base_min(rest.n_bytes, tail.n_bytes) && rest.data[n] == tail.data[n])
        n++;
    if (i > 0 && p->ends[i - 1] != SIZE_MAX && p->ends[i - 1] < begin)
        before = jinja_part(p->text, p->ends[i - 1], begin);
    bool asks = asks_again(c->r, tail, before);
    n_end = control_end(c, jinja_part(rest, 0, n), asks ? UP_TO_EOS : goes_on ? LAST : RUN);
    if (n_end == 0 && n == tail.n_bytes && !asks) /* a turn that ends with plain text */
        n_end = jinja_strip(c->r, jinja_part(rest, 0, n), &white, JINJA_RIGHT).string.n_bytes;
    else if (n_end == 0 && !goes_on && control_end(c, tail, FIRST) && !asks)
        n_end = control_end(c, rest, FIRST); /* the last turn ends with another token */
    return n_end == 0 && !has_mark ? SIZE_MAX : at + n_end;
}

/* What the messages of a role wrote. */
static void find_role(struct places *p, bool is_user, struct chat_rendering *whole)
{
    struct chat_conversation *c = p->c;
    const char *role = is_user ? "user" : "assistant";
    whole->spans = jinja_alloc(c->r, c->n, sizeof *whole->spans);
    whole->n_spans = 0;
    for (size_t i = 0; i < c->n && !c->r->status; i++) {
        const struct jinja_value *of = jinja_dict_find(c->r, c->messages[i].dict, "role");
        if (!jinja_is(of->string, role))
            continue;
        struct jinja_span span = {SIZE_MAX, p->ends[i]};
        if (!is_user)
            span.from = find_begin(p, i);
        else
            span.from = find_start(p, i);
        if (!is_user && span.from != SIZE_MAX)
            span.to = find_end(p, i, span.from);
        if (c->r->status)
            return;
        if (span.from == SIZE_MAX || span.to == SIZE_MAX || span.to < span.from)
            jinja_fail(c->r, STATUS_FORMAT,
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
        whole->spans = jinja_alloc(c->r, 1, sizeof *whole->spans);
        whole->n_spans = 1;
        if (whole->spans)
            whole->spans[0] = (struct jinja_span){0, whole->text.n_bytes};
    } else if (mask == MODEL_CHAT_USER || !jinja_marks_generation(c->chat->chat_template)) {
        p.ends = find_places(&p, CHAT_MARK_END);
        if (!c->r->status)
            find_role(&p, mask == MODEL_CHAT_USER, whole);
    }
}

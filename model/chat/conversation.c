#include "model/chat/conversation.h"

#include <stdio.h>

#include "base/text/quote.h"
#include "model/template/value/value_text.h"

/* U+E0F0, a number, U+E0F1: of private use, so that no template has a meaning for it. */
static const struct base_string mark_begin = {"\xEE\x83\xB0", 3}, mark_end = {"\xEE\x83\xB1", 3};

static struct jinja_value dict_with(struct jinja_run *r, const struct jinja_dict *old,
                                    const char *name, struct jinja_value value)
{
    struct jinja_dict *dict = jinja_alloc(r, 1, sizeof *dict);
    if (!dict)
        return jinja_absent();
    for (size_t i = 0; i < old->n; i++)
        jinja_dict_set(r, dict, old->pairs[i].key, old->pairs[i].value);
    jinja_dict_set(r, dict, jinja_string(name, strlen(name)), value);
    return (struct jinja_value){.kind = JINJA_DICT, .dict = dict};
}

/* The text of a part of a content; NULL where it has no text. */
static const struct jinja_value *part_text(struct jinja_run *r, const struct jinja_value *part)
{
    const struct jinja_value *text =
        part->kind == JINJA_DICT ? jinja_dict_find(r, part->dict, "text") : NULL;
    return text && text->kind == JINJA_STRING ? text : NULL;
}

static struct jinja_value join_parts(struct jinja_run *r, const struct jinja_value *parts)
{
    struct jinja_buffer out = {0};
    for (size_t i = 0; i < parts->n && !r->status; i++) {
        const struct jinja_value *text = part_text(r, &parts->items[i]);
        if (text)
            jinja_put_string(r, &out, text->string);
        else
            jinja_fail(r, STATUS_UNSUPPORTED, "part %zu is no text", i + 1);
    }
    return jinja_of_buffer(&out);
}

static struct jinja_value make_parts(struct jinja_run *r, struct jinja_value text)
{
    const struct jinja_dict empty = {0};
    struct jinja_value *part = jinja_alloc(r, 1, sizeof *part);
    struct jinja_value type = dict_with(r, &empty, "type", jinja_string("text", 4));
    if (!part || r->status)
        return jinja_absent();
    *part = dict_with(r, type.dict, "text", text);
    return jinja_list(part, 1);
}

/* A message with its content in the form that the template takes. */
static struct jinja_value read_message(struct chat_conversation *c, const struct jinja_value *given)
{
    const struct jinja_value *role = NULL, *content = NULL;
    if (given->kind == JINJA_DICT) {
        role = jinja_dict_find(c->r, given->dict, "role");
        content = jinja_dict_find(c->r, given->dict, "content");
    }
    if (!role || role->kind != JINJA_STRING)
        return JINJA_FAIL(c->r, STATUS_FORMAT, "expected an object with \"role\", a text");
    if (!content || content->kind == JINJA_NONE)
        return *given;
    if (content->kind != JINJA_STRING && content->kind != JINJA_LIST)
        return JINJA_FAIL(c->r, STATUS_FORMAT, "\"content\" is %s, expected a text, or a list",
                          jinja_kind_name(content));
    if (content->kind == JINJA_LIST && !c->chat->takes_lists)
        return dict_with(c->r, given->dict, "content", join_parts(c->r, content));
    if (content->kind == JINJA_STRING && !c->chat->takes_texts)
        return dict_with(c->r, given->dict, "content", make_parts(c->r, *content));
    return *given;
}

/* "now": "2025-01-31" for strftime_now. */
static void read_time(struct chat_conversation *c, const struct jinja_value *object)
{
    struct jinja_date *time = &c->r->time;
    const struct jinja_value *now = jinja_dict_find(c->r, object->dict, "now");
    *time = (struct jinja_date){2024, 7, 26};
    char text[11] = "", end;
    if (!now)
        return;
    if (now->kind == JINJA_STRING && now->string.n_bytes == 10)
        memcpy(text, now->string.data, 10);
    if (sscanf(text, "%4d-%2d-%2d%c", &time->year, &time->month, &time->day, &end) != 3 ||
        time->year < 1900 || time->month < 1 || time->month > 12 || time->day < 1 || time->day > 31)
        jinja_fail(c->r, STATUS_FORMAT, "expected \"now\" with a day like \"2025-01-31\"");
}

/* The text of a special token under a name that templates know. */
static void name_token(struct chat_conversation *c, const char *name, int32_t id)
{
    if (id >= 0 && !jinja_dict_find(c->r, &c->names, name))
        jinja_dict_set(c->r, &c->names, jinja_string(name, strlen(name)),
                       jinja_of_string(model_token_text(c->chat->tokenizer, id)));
}

static void set_names(struct chat_conversation *c, const struct jinja_value *object)
{
    static const char *const absent[] = {"tools", "documents"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        jinja_dict_set(c->r, &c->names, jinja_string(absent[i], strlen(absent[i])), jinja_none());
    for (size_t i = 0; i < object->dict->n; i++)
        jinja_dict_set(c->r, &c->names, object->dict->pairs[i].key, object->dict->pairs[i].value);
    name_token(c, "bos_token", model_token_bos(c->chat->tokenizer));
    name_token(c, "eos_token", model_token_eos(c->chat->tokenizer));
    name_token(c, "unk_token", model_token_unknown(c->chat->tokenizer));
}

void model_chat_read(struct chat_conversation *c, const struct jinja_value *object)
{
    const struct jinja_value *messages =
        object->kind == JINJA_DICT ? jinja_dict_find(c->r, object->dict, "messages") : NULL;
    if (!messages || messages->kind != JINJA_LIST || messages->n == 0) {
        jinja_fail(c->r, STATUS_FORMAT, "expected \"messages\" with a list of objects");
        return;
    }
    set_names(c, object);
    read_time(c, object);
    c->n = messages->n;
    c->messages = jinja_alloc(c->r, c->n, sizeof *c->messages);
    for (size_t i = 0; i < c->n && !c->r->status; i++) {
        c->messages[i] = read_message(c, &messages->items[i]);
        if (c->r->status)
            status_context(c->r->why, "message %zu", i + 1);
    }
}

/* A text with a mark before its first or after its last character that is not blank. */
static struct jinja_value mark_text(struct jinja_run *r, struct base_string s, size_t number,
                                    enum chat_marks marks)
{
    const struct jinja_value white = jinja_absent();
    const struct base_string thoughts = {"</think>", 8};
    char digits[24];
    struct jinja_buffer out = {0};
    size_t from = 0, at;
    if (marks == CHAT_MARK_ANSWER) {
        from = jinja_find_last(r, s, thoughts, s.n_bytes);
        from = from == SIZE_MAX ? 0 : from + thoughts.n_bytes;
    }
    struct base_string answer = jinja_part(s, from, s.n_bytes);
    if (marks == CHAT_MARK_END)
        at = jinja_strip(r, s, &white, JINJA_RIGHT).string.n_bytes;
    else
        at = s.n_bytes - jinja_strip(r, answer, &white, JINJA_LEFT).string.n_bytes;
    snprintf(digits, sizeof digits, "%zu", number);
    jinja_put(r, &out, s.data, at);
    jinja_put_string(r, &out, mark_begin);
    jinja_put(r, &out, digits, strlen(digits));
    jinja_put_string(r, &out, mark_end);
    jinja_put(r, &out, s.data + at, s.n_bytes - at);
    return jinja_of_buffer(&out);
}

static bool is_blank(struct jinja_run *r, const struct jinja_value *text)
{
    const struct jinja_value white = jinja_absent();
    return !text || jinja_strip(r, text->string, &white, JINJA_LEFT).string.n_bytes == 0;
}

/* A list with a mark in its first or last part that has text; the same where there is none. */
static struct jinja_value mark_list(struct jinja_run *r, const struct jinja_value *list,
                                    size_t number, enum chat_marks marks)
{
    struct jinja_value *parts = jinja_alloc(r, list->n, sizeof *parts);
    for (size_t i = 0; i < list->n && !r->status; i++)
        parts[i] = list->items[i];
    for (size_t i = 0; i < list->n && !r->status; i++) {
        struct jinja_value *part = &parts[marks == CHAT_MARK_END ? list->n - 1 - i : i];
        const struct jinja_value *text = part_text(r, part);
        if (is_blank(r, text))
            continue;
        *part = dict_with(r, part->dict, "text", mark_text(r, text->string, number, marks));
        break;
    }
    return jinja_list(parts, list->n);
}

bool model_chat_has_text(struct chat_conversation *c, size_t i)
{
    const struct jinja_value *content = jinja_dict_find(c->r, c->messages[i].dict, "content");
    bool has = content && content->kind == JINJA_STRING && !is_blank(c->r, content);
    for (size_t k = 0; content && content->kind == JINJA_LIST && k < content->n && !has; k++)
        has = !is_blank(c->r, part_text(c->r, &content->items[k]));
    return has;
}

static struct jinja_value marked(struct chat_conversation *c, size_t i, enum chat_marks marks)
{
    const struct jinja_value *content = jinja_dict_find(c->r, c->messages[i].dict, "content");
    if (!model_chat_has_text(c, i))
        return c->messages[i];
    return dict_with(c->r, c->messages[i].dict, "content",
                     content->kind == JINJA_LIST ? mark_list(c->r, content, i, marks)
                                                 : mark_text(c->r, content->string, i, marks));
}

/* The names of a rendering. */
static struct jinja_dict names_of(struct chat_conversation *c, const struct chat_view *view)
{
    struct jinja_dict names = {0};
    struct jinja_value *messages = jinja_alloc(c->r, view->n, sizeof *messages);
    for (size_t i = 0; i < view->n && !c->r->status; i++) {
        bool is_marked = view->marks && (view->only == SIZE_MAX || view->only == i);
        messages[i] = is_marked ? marked(c, i, view->marks) : c->messages[i];
    }
    for (size_t i = 0; i < c->names.n; i++)
        jinja_dict_set(c->r, &names, c->names.pairs[i].key, c->names.pairs[i].value);
    jinja_dict_set(c->r, &names, jinja_string("messages", 8), jinja_list(messages, view->n));
    struct jinja_value key = jinja_string("add_generation_prompt", 21);
    if (view->asking != CHAT_AS_GIVEN || !jinja_dict_get(c->r, &names, &key))
        jinja_dict_set(c->r, &names, key, jinja_bool(view->asking == CHAT_ASKED));
    return names;
}

/* Copy a text without its marks, and note where they were; one that is there twice is not known. */
static void take_marks(struct chat_conversation *c, struct base_string text, enum chat_marks marks,
                       struct chat_rendering *out)
{
    if (!marks && jinja_find(c->r, text, mark_begin, 0) != SIZE_MAX)
        jinja_fail(c->r, STATUS_UNSUPPORTED,
                   "has the character U+E0F0, by which contents are found again");
    struct jinja_buffer plain = {0};
    out->marks = jinja_alloc(c->r, c->n, sizeof *out->marks);
    for (size_t i = 0; i < c->n && !c->r->status; i++)
        out->marks[i] = SIZE_MAX;
    bool *met = jinja_alloc(c->r, c->n, sizeof *met);
    for (size_t at = 0; !c->r->status;) {
        size_t found = jinja_find(c->r, text, mark_begin, at), number = 0, end;
        end = found == SIZE_MAX ? SIZE_MAX : jinja_find(c->r, text, mark_end, found);
        jinja_put(c->r, &plain, text.data + at, (end == SIZE_MAX ? text.n_bytes : found) - at);
        if (end == SIZE_MAX)
            break;
        for (size_t i = found + mark_begin.n_bytes; i < end && number < c->n; i++)
            number = number * 10 + (size_t)(text.data[i] - '0');
        if (number < c->n && !c->r->status) {
            out->marks[number] = met[number] ? SIZE_MAX : plain.n_bytes;
            met[number] = true;
        }
        at = end + mark_end.n_bytes;
    }
    out->text = jinja_of_buffer(&plain).string;
}

bool model_chat_view(struct chat_conversation *c, const struct chat_view *view,
                     struct chat_rendering *out, bool must)
{
    struct jinja_dict names = names_of(c, view);
    struct jinja_run r;
    struct status_why why = {""};
    *out = (struct chat_rendering){0};
    if (c->r->status)
        return false;
    jinja_begin_part(&r, c->r, &why);
    bool rendered = !jinja_render(c->chat->chat_template, &r, &names);
    jinja_take_part(c->r, &r);
    if (rendered) {
        take_marks(c, jinja_of_buffer(&r.text).string, view->marks, out);
        out->n_spans = r.n_spans;
        out->spans = jinja_alloc(c->r, r.n_spans, sizeof *out->spans);
        if (r.n_spans && out->spans)
            memcpy(out->spans, r.spans, r.n_spans * sizeof *out->spans);
    } else if (must || r.is_spent) {
        c->r->is_spent = r.is_spent;
        c->r->is_full = r.is_full;
        c->r->status = status_fail(c->r->why, r.status, "%s", why.text);
    }
    jinja_end(&r);
    return rendered && !c->r->status;
}

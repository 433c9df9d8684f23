#include "model/chat/conversation.h"

#include <stdio.h>

#include "base/text/quote.h"
#include "model/chat/value/text.h"

/* U+E0F0, a number, U+E0F1: of private use, so that no template has a meaning for it. */
static const struct base_string mark_begin = {"\xEE\x83\xB0", 3}, mark_end = {"\xEE\x83\xB1", 3};

static struct chat_value dict_with(struct chat_run *r, const struct chat_dict *old,
                                   const char *name, struct chat_value value)
{
    struct chat_dict *dict = model_chat_alloc(r, 1, sizeof *dict);
    if (!dict)
        return chat_absent();
    for (size_t i = 0; i < old->n; i++)
        model_chat_dict_set(r, dict, old->pairs[i].key, old->pairs[i].value);
    model_chat_dict_set(r, dict, chat_string(name, strlen(name)), value);
    return (struct chat_value){.kind = CHAT_DICT, .dict = dict};
}

/* The text of a part of a content; NULL where it is none. */
static const struct chat_value *part_text(struct chat_run *r, const struct chat_value *part)
{
    const struct chat_value *text =
        part->kind == CHAT_DICT ? model_chat_dict_find(r, part->dict, "text") : NULL;
    return text && text->kind == CHAT_STRING ? text : NULL;
}

static struct chat_value join_parts(struct chat_run *r, const struct chat_value *parts)
{
    struct chat_buffer out = {0};
    for (size_t i = 0; i < parts->n && !r->status; i++) {
        const struct chat_value *text = part_text(r, &parts->items[i]);
        if (text)
            model_chat_put_string(r, &out, text->string);
        else
            model_chat_fail(r, STATUS_UNSUPPORTED, "part %zu is no text", i + 1);
    }
    return chat_of_buffer(&out);
}

static struct chat_value make_parts(struct chat_run *r, struct chat_value text)
{
    const struct chat_dict empty = {0};
    struct chat_value *part = model_chat_alloc(r, 1, sizeof *part);
    struct chat_value type = dict_with(r, &empty, "type", chat_string("text", 4));
    if (!part || r->status)
        return chat_absent();
    *part = dict_with(r, type.dict, "text", text);
    return chat_list(part, 1);
}

/* A message with its content in the form that the template takes. */
static struct chat_value read_message(struct chat_conversation *c, const struct chat_value *given)
{
    const struct chat_value *role = NULL, *content = NULL;
    if (given->kind == CHAT_DICT) {
        role = model_chat_dict_find(c->r, given->dict, "role");
        content = model_chat_dict_find(c->r, given->dict, "content");
    }
    if (!role || role->kind != CHAT_STRING)
        return CHAT_FAIL(c->r, STATUS_FORMAT, "expected an object with \"role\", a text");
    if (!content || content->kind == CHAT_NONE)
        return *given;
    if (content->kind != CHAT_STRING && content->kind != CHAT_LIST)
        return CHAT_FAIL(c->r, STATUS_FORMAT, "\"content\" is %s, expected a text, or a list",
                         model_chat_kind_name(content));
    if (content->kind == CHAT_LIST && !c->chat->takes_lists)
        return dict_with(c->r, given->dict, "content", join_parts(c->r, content));
    if (content->kind == CHAT_STRING && !c->chat->takes_texts)
        return dict_with(c->r, given->dict, "content", make_parts(c->r, *content));
    return *given;
}

/* "now": "2025-01-31" for strftime_now. */
static void read_time(struct chat_conversation *c, const struct chat_value *object)
{
    struct model_chat_time *time = &c->r->time;
    const struct chat_value *now = model_chat_dict_find(c->r, object->dict, "now");
    *time = (struct model_chat_time){2024, 7, 26};
    char text[11] = "", end;
    if (!now)
        return;
    if (now->kind == CHAT_STRING && now->string.n_bytes == 10)
        memcpy(text, now->string.data, 10);
    if (sscanf(text, "%4d-%2d-%2d%c", &time->year, &time->month, &time->day, &end) != 3 ||
        time->year < 1900 || time->month < 1 || time->month > 12 || time->day < 1 || time->day > 31)
        model_chat_fail(c->r, STATUS_FORMAT, "expected \"now\" with a day like \"2025-01-31\"");
}

/* The text of a special token under a name that templates know. */
static void name_token(struct chat_conversation *c, const char *name, int32_t id)
{
    if (id >= 0 && !model_chat_dict_find(c->r, &c->names, name))
        model_chat_dict_set(c->r, &c->names, chat_string(name, strlen(name)),
                            chat_of_string(model_token_text(c->chat->tokenizer, id)));
}

static void set_names(struct chat_conversation *c, const struct chat_value *object)
{
    static const char *const absent[] = {"tools", "documents"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        model_chat_dict_set(c->r, &c->names, chat_string(absent[i], strlen(absent[i])),
                            chat_none());
    for (size_t i = 0; i < object->dict->n; i++)
        model_chat_dict_set(c->r, &c->names, object->dict->pairs[i].key,
                            object->dict->pairs[i].value);
    name_token(c, "bos_token", model_token_bos(c->chat->tokenizer));
    name_token(c, "eos_token", model_token_eos(c->chat->tokenizer));
    name_token(c, "unk_token", model_token_unknown(c->chat->tokenizer));
}

void model_chat_read(struct chat_conversation *c, const struct chat_value *object)
{
    const struct chat_value *messages =
        object->kind == CHAT_DICT ? model_chat_dict_find(c->r, object->dict, "messages") : NULL;
    if (!messages || messages->kind != CHAT_LIST || messages->n == 0) {
        model_chat_fail(c->r, STATUS_FORMAT, "expected \"messages\" with a list of objects");
        return;
    }
    set_names(c, object);
    read_time(c, object);
    c->n = messages->n;
    c->messages = model_chat_alloc(c->r, c->n, sizeof *c->messages);
    for (size_t i = 0; i < c->n && !c->r->status; i++) {
        c->messages[i] = read_message(c, &messages->items[i]);
        if (c->r->status)
            status_context(c->r->why, "message %zu", i + 1);
    }
}

/* A text with a mark before its first or behind its last character that is not blank. */
static struct chat_value mark_text(struct chat_run *r, struct base_string s, size_t number,
                                   enum chat_marks marks)
{
    const struct chat_value white = chat_absent();
    const struct base_string thoughts = {"</think>", 8};
    char digits[24];
    struct chat_buffer out = {0};
    size_t from = 0, at;
    if (marks == CHAT_MARK_ANSWER) {
        from = model_chat_find_last(r, s, thoughts, s.n_bytes);
        from = from == SIZE_MAX ? 0 : from + thoughts.n_bytes;
    }
    struct base_string answer = chat_part(s, from, s.n_bytes);
    if (marks == CHAT_MARK_END)
        at = model_chat_strip(r, s, &white, CHAT_RIGHT).string.n_bytes;
    else
        at = s.n_bytes - model_chat_strip(r, answer, &white, CHAT_LEFT).string.n_bytes;
    snprintf(digits, sizeof digits, "%zu", number);
    model_chat_put(r, &out, s.data, at);
    model_chat_put_string(r, &out, mark_begin);
    model_chat_put(r, &out, digits, strlen(digits));
    model_chat_put_string(r, &out, mark_end);
    model_chat_put(r, &out, s.data + at, s.n_bytes - at);
    return chat_of_buffer(&out);
}

static bool is_blank(struct chat_run *r, const struct chat_value *text)
{
    const struct chat_value white = chat_absent();
    return !text || model_chat_strip(r, text->string, &white, CHAT_LEFT).string.n_bytes == 0;
}

/* A list with a mark in its first or last part that has text; the same where there is none. */
static struct chat_value mark_list(struct chat_run *r, const struct chat_value *list, size_t number,
                                   enum chat_marks marks)
{
    struct chat_value *parts = model_chat_alloc(r, list->n, sizeof *parts);
    for (size_t i = 0; i < list->n && !r->status; i++)
        parts[i] = list->items[i];
    for (size_t i = 0; i < list->n && !r->status; i++) {
        struct chat_value *part = &parts[marks == CHAT_MARK_END ? list->n - 1 - i : i];
        const struct chat_value *text = part_text(r, part);
        if (is_blank(r, text))
            continue;
        *part = dict_with(r, part->dict, "text", mark_text(r, text->string, number, marks));
        break;
    }
    return chat_list(parts, list->n);
}

bool model_chat_has_text(struct chat_conversation *c, size_t i)
{
    const struct chat_value *content = model_chat_dict_find(c->r, c->messages[i].dict, "content");
    bool has = content && content->kind == CHAT_STRING && !is_blank(c->r, content);
    for (size_t k = 0; content && content->kind == CHAT_LIST && k < content->n && !has; k++)
        has = !is_blank(c->r, part_text(c->r, &content->items[k]));
    return has;
}

static struct chat_value marked(struct chat_conversation *c, size_t i, enum chat_marks marks)
{
    const struct chat_value *content = model_chat_dict_find(c->r, c->messages[i].dict, "content");
    if (!model_chat_has_text(c, i))
        return c->messages[i];
    return dict_with(c->r, c->messages[i].dict, "content",
                     content->kind == CHAT_LIST ? mark_list(c->r, content, i, marks)
                                                : mark_text(c->r, content->string, i, marks));
}

/* The names of a rendering. */
static struct chat_dict names_of(struct chat_conversation *c, const struct chat_view *view)
{
    struct chat_dict names = {0};
    struct chat_value *messages = model_chat_alloc(c->r, view->n, sizeof *messages);
    for (size_t i = 0; i < view->n && !c->r->status; i++) {
        bool is_marked = view->marks && (view->only == SIZE_MAX || view->only == i);
        messages[i] = is_marked ? marked(c, i, view->marks) : c->messages[i];
    }
    for (size_t i = 0; i < c->names.n; i++)
        model_chat_dict_set(c->r, &names, c->names.pairs[i].key, c->names.pairs[i].value);
    model_chat_dict_set(c->r, &names, chat_string("messages", 8), chat_list(messages, view->n));
    struct chat_value key = chat_string("add_generation_prompt", 21);
    if (view->prompt || !model_chat_dict_get(c->r, &names, &key))
        model_chat_dict_set(c->r, &names, key, chat_bool(view->prompt));
    return names;
}

/* Copy a text without its marks, and note where they were; one that is there twice is not known. */
static void take_marks(struct chat_conversation *c, struct base_string text, enum chat_marks marks,
                       struct chat_rendering *out)
{
    if (!marks && model_chat_find(c->r, text, mark_begin, 0) != SIZE_MAX)
        model_chat_fail(c->r, STATUS_UNSUPPORTED,
                        "has the character U+E0F0, by which contents are found again");
    struct chat_buffer plain = {0};
    out->marks = model_chat_alloc(c->r, c->n, sizeof *out->marks);
    for (size_t i = 0; i < c->n && !c->r->status; i++)
        out->marks[i] = SIZE_MAX;
    bool *met = model_chat_alloc(c->r, c->n, sizeof *met);
    for (size_t at = 0; !c->r->status;) {
        size_t found = model_chat_find(c->r, text, mark_begin, at), number = 0, end;
        end = found == SIZE_MAX ? SIZE_MAX : model_chat_find(c->r, text, mark_end, found);
        model_chat_put(c->r, &plain, text.data + at, (end == SIZE_MAX ? text.n_bytes : found) - at);
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
    out->text = chat_of_buffer(&plain).string;
}

bool model_chat_view(struct chat_conversation *c, const struct chat_view *view,
                     struct chat_rendering *out, bool must)
{
    struct chat_dict names = names_of(c, view);
    struct chat_run r;
    struct status_why why = {""};
    *out = (struct chat_rendering){0};
    if (c->r->status)
        return false;
    model_chat_begin_part(&r, c->r, &why);
    bool rendered = !model_chat_template_render(c->chat->chat_template, &r, &names);
    model_chat_take_part(c->r, &r);
    if (rendered) {
        take_marks(c, chat_of_buffer(&r.text).string, view->marks, out);
        out->n_spans = r.n_spans;
        out->spans = model_chat_alloc(c->r, r.n_spans, sizeof *out->spans);
        if (r.n_spans && out->spans)
            memcpy(out->spans, r.spans, r.n_spans * sizeof *out->spans);
    } else if (must || r.is_spent) {
        c->r->is_spent = r.is_spent;
        c->r->status = status_fail(c->r->why, r.status, "%s", why.text);
    }
    model_chat_end(&r);
    return rendered && !c->r->status;
}

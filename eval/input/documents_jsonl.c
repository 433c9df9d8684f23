/* Documents as JSON objects. */
#include <stdio.h>
#include <string.h>

#include "base/json/lines.h"
#include "base/json/read.h"
#include "base/text/words.h"
#include "eval/input/documents.h"
#include "eval/input/documents_forms.h"

static struct base_string string_of(const cJSON *item)
{
    const char *text = cJSON_GetStringValue(item);
    return (struct base_string){text, text ? strlen(text) : 0};
}

/** A line: its object, and the bytes of that. */
struct document_line {
    const cJSON *object;
    struct base_string bytes;
};

static const cJSON *member(const struct document_line *l, const char *name)
{
    return base_json_member(l->object, name);
}

static enum status add_text(struct eval_documents *d, const struct eval_document_head *head,
                            const struct document_line *l, struct status_why *why)
{
    if (!cJSON_IsString(member(l, "text")))
        return status_fail(why, STATUS_FORMAT, "\"text\" is no text");
    return eval_documents_add_text(d, head, string_of(member(l, "text")), why);
}

/** Remember the first role that templates do not know: most of them write it as it stands. */
static void look_at_roles(struct eval_documents *d, size_t line, const cJSON *messages)
{
    static const char known[] = "system developer user assistant tool function ipython";
    for (const cJSON *m = messages ? messages->child : NULL; m && !*d->odd_role; m = m->next) {
        const char *role = cJSON_GetStringValue(base_json_member(m, "role"));
        if (!role || base_words_index(known, role) >= 0)
            continue;
        snprintf(d->odd_role, sizeof d->odd_role, "%s", role);
        d->odd_line = line;
    }
}

static enum status add_chat(struct eval_documents *d, const struct eval_document_head *head,
                            const struct document_line *l, struct status_why *why)
{
    look_at_roles(d, head->line, member(l, "messages"));
    return eval_documents_add_chat(d, head, l->object, l->bytes, why);
}

static enum status add_ids(struct eval_documents *d, const struct eval_document_head *head,
                           const struct document_line *l, struct status_why *why)
{
    return eval_documents_add_ids(d, head, member(l, "ids"), member(l, "mask"), why);
}

/** A conversation that another form has: as messages. */
static enum status add_made(struct eval_documents *d, const struct eval_document_head *head,
                            const struct document_line *l, eval_messages_maker *make,
                            struct status_why *why)
{
    struct base_json made;
    char *text = NULL;
    base_json_begin(&made);
    struct eval_messages messages = {
        .made = &made, .list = base_json_list(&made, made.root, "messages"), .object = l->object};
    make(&messages);
    enum status status = status_of(&messages.kept, why);
    if (!status)
        status = base_json_text_of(&made, &text, why);
    if (!status)
        status = eval_documents_add_chat(d, head, made.root,
                                         (struct base_string){text, strlen(text)}, why);
    cJSON_free(text);
    base_json_free(&made);
    return status;
}

static enum status add_turns(struct eval_documents *d, const struct eval_document_head *head,
                             const struct document_line *l, struct status_why *why)
{
    return add_made(d, head, l, eval_messages_of_turns, why);
}

static enum status add_instruction(struct eval_documents *d, const struct eval_document_head *head,
                                   const struct document_line *l, struct status_why *why)
{
    return add_made(d, head, l, eval_messages_of_instruction, why);
}

/** Two texts, one after the other, or two lists of messages. */
static enum status add_prompt(struct eval_documents *d, const struct eval_document_head *head,
                              const struct document_line *l, struct status_why *why)
{
    const cJSON *prompt = member(l, "prompt"), *completion = member(l, "completion");
    if (cJSON_IsArray(prompt) && cJSON_IsArray(completion))
        return add_made(d, head, l, eval_messages_of_prompt, why);
    if (!cJSON_IsString(prompt) || !cJSON_IsString(completion))
        return status_fail(why, STATUS_FORMAT,
                           "expected \"prompt\" and \"completion\" with a text each, or with a "
                           "list of messages each");
    return eval_documents_add_prompt(d, head, string_of(prompt), string_of(completion), why);
}

static bool has_text(const cJSON *object, const char *name)
{
    return cJSON_IsString(base_json_member(object, name));
}

/** A list whose first element is an object with one of two members. */
static bool has_objects(const cJSON *object, const char *name, const char *one, const char *other)
{
    const cJSON *list = base_json_member(object, name);
    return cJSON_IsArray(list) &&
           (base_json_member(list->child, one) || base_json_member(list->child, other));
}

static bool is_text(const cJSON *object)
{
    return has_text(object, "text");
}

static bool is_conversation(const cJSON *object)
{
    return has_objects(object, "messages", "role", "role");
}

static bool is_ids(const cJSON *object)
{
    const cJSON *ids = base_json_member(object, "ids");
    return cJSON_IsArray(ids) && cJSON_IsNumber(ids->child);
}

static bool is_turns(const cJSON *object)
{
    return has_objects(object, "conversations", "from", "role");
}

static bool is_instruction(const cJSON *object)
{
    return has_text(object, "instruction") && has_text(object, "output");
}

static bool is_prompt(const cJSON *object)
{
    return (has_text(object, "prompt") && has_text(object, "completion")) ||
           (has_objects(object, "prompt", "role", "from") &&
            has_objects(object, "completion", "role", "from"));
}

/** What a line may be, by the member that it has. */
static const struct form {
    const char *member;
    bool (*is)(const cJSON *object); /* by which documents are recognised */
    enum status (*add)(struct eval_documents *d, const struct eval_document_head *head,
                       const struct document_line *l, struct status_why *why);
} forms[] = {
    /* One of them. */
    {"text", is_text, add_text},
    {"messages", is_conversation, add_chat},
    {"ids", is_ids, add_ids},
    /* Where there is none of these: the first that is there. */
    {"conversations", is_turns, add_turns},
    {"instruction", is_instruction, add_instruction},
    {"prompt", is_prompt, add_prompt},
};
enum { N_OWN_FORMS = 3, N_FORMS = sizeof forms / sizeof *forms };

enum status eval_documents_recognise(enum eval_json *kind, const char *bytes, size_t n_bytes,
                                     struct status_why *why)
{
    cJSON *object;
    enum status status = base_json_first_object(&object, bytes, n_bytes, why);
    *kind = object ? EVAL_JSON_OTHER : EVAL_JSON_NONE;
    for (size_t i = 0; i < N_FORMS && object; i++)
        if (forms[i].is(object))
            *kind = EVAL_JSON_DOCUMENTS;
    cJSON_Delete(object);
    return status;
}

/** digits: room for an id that is a number. */
static enum status read_head(struct eval_document_head *head, char digits[32], const cJSON *object,
                             struct status_why *why)
{
    const cJSON *category = base_json_member(object, "category");
    const cJSON *id = base_json_member(object, "id");
    if (category && !cJSON_IsString(category) && !cJSON_IsNull(category))
        return status_fail(why, STATUS_FORMAT, "expected \"category\" with a text");
    head->category = string_of(category);
    head->id = string_of(id);
    if (cJSON_IsNumber(id)) {
        snprintf(digits, 32, "%.17g", id->valuedouble);
        head->id = (struct base_string){digits, strlen(digits)};
    }
    return STATUS_OK;
}

/** The form of an object, and its addition. */
static enum status add(struct eval_documents *d, const struct eval_document_head *head,
                       const struct document_line *l, struct status_why *why)
{
    const struct form *form = NULL;
    for (size_t i = 0; i < N_FORMS; i++) {
        if (!member(l, forms[i].member) || (form && i >= N_OWN_FORMS))
            continue;
        if (form)
            return status_fail(why, STATUS_FORMAT, "has \"%s\" and \"%s\"; expected one of them",
                               form->member, forms[i].member);
        form = &forms[i];
    }
    return form ? form->add(d, head, l, why)
                : status_fail(
                      why, STATUS_FORMAT,
                      "expected one of \"text\", \"messages\" and \"ids\", or what data sets "
                      "have: \"conversations\", \"instruction\" with \"output\", "
                      "\"prompt\" with \"completion\" (docs/chats.md)");
}

static enum status read_document(void *user, const struct base_json_line *line, const cJSON *object,
                                 struct status_why *why)
{
    char digits[32];
    struct eval_document_head head = {.line = line->number};
    const struct document_line l = {object, {line->from, (size_t)(line->end - line->from)}};
    enum status status = read_head(&head, digits, object, why);
    if (!status)
        status = add(user, &head, &l, why);
    if (status && line->element)
        status_context(why, "line %zu, element %zu", line->number, line->element);
    else if (status)
        status_context(why, "line %zu", line->number);
    return status;
}

/** All that are refused, in a sentence; of a single one why. */
static enum status fail_refused(const struct eval_documents *d, struct status_why *why)
{
    const struct eval_refused *r = &d->refused;
    char lines[256];
    if (r->n_of_file == 1)
        return status_fail(why, STATUS_FORMAT, "line %zu: %s", r->lines[0], r->why.text);
    eval_refused_lines(lines, sizeof lines, r);
    return status_fail(why, STATUS_FORMAT,
                       "%zu conversations are refused, in lines %s (--skip-refused leaves them "
                       "out); line %zu: %.500s",
                       r->n_of_file, lines, r->lines[0], r->why.text);
}

enum status eval_documents_add_objects(struct eval_documents *d, char *bytes, size_t n_bytes,
                                       struct status_why *why)
{
    d->refused.n_of_file = 0;
    enum status status = base_json_objects_read(bytes, n_bytes, read_document, d, why);
    if (!status && d->refused.n_of_file && !d->rules->skip_refused)
        status = fail_refused(d, why);
    if (status)
        status_context(why, "%s", d->paths[d->n_files - 1]);
    return status;
}

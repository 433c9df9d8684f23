/* Documents as JSON objects. */
#include <stdio.h>
#include <string.h>

#include "base/json/lines.h"
#include "eval/input/documents.h"

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
    return cJSON_GetObjectItemCaseSensitive(l->object, name);
}

static enum status add_text(struct eval_documents *d, const struct eval_document_head *head,
                            const struct document_line *l, struct status_why *why)
{
    if (!cJSON_IsString(member(l, "text")))
        return status_fail(why, STATUS_FORMAT, "\"text\" is no text");
    return eval_documents_add_text(d, head, string_of(member(l, "text")), why);
}

static enum status add_chat(struct eval_documents *d, const struct eval_document_head *head,
                            const struct document_line *l, struct status_why *why)
{
    return eval_documents_add_chat(d, head, l->object, l->bytes, why);
}

static enum status add_ids(struct eval_documents *d, const struct eval_document_head *head,
                           const struct document_line *l, struct status_why *why)
{
    return eval_documents_add_ids(d, head, member(l, "ids"), member(l, "mask"), why);
}

static bool is_text(const cJSON *item)
{
    return cJSON_IsString(item);
}

static bool is_conversation(const cJSON *item)
{
    return cJSON_IsArray(item) && cJSON_HasObjectItem(item->child, "role");
}

static bool is_ids(const cJSON *item)
{
    return cJSON_IsArray(item) && cJSON_IsNumber(item->child);
}

/** What a line may be, by the member that it has; one of them. */
static const struct form {
    const char *member;
    bool (*is)(const cJSON *item); /* by which documents are recognised */
    enum status (*add)(struct eval_documents *d, const struct eval_document_head *head,
                       const struct document_line *l, struct status_why *why);
} forms[] = {
    {"text", is_text, add_text},
    {"messages", is_conversation, add_chat},
    {"ids", is_ids, add_ids},
};
enum { N_FORMS = sizeof forms / sizeof *forms };

enum status eval_documents_recognise(enum eval_json *kind, const char *bytes, size_t n_bytes,
                                     struct status_why *why)
{
    cJSON *object;
    enum status status = base_json_first_object(&object, bytes, n_bytes, why);
    *kind = object ? EVAL_JSON_OTHER : EVAL_JSON_NONE;
    for (size_t i = 0; i < N_FORMS && object; i++)
        if (forms[i].is(cJSON_GetObjectItemCaseSensitive(object, forms[i].member)))
            *kind = EVAL_JSON_DOCUMENTS;
    cJSON_Delete(object);
    return status;
}

/** None of these names may be there twice: the first value counts here, the last in a template. */
static enum status check_names(const cJSON *object, struct status_why *why)
{
    static const char *const names[] = {"text", "messages", "ids", "mask", "category", "id"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = 0;
        for (const cJSON *item = object->child; item; item = item->next)
            n += strcmp(item->string, names[i]) == 0;
        if (n > 1)
            return status_fail(why, STATUS_FORMAT, "has \"%s\" twice; expected it once", names[i]);
    }
    return STATUS_OK;
}

/** digits: room for an id that is a number. */
static enum status read_head(struct eval_document_head *head, char digits[32], const cJSON *object,
                             struct status_why *why)
{
    const cJSON *category = cJSON_GetObjectItemCaseSensitive(object, "category");
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(object, "id");
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
        if (!member(l, forms[i].member))
            continue;
        if (form)
            return status_fail(why, STATUS_FORMAT, "has \"%s\" and \"%s\"; expected one of them",
                               form->member, forms[i].member);
        form = &forms[i];
    }
    return form ? form->add(d, head, l, why)
                : status_fail(why, STATUS_FORMAT,
                              "expected one of \"text\", \"messages\" and \"ids\"");
}

static enum status read_document(void *user, const struct base_json_line *line, const cJSON *object,
                                 struct status_why *why)
{
    char digits[32];
    struct eval_document_head head = {.line = line->number};
    const struct document_line l = {object, {line->from, (size_t)(line->end - line->from)}};
    enum status status = check_names(object, why);
    if (!status)
        status = read_head(&head, digits, object, why);
    if (!status)
        status = add(user, &head, &l, why);
    if (status && line->element)
        status_context(why, "line %zu, element %zu", line->number, line->element);
    else if (status)
        status_context(why, "line %zu", line->number);
    return status;
}

enum status eval_documents_add_objects(struct eval_documents *d, char *bytes, size_t n_bytes,
                                       struct status_why *why)
{
    enum status status = base_json_objects_read(bytes, n_bytes, read_document, d, why);
    if (status)
        status_context(why, "%s", d->paths[d->n_files - 1]);
    return status;
}

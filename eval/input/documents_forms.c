#include "eval/input/documents_forms.h"

#include <string.h>

#include "base/buffer.h"
#include "base/json/read.h"
#include "base/text/words.h"

/** The bytes stay what they are: what is no UTF-8 is refused where the messages are read. */
static void add_message(struct base_json *made, cJSON *messages, const char *role, const char *text)
{
    cJSON *message = base_json_object(made, messages, NULL);
    base_json_text(made, message, "role", role);
    made->failed |= !cJSON_AddStringToObject(message, "content", text);
}

/** What a template calls a role; NULL: it is not known. */
static const char *role_of(const char *name)
{
    static const struct {
        const char *names, *role;
    } roles[] = {
        {"human user", "user"},
        {"gpt assistant chatgpt model bot", "assistant"},
        {"system", "system"},
    };
    for (size_t i = 0; name && i < sizeof roles / sizeof *roles; i++)
        if (base_words_index(roles[i].names, name) >= 0)
            return roles[i].role;
    return NULL;
}

/** The turns of a list: objects with "from" and "value", or with "role" and "content". */
static enum status add_turns(struct base_json *made, cJSON *messages, const cJSON *object,
                             const char *name, struct status_why *why)
{
    const cJSON *list = base_json_member(object, name);
    size_t i = 1;
    if (!cJSON_IsArray(list) || !list->child)
        return status_fail(why, STATUS_FORMAT, "expected \"%s\" with a list of objects", name);
    for (const cJSON *turn = list->child; turn; turn = turn->next, i++) {
        bool named = base_json_member(turn, "from");
        const char *from = cJSON_GetStringValue(base_json_member(turn, named ? "from" : "role"));
        const char *text =
            cJSON_GetStringValue(base_json_member(turn, named ? "value" : "content"));
        if (!from || !text || base_json_member(turn, "tool_calls"))
            return status_fail(why, STATUS_FORMAT,
                               "element %zu of \"%s\": expected texts \"from\" and \"value\", or "
                               "\"role\" and \"content\"; what is more goes into \"messages\"",
                               i, name);
        if (!role_of(from))
            return status_fail(why, STATUS_FORMAT,
                               "element %zu of \"%s\": is from '%.40s'; expected human or user, "
                               "gpt or assistant, or system",
                               i, name, from);
        add_message(made, messages, role_of(from), text);
    }
    return STATUS_OK;
}

/** A text that may be missing; *out is then NULL, as it is of blanks. */
static enum status optional_text(const char **out, const cJSON *object, const char *name,
                                 struct status_why *why)
{
    const cJSON *item = base_json_member(object, name);
    *out = cJSON_GetStringValue(item);
    if (item && !*out && !cJSON_IsNull(item))
        return status_fail(why, STATUS_FORMAT, "expected \"%s\" with a text", name);
    if (*out && (*out)[strspn(*out, " \t\r\n")] == '\0')
        *out = NULL;
    return STATUS_OK;
}

/** Tools that such data sets have as a text would be characters to a template. */
static enum status check_tools(const cJSON *object, struct status_why *why)
{
    const char *text = NULL;
    if (cJSON_IsArray(base_json_member(object, "tools")) ||
        optional_text(&text, object, "tools", NULL) || text)
        return status_fail(why, STATUS_FORMAT,
                           "has \"tools\", which go with \"messages\" only; expected none");
    return STATUS_OK;
}

/** What stands before the turns: the message of a system. */
static enum status add_system(struct base_json *made, cJSON *messages, const cJSON *object,
                              struct status_why *why)
{
    const char *text = NULL;
    enum status status = check_tools(object, why);
    if (!status)
        status = optional_text(&text, object, "system", why);
    if (!status && text)
        add_message(made, messages, "system", text);
    return status;
}

enum status eval_messages_of_turns(struct base_json *made, cJSON *messages, const cJSON *object,
                                   struct status_why *why)
{
    enum status status = add_system(made, messages, object, why);
    return status ? status : add_turns(made, messages, object, "conversations", why);
}

enum status eval_messages_of_prompt(struct base_json *made, cJSON *messages, const cJSON *object,
                                    struct status_why *why)
{
    enum status status = add_system(made, messages, object, why);
    if (!status)
        status = add_turns(made, messages, object, "prompt", why);
    return status ? status : add_turns(made, messages, object, "completion", why);
}

/** What was said before: a list of pairs, a question and its answer each. */
static enum status add_history(struct base_json *made, cJSON *messages, const cJSON *object,
                               struct status_why *why)
{
    const cJSON *history = base_json_member(object, "history");
    if (!history || cJSON_IsNull(history))
        return STATUS_OK;
    const cJSON *pair = history->child;
    bool good = cJSON_IsArray(history);
    for (; pair && good; pair = pair->next) {
        const char *question = cJSON_GetStringValue(cJSON_GetArrayItem(pair, 0));
        const char *answer = cJSON_GetStringValue(cJSON_GetArrayItem(pair, 1));
        good = cJSON_IsArray(pair) && question && answer && cJSON_GetArraySize(pair) == 2;
        if (good) {
            add_message(made, messages, "user", question);
            add_message(made, messages, "assistant", answer);
        }
    }
    return good ? STATUS_OK
                : status_fail(why, STATUS_FORMAT,
                              "expected \"history\" with a list of pairs of texts, a question and "
                              "its answer each");
}

enum status eval_messages_of_instruction(struct base_json *made, cJSON *messages,
                                         const cJSON *object, struct status_why *why)
{
    const char *instruction = cJSON_GetStringValue(base_json_member(object, "instruction"));
    const char *answer = cJSON_GetStringValue(base_json_member(object, "output")), *input = NULL;
    if (!instruction || !answer)
        return status_fail(why, STATUS_FORMAT,
                           "expected \"instruction\" and \"output\" with a text each");
    enum status status = add_system(made, messages, object, why);
    if (!status)
        status = add_history(made, messages, object, why);
    if (!status)
        status = optional_text(&input, object, "input", why);
    if (status)
        return status;
    struct base_buffer question = {0};
    base_buffer_format(&question, "%s%s%s", instruction, input ? "\n" : "", input ? input : "");
    made->failed |= question.failed;
    if (!question.failed)
        add_message(made, messages, "user", question.data);
    base_buffer_free(&question);
    add_message(made, messages, "assistant", answer);
    return STATUS_OK;
}

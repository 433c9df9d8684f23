#include "eval/input/documents_forms.h"

#include <string.h>

#include "base/buffer.h"
#include "base/json/read.h"
#include "base/text/words.h"

/** The bytes stay what they are: what is no UTF-8 is refused where the messages are read. */
static void add_message(struct eval_messages *m, const char *role, const char *text)
{
    cJSON *message = base_json_object(m->made, m->list, NULL);
    base_json_text(m->made, message, "role", role);
    m->made->failed |= !cJSON_AddStringToObject(message, "content", text);
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
static void add_turns(struct eval_messages *m, const char *name)
{
    const cJSON *list = base_json_member(m->object, name);
    size_t i = 1;
    if (!cJSON_IsArray(list) || !list->child)
        status_keep(&m->kept, STATUS_FORMAT, "expected \"%s\" with a list of objects", name);
    for (const cJSON *turn = list ? list->child : NULL; turn && !m->kept.status;
         turn = turn->next, i++) {
        bool named = base_json_member(turn, "from");
        const char *from = cJSON_GetStringValue(base_json_member(turn, named ? "from" : "role"));
        const char *text =
            cJSON_GetStringValue(base_json_member(turn, named ? "value" : "content"));
        if (!from || !text || base_json_member(turn, "tool_calls"))
            status_keep(&m->kept, STATUS_FORMAT,
                        "element %zu of \"%s\": expected texts \"from\" and \"value\", or "
                        "\"role\" and \"content\"; what is more goes into \"messages\"",
                        i, name);
        else if (!role_of(from))
            status_keep(&m->kept, STATUS_FORMAT,
                        "element %zu of \"%s\": is from '%.40s'; expected human or user, gpt or "
                        "assistant, or system",
                        i, name, from);
        else
            add_message(m, role_of(from), text);
    }
}

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '\0';
}

/** A text that may be missing: NULL, as it is of blanks. */
static const char *optional_text(struct eval_messages *m, const char *name)
{
    const cJSON *item = base_json_member(m->object, name);
    const char *text = cJSON_GetStringValue(item);
    if (item && !text && !cJSON_IsNull(item))
        status_keep(&m->kept, STATUS_FORMAT, "expected \"%s\" with a text", name);
    return text && !is_blank(text) ? text : NULL;
}

/** What stands before the turns: the message of a system. */
static void add_system(struct eval_messages *m)
{
    const cJSON *tools = base_json_member(m->object, "tools");
    const char *text = cJSON_GetStringValue(tools);
    /* Those that such data sets have as a text would be characters to a template. */
    if (tools && !cJSON_IsNull(tools) && !(text && is_blank(text)))
        status_keep(&m->kept, STATUS_FORMAT,
                    "has \"tools\", which go with \"messages\" only; expected none");
    text = optional_text(m, "system");
    if (text)
        add_message(m, "system", text);
}

void eval_messages_of_turns(struct eval_messages *m)
{
    add_system(m);
    add_turns(m, "conversations");
}

void eval_messages_of_prompt(struct eval_messages *m)
{
    add_system(m);
    add_turns(m, "prompt");
    add_turns(m, "completion");
}

/** What was said before: a list of pairs, a question and its answer each. */
static void add_history(struct eval_messages *m)
{
    const cJSON *history = base_json_member(m->object, "history");
    if (!history || cJSON_IsNull(history))
        return;
    const cJSON *pair = history->child;
    bool good = cJSON_IsArray(history);
    for (; pair && good; pair = pair->next) {
        const char *question = cJSON_GetStringValue(cJSON_GetArrayItem(pair, 0));
        const char *answer = cJSON_GetStringValue(cJSON_GetArrayItem(pair, 1));
        good = cJSON_IsArray(pair) && question && answer && cJSON_GetArraySize(pair) == 2;
        if (good) {
            add_message(m, "user", question);
            add_message(m, "assistant", answer);
        }
    }
    if (!good)
        status_keep(&m->kept, STATUS_FORMAT,
                    "expected \"history\" with a list of pairs of texts, a question and its answer "
                    "each");
}

void eval_messages_of_instruction(struct eval_messages *m)
{
    const char *instruction = cJSON_GetStringValue(base_json_member(m->object, "instruction"));
    const char *answer = cJSON_GetStringValue(base_json_member(m->object, "output"));
    if (!instruction || !answer) {
        status_keep(&m->kept, STATUS_FORMAT,
                    "expected \"instruction\" and \"output\" with a text each");
        return;
    }
    add_system(m);
    add_history(m);
    const char *input = optional_text(m, "input");
    struct base_buffer question = {0};
    base_buffer_format(&question, "%s%s%s", instruction, input ? "\n" : "", input ? input : "");
    m->made->failed |= question.failed;
    if (!question.failed)
        add_message(m, "user", question.data);
    base_buffer_free(&question);
    add_message(m, "assistant", answer);
}

/**
 * Conversations as data sets have them, as the messages that chat templates know: ShareGPT's
 * turns, Alpaca's instructions, prompts with completions. docs/chats.md has the forms.
 */
#ifndef EVAL_INPUT_DOCUMENTS_FORMS_H
#define EVAL_INPUT_DOCUMENTS_FORMS_H

#include "base/json/build.h"
#include "base/status.h"

/** Messages in the making. What could not be allocated is made->failed. */
struct eval_messages {
    struct base_json *made;
    cJSON *list; /* of `made` */
    const cJSON *object;
    struct status_kept kept;
};
/**
 * Append the messages of an object with "conversations", with "instruction" and "output", or with
 * lists "prompt" and "completion". Keeps: STATUS_FORMAT (a member that is not what it should be, a
 * role that is not known).
 */
typedef void eval_messages_maker(struct eval_messages *messages);
eval_messages_maker eval_messages_of_turns, eval_messages_of_instruction, eval_messages_of_prompt;

#endif

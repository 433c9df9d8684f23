/**
 * Conversations as data sets have them, as the messages that chat templates know: ShareGPT's
 * turns, Alpaca's instructions, prompts with completions. docs/chats.md has the forms.
 */
#ifndef EVAL_INPUT_DOCUMENTS_FORMS_H
#define EVAL_INPUT_DOCUMENTS_FORMS_H

#include "base/json/build.h"
#include "base/status.h"

/**
 * Append messages to the list `messages` of `made`: those of an object with "conversations", with
 * "instruction" and "output", or with lists "prompt" and "completion".
 * Fails: STATUS_FORMAT (a member that is not what it should be, a role that is not known). What
 * could not be allocated is made->failed.
 */
typedef enum status eval_messages_maker(struct base_json *made, cJSON *messages,
                                        const cJSON *object, struct status_why *why);
eval_messages_maker eval_messages_of_turns, eval_messages_of_instruction, eval_messages_of_prompt;

#endif

/**
 * The prompts that a template makes of a fixed set of conversations, by which templates are
 * compared: what their texts have in common counts for nothing. data/conversations.jsonl is the
 * set.
 */
#ifndef MODEL_CHAT_PROMPTS_H
#define MODEL_CHAT_PROMPTS_H

#include <stdatomic.h>

#include "model/chat/chat.h"

/** The set as JSON lines, which the build puts into the program (cmake/embed.cmake). */
extern const struct base_string model_chat_conversations_jsonl;

/** A conversation of it. */
struct model_chat_case {
    const char *name;
    const cJSON *object;
    struct base_string bytes; /* that it was parsed from */
};

typedef enum status model_chat_visitor(void *user, const struct model_chat_case *one,
                                       struct status_why *why);
/** What a prompt, and visits of the whole set, may take. */
enum { MODEL_CHAT_PROMPT_BYTES = 1 << 20, MODEL_CHAT_SET_SECONDS = 10 /* of processor time */ };
/**
 * Hand each conversation of the set to `visit`, until one fails. cancel NULL: nothing cancels.
 * Fails: STATUS_CANCELLED, STATUS_UNSUPPORTED (beyond the time), STATUS_MEMORY, as visit.
 */
enum status model_chat_each(model_chat_visitor *visit, void *user, const atomic_bool *cancel,
                            struct status_why *why);

/** A text and its tokens, or why there are none. Release with model_chat_prompt_free. */
struct model_chat_prompt {
    enum status refused; /* STATUS_FORMAT: by the template; STATUS_UNSUPPORTED: it cannot be told */
    struct status_why why;       /* of a refusal */
    struct model_chat_text text; /* with the spans of the mask */
    struct model_tokens tokens;  /* BOS in front once, where the vocabulary asks for it */
    bool has_bos_twice;          /* the template writes BOS, and texts begin with it anyhow */
};

/**
 * Make a conversation's prompt. That a template refuses it is no failure.
 * Fails: STATUS_UNSUPPORTED (a limit of time, steps or bytes), STATUS_MEMORY, as model_tokenize.
 */
enum status model_chat_prompt(struct model_chat_prompt *out, const struct model_chat *chat,
                              const struct model_chat_case *one, enum model_chat_mask mask,
                              struct status_why *why);
/**
 * Whether the generation prompt changes a conversation's text; false also where it is refused.
 * Fails: STATUS_MEMORY.
 */
enum status model_chat_asks(bool *asks, const struct model_chat *chat,
                            const struct model_chat_case *one, struct status_why *why);
void model_chat_prompt_free(struct model_chat_prompt *prompt);

#endif

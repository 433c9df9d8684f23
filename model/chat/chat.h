/**
 * Conversations as the text that a model was trained on, rendered by its chat template, and which
 * part of that text is whose. docs/chats.md has the procedure and what a template may use.
 *
 * Templates are Jinja's. What those of models use is known, and does what jinja2 does in the
 * sandbox of Hugging Face's transformers; what is not known is refused with the template's line.
 * Memory, steps and nesting are bounded, so template and conversation may come from anywhere.
 */
#ifndef MODEL_CHAT_CHAT_H
#define MODEL_CHAT_CHAT_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/status.h"
#include "model/template/limits.h"
#include "model/tokenizer/tokenizer.h"

struct model_chat;

/**
 * Open a template.
 * text: copied. tokenizer: borrowed; its BOS and EOS are the template's bos_token and eos_token,
 * and its control tokens end turns.
 * Fails: STATUS_FORMAT (no UTF-8, a syntax error), STATUS_UNSUPPORTED (a statement that is not
 *        known, or beyond a limit), STATUS_MEMORY. Names of filters, tests, functions and methods
 *        are looked up when they are used.
 */
enum status model_chat_open(struct model_chat **out, struct base_string text,
                            const struct model_tokenizer *tokenizer,
                            const struct jinja_limits *limits, struct status_why *why);
/** Names of templates that the program has itself, for --chat-template. */
#define MODEL_CHAT_KNOWN                                                                           \
    "chatml command-r deepseek-v2 deepseek-v3 gemma granite llama2 llama3 llama4 mistral-v1 "      \
    "mistral-v3 mistral-v3-tekken mistral-v7-tekken phi3 phi4 vicuna zephyr"
/** The text of one of them; NULL: there is none of this name. */
const char *model_chat_known(const char *name);

/** NULL is allowed. */
void model_chat_close(struct model_chat *chat);

/** Whose tokens are scored. */
enum model_chat_mask {
    MODEL_CHAT_ASSISTANT, /* what the assistant wrote, the token that ends its turn included */
    MODEL_CHAT_USER,      /* the contents of the user's messages */
    MODEL_CHAT_ALL        /* everything */
};

/** Release with model_chat_text_free. */
struct model_chat_text {
    char *text;
    size_t n_bytes;
    struct jinja_span *spans; /* of the mask, in order; those of MODEL_CHAT_ALL is one */
    size_t n_spans;
    /* of a failure: */
    bool refused;  /* the template fails, or refuses it, or whose is what cannot be told */
    bool is_spent; /* a limit of time, steps or memory was met */
};

/**
 * Render a conversation: a JSON object with "messages", each with "role" and "content", and the
 * text that it was parsed from. All members are names that the template sees. Fails: STATUS_FORMAT
 * (no such object; the template fails, or refuses it; it cannot be told which part of the text is
 * whose), STATUS_UNSUPPORTED (what is not known, or beyond a limit), STATUS_MEMORY.
 */
enum status model_chat_render(const struct model_chat *chat, const cJSON *object,
                              struct base_string text, enum model_chat_mask mask,
                              struct model_chat_text *out, struct status_why *why);
void model_chat_text_free(struct model_chat_text *text);

#endif

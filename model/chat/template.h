/**
 * Chat templates: the Jinja templates of tokenizer.chat_template, which turn a conversation into
 * the text that a model was trained on.
 *
 * What the templates of models use is known, and does what jinja2 does in transformers' sandbox
 * (trim_blocks, lstrip_blocks, loop controls, generation blocks). What is not known is refused with
 * the template's line. docs/chats.md lists both. Memory, steps and nesting are bounded, so that a
 * template may come from anywhere.
 */
#ifndef MODEL_CHAT_TEMPLATE_H
#define MODEL_CHAT_TEMPLATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text/string.h"

struct model_chat_template;

/** What a parse or a rendering may take. */
struct model_chat_limits {
    size_t n_bytes; /* of memory */
    uint64_t work;  /* steps; walking through 16 bytes is about one */
};

/** 256 MiB, and 100 million steps: a few seconds. */
extern const struct model_chat_limits model_chat_default_limits;

/** Bytes from .. to-1 of a text. */
struct model_chat_span {
    size_t from, to;
};

/** What strftime_now() shows. */
struct model_chat_time {
    int year, month, day; /* 2024, 1..12, 1..31 */
};

/**
 * Parse a template. The bytes are copied.
 * Fails: STATUS_FORMAT (no UTF-8, a syntax error), STATUS_UNSUPPORTED (a statement that is not
 *        known, or beyond a limit), STATUS_MEMORY. Names of filters, tests, functions and methods
 *        are looked up when they are used.
 */
enum status model_chat_open(struct model_chat_template **out, struct base_string text,
                            const struct model_chat_limits *limits, struct status_why *why);
void model_chat_close(struct model_chat_template *t);

#endif

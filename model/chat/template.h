/**
 * A parsed template, and rendering it with values. For this folder only; chat.h is what others
 * use.
 */
#ifndef MODEL_CHAT_TEMPLATE_H
#define MODEL_CHAT_TEMPLATE_H

#include "model/chat/value/value.h"

struct model_chat_template;

/** Fails: as model_chat_open. The bytes are copied. */
enum status model_chat_template_open(struct model_chat_template **out, struct base_string text,
                                     const struct model_chat_limits *limits,
                                     struct status_why *why);
void model_chat_template_close(struct model_chat_template *t);

/** Whether it has a `generation` statement. */
bool model_chat_marks_generation(const struct model_chat_template *t);

/** Render with these names, which stay as they are; the result is in r->text and r->spans. */
enum status model_chat_template_render(const struct model_chat_template *t, struct chat_run *r,
                                       const struct chat_dict *names);

#endif

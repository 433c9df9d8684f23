/** Rendering with values of the caller's; for this folder only. */
#ifndef MODEL_CHAT_RENDER_H
#define MODEL_CHAT_RENDER_H

#include "model/chat/value.h"

const struct model_chat_limits *model_chat_limits_of(const struct model_chat_template *t);

/** Render with these names, which stay as they are; the result is in r->text and r->spans. */
enum status model_chat_render(const struct model_chat_template *t, struct chat_run *r,
                              const struct chat_dict *names);

#endif

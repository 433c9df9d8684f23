#include "model/chat/template.h"

#include <stdlib.h>

#include "base/text/utf8.h"
#include "model/chat/evaluate.h"
#include "model/chat/render.h"

const struct model_chat_limits model_chat_default_limits = {(size_t)256 << 20, 100000000};

struct model_chat_template {
    struct chat_run run; /* owns the tree */
    const struct chat_node *body;
    struct model_chat_limits limits;
};

enum status model_chat_open(struct model_chat_template **out, struct base_string text,
                            const struct model_chat_limits *limits, struct status_why *why)
{
    struct model_chat_template *t = calloc(1, sizeof *t);
    *out = NULL;
    if (!t)
        return status_fail(why, STATUS_MEMORY, "out of memory");
    t->limits = *limits;
    model_chat_begin(&t->run, limits, why);
    size_t bad = base_utf8_first_bad(text.data, text.n_bytes);
    if (bad < text.n_bytes)
        model_chat_fail(&t->run, STATUS_FORMAT,
                        "chat template: byte %zu is not part of a UTF-8 character", bad);
    const struct chat_token *tokens = t->run.status ? NULL : model_chat_lex(&t->run, text);
    t->body = tokens ? model_chat_parse(&t->run, tokens) : NULL;
    t->run.why = NULL;
    enum status status = t->run.status;
    if (status)
        model_chat_close(t);
    else
        *out = t;
    return status;
}

void model_chat_close(struct model_chat_template *t)
{
    if (t)
        model_chat_end(&t->run);
    free(t);
}

const struct model_chat_limits *model_chat_limits_of(const struct model_chat_template *t)
{
    return &t->limits;
}

enum status model_chat_render(const struct model_chat_template *t, struct chat_run *r,
                              const struct chat_dict *names)
{
    const struct chat_scope given = {.names = *names};
    struct chat_scope scope = {.around = &given};
    r->text = (struct chat_buffer){0};
    r->n_spans = 0;
    r->out = &r->text;
    model_chat_execute(r, &scope, t->body);
    r->line = 0;
    return r->status;
}

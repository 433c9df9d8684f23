#include "model/chat/template.h"

#include <stdlib.h>

#include "base/text/utf8.h"
#include "model/chat/evaluate/evaluate.h"

struct model_chat_template {
    struct chat_run run; /* owns the tree */
    const struct chat_node *body;
};

enum status model_chat_template_open(struct model_chat_template **out, struct base_string text,
                                     const struct model_chat_limits *limits, struct status_why *why)
{
    struct model_chat_template *t = calloc(1, sizeof *t);
    *out = NULL;
    if (!t)
        return status_fail(why, STATUS_MEMORY, "out of memory");
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
        model_chat_template_close(t);
    else
        *out = t;
    return status;
}

void model_chat_template_close(struct model_chat_template *t)
{
    if (t)
        model_chat_end(&t->run);
    free(t);
}

bool model_chat_marks_generation(const struct model_chat_template *t)
{
    return t->run.has_generation;
}

enum status model_chat_template_render(const struct model_chat_template *t, struct chat_run *r,
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

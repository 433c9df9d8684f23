#include "model/template/template.h"

#include <stdlib.h>

#include "base/text/utf8.h"
#include "model/template/evaluate/evaluate.h"

struct jinja_template {
    struct jinja_run run; /* owns the tree */
    const struct jinja_node *body;
};

enum status jinja_open(struct jinja_template **out, struct base_string text,
                       const struct jinja_limits *limits, struct status_why *why)
{
    struct jinja_template *t = calloc(1, sizeof *t);
    *out = NULL;
    if (!t)
        return status_fail(why, STATUS_MEMORY, "out of memory");
    jinja_begin(&t->run, limits, why);
    size_t bad = base_utf8_first_bad(text.data, text.n_bytes);
    if (bad < text.n_bytes)
        jinja_fail(&t->run, STATUS_FORMAT,
                   "chat template: byte %zu is not part of a UTF-8 character", bad);
    const struct jinja_token *tokens = t->run.status ? NULL : jinja_lex(&t->run, text);
    t->body = tokens ? jinja_parse(&t->run, tokens) : NULL;
    t->run.why = NULL;
    enum status status = t->run.status;
    if (status)
        jinja_close(t);
    else
        *out = t;
    return status;
}

void jinja_close(struct jinja_template *t)
{
    if (t)
        jinja_end(&t->run);
    free(t);
}

bool jinja_marks_generation(const struct jinja_template *t)
{
    return t->run.has_generation;
}

enum status jinja_render(const struct jinja_template *t, struct jinja_run *r,
                         const struct jinja_dict *names)
{
    const struct jinja_scope given = {.names = *names};
    struct jinja_scope scope = {.around = &given};
    r->text = (struct jinja_buffer){0};
    r->n_spans = 0;
    r->out = &r->text;
    jinja_execute(r, &scope, t->body);
    r->line = 0;
    return r->status;
}

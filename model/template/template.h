/**
 * A parsed template, and rendering it with values. The memory of a rendering is its run's
 * (template/value/run.h).
 */
#ifndef TEMPLATE_TEMPLATE_H
#define TEMPLATE_TEMPLATE_H

#include "model/template/value/value.h"

struct jinja_template;

/** Fails: STATUS_FORMAT (no UTF-8, a syntax error), STATUS_UNSUPPORTED (a statement that is not
 * known, or beyond a limit), STATUS_MEMORY. The bytes are copied. */
enum status jinja_open(struct jinja_template **out, struct base_string text,
                       const struct jinja_limits *limits, struct status_why *why);
void jinja_close(struct jinja_template *t);

/** Whether it has a `generation` statement. */
bool jinja_marks_generation(const struct jinja_template *t);

/** Render with these names, which stay as they are; the result is in r->text and r->spans. */
enum status jinja_render(const struct jinja_template *t, struct jinja_run *r,
                         const struct jinja_dict *names);

#endif

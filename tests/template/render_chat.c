/*
 * Renders templates for a script: each line of standard input is {"template": ..., "names": {...}},
 * each line of standard output {"text": ..., "spans": [[from, to], ...]} or {"error": ...}.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/json/lines.h"
#include "model/template/template.h"
#include "model/template/value/value_json.h"

static struct jinja_value text_of(struct base_string s)
{
    return (struct jinja_value){.kind = JINJA_STRING, .string = s};
}

static struct jinja_value spans_of(struct jinja_run *r)
{
    struct jinja_items spans = {0};
    for (size_t i = 0; i < r->n_spans; i++) {
        struct jinja_items ends = {0};
        jinja_append(r, &ends, jinja_int((int64_t)r->spans[i].from));
        jinja_append(r, &ends, jinja_int((int64_t)r->spans[i].to));
        jinja_append(r, &spans, jinja_of_items(&ends));
    }
    return jinja_of_items(&spans);
}

static void print_member(struct jinja_run *r, const char *name, struct jinja_value value)
{
    struct jinja_buffer out = {0};
    const struct jinja_json_style style = {.ascii = true, .item = {", ", 2}, .key = {": ", 2}};
    jinja_put_json(r, &out, &value, &style);
    printf("\"%s\": %.*s", name, (int)out.n_bytes, out.data);
}

static enum status render_line(void *user, const struct base_json_line *line, const cJSON *object,
                               struct status_why *why)
{
    (void)user;
    struct jinja_run r, failed;
    struct status_why reason = {""};
    struct jinja_template *t = NULL;
    jinja_begin(&r, &jinja_default_limits, &reason);
    r.time = (struct jinja_date){2024, 7, 26};
    struct base_string bytes = {line->from, (size_t)(line->end - line->from)};
    struct jinja_value value = jinja_of_json(&r, object, bytes);
    if (r.status)
        return status_fail(why, STATUS_FORMAT, "line %zu: %s", line->number, reason.text);
    const struct jinja_value *text = jinja_dict_find(&r, value.dict, "template");
    const struct jinja_value *names = jinja_dict_find(&r, value.dict, "names");
    enum status status = jinja_open(&t, text->string, &jinja_default_limits, &reason);
    if (!status)
        status = jinja_render(t, &r, names->dict);
    putchar('{');
    if (status) {
        jinja_begin(&failed, &jinja_default_limits, NULL);
        print_member(&failed, "error",
                     text_of((struct base_string){reason.text, strlen(reason.text)}));
        jinja_end(&failed);
    } else {
        print_member(&r, "text", jinja_of_buffer(&r.text));
        printf(", ");
        print_member(&r, "spans", spans_of(&r));
    }
    puts("}");
    jinja_close(t);
    jinja_end(&r);
    return STATUS_OK;
}

int main(void)
{
    struct status_why why = {""};
    size_t n = 0, capacity = 1 << 20, got;
    char *bytes = malloc(capacity);
    while (bytes && (got = fread(bytes + n, 1, capacity - n, stdin)) > 0) {
        n += got;
        if (n == capacity)
            bytes = realloc(bytes, capacity *= 2);
    }
    if (!bytes || base_json_lines_read(bytes, n, render_line, NULL, &why)) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    free(bytes);
    return 0;
}

/*
 * Renders templates for a script: each line of standard input is {"template": ..., "names": {...}},
 * each line of standard output {"text": ..., "spans": [[from, to], ...]} or {"error": ...}.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/json/lines.h"
#include "model/chat/template.h"
#include "model/chat/value/json.h"

static struct chat_value text_of(struct base_string s)
{
    return (struct chat_value){.kind = CHAT_STRING, .string = s};
}

static struct chat_value spans_of(struct chat_run *r)
{
    struct chat_items spans = {0};
    for (size_t i = 0; i < r->n_spans; i++) {
        struct chat_items ends = {0};
        model_chat_append(r, &ends, chat_int((int64_t)r->spans[i].from));
        model_chat_append(r, &ends, chat_int((int64_t)r->spans[i].to));
        model_chat_append(r, &spans, chat_of_items(&ends));
    }
    return chat_of_items(&spans);
}

static void print_member(struct chat_run *r, const char *name, struct chat_value value)
{
    struct chat_buffer out = {0};
    const struct chat_json_style style = {.ascii = true, .item = {", ", 2}, .key = {": ", 2}};
    model_chat_put_json(r, &out, &value, &style);
    printf("\"%s\": %.*s", name, (int)out.n_bytes, out.data);
}

static enum status render_line(void *user, const struct base_json_line *line, const cJSON *object,
                               struct status_why *why)
{
    (void)user, (void)object;
    struct chat_run r, failed;
    struct status_why reason = {""};
    struct model_chat_template *t = NULL;
    model_chat_begin(&r, &model_chat_default_limits, &reason);
    r.time = (struct model_chat_time){2024, 7, 26};
    struct base_string bytes = {line->from, (size_t)(line->end - line->from)};
    struct chat_value value = model_chat_parse_json(&r, bytes);
    if (r.status)
        return status_fail(why, STATUS_FORMAT, "line %zu: %s", line->number, reason.text);
    const struct chat_value *text = model_chat_dict_find(&r, value.dict, "template");
    const struct chat_value *names = model_chat_dict_find(&r, value.dict, "names");
    enum status status =
        model_chat_template_open(&t, text->string, &model_chat_default_limits, &reason);
    if (!status)
        status = model_chat_template_render(t, &r, names->dict);
    putchar('{');
    if (status) {
        model_chat_begin(&failed, &model_chat_default_limits, NULL);
        print_member(&failed, "error",
                     text_of((struct base_string){reason.text, strlen(reason.text)}));
        model_chat_end(&failed);
    } else {
        print_member(&r, "text", chat_of_buffer(&r.text));
        printf(", ");
        print_member(&r, "spans", spans_of(&r));
    }
    puts("}");
    model_chat_template_close(t);
    model_chat_end(&r);
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

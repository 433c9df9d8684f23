#include "base/json/lines.h"

#include <string.h>

static bool only_blanks(const char *at, const char *end)
{
    while (at < end && base_json_is_blank(*at))
        at++;
    return at == end;
}

static enum status read_line(const struct base_json_line *l, base_json_line_reader *read,
                             void *user, struct status_why *why)
{
    if (base_json_has_nul(l->from, (size_t)(l->end - l->from)))
        return status_fail(why, STATUS_FORMAT, "line %zu: has the character U+0000", l->number);
    cJSON *object;
    size_t n_read;
    enum status status =
        base_json_parse(&object, l->from, (size_t)(l->end - l->from), &n_read, why);
    if (status && status != STATUS_FORMAT)
        status_context(why, "line %zu", l->number);
    else if (!cJSON_IsObject(object) || !only_blanks(l->from + n_read, l->end))
        status = status_fail(why, STATUS_FORMAT, "line %zu: no JSON object", l->number);
    else
        status = read(user, l, object, why);
    cJSON_Delete(object);
    return status;
}

enum status base_json_lines_read(char *bytes, size_t n_bytes, base_json_line_reader *read,
                                 void *user, struct status_why *why)
{
    enum status status = STATUS_OK;
    char *end = bytes + n_bytes, *next;
    size_t number = 1;
    for (char *at = bytes; at < end && !status; at = next, number++) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        struct base_json_line line = {at, newline ? newline : end, number};
        next = newline ? newline + 1 : end;
        if (!only_blanks(line.from, line.end))
            status = read_line(&line, read, user, why);
    }
    return status;
}

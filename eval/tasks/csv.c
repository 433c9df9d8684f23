#include "eval/tasks/csv.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/**
 * A quoted field, from its quote on: doubled quotes become one, in place.
 * Fails: STATUS_FORMAT (the text ends inside it, or something follows the closing quote).
 */
static enum status read_quoted(struct eval_csv *r, struct base_string *field,
                               struct status_why *why)
{
    size_t line = r->line;
    char *to = ++r->at;
    *field = (struct base_string){to, 0};
    for (; r->at < r->end; r->at++) {
        if (*r->at == '"') {
            if (r->at + 1 == r->end || r->at[1] != '"')
                break;
            r->at++;
        }
        r->line += *r->at == '\n';
        *to++ = *r->at;
    }
    if (r->at == r->end)
        return status_fail(why, STATUS_FORMAT, "line %zu: a quoted field does not end", line);
    field->n_bytes = (size_t)(to - field->data);
    r->at++;
    if (r->at < r->end && *r->at == '\r' && (r->at + 1 == r->end || r->at[1] == '\n'))
        r->at++;
    if (r->at < r->end && *r->at != ',' && *r->at != '\n')
        return status_fail(why, STATUS_FORMAT,
                           "line %zu: '%c' after a quoted field, expected a comma or the end",
                           r->line, *r->at >= ' ' && *r->at <= '~' ? *r->at : '?');
    return STATUS_OK;
}

static enum status read_field(struct eval_csv *r, struct base_string *field, struct status_why *why)
{
    if (r->at < r->end && *r->at == '"')
        return read_quoted(r, field, why);
    *field = (struct base_string){r->at, 0};
    while (r->at < r->end && *r->at != ',' && *r->at != '\n')
        r->at++;
    field->n_bytes = (size_t)(r->at - field->data);
    if (field->n_bytes && r->at[-1] == '\r' && (r->at == r->end || *r->at == '\n'))
        field->n_bytes--;
    return STATUS_OK;
}

enum status eval_csv_row(struct eval_csv *r, struct base_string *fields, size_t most, size_t *n,
                         struct status_why *why)
{
    *n = 0;
    struct base_string field;
    bool ends = false;
    for (; !ends; r->at += !ends) {
        enum status status = read_field(r, &field, why);
        if (status)
            return status;
        if (*n < most)
            fields[*n] = field;
        ++*n;
        ends = r->at == r->end || *r->at == '\n';
    }
    if (*n == 1 && field.n_bytes == 0)
        *n = 0;
    if (r->at < r->end) {
        r->at++;
        r->line++;
    }
    return STATUS_OK;
}

bool eval_csv_is_head(struct base_string last)
{
    return last.n_bytes == 6 && strncasecmp(last.data, "answer", 6) == 0;
}

struct base_string eval_csv_trim(struct base_string s)
{
    while (s.n_bytes && memchr(" \t", *s.data, 2))
        s.data++, s.n_bytes--;
    while (s.n_bytes && memchr(" \t\r", s.data[s.n_bytes - 1], 3))
        s.n_bytes--;
    return s;
}

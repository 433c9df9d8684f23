/* Winogrande: CSV of index, sentence with a blank, two choices, answer. */
#include <string.h>
#include <strings.h>

#include "eval/llama_compat.h"
#include "eval/tasks/dataset.h"

enum { N_FIELDS = EVAL_COMPAT_ROW_FIELDS, SENTENCE = 1, CHOICE = 2, ANSWER = 4, N_CHOICES = 2 };

struct reader {
    char *at, *end;
    size_t line; /* of `at`, from 1 */
};

/**
 * A quoted field, from its quote on: doubled quotes become one, in place.
 * Fails: STATUS_FORMAT (the text ends inside it, or something follows the closing quote).
 */
static enum status read_quoted(struct reader *r, struct base_string *field, struct status_why *why)
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

static enum status read_field(struct reader *r, struct base_string *field, struct status_why *why)
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

/** A row's fields; *n_fields is 0 for an empty line. The row's newline is passed over. */
static enum status read_row(struct reader *r, struct base_string fields[N_FIELDS], size_t *n_fields,
                            struct status_why *why)
{
    size_t line = r->line, n = 0;
    for (;; r->at++) {
        struct base_string field;
        enum status status = read_field(r, &field, why);
        if (status)
            return status;
        if (n < N_FIELDS)
            fields[n] = field;
        n++;
        if (r->at == r->end || *r->at == '\n')
            break;
    }
    *n_fields = n == 1 && fields[0].n_bytes == 0 ? 0 : n;
    if (r->at < r->end) {
        r->at++;
        r->line++;
    }
    if (*n_fields != 0 && n != N_FIELDS)
        return status_fail(why, STATUS_FORMAT,
                           "line %zu: %zu field%s, expected index,sentence,choice,choice,answer",
                           line, n, status_plural(n));
    return STATUS_OK;
}

static enum status add_row(struct eval_dataset *d, const struct base_string fields[N_FIELDS],
                           size_t line, struct status_why *why)
{
    struct base_string answer = fields[ANSWER];
    struct eval_question question = {.line = line};
    enum status status = eval_question_split(&question, fields[SENTENCE], why);
    if (status)
        return status;
    while (answer.n_bytes && memchr(" \t", *answer.data, 2))
        answer.data++, answer.n_bytes--;
    while (answer.n_bytes && memchr(" \t\r", answer.data[answer.n_bytes - 1], 3))
        answer.n_bytes--;
    if (answer.n_bytes != 1 || (*answer.data != '1' && *answer.data != '2'))
        return status_fail(why, STATUS_FORMAT, "line %zu: the answer is '%.*s', expected 1 or 2",
                           line, (int)(answer.n_bytes < 40 ? answer.n_bytes : 40), answer.data);
    question.answer = (size_t)(*answer.data - '1');
    status = eval_dataset_add(d, &question, why);
    for (size_t i = 0; i < N_CHOICES && !status; i++)
        status = eval_dataset_add_choice(d, fields[CHOICE + i], why);
    return status;
}

/** Rows as llama-perplexity reads them; those that are no task are passed over, as it does. */
static enum status read_as_llama(struct eval_dataset *d, char *bytes, size_t n_bytes,
                                 struct status_why *why)
{
    struct eval_compat_rows rows = eval_compat_winogrande_rows(bytes, n_bytes);
    struct base_string fields[N_FIELDS];
    while (eval_compat_winogrande_next(&rows, fields))
        if (add_row(d, fields, rows.line, NULL) == STATUS_MEMORY)
            return status_fail(why, STATUS_MEMORY, "no memory for the tasks");
    return STATUS_OK;
}

/** Whether a row is the head of a table: its last field is called "answer". */
static bool is_head(const struct base_string fields[N_FIELDS])
{
    struct base_string answer = fields[ANSWER];
    return answer.n_bytes == 6 && strncasecmp(answer.data, "answer", 6) == 0;
}

static enum status read_rows(struct eval_dataset *d, struct reader *r, struct status_why *why)
{
    enum status status = STATUS_OK;
    bool first = true;
    while (r->at < r->end && !status) {
        struct base_string fields[N_FIELDS];
        size_t n_fields = 0, line = r->line;
        status = read_row(r, fields, &n_fields, why);
        if (!status && n_fields && !(first && is_head(fields)))
            status = add_row(d, fields, line, why);
        first = first && n_fields == 0;
    }
    return status;
}

enum status eval_dataset_winogrande(struct eval_dataset *out, char *bytes, size_t n_bytes,
                                    bool llama_compat, struct status_why *why)
{
    *out = (struct eval_dataset){0};
    struct reader r = {bytes, bytes + n_bytes, 1};
    enum status status =
        llama_compat ? read_as_llama(out, bytes, n_bytes, why) : read_rows(out, &r, why);
    return eval_dataset_end(out, status, "rows", why);
}

/* HellaSwag: context, index of the right ending, four endings; a line each. */
#include <string.h>

#include "eval/tasks/dataset.h"

enum { N_LINES = 6, N_ENDINGS = 4, FIRST_ENDING = 2 };

/** The lines of a text; no line is empty before the last that is not. */
struct lines {
    const char *at, *end;
    size_t number; /* of the line returned last, from 1 */
};

static struct lines lines_of(const char *bytes, size_t n_bytes)
{
    const char *end = bytes + n_bytes;
    while (end > bytes && (end[-1] == '\n' || end[-1] == '\r'))
        end--;
    return (struct lines){bytes, end, 0};
}

static bool next_line(struct lines *l, struct base_string *line)
{
    if (l->at == l->end)
        return false;
    const char *newline = memchr(l->at, '\n', (size_t)(l->end - l->at));
    const char *end = newline ? newline : l->end;
    *line = (struct base_string){l->at, (size_t)(end - l->at)};
    if (line->n_bytes > 0 && line->data[line->n_bytes - 1] == '\r')
        line->n_bytes--;
    l->at = newline ? newline + 1 : l->end;
    l->number++;
    return true;
}

static enum status read_task(struct eval_dataset *d, struct lines *l,
                             const struct base_string *context, struct status_why *why)
{
    struct base_string lines[N_LINES] = {*context};
    struct eval_question question = {.line = l->number, .text = *context};
    for (size_t i = 0; i < N_LINES; i++) {
        if (i > 0 && !next_line(l, &lines[i]))
            return status_fail(why, STATUS_FORMAT,
                               "line %zu: the text ends after %zu of the %d lines of a task",
                               l->number, i, N_LINES);
        if (lines[i].n_bytes == 0)
            return status_fail(why, STATUS_FORMAT, "line %zu: empty, expected %s", l->number,
                               i == 0   ? "a context"
                               : i == 1 ? "an index"
                                        : "an ending");
        if (i == 1 && (lines[i].n_bytes != 1 || *lines[i].data < '0' || *lines[i].data > '3'))
            return status_fail(why, STATUS_FORMAT,
                               "line %zu: '%.*s' is not the index of an ending, expected 0 to 3",
                               l->number, (int)(lines[i].n_bytes < 40 ? lines[i].n_bytes : 40),
                               lines[i].data);
    }
    question.answer = (size_t)(*lines[1].data - '0');
    enum status status = eval_dataset_add(d, &question, why);
    for (size_t i = 0; i < N_ENDINGS && !status; i++)
        status = eval_dataset_add_choice(d, lines[FIRST_ENDING + i], why);
    return status;
}

enum status eval_dataset_hellaswag(struct eval_dataset *out, const char *bytes, size_t n_bytes,
                                   struct status_why *why)
{
    *out = (struct eval_dataset){0};
    struct lines lines = lines_of(bytes, n_bytes);
    struct base_string context;
    enum status status = STATUS_OK;
    while (!status && next_line(&lines, &context))
        status = read_task(out, &lines, &context, why);
    return eval_dataset_end(out, status, "lines", why);
}

/* Winogrande: CSV of index, sentence with a blank, two choices, answer. */
#include "eval/llama_compat.h"
#include "eval/tasks/csv.h"
#include "eval/tasks/dataset.h"

enum { N_FIELDS = EVAL_COMPAT_ROW_FIELDS, SENTENCE = 1, CHOICE = 2, ANSWER = 4, N_CHOICES = 2 };

static enum status add_row(struct eval_dataset *d, const struct base_string fields[N_FIELDS],
                           size_t line, struct status_why *why)
{
    struct base_string answer = eval_csv_trim(fields[ANSWER]);
    struct eval_question question = {.line = line};
    enum status status = eval_question_split(&question, fields[SENTENCE], why);
    if (status)
        return status;
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

static enum status read_rows(struct eval_dataset *d, struct eval_csv *r, struct status_why *why)
{
    enum status status = STATUS_OK;
    bool first = true;
    while (r->at < r->end && !status) {
        struct base_string fields[N_FIELDS];
        size_t n_fields = 0, line = r->line;
        status = eval_csv_row(r, fields, N_FIELDS, &n_fields, why);
        if (!status && n_fields && n_fields != N_FIELDS)
            status = status_fail(why, STATUS_FORMAT,
                                 "line %zu: %zu field%s, expected index,sentence,choice,choice,"
                                 "answer",
                                 line, n_fields, status_plural(n_fields));
        for (size_t i = CHOICE; i < ANSWER && !status && n_fields == N_FIELDS; i++)
            if (eval_csv_trim(fields[i]).n_bytes == 0)
                status = status_fail(why, STATUS_FORMAT, "line %zu: choice %zu is empty", line,
                                     i - CHOICE + 1);
        if (!status && n_fields && !(first && eval_csv_is_head(fields[ANSWER])))
            status = add_row(d, fields, line, why);
        first = first && n_fields == 0;
    }
    return status;
}

enum status eval_dataset_winogrande(struct eval_dataset *out, char *bytes, size_t n_bytes,
                                    bool llama_compat, struct status_why *why)
{
    *out = (struct eval_dataset){0};
    struct eval_csv r = {bytes, bytes + n_bytes, 1};
    enum status status =
        llama_compat ? read_as_llama(out, bytes, n_bytes, why) : read_rows(out, &r, why);
    return eval_dataset_end(out, status, "rows", why);
}

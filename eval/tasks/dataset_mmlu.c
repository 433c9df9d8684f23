/* MMLU as it is published: CSV of question, four answers, the letter of the right one. */
#include "eval/tasks/csv.h"
#include "eval/tasks/dataset.h"

enum { N_CHOICES = 4, N_FIELDS = N_CHOICES + 2, ANSWER = N_FIELDS - 1 };

static enum status add_row(struct eval_dataset *d, const struct base_string fields[N_FIELDS],
                           size_t line, struct status_why *why)
{
    struct base_string answer = eval_csv_trim(fields[ANSWER]);
    struct eval_question question = {.line = line, .text = fields[0]};
    if (answer.n_bytes != 1 || *answer.data < 'A' || *answer.data >= 'A' + N_CHOICES)
        return status_fail(why, STATUS_FORMAT, "line %zu: the answer is '%.*s', expected A to D",
                           line, (int)(answer.n_bytes < 40 ? answer.n_bytes : 40), answer.data);
    question.answer = (size_t)(*answer.data - 'A');
    enum status status = eval_dataset_add(d, &question, why);
    for (size_t i = 0; i <= N_CHOICES && !status; i++) {
        if (fields[i].n_bytes == 0)
            return status_fail(why, STATUS_FORMAT, "line %zu: field %zu is empty, expected %s",
                               line, i + 1, i ? "an answer" : "the question");
        if (i)
            status = eval_dataset_add_choice(d, fields[i], why);
    }
    return status;
}

enum status eval_dataset_mmlu(struct eval_dataset *out, char *bytes, size_t n_bytes,
                              struct status_why *why)
{
    *out = (struct eval_dataset){0};
    struct eval_csv csv = {bytes, bytes + n_bytes, 1};
    struct base_string fields[N_FIELDS];
    enum status status = STATUS_OK;
    bool first = true;
    while (csv.at < csv.end && !status) {
        size_t line = csv.line, n = 0;
        status = eval_csv_row(&csv, fields, N_FIELDS, &n, why);
        if (!status && n && n != N_FIELDS)
            status =
                status_fail(why, STATUS_FORMAT,
                            "line %zu: %zu field%s of CSV, expected question,A,B,C,D,answer as "
                            "MMLU has them; or JSON (docs/tasks.md), or llama-perplexity's "
                            "binary file",
                            line, n, status_plural(n));
        if (!status && n && !(first && eval_csv_is_head(fields[ANSWER])))
            status = add_row(out, fields, line, why);
        first = first && n == 0;
    }
    return eval_dataset_end(out, status, "rows", why);
}

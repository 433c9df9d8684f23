/* Multiple choice: llama-perplexity's binary file, little-endian. */
#include <stdint.h>
#include <string.h>

#include "eval/input/dataset.h"

/* A choice takes at least its length, a byte and a label. */
enum { WORD = 4, MIN_CHOICE_BYTES = 2 * WORD + 1 };

struct reader {
    const char *bytes;
    size_t at, n_bytes;
    size_t task; /* from 0 */
};

static enum status read_word(struct reader *r, uint32_t *word, const char *what,
                             struct status_why *why)
{
    if (r->n_bytes - r->at < WORD)
        return status_fail(why, STATUS_FORMAT,
                           "task %zu: %s at byte %zu leaves the file of %zu bytes", r->task, what,
                           r->at, r->n_bytes);
    const unsigned char *b = (const unsigned char *)r->bytes + r->at;
    *word = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    r->at += WORD;
    return STATUS_OK;
}

static enum status read_string(struct reader *r, struct base_string *s, const char *what,
                               struct status_why *why)
{
    uint32_t n = 0;
    enum status status = read_word(r, &n, what, why);
    if (status)
        return status;
    if (n > r->n_bytes - r->at)
        return status_fail(why, STATUS_FORMAT,
                           "task %zu: %s of %u bytes at byte %zu leaves the file of %zu bytes",
                           r->task, what, n, r->at, r->n_bytes);
    if (n == 0)
        return status_fail(why, STATUS_FORMAT, "task %zu: %s at byte %zu is empty", r->task, what,
                           r->at);
    *s = (struct base_string){r->bytes + r->at, n};
    r->at += n;
    return STATUS_OK;
}

/** The labels of the last question's answers: one of them is 1, the others 0. */
static enum status read_labels(struct reader *r, struct eval_question *q, struct status_why *why)
{
    size_t n_right = 0;
    for (size_t i = 0; i < q->n_choices; i++) {
        uint32_t label = 0;
        enum status status = read_word(r, &label, "a label", why);
        if (status)
            return status;
        if (label > 1)
            return status_fail(why, STATUS_FORMAT,
                               "task %zu: label %d of answer %zu, expected 0 "
                               "or 1",
                               r->task, (int32_t)label, i);
        n_right += label;
        if (label)
            q->answer = i;
    }
    if (n_right != 1)
        return status_fail(why, STATUS_FORMAT,
                           "task %zu: %zu of %zu answers are marked right, expected one", r->task,
                           n_right, q->n_choices);
    return STATUS_OK;
}

static enum status read_task(struct eval_dataset *d, struct reader *r, struct status_why *why)
{
    struct eval_question question = {0};
    uint32_t n = 0;
    enum status status = read_string(r, &question.text, "the question", why);
    if (!status)
        status = read_word(r, &n, "the number of answers", why);
    if (status)
        return status;
    if (n < 2 || n > (r->n_bytes - r->at) / MIN_CHOICE_BYTES)
        return status_fail(why, STATUS_FORMAT,
                           "task %zu: %u answer%s, expected 2 or more that fit the file", r->task,
                           n, status_plural(n));
    /* Else tasks that all point to the same bytes could take memory without bounds. */
    if (n > r->n_bytes / MIN_CHOICE_BYTES - d->n_choices)
        return status_fail(why, STATUS_FORMAT, "task %zu: overlaps others", r->task);
    status = eval_dataset_add(d, &question, why);
    for (uint32_t i = 0; i < n && !status; i++) {
        struct base_string answer;
        status = read_string(r, &answer, "an answer", why);
        if (!status)
            status = eval_dataset_add_choice(d, answer, why);
    }
    return status ? status : read_labels(r, &d->questions[d->n_questions - 1], why);
}

enum status eval_dataset_multiple_choice(struct eval_dataset *out, const char *bytes,
                                         size_t n_bytes, struct status_why *why)
{
    *out = (struct eval_dataset){0};
    struct reader directory = {.bytes = bytes, .n_bytes = n_bytes};
    uint32_t n = 0;
    enum status status =
        n_bytes < WORD
            ? status_fail(why, STATUS_FORMAT,
                          "%zu bytes, expected a number of tasks in the first %d", n_bytes, WORD)
            : read_word(&directory, &n, "the number of tasks", why);
    if (!status && (n == 0 || n > n_bytes / WORD - 1))
        status = status_fail(why, STATUS_FORMAT,
                             "%u task%s, expected 1 or more whose positions fit in %zu bytes", n,
                             status_plural(n), n_bytes);
    for (uint32_t i = 0; i < n && !status; i++) {
        uint32_t position = 0;
        directory.task = i;
        status = read_word(&directory, &position, "its position", why);
        struct reader r = {bytes, position, n_bytes, i};
        if (!status && (position < WORD + (size_t)n * WORD || position >= n_bytes))
            status = status_fail(why, STATUS_FORMAT,
                                 "task %u: position %u, expected %zu to %zu, after the positions "
                                 "and in the file",
                                 i, position, WORD + (size_t)n * WORD, n_bytes - 1);
        if (!status)
            status = read_task(out, &r, why);
    }
    if (status)
        eval_dataset_free(out);
    return status;
}

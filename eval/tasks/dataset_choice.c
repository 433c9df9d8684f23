/* Multiple choice: llama-perplexity's binary file, little-endian. */
#include <inttypes.h>
#include <stdint.h>

#include "eval/tasks/dataset.h"
#include "gguf/cursor.h"

/* A choice takes at least its length, a byte and a label. */
enum { WORD = 4, MIN_CHOICE_BYTES = 2 * WORD + 1 };

static enum status read_string(struct gguf_cursor *c, struct base_string *s, const char *what,
                               struct status_why *why)
{
    uint32_t n = 0;
    const uint8_t *bytes = NULL;
    enum status status = gguf_cursor_u32(c, &n, what, why);
    if (!status)
        status = gguf_cursor_take(c, n, &bytes, what, why);
    if (!status && n == 0)
        status = status_fail(why, STATUS_FORMAT, "%s at byte %" PRIu64 " is empty", what, c->at);
    *s = (struct base_string){(const char *)bytes, n};
    return status;
}

/** The labels of a question's answers: one of them is 1, the others 0. */
static enum status read_labels(struct gguf_cursor *c, struct eval_question *q,
                               struct status_why *why)
{
    size_t n_right = 0;
    for (size_t i = 0; i < q->n_choices; i++) {
        uint32_t label = 0;
        enum status status = gguf_cursor_u32(c, &label, "a label", why);
        if (status)
            return status;
        if (label > 1)
            return status_fail(why, STATUS_FORMAT, "label %d of answer %zu, expected 0 or 1",
                               (int32_t)label, i);
        n_right += label;
        if (label)
            q->answer = i;
    }
    if (n_right != 1)
        return status_fail(why, STATUS_FORMAT, "%zu of %zu answers are marked right, expected one",
                           n_right, q->n_choices);
    return STATUS_OK;
}

static enum status read_task(struct eval_dataset *d, struct gguf_cursor c, struct status_why *why)
{
    struct eval_question question = {0};
    uint32_t n = 0;
    enum status status = read_string(&c, &question.text, "the question", why);
    if (!status)
        status = gguf_cursor_u32(&c, &n, "the number of answers", why);
    if (status)
        return status;
    if (n < 2 || n > gguf_cursor_left(&c) / MIN_CHOICE_BYTES)
        return status_fail(why, STATUS_FORMAT, "%u answer%s, expected 2 or more that fit the file",
                           n, status_plural(n));
    /* Else tasks that all point to the same bytes could take memory without bounds. */
    if (n > c.n_bytes / MIN_CHOICE_BYTES - d->n_choices)
        return status_fail(why, STATUS_FORMAT, "overlaps others");
    status = eval_dataset_add(d, &question, why);
    for (uint32_t i = 0; i < n && !status; i++) {
        struct base_string answer;
        status = read_string(&c, &answer, "an answer", why);
        if (!status)
            status = eval_dataset_add_choice(d, answer, why);
    }
    return status ? status : read_labels(&c, &d->questions[d->n_questions - 1], why);
}

/** The next task of the directory. tasks_at: the offset after the directory. */
static enum status follow(struct eval_dataset *d, struct gguf_cursor *directory, uint64_t tasks_at,
                          struct status_why *why)
{
    uint32_t offset = 0;
    struct gguf_cursor c = *directory;
    enum status status = gguf_cursor_u32(directory, &offset, "its position", why);
    if (!status && (offset < tasks_at || offset >= c.n_bytes))
        status = status_fail(why, STATUS_FORMAT,
                             "position %u, expected %" PRIu64 " to %" PRIu64
                             ", after the positions and in the file",
                             offset, tasks_at, c.n_bytes - 1);
    c.at = offset;
    return status ? status : read_task(d, c, why);
}

enum status eval_dataset_multiple_choice(struct eval_dataset *out, const char *bytes,
                                         size_t n_bytes, struct status_why *why)
{
    *out = (struct eval_dataset){0};
    struct gguf_cursor directory = {(const uint8_t *)bytes, n_bytes, 0};
    uint32_t n = 0;
    enum status status = gguf_cursor_u32(&directory, &n, "the number of tasks", why);
    if (!status && (n == 0 || n > n_bytes / WORD - 1))
        status = status_fail(why, STATUS_FORMAT,
                             "%u task%s, expected 1 or more whose positions fit in %zu bytes", n,
                             status_plural(n), n_bytes);
    for (uint32_t i = 0; i < n && !status; i++) {
        status = follow(out, &directory, WORD + (uint64_t)n * WORD, why);
        if (status)
            status_context(why, "task %u", i);
    }
    if (status)
        eval_dataset_free(out);
    return status;
}

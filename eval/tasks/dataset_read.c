/* Which format a file of tasks has. */
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/content/text.h"
#include "eval/tasks/dataset.h"

/** A binary file counts its tasks and their answers in 32 bits, so that it has zeros soon. */
static bool is_text(const char *bytes, size_t n_bytes)
{
    const size_t most = 4096;
    return !memchr(bytes, '\0', base_min(n_bytes, most));
}

enum status eval_dataset_read(struct eval_dataset *out, const struct eval_dataset_options *options,
                              char *bytes, size_t n_bytes, struct status_why *why)
{
    *out = (struct eval_dataset){0};
    if (eval_dataset_is_json(bytes, n_bytes))
        return eval_dataset_json(out, options, bytes, n_bytes, why);
    if (options->labels.data || options->kind == EVAL_MC2)
        return status_fail(why, STATUS_FORMAT, "is no JSON; %s",
                           options->kind == EVAL_MC2
                               ? "--mc2 takes JSON objects with \"mc2_targets\""
                               : "--task-labels goes with JSON objects without answers");
    if (options->kind == EVAL_HELLASWAG || options->kind == EVAL_WINOGRANDE) {
        enum status status = base_text_check(bytes, n_bytes, why);
        if (status)
            return status;
    }
    if (options->kind == EVAL_HELLASWAG)
        return eval_dataset_hellaswag(out, bytes, n_bytes, why);
    if (options->kind == EVAL_WINOGRANDE)
        return eval_dataset_winogrande(out, bytes, n_bytes, options->llama_compat, why);
    return is_text(bytes, n_bytes) ? eval_dataset_mmlu(out, bytes, n_bytes, why)
                                   : eval_dataset_multiple_choice(out, bytes, n_bytes, why);
}

/* The first lines of a text: two tasks of six, or some of one. */
static size_t beginning_of(const char *bytes, size_t n_bytes)
{
    enum { N_LINES = 12, MOST = 1 << 20 };
    size_t n = 0;
    for (size_t i = 0; i < N_LINES && n < n_bytes; i++) {
        const char *newline = memchr(bytes + n, '\n', n_bytes - n);
        n = newline ? (size_t)(newline - bytes) + 1 : n_bytes;
    }
    return base_min(n, MOST);
}

enum status eval_dataset_recognise(enum eval_choice_kind *kind, bool *is, const char *bytes,
                                   size_t n_bytes, struct status_why *why)
{
    static const enum eval_choice_kind kinds[] = {EVAL_HELLASWAG, EVAL_WINOGRANDE,
                                                  EVAL_MULTIPLE_CHOICE};
    size_t n = beginning_of(bytes, n_bytes);
    char *copy;
    *is = false;
    if (base_array_new(copy, n + 1, "lines", why))
        return STATUS_MEMORY;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !*is && n && is_text(bytes, n); i++) {
        struct eval_dataset tasks;
        const struct eval_dataset_options options = {.kind = kinds[i]};
        memcpy(copy, bytes, n); /* readers unquote in place */
        *kind = kinds[i];
        *is = !eval_dataset_read(&tasks, &options, copy, n, NULL);
        if (*is)
            eval_dataset_free(&tasks);
    }
    free(copy);
    return STATUS_OK;
}

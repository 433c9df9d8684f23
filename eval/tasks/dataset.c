#include "eval/tasks/dataset.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/content/text.h"

enum status eval_dataset_add(struct eval_dataset *d, const struct eval_question *question,
                             struct status_why *why)
{
    if (d->n_questions >= INT32_MAX)
        return status_fail(why, STATUS_UNSUPPORTED, "more than %d tasks", INT32_MAX);
    if (base_array_reserve(d->questions, d->questions_capacity, d->n_questions + 1, "tasks", why))
        return STATUS_MEMORY;
    d->questions[d->n_questions] = *question;
    d->questions[d->n_questions].first_choice = d->n_choices;
    d->questions[d->n_questions++].n_choices = 0;
    return STATUS_OK;
}

enum status eval_dataset_add_choice(struct eval_dataset *d, struct base_string choice,
                                    struct status_why *why)
{
    if (base_array_reserve(d->choices, d->choices_capacity, d->n_choices + 1, "choices", why))
        return STATUS_MEMORY;
    d->choices[d->n_choices++] = choice;
    d->questions[d->n_questions - 1].n_choices++;
    return STATUS_OK;
}

enum status eval_question_split(struct eval_question *question, struct base_string sentence,
                                struct status_why *why)
{
    const char *blank = sentence.n_bytes ? memchr(sentence.data, '_', sentence.n_bytes) : NULL;
    if (!blank)
        return status_fail(why, STATUS_FORMAT, "line %zu: the sentence has no blank '_'",
                           question->line);
    size_t n = (size_t)(blank - sentence.data);
    question->text = (struct base_string){sentence.data, n};
    question->after = (struct base_string){blank + 1, sentence.n_bytes - n - 1};
    return STATUS_OK;
}

enum status eval_dataset_end(struct eval_dataset *dataset, enum status status, const char *lines,
                             struct status_why *why)
{
    if (!status && dataset->n_questions == 0)
        status = status_fail(why, STATUS_FORMAT, "no tasks: the text has no %s", lines);
    if (status)
        eval_dataset_free(dataset);
    return status;
}

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

void eval_dataset_free(struct eval_dataset *dataset)
{
    free(dataset->questions);
    free(dataset->choices);
    *dataset = (struct eval_dataset){0};
}

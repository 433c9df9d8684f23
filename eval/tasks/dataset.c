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

void eval_dataset_free(struct eval_dataset *dataset)
{
    free(dataset->questions);
    free(dataset->choices);
    *dataset = (struct eval_dataset){0};
}

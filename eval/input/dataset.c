#include "eval/input/dataset.h"

#include <stdint.h>
#include <stdlib.h>

/** Room for one more of n items; the new array, or NULL with the old one untouched. */
static void *grow(void *items, size_t n, size_t *capacity, size_t item_bytes)
{
    if (n < *capacity)
        return items;
    size_t wanted = *capacity ? 2 * *capacity : 64;
    if (wanted > SIZE_MAX / item_bytes)
        return NULL;
    void *grown = realloc(items, wanted * item_bytes);
    if (grown)
        *capacity = wanted;
    return grown;
}

enum status eval_dataset_add(struct eval_dataset *d, const struct eval_question *question,
                             struct status_why *why)
{
    if (d->n_questions >= INT32_MAX)
        return status_fail(why, STATUS_UNSUPPORTED, "more than %d tasks", INT32_MAX);
    struct eval_question *grown =
        grow(d->questions, d->n_questions, &d->questions_capacity, sizeof *d->questions);
    if (!grown)
        return status_fail(why, STATUS_MEMORY, "no memory for more than %zu tasks", d->n_questions);
    d->questions = grown;
    d->questions[d->n_questions] = *question;
    d->questions[d->n_questions].first_choice = d->n_choices;
    d->questions[d->n_questions++].n_choices = 0;
    return STATUS_OK;
}

enum status eval_dataset_add_choice(struct eval_dataset *d, struct base_string choice,
                                    struct status_why *why)
{
    struct base_string *grown =
        grow(d->choices, d->n_choices, &d->choices_capacity, sizeof *d->choices);
    if (!grown)
        return status_fail(why, STATUS_MEMORY, "no memory for more than %zu choices", d->n_choices);
    d->choices = grown;
    d->choices[d->n_choices++] = choice;
    d->questions[d->n_questions - 1].n_choices++;
    return STATUS_OK;
}

void eval_dataset_free(struct eval_dataset *dataset)
{
    free(dataset->questions);
    free(dataset->choices);
    *dataset = (struct eval_dataset){0};
}

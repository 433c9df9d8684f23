/** What must hold of a data set whatever its file was. */
#ifndef TESTS_FUZZ_DATASET_CHECK_H
#define TESTS_FUZZ_DATASET_CHECK_H

#include "eval/tasks/dataset.h"
#include "tests/harness/require.h"

static inline void dataset_check_string(struct base_string s, const char *bytes, size_t n_bytes)
{
    require(s.data >= bytes && s.data <= bytes + n_bytes);
    require(s.n_bytes <= (size_t)(bytes + n_bytes - s.data));
}

/** Abort where the data set contradicts itself, its file or its status; then release it. */
static inline void dataset_check(struct eval_dataset *d, enum status status,
                                 const struct status_why *why, const char *bytes, size_t n_bytes)
{
    require((status == STATUS_OK) == (why->text[0] == '\0'));
    require((status == STATUS_OK) == (d->n_questions > 0));
    require(d->n_choices <= n_bytes);
    for (size_t k = 0; k < d->n_questions; k++) {
        const struct eval_question *q = &d->questions[k];
        dataset_check_string(q->text, bytes, n_bytes);
        if (q->after.data)
            dataset_check_string(q->after, bytes, n_bytes);
        require(q->n_choices >= 2 && q->answer < q->n_choices);
        require(q->n_right <= q->n_choices);
        require(q->first_choice + q->n_choices <= d->n_choices);
        for (size_t i = 0; i < q->n_choices; i++)
            dataset_check_string(d->choices[q->first_choice + i], bytes, n_bytes);
    }
    eval_dataset_free(d);
}

#endif

/** What the tests of task files compare with: texts, and the sentence of a failure. */
#ifndef TESTS_EVAL_DATASET_ASSERT_H
#define TESTS_EVAL_DATASET_ASSERT_H

#include <string.h>

#include "eval/tasks/dataset.h"
#include "tests/harness/cmocka.h"

static inline void assert_text(struct base_string s, const char *expected)
{
    assert_int_equal(s.n_bytes, strlen(expected));
    assert_memory_equal(s.data, expected, s.n_bytes);
}

static inline void assert_sentence(enum status status, const struct status_why *why,
                                   const char *expected)
{
    if (status != STATUS_FORMAT || !strstr(why->text, expected))
        fail_msg("%s: '%s', expected '%s'", status_name(status), why->text, expected);
}

#endif

/* Sentences: one line of printable text, whatever the names in them hold. */
#include <string.h>

#include "base/status.h"
#include "tests/harness/cmocka.h"

static void shows_any_name_in_one_line(void **state)
{
    (void)state;
    struct status_why why;
    assert_int_equal(status_fail(&why, STATUS_FORMAT, "tensor '%s' has %d", "a\nb\x1b[2J\xff", 3),
                     STATUS_FORMAT);
    assert_string_equal(why.text, "tensor 'a\\x0ab\\x1b[2J\\xff' has 3");
    status_context(&why, "%s", "a\tb\\\xc3\xa9.gguf");
    assert_string_equal(why.text, "a\\x09b\\\xc3\xa9.gguf: tensor 'a\\x0ab\\x1b[2J\\xff' has 3");
}

static void cuts_a_long_one_between_characters(void **state)
{
    (void)state;
    struct status_why why;
    char name[2 * sizeof why.text + 1] = "";
    for (size_t i = 0; i < sizeof name - 1; i++)
        name[i] = "\xc3\xa9"[i % 2];
    status_fail(&why, STATUS_FORMAT, "%s", name);
    assert_int_equal(strlen(why.text), (sizeof why.text - 1) / 2 * 2);
    assert_memory_equal(why.text, name, strlen(why.text));
    memset(name, '\n', sizeof name - 1);
    status_fail(&why, STATUS_FORMAT, "%s", name);
    assert_int_equal(strlen(why.text), (sizeof why.text - 1) / 4 * 4);
}

static void keeps_the_first_failure(void **state)
{
    (void)state;
    struct status_kept kept = {0};
    struct status_why why = {"as it was"};
    assert_int_equal(status_of(&kept, &why), STATUS_OK);
    assert_string_equal(why.text, "as it was");
    status_keep(&kept, STATUS_FORMAT, "the %s", "first\n");
    status_keep(&kept, STATUS_MEMORY, "the second");
    assert_int_equal(status_of(&kept, &why), STATUS_FORMAT);
    assert_string_equal(why.text, "the first\\x0a");
    assert_int_equal(status_of(&kept, NULL), STATUS_FORMAT);
}

static void says_nothing_to_nobody(void **state)
{
    (void)state;
    struct status_why why = {""};
    assert_int_equal(status_fail(NULL, STATUS_IO, "%s", "x"), STATUS_IO);
    status_context(NULL, "%s", "x");
    status_context(&why, "%s", "x");
    assert_string_equal(why.text, "");
}

static void gives_a_context_once(void **state)
{
    (void)state;
    struct status_why why;
    status_fail(&why, STATUS_FORMAT, "a\n: line 3");
    status_context(&why, "%s", "a\n");
    assert_string_equal(why.text, "a\\x0a: line 3");
    status_context(&why, "%s", "a");
    assert_string_equal(why.text, "a: a\\x0a: line 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shows_any_name_in_one_line),
        cmocka_unit_test(cuts_a_long_one_between_characters),
        cmocka_unit_test(gives_a_context_once),
        cmocka_unit_test(keeps_the_first_failure),
        cmocka_unit_test(says_nothing_to_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The table of hyper-parameters: it has each key that an architecture names, once. */
#include <string.h>

#include "model/arch.h"
#include "model/hparams/table.h"
#include "tests/harness/cmocka.h"

static size_t n_rows(const char *suffix)
{
    size_t n = 0;
    for (const struct model_hparam *row = model_hparam_table; row->suffix; row++)
        n += strcmp(row->suffix, suffix) == 0;
    return n;
}

static void test_keys_of_architectures(void **state)
{
    (void)state;
    size_t n = 0;
    for (size_t i = 0; model_archs[i]; i++) {
        const struct model_arch *arch = model_archs[i];
        for (const struct model_arch_key *const *list = arch->keys; *list; list++)
            for (const struct model_arch_key *key = *list; key->suffix || key->from; key++, n++)
                if (key->suffix && n_rows(key->suffix) != 1)
                    fail_msg("%s: key '%s', of which the table has %zu rows, expected 1",
                             arch->name, key->suffix, n_rows(key->suffix));
    }
    assert_true(n > 100);
}

static void test_rows_are_different(void **state)
{
    (void)state;
    for (const struct model_hparam *row = model_hparam_table; row->suffix; row++)
        assert_int_equal(n_rows(row->suffix), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_of_architectures),
        cmocka_unit_test(test_rows_are_different),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

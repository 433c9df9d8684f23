/* The table of hyper-parameters: it has each key that an architecture names, once. */
#include <string.h>

#include "model/arch.h"
#include "model/folder/map.h"
#include "model/hparams/table.h"
#include "tests/harness/cmocka.h"

static size_t n_rows(const char *suffix)
{
    size_t n = 0;
    for (const struct model_hparam *row = model_hparam_table; row->suffix; row++)
        n += strcmp(row->suffix, suffix) == 0;
    return n;
}

static void assert_has(const struct model_arch *arch, const char *what, const char *suffix)
{
    if (n_rows(suffix) != 1)
        fail_msg("%s: %s '%s', of which the table has %zu rows, expected 1", arch->name, what,
                 suffix, n_rows(suffix));
}

static void test_keys_of_architectures(void **state)
{
    (void)state;
    size_t n = 0;
    for (size_t i = 0; model_archs[i]; i++) {
        const struct model_arch *arch = model_archs[i];
        for (const struct model_key_read *key = arch->reads; key->suffix; key++, n++)
            assert_has(arch, "reads", key->suffix);
        for (const struct model_folder_key *key = arch->folder ? arch->folder->keys : NULL;
             key && (key->to || key->from); key++, n++)
            if (key->to)
                assert_has(arch, "its folders have", key->to);
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

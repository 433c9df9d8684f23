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

/** A row of a key has one of the table, for a member of the model where the row reads it. */
static void assert_row(const struct model_arch *arch, const struct model_arch_key *key)
{
    if (!key->suffix) {
        assert_true(key->member != MODEL_MEMBER_WRITTEN && key->reader == MODEL_BY_CODE);
        return;
    }
    if (n_rows(key->suffix) != 1)
        fail_msg("%s: key '%s', of which the table has %zu rows, expected 1", arch->name,
                 key->suffix, n_rows(key->suffix));
    assert_int_equal(key->member, MODEL_MEMBER_WRITTEN);
    if (key->reader != MODEL_BY_CODE)
        assert_int_equal(model_hparam_row(key->suffix)->place, MODEL_HPARAM_OF_MODEL);
}

static void test_keys_of_architectures(void **state)
{
    (void)state;
    size_t n = 0;
    for (size_t i = 0; model_archs[i]; i++) {
        const struct model_arch *arch = model_archs[i];
        for (const struct model_arch_key *const *list = arch->keys; *list; list++)
            for (const struct model_arch_key *key = *list; key->suffix || key->from; key++, n++)
                assert_row(arch, key);
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

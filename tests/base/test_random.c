/* The generator. Expected value: the C++ standard's, its 10000th number from seed 5489. */
#include "base/random.h"
#include "tests/harness/cmocka.h"

static void generator_is_the_standard_one(void **state)
{
    (void)state;
    struct base_twister twister;
    base_twister_seed(&twister, 5489);
    uint32_t last = 0;
    for (int i = 0; i < 10000; i++)
        last = base_twister_next(&twister);
    assert_int_equal(last, UINT32_C(4123659995));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generator_is_the_standard_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

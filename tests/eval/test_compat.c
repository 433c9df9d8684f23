/*
 * llama-perplexity's strided log-probability. Expected: the steps of eval/llama_compat.h with
 * numpy.float32; 2^-149 is the least positive float32, ln(2^-149) = -103.27893.
 */
#include <math.h>

#include "eval/llama_compat.h"
#include "tests/harness/cmocka.h"

/** Common scores keep their value to float32's precision: 2^-24 of p, and of ln p. */
static void common_scores(void **state)
{
    (void)state;
    for (double log_prob = -0.001; log_prob > -80; log_prob *= 1.7)
        for (double log_sum = 0; log_sum < 12; log_sum += 0.9) {
            double found = eval_compat_strided_log_prob(log_prob, log_sum);
            /* The argument of exp is rounded to float32, the quotient and the logarithm too. */
            double bound = ldexp(fabs(log_prob) + log_sum + 3, -23);
            assert_true(fabs(found - log_prob) <= bound);
        }
}

static void unlikely_tokens_are_infinite(void **state)
{
    (void)state;
    assert_true(eval_compat_strided_log_prob(-104, 0) == -(double)INFINITY);
    assert_true(eval_compat_strided_log_prob(-1000, 5) == -(double)INFINITY);
    /* The numerator is a number, the quotient is not: e^-95 / e^10. */
    assert_true(eval_compat_strided_log_prob(-105, 10) == -(double)INFINITY);
    /* Denormal, so few bits are left, but finite. */
    assert_true(isfinite(eval_compat_strided_log_prob(-102, 0)));
    assert_true(isnan(eval_compat_strided_log_prob((double)NAN, 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(common_scores),
        cmocka_unit_test(unlikely_tokens_are_infinite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Lists that a server gave twice: which are the same, and how far the others are apart. */
#include <math.h>

#include "clients/probe/ask/again.h"
#include "tests/harness/cmocka.h"

enum { K = 3 };

/** A list of n tokens. */
struct given {
    size_t n;
    int32_t ids[K];
    double log_q[K];
};

/** What answers say that were computed anew: the first, then the same prompt again. */
static void add(struct probe_repeats *r, const struct given *x, const struct given *y)
{
    struct given lists[] = {*x, *y};
    struct probe_sample items[] = {{.n = x->n}, {.n = y->n}};
    struct probe_lists first = {&items[0], lists[0].ids, lists[0].log_q, .n = 1};
    struct probe_lists again = {&items[1], lists[1].ids, lists[1].log_q, .n = 1};
    probe_repeats_add(r, &first, 0, &again, 0);
}

static void the_order_of_equal_values_is_no_difference(void **state)
{
    (void)state;
    struct probe_repeats r = {0};
    add(&r, &(struct given){3, {5, 6, 7}, {-1, -2, -2}},
        &(struct given){3, {5, 7, 6}, {-1, -2, -2}});
    assert_int_equal(probe_repeated_of(&r), PROBE_REPEATED_EXACT);
    assert_true(r.computed.n_same == 1 && probe_repeats_rms(&r) == 0);
    add(&r, &(struct given){2, {5, 6}, {-1, -2}}, &(struct given){2, {5, 6}, {-2, -1}});
    add(&r, &(struct given){2, {5, 6}, {-1, -2}}, &(struct given){1, {5}, {-1}});
    assert_int_equal(probe_repeated_of(&r), PROBE_REPEATED_NOISE);
    assert_int_equal(r.computed.n_same, 1);
    assert_true(fabs(probe_repeats_rms(&r) - sqrt(1.0 / 3)) < 1e-12 && r.largest == 1);
}

static void lists_of_other_tokens_have_no_distance(void **state)
{
    (void)state;
    struct probe_repeats r = {0};
    add(&r, &(struct given){1, {5}, {-1}}, &(struct given){1, {6}, {-1}});
    assert_int_equal(probe_repeated_of(&r), PROBE_REPEATED_NOISE);
    assert_true(r.n_disjoint == 1 && isnan(probe_repeats_rms(&r)));
    add(&r, &(struct given){1, {5}, {-1}}, &(struct given){1, {5}, {-1.5}});
    assert_true(r.n_disjoint == 1 && fabs(probe_repeats_rms(&r) - 0.5) < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_of_equal_values_is_no_difference),
        cmocka_unit_test(lists_of_other_tokens_have_no_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* An observer: its owner sees operations, does the backend's, and leaves it as it was. */
#include "kernels/cpu/cpu.h"
#include "kernels/observer.h"
#include "tests/harness/cmocka.h"

struct owner {
    struct kern_observer observer;
    int n_seen;
};

static enum status scale_rows(struct kern_backend *b, float *x, size_t width, size_t n_rows,
                              const float *factors, struct status_why *why)
{
    struct owner *owner = kern_owner_of(b);
    owner->n_seen++;
    return owner->observer.inner->scale_rows(b, x, width, n_rows, factors, why);
}

static void test_sees_and_leaves(void **state)
{
    (void)state;
    struct kern_cpu_options options = {.n_threads = 1, .isa_cap = KERN_ISA_COUNT - 1};
    struct kern_backend *b;
    struct owner first = {.n_seen = 0}, second = {.n_seen = 0};
    const float factor = 2;
    float x = 3;
    assert_int_equal(kern_cpu_open(&b, &options, NULL), STATUS_OK);
    const struct kern_backend_ops *ops = b->ops;

    kern_observe_end(&first.observer); /* it observes none yet */
    kern_observe(&first.observer, b, &first);
    assert_int_equal(kern_scale_rows(b, &x, 1, 1, &factor, NULL), STATUS_OK);
    assert_int_equal(first.n_seen, 0); /* it has put nothing in the place of an operation */
    first.observer.ops.scale_rows = scale_rows;
    assert_int_equal(kern_scale_rows(b, &x, 1, 1, &factor, NULL), STATUS_OK);
    assert_int_equal(first.n_seen, 1);
    kern_observe_end(&first.observer);
    kern_observe_end(&first.observer);
    assert_ptr_equal(b->ops, ops);
    assert_int_equal(kern_scale_rows(b, &x, 1, 1, &factor, NULL), STATUS_OK);
    assert_int_equal(first.n_seen, 1);

    kern_observe(&second.observer, b, &second);
    second.observer.ops.scale_rows = scale_rows;
    assert_int_equal(kern_scale_rows(b, &x, 1, 1, &factor, NULL), STATUS_OK);
    assert_int_equal(second.n_seen, 1);
    kern_observe_end(&second.observer);
    assert_true(x == 48);
    kern_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sees_and_leaves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

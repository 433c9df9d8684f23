/*
 * Waits with a deadline: they end at it on the clock that never jumps, not before, or when they are
 * signalled.
 */
#include "base/clock.h"
#include "base/condition.h"
#include "tests/harness/cmocka.h"

struct shared {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
};

static void begin(struct shared *s)
{
    *s = (struct shared){.lock = PTHREAD_MUTEX_INITIALIZER};
    base_condition_init(&s->changed);
}

static void end(struct shared *s)
{
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
}

/** A condition of another clock would take the deadline for one that passed long ago. */
static void test_a_deadline_is_on_the_clock(void **state)
{
    (void)state;
    struct shared s;
    begin(&s);
    pthread_mutex_lock(&s.lock);
    for (int i = 0; i < 5; i++) {
        double deadline = base_clock_seconds() + 0.003;
        while (base_condition_wait(&s.changed, &s.lock, deadline))
            ;
        assert_true(base_clock_seconds() >= deadline);
    }
    pthread_mutex_unlock(&s.lock);
    end(&s);
}

static void test_deadlines_that_have_passed(void **state)
{
    (void)state;
    struct shared s;
    const double passed[] = {base_clock_seconds(), 0.5, 0, -1, -1e300};
    begin(&s);
    pthread_mutex_lock(&s.lock);
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
        assert_false(base_condition_wait(&s.changed, &s.lock, passed[i]));
    pthread_mutex_unlock(&s.lock);
    end(&s);
}

static void *signal_it(void *user)
{
    struct shared *s = user;
    pthread_mutex_lock(&s->lock);
    s->done = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void test_signalled_before_the_deadline(void **state)
{
    (void)state;
    struct shared s;
    pthread_t thread;
    begin(&s);
    pthread_mutex_lock(&s.lock);
    assert_int_equal(pthread_create(&thread, NULL, signal_it, &s), 0);
    while (!s.done)
        assert_true(base_condition_wait(&s.changed, &s.lock, base_clock_seconds() + 1e6));
    pthread_mutex_unlock(&s.lock);
    pthread_join(thread, NULL);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_deadline_is_on_the_clock),
        cmocka_unit_test(test_deadlines_that_have_passed),
        cmocka_unit_test(test_signalled_before_the_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

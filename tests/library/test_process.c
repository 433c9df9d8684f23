/*
 * include/assay.h beside the rest of a process: threads, cancelling, signals, what opening and
 * closing leaves behind.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "base/system/system.h"
#include "models.h"
#include "tests/harness/temp.h"
#include "tests/harness/tiny_model.h"

static char folder[64], tiny[128]; /* a small model in a folder of its own */

/** What a thread evaluates, while another one does the same with another model. */
struct job {
    struct assay_model *m;
    struct assay_windows windows;
    const int32_t *targets;
    struct assay_score scores[N];
};

static void *work(void *argument)
{
    struct job *job = argument;
    struct assay_why own;
    for (int i = 0; i < 3; i++)
        if (assay_log_probs(job->m, &job->windows, job->targets, job->scores, &own) != ASSAY_OK)
            return job;
    return NULL;
}

static void test_two_threads(void **state)
{
    (void)state;
    struct job jobs[2] = {{.m = open_with(F16, ASSAY_HIGH, 2)},
                          {.m = open_with(Q4, ASSAY_EXACT, 2)}};
    struct assay_score alone[2][N];
    int32_t *targets;
    pthread_t threads[2];
    struct assay_windows windows = make_windows(jobs[0].m, 7, &targets);
    for (int i = 0; i < 2; i++) {
        jobs[i].windows = windows;
        jobs[i].targets = targets;
        must(assay_log_probs(jobs[i].m, &windows, targets, alone[i], &why));
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    for (int i = 0; i < 2; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
        assert_memory_equal(jobs[i].scores, alone[i], sizeof alone[i]);
        assay_close(jobs[i].m);
    }
    free_windows(&windows, targets);
}

/** Numbers of a progress function, and after how many it cancels. */
struct told {
    double last;
    size_t n, stop_after;
};

static int on_progress(void *user, double fraction)
{
    struct told *told = user;
    assert_true(fraction >= told->last && fraction <= 1 + 1e-9);
    told->last = fraction;
    return ++told->n == told->stop_after;
}

static void test_progress_and_cancel(void **state)
{
    (void)state;
    struct told told = {0};
    struct assay_options options = ASSAY_OPTIONS;
    struct assay_model *m;
    int32_t *targets;
    struct assay_score scores[N];
    float *states;
    options.progress = on_progress;
    options.user = &told;
    must(assay_open(&m, Q4, &options, &why));
    states = malloc(N * description(m).width * sizeof *states);
    assert_non_null(states);
    struct assay_windows windows = make_windows(m, 8, &targets);
    must(assay_log_probs(m, &windows, targets, scores, &why));
    assert_true(told.n > 2 && told.last > 0.99);
    told = (struct told){.stop_after = 2};
    assert_int_equal(assay_log_probs(m, &windows, targets, scores, &why), ASSAY_CANCELLED);
    assert_true(told.n == 2 && *why.text);
    told = (struct told){0}; /* what cancelled one call does not cancel the next */
    must(assay_log_probs(m, &windows, targets, scores, &why));
    told = (struct told){.stop_after = told.n}; /* the last report counts as any */
    assert_int_equal(assay_log_probs(m, &windows, targets, scores, &why), ASSAY_CANCELLED);
    told = (struct told){0};
    must(assay_hidden(m, &windows, 0, states, &why));
    assert_true(told.n > 0 && told.last > 0.99);
    told = (struct told){.stop_after = told.n};
    assert_int_equal(assay_hidden(m, &windows, 0, states, &why), ASSAY_CANCELLED);
    assay_cancel(m, 1);
    assert_int_equal(assay_log_probs(m, &windows, targets, scores, &why), ASSAY_CANCELLED);
    assert_int_equal(assay_hidden(m, &windows, 0, states, &why), ASSAY_CANCELLED);
    assay_cancel(m, 0);
    told = (struct told){0};
    must(assay_log_probs(m, &windows, targets, scores, &why));
    free(states);
    free_windows(&windows, targets);
    assay_close(m);
}

static size_t n_descriptors(void)
{
    size_t n = 0;
    DIR *open_files = opendir("/proc/self/fd");
    for (; open_files && readdir(open_files); n++)
        ;
    if (open_files)
        closedir(open_files);
    return n;
}

static void test_thousand_opens(void **state)
{
    (void)state;
    enum { SETTLED = 100, OPENS = 1000 };
    double resident = 0;
    size_t n_open = 0;
    for (int i = 0; i < OPENS; i++) {
        struct assay_model *m = open_with(tiny, ASSAY_HIGH, 2);
        const int32_t tokens[4] = {3, 4, 5, 6};
        const struct assay_windows window = {tokens, 1, 4, 0, 3};
        struct assay_score scores[3];
        must(assay_log_probs(m, &window, NULL, scores, &why));
        assay_close(m);
        if (i == SETTLED) {
            resident = base_system_resident();
            n_open = n_descriptors();
        }
    }
    assert_int_equal(n_descriptors(), n_open);
    if (!ASSAY_SANITIZED) /* sanitizers keep what was freed */
        assert_true(base_system_resident() - resident < 1e6);
}

/** A signal to the process waits for the caller's thread, which blocks it: no other takes it. */
static void test_signals(void **state)
{
    (void)state;
    sigset_t usr1, before, pending;
    struct assay_model *m = open_with(tiny, ASSAY_HIGH, 3);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, &before);
    kill(getpid(), SIGUSR1);
    sigpending(&pending);
    assert_true(sigismember(&pending, SIGUSR1));
    int signal;
    sigwait(&usr1, &signal);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    assay_close(m);
}

static int prepare(void **state)
{
    (void)state;
    temp_make(folder);
    struct tiny_model model = tiny_model_make(&(struct tiny_model_options){.seed = 1});
    temp_write(temp_path(tiny, folder, "tiny.gguf"), model.data, model.n_bytes);
    free(model.data);
    return 0;
}

static int release(void **state)
{
    (void)state;
    unlink(tiny);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_threads),
        cmocka_unit_test(test_progress_and_cancel),
        cmocka_unit_test(test_thousand_opens),
        cmocka_unit_test(test_signals),
    };
    return cmocka_run_group_tests(tests, prepare, release);
}

/*
 * clients/serve/jobs.h: in which order jobs run. A long one has batches; before each, short ones
 * are served. What runs writes a letter, so the order is a word. Nothing here depends on time: the
 * first job does not begin its first batch before all others have been added.
 */
#include "tests/harness/cmocka.h"
#include <semaphore.h>
#include <string.h>

#include "clients/serve/jobs.h"

enum { N_WAITING = 16, LONG = SERVE_SHORT_TOKENS + 1, SHORT = SERVE_SHORT_TOKENS };

/** What is served, by the thread of the jobs. */
struct server {
    struct serve_jobs *jobs;
    sem_t begun, go_on;
    char order[32], ended[32]; /* letters of jobs: as they ran, as they ended */
    size_t n_order, n_ended;
};

/** A job of this test; static, so nothing is freed. */
struct work {
    char letter;
    unsigned n_batches; /* 0: it is served at once */
    size_t n_tokens;
    bool waits;               /* until the test says that it may go on */
    const struct work *added; /* by itself, in its first batch: as a client would meanwhile */
    bool cancels_itself;
};

static void note(struct server *s, char letter)
{
    assert_true(s->n_order + 1 < sizeof s->order);
    s->order[s->n_order++] = letter;
}

static void add(struct server *s, const struct work *work);

static enum status run(void *server, struct serve_job *job, struct status_why *why)
{
    struct server *s = server;
    const struct work *work = job->input;
    assert_string_equal(job->client, "192.0.2.1");
    if (work->waits) {
        sem_post(&s->begun);
        sem_wait(&s->go_on);
    }
    for (unsigned i = 0; i < work->n_batches; i++) {
        if (!job->between)
            serve_jobs_between(s->jobs);
        note(s, work->letter);
        if (work->added && i == 0)
            add(s, work->added);
    }
    if (!work->n_batches)
        note(s, work->letter);
    if (work->cancels_itself)
        return status_fail(why, STATUS_CANCELLED, "cancelled");
    return STATUS_OK;
}

static size_t n_tokens(const void *input)
{
    return ((const struct work *)input)->n_tokens;
}

static void keep(void *input)
{
    (void)input;
}

static const struct serve_job_kind plain = {"plain", run, keep, .n_tokens = n_tokens},
                                   unknown = {"unknown", run, keep},
                                   swap = {"swap", run, keep, .changes = true};

static const struct serve_job_kind *kind_of(const struct work *work)
{
    return work->letter == '!' ? &swap : work->letter == '?' ? &unknown : &plain;
}

static struct serve_budget budget = {.most = 1000};

static const struct serve_job_order *order_of(const struct serve_job_kind *kind,
                                              const struct work *work)
{
    static struct serve_job_order order;
    assert_true(serve_budget_take(&budget, 10));
    order = (struct serve_job_order){kind, (void *)(uintptr_t)work, 10, false, "192.0.2.1"};
    return &order;
}

static void add(struct server *s, const struct work *work)
{
    struct serve_job *job = serve_jobs_add(s->jobs, order_of(kind_of(work), work));
    assert_non_null(job);
    serve_job_release(s->jobs, job);
}

static enum status open_nothing(void *server, struct status_why *why)
{
    (void)server, (void)why;
    return STATUS_OK;
}

static void close_nothing(void *server)
{
    (void)server;
}

static void on_end(void *server, const struct serve_job *job)
{
    struct server *s = server;
    s->ended[s->n_ended++] = ((const struct work *)job->input)->letter;
    assert_true(job->state > SERVE_JOB_RUNNING);
}

static void begin(struct server *s)
{
    struct status_why why;
    const struct serve_jobs_options options = {.n_waiting = N_WAITING,
                                               .budget = &budget,
                                               .server = s,
                                               .open = open_nothing,
                                               .close = close_nothing,
                                               .ended = on_end};
    *s = (struct server){0};
    sem_init(&s->begun, 0, 0);
    sem_init(&s->go_on, 0, 0);
    assert_int_equal(serve_jobs_open(&s->jobs, &options, &why), STATUS_OK);
    while (serve_jobs_count(s->jobs).state == SERVE_JOBS_OPENING)
        ;
}

/** When the last of them has ended. */
static void finish(struct server *s, size_t n_jobs)
{
    static const struct work last = {.letter = '.'};
    struct serve_job *job = serve_jobs_add(s->jobs, order_of(&unknown, &last));
    assert_non_null(job);
    for (unsigned version = 0;
         serve_job_watch(s->jobs, job, &version, 1e3).state <= SERVE_JOB_RUNNING;)
        ;
    serve_job_release(s->jobs, job);
    struct serve_jobs_count count = serve_jobs_count(s->jobs);
    assert_false(count.running);
    assert_int_equal(count.n_waiting, 0);
    assert_int_equal(s->n_ended, n_jobs + 1);
    assert_true(serve_jobs_end(s->jobs, 10, 10));
    serve_jobs_close(s->jobs);
    sem_destroy(&s->begun);
    sem_destroy(&s->go_on);
}

/** All of these, asked for while the first one runs. */
static void check(const struct work *works, size_t n, const char *order, const char *ended)
{
    struct server s;
    begin(&s);
    add(&s, &works[0]);
    sem_wait(&s.begun);
    for (size_t i = 1; i < n; i++)
        add(&s, &works[i]);
    sem_post(&s.go_on);
    finish(&s, strlen(ended) - 1);
    assert_string_equal(s.order, order);
    assert_string_equal(s.ended, ended);
}

static void short_ones_do_not_wait(void **state)
{
    (void)state;
    const struct work works[] = {
        {.letter = 'L', .n_batches = 3, .n_tokens = LONG, .waits = true},
        {.letter = 'a', .n_tokens = SHORT},
        {.letter = 'M', .n_batches = 2, .n_tokens = LONG},
        {.letter = '?'}, /* how long it is is not known */
        {.letter = 'b', .n_batches = 2, .n_tokens = 1},
    };
    check(works, 5, "abbLLLMM?.", "abLM?.");
}

static void what_comes_meanwhile_waits_for_the_next_batch(void **state)
{
    (void)state;
    const struct work next = {.letter = 'c', .n_tokens = 1},
                      last = {.letter = 'd', .n_tokens = 1, .added = &next, .n_batches = 1};
    const struct work works[] = {
        {.letter = 'L', .n_batches = 3, .n_tokens = LONG, .waits = true, .added = &last},
        {.letter = 'a', .n_tokens = 1},
    };
    /* d comes in the first batch of L, c while d is served. */
    check(works, 2, "aLdLcL.", "adcL.");
}

static void nothing_passes_a_change(void **state)
{
    (void)state;
    const struct work works[] = {
        {.letter = 'L', .n_batches = 2, .n_tokens = LONG, .waits = true},
        {.letter = 'a', .n_tokens = 1},
        {.letter = '!'},
        {.letter = 'b', .n_tokens = 1},
    };
    check(works, 4, "aLL!b.", "aL!b.");
}

static void one_that_fails_between_is_alone(void **state)
{
    (void)state;
    const struct work works[] = {
        {.letter = 'L', .n_batches = 2, .n_tokens = LONG, .waits = true},
        {.letter = 'a', .n_tokens = 1, .cancels_itself = true},
        {.letter = 'b', .n_tokens = 1},
    };
    check(works, 3, "abLL.", "abL.");
}

static void a_cancelled_one_is_not_served(void **state)
{
    (void)state;
    const struct work works[] = {
        {.letter = 'L', .n_batches = 1, .n_tokens = LONG, .waits = true},
        {.letter = 'a', .n_tokens = 1},
    };
    struct server s;
    begin(&s);
    add(&s, &works[0]);
    sem_wait(&s.begun);
    struct serve_job *job = serve_jobs_add(s.jobs, order_of(&plain, &works[1]));
    assert_true(serve_job_cancel(s.jobs, job));
    assert_false(serve_job_cancel(s.jobs, job));
    serve_job_release(s.jobs, job);
    sem_post(&s.go_on);
    finish(&s, 2);
    assert_string_equal(s.order, "L.");
    assert_string_equal(s.ended, "aL.");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_ones_do_not_wait),
        cmocka_unit_test(what_comes_meanwhile_waits_for_the_next_batch),
        cmocka_unit_test(nothing_passes_a_change),
        cmocka_unit_test(one_that_fails_between_is_alone),
        cmocka_unit_test(a_cancelled_one_is_not_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

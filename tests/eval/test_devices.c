/*
 * One run by several backends: the bits, the order of windows and of base rows, failures. They
 * are CPU backends, and CUDA backends on a device made of the host's memory.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "evaluation.h"
#include "kernels/backend.h"
#include "kernels/cuda/context.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/host_device.h"

enum { N_CTX = 32, N_WINDOWS = 41, MAX_BACKENDS = 3, BATCH = 2 * N_CTX };

static struct setup usual(void)
{
    struct setup setup = setup_usual(ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf", N_CTX, N_WINDOWS);
    setup.batch_tokens = BATCH;
    setup.cpu.n_threads = 1;
    return setup;
}

static struct kern_backend *open_cpu(void)
{
    struct kern_backend *backend;
    struct status_why why = {""};
    struct kern_cpu_options options = {.isa_cap = KERN_ISA_COUNT - 1, .n_threads = 1};
    if (kern_cpu_open(&backend, &options, &why) != STATUS_OK)
        fail_msg("%s", why.text);
    return backend;
}

static struct kern_backend *open_cuda(const struct host_device_options *way)
{
    struct kern_backend *backend;
    struct status_why why = {""};
    struct kern_cuda_options options = {.precision = KERN_PRECISION_EXACT,
                                        .weight_bytes = 400 << 10,
                                        .panel_size = 64 << 10,
                                        .n_slots = 4,
                                        .product_tokens = 64,
                                        .product_step = 16};
    if (kern_cuda_open(&backend, host_device_open(way, NULL), &options, &why) != STATUS_OK)
        fail_msg("%s", why.text);
    return backend;
}

static void close_all(struct kern_backend **backends, size_t n)
{
    for (size_t i = 0; i < n; i++)
        kern_close(backends[i]);
}

static void assert_same_table(const struct eval_table *a, const struct eval_table *b)
{
    assert_int_equal(a->n_windows, b->n_windows);
    assert_int_equal(a->n_columns, b->n_columns);
    for (size_t w = 0; w < a->n_windows; w++)
        assert_true(a->done[w] && b->done[w]);
    assert_memory_equal(a->cells, b->cells,
                        a->n_columns * a->n_windows * a->n_scored * sizeof(double));
}

/** What a run tells; callbacks of two threads at once, or out of order, fail the test. */
struct watch {
    atomic_int n_inside;
    size_t n_windows, stop_after;
    double fraction;
    atomic_bool cancel;
};

static void on_window(void *user, size_t w)
{
    struct watch *watch = user;
    assert_int_equal(atomic_fetch_add(&watch->n_inside, 1), 0);
    assert_int_equal(w, watch->n_windows);
    if (++watch->n_windows == watch->stop_after)
        atomic_store(&watch->cancel, true);
    atomic_fetch_sub(&watch->n_inside, 1);
}

static void on_progress(void *user, const struct eval_progress *p)
{
    struct watch *watch = user;
    assert_int_equal(atomic_fetch_add(&watch->n_inside, 1), 0);
    assert_true(p->fraction >= watch->fraction && p->fraction <= 1);
    assert_int_equal(p->n_units_done, watch->n_windows);
    watch->fraction = p->fraction;
    atomic_fetch_sub(&watch->n_inside, 1);
}

static void watch_run(struct setup *setup, struct watch *watch)
{
    setup->run.unit_done = on_window;
    setup->run.progress = on_progress;
    setup->run.user = watch;
}

static void cpus_share_a_run(void **state)
{
    (void)state;
    struct evaluation one, several;
    struct setup setup = usual();
    evaluate(&one, &setup);
    struct kern_backend *backends[MAX_BACKENDS];
    for (size_t n = 2; n <= MAX_BACKENDS; n++) {
        for (size_t i = 0; i < n; i++)
            backends[i] = open_cpu();
        struct watch watch = {0};
        watch_run(&setup, &watch);
        setup.backends = backends;
        setup.n_backends = n;
        evaluate(&several, &setup);
        assert_same_table(&one.table, &several.table);
        assert_int_equal(watch.n_windows, N_WINDOWS);
        assert_true(watch.fraction == 1);
        assert_int_equal(several.stats.n_batches, (N_WINDOWS + 1) / 2);
        assert_int_equal(several.stats.n_inputs, N_WINDOWS * (N_CTX - 1));
        assert_true(several.memory.scorer > 1.9 * (double)n / 2 * one.memory.scorer);
        evaluation_close(&several);
        close_all(backends, n);
    }
    evaluation_close(&one);
}

/** Naming a device twice gives two backends on it; a CPU between them has the same bits, too. */
static void a_device_twice(void **state)
{
    (void)state;
    struct evaluation one, several;
    struct setup setup = usual();
    setup.plan.max_windows = 4;
    evaluate(&one, &setup);
    struct host_device_options late = {.order = HOST_DEVICE_UPLOADS_LATE};
    struct kern_backend *backends[] = {open_cuda(&late), open_cuda(&late), open_cpu()};
    setup.batch_tokens = N_CTX;
    setup.backends = backends;
    for (setup.n_backends = 2; setup.n_backends <= 3; setup.n_backends++) {
        evaluate(&several, &setup);
        assert_same_table(&one.table, &several.table);
        evaluation_close(&several);
    }
    close_all(backends, 3);
    evaluation_close(&one);
}

/** A sink, then a source, of hidden rows, which bears one caller at a time and the plan's order. */
struct rows {
    size_t n, width, n_scored;
    float *all;
    float *handed_out; /* holds the rows of the last call only */
    size_t next;
    atomic_int n_inside;
};

static enum status write_rows(void *user, struct kern_backend *backend, size_t first, size_t n_rows,
                              const void *from, struct status_why *why)
{
    (void)backend;
    (void)why;
    struct rows *r = user;
    assert_int_equal(atomic_fetch_add(&r->n_inside, 1), 0);
    assert_int_equal(first, r->next);
    memcpy(r->all + first * r->width, from, n_rows * r->width * sizeof(float));
    r->next = first + n_rows;
    atomic_fetch_sub(&r->n_inside, 1);
    return STATUS_OK;
}

static void expect_rows(void *user, size_t first, size_t n_rows)
{
    struct rows *r = user;
    assert_int_equal(atomic_fetch_add(&r->n_inside, 1), 0);
    assert_true(first + n_rows <= r->n);
    atomic_fetch_sub(&r->n_inside, 1);
}

static enum status give_rows(void *user, size_t first, size_t n_rows, const void **out,
                             struct status_why *why)
{
    (void)why;
    struct rows *r = user;
    assert_int_equal(atomic_fetch_add(&r->n_inside, 1), 0);
    assert_int_equal(first, r->next);
    r->next = first + n_rows;
    free(r->handed_out);
    r->handed_out = malloc(n_rows * r->width * sizeof(float));
    memcpy(r->handed_out, r->all + first * r->width, n_rows * r->width * sizeof(float));
    *out = r->handed_out;
    atomic_fetch_sub(&r->n_inside, 1);
    return STATUS_OK;
}

static void rows_come_and_go_in_order(void **state)
{
    (void)state;
    struct kern_backend *backends[] = {open_cpu(), open_cpu()};
    struct evaluation one, two;
    struct setup setup = usual();
    evaluation_open(&two, &setup);
    const struct kern_weight *head = model_head(two.model);
    struct rows rows = {.n = N_WINDOWS * two.plan.n_scored, .width = head->n_cols};
    rows.all = malloc(rows.n * rows.width * sizeof(float));
    struct eval_row_sink sink = {.kind = EVAL_ROWS_HIDDEN, .user = &rows, .write = write_rows};
    setup.sink = &sink;
    setup.backends = backends;
    setup.n_backends = 2;
    assert_int_equal(evaluation_run(&two, &setup, NULL), STATUS_OK);
    assert_int_equal(rows.next, rows.n);

    /* The rows compared with the model that they come from, by one backend and by two. */
    struct eval_row_source source = {.kind = EVAL_ROWS_HIDDEN,
                                     .n_vocab = head->n_rows,
                                     .head = head,
                                     .max_rows = 7,
                                     .user = &rows,
                                     .expect = expect_rows,
                                     .rows = give_rows};
    struct evaluation compared;
    setup.sink = NULL;
    setup.base = &source;
    setup.want_js = true;
    rows.next = 0;
    evaluate(&compared, &setup);
    assert_int_equal(rows.next, rows.n);
    setup.n_backends = 1;
    rows.next = 0;
    evaluate(&one, &setup);
    assert_same_table(&one.table, &compared.table);
    assert_same_table(&two.table, &compared.table);
    assert_same_table(&one.candidate_tables[0], &compared.candidate_tables[0]);
    assert_true(eval_table_row(&compared.candidate_tables[0], EVAL_KL, 0)[0] == 0);
    evaluation_close(&compared);
    evaluation_close(&one);
    evaluation_close(&two);
    close_all(backends, 2);
    free(rows.all);
    free(rows.handed_out);
}

/** Windows that are done have no gap, and were reported. */
static void assert_prefix(const struct evaluation *e, size_t n)
{
    for (size_t w = 0; w < e->table.n_windows; w++)
        assert_int_equal(e->table.done[w], w < n);
}

/** Wherever a device fails, its sentence is the run's; without it the rest is done. */
static void a_device_fails(void **state)
{
    (void)state;
    struct evaluation one, several;
    struct setup setup = usual();
    setup.plan.max_windows = 4;
    evaluate(&one, &setup);
    setup.batch_tokens = N_CTX;
    for (size_t fail_at = 40; fail_at < 1000; fail_at *= 3) {
        struct kern_backend *backends[] = {
            open_cpu(), open_cuda(&(struct host_device_options){.fail_at = fail_at})};
        struct watch watch = {0};
        struct status_why why = {""};
        setup.backends = backends;
        setup.n_backends = 2;
        watch_run(&setup, &watch);
        evaluation_open(&several, &setup);
        enum status status = evaluation_run(&several, &setup, &why);
        if (status == STATUS_OK) {
            assert_int_equal(watch.n_windows, 4); /* the other one was faster */
        } else {
            assert_int_equal(status, STATUS_DEVICE);
            assert_string_equal(why.text, "the device was made to fail");
        }
        assert_prefix(&several, watch.n_windows);
        setup.n_backends = 1;
        setup.run.progress = NULL;
        assert_int_equal(evaluation_run(&several, &setup, &why), STATUS_OK);
        assert_same_table(&one.table, &several.table);
        evaluation_close(&several);
        close_all(backends, 2);
    }
    evaluation_close(&one);
}

static void an_interruption_ends_all(void **state)
{
    (void)state;
    struct evaluation one, several;
    struct setup setup = usual();
    evaluate(&one, &setup);
    struct kern_backend *backends[] = {open_cpu(), open_cpu()};
    struct watch watch = {.stop_after = 10, .cancel = true};
    for (size_t i = 0; i < 2; i++)
        kern_set_cancel(backends[i], &watch.cancel);
    setup.backends = backends;
    setup.n_backends = 2;
    watch_run(&setup, &watch);
    evaluation_open(&several, &setup);
    struct status_why why = {""};
    assert_int_equal(evaluation_run(&several, &setup, &why), STATUS_CANCELLED);
    assert_int_equal(watch.n_windows, 0);
    atomic_store(&watch.cancel, false);
    watch.fraction = 0;
    enum status status = evaluation_run(&several, &setup, &why);
    /* One of them may have gone far ahead of the other, to the end even. */
    assert_int_equal(status, watch.n_windows < N_WINDOWS ? STATUS_CANCELLED : STATUS_OK);
    assert_in_range(watch.n_windows, 10, N_WINDOWS);
    assert_prefix(&several, watch.n_windows);
    for (size_t i = 0; i < 2; i++)
        assert_ptr_equal(backends[i]->cancel, &watch.cancel);
    atomic_store(&watch.cancel, false);
    watch.fraction = 0;
    assert_int_equal(evaluation_run(&several, &setup, &why), STATUS_OK);
    assert_int_equal(watch.n_windows, N_WINDOWS);
    assert_same_table(&one.table, &several.table);
    evaluation_close(&several);
    close_all(backends, 2);
    evaluation_close(&one);
}

/** A flag that is raised before a run ends it before weights are on their way to the devices. */
static void an_interruption_while_opening(void **state)
{
    (void)state;
    struct evaluation e;
    struct setup setup = usual();
    setup.plan.max_windows = 4;
    struct host_device_options way = {0};
    struct kern_backend *backends[] = {open_cuda(&way), open_cuda(&way)};
    atomic_bool cancel = true;
    for (size_t i = 0; i < 2; i++)
        kern_set_cancel(backends[i], &cancel);
    setup.backends = backends;
    setup.n_backends = 2;
    evaluation_open(&e, &setup);
    struct status_why why = {""};
    assert_int_equal(evaluation_run(&e, &setup, &why), STATUS_CANCELLED);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(kern_cuda_of(backends[i])->cache.n_uploads, 0);
        assert_ptr_equal(backends[i]->cancel, &cancel);
    }
    atomic_store(&cancel, false);
    assert_int_equal(evaluation_run(&e, &setup, &why), STATUS_OK);
    for (size_t i = 0; i < 2; i++)
        assert_true(kern_cuda_of(backends[i])->cache.n_uploads > 0);
    evaluation_close(&e);
    close_all(backends, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpus_share_a_run),         cmocka_unit_test(rows_come_and_go_in_order),
        cmocka_unit_test(an_interruption_ends_all), cmocka_unit_test(a_device_twice),
        cmocka_unit_test(a_device_fails),           cmocka_unit_test(an_interruption_while_opening),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

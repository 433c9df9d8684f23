/*
 * Base rows that come from a sink's memory instead of a live model. Hidden rows must give the
 * live comparison to the bit; recorded codes come near it, as near as their format allows.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "evaluation.h"
#include "tests/harness/cmocka.h"

#define F16 ASSAY_SOURCE_DIR "/data/tiny.F16.gguf"
#define Q4  ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf"
enum { N_CTX = 32, N_WINDOWS = 12, N_SCORED = 15, N_ROWS = N_WINDOWS * N_SCORED };

/** What a sink was given, and what a source was asked for. */
struct store {
    unsigned char *rows;
    size_t row_bytes;
    bool written[N_ROWS];
    size_t n_expected, n_asked, n_checked;
    size_t refuse; /* the row that check refuses; N_ROWS: none */
};

static enum status store_write(void *user, struct kern_backend *backend, size_t first,
                               size_t n_rows, const void *rows, struct status_why *why)
{
    (void)backend;
    (void)why;
    struct store *s = user;
    assert_true(n_rows > 0 && first + n_rows <= N_ROWS);
    memcpy(s->rows + first * s->row_bytes, rows, n_rows * s->row_bytes);
    for (size_t i = 0; i < n_rows; i++) {
        assert_false(s->written[first + i]);
        s->written[first + i] = true;
    }
    return STATUS_OK;
}

static void store_expect(void *user, size_t first, size_t n_rows)
{
    struct store *s = user;
    assert_true(first + n_rows <= N_ROWS);
    s->n_expected += n_rows;
}

static enum status store_rows(void *user, size_t first, size_t n_rows, const void **rows,
                              struct status_why *why)
{
    (void)why;
    struct store *s = user;
    assert_true(first + n_rows <= N_ROWS);
    *rows = s->rows + first * s->row_bytes;
    s->n_asked += n_rows;
    return STATUS_OK;
}

static enum status store_check(void *user, size_t first, size_t n_rows,
                               const struct kern_row_score *scores, struct status_why *why)
{
    struct store *s = user;
    assert_true(scores[0].log_sum >= 0);
    s->n_checked += n_rows;
    if (s->refuse >= first && s->refuse < first + n_rows)
        return status_fail(why, STATUS_FORMAT, "row %zu is refused", s->refuse);
    return STATUS_OK;
}

static struct setup usual(void)
{
    struct setup setup = setup_usual(F16, N_CTX, N_WINDOWS);
    setup.want_js = true;
    return setup;
}

static struct evaluation live; /* F16 and, compared with it, Q4_K_M */
static struct store hidden, codes;
static size_t n_vocab;

/** F16 alone, with a sink; its table must be the live run's. */
static void record(struct store *store, enum eval_row_kind kind)
{
    struct eval_row_sink sink = {.kind = kind, .user = store, .write = store_write};
    struct setup setup = usual();
    setup.want_js = false;
    setup.sink = &sink;
    setup.batch_tokens = 5 * N_CTX;
    struct evaluation e;
    evaluation_open(&e, &setup);
    n_vocab = model_head(e.model)->n_rows;
    store->row_bytes = kind == EVAL_ROWS_CODES ? kern_record_codes(n_vocab) * sizeof(uint16_t)
                                               : model_hparams(e.model)->n_embd * sizeof(float);
    store->rows = malloc(N_ROWS * store->row_bytes);
    store->refuse = N_ROWS;
    struct status_why why;
    assert_int_equal(evaluation_run(&e, &setup, &why), STATUS_OK);
    for (size_t i = 0; i < N_ROWS; i++)
        assert_true(store->written[i]);
    assert_memory_equal(e.table.cells, live.table.cells, EVAL_N_COLUMNS * N_ROWS * sizeof(double));
    evaluation_close(&e);
}

static int evaluate_live(void **state)
{
    (void)state;
    struct setup setup = usual();
    setup.candidates[0] = Q4;
    setup.n_candidates = 1;
    evaluate(&live, &setup);
    record(&hidden, EVAL_ROWS_HIDDEN);
    record(&codes, EVAL_ROWS_CODES);
    return 0;
}

static int close_live(void **state)
{
    (void)state;
    evaluation_close(&live);
    free(hidden.rows);
    free(codes.rows);
    return 0;
}

static struct eval_row_source source_of(struct store *store, enum eval_row_kind kind)
{
    store->n_expected = store->n_asked = store->n_checked = 0;
    return (struct eval_row_source){.kind = kind,
                                    .n_vocab = n_vocab,
                                    .cut = -(double)INFINITY,
                                    .head =
                                        kind == EVAL_ROWS_HIDDEN ? model_head(live.model) : NULL,
                                    .user = store,
                                    .expect = store_expect,
                                    .rows = store_rows,
                                    .check = store_check};
}

static void assert_asked_once(const struct store *store, size_t n_rows)
{
    assert_int_equal(store->n_expected, n_rows);
    assert_int_equal(store->n_asked, n_rows);
    assert_int_equal(store->n_checked, n_rows);
}

static void hidden_rows_give_the_live_comparison(void **state)
{
    (void)state;
    static const size_t most[] = {0, 1, 7, N_SCORED, 40};
    for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
        struct eval_row_source source = source_of(&hidden, EVAL_ROWS_HIDDEN);
        source.max_rows = most[i];
        struct setup setup = usual();
        setup.model = Q4;
        setup.base = &source;
        setup.candidates[0] = F16; /* a second one beside it, and the base itself */
        setup.n_candidates = 1;
        setup.batch_tokens = (1 + 2 * i) * N_CTX;
        struct evaluation e;
        evaluate(&e, &setup);
        assert_asked_once(&hidden, N_ROWS);
        assert_memory_equal(e.table.cells, live.table.cells,
                            EVAL_N_COLUMNS * N_ROWS * sizeof(double));
        assert_memory_equal(e.candidate_tables[0].cells, live.candidate_tables[0].cells,
                            EVAL_N_PAIR_COLUMNS * N_ROWS * sizeof(double));
        for (size_t w = 0; w < N_WINDOWS; w++)
            for (size_t k = 0; k < N_SCORED; k++)
                assert_true(eval_table_row(&e.candidate_tables[1], EVAL_KL, w)[k] == 0);
        evaluation_close(&e);
    }
}

/** Windows that are done leave holes: what is asked for is what is missing, to the bit. */
static void done_windows_are_left_out(void **state)
{
    (void)state;
    struct eval_row_source source = source_of(&hidden, EVAL_ROWS_HIDDEN);
    struct setup setup = usual();
    setup.model = Q4;
    setup.base = &source;
    struct evaluation e;
    evaluation_open(&e, &setup);
    size_t row_bytes = N_SCORED * sizeof(double);
    size_t n_done = 0;
    for (size_t w = 1; w < N_WINDOWS; w += 1 + w % 3, n_done++) {
        e.table.done[w] = e.candidate_tables[0].done[w] = true;
        for (enum eval_column c = 0; c < EVAL_N_PAIR_COLUMNS; c++)
            memcpy(eval_table_row(&e.candidate_tables[0], c, w),
                   eval_table_row(&live.candidate_tables[0], c, w), row_bytes);
    }
    struct status_why why;
    assert_int_equal(evaluation_run(&e, &setup, &why), STATUS_OK);
    assert_asked_once(&hidden, (N_WINDOWS - n_done) * N_SCORED);
    assert_memory_equal(e.candidate_tables[0].cells, live.candidate_tables[0].cells,
                        EVAL_N_PAIR_COLUMNS * N_ROWS * sizeof(double));
    evaluation_close(&e);
}

/**
 * A code is 16/65535 wide where logits reach 16 below the largest, as they do here: a
 * log-probability is half of that off at most, 1.3e-4, and a little for the rounding of scale and
 * floor. The divergence is off by as much, and by the tokens that are raised to the floor: each
 * adds e^-16 times how far the candidate is below it, together 2e-5 in the mean here.
 */
static void codes_come_near_the_live_comparison(void **state)
{
    (void)state;
    struct eval_row_source source = source_of(&codes, EVAL_ROWS_CODES);
    source.max_rows = 64;
    struct setup setup = usual();
    setup.model = Q4;
    setup.base = &source;
    struct evaluation e;
    evaluate(&e, &setup);
    assert_asked_once(&codes, N_ROWS);
    const struct eval_table *own = &e.candidate_tables[0], *exact = &live.candidate_tables[0];
    double worst_log_prob = 0, sum = 0, exact_sum = 0, worst_kl = 0;
    size_t n_same = 0;
    for (size_t w = 0; w < N_WINDOWS; w++)
        for (size_t i = 0; i < N_SCORED; i++) {
            double a = eval_table_row(&e.table, EVAL_LOG_PROB, w)[i];
            double b = eval_table_row(&live.table, EVAL_LOG_PROB, w)[i];
            worst_log_prob = fmax(worst_log_prob, fabs(a - b));
            double kl = eval_table_row(own, EVAL_KL, w)[i];
            double exact_kl = eval_table_row(exact, EVAL_KL, w)[i];
            worst_kl = fmax(worst_kl, fabs(kl - exact_kl));
            sum += kl;
            exact_sum += exact_kl;
            n_same += eval_table_row(own, EVAL_SAME_TOP, w)[i] ==
                      eval_table_row(exact, EVAL_SAME_TOP, w)[i];
            assert_true(eval_table_row(own, EVAL_LOG_PROB, w)[i] ==
                        eval_table_row(exact, EVAL_LOG_PROB, w)[i]);
        }
    print_message("log p within %.3g, KL within %.3g (mean %.6g, exact %.6g), same top %zu of %d\n",
                  worst_log_prob, worst_kl, sum / N_ROWS, exact_sum / N_ROWS, n_same, N_ROWS);
    assert_true(worst_log_prob > 0 && worst_log_prob < 1.5e-4);
    assert_true(worst_kl < 1e-3 && fabs(sum - exact_sum) / N_ROWS < 5e-5);
    assert_true(n_same >= N_ROWS - 2);
    evaluation_close(&e);
}

static void refusals(void **state)
{
    (void)state;
    struct eval_row_source source = source_of(&hidden, EVAL_ROWS_HIDDEN);
    struct setup setup = usual();
    setup.model = Q4;
    setup.base = &source;
    setup.batch_tokens = N_CTX;
    hidden.refuse = 4 * N_SCORED + 3;
    struct evaluation e;
    evaluation_open(&e, &setup);
    struct status_why why;
    assert_int_equal(evaluation_run(&e, &setup, &why), STATUS_FORMAT);
    assert_string_equal(why.text, "row 63 is refused");
    assert_true(e.table.done[3] && !e.table.done[4]);
    hidden.refuse = N_ROWS;
    source.n_vocab--;
    assert_int_equal(evaluation_run(&e, &setup, &why), STATUS_USAGE);
    assert_non_null(strstr(why.text, "the base has a vocabulary of "));
    evaluation_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hidden_rows_give_the_live_comparison),
        cmocka_unit_test(done_windows_are_left_out),
        cmocka_unit_test(codes_come_near_the_live_comparison),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, evaluate_live, close_live);
}

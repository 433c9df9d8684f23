/*
 * Recorded rows against the exact ones: a model's own record must show the format's loss alone,
 * another's the divergence that a double-precision evaluation of both definitions has, and
 * llama.cpp's record of the reference material what is known of it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eval/metrics/check.h"
#include "eval/reference/logits_source.h"
#include "evaluation.h"
#include "tests/harness/cmocka.h"
#include "tests/model/float64.h"

#define F16 ASSAY_SOURCE_DIR "/data/tiny.F16.gguf"
#define Q4  ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf"
enum { N_CTX = 32, N_WINDOWS = 3, N_SCORED = 15, N_ROWS = N_WINDOWS * N_SCORED };

/** Records in memory. */
struct store {
    unsigned char *rows;
    size_t row_bytes, n_vocab;
    double reach;
};

static enum status store_write(void *user, struct kern_backend *backend, size_t first,
                               size_t n_rows, const void *rows, struct status_why *why)
{
    (void)backend;
    (void)why;
    struct store *s = user;
    memcpy(s->rows + first * s->row_bytes, rows, n_rows * s->row_bytes);
    return STATUS_OK;
}

static enum status store_rows(void *user, size_t first, size_t n_rows, const void **rows,
                              struct status_why *why)
{
    (void)n_rows;
    (void)why;
    struct store *s = user;
    *rows = s->rows + first * s->row_bytes;
    return STATUS_OK;
}

static void record(struct store *store, const char *model)
{
    struct eval_row_sink sink = {.kind = EVAL_ROWS_CODES, .user = store, .write = store_write};
    struct setup setup = setup_usual(model, N_CTX, N_WINDOWS);
    setup.sink = &sink;
    struct evaluation e;
    evaluation_open(&e, &setup);
    store->n_vocab = model_head(e.model)->n_rows;
    store->row_bytes = kern_record_codes(store->n_vocab) * sizeof(uint16_t);
    store->rows = malloc(N_ROWS * store->row_bytes);
    assert_non_null(store->rows);
    assert_int_equal(evaluation_run(&e, &setup, NULL), STATUS_OK);
    evaluation_close(&e);
}

static struct store own, other; /* of F16 and of Q4_K_M */

static int record_both(void **state)
{
    (void)state;
    record(&own, F16);
    record(&other, Q4);
    return 0;
}

static int free_both(void **state)
{
    (void)state;
    free(own.rows);
    free(other.rows);
    return 0;
}

/** A finished check of F16. */
struct scene {
    struct evaluation e; /* model, stream, plan */
    struct eval_row_source source, other;
    const struct eval_row_source *others[1];
    size_t n_others;
    double reach;
    struct eval_check *check;
    struct eval_table tables[2], of_other;
    struct eval_check_result result;
};

static void scene_run(struct scene *s, size_t batch_tokens, size_t n_worst)
{
    struct status_why why = {""};
    struct eval_check_task task = {.model = s->e.model,
                                   .backends = &s->e.backend,
                                   .n_backends = 1,
                                   .plan = &s->e.plan,
                                   .stream = &s->e.stream,
                                   .recorded = &s->source,
                                   .reach = s->reach,
                                   .others = s->others,
                                   .n_others = s->n_others};
    if (eval_check_open(&s->check, &task, &why))
        fail_msg("%s", why.text);
    size_t n_windows = s->e.plan.n_windows, n_scored = s->e.plan.n_scored;
    assert_int_equal(eval_table_make(&s->tables[0], EVAL_N_COLUMNS, n_windows, n_scored, NULL),
                     STATUS_OK);
    assert_int_equal(eval_table_make(&s->tables[1], EVAL_N_PAIR_COLUMNS, n_windows, n_scored, NULL),
                     STATUS_OK);
    assert_int_equal(eval_table_make(&s->of_other, EVAL_N_PAIR_COLUMNS, n_windows, n_scored, NULL),
                     STATUS_OK);
    struct eval_models models = eval_check_models(s->check);
    struct eval_windows windows = {.plan = &s->e.plan,
                                   .stream = &s->e.stream,
                                   .tables = s->tables,
                                   .n_tables = 2,
                                   .sink = models.sink};
    struct eval_run_options options = {0};
    eval_windows_open(&windows);
    if (eval_run_prepare(&windows.units, &models, batch_tokens, &why) ||
        eval_run(&windows.units, &models, &options, NULL, &why))
        fail_msg("%s", why.text);
    for (size_t w = 0; w < n_windows; w++)
        eval_check_window(s->check, &(struct eval_check_tables){s->tables, 2, &s->of_other}, w);
    eval_windows_close(&windows);
    assert_int_equal(eval_check_summarise(&s->result, s->check, s->tables, n_worst, NULL),
                     STATUS_OK);
}

static struct eval_row_source source_of(struct store *store)
{
    return (struct eval_row_source){.kind = EVAL_ROWS_CODES,
                                    .n_vocab = store->n_vocab,
                                    .cut = -(double)INFINITY,
                                    .user = store,
                                    .rows = store_rows};
}

/** other: NULL is allowed. */
static void scene_make_beside(struct scene *s, struct store *store, struct store *other_store,
                              size_t batch_tokens)
{
    *s = (struct scene){.reach = store->reach, .n_others = other_store != NULL};
    s->others[0] = &s->other;
    if (other_store)
        s->other = source_of(other_store);
    struct setup setup = setup_usual(F16, N_CTX, N_WINDOWS);
    evaluation_open(&s->e, &setup);
    s->source = source_of(store);
    scene_run(s, batch_tokens, 2);
}

static void scene_make(struct scene *s, struct store *store, size_t batch_tokens)
{
    scene_make_beside(s, store, NULL, batch_tokens);
}

static void scene_free(struct scene *s)
{
    eval_check_result_free(&s->result);
    eval_check_close(s->check);
    eval_table_free(&s->tables[0]);
    eval_table_free(&s->tables[1]);
    eval_table_free(&s->of_other);
    evaluation_close(&s->e);
}

/* A record of the exact rows: everything that it shows is the file's, to the bit. */
static void own_record_is_all_floor(void **state)
{
    (void)state;
    struct scene s;
    scene_make(&s, &own, N_CTX);
    for (size_t w = 0; w < N_WINDOWS; w++)
        for (size_t i = 0; i < N_SCORED; i++) {
            struct eval_check_floor floor = eval_check_floor_of(s.check, w, i);
            double kl = eval_table_row(&s.tables[1], EVAL_KL, w)[i];
            assert_memory_equal(&kl, &floor.kld, sizeof kl);
            double exact = eval_table_row(&s.tables[0], EVAL_LOG_PROB, w)[i];
            double recorded = eval_table_row(&s.tables[1], EVAL_LOG_PROB, w)[i];
            assert_true(floor.nll == exact - recorded);
            /* At most, every token is raised to the floor, and half a step is lost. */
            assert_true(kl >= 0 && kl < (double)own.n_vocab * exp(-16) + 1e-7);
        }
    assert_true(s.result.share == 1 && s.result.beyond == 0);
    assert_true(s.result.floor.value > 0);
    assert_true(s.result.nll.rms == s.result.floor_nll.rms && s.result.nll.rms > 0);
    assert_true(s.result.kld.figures.same_top.value == 1);
    scene_free(&s);
}

/** ln of the exact probabilities after each scored position of window w: [N_SCORED, V]. */
static double *exact_rows(struct float64_model *m, const struct scene *s, size_t w)
{
    size_t n_vocab = float64_vocab(m), width = float64_width(m);
    int32_t ids[N_CTX];
    for (size_t p = 0; p < s->e.plan.n_inputs; p++)
        ids[p] = eval_plan_input(&s->e.plan, &s->e.stream, w, p);
    double *hidden = malloc(N_CTX * width * sizeof *hidden);
    double *rows = malloc(N_SCORED * n_vocab * sizeof *rows);
    assert_true(hidden && rows);
    float64_hidden(m, ids, s->e.plan.n_inputs, hidden);
    for (size_t i = 0; i < N_SCORED; i++)
        float64_log_probs(m, hidden + (s->e.plan.first_scored + i) * width, rows + i * n_vocab);
    free(hidden);
    return rows;
}

/** KL(exact || record renormalised), as it is defined. */
static double divergence(const double *exact, const unsigned char *record, size_t n_vocab)
{
    float scale, floor;
    memcpy(&scale, record, sizeof scale);
    memcpy(&floor, record + 4, sizeof floor);
    long double sum = 0, kl = 0;
    for (size_t k = 0; k < n_vocab; k++) {
        uint16_t code;
        memcpy(&code, record + 8 + 2 * k, sizeof code);
        double log_r = (double)(scale * (float)code + floor);
        sum += expl((long double)log_r);
        kl += expl((long double)exact[k]) * ((long double)exact[k] - (long double)log_r);
    }
    return (double)(kl + logl(sum));
}

/*
 * What the format should lose of a row on average: half the variance of an error that is uniform
 * within a step, scale^2 / 12, times 1 - sum p^2 (what is common to all tokens cancels), and
 * what the floor under the small probabilities makes, which has no randomness in it.
 */
static double expected_floor(const double *exact, const unsigned char *record, size_t n_vocab)
{
    float scale, floor;
    memcpy(&scale, record, sizeof scale);
    memcpy(&floor, record + 4, sizeof floor);
    double squares = 0, raised = 0, lost = 0;
    for (size_t k = 0; k < n_vocab; k++) {
        double p = exp(exact[k]);
        squares += p * p;
        if (exact[k] < (double)floor) {
            raised += exp((double)floor) - p;
            lost += p * (exact[k] - (double)floor);
        }
    }
    return (double)scale * (double)scale / 24 * (1 - squares) + log1p(raised) + lost;
}

/*
 * float32 moves a logit by 1e-5, which moves a token's KL by about 1e-5 sqrt(2 KL): 1e-4 of it
 * where KL is 0.01 and more, as here on average. The floor is held to its expectation: a row
 * averages over the errors of its likely tokens, 45 rows over each other.
 */
static void another_record_agrees_with_float64(void **state)
{
    (void)state;
    struct scene s;
    scene_make(&s, &other, 4096);
    struct float64_model *m = float64_open(model_file(s.e.model));
    size_t n_vocab = float64_vocab(m);
    double sum = 0, floor = 0;
    for (size_t w = 0; w < N_WINDOWS; w++) {
        double *rows = exact_rows(m, &s, w);
        for (size_t i = 0; i < N_SCORED; i++) {
            size_t row = w * N_SCORED + i;
            const double *exact = rows + i * n_vocab;
            double expected = divergence(exact, other.rows + row * other.row_bytes, n_vocab);
            double found = eval_table_row(&s.tables[1], EVAL_KL, w)[i];
            assert_true(fabs(found - expected) <= 2e-5 * sqrt(2 * expected));
            sum += expected;
            floor += expected_floor(exact, own.rows + row * own.row_bytes, n_vocab);
        }
        free(rows);
    }
    float64_close(m);
    print_message("KLD %.6e, float64 %.6e; floor %.3e, expected %.3e\n",
                  s.result.kld.figures.kld.value, sum / N_ROWS, s.result.floor.value,
                  floor / N_ROWS);
    assert_true(fabs(s.result.kld.figures.kld.value / (sum / N_ROWS) - 1) <= 1e-4);
    assert_true(fabs(s.result.floor.value / (floor / N_ROWS) - 1) <= 0.01);
    assert_true(s.result.beyond == s.result.kld.figures.kld.value - s.result.floor.value);
    assert_int_equal(s.result.kld.n_worst, 2);
    scene_free(&s);
}

/** A record whose codes go `reach` below the top, as it is defined, from ln of probabilities. */
static void encode(unsigned char *record, const double *exact, size_t n_vocab, double reach)
{
    double max = -(double)INFINITY, min = (double)INFINITY;
    for (size_t k = 0; k < n_vocab; k++) {
        max = fmax(max, exact[k]);
        min = fmin(min, exact[k]);
    }
    float floor = (float)fmax(min, max - reach), scale = (float)((max - (double)floor) / 65535);
    memcpy(record, &scale, sizeof scale);
    memcpy(record + 4, &floor, sizeof floor);
    for (size_t k = 0; k < n_vocab; k++) {
        double code = fmin(rint((exact[k] - (double)floor) / (double)scale), 65535);
        memcpy(record + 8 + 2 * k, &(uint16_t){(uint16_t)fmax(code, 0)}, sizeof(uint16_t));
    }
}

/*
 * ik_llama.cpp's codes go further down than llama.cpp's. Float64's rows so recorded have no error
 * but the file's, and that is small: against a floor of 16 it would be beyond it by -2e-6.
 */
static void a_deeper_floor_is_known(void **state)
{
    (void)state;
    struct scene s;
    scene_make(&s, &own, 4096);
    struct float64_model *m = float64_open(model_file(s.e.model));
    struct store deep = own;
    deep.rows = malloc(N_ROWS * deep.row_bytes);
    assert_non_null(deep.rows);
    float step = 0;
    double *rows = NULL; /* of a window */
    for (size_t row = 0; row < N_ROWS; row++) {
        if (row % N_SCORED == 0) {
            free(rows);
            rows = exact_rows(m, &s, row / N_SCORED);
        }
        unsigned char *record = deep.rows + row * deep.row_bytes;
        encode(record, rows + row % N_SCORED * deep.n_vocab, deep.n_vocab, 24);
        float scale;
        memcpy(&scale, record, sizeof scale);
        step = fmaxf(step, scale);
    }
    free(rows);
    float64_close(m);
    double floor_of_16 = s.result.floor.value;
    scene_free(&s);
    deep.reach = eval_logits_reach((double)step);
    assert_true(deep.reach == 24);
    scene_make(&s, &deep, 4096);
    print_message("floor %.3e, with 16 %.3e; beyond it %.1e\n", s.result.floor.value, floor_of_16,
                  s.result.beyond);
    assert_true(s.result.floor.value < floor_of_16 / 100);
    assert_true(fabs(s.result.beyond) < 1e-10);
    scene_free(&s);
    free(deep.rows);
}

static void reaches_are_those_of_programs(void **state)
{
    (void)state;
    static const struct {
        float range;
        double reach;
    } cases[] = {{0, 16}, {12, 16}, {16, 16}, {16.5f, 24}, {22, 24}, {24, 24}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_true(eval_logits_reach((double)(cases[i].range / 65535)) == cases[i].reach);
    assert_true(fabs(eval_logits_reach(32.0 / 65535) - 32) < 1e-4);
}

/* The tables are those of a live comparison of the other kind: exact first, recorded second. */
static void tables_are_turned_around(void **state)
{
    (void)state;
    struct scene s;
    scene_make(&s, &other, 4096);
    struct setup setup = setup_usual(F16, N_CTX, N_WINDOWS);
    setup.candidates[0] = Q4;
    setup.n_candidates = 1;
    struct evaluation live;
    evaluate(&live, &setup);
    const struct eval_table *pair = &live.candidate_tables[0];
    for (size_t w = 0; w < N_WINDOWS; w++) {
        assert_memory_equal(eval_table_row(&s.tables[0], EVAL_LOG_PROB, w),
                            eval_table_row(&live.table, EVAL_LOG_PROB, w),
                            N_SCORED * sizeof(double));
        for (size_t i = 0; i < N_SCORED; i++) {
            /* The codes are off by half a step of 16 / 65535 at most. */
            const double step = 16.0 / 65535;
            assert_true(fabs(eval_table_row(&s.tables[1], EVAL_LOG_PROB, w)[i] -
                             eval_table_row(pair, EVAL_LOG_PROB, w)[i]) <= 0.6 * step);
            assert_true(fabs(eval_table_row(&s.tables[1], EVAL_KL, w)[i] -
                             eval_table_row(pair, EVAL_KL, w)[i]) <= step);
            assert_true(fabs(eval_table_row(&s.tables[1], EVAL_REVERSE_KL, w)[i] -
                             eval_table_row(pair, EVAL_REVERSE_KL, w)[i]) <= step);
            assert_true(eval_table_row(&s.tables[1], EVAL_BASE_TOP, w)[i] ==
                        eval_table_row(pair, EVAL_BASE_TOP, w)[i]);
        }
    }
    evaluation_close(&live);
    scene_free(&s);
}

/* A second recording is scored as it would be alone, to the bit, and so is the first beside it. */
static void a_second_recording_is_scored_as_the_first(void **state)
{
    (void)state;
    const size_t n_bytes = EVAL_N_PAIR_COLUMNS * N_ROWS * sizeof(double);
    struct scene first, second, both;
    scene_make(&first, &own, 4096);
    scene_make(&second, &other, 4096);
    for (size_t batch = N_CTX; batch <= 4096; batch += 4096 - N_CTX) {
        scene_make_beside(&both, &own, &other, batch);
        assert_memory_equal(both.tables[1].cells, first.tables[1].cells, n_bytes);
        assert_memory_equal(both.of_other.cells, second.tables[1].cells, n_bytes);
        assert_true(eval_check_apart(both.check, 0, 0, 0) > 1e-6);
        assert_false(eval_check_same_bits(both.check, 0, &both.of_other));
        scene_free(&both);
    }
    /* The same bits in other memory, and one of them changed, in the last row. */
    struct store copy = own;
    copy.rows = malloc(N_ROWS * own.row_bytes);
    assert_non_null(copy.rows);
    memcpy(copy.rows, own.rows, N_ROWS * own.row_bytes);
    scene_make_beside(&both, &own, &copy, 4096);
    assert_true(eval_check_same_bits(both.check, 0, &both.of_other));
    scene_free(&both);
    copy.rows[(N_ROWS - 1) * own.row_bytes + 100] ^= 1;
    scene_make_beside(&both, &own, &copy, 4096);
    assert_false(eval_check_same_bits(both.check, 0, &both.of_other));
    scene_free(&both);
    free(copy.rows);
    scene_free(&second);
    scene_free(&first);
}

static void no_bit_depends_on_the_batch(void **state)
{
    (void)state;
    struct scene a, b;
    scene_make(&a, &other, N_CTX);
    scene_make(&b, &other, 4096);
    assert_memory_equal(a.tables[1].cells, b.tables[1].cells,
                        EVAL_N_PAIR_COLUMNS * N_ROWS * sizeof(double));
    assert_memory_equal(&a.result.floor, &b.result.floor, sizeof a.result.floor);
    assert_memory_equal(&a.result.floor_nll, &b.result.floor_nll, sizeof a.result.floor_nll);
    scene_free(&a);
    scene_free(&b);
}

/*
 * llama.cpp's record of tiny.F16. A float64 evaluation over all of its 508 rows gave a mean of
 * 4.45e-6 and a maximum of 4.88e-5, known to three digits. The floor makes most of that. What is
 * left comes from activations that llama.cpp rounds to float16: 2^-12 of each at worst, about
 * 5e-4 in a logit after all layers, which is 1e-7 nats.
 */
static void llama_cpp_is_as_far_off_as_known(void **state)
{
    (void)state;
    const char *path = ASSAY_REFERENCE_DIR "/reference/kld/f16-c256-4.kld";
    if (access(path, R_OK) != 0)
        skip();
    struct scene s = {0};
    struct status_why why = {""};
    struct eval_logits_file file;
    struct eval_logits_reading reading;
    struct setup setup = setup_usual(ASSAY_REFERENCE_DIR "/models/tiny.F16.gguf", N_CTX, N_WINDOWS);
    evaluation_open(&s.e, &setup);
    eval_stream_free(&s.e.stream);
    if (eval_logits_open(&file, path, &why) ||
        eval_stream_of_ids(&s.e.stream, file.ids, file.shape.n_chunks * file.shape.n_ctx, &why))
        fail_msg("%s", why.text);
    struct eval_plan_options plan = {.n_ctx = file.shape.n_ctx,
                                     .bos = model_token_bos(model_tokenizer(s.e.model))};
    assert_int_equal(eval_plan_make(&s.e.plan, &plan, s.e.stream.n, NULL), STATUS_OK);
    s.source = eval_logits_source(&reading, &file, 0, -(double)INFINITY);
    scene_run(&s, 2048, 0);
    const struct eval_kld_result *r = &s.result.kld;
    print_message("%zu rows: KLD %.4e, maximum %.4e, floor %.4e, beyond it %.2e\n", r->n_tokens,
                  r->figures.kld.value, r->kld_quantiles[0].value, s.result.floor.value,
                  s.result.beyond);
    assert_int_equal(r->n_tokens, 508);
    assert_true(fabs(r->figures.kld.value / 4.45e-6 - 1) <= 0.01);
    assert_true(fabs(r->kld_quantiles[0].value / 4.88e-5 - 1) <= 0.01);
    assert_true(s.result.beyond > 0 && s.result.beyond < 5e-7);
    scene_free(&s);
    eval_logits_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_record_is_all_floor),
        cmocka_unit_test(another_record_agrees_with_float64),
        cmocka_unit_test(a_deeper_floor_is_known),
        cmocka_unit_test(reaches_are_those_of_programs),
        cmocka_unit_test(tables_are_turned_around),
        cmocka_unit_test(a_second_recording_is_scored_as_the_first),
        cmocka_unit_test(no_bit_depends_on_the_batch),
        cmocka_unit_test(llama_cpp_is_as_far_off_as_known),
    };
    return cmocka_run_group_tests(tests, record_both, free_both);
}

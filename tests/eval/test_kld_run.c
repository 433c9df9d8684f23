/*
 * Comparisons of the bundled models on the bundled text: a model with itself, the same bits
 * however the work is cut and however many candidates there are, and who is refused.
 */
#include <math.h>
#include <string.h>

#include "eval/identity.h"
#include "eval/streams/idle.h"
#include "evaluation.h"
#include "tests/harness/cmocka.h"

#define F16 ASSAY_SOURCE_DIR "/data/tiny.F16.gguf"
#define Q4  ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf"
enum { N_CTX = 32, N_WINDOWS = 12 };

static struct setup usual(void)
{
    struct setup setup = setup_usual(F16, N_CTX, N_WINDOWS);
    setup.candidates[0] = Q4;
    setup.n_candidates = 1;
    setup.want_js = true;
    return setup;
}

/** The comparison of F16 and Q4_K_M that others are compared with. */
static struct evaluation base;

static int evaluate_base(void **state)
{
    (void)state;
    struct setup setup = usual();
    setup.cpu.n_threads = 1;
    evaluate(&base, &setup);
    return 0;
}

static int close_base(void **state)
{
    (void)state;
    evaluation_close(&base);
    return 0;
}

/** Cells are compared in the windows of a, which may be the first ones of b. */
static void assert_same_cells(const struct eval_table *a, const struct eval_table *b)
{
    assert_int_equal(a->n_columns, b->n_columns);
    assert_int_equal(a->n_scored, b->n_scored);
    assert_true(a->n_windows <= b->n_windows);
    size_t n_cells = a->n_windows * a->n_scored, n_cells_b = b->n_windows * b->n_scored;
    for (size_t w = 0; w < a->n_windows; w++)
        assert_true(a->done[w] && b->done[w]);
    for (size_t c = 0; c < a->n_columns; c++)
        assert_memory_equal(a->cells + c * n_cells, b->cells + c * n_cells_b,
                            n_cells * sizeof(double));
}

static void check_variant(const struct setup *setup)
{
    struct evaluation e;
    evaluate(&e, setup);
    assert_int_equal(e.table.n_windows, setup->plan.max_windows);
    assert_same_cells(&e.table, &base.table);
    assert_same_cells(&e.candidate_tables[0], &base.candidate_tables[0]);
    evaluation_close(&e);
}

static void same_bits_for_any_threads_batch_and_isa(void **state)
{
    (void)state;
    struct setup setup = usual();
    setup.cpu.n_threads = 3;
    setup.batch_tokens = 1;
    check_variant(&setup);
    setup.batch_tokens = 5 * N_CTX;
    setup.run.tile_tokens = 48;
    check_variant(&setup);
    setup.cpu.isa_cap = (enum kern_isa)(KERN_ISA_SCALAR + 1);
    check_variant(&setup);
    setup.cpu.isa_cap = KERN_ISA_SCALAR;
    setup.plan.max_windows = 2; /* scalar code is slow, under a sanitizer above all */
    check_variant(&setup);
}

/** Neither a candidate's company nor the base's scores move, and the base's are perplexity's. */
static void same_bits_alone_and_among_others(void **state)
{
    (void)state;
    struct setup setup = usual();
    setup.candidates[0] = F16;
    setup.candidates[1] = Q4;
    setup.candidates[2] = Q4;
    setup.n_candidates = 3;
    struct evaluation e;
    evaluate(&e, &setup);
    assert_same_cells(&e.table, &base.table);
    assert_same_cells(&e.candidate_tables[1], &base.candidate_tables[0]);
    assert_same_cells(&e.candidate_tables[2], &base.candidate_tables[0]);
    evaluation_close(&e);
    setup.n_candidates = 0;
    setup.want_js = false;
    evaluate(&e, &setup);
    assert_same_cells(&e.table, &base.table);
    evaluation_close(&e);
    setup.model = Q4;
    evaluate(&e, &setup);
    for (size_t w = 0; w < N_WINDOWS; w++)
        for (int c = 0; c < EVAL_N_COLUMNS; c++)
            assert_memory_equal(eval_table_row(&e.table, (enum eval_column)c, w),
                                eval_table_row(&base.candidate_tables[0], (enum eval_column)c, w),
                                e.table.n_scored * sizeof(double));
    evaluation_close(&e);
}

/** Not nearly: to the bit. */
static void a_model_equals_itself(void **state)
{
    (void)state;
    struct setup setup = usual();
    setup.model = Q4;
    struct evaluation e;
    evaluate(&e, &setup);
    struct eval_kld_tables tables = evaluation_pair(&e, 0);
    struct eval_kld_result r;
    assert_int_equal(eval_kld(&r, &tables, 1, NULL), STATUS_OK);
    const struct eval_kld_figures *f = &r.figures;
    assert_true(f->kld.value == 0 && f->kld.error == 0);
    assert_true(r.kld_quantiles[0].value == 0 && r.kld_quantiles[EVAL_N_QUANTILES - 1].value == 0);
    assert_true(f->dp.value == 0 && f->dp.error == 0);
    assert_true(r.dp_quantiles[0].value == 0 && r.dp_quantiles[EVAL_N_QUANTILES - 1].value == 0);
    assert_true(f->rms_dp.value == 0 && f->rms_dp.error == 0);
    assert_true(f->same_top.value == 1 && f->same_top.error == 0);
    assert_true(f->log_ratio.value == 0 && f->log_ratio.error == 0);
    assert_true(f->ratio.value == 1 && f->difference.value == 0 && f->difference.error == 0);
    assert_true(f->correlation == 1);
    assert_true(r.reverse_kld.value == 0 && r.js.value == 0);
    assert_true(r.common_5.value == 1 && r.common_10.value == 1);
    eval_kld_free(&r);
    evaluation_close(&e);
}

/** Divergences have the size that 4 bits cost; tests/cli/kld.cases has digits. */
static void scores_are_sensible(void **state)
{
    (void)state;
    struct eval_kld_tables tables = evaluation_pair(&base, 0);
    struct eval_kld_result r;
    assert_int_equal(eval_kld(&r, &tables, 1, NULL), STATUS_OK);
    assert_int_equal(r.nonfinite.n, 0);
    assert_true(r.figures.kld.value > 1e-3 && r.figures.kld.value < 2e-2);
    assert_true(r.reverse_kld.value > 1e-3 && r.reverse_kld.value < 2e-2);
    /* Near each other, each is half as far from the mean of both: a quarter of the divergence. */
    assert_true(r.js.value > 0.2 * r.figures.kld.value && r.js.value < 0.3 * r.figures.kld.value);
    assert_true(r.common_5.value > 0.8 && r.common_10.value > 0.8);
    assert_true(r.kld_quantiles[EVAL_N_QUANTILES - 1].value >= 0);
    assert_true(r.figures.same_top.value > 0.8);
    for (size_t k = 1; k < EVAL_N_QUANTILES; k++)
        assert_true(r.kld_quantiles[k].value <= r.kld_quantiles[k - 1].value);
    const struct eval_scored_token *worst = r.worst;
    assert_true(eval_table_row(tables.candidate, EVAL_KL, worst->window)[worst->index] ==
                r.kld_quantiles[0].value);
    eval_kld_free(&r);
}

/** A candidate that is left out has the scores of logits that are all 0; the others keep theirs. */
static void a_model_can_be_left_out(void **state)
{
    (void)state;
    const atomic_bool flags[] = {false, true, false};
    struct eval_idle idle = {flags};
    struct eval_stream_source source = eval_idle_source(&idle);
    struct setup setup = usual();
    setup.candidates[1] = Q4;
    setup.n_candidates = 2;
    setup.streams = &source;
    struct evaluation e;
    evaluate(&e, &setup);
    assert_same_cells(&e.table, &base.table);
    assert_same_cells(&e.candidate_tables[1], &base.candidate_tables[0]);
    const struct eval_table *left_out = &e.candidate_tables[0];
    for (size_t w = 0; w < N_WINDOWS; w++)
        for (size_t i = 0; i < left_out->n_scored; i++)
            assert_true(eval_table_row(left_out, EVAL_LOG_PROB, w)[i] == 0 &&
                        eval_table_row(left_out, EVAL_KL, w)[i] == 0);
    evaluation_close(&e);
}

static void check_memory_is_foretold(void **state)
{
    (void)state;
    double tables = eval_table_bytes(&base.table) + eval_table_bytes(&base.candidate_tables[0]);
    assert_true(base.memory.scores > tables);
    assert_true(base.memory.total > base.memory.weights + base.memory.scorer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_for_any_threads_batch_and_isa),
        cmocka_unit_test(same_bits_alone_and_among_others),
        cmocka_unit_test(a_model_equals_itself),
        cmocka_unit_test(a_model_can_be_left_out),
        cmocka_unit_test(scores_are_sensible),
        cmocka_unit_test(check_memory_is_foretold),
    };
    return cmocka_run_group_tests(tests, evaluate_base, close_base);
}

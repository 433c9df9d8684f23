/*
 * Runs of the bundled model on the bundled text: the same bits however the work is cut, and
 * what a caller sees of a run: windows, progress, an interruption, memory.
 */
#include <math.h>
#include <string.h>

#include "eval/run/memory.h"
#include "evaluation.h"
#include "tests/harness/cmocka.h"

enum { N_CTX = 32, N_WINDOWS = 70 };

static struct setup usual(void)
{
    return setup_usual(ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf", N_CTX, N_WINDOWS);
}

/** The evaluation that others are compared with. */
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

/** Every cell of the windows that `e` has, bit for bit. */
static void assert_same_bits(const struct evaluation *e)
{
    assert_true(e->table.n_windows <= base.table.n_windows);
    assert_int_equal(e->table.n_scored, base.table.n_scored);
    for (size_t w = 0; w < e->table.n_windows; w++)
        for (int c = 0; c < EVAL_N_COLUMNS; c++) {
            assert_true(e->table.done[w]);
            assert_memory_equal(eval_table_row(&e->table, (enum eval_column)c, w),
                                eval_table_row(&base.table, (enum eval_column)c, w),
                                e->table.n_scored * sizeof(double));
        }
}

static void check_variant(const struct setup *setup)
{
    struct evaluation e;
    evaluate(&e, setup);
    assert_same_bits(&e);
    evaluation_close(&e);
}

static void scores_are_sensible(void **state)
{
    (void)state;
    for (size_t w = 0; w < N_WINDOWS; w++)
        for (size_t i = 0; i < base.table.n_scored; i++) {
            double log_prob = eval_table_row(&base.table, EVAL_LOG_PROB, w)[i];
            double rank = eval_table_row(&base.table, EVAL_RANK, w)[i];
            double entropy = eval_table_row(&base.table, EVAL_ENTROPY, w)[i];
            assert_true(log_prob < 0 && log_prob > -40);
            assert_true(rank >= 1 && rank <= 2048 && rank == floor(rank));
            assert_true(entropy > 0 && entropy < log(2048));
            /* rank - 1 tokens are at least as likely: rank * p <= 1. */
            assert_true(log(rank) + log_prob <= 1e-12);
        }
}

static void same_bits_for_any_number_of_threads(void **state)
{
    (void)state;
    for (unsigned n = 2; n <= 4; n += 2) {
        struct setup setup = usual();
        setup.cpu.n_threads = n;
        check_variant(&setup);
    }
}

static void same_bits_for_any_batch(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 64, 512, 2048, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct setup setup = usual();
        setup.batch_tokens = sizes[i];
        check_variant(&setup);
    }
}

static void same_bits_for_any_tile(void **state)
{
    (void)state;
    for (size_t tile = 40; tile < 2000; tile *= 7) {
        struct setup setup = usual();
        setup.run.tile_tokens = tile;
        setup.batch_tokens = 100000;
        check_variant(&setup);
    }
}

/** Scalar code is slow, so it takes the first window only. */
static void same_bits_for_any_isa(void **state)
{
    (void)state;
    for (enum kern_isa isa = KERN_ISA_SCALAR; isa <= kern_isa_detect(); isa++) {
        struct setup setup = usual();
        setup.cpu.isa_cap = isa;
        setup.plan.max_windows = isa == KERN_ISA_SCALAR ? 1 : N_WINDOWS;
        check_variant(&setup);
    }
}

/** What a run tells its caller. */
struct watch {
    size_t n_windows; /* reported so far */
    double fraction;  /* the last one */
    size_t n_progress;
    size_t stop_after; /* windows, then the flag is set; 0: never */
    atomic_bool cancel;
};

static void on_window(void *user, size_t w)
{
    struct watch *watch = user;
    assert_int_equal(w, watch->n_windows);
    watch->n_windows++;
    if (watch->n_windows == watch->stop_after)
        atomic_store(&watch->cancel, true);
}

static void on_progress(void *user, const struct eval_progress *p)
{
    struct watch *watch = user;
    assert_true(p->fraction >= watch->fraction && p->fraction <= 1);
    assert_true(p->n_units_done <= p->n_units);
    assert_true(p->seconds >= 0);
    watch->fraction = p->fraction;
    watch->n_progress++;
}

static void reports_windows_and_progress(void **state)
{
    (void)state;
    struct watch watch = {0};
    struct setup setup = usual();
    setup.batch_tokens = 310;
    setup.run =
        (struct eval_run_options){.unit_done = on_window, .progress = on_progress, .user = &watch};
    struct evaluation e;
    evaluate(&e, &setup);
    assert_int_equal(watch.n_windows, N_WINDOWS);
    assert_true(watch.fraction == 1);
    /* 310 tokens are ten windows of 31 inputs: seven batches, of four layers each, and the heads.
     */
    assert_int_equal(e.stats.n_batches, 7);
    assert_true(watch.n_progress >= 7 * 5);
    assert_int_equal(e.stats.n_units, N_WINDOWS);
    assert_int_equal(e.stats.n_inputs, N_WINDOWS * (N_CTX - 1));
    assert_int_equal(e.stats.max_batch_tokens, 10 * (N_CTX - 1));
    assert_true(e.stats.seconds >= e.stats.times.forward + e.stats.times.head);
    assert_true(e.result.complete);
    evaluation_close(&e);
}

/** Windows take equally long: what is left to a third of them is told at the pace so far. */
static void on_look(void *user, const struct eval_progress *p)
{
    size_t *n_told = user;
    const double look = (double)(N_WINDOWS / 3) / N_WINDOWS;
    assert_true(p->fraction == 0 || p->seconds_left >= 0);
    if (p->fraction == 0)
        return;
    double left = fmax(look - p->fraction, 0) / p->fraction * p->seconds;
    if (p->n_units_done < N_WINDOWS / 3)
        assert_true(fabs(p->seconds_to_look - left) < 1e-6 * p->seconds);
    else
        assert_true(p->seconds_to_look == 0);
    *n_told += p->seconds_to_look > 0;
}

static void tells_the_next_look(void **state)
{
    (void)state;
    size_t n_told = 0;
    struct setup setup = usual();
    setup.batch_tokens = 310;
    setup.n_look = N_WINDOWS / 3;
    setup.run = (struct eval_run_options){.progress = on_look, .user = &n_told};
    struct evaluation e;
    evaluate(&e, &setup);
    assert_true(n_told > 0);
    evaluation_close(&e);
}

enum { LONG_TILE = 60, N_LONG_TILES = 4 };

/** The shares of the first layer's tiles, as they are told. */
struct shares {
    double fractions[N_LONG_TILES];
    size_t n;
};

static void on_share(void *user, const struct eval_progress *p)
{
    struct shares *shares = user;
    if (shares->n < N_LONG_TILES)
        shares->fractions[shares->n++] = p->fraction;
}

/** Operations of a layer of the bundled model for a window's first n tokens, from its shapes. */
static double layer_operations(size_t n)
{
    double weights = 2.0 * 256 * 256 + 2.0 * 128 * 256 + 3.0 * 768 * 256;
    double pairs = (double)(n * (n + 1) / 2);
    return 2 * (double)n * weights + pairs * 2 * 8 * (32 + 32);
}

/** In a long window the last tiles take longest: attention's share grows from tile to tile. */
static void progress_goes_with_the_arithmetic(void **state)
{
    (void)state;
    struct setup setup =
        setup_usual(ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf", N_LONG_TILES * LONG_TILE + 1, 1);
    struct shares shares = {.n = 0};
    setup.run =
        (struct eval_run_options){.tile_tokens = LONG_TILE, .progress = on_share, .user = &shares};
    struct evaluation e;
    evaluate(&e, &setup);
    assert_int_equal(shares.n, N_LONG_TILES);
    double head = 2.0 * 2048 * 256 * (double)e.plan.n_scored;
    double all = 4 * layer_operations(N_LONG_TILES * LONG_TILE) + head;
    for (size_t i = 0; i < N_LONG_TILES; i++) {
        double expected = layer_operations((i + 1) * LONG_TILE) / all;
        assert_true(fabs(shares.fractions[i] - expected) < 1e-12);
    }
    evaluation_close(&e);
}

/** An interrupted run keeps its finished windows; a second call does the rest, to the bit. */
static void can_be_interrupted_and_taken_up_again(void **state)
{
    (void)state;
    struct watch watch = {.stop_after = 20};
    struct setup setup = usual();
    setup.cancel = &watch.cancel;
    setup.batch_tokens = 10 * N_CTX;
    setup.run = (struct eval_run_options){.unit_done = on_window, .user = &watch};
    struct evaluation e;
    struct status_why why = {0};
    evaluation_open(&e, &setup);
    assert_int_equal(evaluation_run(&e, &setup, &why), STATUS_CANCELLED);
    assert_int_equal(e.result.n_windows, 20);
    assert_int_equal(e.stats.n_units, 20);
    assert_false(e.result.complete);

    /* The figures are those of the 20 windows alone. */
    struct setup twenty = usual();
    twenty.plan.max_windows = 20;
    struct evaluation short_one;
    evaluate(&short_one, &twenty);
    assert_memory_equal(&short_one.result.figures, &e.result.figures, sizeof e.result.figures);
    evaluation_close(&short_one);

    watch.stop_after = 0;
    atomic_store(&watch.cancel, false);
    assert_int_equal(evaluation_run(&e, &setup, &why), STATUS_OK);
    assert_int_equal(e.stats.n_units, N_WINDOWS - 20);
    assert_same_bits(&e);
    evaluation_close(&e);
}

/** A vocabulary may name more tokens than the embedding has rows. */
static void refuses_ids_beyond_the_model(void **state)
{
    (void)state;
    struct setup setup = usual();
    struct evaluation e;
    struct status_why why = {0};
    evaluation_open(&e, &setup);
    e.stream.ids[5] = 2048;
    assert_int_equal(evaluation_run(&e, &setup, &why), STATUS_FORMAT);
    print_message("%s\n", why.text);
    assert_non_null(strstr(why.text, "2048"));
    assert_non_null(strstr(why.text, "tiny.Q4_K_M.gguf"));
    evaluation_close(&e);
}

/** The scores of positions [from, N_CTX - 1) of window w of e equal the base's in window v. */
static void assert_same_scores(const struct evaluation *e, size_t w, size_t v, size_t from)
{
    for (int c = 0; c < EVAL_N_COLUMNS; c++)
        assert_memory_equal(
            eval_table_row(&e->table, (enum eval_column)c, w) + from - e->plan.first_scored,
            eval_table_row(&base.table, (enum eval_column)c, v) + from - base.plan.first_scored,
            (N_CTX - 1 - from) * sizeof(double));
}

/**
 * Every fourth window at a stride of N_CTX / 4 has the tokens of a disjoint window, BOS in the
 * first place included; what both score has the same bits.
 */
static void strided_windows_meet_disjoint_ones(void **state)
{
    (void)state;
    struct setup setup = usual();
    setup.plan = (struct eval_plan_options){
        .protocol = EVAL_PROTOCOL_STRIDED, .n_ctx = N_CTX, .stride = N_CTX / 4, .max_windows = 20};
    struct evaluation e;
    evaluate(&e, &setup);
    assert_int_equal(e.result.n_tokens, 20 * N_CTX / 4);
    for (size_t w = 0; w < 20; w += 4)
        assert_same_scores(&e, w, w / 4, N_CTX - N_CTX / 4 - 1);

    evaluation_close(&e);
}

/** The scores of window w, for a comparison of two evaluations of the same plan. */
static double largest_difference(const struct evaluation *a, const struct evaluation *b, size_t w)
{
    const double *x = eval_table_row(&a->table, EVAL_LOG_PROB, w);
    const double *y = eval_table_row(&b->table, EVAL_LOG_PROB, w);
    double largest = 0;
    for (size_t i = 0; i < a->table.n_scored; i++)
        largest = fmax(largest, fabs(x[i] - y[i]));
    return largest;
}

/**
 * With --llama-compat only the text's own BOS is there, at the start of window 0: that window
 * scores as ours does, up to the float32 probability, and the next one does not.
 */
static void compatible_windows_lack_bos(void **state)
{
    (void)state;
    struct setup setup = usual();
    setup.plan = (struct eval_plan_options){
        .protocol = EVAL_PROTOCOL_STRIDED, .n_ctx = 256, .stride = N_CTX / 4, .max_windows = 2};
    struct evaluation ours, theirs;
    evaluate(&ours, &setup);
    setup.plan.n_ctx = 256 - N_CTX / 8; /* grows by half a stride */
    setup.plan.llama_compat = true;
    evaluate(&theirs, &setup);
    assert_int_equal(theirs.plan.window, ours.plan.window);
    assert_true(largest_difference(&ours, &theirs, 0) < 1e-5);
    assert_true(largest_difference(&ours, &theirs, 1) > 1e-3);
    evaluation_close(&ours);
    evaluation_close(&theirs);
}

/**
 * BOS in front of N_CTX - 1 tokens is the default protocol's first window, where BOS is the
 * first of N_CTX; the fixed protocol scores all positions, the default one the second half.
 */
static void fixed_windows_score_every_token(void **state)
{
    (void)state;
    struct setup setup = usual();
    setup.plan = (struct eval_plan_options){
        .protocol = EVAL_PROTOCOL_FIXED, .n_ctx = N_CTX - 1, .max_windows = 20};
    struct evaluation e;
    evaluate(&e, &setup);
    assert_int_equal(e.result.n_tokens, 20 * (N_CTX - 1));
    assert_int_equal(e.plan.bos_use, EVAL_BOS_IN_FRONT);
    assert_same_scores(&e, 0, 0, base.plan.first_scored);
    evaluation_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_are_sensible),
        cmocka_unit_test(same_bits_for_any_number_of_threads),
        cmocka_unit_test(same_bits_for_any_batch),
        cmocka_unit_test(same_bits_for_any_tile),
        cmocka_unit_test(same_bits_for_any_isa),
        cmocka_unit_test(reports_windows_and_progress),
        cmocka_unit_test(tells_the_next_look),
        cmocka_unit_test(progress_goes_with_the_arithmetic),
        cmocka_unit_test(can_be_interrupted_and_taken_up_again),
        cmocka_unit_test(refuses_ids_beyond_the_model),
        cmocka_unit_test(strided_windows_meet_disjoint_ones),
        cmocka_unit_test(compatible_windows_lack_bos),
        cmocka_unit_test(fixed_windows_score_every_token),
    };
    return cmocka_run_group_tests(tests, evaluate_base, close_base);
}

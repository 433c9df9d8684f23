/*
 * eval/metrics/against.h on tables made by hand: intervals that cover what they should, as often as
 * they should; differences of known size, at known places; verdicts.
 */
#include <math.h>
#include <stdlib.h>

#include "eval/metrics/against.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/rng.h"

enum { N_SCORED = 64, MOST_WINDOWS = 40 };

/** Tables of so many windows. */
struct scene {
    struct eval_table exact, a, b;
};

static void scene_open(struct scene *s, size_t n_windows)
{
    assert_int_equal(eval_table_make(&s->exact, EVAL_N_COLUMNS, n_windows, N_SCORED, NULL),
                     STATUS_OK);
    assert_int_equal(eval_table_make(&s->a, EVAL_N_PAIR_COLUMNS, n_windows, N_SCORED, NULL),
                     STATUS_OK);
    assert_int_equal(eval_table_make(&s->b, EVAL_N_PAIR_COLUMNS, n_windows, N_SCORED, NULL),
                     STATUS_OK);
    for (size_t w = 0; w < n_windows; w++)
        s->exact.done[w] = s->a.done[w] = s->b.done[w] = true;
}

static void scene_close(struct scene *s)
{
    eval_table_free(&s->exact);
    eval_table_free(&s->a);
    eval_table_free(&s->b);
}

/** Divergences of b that vary, those of a larger by `difference` and noise of a window's own. */
static void scene_fill(struct scene *s, struct rng *rng, double difference, double spread)
{
    for (size_t w = 0; w < s->exact.n_windows; w++) {
        double own = difference + spread * (double)rng_normal(rng);
        for (size_t i = 0; i < N_SCORED; i++) {
            double kl = (double)rng_float(rng, 1e-3F, 1e-2F);
            eval_table_row(&s->b, EVAL_KL, w)[i] = kl;
            eval_table_row(&s->a, EVAL_KL, w)[i] = kl + own;
            eval_table_row(&s->a, EVAL_LOG_PROB, w)[i] = -2 - 2 * difference;
            eval_table_row(&s->b, EVAL_LOG_PROB, w)[i] = -2;
            eval_table_row(&s->a, EVAL_BASE_TOP, w)[i] = log(0.05 + 0.1 * (double)(i % 10));
        }
    }
}

static struct eval_against_result judge_noisy(const struct scene *s, double resolve,
                                              double rounding, double noise)
{
    struct eval_against_result r;
    struct eval_against_task task = {.exact = &s->exact,
                                     .a = &s->a,
                                     .b = &s->b,
                                     .resolve = resolve,
                                     .rounding = rounding,
                                     .noise = noise};
    assert_int_equal(eval_against(&r, &task, NULL), STATUS_OK);
    return r;
}

static const double none = (double)NAN;

static struct eval_against_result judge(const struct scene *s, double resolve, double rounding)
{
    return judge_noisy(s, resolve, rounding, none);
}

/* As tables of the t distribution have them (scipy.stats.t.isf). */
static void students_quantiles_are_those_of_scipy(void **state)
{
    (void)state;
    static const struct {
        size_t freedom;
        double tail, t;
    } cases[] = {{1, 0.025, 12.7062047361747},    {2, 0.025, 4.30265272974946},
                 {7, 0.025, 2.36462425159278},    {10, 0.025, 2.22813885198628},
                 {50, 0.025, 2.00855911210076},   {1000, 0.025, 1.96233908082641},
                 {7, 1e-4, 7.06343282815751},     {7, 1e-7, 19.9339022479239},
                 {15, 2.5e-5, 5.60698534943862},  {63, 1e-6, 5.23720019887049},
                 {1, 1e-5, 31830.9886079071},     {3, 0.4, 0.27667066233269},
                 {100000, 1e-4, 3.71915438264134}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double t = base_student(cases[i].freedom, cases[i].tail);
        if (fabs(t / cases[i].t - 1) > 1e-9)
            fail_msg("t(%zu), %g: %.12g", cases[i].freedom, cases[i].tail, t);
    }
}

/* As Python's statistics module has the numbers, with the quantile above. */
static void a_mean_is_that_of_a_paired_test(void **state)
{
    (void)state;
    static const double x[] = {1.5, -0.5, 2.0, 3.5, 0.25, 1.25};
    struct eval_paired p = eval_paired_over(x, 6);
    assert_true(fabs(p.value - 1.3333333333333333) < 1e-12);
    assert_true(fabs(p.error - 0.5688682721958671) < 1e-12);
    assert_true(fabs(p.z - 2.34383494123619) < 1e-12);
    assert_true(fabs(p.half_width / 1.4623224473765104 - 1) < 1e-4);
    assert_true(isnan(eval_paired_over(x, 1).error));
    assert_true(eval_paired_needed(&p, 1000) == 2);
    /* So many windows, with the same spread: a half width of half of what is wanted. */
    double n = (double)eval_paired_needed(&p, 0.1);
    double half = base_student(5, 0.025) * p.spread / sqrt(n);
    assert_true(half <= 0.05 && half > 0.05 * 0.999);
    assert_true(eval_paired_needed(&p, 1e-9) == 0);
}

/*
 * The property that the interval is for: it has the difference that was planted in 95 of 100
 * cases, also with few windows. 4000 cases: 0.3 points is a standard error, 5 of them are allowed.
 */
static void intervals_cover_the_difference(void **state)
{
    (void)state;
    enum { N_CASES = 4000 };
    static const size_t n_windows[] = {2, 5, 20};
    for (size_t k = 0; k < 3; k++) {
        struct rng rng = rng_open(11, k);
        size_t n_covered = 0;
        for (size_t c = 0; c < N_CASES; c++) {
            double x[20];
            for (size_t w = 0; w < n_windows[k]; w++)
                x[w] = 1e-6 + 3e-6 * (double)rng_normal(&rng);
            struct eval_paired p = eval_paired_over(x, n_windows[k]);
            n_covered += fabs(p.value - 1e-6) <= p.half_width;
        }
        double share = (double)n_covered / N_CASES;
        print_message("%zu windows: %.2f %% covered\n", n_windows[k], 100 * share);
        assert_true(fabs(share - 0.95) < 0.0175);
    }
}

/*
 * What --resolve promises: on as many windows as the first eight called for, a difference of that
 * size is found, and one of 0 is not, but for a few in a hundred.
 */
static void announced_windows_resolve_what_was_asked(void **state)
{
    (void)state;
    enum { N_CASES = 300, FIRST = 8, MOST = 4000 };
    const double wanted = 1e-6, spread = 2e-6;
    struct rng rng = rng_open(12, 0);
    double *x = malloc(MOST * sizeof *x);
    assert_non_null(x);
    size_t n_found = 0, n_false = 0;
    for (size_t c = 0; c < N_CASES; c++)
        for (int planted = 0; planted < 2; planted++) {
            for (size_t w = 0; w < MOST; w++)
                x[w] = wanted * planted + spread * (double)rng_normal(&rng);
            struct eval_paired first = eval_paired_over(x, FIRST);
            size_t n = eval_paired_needed(&first, wanted);
            assert_true(n >= 2 && n <= MOST);
            struct eval_paired p = eval_paired_over(x, n);
            bool found = p.value > fmax(p.half_width, wanted / 2);
            n_found += found && planted;
            n_false += found && !planted;
        }
    free(x);
    print_message("%zu of %d found, %zu of %d found where there is none\n", n_found, N_CASES,
                  n_false, N_CASES);
    assert_true(n_found >= N_CASES * 94 / 100);
    assert_true(n_false <= N_CASES * 6 / 100);
}

static void differences_are_told_with_their_sign(void **state)
{
    (void)state;
    struct scene s;
    struct rng rng = rng_open(13, 0);
    scene_open(&s, 10);
    scene_fill(&s, &rng, 1e-5, 1e-6);
    struct eval_against_result r = judge(&s, none, none);
    assert_int_equal(r.verdict, EVAL_AGAINST_FURTHER);
    assert_true(fabs(r.kld.value - 1e-5) < 4 * r.kld.error && r.kld.error < 1e-6);
    assert_true(fabs(r.nll.value - 2e-5) < 1e-12);
    assert_true(r.resolution == r.kld.half_width);
    /* Nothing is concentrated where all tokens are alike. */
    assert_false(r.axes[EVAL_AGAINST_POSITION].place.found);
    assert_false(r.axes[EVAL_AGAINST_CONFIDENCE].place.found);
    size_t n_tokens[EVAL_AGAINST_AXES] = {0};
    for (int axis = 0; axis < EVAL_AGAINST_AXES; axis++)
        for (size_t k = 0; k < r.axes[axis].n; k++) {
            n_tokens[axis] += r.axes[axis].items[k].n_tokens;
            assert_true(fabs(r.axes[axis].items[k].difference.value - r.kld.value) < 1e-6);
        }
    assert_true(n_tokens[0] == 10 * N_SCORED && n_tokens[1] == 10 * N_SCORED);
    scene_fill(&s, &rng, -1e-5, 1e-6);
    assert_int_equal(judge(&s, none, none).verdict, EVAL_AGAINST_CLOSER);
    scene_fill(&s, &rng, 0, 1e-6);
    assert_int_equal(judge(&s, none, none).verdict, EVAL_AGAINST_NO_DIFFERENCE);
    scene_close(&s);
}

/* Put a divergence into one table, in tokens for which `wanted` is true. */
static void plant(struct scene *s, bool (*wanted)(const struct scene *, size_t, size_t), double kl)
{
    for (size_t w = 0; w < s->exact.n_windows; w++)
        for (size_t i = 0; i < N_SCORED; i++)
            if (wanted(s, w, i))
                eval_table_row(&s->a, EVAL_KL, w)[i] += kl;
}

static bool is_late(const struct scene *s, size_t w, size_t i)
{
    (void)s;
    (void)w;
    return i >= 48;
}

static bool is_certain(const struct scene *s, size_t w, size_t i)
{
    return eval_table_row(&s->a, EVAL_BASE_TOP, w)[i] > log(0.7);
}

static void differences_are_found_where_they_are(void **state)
{
    (void)state;
    struct scene s;
    struct rng rng = rng_open(14, 0);
    scene_open(&s, 10);
    scene_fill(&s, &rng, 0, 1e-8);
    plant(&s, is_late, 1e-5);
    struct eval_against_result r = judge(&s, none, none);
    const struct eval_against_bins *bins = &r.axes[EVAL_AGAINST_POSITION];
    assert_true(bins->n == 8 && bins->place.found);
    assert_true(bins->items[bins->place.from].from == 48 &&
                bins->items[bins->place.to - 1].to == N_SCORED);
    assert_true(fabs(bins->place.share - 1) < 0.05 && bins->place.tokens == 0.25);
    assert_true(fabs(bins->items[7].difference.value - 1e-5) < 1e-7);
    assert_false(r.axes[EVAL_AGAINST_CONFIDENCE].place.found);

    scene_fill(&s, &rng, 0, 1e-8);
    plant(&s, is_certain, -1e-5);
    r = judge(&s, none, none);
    bins = &r.axes[EVAL_AGAINST_CONFIDENCE];
    assert_int_equal(r.verdict, EVAL_AGAINST_CLOSER);
    assert_true(bins->n == 10 && bins->place.found);
    assert_true(bins->place.from == 7 && bins->place.to == 10);
    assert_false(r.axes[EVAL_AGAINST_POSITION].place.found);
    scene_close(&s);
}

static void what_is_not_resolved_is_not_called_equal(void **state)
{
    (void)state;
    struct scene s;
    struct rng rng = rng_open(15, 0);
    scene_open(&s, MOST_WINDOWS);
    scene_fill(&s, &rng, 0, 1e-6);
    struct eval_against_result r = judge(&s, 1e-5, none);
    assert_int_equal(r.verdict, EVAL_AGAINST_NO_DIFFERENCE);
    assert_true(r.resolution == 5e-6 && r.n_needed >= 2 && r.n_needed <= MOST_WINDOWS);
    r = judge(&s, 1e-8, none); /* many more windows */
    assert_int_equal(r.verdict, EVAL_AGAINST_UNDECIDED);
    assert_true(r.n_needed > MOST_WINDOWS);
    /* The evaluation itself is too coarse: neither equal nor different. */
    assert_int_equal(judge(&s, 1e-5, 1e-4).verdict, EVAL_AGAINST_UNDECIDED);
    assert_int_equal(judge(&s, none, 1e-4).verdict, EVAL_AGAINST_NO_DIFFERENCE);
    /* Or the program's runs differ by more than what was named. */
    assert_int_equal(judge_noisy(&s, 1e-5, none, 1e-4).verdict, EVAL_AGAINST_UNDECIDED);
    assert_int_equal(judge_noisy(&s, none, none, 1e-4).verdict, EVAL_AGAINST_NO_DIFFERENCE);
    assert_int_equal(judge_noisy(&s, 1e-5, 1e-9, 4e-6).verdict, EVAL_AGAINST_NO_DIFFERENCE);
    /* A difference that is known well, and below what was named. */
    scene_fill(&s, &rng, 1e-7, 1e-9);
    assert_int_equal(judge(&s, none, none).verdict, EVAL_AGAINST_FURTHER);
    assert_int_equal(judge(&s, 1e-5, none).verdict, EVAL_AGAINST_NO_DIFFERENCE);
    /* Windows that are not finished do not count; one alone decides nothing. */
    for (size_t w = 1; w < MOST_WINDOWS; w++)
        s.b.done[w] = false;
    r = judge(&s, none, none);
    assert_true(r.kld.n == 1 && isnan(r.resolution));
    assert_int_equal(r.verdict, EVAL_AGAINST_UNDECIDED);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(students_quantiles_are_those_of_scipy),
        cmocka_unit_test(a_mean_is_that_of_a_paired_test),
        cmocka_unit_test(intervals_cover_the_difference),
        cmocka_unit_test(announced_windows_resolve_what_was_asked),
        cmocka_unit_test(differences_are_told_with_their_sign),
        cmocka_unit_test(differences_are_found_where_they_are),
        cmocka_unit_test(what_is_not_resolved_is_not_called_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

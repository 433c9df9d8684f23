/*
 * OpenBLAS twice: as an oracle of the exact products, within the bound of two float32
 * summations in any order, and as the option that multiplies in their place.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"
#include "kernels/operations.h"
#include "kernels/scoring.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/rng.h"

enum { WIDTH = 600, ROWS = 150, TOKENS = 70 };

/* ThreadSanitizer cannot see the locks of a library that it did not compile. */
#ifdef __SANITIZE_THREAD__
enum { N_THREADS = 1 };
#else
enum { N_THREADS = 2 };
#endif

struct scene {
    float *w, *x, *bias, *own, *other;
    struct kern_weight weight, bias_weight;
    struct kern_backend *exact, *blas;
};

static float *random_floats(struct rng *r, size_t n)
{
    float *values = malloc(n * sizeof(float));
    for (size_t i = 0; i < n; i++)
        values[i] = rng_normal(r);
    return values;
}

static int scene_open(void **state)
{
    static struct scene s;
    struct rng r = rng_open(rng_seed(), 1);
    s.w = random_floats(&r, ROWS * WIDTH);
    s.x = random_floats(&r, TOKENS * WIDTH);
    s.bias = random_floats(&r, ROWS);
    s.own = random_floats(&r, TOKENS * ROWS);
    s.other = malloc(TOKENS * ROWS * sizeof(float));
    memcpy(s.other, s.own, TOKENS * ROWS * sizeof(float));
    s.weight = (struct kern_weight){.type = GGUF_TYPE_F32,
                                    .n_rows = ROWS,
                                    .n_cols = WIDTH,
                                    .row_bytes = WIDTH * sizeof(float),
                                    .data = s.w,
                                    .scale = 0.5f};
    s.bias_weight = (struct kern_weight){.type = GGUF_TYPE_F32,
                                         .n_rows = 1,
                                         .n_cols = ROWS,
                                         .row_bytes = ROWS * sizeof(float),
                                         .data = s.bias,
                                         .scale = 1.0f};
    struct kern_cpu_options options = {.n_threads = N_THREADS, .isa_cap = KERN_ISA_COUNT - 1};
    if (kern_cpu_open(&s.exact, &options, NULL) != STATUS_OK)
        return -1;
    options.gemm = KERN_GEMM_OPENBLAS;
    if (kern_cpu_open(&s.blas, &options, NULL) != STATUS_OK)
        return -1;
    *state = &s;
    return 0;
}

static int scene_close(void **state)
{
    struct scene *s = *state;
    float *all[] = {s->w, s->x, s->bias, s->own, s->other};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
    kern_close(s->exact);
    kern_close(s->blas);
    return 0;
}

/*
 * A sum of K products in any order, fused or not, is off by at most K u sum |w x|, u = 2^-24;
 * the scaling and the two additions after it by u of what they give. Twice that, for both.
 */
static double bound(const struct scene *s, size_t t, size_t r, double residual)
{
    double magnitude = 0.0;
    for (size_t c = 0; c < WIDTH; c++)
        magnitude += fabs((double)s->w[r * WIDTH + c] * (double)s->x[t * WIDTH + c]);
    magnitude *= (double)s->weight.scale;
    return 2.02 * 0x1p-24 *
           (WIDTH * magnitude + 3.0 * (magnitude + fabs((double)s->bias[r]) + fabs(residual)));
}

static void test_products_agree(void **state)
{
    const struct scene *s = *state;
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        float *before = malloc(TOKENS * ROWS * sizeof(float));
        memcpy(before, s->own, TOKENS * ROWS * sizeof(float));
        memcpy(s->other, s->own, TOKENS * ROWS * sizeof(float));
        struct kern_linear op = {.weight = &s->weight,
                                 .bias = &s->bias_weight,
                                 .x = s->x,
                                 .y = s->own,
                                 .y_stride = ROWS,
                                 .n_tokens = TOKENS,
                                 .accumulate = accumulate};
        assert_int_equal(kern_linear(s->exact, &op, NULL), STATUS_OK);
        op.y = s->other;
        assert_int_equal(kern_linear(s->blas, &op, NULL), STATUS_OK);
        size_t n_different = 0;
        for (size_t i = 0; i < TOKENS * ROWS; i++) {
            double residual = accumulate ? (double)before[i] : 0.0;
            double gap = fabs((double)s->own[i] - (double)s->other[i]);
            assert_true(gap <= bound(s, i / ROWS, i % ROWS, residual));
            n_different += gap > 0.0;
        }
        assert_true(n_different > 0); /* it really was another product */
        free(before);
    }
}

/** A target's rank if every logit may be off by `slack`: fewest and most that come before. */
static void assert_rank_near(const float *logits, size_t target, double slack, uint32_t rank)
{
    uint32_t least = 1, most = 0;
    for (size_t r = 0; r < ROWS; r++) {
        least += (double)logits[r] > (double)logits[target] + 2.0 * slack;
        most += (double)logits[r] >= (double)logits[target] - 2.0 * slack;
    }
    assert_in_range(rank, least, most);
}

/** Scores through OpenBLAS stay near the exact ones, and ranks count every token once. */
static void test_scores_agree(void **state)
{
    const struct scene *s = *state;
    struct kern_head head = {
        .hidden = s->x, .matrix = &s->weight, .bias = &s->bias_weight, .soft_cap = 100.0f};
    struct kern_target targets[TOKENS];
    for (uint32_t i = 0; i < TOKENS; i++)
        targets[i] = (struct kern_target){.row = i, .token = (int32_t)(i * 7 % ROWS)};
    struct kern_row_score rows[2][TOKENS];
    struct kern_target_score scores[2][TOKENS];
    for (int i = 0; i < 2; i++) {
        struct kern_score op = {.n_heads = 1,
                                .heads = &head,
                                .n_rows = TOKENS,
                                .n_targets = TOKENS,
                                .targets = targets,
                                .rows = rows[i],
                                .target_scores = scores[i]};
        assert_int_equal(kern_score(i ? s->blas : s->exact, &op, NULL), STATUS_OK);
    }
    struct kern_linear op = {.weight = &s->weight,
                             .bias = &s->bias_weight,
                             .x = s->x,
                             .y = s->own,
                             .y_stride = ROWS,
                             .n_tokens = TOKENS};
    assert_int_equal(kern_linear(s->exact, &op, NULL), STATUS_OK);
    for (size_t t = 0; t < TOKENS; t++) {
        const float *logits = s->own + t * ROWS;
        double slack = 0.0;
        for (size_t r = 0; r < ROWS; r++)
            slack = fmax(slack, bound(s, t, r, 0.0));
        /* Each logit moves by at most `slack`, so does ln sum exp. */
        assert_true(fabs(scores[0][t].log_prob - scores[1][t].log_prob) <= 2.0 * slack);
        assert_true(fabs(rows[0][t].max_logit - rows[1][t].max_logit) <= slack);
        assert_rank_near(logits, (size_t)targets[t].token, 0.0, scores[0][t].rank);
        assert_rank_near(logits, (size_t)targets[t].token, slack, scores[1][t].rank);
    }
}

/**
 * Rows recorded through one product, compared with the other: near enough for what 16 bits keep
 * (half a code is 1.2e-4; what lies at the floor is cut, or weighs ROWS e^-16 at most).
 */
static void test_recordings_agree(void **state)
{
    const struct scene *s = *state;
    enum { STRIDE = 4 + ROWS };
    static uint16_t records[TOKENS * STRIDE];
    struct kern_head live = {.hidden = s->x, .matrix = &s->weight, .bias = &s->bias_weight};
    struct kern_recorded recorded = {records, STRIDE, -16.0};
    struct kern_head heads[2] = {{.recorded = &recorded}, live};
    struct kern_row_score rows[2 * TOKENS];
    struct kern_pair_score pairs[2 * TOKENS];
    for (int i = 0; i < 2; i++) {
        struct kern_record record = {
            .head = live, .n_rows = TOKENS, .records = records, .stride = STRIDE};
        struct kern_score score = {.n_heads = 2,
                                   .heads = heads,
                                   .n_rows = TOKENS,
                                   .rows = rows,
                                   .pairs = pairs,
                                   .want_js = true};
        assert_int_equal(kern_record(i ? s->blas : s->exact, &record, NULL), STATUS_OK);
        assert_int_equal(kern_score(i ? s->exact : s->blas, &score, NULL), STATUS_OK);
        for (size_t t = 0; t < TOKENS; t++) {
            const struct kern_pair_score *pair = &pairs[TOKENS + t];
            assert_true(fabs(pair->kl) < 2e-4 && fabs(pair->reverse_kl) < 2e-4);
            assert_true(pair->js >= 0.0 && pair->js < 2e-5 && pair->common_top[0] == 1);
        }
    }
}

static void test_version(void **state)
{
    (void)state;
    assert_non_null(strstr(kern_openblas_version(), "OpenBLAS")); /* scene_open loaded it */
}

int main(void)
{
    struct kern_cpu_options options = {.n_threads = 1, .gemm = KERN_GEMM_OPENBLAS};
    struct kern_backend *b;
    struct status_why why = {0};
    if (*kern_openblas_version())
        return EXIT_FAILURE; /* loaded before anybody asked for it */
    if (kern_cpu_open(&b, &options, &why) == STATUS_UNSUPPORTED) {
        print_message("%s\n", why.text);
        return strstr(why.text, "OpenBLAS cannot be loaded: ") ? 77 : EXIT_FAILURE;
    }
    kern_close(b);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_agree),
        cmocka_unit_test(test_scores_agree),
        cmocka_unit_test(test_recordings_agree),
        cmocka_unit_test(test_version),
    };
    return cmocka_run_group_tests(tests, scene_open, scene_close);
}

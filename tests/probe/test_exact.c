/* Log-probabilities of listed tokens: those of the forward pass; and how much each rounding is off.
 */
#include <math.h>
#include <stdlib.h>

#include "clients/probe/exact/exact.h"
#include "tests/harness/cmocka.h"
#include "tests/model/fixture.h"

enum { N = 40, K = 8 };

struct picked {
    struct probe_want wants[N];
    int32_t ids[N][K];
    double log_p[N][K];
};

/** Some ids after each token, evaluated. */
static void evaluate(struct picked *out, struct fixture *f, const int32_t *tokens,
                     enum probe_rounding rounding, struct probe_ties *ties)
{
    const struct probe_evaluation e = {.model = f->model,
                                       .backend = f->backend,
                                       .tokens = tokens,
                                       .n_tokens = N,
                                       .rounding = rounding,
                                       .seed = 7,
                                       .ties = ties};
    size_t n_vocab = model_hparams(f->model)->n_vocab;
    struct status_why why = {""};
    for (size_t i = 0; i < N; i++) {
        for (size_t k = 0; k < K; k++)
            out->ids[i][k] = (int32_t)((i + 5 * k) % n_vocab);
        out->wants[i] = (struct probe_want){i, out->ids[i], K, out->log_p[i], {0}};
    }
    if (probe_evaluate(&e, out->wants, N, &why))
        fail_msg("%s", why.text);
}

static void they_are_those_of_the_forward_pass(void **state)
{
    (void)state;
    struct fixture f = fixture_open(&(struct tiny_model_options){.seed = 1});
    int32_t *tokens = fixture_tokens(&f, 3, N), targets[N];
    struct model_segment segment;
    struct model_batch batch = fixture_window(tokens, N, &segment);
    struct picked found;
    evaluate(&found, &f, tokens, PROBE_EXACT, NULL);
    float *hidden = fixture_hidden(&f, &batch, (struct fixture_run){0});
    for (size_t k = 0; k < K; k++) {
        for (size_t i = 0; i < N; i++)
            targets[i] = found.ids[i][k];
        double *expected = fixture_log_probs(&f, hidden, targets, N);
        for (size_t i = 0; i < N; i++)
            if (!(fabs(found.log_p[i][k] - expected[i]) < 1e-6)) /* the scorer's are float32 */
                fail_msg("row %zu: %.9g, expected %.9g", i, found.log_p[i][k], expected[i]);
        free(expected);
    }
    free(hidden);
    free(tokens);
    fixture_close(&f);
}

static double distance(const struct picked *a, const struct picked *b)
{
    double squares = 0;
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < K; k++)
            squares += pow(a->log_p[i][k] - b->log_p[i][k], 2) / (N * K);
    return sqrt(squares);
}

static void coarse_rounding_is_off_by_more(void **state)
{
    (void)state;
    struct fixture f = fixture_open(&(struct tiny_model_options){.seed = 1});
    int32_t *tokens = fixture_tokens(&f, 4, N);
    struct picked exact, again, like, brain, coarse, cache;
    evaluate(&exact, &f, tokens, PROBE_EXACT, NULL);
    evaluate(&like, &f, tokens, PROBE_AS_LLAMA, NULL);
    evaluate(&brain, &f, tokens, PROBE_BFLOAT16, NULL);
    evaluate(&coarse, &f, tokens, PROBE_COARSE, NULL);
    evaluate(&cache, &f, tokens, PROBE_SMALL_CACHE, NULL);
    evaluate(&again, &f, tokens, PROBE_EXACT, NULL); /* the backend is exact again */
    assert_true(distance(&exact, &again) == 0);
    assert_true(distance(&exact, &like) > 0);
    assert_true(distance(&exact, &brain) > distance(&exact, &like));
    assert_true(distance(&exact, &coarse) > distance(&exact, &brain));
    assert_true(distance(&exact, &cache) > distance(&exact, &like));
    assert_true(distance(&exact, &cache) < distance(&exact, &coarse));
    free(tokens);
    fixture_close(&f);
}

/* Without experts nothing is tied. */
static void only_experts_are_tied(void **state)
{
    (void)state;
    struct fixture f = fixture_open(&(struct tiny_model_options){.seed = 1});
    int32_t *tokens = fixture_tokens(&f, 5, N);
    struct probe_ties ties = {0};
    struct picked found;
    evaluate(&found, &f, tokens, PROBE_EXACT, &ties);
    evaluate(&found, &f, tokens, PROBE_COARSE, &ties);
    assert_int_equal(ties.n_passes, 1);
    assert_int_equal(probe_ties_first(&ties), N);
    probe_ties_free(&ties);
    free(tokens);
    fixture_close(&f);
}

/** Show a choice of 2 of 4 experts for each of 3 tokens. */
static void show(struct probe_ties *ties, const float logits[12], const int32_t ids[6])
{
    struct model_shown shown = {.place = MODEL_AT_ROUTER, .n_rows = 3, .size = 4, .data = logits};
    probe_ties_shown(ties, NULL, &shown);
    shown = (struct model_shown){.place = MODEL_AT_EXPERTS, .n_rows = 3, .size = 2, .ids = ids};
    probe_ties_shown(ties, NULL, &shown);
}

static void near_ties_are_found(void **state)
{
    (void)state;
    struct fixture f = fixture_open(&(struct tiny_model_options){.seed = 1});
    struct probe_ties ties = {0};
    const float exact[] = {4, 3, 1, 0, 0, 1, 3, 4, 4, 2.01F, 2, 0};
    const float off[] = {4, 3.01F, 1, 0, 0, 1, 2.98F, 4, 4, 2.02F, 1.99F, 0};
    const int32_t ids[] = {0, 1, 3, 2, 0, 1}, other[] = {0, 1, 1, 3, 0, 1};
    assert_int_equal(probe_ties_begin(&ties, f.model, 3, false, NULL), STATUS_OK);
    show(&ties, exact, ids);
    assert_int_equal(probe_ties_begin(&ties, f.model, 3, true, NULL), STATUS_OK);
    show(&ties, off, ids);
    assert_int_equal(probe_ties_first(&ties), 2); /* a gap of 0.01, and errors of 0.02 */
    assert_int_equal(probe_ties_begin(&ties, f.model, 3, true, NULL), STATUS_OK);
    show(&ties, off, other); /* a pass chooses others for the second */
    assert_int_equal(probe_ties_first(&ties), 1);
    probe_ties_free(&ties);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_those_of_the_forward_pass),
        cmocka_unit_test(coarse_rounding_is_off_by_more),
        cmocka_unit_test(only_experts_are_tied),
        cmocka_unit_test(near_ties_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

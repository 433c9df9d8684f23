/*
 * The budget of a recording: what right, exact and wrong recordings of a tiny model have of it, and
 * the verdicts on divergences that were measured on real models.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clients/activations/budget.h"
#include "clients/activations/rounding.h"
#include "kernels/implementation.h"
#include "kernels/kernels.h"
#include "tests/harness/cmocka.h"
#include "tests/model/fixture.h"

enum { N_CTX = 64, N_WINDOWS = 3, N_SCORED = N_CTX / 2 - 1 };

static struct status_why why;

/** A model of such weights, and its windows. */
struct subject {
    struct fixture f;
    struct eval_stream stream;
    struct eval_plan plan;
    size_t codes;
};

/** Records of all rows, and the source that has them. */
struct recording {
    uint16_t *records;
    size_t codes;
};

static struct subject open_model(const struct tiny_model_options *options)
{
    struct subject s = {.f = fixture_open(options)};
    s.stream.n = N_WINDOWS * N_CTX;
    s.stream.ids = fixture_tokens(&s.f, 3, s.stream.n);
    struct eval_plan_options windows = {.n_ctx = N_CTX, .bos = -1};
    assert_int_equal(eval_plan_make(&s.plan, &windows, s.stream.n, &why), STATUS_OK);
    assert_int_equal(s.plan.n_scored, N_SCORED);
    s.codes = kern_record_codes(model_head(s.f.model)->n_rows);
    return s;
}

static struct subject open_subject(enum gguf_type type, uint64_t seed)
{
    return open_model(&(struct tiny_model_options){.seed = seed, .type = type, .n_ff = 64});
}

static void close_subject(struct subject *s)
{
    free(s->stream.ids);
    fixture_close(&s->f);
}

static enum status rows_of(void *user, size_t first, size_t n_rows, const void **rows,
                           struct status_why *unused)
{
    const struct recording *r = user;
    (void)n_rows;
    (void)unused;
    *rows = r->records + first * r->codes;
    return STATUS_OK;
}

/** What a program records that evaluates exactly, or rounds inputs of products. */
static struct recording record(struct subject *s, bool rounds)
{
    struct recording out = {calloc(N_WINDOWS * N_SCORED * s->codes, sizeof(uint16_t)), s->codes};
    struct act_rounding *rounding = NULL;
    const struct act_rule rule = {.engine = ACT_LLAMA_CPU};
    if (rounds) {
        assert_int_equal(act_rounding_open(&rounding, &rule, &s->f.backend, 1, &why), STATUS_OK);
        assert_int_equal(act_rounding_add(rounding, model_file(s->f.model), &why), STATUS_OK);
    }
    for (size_t w = 0; w < N_WINDOWS; w++) {
        struct model_segment segment;
        struct model_batch batch = fixture_window(s->stream.ids + w * N_CTX, N_CTX, &segment);
        float *hidden = fixture_hidden(&s->f, &batch, (struct fixture_run){0});
        struct kern_record op = {.head = model_kern_head(s->f.model),
                                 .n_rows = N_SCORED,
                                 .records = out.records + w * N_SCORED * s->codes,
                                 .stride = s->codes};
        op.head.hidden = hidden + s->plan.first_scored * op.head.matrix->n_cols;
        assert_int_equal(kern_record(s->f.backend, &op, &why), STATUS_OK);
        free(hidden);
    }
    act_rounding_close(rounding);
    return out;
}

static struct act_budget measure(struct subject *s, struct recording *r)
{
    struct eval_row_source source = {.kind = EVAL_ROWS_CODES, .user = r, .rows = rows_of};
    struct act_budget_task task = {.model = s->f.model,
                                   .backend = s->f.backend,
                                   .rule = {.engine = ACT_LLAMA_CPU},
                                   .plan = &s->plan,
                                   .stream = &s->stream,
                                   .recorded = &source};
    struct act_budget out, again;
    assert_int_equal(act_budget_measure(&out, &task, &why), STATUS_OK);
    assert_int_equal(act_budget_measure(&again, &task, &why), STATUS_OK);
    assert_memory_equal(&out, &again, sizeof out); /* and the backend was exact in between */
    assert_int_equal(out.n_windows, N_WINDOWS);
    return out;
}

static void recordings_have_their_verdicts(void **state)
{
    (void)state;
    struct subject s = open_subject(GGUF_TYPE_Q8_0, 9), other = open_subject(GGUF_TYPE_Q8_0, 10);
    struct recording exact = record(&s, false), rounded = record(&s, true);
    struct recording wrong = record(&other, true);
    struct act_budget b = measure(&s, &rounded);
    print_message("rounded: %.2e of %.2e, %.2f shared\n", b.recorded, b.kld, act_budget_shared(&b));
    assert_true(b.kld > 1e-5 && fabs(b.recorded / b.kld - 1) < 0.1);
    assert_true(act_budget_shared(&b) > 0.5);
    assert_int_equal(act_budget_judge(&b, b.recorded), ACT_AGREES);
    b = measure(&s, &exact);
    assert_true(fabs(b.recorded) < 1e-9 && fabs(act_budget_shared(&b)) < 0.1);
    assert_int_equal(act_budget_judge(&b, b.recorded), ACT_AGREES);
    b = measure(&s, &wrong);
    assert_true(b.recorded > 2 * b.kld);
    assert_int_equal(act_budget_judge(&b, b.recorded), ACT_DIFFERS);
    free(exact.records);
    free(rounded.records);
    free(wrong.records);
    close_subject(&s);
    close_subject(&other);
}

/** A divergence is a square: 8 bits in place of 11 cost hundreds of times as much. */
static void coarser_types_cost_more(void **state)
{
    (void)state;
    static const enum gguf_type types[] = {GGUF_TYPE_F32, GGUF_TYPE_F16, GGUF_TYPE_Q8_0};
    struct act_budget b[3];
    for (size_t i = 0; i < 3; i++) {
        struct subject s = open_subject(types[i], 9);
        struct recording exact = record(&s, false);
        b[i] = measure(&s, &exact);
        free(exact.records);
        close_subject(&s);
    }
    print_message("F32 %.1e, F16 %.1e, Q8_0 %.1e\n", b[0].kld, b[1].kld, b[2].kld);
    assert_true(b[0].kld > 0 && b[1].kld > b[0].kld && b[2].kld > 50 * b[1].kld);
    assert_true(act_budget_is_small(&b[1]) && !act_budget_is_small(&b[2]));
}

/** Keys in blocks meet queries that are rounded to 8 bits, whatever type the weights have. */
static void queries_are_in_the_budget(void **state)
{
    (void)state;
    struct subject s = open_model(&(struct tiny_model_options){
        .seed = 9, .type = GGUF_TYPE_F16, .n_ff = 64, .n_heads = 1, .n_kv_heads = 1});
    struct model_kv_types types = {.k.type = GGUF_TYPE_F16, .v.type = GGUF_TYPE_F16};
    struct act_budget b[2];
    for (size_t i = 0; i < 2; i++) {
        types.k.type = i ? GGUF_TYPE_Q5_1 : GGUF_TYPE_F16;
        assert_int_equal(model_round_kv(s.f.model, &types, &why), STATUS_OK);
        struct recording rounded = record(&s, true);
        b[i] = measure(&s, &rounded);
        free(rounded.records);
    }
    print_message("keys in F16 %.1e, in Q5_1 %.1e\n", b[0].kld, b[1].kld);
    assert_true(b[1].kld > 10 * b[0].kld && act_budget_shared(&b[1]) > 0.5);
    assert_int_equal(act_budget_judge(&b[1], b[1].recorded), ACT_AGREES);
    close_subject(&s);
}

/** A type that llama.cpp has not. */
static void an_engine_without_a_rule_is_refused(void **state)
{
    (void)state;
    struct subject s = open_subject(GGUF_TYPE_Q8_0, 9);
    struct recording exact = record(&s, false);
    struct eval_row_source source = {.kind = EVAL_ROWS_CODES, .user = &exact, .rows = rows_of};
    struct act_budget_task task = {.model = s.f.model,
                                   .backend = s.f.backend,
                                   .rule = {.engine = ACT_VLLM_NVFP4},
                                   .plan = &s.plan,
                                   .stream = &s.stream,
                                   .recorded = &source};
    struct act_budget out;
    assert_int_equal(act_budget_measure(&out, &task, &why), STATUS_UNSUPPORTED);
    assert_non_null(strstr(why.text, "no products with weights of Q8_0"));
    assert_true(out.kld == 0);
    free(exact.records);
    close_subject(&s);
}

static void some_windows_are_enough(void **state)
{
    (void)state;
    const struct {
        size_t n_scored, n_windows, expected;
    } cases[] = {{255, 100, 2}, {255, 1, 1}, {4095, 8, 2}, {15, 100, 34}, {15, 12, 12}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct eval_plan plan = {.n_scored = cases[i].n_scored, .n_windows = cases[i].n_windows};
        assert_int_equal(act_budget_windows(&plan), cases[i].expected);
    }
}

/** Divergences of SmolLM2 135M and Gemma 3 270M, as they were measured, and borders of the rules.
 */
static void verdicts_are_those_of_the_limits(void **state)
{
    (void)state;
    static const struct {
        double kld, recorded, simulated_recorded, beyond;
        enum act_verdict expected;
        double noise, noise_of_all;
    } cases[] = {
        {3.00e-3, 2.83e-3, 3.63e-3, 2.83e-3, ACT_AGREES},         /* Q8_0 */
        {3.81e-3, 4.56e-3, 5.60e-3, 4.56e-3, ACT_AGREES},         /* gemma's Q4_K_M, in rows */
        {1.92e-6, 1.81e-6, 2.86e-6, 1.81e-6, ACT_AGREES},         /* F16: 23 % is the same */
        {3.00e-3, 1.16e-3, 3.90e-3, 1.16e-3, ACT_OTHER_ROUNDING}, /* F16 as Q8_0 */
        {3.00e-3, 9.93e-3, 12.5e-3, 9.93e-3, ACT_DIFFERS},        /* Q6_K as Q8_0 */
        {3.00e-3, 1e-9, 3.00e-3, 1e-9, ACT_AGREES},               /* exactly evaluated */
        {3.00e-3, 1e-9, 3.00e-3, 1e-3, ACT_OTHER_ROUNDING},       /* but not in later windows */
        {3.00e-3, 2.83e-3, 3.63e-3, 9.1e-3, ACT_DIFFERS},         /* wrong in later windows */
        {1.92e-6, 1.81e-6, 2.86e-6, 1e-4, ACT_DIFFERS},
        {1.92e-6, 1.16e-3, 1.16e-3, 1.16e-3, ACT_DIFFERS}, /* Q8_0 as F16 */
        {0, 0, 0, 0, ACT_NO_BUDGET},
        {1e-12, 1e-5, 1e-5, 1e-5, ACT_NO_BUDGET, 1e-3, 1e-3},
        {3.00e-3, 2.83e-3, 3.63e-3, (double)NAN, ACT_AGREES}, /* of all windows not known */
        /* More than rounding makes, and no more than runs differ by; or more than that, too. */
        {1.92e-6, 1.16e-3, 1.16e-3, 1.16e-3, ACT_NOISE, 1e-3, 1e-3},
        {1.92e-6, 1.16e-3, 1.16e-3, 1.16e-3, ACT_DIFFERS, 1e-3, 1e-4},
        {1.92e-6, 1.16e-3, 1.16e-3, 3.1e-3, ACT_DIFFERS, 1e-3, 1e-3},
        {1.92e-6, 1.16e-3, 1.16e-3, 3.1e-3, ACT_NOISE, 1e-3, 3e-3},
        {3.00e-3, 9.93e-3, 12.5e-3, 9.93e-3, ACT_DIFFERS, 4e-3, 4e-3},
        {3.00e-3, 2.83e-3, 3.63e-3, 9.1e-3, ACT_NOISE, 1e-3, 8e-3}, /* in later windows */
        {3.00e-3, 2.83e-3, 3.63e-3, 9.1e-3, ACT_DIFFERS, 8e-3, 1e-3},
        {3.00e-3, 2.83e-3, 3.63e-3, 2.83e-3, ACT_AGREES, 4e-3, 4e-3},
        {3.00e-3, 1.16e-3, 3.90e-3, 1.16e-3, ACT_OTHER_ROUNDING, 4e-3, 4e-3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct act_budget b = {.kld = cases[i].kld,
                               .recorded = cases[i].recorded,
                               .simulated_recorded = cases[i].simulated_recorded,
                               .noise = cases[i].noise,
                               .noise_of_all = cases[i].noise_of_all};
        assert_int_equal(act_budget_judge(&b, cases[i].beyond), cases[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recordings_have_their_verdicts),
        cmocka_unit_test(coarser_types_cost_more),
        cmocka_unit_test(queries_are_in_the_budget),
        cmocka_unit_test(an_engine_without_a_rule_is_refused),
        cmocka_unit_test(some_windows_are_enough),
        cmocka_unit_test(verdicts_are_those_of_the_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

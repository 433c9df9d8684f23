/*
 * The forward pass against the double-precision one of float64.c, for every feature of a file
 * and every block format: hidden rows and the log-probabilities of the next tokens.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/cmocka.h"
#include "tests/harness/types.h"
#include "tests/model/fixture.h"
#include "tests/model/float64.h"

/**
 * How far float32 may be from double is simulated: the double-precision pass is run a second
 * time with a random error of float32's size in every product. The real errors are another draw
 * of about that size; the worst row stays within a few times the simulated worst.
 */
static const double float32_unit = 0x1p-24;
static const double margin = 3;

/** What an evaluation gave: n hidden rows, and ln p of the n next tokens. */
struct results {
    double *rows, *log_probs;
};

/** The worst of the rows (norm of the difference over the norm) and of the log-probabilities. */
struct errors {
    double row, nll;
};

static double *must_alloc(size_t n)
{
    double *memory = malloc(n * sizeof *memory);
    assert_non_null(memory);
    return memory;
}

static void free_results(struct results *r)
{
    free(r->rows);
    free(r->log_probs);
}

/** tokens: n + 1, of which the last is only a target. */
static struct results evaluate_truth(struct float64_model *m, const int32_t *tokens, size_t n)
{
    struct results r = {must_alloc(n * float64_width(m)), must_alloc(n)};
    double *all = must_alloc(float64_vocab(m));
    float64_hidden(m, tokens, n, r.rows);
    for (size_t t = 0; t < n; t++) {
        float64_log_probs(m, r.rows + t * float64_width(m), all);
        r.log_probs[t] = all[tokens[t + 1]];
    }
    free(all);
    return r;
}

/** The pass under test. */
static struct results evaluate_fixture(struct fixture *f, const int32_t *tokens, size_t n)
{
    size_t n_values = n * model_hparams(f->model)->n_embd;
    struct model_segment segment;
    struct model_batch batch = fixture_window(tokens, n, &segment);
    float *hidden = fixture_hidden(f, &batch, (struct fixture_run){0});
    struct results r = {must_alloc(n_values), fixture_log_probs(f, hidden, tokens + 1, n)};
    for (size_t i = 0; i < n_values; i++)
        r.rows[i] = (double)hidden[i];
    free(hidden);
    return r;
}

static double row_error(const double *found, const double *expected, size_t n)
{
    double error = 0;
    double norm = 0;
    for (size_t i = 0; i < n; i++) {
        error += (found[i] - expected[i]) * (found[i] - expected[i]);
        norm += expected[i] * expected[i];
    }
    return sqrt(error / norm);
}

static struct errors difference(const struct results *found, const struct results *expected,
                                size_t n, size_t width)
{
    struct errors e = {0, 0};
    for (size_t t = 0; t < n; t++) {
        e.row = fmax(e.row, row_error(found->rows + t * width, expected->rows + t * width, width));
        e.nll = fmax(e.nll, fabs(found->log_probs[t] - expected->log_probs[t]));
    }
    return e;
}

static void compare(const char *what, const struct tiny_model_options *options, size_t n)
{
    struct fixture f = fixture_open(options);
    struct float64_model *m = float64_open(model_file(f.model));
    size_t width = float64_width(m);
    int32_t *tokens = fixture_tokens(&f, 7, n + 1);
    struct results truth = evaluate_truth(m, tokens, n);
    float64_simulate_rounding(m, float32_unit, 3);
    struct results simulated = evaluate_truth(m, tokens, n);
    struct results found = evaluate_fixture(&f, tokens, n);
    struct errors expected = difference(&simulated, &truth, n, width);
    struct errors actual = difference(&found, &truth, n, width);
    print_message("%-26s rows %.1e (simulated %.1e), log-probabilities %.1e (%.1e)\n", what,
                  actual.row, expected.row, actual.nll, expected.nll);
    free_results(&truth);
    free_results(&simulated);
    free_results(&found);
    free(tokens);
    float64_close(m);
    fixture_close(&f);
    assert_true(actual.row < margin * expected.row);
    assert_true(actual.nll < margin * expected.nll);
}

static const struct {
    const char *what;
    struct tiny_model_options options;
} features[] = {
    {"plain", {.seed = 1}},
    {"one key/value head", {.seed = 2, .n_kv_heads = 1}},
    {"no grouping", {.seed = 3, .n_kv_heads = 4}},
    {"four layers", {.seed = 4, .n_layers = 4}},
    {"biases", {.seed = 5, .biases = true}},
    {"fused qkv", {.seed = 6, .fused_qkv = true}},
    {"fused qkv, biases, scales", {.seed = 7, .fused_qkv = true, .biases = true, .scales = true}},
    {"scales", {.seed = 8, .scales = true}},
    {"own head size", {.seed = 9, .head_size = 32}},
    {"odd own head size", {.seed = 10, .head_size = 10}},
    {"partial rotation", {.seed = 11, .n_rot = 8}},
    {"heads per layer", {.seed = 12, .n_layers = 4, .vary_layers = true}},
    {"tied head", {.seed = 13, .tied_head = true}},
    {"rope factors", {.seed = 14, .rope_factors = true}},
    {"linear", {.seed = 15, .rope_scaling = "linear"}},
    {"factor without a type", {.seed = 16, .rope_factor = 2.5f}},
    {"yarn", {.seed = 17, .rope_scaling = "yarn", .rope_original_ctx = 16, .head_size = 32}},
    {"yarn, factors, attention",
     {.seed = 18,
      .rope_scaling = "yarn",
      .rope_factor = 8,
      .rope_original_ctx = 32,
      .rope_freq_base = 500000,
      .rope_attn_factor = 0.8f,
      .rope_factors = true,
      .head_size = 64}},
    {"attention factor", {.seed = 19, .rope_attn_factor = 1.3f}},
    {"sliding window", {.seed = 20, .sliding_window = 17}},
    {"experts", {.seed = 21, .n_experts = 4, .n_experts_used = 2}},
    {"experts, scales", {.seed = 22, .n_experts = 5, .n_experts_used = 3, .scales = true}},
    {"split experts, scales",
     {.seed = 25, .n_experts = 3, .n_experts_used = 2, .split_experts = true, .scales = true}},
    {"one expert of one", {.seed = 23, .n_experts = 1, .n_experts_used = 1}},
    {"all experts", {.seed = 24, .n_experts = 3, .n_experts_used = 3, .vary_layers = true}},
};

static void test_features(void **state)
{
    (void)state;
    /* 70 tokens: more than one block of keys. */
    for (size_t i = 0; i < sizeof features / sizeof features[0]; i++)
        compare(features[i].what, &features[i].options, 70);
}

static void test_types(void **state)
{
    (void)state;
    const struct gguf_type_info *info;
    for (size_t i = 0; (info = type_at(i)) && (int)info->type < GGUF_FIRST_FOLDER; i++)
        compare(info->name,
                &(struct tiny_model_options){
                    .seed = 100 + i, .type = info->type, .n_embd = 256, .n_ff = 256, .n_heads = 8},
                16);
}

/** Windows of two tiles and a part of a third: sums over thousands of keys, of which a sliding
 * window leaves more than a tile. */
static void test_long_windows(void **state)
{
    (void)state;
    enum { N = 2 * MODEL_TILE_TOKENS + 200 };
    struct tiny_model_options options = {
        .seed = 200, .n_layers = 2, .n_embd = 32, .n_ff = 32, .n_heads = 2, .n_kv_heads = 1};
    compare("long window", &options, N);
    options.sliding_window = MODEL_TILE_TOKENS + 301;
    compare("long, sliding window", &options, N);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_long_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

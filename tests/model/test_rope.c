/*
 * Rope settings: what the caller's options and the file's keys make of the frequencies. The
 * formulas themselves are checked by test_forward_float64 and, for YaRN, by figures here.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/gguf_bytes.h"
#include "tests/harness/tiny_model.h"

/** d = 32: 16 pairs. */
enum { N_PAIRS = 16 };

struct settings {
    double frequency[N_PAIRS];
    double magnitude;
};

static struct settings settings_of(struct tiny_model_options tiny,
                                   const struct model_options *options)
{
    tiny.head_size = 2 * N_PAIRS;
    struct tiny_model bytes = tiny_model_make(&tiny);
    struct gguf_file *file;
    struct model *model;
    struct status_why why = {0};
    assert_int_equal(gguf_bytes_open(&file, bytes.data, bytes.n_bytes, "t", &why), STATUS_OK);
    if (model_open(&model, file, options, &why) != STATUS_OK)
        fail_msg("%s", why.text);
    struct settings s;
    s.magnitude = model_rope_frequencies(model, MODEL_ROPE_FULL, 1, s.frequency);
    model_close(model);
    free(bytes.data);
    return s;
}

static void assert_same(const struct settings *found, const struct settings *expected)
{
    for (size_t i = 0; i < N_PAIRS; i++)
        if (found->frequency[i] != expected->frequency[i])
            fail_msg("pair %zu: %.17g, expected %.17g", i, found->frequency[i],
                     expected->frequency[i]);
    if (found->magnitude != expected->magnitude)
        fail_msg("magnitude %.17g, expected %.17g", found->magnitude, expected->magnitude);
}

static const struct model_options none = {0};

/** An option does what the key in the file would have done. */
static void test_options(void **state)
{
    (void)state;
    static const char *const old_factor[] = {"llama.rope.scale_linear=float:4"};
    static const char *const zero_factor[] = {"llama.rope.scaling.factor=float:0"};
    static const char *const yarn_keys[] = {"llama.rope.scaling.yarn_beta_fast=float:16",
                                            "llama.rope.scaling.yarn_beta_slow=float:2",
                                            "llama.rope.scaling.yarn_ext_factor=float:0.5"};
    static const char *const attn_factor[] = {"llama.rope.scaling.yarn_attn_factor=float:0.75"};
    static const struct tiny_model_options plain = {0};
    static const struct tiny_model_options linear = {.rope_scaling = "linear"};
    static const struct tiny_model_options yarn = {.rope_scaling = "yarn", .rope_original_ctx = 64};
    const struct {
        struct tiny_model_options tiny;
        struct model_options options;
        struct tiny_model_options same_tiny;
        struct model_options same_options;
    } cases[] = {
        {plain, {.rope_freq_scale = 0.25f}, linear, {0}},
        {plain, {.rope_freq_scale = 0.25f, .rope_scaling = "linear"}, linear, {0}},
        {plain, {.overrides = old_factor, .n_overrides = 1}, linear, {0}},
        {plain, {.overrides = zero_factor, .n_overrides = 1}, plain, {0}},
        {{.rope_factor = 4}, {0}, linear, {0}},
        {{.rope_scaling = "none"}, {0}, plain, {0}},
        {linear, {.rope_scaling = "none"}, plain, {0}},
        {yarn, {.rope_scaling = "linear"}, linear, {0}},
        {{.rope_freq_base = 5e5f}, {.rope_freq_base = 10000}, plain, {0}},
        {plain,
         {.rope_scaling = "yarn", .rope_freq_scale = 0.25f, .yarn_original_ctx = 64},
         yarn,
         {0}},
        {yarn,
         {.yarn_beta_fast = 16,
          .yarn_beta_slow = 2,
          .yarn_attn_factor = 0.75f,
          .has_yarn_ext_factor = true,
          .yarn_ext_factor = 0.5f},
         yarn,
         {.overrides = yarn_keys, .n_overrides = 3, .yarn_attn_factor = 0.75f}},
        /* What the key means no file says; llama.cpp does not read it, nor the betas. */
        {yarn, {.overrides = attn_factor, .n_overrides = 1}, yarn, {0}},
        {yarn, {.overrides = yarn_keys, .n_overrides = 2, .llama_compat = true}, yarn, {0}},
        {yarn,
         {.yarn_beta_fast = 16, .yarn_beta_slow = 2, .llama_compat = true},
         yarn,
         {.overrides = yarn_keys, .n_overrides = 2}},
        {yarn, {.has_yarn_ext_factor = true, .yarn_ext_factor = -1}, yarn, {0}},
        /* Interpolate everywhere: YaRN without its mix is linear scaling. */
        {yarn, {.has_yarn_ext_factor = true}, linear, {0}},
        /* The original context is the file's context length where no key gives it. */
        {{.rope_scaling = "yarn"}, {.yarn_original_ctx = 256}, {.rope_scaling = "yarn"}, {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct settings found = settings_of(cases[i].tiny, &cases[i].options);
        struct settings expected = settings_of(cases[i].same_tiny, &cases[i].same_options);
        assert_same(&found, &expected);
    }
}

static void assert_near(double found, double expected)
{
    if (!(fabs(found - expected) <= 4e-16 * fabs(expected)))
        fail_msg("found %.17g, expected %.17g", found, expected);
}

static void test_plain(void **state)
{
    (void)state;
    struct settings s = settings_of((struct tiny_model_options){0}, &none);
    for (size_t i = 0; i < N_PAIRS; i++)
        assert_near(s.frequency[i], pow(10000, -(double)i / N_PAIRS));
    assert_near(s.magnitude, 1);
    s = settings_of((struct tiny_model_options){.rope_factor = 8}, &none);
    for (size_t i = 0; i < N_PAIRS; i++)
        assert_near(s.frequency[i], pow(10000, -(double)i / N_PAIRS) / 8);
    assert_near(s.magnitude, 1);
}

/**
 * YaRN by hand: 32 rotated elements, base 10000, 4096 positions stretched 16 times. Pair b turns
 * beta times in 4096 at 32 ln(4096 / (2 pi beta)) / (2 ln 10000): 5.236 for 32, 11.257 for 1. So
 * pairs to 5 stay, from 12 on they are divided by 16, and pair 8 is 3/7 of the way.
 */
static void test_yarn(void **state)
{
    (void)state;
    struct settings s = settings_of((struct tiny_model_options){.rope_scaling = "yarn",
                                                                .rope_factor = 16,
                                                                .rope_original_ctx = 4096},
                                    &none);
    for (size_t i = 0; i <= 5; i++)
        assert_near(s.frequency[i], pow(10000, -(double)i / N_PAIRS));
    assert_near(s.frequency[8], pow(10000, -0.5) * (4.0 / 7 + 3.0 / 7 / 16));
    for (size_t i = 12; i < N_PAIRS; i++)
        assert_near(s.frequency[i], pow(10000, -(double)i / N_PAIRS) / 16);
    assert_near(s.magnitude, 1 + 0.1 * log(16));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_yarn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

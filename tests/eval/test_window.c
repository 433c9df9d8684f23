/* Plans: which windows a protocol cuts, what it puts in and what it scores. */
#include <string.h>

#include "eval/input/window.h"
#include "tests/harness/cmocka.h"

enum { BOS = 1 };

/** A stream whose token i has the id 1000 + i, so that ids tell where they come from. */
static int32_t ids[2000];
static const struct eval_stream stream = {.ids = ids, .n = 2000};

static int number_ids(void **state)
{
    (void)state;
    for (int32_t i = 0; i < 2000; i++)
        ids[i] = 1000 + i;
    return 0;
}

/** Expected plans, worked out by hand from the procedures in docs/protocols.md. */
static void shapes(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        struct eval_plan_options options;
        size_t n_stream;
        size_t window, step, n_windows, n_inputs, first_scored, n_scored;
        enum eval_bos bos_use;
    } cases[] = {
        {"512: 255 scored",
         {.n_ctx = 512, .bos = BOS},
         1600,
         512,
         512,
         3,
         511,
         256,
         255,
         EVAL_BOS_REPLACES},
        {"odd context", {.n_ctx = 7, .bos = -1}, 20, 7, 7, 2, 6, 3, 3, EVAL_BOS_NONE},
        {"smallest context", {.n_ctx = 3, .bos = -1}, 9, 3, 3, 3, 2, 1, 1, EVAL_BOS_NONE},
        {"--chunks 2",
         {.n_ctx = 512, .max_windows = 2, .bos = BOS},
         1600,
         512,
         512,
         2,
         511,
         256,
         255,
         EVAL_BOS_REPLACES},
        {"--chunks beyond the text",
         {.n_ctx = 512, .max_windows = 9, .bos = BOS},
         1600,
         512,
         512,
         3,
         511,
         256,
         255,
         EVAL_BOS_REPLACES},
        /* ceil((1600 - 512) / 200) = 6; targets are the last 200 of 512 */
        {"strided",
         {EVAL_PROTOCOL_STRIDED, 512, 200, 0, BOS, false, 0, 0},
         1600,
         512,
         200,
         6,
         511,
         311,
         200,
         EVAL_BOS_REPLACES},
        {"strided, exactly one window",
         {EVAL_PROTOCOL_STRIDED, 512, 200, 0, BOS, false, 0, 0},
         512,
         512,
         200,
         1,
         511,
         311,
         200,
         EVAL_BOS_REPLACES},
        {"strided, longest stride",
         {EVAL_PROTOCOL_STRIDED, 8, 7, 0, -1, false, 0, 0},
         23,
         8,
         7,
         3,
         7,
         0,
         7,
         EVAL_BOS_NONE},
        /* 256 + 128/2 = 320, up to 512; ceil((1600 - 512) / 128) = 9; BOS has no effect */
        {"strided, compatible",
         {EVAL_PROTOCOL_STRIDED, 256, 128, 0, BOS, true, 256, 0},
         1600,
         512,
         128,
         9,
         511,
         383,
         128,
         EVAL_BOS_NONE},
        /* 512 + 512/2 = 768 is a multiple of 256 already */
        {"strided, compatible, no padding",
         {EVAL_PROTOCOL_STRIDED, 512, 512, 0, BOS, true, 512, 0},
         1600,
         768,
         512,
         2,
         767,
         255,
         512,
         EVAL_BOS_NONE},
        {"fixed",
         {EVAL_PROTOCOL_FIXED, 512, 0, 0, BOS, false, 0, 0},
         1600,
         512,
         512,
         3,
         512,
         0,
         512,
         EVAL_BOS_IN_FRONT},
        {"fixed without BOS",
         {EVAL_PROTOCOL_FIXED, 512, 0, 0, -1, false, 0, 0},
         1600,
         512,
         512,
         3,
         511,
         0,
         511,
         EVAL_BOS_NONE},
        {"fixed, short text",
         {EVAL_PROTOCOL_FIXED, 4096, 0, 0, BOS, false, 0, 0},
         100,
         100,
         100,
         1,
         100,
         0,
         100,
         EVAL_BOS_IN_FRONT},
        {"fixed, one token",
         {EVAL_PROTOCOL_FIXED, 4096, 0, 0, BOS, false, 0, 0},
         1,
         1,
         1,
         1,
         1,
         0,
         1,
         EVAL_BOS_IN_FRONT},
        {"fixed, two tokens without BOS",
         {EVAL_PROTOCOL_FIXED, 4096, 0, 0, -1, false, 0, 0},
         2,
         2,
         2,
         1,
         1,
         0,
         1,
         EVAL_BOS_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct eval_plan plan;
        struct status_why why = {0};
        print_message("%s\n", cases[i].what);
        assert_int_equal(eval_plan_make(&plan, &cases[i].options, cases[i].n_stream, &why),
                         STATUS_OK);
        assert_int_equal(plan.window, cases[i].window);
        assert_int_equal(plan.step, cases[i].step);
        assert_int_equal(plan.n_windows, cases[i].n_windows);
        assert_int_equal(plan.n_inputs, cases[i].n_inputs);
        assert_int_equal(plan.first_scored, cases[i].first_scored);
        assert_int_equal(plan.n_scored, cases[i].n_scored);
        assert_int_equal(plan.bos_use, cases[i].bos_use);
        /* The last target of the last window is in the text. */
        assert_true(eval_plan_target(&plan, plan.n_windows - 1, plan.n_inputs - 1) <
                    cases[i].n_stream);
    }
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        struct eval_plan_options options;
        size_t n_stream;
        enum status status;
        const char *found, *expected; /* both in the sentence */
    } cases[] = {
        {{.n_ctx = 512, .bos = BOS}, 511, STATUS_FORMAT, "511", "512"},
        {{.n_ctx = 2, .bos = BOS}, 511, STATUS_USAGE, "is 2", "expected 3"},
        {{.n_ctx = SIZE_MAX, .bos = BOS}, 511, STATUS_USAGE, "context", "expected 3"},
        {{.n_ctx = 512, .bos = BOS, .llama_compat = true}, 1023, STATUS_FORMAT, "1023", "1024"},
        {{EVAL_PROTOCOL_STRIDED, 512, 128, 0, BOS, false, 0, 0}, 511, STATUS_FORMAT, "511", "512"},
        {{EVAL_PROTOCOL_STRIDED, 512, 0, 0, BOS, false, 0, 0}, 5000, STATUS_USAGE, "is 0", "1"},
        {{EVAL_PROTOCOL_STRIDED, 512, 512, 0, BOS, false, 0, 0}, 5000, STATUS_USAGE, "512", "less"},
        /* 256 + 64 = 320, up to 512; two of them */
        {{EVAL_PROTOCOL_STRIDED, 256, 128, 0, BOS, true, 0, 0},
         1023,
         STATUS_FORMAT,
         "1023",
         "1024"},
        {{EVAL_PROTOCOL_FIXED, 512, 0, 0, BOS, false, 0, 0}, 0, STATUS_FORMAT, "0 tokens", "1"},
        {{EVAL_PROTOCOL_FIXED, 512, 0, 0, -1, false, 0, 0}, 1, STATUS_FORMAT, "1 token;", "2"},
        {{.n_ctx = 512, .bos = BOS, .skip_windows = 3},
         1600,
         STATUS_USAGE,
         "3 windows, 3 should be",
         "none is left"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct eval_plan plan;
        struct status_why why = {0};
        assert_int_equal(eval_plan_make(&plan, &cases[i].options, cases[i].n_stream, &why),
                         cases[i].status);
        print_message("%s\n", why.text);
        assert_non_null(strstr(why.text, cases[i].found));
        assert_non_null(strstr(why.text, cases[i].expected));
    }
}

static void warnings(void **state)
{
    (void)state;
    struct eval_plan plan;
    struct eval_plan_options options = {.n_ctx = 512, .bos = BOS};
    assert_int_equal(eval_plan_make(&plan, &options, 1024, NULL), STATUS_OK);
    assert_string_equal(plan.warning, "");
    assert_int_equal(eval_plan_make(&plan, &options, 1023, NULL), STATUS_OK);
    assert_non_null(strstr(plan.warning, "1023"));
    assert_non_null(strstr(plan.warning, "512"));
    options.protocol = EVAL_PROTOCOL_FIXED;
    assert_int_equal(eval_plan_make(&plan, &options, 512, NULL), STATUS_OK);
    assert_string_equal(plan.warning, "");
    assert_int_equal(eval_plan_make(&plan, &options, 511, NULL), STATUS_OK);
    assert_non_null(strstr(plan.warning, "511"));
}

static void assert_position(const struct eval_plan *plan, size_t w, size_t p, int32_t input,
                            int32_t target)
{
    assert_int_equal(eval_plan_input(plan, &stream, w, p), input);
    assert_int_equal(stream.ids[eval_plan_target(plan, w, p)], target);
}

/** Windows that are left out count for --chunks no more; the others stay where they were. */
static void skipped_windows(void **state)
{
    (void)state;
    struct eval_plan plan, all;
    struct eval_plan_options options = {.n_ctx = 100, .bos = BOS};
    assert_int_equal(eval_plan_make(&all, &options, 1600, NULL), STATUS_OK);
    options.skip_windows = 5;
    assert_int_equal(eval_plan_make(&plan, &options, 1600, NULL), STATUS_OK);
    assert_int_equal(plan.n_windows, 11);
    assert_int_equal(eval_plan_first(&plan, 0), 500);
    for (size_t p = 0; p < plan.n_inputs; p++) {
        assert_int_equal(eval_plan_input(&plan, &stream, 2, p),
                         eval_plan_input(&all, &stream, 7, p));
        assert_int_equal(eval_plan_target(&plan, 2, p), eval_plan_target(&all, 7, p));
    }
    options.max_windows = 4;
    assert_int_equal(eval_plan_make(&plan, &options, 1600, NULL), STATUS_OK);
    assert_int_equal(plan.n_windows, 4);
}

/** What goes in and what is asked for, at the edges of windows. */
static void inputs_and_targets(void **state)
{
    (void)state;
    struct eval_plan plan;
    struct eval_plan_options options = {.n_ctx = 512, .bos = BOS};
    assert_int_equal(eval_plan_make(&plan, &options, 1600, NULL), STATUS_OK);
    assert_position(&plan, 0, 256, 1256, 1257);
    assert_position(&plan, 1, 0, BOS, 1513);
    assert_position(&plan, 1, 1, 1513, 1514);
    assert_position(&plan, 1, 510, 2022, 2023);

    options.bos = -1;
    assert_int_equal(eval_plan_make(&plan, &options, 1600, NULL), STATUS_OK);
    assert_position(&plan, 1, 0, 1512, 1513);

    options = (struct eval_plan_options){EVAL_PROTOCOL_STRIDED, 512, 200, .bos = BOS};
    assert_int_equal(eval_plan_make(&plan, &options, 1600, NULL), STATUS_OK);
    assert_position(&plan, 2, 0, BOS, 1401);
    assert_position(&plan, 2, 510, 1910, 1911);

    options = (struct eval_plan_options){EVAL_PROTOCOL_STRIDED, 256, 128, .bos = BOS,
                                         .llama_compat = true};
    assert_int_equal(eval_plan_make(&plan, &options, 1600, NULL), STATUS_OK);
    assert_position(&plan, 2, 0, 1256, 1257);

    /* BOS in front: position 0 predicts the window's first token. */
    options = (struct eval_plan_options){EVAL_PROTOCOL_FIXED, 512, .bos = BOS};
    assert_int_equal(eval_plan_make(&plan, &options, 1600, NULL), STATUS_OK);
    assert_position(&plan, 1, 0, BOS, 1512);
    assert_position(&plan, 1, 511, 2022, 2023);

    options.bos = -1;
    assert_int_equal(eval_plan_make(&plan, &options, 1600, NULL), STATUS_OK);
    assert_position(&plan, 1, 0, 1512, 1513);
    assert_position(&plan, 1, 510, 2022, 2023);
}

/** llama-perplexity prints 0,0,0,0,2048,2048 at -c 512 -b 2048, for all windows of a batch. */
static void printed_offsets(void **state)
{
    (void)state;
    struct eval_plan plan;
    struct eval_plan_options options = {.n_ctx = 512, .bos = BOS, .compat_batch = 2048};
    assert_int_equal(eval_plan_make(&plan, &options, 5000, NULL), STATUS_OK);
    assert_int_equal(eval_plan_offset(&plan, 3), 1536);
    assert_int_equal(eval_plan_offset(&plan, 5), 2560);
    options.llama_compat = true;
    assert_int_equal(eval_plan_make(&plan, &options, 5000, NULL), STATUS_OK);
    assert_int_equal(eval_plan_offset(&plan, 3), 0);
    assert_int_equal(eval_plan_offset(&plan, 5), 2048);
    options.compat_batch = 100;
    assert_int_equal(eval_plan_make(&plan, &options, 5000, NULL), STATUS_OK);
    assert_int_equal(eval_plan_offset(&plan, 5), 2560);
}

static void protocol_names(void **state)
{
    (void)state;
    assert_string_equal(eval_protocol_name(EVAL_PROTOCOL_FIXED), "fixed");
    assert_string_equal(eval_protocol_name(EVAL_PROTOCOL_STRIDED), "strided");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),
        cmocka_unit_test(refusals),
        cmocka_unit_test(warnings),
        cmocka_unit_test(skipped_windows),
        cmocka_unit_test(inputs_and_targets),
        cmocka_unit_test(printed_offsets),
        cmocka_unit_test(protocol_names),
    };
    return cmocka_run_group_tests(tests, number_ids, NULL);
}

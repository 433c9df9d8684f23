/*
 * Every model of the reference material against per-token values that a float64 evaluation
 * written elsewhere gave: text to tokens, forward pass, scores. Skipped where it is absent.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness/cmocka.h"
#include "tests/harness/reference_list.h"
#include "tests/model/fixture.h"
#include "tests/model/float64.h"

enum { N_CTX = 256, N_WINDOWS = 2, FIRST = N_CTX / 2, N_SCORED = N_CTX - 1 - FIRST };

/** Asked of each log-probability, and of the mean, relative. */
static const double max_token_error = 2e-5;
static const double max_mean_error = 2e-6;

static char *read_text(size_t *n_bytes)
{
    FILE *f = fopen(ASSAY_REFERENCE_DIR "/text/wiki2-test.txt", "rb");
    assert_non_null(f);
    size_t capacity = 1 << 14; /* more than enough for two windows */
    char *text = malloc(capacity);
    assert_non_null(text);
    *n_bytes = fread(text, 1, capacity, f);
    fclose(f);
    return text;
}

/** The first windows of the text, each beginning with BOS. */
static void make_tokens(const struct fixture *f, int32_t tokens[N_WINDOWS * N_CTX])
{
    const struct model_tokenizer *tokenizer = model_tokenizer(f->model);
    size_t n_bytes;
    char *text = read_text(&n_bytes);
    struct model_tokens ids = {0};
    struct status_why why = {0};
    if (model_tokenize(tokenizer, text, n_bytes, false, &ids, &why) != STATUS_OK)
        fail_msg("%s", why.text);
    assert_true(model_adds_bos(tokenizer));
    assert_true(ids.n > N_WINDOWS * N_CTX);
    memcpy(tokens + 1, ids.ids, (N_WINDOWS * N_CTX - 1) * sizeof *tokens);
    for (size_t w = 0; w < N_WINDOWS; w++)
        tokens[w * N_CTX] = model_token_bos(tokenizer);
    free(ids.ids);
    free(text);
}

/** Scores of the second half of each window, in order. */
static double *evaluate(struct fixture *f, int32_t targets[N_WINDOWS * N_SCORED])
{
    int32_t tokens[N_WINDOWS * N_CTX];
    make_tokens(f, tokens);
    struct model_segment segments[N_WINDOWS];
    for (size_t w = 0; w < N_WINDOWS; w++)
        segments[w] = (struct model_segment){.start = w * N_CTX, .n_tokens = N_CTX, .parent = -1};
    struct model_batch batch = {.tokens = tokens,
                                .n_tokens = N_WINDOWS * N_CTX,
                                .segments = segments,
                                .n_segments = N_WINDOWS};
    float *hidden = fixture_hidden(f, &batch, (struct fixture_run){0});
    size_t width = model_hparams(f->model)->n_embd;
    for (size_t w = 0; w < N_WINDOWS; w++) {
        size_t from = w * N_CTX + FIRST;
        memmove(hidden + w * N_SCORED * width, hidden + from * width,
                N_SCORED * width * sizeof *hidden);
        memcpy(targets + w * N_SCORED, tokens + from + 1, N_SCORED * sizeof *targets);
    }
    double *log_probs = fixture_log_probs(f, hidden, targets, N_WINDOWS * N_SCORED);
    free(hidden);
    return log_probs;
}

/** The first n values of a model's file, whose targets must be these; free(). */
static double *read_oracle(const char *name, const int32_t *targets, size_t n)
{
    char path[512];
    snprintf(path, sizeof path, ASSAY_REFERENCE_DIR "/reference/oracle/%s.c256.nll.tsv", name);
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("no %s", path);
    char line[256];
    assert_non_null(fgets(line, sizeof line, file)); /* the header */
    double *values = malloc(n * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < n; i++) {
        unsigned window;
        unsigned position;
        int target;
        assert_non_null(fgets(line, sizeof line, file));
        assert_int_equal(sscanf(line, "%u %u %d %lf", &window, &position, &target, &values[i]), 4);
        assert_int_equal(window, i / N_SCORED);
        assert_int_equal(position, FIRST + i % N_SCORED);
        assert_int_equal(target, targets[i]);
    }
    if (n == N_WINDOWS * N_SCORED)
        assert_null(fgets(line, sizeof line, file));
    fclose(file);
    return values;
}

static void compare(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, ASSAY_REFERENCE_DIR "/models/%s.gguf", name);
    struct fixture f = fixture_open_file(path, &(struct model_options){0});
    int32_t targets[N_WINDOWS * N_SCORED];
    double *log_probs = evaluate(&f, targets);
    fixture_close(&f);

    double *expected = read_oracle(name, targets, N_WINDOWS * N_SCORED);
    double worst = 0;
    double sum = 0;
    double expected_sum = 0;
    for (size_t i = 0; i < N_WINDOWS * N_SCORED; i++) {
        worst = fmax(worst, fabs(-log_probs[i] - expected[i]));
        sum -= log_probs[i];
        expected_sum += expected[i];
    }
    free(expected);
    free(log_probs);
    double mean_error = fabs(sum / expected_sum - 1);
    print_message("%-20s worst token %.1e, mean %.1e relative\n", name, worst, mean_error);
    assert_true(worst < max_token_error);
    assert_true(mean_error < max_mean_error);
}

static void test_models(void **state)
{
    (void)state;
    struct reference_list models;
    assert_true(reference_list_open(&models, "models"));
    while (reference_list_next(&models)) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(strlen(models.name) - strlen(".gguf")),
                 models.name);
        compare(name);
    }
    assert_true(models.n > 0);
}

/**
 * The double-precision pass that other tests compare with, against the same values: they are
 * printed with twelve digits, and both are sums of doubles in another order.
 */
static void test_float64(void **state)
{
    (void)state;
    static const char *const names[] = {"tiny.Q4_K_M", "rand-llama3.Q8_0", "rand-moe.Q8_0"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[512];
        snprintf(path, sizeof path, ASSAY_REFERENCE_DIR "/models/%s.gguf", names[i]);
        struct fixture f = fixture_open_file(path, &(struct model_options){0});
        int32_t tokens[N_WINDOWS * N_CTX];
        make_tokens(&f, tokens);
        struct float64_model *m = float64_open(model_file(f.model));
        double *hidden = malloc(N_CTX * float64_width(m) * sizeof *hidden);
        double *log_probs = malloc(float64_vocab(m) * sizeof *log_probs);
        assert_true(hidden && log_probs);
        float64_hidden(m, tokens, N_CTX, hidden);
        double *expected = read_oracle(names[i], tokens + FIRST + 1, N_SCORED);
        double worst = 0;
        for (size_t t = 0; t < N_SCORED; t++) {
            float64_log_probs(m, hidden + (FIRST + t) * float64_width(m), log_probs);
            worst = fmax(worst, fabs(-log_probs[tokens[FIRST + t + 1]] - expected[t]));
        }
        print_message("%-20s float64 here and there: %.1e\n", names[i], worst);
        free(expected);
        free(hidden);
        free(log_probs);
        float64_close(m);
        fixture_close(&f);
        assert_true(worst < 1e-9);
    }
}

int main(void)
{
    if (access(ASSAY_REFERENCE_DIR "/models", F_OK) != 0) {
        puts("skipped: no reference material beside the checkout");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_models),
                                       cmocka_unit_test(test_float64)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

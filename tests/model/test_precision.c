/*
 * How faithful the precisions are, on whole models: the distributions that each of them predicts,
 * against double precision. Products in bfloat16 come from the software model of AMX; the rows
 * of `high` and `fast` without AMX have those in integers of 16 and 8 bits.
 *
 * Limits: of `exact`, 2e-5 per log-probability of the tokens that follow (float32 throughout stays
 * within 1.1e-5 on these models); of `high`, 3e-4, a mean divergence of 1e-9 (1e-8 for weights
 * that were never trained) and 2e-6 of the mean; of `fast`, a mean divergence of 2e-4 (1e-3).
 * In integers those that `high` promises: 2e-3, a mean divergence of 1.2e-8 (1e-7) and 1e-5 of the
 * mean; and of `fast` a mean divergence of 6e-4 (5e-3), of which the few tokens are a part: over
 * 2032 it is 2.3e-4 at most (bench/NOTES.md).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/operations.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/reference_list.h"
#include "tests/model/fixture.h"
#include "tests/model/float64.h"

enum { N_TOKENS = 24 };

struct limits {
    const char *name;
    enum kern_precision precision;
    enum kern_amx amx;
    double divergence, log_prob, mean;
};

enum { N_LIMITS = 5 };

static const struct limits trained[N_LIMITS] = {
    {"exact", KERN_PRECISION_EXACT, KERN_AMX_EMULATED, 1e-10, 2e-5, 2e-6},
    {"high", KERN_PRECISION_HIGH, KERN_AMX_NONE, 1.2e-8, 2e-3, 1e-5},
    {"high", KERN_PRECISION_HIGH, KERN_AMX_EMULATED, 1e-9, 3e-4, 2e-6},
    {"fast", KERN_PRECISION_FAST, KERN_AMX_NONE, 6e-4, 1, 1},
    {"fast", KERN_PRECISION_FAST, KERN_AMX_EMULATED, 2e-4, 1, 1}};
static const struct limits untrained[N_LIMITS] = {
    {"exact", KERN_PRECISION_EXACT, KERN_AMX_EMULATED, 1e-10, 2e-5, 2e-6},
    {"high", KERN_PRECISION_HIGH, KERN_AMX_NONE, 1e-7, 2e-3, 1e-5},
    {"high", KERN_PRECISION_HIGH, KERN_AMX_EMULATED, 1e-8, 3e-4, 2e-6},
    {"fast", KERN_PRECISION_FAST, KERN_AMX_NONE, 5e-3, 1, 1},
    {"fast", KERN_PRECISION_FAST, KERN_AMX_EMULATED, 1e-3, 1, 1}};

static void use_precision(struct fixture *f, const struct limits *limits)
{
    kern_close(f->backend);
    struct kern_cpu_options options = {.n_threads = 2,
                                       .isa_cap = KERN_ISA_COUNT - 1,
                                       .precision = limits->precision,
                                       .amx = limits->amx};
    assert_int_equal(kern_cpu_open(&f->backend, &options, NULL), STATUS_OK);
}

/** Logits of all tokens after each hidden row, by the backend's own products: [n, V]. In `fast`
 * integers of 8 bits are of the layers only: there the backend is one of `high`. */
static float *logits_of(struct fixture *f, const float *hidden, size_t n)
{
    const struct kern_weight *matrix = model_head(f->model);
    float *x = NULL, *y = NULL;
    size_t x_bytes = n * matrix->n_cols * sizeof *x, y_bytes = n * matrix->n_rows * sizeof *y;
    float *logits = malloc(y_bytes);
    assert_non_null(logits);
    assert_int_equal(kern_alloc(f->backend, (void **)&x, x_bytes, NULL), STATUS_OK);
    assert_int_equal(kern_alloc(f->backend, (void **)&y, y_bytes, NULL), STATUS_OK);
    assert_int_equal(kern_upload(f->backend, x, hidden, x_bytes, NULL), STATUS_OK);
    struct kern_linear op = {
        .weight = matrix, .x = x, .y = y, .y_stride = matrix->n_rows, .n_tokens = n};
    assert_int_equal(kern_linear(f->backend, &op, NULL), STATUS_OK);
    assert_int_equal(kern_download(f->backend, logits, y, y_bytes, NULL), STATUS_OK);
    kern_free(f->backend, x);
    kern_free(f->backend, y);
    return logits;
}

/** What one row adds. */
struct row {
    double divergence, log_prob_error;
};

/** ln q of all tokens from logits, compared with ln p of double precision. */
static struct row compare_row(const float *logits, const double *truth, size_t n, int32_t target)
{
    double most = -(double)INFINITY, sum = 0.0, divergence = 0.0;
    for (size_t i = 0; i < n; i++)
        most = fmax(most, (double)logits[i]);
    for (size_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - most);
    double log_sum = most + log(sum);
    for (size_t i = 0; i < n; i++)
        divergence += exp(truth[i]) * (truth[i] - ((double)logits[i] - log_sum));
    return (struct row){.divergence = divergence,
                        .log_prob_error = (double)logits[target] - log_sum - truth[target]};
}

static void check_precision(struct fixture *f, struct float64_model *m, const int32_t *tokens,
                            const struct limits *limits)
{
    size_t n_vocab = float64_vocab(m), width = float64_width(m);
    double *rows = malloc(N_TOKENS * width * sizeof *rows);
    double *truth = malloc(n_vocab * sizeof *truth);
    assert_true(rows && truth);
    float64_hidden(m, tokens, N_TOKENS, rows);
    use_precision(f, limits);
    struct model_segment segment;
    struct model_batch batch = fixture_window(tokens, N_TOKENS, &segment);
    float *hidden = fixture_hidden(f, &batch, (struct fixture_run){0});
    const char *products = kern_describe(f->backend).products;
    if (strcmp(products, "int8") == 0)
        use_precision(f, &(struct limits){.precision = KERN_PRECISION_HIGH});
    float *logits = logits_of(f, hidden, N_TOKENS);
    double divergence = 0.0, largest = 0.0, mean_error = 0.0, mean = 0.0;
    for (size_t t = 0; t < N_TOKENS; t++) {
        float64_log_probs(m, rows + t * width, truth);
        struct row row = compare_row(logits + t * n_vocab, truth, n_vocab, tokens[t + 1]);
        divergence += row.divergence / N_TOKENS;
        largest = fmax(largest, fabs(row.log_prob_error));
        mean_error += row.log_prob_error / N_TOKENS;
        mean += truth[tokens[t + 1]] / N_TOKENS;
    }
    print_message("  %-5s (%s): mean divergence %.2e, largest error of a log-probability %.1e, of "
                  "the mean %.1e\n",
                  limits->name, products, divergence, largest, fabs(mean_error / mean));
    assert_true(divergence <= limits->divergence);
    assert_true(largest <= limits->log_prob);
    assert_true(fabs(mean_error / mean) <= limits->mean);
    free(hidden);
    free(logits);
    free(rows);
    free(truth);
}

static void check_model(const char *path, const struct limits limits[N_LIMITS])
{
    struct gguf_file *file;
    struct status_why why = {0};
    if (gguf_open(&file, path, &why) != STATUS_OK)
        fail_msg("%s", why.text);
    struct float64_model *m = float64_open(file);
    struct fixture f = fixture_open_file(path, &(struct model_options){0});
    int32_t *tokens = fixture_tokens(&f, 1, N_TOKENS + 1);
    print_message("%s\n", path);
    for (size_t i = 0; i < N_LIMITS; i++)
        check_precision(&f, m, tokens, &limits[i]);
    free(tokens);
    fixture_close(&f);
    float64_close(m);
    gguf_close(file);
}

static void test_bundled_models(void **state)
{
    (void)state;
    check_model(ASSAY_SOURCE_DIR "/data/tiny.F16.gguf", trained);
    check_model(ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf", trained);
}

/** Models of the reference material that the short test takes: the random ones are untrained. */
static bool is_wanted(const char *name)
{
    return getenv("ASSAY_TEST_SLOW") || strcmp(name, "tiny.IQ3_S.gguf") == 0 ||
           strcmp(name, "rand-moe.Q8_0.gguf") == 0;
}

/** The models of the reference material, where it is; all of them where ASSAY_TEST_SLOW is set. */
static void test_reference_models(void **state)
{
    (void)state;
    struct reference_list models;
    if (!reference_list_open(&models, "models"))
        skip();
    while (reference_list_next(&models))
        if (is_wanted(models.name))
            check_model(models.path, strncmp(models.name, "rand-", 5) == 0 ? untrained : trained);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bundled_models),
        cmocka_unit_test(test_reference_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

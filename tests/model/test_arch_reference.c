/*
 * Every model of another architecture in the reference material against per-token values that a
 * float64 evaluation written elsewhere gave. Skipped where it is absent.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/cmocka.h"
#include "tests/harness/reference_list.h"
#include "tests/model/fixture.h"

/*
 * Asked of each log-probability. Random weights amplify rounding more than trained ones; a mixture
 * is a step function, so that a near tie can flip an expert: of such models most tokens are asked.
 */
static const double max_token_error = 2e-4;
static const double max_flipped_error = 1e-3;
static const double least_share = 0.99;
static const double max_mean_error = 2e-5;

/** One line of a file of expected values. */
struct expected {
    unsigned window, position;
    int target, argmax;
    double log_prob;
};

struct table {
    struct expected *rows;
    size_t n;
};

static struct table read_table(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    struct table t = {.rows = malloc(8192 * sizeof *t.rows)};
    char line[256];
    assert_non_null(t.rows);
    assert_non_null(fgets(line, sizeof line, file)); /* the header */
    while (fgets(line, sizeof line, file)) {
        struct expected *row = &t.rows[t.n++];
        assert_true(t.n <= 8192);
        assert_int_equal(sscanf(line, "%u %u %d %lf %d", &row->window, &row->position, &row->target,
                                &row->log_prob, &row->argmax),
                         5);
    }
    fclose(file);
    return t;
}

/** The first n_windows of the text, each beginning with BOS where the model has one. */
static int32_t *make_tokens(const struct fixture *f, size_t n_ctx, size_t n_windows)
{
    const struct model_tokenizer *tokenizer = model_tokenizer(f->model);
    FILE *file = fopen(ASSAY_REFERENCE_DIR "/text/wiki2-test.txt", "rb");
    assert_non_null(file);
    size_t capacity = 1 << 16;
    char *text = malloc(capacity);
    assert_non_null(text);
    size_t n_bytes = fread(text, 1, capacity, file);
    fclose(file);
    struct model_tokens ids = {0};
    struct status_why why = {0};
    if (model_tokenize(tokenizer, text, n_bytes, false, &ids, &why) != STATUS_OK)
        fail_msg("%s", why.text);
    size_t n = n_ctx * n_windows;
    bool bos = model_adds_bos(tokenizer);
    int32_t *tokens = malloc(n * sizeof *tokens);
    assert_true(tokens && ids.n >= n);
    memcpy(tokens + bos, ids.ids, (n - bos) * sizeof *tokens);
    for (size_t w = 0; bos && w < n_windows; w++)
        tokens[w * n_ctx] = model_token_bos(tokenizer);
    free(ids.ids);
    free(text);
    return tokens;
}

/** ln p of every expected row. */
static double *evaluate(struct fixture *f, const struct table *t, size_t n_ctx)
{
    size_t n_windows = t->rows[t->n - 1].window + 1;
    int32_t *tokens = make_tokens(f, n_ctx, n_windows);
    struct model_segment segments[8];
    assert_true(n_windows <= 8);
    for (size_t w = 0; w < n_windows; w++)
        segments[w] = (struct model_segment){.start = w * n_ctx, .n_tokens = n_ctx, .parent = -1};
    struct model_batch batch = {.tokens = tokens,
                                .n_tokens = n_windows * n_ctx,
                                .segments = segments,
                                .n_segments = n_windows};
    float *hidden = fixture_hidden(f, &batch, (struct fixture_run){0});
    size_t width = model_hparams(f->model)->n_embd;
    int32_t *targets = malloc(t->n * sizeof *targets);
    assert_non_null(targets);
    for (size_t i = 0; i < t->n; i++) {
        size_t from = t->rows[i].window * n_ctx + t->rows[i].position;
        memmove(hidden + i * width, hidden + from * width, width * sizeof *hidden);
        targets[i] = tokens[from + 1];
        assert_int_equal(targets[i], t->rows[i].target);
    }
    double *log_probs = fixture_log_probs(f, hidden, targets, t->n);
    free(targets);
    free(hidden);
    free(tokens);
    return log_probs;
}

/** Where results and their models lie. */
static const struct folder {
    const char *results, *models;
} folders[] = {
    {"reference/arch", ASSAY_REFERENCE_DIR "/models-arch"},
    {"reference/arch-next", ASSAY_REFERENCE_DIR "/models-arch-next"},
    {"reference/arch-autumn", ASSAY_REFERENCE_DIR "/autumn/models"},
};

/** "gpt-oss.F32.c256[.rounded].tsv": the model, its type, the context, the form. */
struct name {
    char model[64], form[16];
    unsigned n_ctx;
};

static bool parse_name(const char *file, struct name *out)
{
    *out = (struct name){0};
    const char *ctx = strstr(file, ".c");
    if (!ctx || sscanf(ctx, ".c%u.%15s", &out->n_ctx, out->form) != 2)
        return false;
    snprintf(out->model, sizeof out->model, "%.*s", (int)(ctx - file), file);
    return strcmp(out->form, "tsv") == 0 || strcmp(out->form, "rounded.tsv") == 0 ||
           strcmp(out->form, "compat.tsv") == 0;
}

static bool compare(const struct folder *folder, const struct reference_list *results,
                    const struct name *name)
{
    char path[512];
    const char *file = results->name;
    snprintf(path, sizeof path, "%s/arch-%s.gguf", folder->models, name->model);
    /* Their authors do something else than these values (docs/peer-defects.md). */
    bool compat = strcmp(name->form, "tsv") != 0 || strncmp(file, "nemotron_h", 10) == 0;
    struct model_options options = {.llama_compat = compat};
    struct fixture f = fixture_open_file(path, &options);
    struct table t = read_table(results->path);
    double *log_probs = evaluate(&f, &t, name->n_ctx);
    bool mixture = model_hparams(f.model)->experts.n > 0;
    double worst = 0, sum = 0, expected_sum = 0;
    size_t n_close = 0;
    for (size_t i = 0; i < t.n; i++) {
        double error = fabs(log_probs[i] - t.rows[i].log_prob);
        worst = fmax(worst, error);
        n_close += error < max_flipped_error;
        sum += log_probs[i];
        expected_sum += t.rows[i].log_prob;
    }
    double mean_error = fabs(sum / expected_sum - 1);
    bool ok = mixture ? (double)n_close >= least_share * (double)t.n
                      : worst < max_token_error && mean_error < max_mean_error;
    print_message("%-34s worst token %.1e, mean %.1e relative, %zu of %zu within %.0e%s\n", file,
                  worst, mean_error, n_close, t.n, max_flipped_error, ok ? "" : "  <-- wrong");
    free(log_probs);
    free(t.rows);
    fixture_close(&f);
    return ok;
}

/** All results of a folder; returns how many there are. */
static size_t compare_all(const struct folder *folder, bool *ok)
{
    struct reference_list results;
    if (!reference_list_open(&results, folder->results))
        return 0;
    while (reference_list_next(&results)) {
        struct name name;
        assert_true(parse_name(results.name, &name));
        *ok = compare(folder, &results, &name) && *ok;
    }
    return results.n;
}

static void test_all(void **state)
{
    (void)state;
    bool ok = true;
    size_t n = 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        n += compare_all(&folders[i], &ok);
    if (n == 0)
        skip();
    assert_true(ok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Every allocation of the library's calls fails once, alone and with all that follow: the status is
 * ASSAY_MEMORY, with a sentence, or the result is what it is with memory. AddressSanitizer sees
 * what is not released.
 */
#include <stdlib.h>
#include <string.h>

#include "include/assay.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/failing_alloc.h"
#include "tests/harness/temp.h"
#include "tests/harness/tiny_model.h"

static char folder[64], path[128];
static struct assay_model *opened;

/** What is tried. */
typedef enum assay_status (*attempt)(struct assay_why *why);

static enum assay_status open_it(struct assay_why *why)
{
    struct assay_options options = ASSAY_OPTIONS;
    struct assay_model *m;
    options.n_threads = 2;
    enum assay_status status = assay_open(&m, path, &options, why);
    assert_int_equal(m != NULL, status == ASSAY_OK);
    assay_close(m);
    return status;
}

static const int32_t tokens[8] = {3, 4, 5, 6, 7, 8, 9, 10};
static const struct assay_windows windows = {tokens, 2, 4, 1, 2};

static enum assay_status tokenize(struct assay_why *why)
{
    size_t n;
    return assay_tokenize(opened, "abc abc", 7, ASSAY_BOS, NULL, 0, &n, why);
}

static enum assay_status score(struct assay_why *why)
{
    static struct assay_score first[4];
    struct assay_score scores[4];
    enum assay_status status = assay_log_probs(opened, &windows, NULL, scores, why);
    if (status == ASSAY_OK && first[0].rank == 0)
        memcpy(first, scores, sizeof first);
    if (status == ASSAY_OK)
        assert_memory_equal(first, scores, sizeof first);
    return status;
}

static enum assay_status top(struct assay_why *why)
{
    struct assay_likely likely[8];
    return assay_top(opened, &windows, 2, likely, why);
}

static enum assay_status rows(struct assay_why *why)
{
    double values[4 * 100];
    return assay_rows(opened, &windows, 1, 100, values, why);
}

static enum assay_status hidden(struct assay_why *why)
{
    float values[4 * 64];
    return assay_hidden(opened, &windows, 0, values, why);
}

static enum assay_status diverge(struct assay_why *why)
{
    struct assay_divergence found[4];
    return assay_diverge(opened, opened, &windows, NULL, found, why);
}

static enum assay_status multiply(struct assay_why *why)
{
    static const uint8_t bytes[18 * 32];
    static float x[3 * 32], y[3 * 32];
    const struct assay_matrix w = {bytes, sizeof bytes, 32, 32, 2, 0};
    return assay_multiply(NULL, &w, x, 3, y, why);
}

static void test_each(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        attempt try;
        size_t least; /* allocations that fail it */
    } calls[] = {
        {"open", open_it, 10},    {"tokenize", tokenize, 1}, {"log_probs", score, 15},
        {"top", top, 15},         {"rows", rows, 15},        {"hidden", hidden, 8},
        {"diverge", diverge, 20}, {"multiply", multiply, 4},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        size_t n = 0, n_refused = 0;
        for (bool failed = true; failed; n++)
            for (int all_later = 0; all_later < 2; all_later++) {
                struct assay_why why = {""};
                failing_alloc_begin(n, all_later);
                enum assay_status status = calls[i].try(&why);
                failed = failing_alloc_end();
                bool refused = status == ASSAY_MEMORY && *why.text;
                if (refused ? !failed : status != ASSAY_OK)
                    fail_msg("%s, allocation %zu: %s: %s", calls[i].name, n,
                             assay_status_name(status), why.text);
                n_refused += refused && !all_later;
            }
        if (n_refused < calls[i].least)
            fail_msg("%s: %zu allocations failed it, expected %zu", calls[i].name, n_refused,
                     calls[i].least);
    }
}

static int prepare(void **state)
{
    (void)state;
    struct assay_options options = ASSAY_OPTIONS;
    struct tiny_model model = tiny_model_make(&(struct tiny_model_options){.seed = 1});
    options.n_threads = 1;
    temp_make(folder);
    temp_write(temp_path(path, folder, "tiny.gguf"), model.data, model.n_bytes);
    free(model.data);
    return assay_open(&opened, path, &options, NULL) != ASSAY_OK;
}

static int release(void **state)
{
    (void)state;
    assay_close(opened);
    unlink(path);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each)};
    return cmocka_run_group_tests(tests, prepare, release);
}

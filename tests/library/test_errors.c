/* include/assay.h with arguments that make no sense: a status, a sentence, and nothing else. */
#include "include/assay.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/cmocka.h"

#define Q4 ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf"

static struct assay_model *m;

static void expect(enum assay_status found, enum assay_status expected, const struct assay_why *why,
                   const char *part)
{
    if (found != expected || !strstr(why->text, part) || strchr(why->text, '\n'))
        fail_msg("%s: \"%s\", expected %s: \"...%s...\"", assay_status_name(found), why->text,
                 assay_status_name(expected), part);
}

/** One call that fails with ASSAY_USAGE. */
#define REFUSED(part, call)                                                                        \
    do {                                                                                           \
        struct assay_why why = {"old\n"};                                                          \
        expect(call, ASSAY_USAGE, &why, part);                                                     \
    } while (0)

static void test_opening(void **state)
{
    (void)state;
    struct assay_model *other = m;
    struct assay_options options = ASSAY_OPTIONS;
    REFUSED("the path is NULL", assay_open(&other, NULL, NULL, &why));
    assert_null(other);
    REFUSED("NULL", assay_open(NULL, Q4, NULL, &why));
    assert_int_equal(assay_open(&other, NULL, NULL, NULL), ASSAY_USAGE); /* without a sentence */
    options.size--;
    REFUSED("sizeof (struct assay_options)", assay_open(&other, Q4, &options, &why));
    options = (struct assay_options)ASSAY_OPTIONS;
    options.precision = (enum assay_precision)3;
    REFUSED("precision 3, expected 0 to 2", assay_open(&other, Q4, &options, &why));
    options = (struct assay_options)ASSAY_OPTIONS;
    options.isa = "mmx";
    REFUSED("no instruction set 'mmx', expected scalar", assay_open(&other, Q4, &options, &why));
    options.isa = NULL;
    static const char *const devices[] = {
        "gpu",   "cuda:", "cuda:x", "cuda:1x", "cuda:4294967296", "cuda:99999999999999999999",
        "cuda1", "",
    };
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        options.device = devices[i];
        REFUSED("is not a device", assay_open(&other, Q4, &options, &why));
    }
    options.device = "cuda:0";
    options.isa = "scalar";
    REFUSED("isa 'scalar' goes with the device cpu", assay_open(&other, Q4, &options, &why));
    options.device = options.isa = NULL;
    options.n_threads = 100000;
    REFUSED("100000 threads", assay_open(&other, Q4, &options, &why));
    options.n_threads = 1;
    options.tokens = Q4;
    REFUSED("is no published folder", assay_open(&other, Q4, &options, &why));
    struct assay_why why;
    expect(assay_open(&other, "/nowhere", NULL, &why), ASSAY_IO, &why, "/nowhere");
    expect(assay_open(&other, ASSAY_SOURCE_DIR "/rooms.txt", NULL, &why), ASSAY_FORMAT, &why,
           "rooms.txt");
    assert_null(other);
    assay_close(NULL);
    assay_cancel(NULL, 1);
}

static void test_model(void **state)
{
    (void)state;
    struct assay_description d = {.size = 1};
    struct assay_tensor t;
    size_t n;
    float value;
    char bytes[8];
    REFUSED("size is to be set", assay_describe(m, &d, &why));
    REFUSED("NULL", assay_describe(m, NULL, &why));
    REFUSED("NULL", assay_describe(NULL, &d, &why));
    REFUSED("no tensor 9999", assay_tensor_at(m, 9999, &t, &why));
    REFUSED("NULL", assay_tensor_at(m, 0, NULL, &why));
    REFUSED("did you mean 'output.weight'?", assay_tensor_find(m, "outptu.weight", &n, &why));
    REFUSED("no tensor 'zzzzzzzz' among its tensors", assay_tensor_find(m, "zzzzzzzz", &n, &why));
    REFUSED("NULL", assay_tensor_find(m, NULL, &n, &why));
    REFUSED("rows, not 1 from 18446744073709551615",
            assay_tensor_rows(m, 0, UINT64_MAX, 1, &value, &why));
    REFUSED("from 1 on", assay_tensor_rows(m, 0, 1, UINT64_MAX, &value, &why));
    REFUSED("NULL", assay_tensor_rows(m, 0, 0, 1, NULL, &why));
    REFUSED("flags are 0x4", assay_tokenize(m, "a", 1, 4, NULL, 0, &n, &why));
    REFUSED("the text is NULL", assay_tokenize(m, NULL, 1, 0, NULL, 0, &n, &why));
    REFUSED("NULL", assay_tokenize(m, "a", 1, 0, NULL, 1, &n, &why));
    REFUSED("NULL", assay_tokenize(m, "a", 1, 0, NULL, 0, NULL, &why));
    REFUSED("no token -1", assay_token_bytes(m, -1, bytes, 8, &n, &why));
    REFUSED("no token 2147483647", assay_token_bytes(m, INT32_MAX, bytes, 8, &n, &why));
    REFUSED("NULL", assay_token_bytes(m, 1, NULL, 8, &n, &why));
}

static void test_windows(void **state)
{
    (void)state;
    const int32_t tokens[4] = {1, 2, 3, 4}, bad[4] = {1, 2, INT32_MAX, -1};
    const struct assay_windows good = {tokens, 1, 4, 1, 3};
    struct assay_score scores[4];
    struct assay_likely likely[4];
    struct assay_divergence divergences[4];
    double row[4];
    float hidden[4];
    REFUSED("no next token", assay_log_probs(m, &good, NULL, scores, &why));
    REFUSED("a target, number 2, is 2147483647", assay_log_probs(m, &good, bad, scores, &why));
    REFUSED("NULL", assay_log_probs(m, &good, tokens, NULL, &why));
    REFUSED("NULL", assay_log_probs(m, NULL, tokens, scores, &why));
    REFUSED("NULL", assay_log_probs(NULL, &good, tokens, scores, &why));
    REFUSED("k is 0", assay_top(m, &good, 0, likely, &why));
    REFUSED("k is 21", assay_top(m, &good, 21, likely, &why));
    REFUSED("NULL", assay_diverge(m, NULL, &good, tokens, divergences, &why));
    REFUSED("NULL", assay_diverge(NULL, m, &good, tokens, divergences, &why));
    REFUSED("no 0 from 0 on", assay_rows(m, &good, 0, 0, row, &why));
    REFUSED("from 18446744073709551615", assay_rows(m, &good, SIZE_MAX, 2, row, &why));
    REFUSED("no 18446744073709551615 from 1", assay_rows(m, &good, 1, SIZE_MAX, row, &why));
    REFUSED("no layer -2", assay_hidden(m, &good, -2, hidden, &why));
    REFUSED("no layer 2147483647", assay_hidden(m, &good, INT_MAX, hidden, &why));
    const struct assay_windows wrong[] = {
        {NULL, 1, 4, 0, 1},          {tokens, 0, 4, 0, 1},        {tokens, 1, 0, 0, 1},
        {tokens, 1, 4, 0, 0},        {tokens, 1, 4, 4, 1},        {tokens, 1, 4, 3, 2},
        {tokens, 1, 4, SIZE_MAX, 2}, {tokens, 1, 4, 1, SIZE_MAX}, {tokens, SIZE_MAX, 4, 0, 1},
        {tokens, 2, SIZE_MAX, 0, 1}, {bad, 1, 4, 0, 1},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        REFUSED("", assay_log_probs(m, &wrong[i], tokens, scores, &why));
        REFUSED("", assay_top(m, &wrong[i], 1, likely, &why));
        REFUSED("", assay_rows(m, &wrong[i], 0, 1, row, &why));
        REFUSED("", assay_hidden(m, &wrong[i], 0, hidden, &why));
        REFUSED("", assay_diverge(m, m, &wrong[i], tokens, divergences, &why));
    }
}

static void test_formats(void **state)
{
    (void)state;
    struct assay_type type;
    float values[64];
    const uint8_t bytes[1024] = {0};
    REFUSED("no type 9999", assay_type_at(9999, &type, &why));
    REFUSED("NULL", assay_type_at(0, NULL, &why));
    REFUSED("no type 'Q9_K'", assay_type_find("Q9_K", &type, &why));
    REFUSED("NULL", assay_type_find(NULL, &type, &why));
    const struct assay_matrix wrong[] = {
        {NULL, 4, 1, 1, 0, 0},
        {bytes, 4, 0, 1, 0, 0},
        {bytes, 4, 1, 0, 0, 0},
        {bytes, 5, 1, 1, 0, 0},
        {bytes, 4, 1, 1, 26, 0},
        {bytes, 4, 1, 1, UINT32_MAX, 0},
        {bytes, 4, 1, 1, 2, 0},
        {bytes, 0, SIZE_MAX, 32, 2, 0},
        {bytes, 18, 1, SIZE_MAX - 31, 2, 0},
        {bytes, 18 * 3, 3, 32, 202, 0},
        {bytes, 32, 1, 128, 36, 0},
        {bytes, 32, 1, 32, 400, 0},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        REFUSED("", assay_decode(&wrong[i], values, &why));
        REFUSED("", assay_multiply(NULL, &wrong[i], values, 1, values, &why));
    }
    const struct assay_matrix good = {bytes, 18, 1, 32, 2, 0};
    REFUSED("NULL", assay_decode(NULL, values, &why));
    REFUSED("NULL", assay_decode(&good, NULL, &why));
    REFUSED("NULL", assay_multiply(NULL, &good, NULL, 1, values, &why));
    REFUSED("NULL", assay_multiply(NULL, &good, values, 1, NULL, &why));
    REFUSED("too many", assay_multiply(NULL, &good, values, SIZE_MAX, values + 32, &why));
}

static int prepare(void **state)
{
    (void)state;
    struct assay_options options = ASSAY_OPTIONS;
    options.n_threads = 1;
    return assay_open(&m, Q4, &options, NULL) != ASSAY_OK;
}

static int release(void **state)
{
    (void)state;
    assay_close(m);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opening),
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_formats),
    };
    return cmocka_run_group_tests(tests, prepare, release);
}

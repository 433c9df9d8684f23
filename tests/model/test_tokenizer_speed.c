/*
 * What tokenizing may cost, on the vocabularies of the reference material: time and memory linear
 * in the text, also where the text is one long run. Times are compared with each other only, and
 * are of the processor, so that a slow or busy machine does not fail the test.
 * Skipped where the material is absent.
 */
#include "tests/harness/cmocka.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "model/tokenizer/tokenizer.h"

enum { MB = 1000000, ATTEMPTS = 5 /* busy processors take longer */ };

static const char folder[] = ASSAY_REFERENCE_DIR "/reference/tokenizers";

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/** Let the process map `more` bytes beyond what it has now, or 0 for any number. */
static void limit_memory(size_t more)
{
    static struct rlimit usual;
    if (usual.rlim_max == 0)
        assert_int_equal(getrlimit(RLIMIT_AS, &usual), 0);
    struct rlimit limit = usual;
    if (more > 0) {
        unsigned long pages;
        FILE *f = fopen("/proc/self/statm", "r");
        assert_non_null(f);
        assert_int_equal(fscanf(f, "%lu", &pages), 1);
        fclose(f);
        limit.rlim_cur = pages * (size_t)sysconf(_SC_PAGESIZE) + more;
    }
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
}

struct vocabulary {
    struct gguf_file *file;
    struct model_tokenizer *tokenizer;
};

static struct vocabulary open_vocabulary(const char *name)
{
    char path[512];
    struct vocabulary v;
    struct status_why why = {0};
    snprintf(path, sizeof path, "%s/ggml-vocab-%s.gguf", folder, name);
    if (gguf_open(&v.file, path, &why) ||
        model_tokenizer_open(&v.tokenizer, v.file, NULL, false, &why))
        fail_msg("%s", why.text);
    return v;
}

static void close_vocabulary(struct vocabulary *v)
{
    model_tokenizer_close(v->tokenizer);
    gguf_close(v->file);
}

/** Seconds for a text; *n_tokens: how many came out. */
static double measure(const struct vocabulary *v, const char *text, size_t n_bytes,
                      size_t *n_tokens)
{
    struct model_tokens ids = {0};
    struct status_why why = {0};
    double start = cpu_seconds();
    if (model_tokenize(v->tokenizer, text, n_bytes, true, &ids, &why))
        fail_msg("%s", why.text);
    double seconds = cpu_seconds() - start;
    *n_tokens = ids.n;
    free(ids.ids);
    return seconds;
}

/** The reference text over and over, n_bytes of it. */
static char *long_text(size_t n_bytes)
{
    FILE *f = fopen(ASSAY_REFERENCE_DIR "/text/wiki2-test.txt", "rb");
    assert_non_null(f);
    char *text = malloc(n_bytes);
    assert_non_null(text);
    size_t once = fread(text, 1, n_bytes, f);
    assert_true(once > 0);
    fclose(f);
    for (size_t i = once; i < n_bytes; i++)
        text[i] = text[i - once];
    return text;
}

static void long_texts(void **state)
{
    const char *name = *state;
    enum { N = 20 * MB };
    struct vocabulary v = open_vocabulary(name);
    char *text = long_text(N);
    size_t n_quarter, n_whole;
    bool fast = false;
    for (int i = 0; i < ATTEMPTS && !fast; i++) {
        double quarter = measure(&v, text, N / 4, &n_quarter);
        double whole = measure(&v, text, N, &n_whole);
        print_message("%s: 20 MB in %.2f s, 5 MB in %.2f s\n", name, whole, quarter);
        /* Quadratic would be 16 times as much. */
        fast = whole < 4 * quarter * 1.6;
    }
    assert_true(fast);
    assert_true(n_whole > 3.9 * (double)n_quarter && n_whole < 4.1 * (double)n_quarter);
    free(text);
    close_vocabulary(&v);
}

static void runs(void **state)
{
    const char *name = *state;
    enum { N = 2 * MB };
    struct vocabulary v = open_vocabulary(name);
    char *text = malloc(N);
    assert_non_null(text);
    for (const char *letter = "a 7\n"; *letter; letter++) {
        memset(text, *letter, N);
        size_t n_part, n_whole;
        double part = measure(&v, text, N / 10, &n_part);
        /* 11 bytes a character to merge, 4 for where it begins, 3 for U+2581, 4 for its token;
         * all but the first may have grown to half as much again. */
        limit_memory((size_t)N * 32);
        double whole = measure(&v, text, N, &n_whole);
        limit_memory(0);
        print_message("%s: 2 MB of 0x%02x in %.2f s, 0.2 MB in %.2f s\n", name, *letter, whole,
                      part);
        /* n log n is 11.6 times as much for ten times the text; quadratic would be 100. */
        assert_true(whole < 30 * (part + 0.01));
        assert_true(n_whole <= N + 1);
    }
    free(text);
    close_vocabulary(&v);
}

int main(void)
{
    FILE *there = fopen(ASSAY_REFERENCE_DIR "/reference/tokenizers/whole-texts.tsv", "rb");
    if (!there)
        return 77;
    fclose(there);
    static char spm[] = "llama-spm", bpe[] = "llama-bpe", gpt_2[] = "gpt-2";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(long_texts, spm),   cmocka_unit_test_prestate(long_texts, bpe),
        cmocka_unit_test_prestate(long_texts, gpt_2), cmocka_unit_test_prestate(runs, spm),
        cmocka_unit_test_prestate(runs, bpe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

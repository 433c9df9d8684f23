/* What the pre-tokenisers must stand: long runs of anything, in linear time. */
#include "tests/harness/cmocka.h"
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/pretokenizer.h"

struct total {
    size_t n_bytes, n_pieces;
};

static enum status count(void *user, const char *piece, size_t n_bytes)
{
    struct total *total = user;
    (void)piece;
    total->n_bytes += n_bytes;
    total->n_pieces++;
    return STATUS_OK;
}

static struct model_pretokenizer compiled(const char *name, bool as_llama_cpp)
{
    struct model_pretokenizer p;
    struct status_why why = {0};
    if (model_pretokenizer_init(&p, (struct base_string){name, strlen(name)}, as_llama_cpp, &why))
        fail_msg("%s", why.text);
    return p;
}

/** How many pieces a text makes. */
static size_t n_pieces(const struct model_pretokenizer *p, const char *text, size_t n_bytes)
{
    struct status_why why = {0};
    struct model_tok_run run = {.why = &why};
    struct total total = {0};
    if (model_pretokenizer_split(p, &run, text, n_bytes, count, &total))
        fail_msg("%s: %s", p->row->name, why.text);
    assert_int_equal(total.n_bytes, n_bytes);
    model_regex_run_free(&run.regex);
    return total.n_pieces;
}

/** Anything quadratic would show here: each run by itself, and before a letter and a digit. */
static void check_runs(const struct model_pretokenizer *p, char *text, size_t capacity)
{
    static const char *const letters[] = {"a",
                                          "A",
                                          "7",
                                          "!",
                                          " ",
                                          "\n",
                                          "\r\n",
                                          " \n",
                                          "aA",
                                          "\xC3\xA9",
                                          "'",
                                          "\t a",
                                          "~",
                                          "\xCC\x81",
                                          "\xE3\x80\x80",
                                          "\xC7\x85",
                                          "\xCA\xB0",
                                          "A'",
                                          "'s",
                                          "Aa1",
                                          "1234\xC2\xB2",
                                          "/\n",
                                          "A\xE6\xBC\xA2",
                                          "\xE6\xBC\xA2"};
    for (size_t k = 0; k < sizeof letters / sizeof *letters; k++) {
        size_t step = strlen(letters[k]), n = 0;
        for (; n + step < capacity; n += step)
            memcpy(text + n, letters[k], step);
        assert_true(n_pieces(p, text, n) > 0);
        text[n] = 'x';
        assert_true(n_pieces(p, text, n + 1) > 0);
        text[n] = '7';
        assert_true(n_pieces(p, text, n + 1) > 0);
    }
}

static void long_runs(void **state)
{
    (void)state;
    enum { N = 1 << 16 };
    char *text = malloc(N);
    assert_non_null(text);
    const struct model_pretokenizer_row *row, *before = NULL;
    for (size_t i = 0; (row = model_pretokenizer_row_at(i)) != NULL; before = row, i++) {
        if (before && !memcmp(before->expressions, row->expressions, sizeof row->expressions))
            continue; /* another name of the same */
        for (int as_llama_cpp = 0; as_llama_cpp < 2; as_llama_cpp++) {
            struct model_pretokenizer p = compiled(row->name, as_llama_cpp);
            check_runs(&p, text, N);
            model_pretokenizer_free(&p);
        }
    }
    free(text);
}

/** PCRE2 by itself gives up after ten million steps; and here quadratic would be hours. */
static void run_beyond_the_limit(void **state)
{
    (void)state;
    enum { N = 12000000 };
    char *text = malloc(N);
    assert_non_null(text);
    memset(text, ' ', N);
    static const char *const names[] = {"llama-bpe", "deepseek-llm", "gpt-4o"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct model_pretokenizer p = compiled(names[i], false);
        text[N - 1] = 'x'; /* a letter takes the last space along */
        assert_int_equal(n_pieces(&p, text, N), 2);
        text[N - 1] = '7';
        assert_in_range(n_pieces(&p, text, N), 2, 3);
        model_pretokenizer_free(&p);
    }
    struct model_pretokenizer p = compiled("jais-2", false);
    assert_in_range(n_pieces(&p, text, N), N / 512, N / 512 + 16);
    model_pretokenizer_free(&p);
    free(text);
}

/** Their published expressions look ahead from each digit to the end of the run. */
static void digits_from_the_right(void **state)
{
    (void)state;
    enum { N = 1000000 };
    char *text = malloc(N + 1);
    assert_non_null(text);
    memset(text, '7', N);
    static const char *const names[] = {"cohere2moe", "afmoe", "superbpe"};
    for (int i = 0; i < 6; i++) {
        struct model_pretokenizer p = compiled(names[i / 2], i % 2);
        text[N] = ' ';
        assert_int_equal(n_pieces(&p, text, N + 1), N / 3 + 2);
        text[N] = 'x';
        assert_int_equal(n_pieces(&p, text, N + 1), N / 3 + 2);
        model_pretokenizer_free(&p);
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_runs),
        cmocka_unit_test(run_beyond_the_limit),
        cmocka_unit_test(digits_from_the_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

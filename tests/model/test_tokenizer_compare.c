/* Whether two tokenizers read texts alike, and the texts that tell them apart. */
#include "tests/harness/cmocka.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"
#include "model/tokenizer/compare/compare.h"
#include "model/tokenizer/declared/nfc.h"
#include "model/tokenizer/pretokenizer.h"
#include "tests/model/vocabulary.h"

enum { MAX_ROWS = 96, MAX_CUTS = 4096 };

/** The pieces of all texts of the set by one pre-tokeniser. */
struct pieces {
    const struct model_pretokenizer_row *row;
    size_t ends[MAX_CUTS], n, at;
    unsigned long long digest;
};

static enum status collect(void *user, const char *piece, size_t n_bytes)
{
    struct pieces *p = user;
    (void)piece;
    assert_true(p->n < MAX_CUTS);
    p->at += n_bytes;
    p->ends[p->n++] = p->at;
    return STATUS_OK;
}

/** What ten thousand texts become by a row: a line of pretokenizer-digests.tsv. */
static unsigned long long digest_of(const char *name, bool as_llama_cpp)
{
    unsigned long long found[2] = {0, 0}, digest;
    char path[512], line[512], names[256];
    snprintf(path, sizeof path, "%s/tests/data/pretokenizer-digests.tsv", ASSAY_SOURCE_DIR);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        assert_int_equal(sscanf(line, "%255s %*u %llx", names, &digest), 2);
        bool theirs = strncmp(names, "llama.cpp:", 10) == 0;
        size_t n = strlen(name);
        for (const char *at = theirs ? names + 10 : names; at; at = strchr(at, ',')) {
            at += *at == ',';
            if (strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == 0))
                found[theirs] = digest;
        }
    }
    fclose(f);
    assert_true(found[0]);
    return as_llama_cpp && found[1] ? found[1] : found[0];
}

static void cut(struct pieces *p, bool as_llama_cpp)
{
    struct status_why why = {0};
    struct model_pretokenizer pre;
    struct model_tok_run run = {.why = &why};
    struct base_string name = {p->row->name, strlen(p->row->name)}, text;
    assert_int_equal(model_pretokenizer_init(&pre, name, as_llama_cpp, &why), STATUS_OK);
    for (size_t i = 0; (text = model_probe(i)).data; i++)
        assert_int_equal(model_pretokenizer_split(&pre, &run, text.data, text.n_bytes, collect, p),
                         STATUS_OK);
    p->digest = digest_of(p->row->name, as_llama_cpp);
    model_tok_run_free(&run);
    model_pretokenizer_free(&pre);
}

/** Every two that cut any of ten thousand texts in other ways do so with the set of texts. */
static void every_pair_is_told_apart(void **state)
{
    (void)state;
    for (int as_llama_cpp = 0; as_llama_cpp < 2; as_llama_cpp++) {
        struct pieces *all = calloc(MAX_ROWS, sizeof *all);
        assert_non_null(all);
        size_t n = 0, n_wrong = 0;
        for (; (all[n].row = model_pretokenizer_row_at(n)); n++) {
            assert_true(n + 1 < MAX_ROWS);
            cut(&all[n], as_llama_cpp);
        }
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < i; k++) {
                bool alike = all[i].n == all[k].n &&
                             !memcmp(all[i].ends, all[k].ends, all[i].n * sizeof *all[i].ends);
                if (alike != (all[i].digest == all[k].digest)) {
                    print_error("%s and %s are %sapart%s\n", all[i].row->name, all[k].row->name,
                                alike ? "not told " : "told ", as_llama_cpp ? " (llama.cpp)" : "");
                    n_wrong++;
                }
            }
        free(all);
        assert_int_equal(n_wrong, 0);
    }
}

/** A normaliser to NFC changes no text of the set. */
static void texts_are_composed(void **state)
{
    (void)state;
    struct model_nfc nfc = {0};
    struct base_buffer out = {0};
    struct base_string text;
    struct status_why why = {0};
    for (size_t i = 0; (text = model_probe(i)).data; i++) {
        out.n = 0;
        assert_int_equal(base_utf8_first_bad(text.data, text.n_bytes), text.n_bytes);
        assert_int_equal(model_nfc_append(&nfc, &out, text, &why), STATUS_OK);
        assert_int_equal(out.n, text.n_bytes);
        assert_memory_equal(out.data, text.data, text.n_bytes);
    }
    base_buffer_free(&out);
    model_nfc_free(&nfc);
}

static struct vocabulary a, b;

static struct model_difference compare(void)
{
    struct status_why why = {0};
    struct opened p = vocabulary_opened(&a), q = vocabulary_opened(&b);
    struct model_difference d;
    if (model_tokenizer_compare(&d, p.tokenizer, q.tokenizer, &why))
        fail_msg("%s", why.text);
    opened_close(&p);
    opened_close(&q);
    assert_int_equal(model_difference_is_none(&d), !*d.key && !*d.text);
    return d;
}

static void expect_same(void)
{
    struct model_difference d = compare();
    assert_string_equal(d.key, "");
    assert_string_equal(d.text, "");
}

static void expect_key(const char *key, const char *first, const char *second)
{
    struct model_difference d = compare();
    assert_string_equal(d.key, key);
    assert_string_equal(d.values[0], first);
    assert_string_equal(d.values[1], second);
}

static void bytes(void)
{
    vocabulary_bpe(&a);
    vocabulary_merge(&a, "1", "2");
    vocabulary_merge(&a, "12", "3");
    vocabulary_add(&a, "<x>", 0, MODEL_TOKEN_CONTROL);
    vocabulary_add(&a, "[PAD259]", 0, MODEL_TOKEN_UNUSED);
    b = a;
}

static void names_of_one_pretokeniser(void **state)
{
    (void)state;
    bytes();
    expect_same();
    b.pre = "olmo";
    expect_same();
    b.pre = "smollm"; /* digit by digit */
    expect_key("tokenizer.ggml.pre", "gpt-2", "smollm");
    struct model_difference d = compare();
    assert_string_equal(d.text, "1234567, 12.5% of $1,000!!!");
    assert_string_equal(d.ids[0], "257 52 53 54 55 44 32 256 ...");
    assert_string_equal(d.ids[1], "49 50 51 52 53 54 55 44 ...");
}

/** llama-bpe takes whole pieces: no difference unless a token is not merged to. */
static void whole_pieces(void **state)
{
    (void)state;
    bytes();
    a.add_bos = b.add_bos = 0;
    a.pre = "llama-bpe";
    b.pre = "smaug-bpe";
    expect_same();
    vocabulary_add(&a, "qqq", 0, MODEL_TOKEN_NORMAL);
    vocabulary_add(&b, "qqq", 0, MODEL_TOKEN_NORMAL);
    expect_key("tokenizer.ggml.pre", "llama-bpe", "smaug-bpe");
    assert_string_equal(compare().text, "qqq");
}

static void types(void **state)
{
    (void)state;
    bytes();
    b.types[258] = MODEL_TOKEN_USER_DEFINED;
    expect_key("tokenizer.ggml.token_type[258]", "3, control: '<x>'", "4, user-defined: '<x>'");
    b.types[258] = MODEL_TOKEN_NORMAL;
    expect_key("tokenizer.ggml.token_type[258]", "3, control: '<x>'", "1, normal: '<x>'");
    b.types[258] = MODEL_TOKEN_UNKNOWN; /* recognised as a control token is */
    b.types[7] = MODEL_TOKEN_UNUSED;    /* and this one as little as a normal one */
    b.types[259] = MODEL_TOKEN_USER_DEFINED;
    expect_same();
}

static void merges(void **state)
{
    (void)state;
    bytes();
    vocabulary_merge(&b, "1", "2"); /* once more */
    expect_same();
    struct base_string first = b.merges[0];
    b = a;
    b.merges[0] = b.merges[1];
    b.merges[1] = first;
    expect_key("tokenizer.ggml.merges[0]", "'1' '2'", "'12' '3'");
    b = a;
    b.n_merges = 1;
    expect_key("tokenizer.ggml.merges[1]", "'12' '3'", "absent");
}

static void scores(void **state)
{
    (void)state;
    vocabulary_spm(&a);
    vocabulary_add(&a, "q", 0, MODEL_TOKEN_NORMAL);
    vocabulary_add(&a, "x", 0, MODEL_TOKEN_NORMAL);
    vocabulary_add(&a, "qx", -1, MODEL_TOKEN_NORMAL);
    vocabulary_add(&a, "xq", -2, MODEL_TOKEN_NORMAL);
    vocabulary_add(&a, "<pad>", 0, MODEL_TOKEN_CONTROL); /* which nothing is merged to */
    b = a;
    b.scores[261] = -3;
    b.scores[262] = -4;
    b.scores[263] = -1000;
    expect_same();
    b.whole_scores = true;
    expect_same();
    b.scores[262] = -2;
    expect_key("tokenizer.ggml.scores", "'qx' above 'xq'", "'qx' below 'xq'");
    b.scores[262] = -3;
    expect_key("tokenizer.ggml.scores", "'qx' above 'xq'", "'qx' equal to 'xq'");
    b = a;
    b.add_space_prefix = 0;
    expect_key("tokenizer.ggml.add_space_prefix", "true", "false");
}

static void kinds(void **state)
{
    (void)state;
    bytes();
    b.model = "gemma4";
    for (int i = 0; i < 256; i++) { /* which has byte tokens */
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", i);
        vocabulary_add(&b, name, 0, MODEL_TOKEN_BYTE);
        vocabulary_add(&a, name, 0, MODEL_TOKEN_BYTE);
    }
    a.add_bos = b.add_bos = 0;
    expect_key("tokenizer.ggml.model", "gpt2", "gemma4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_is_told_apart),
        cmocka_unit_test(texts_are_composed),
        cmocka_unit_test(names_of_one_pretokeniser),
        cmocka_unit_test(whole_pieces),
        cmocka_unit_test(types),
        cmocka_unit_test(merges),
        cmocka_unit_test(scores),
        cmocka_unit_test(kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

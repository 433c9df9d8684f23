/* What a file may say of its tokenizer: defaults, and one sentence for each thing it may not. */
#include "tests/harness/cmocka.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/pretokenizer.h"
#include "tests/harness/gguf_bytes.h"
#include "tests/model/vocabulary.h"

static struct vocabulary v;

static void spm_defaults(void **state)
{
    (void)state;
    vocabulary_spm(&v);
    struct opened o = vocabulary_opened(&v);
    assert_string_equal(model_tokenizer_kind(o.tokenizer), "spm");
    assert_string_equal(model_tokenizer_pre(o.tokenizer), "");
    assert_int_equal(model_n_vocab(o.tokenizer), 259);
    assert_int_equal(model_token_bos(o.tokenizer), 1);
    assert_int_equal(model_token_eos(o.tokenizer), 2);
    assert_int_equal(model_token_unknown(o.tokenizer), 0);
    assert_true(model_adds_bos(o.tokenizer));
    assert_int_equal(model_token_type(o.tokenizer, 3), MODEL_TOKEN_BYTE);
    struct base_string text = model_token_text(o.tokenizer, 1);
    assert_int_equal(text.n_bytes, 3);
    assert_memory_equal(text.data, "<s>", 3);
    opened_close(&o);

    v.bos = 5, v.eos = 6, v.unknown = 7, v.add_bos = 0, v.add_eos = 1;
    v.n_types = 0; /* no types: all normal */
    o = vocabulary_opened(&v);
    assert_int_equal(model_token_bos(o.tokenizer), 5);
    assert_int_equal(model_token_eos(o.tokenizer), 6);
    assert_int_equal(model_token_unknown(o.tokenizer), 7);
    assert_false(model_adds_bos(o.tokenizer));
    assert_int_equal(model_token_type(o.tokenizer, 1), MODEL_TOKEN_NORMAL);
    opened_expect(&o, "<s>", 3, true,
                  (const int32_t[]){3 + 0xE2, 3 + 0x96, 3 + 0x81, 3 + '<', 3 + 's', 3 + '>'}, 6);
    opened_close(&o);
}

/** A file with this name, or without one: texts begin with BOS as the list says, or the file. */
static void expect_defaults(const char *pre, bool add_bos)
{
    vocabulary_bpe(&v);
    v.pre = pre;
    v.bos = 9;
    struct opened o = vocabulary_opened(&v);
    assert_string_equal(model_tokenizer_kind(o.tokenizer), "bpe");
    assert_string_equal(model_tokenizer_pre(o.tokenizer), pre ? pre : "default");
    assert_int_equal(model_adds_bos(o.tokenizer), add_bos);
    assert_int_equal(model_token_bos(o.tokenizer), 9);
    assert_int_equal(model_token_eos(o.tokenizer), -1);
    assert_int_equal(model_token_unknown(o.tokenizer), -1);
    opened_close(&o);
    v.add_bos = !add_bos;
    o = vocabulary_opened(&v);
    assert_int_equal(model_adds_bos(o.tokenizer), !add_bos);
    opened_close(&o);
}

static void bpe_defaults(void **state)
{
    (void)state;
    static const char begin_with_bos[] =
        " llama-bpe llama3 llama-v3 falcon3 pixtral falcon-h1 lfm2 midm-2.0 jina-v5-nano tekken "
        "deepseek-r1-qwen chameleon ";
    const struct model_pretokenizer_row *row;
    expect_defaults(NULL, false);
    for (size_t i = 0; (row = model_pretokenizer_row_at(i)); i++) {
        char name[64];
        snprintf(name, sizeof name, " %s ", row->name);
        expect_defaults(row->name, strstr(begin_with_bos, name));
    }
}

static void pre_override(void **state)
{
    (void)state;
    vocabulary_bpe(&v);
    v.pre = "unheard-of";
    struct opened o;
    struct status_why why = {0};
    assert_int_equal(vocabulary_open(&o, &v, "qwen2", &why), STATUS_OK);
    assert_string_equal(model_tokenizer_pre(o.tokenizer), "qwen2");
    opened_close(&o);
}

/** Tokens of no bytes are harmless: they are never met in a text, and there may be several. */
static void empty_tokens(void **state)
{
    (void)state;
    vocabulary_spm(&v);
    v.add_space_prefix = 0;
    vocabulary_add(&v, "", 0, MODEL_TOKEN_USER_DEFINED);
    int32_t last = vocabulary_add(&v, "", 0, MODEL_TOKEN_NORMAL);
    struct opened o = vocabulary_opened(&v);
    opened_expect(&o, "a", 1, true, (const int32_t[]){3 + 'a'}, 1);
    assert_int_equal(model_token_bytes(o.tokenizer, last, NULL, 0), 0);
    opened_close(&o);
}

/** Opening must fail with this code and a sentence with these parts, on one line. */
static void refused(enum status code, const char *pre, const char *part, const char *more)
{
    struct opened o;
    struct status_why why = {0};
    enum status st = vocabulary_open(&o, &v, pre, &why);
    assert_null(o.tokenizer);
    if (st != code || !strstr(why.text, part) || !strstr(why.text, more) ||
        !strstr(why.text, "vocabulary") || strchr(why.text, '\n'))
        fail_msg("%s: \"%s\"; expected %s, with \"%s\" and \"%s\"", status_name(st), why.text,
                 status_name(code), part, more);
    opened_close(&o);
}

static void refused_keys(void **state)
{
    (void)state;
    vocabulary_spm(&v);
    v.model = NULL;
    refused(STATUS_FORMAT, NULL, "tokenizer.ggml.model", "missing");
    v.model = "t5\n";
    refused(STATUS_UNSUPPORTED, NULL, "tokenizer.ggml.model", "gpt2");
    vocabulary_spm(&v);
    v.n_tokens = 0;
    refused(STATUS_FORMAT, NULL, "tokenizer.ggml.tokens", "missing");
    vocabulary_spm(&v);
    v.n_scores--;
    refused(STATUS_FORMAT, NULL, "tokenizer.ggml.scores has 258", "expected 259");
    v.n_scores = 0;
    refused(STATUS_FORMAT, NULL, "tokenizer.ggml.scores", "missing");
    vocabulary_spm(&v);
    v.n_types--;
    refused(STATUS_FORMAT, NULL, "tokenizer.ggml.token_type has 258", "expected 259");
    vocabulary_spm(&v);
    v.types[7] = 9;
    refused(STATUS_FORMAT, NULL, "entry 7 is 9", "1 to 6");
    vocabulary_spm(&v);
    v.scores[8] = NAN;
    refused(STATUS_FORMAT, NULL, "tokenizer.ggml.scores", "entry 8");
    vocabulary_spm(&v);
    v.tokens[20] = v.tokens[10];
    refused(STATUS_FORMAT, NULL, "tokenizer.ggml.tokens", "10 and 20");
    vocabulary_spm(&v);
    v.bos = 259;
    refused(STATUS_FORMAT, NULL, "bos_token_id is 259", "below 259");
    vocabulary_spm(&v);
    v.unknown = 1 << 30;
    refused(STATUS_FORMAT, NULL, "unknown_token_id is", "below 259");
    vocabulary_spm(&v);
    refused(STATUS_USAGE, "qwen2", "qwen2", "SentencePiece");
}

static void refused_bpe_keys(void **state)
{
    (void)state;
    vocabulary_bpe(&v);
    v.pre = "unheard-of";
    refused(STATUS_UNSUPPORTED, NULL, "unheard-of", "gpt-2, llama-bpe");
    v.pre = "gpt-2";
    refused(STATUS_UNSUPPORTED, "other", "other", "deepseek-coder");
    v.add_bos = 1;
    refused(STATUS_FORMAT, NULL, "bos_token_id", "missing");
    v.add_bos = 0;
    v.add_eos = 1;
    refused(STATUS_FORMAT, NULL, "eos_token_id", "missing");
    vocabulary_bpe(&v);
    v.has_merges = false;
    refused(STATUS_FORMAT, NULL, "tokenizer.ggml.merges", "missing");

    static const struct {
        const char *merge, *part;
    } rows[] = {
        {"ab", "expected two tokens"}, {"a ", "expected two tokens"}, {" b", "expected two tokens"},
        {"", "expected two tokens"},   {" ", "expected two tokens"},  {"q! b", "left half"},
        {"a q!", "right half"},        {"a c", "what they make"},     {"a b c", "right half"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        vocabulary_bpe(&v);
        vocabulary_merge(&v, "a", "b");
        v.merges[v.n_merges++] = (struct base_string){rows[i].merge, strlen(rows[i].merge)};
        refused(STATUS_FORMAT, NULL, "tokenizer.ggml.merges: entry 1 is", rows[i].part);
    }
}

/** Keys of the right name and the wrong type. */
static void refused_types(void **state)
{
    (void)state;
    static const char *const keys[] = {
        "tokenizer.ggml.model",      "tokenizer.ggml.tokens",       "tokenizer.ggml.scores",
        "tokenizer.ggml.token_type", "tokenizer.ggml.bos_token_id", "tokenizer.ggml.add_bos_token",
        "tokenizer.ggml.merges",     "tokenizer.ggml.pre"};
    for (size_t i = 0; i < 2 * sizeof keys / sizeof *keys; i++) {
        const char *key = keys[i / 2];
        vocabulary_bpe(&v);
        struct gguf_writer *w;
        struct status_why why = {0};
        assert_int_equal(gguf_writer_new(&w, &why), STATUS_OK);
        const float wrong[2] = {1, 2};
        if (i % 2)
            gguf_writer_f32(w, key, 1);
        else
            gguf_writer_f32s(w, key, wrong, 2);
        if (strcmp(key, "tokenizer.ggml.model") != 0)
            gguf_writer_string(w, "tokenizer.ggml.model",
                               strcmp(key, "tokenizer.ggml.scores") ? "gpt2" : "llama");
        if (strcmp(key, "tokenizer.ggml.tokens") != 0)
            gguf_writer_strings(w, "tokenizer.ggml.tokens", v.tokens,
                                strcmp(key, "tokenizer.ggml.scores") ? 2 : 1);
        void *data;
        size_t n_bytes;
        struct gguf_file *file;
        struct model_tokenizer *t;
        assert_int_equal(gguf_writer_finish_memory(w, &data, &n_bytes, &why), STATUS_OK);
        assert_int_equal(gguf_bytes_open(&file, data, n_bytes, "x", &why), STATUS_OK);
        enum status st = model_tokenizer_open(&t, file, NULL, false, &why);
        if (st != STATUS_FORMAT || t || !strstr(why.text, key))
            fail_msg("%s: %s", key, why.text);
        gguf_close(file);
        free(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spm_defaults),  cmocka_unit_test(bpe_defaults),
        cmocka_unit_test(pre_override),  cmocka_unit_test(empty_tokens),
        cmocka_unit_test(refused_keys),  cmocka_unit_test(refused_bpe_keys),
        cmocka_unit_test(refused_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

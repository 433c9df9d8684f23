/* Special tokens in raw text: which are seen, in which order, and what they leave over. */
#include "tests/harness/cmocka.h"
#include <stdlib.h>
#include <string.h>

#include "tests/harness/rng.h"
#include "tests/model/vocabulary.h"

#define EXPECT(o, literal, parse, ...)                                                             \
    opened_expect(&(o), literal, sizeof(literal) - 1, parse, (const int32_t[]){__VA_ARGS__},       \
                  sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

static struct vocabulary v;

static int32_t user(const char *text)
{
    return vocabulary_add(&v, text, 0, MODEL_TOKEN_USER_DEFINED);
}

static void longest_first(void **state)
{
    (void)state;
    vocabulary_bpe(&v);
    int32_t abc = user("abc"), bcdef = user("bcdef"), de = user("de");
    struct opened o = vocabulary_opened(&v);
    EXPECT(o, "abcd", true, abc, 'd');
    EXPECT(o, "abcdef", true, 'a', bcdef); /* the longer one wins though it begins later */
    EXPECT(o, "abcdex", true, abc, de, 'x');
    EXPECT(o, "bcdebcdef", true, 'b', 'c', de, bcdef);
    EXPECT(o, "abcabcdef", true, abc, 'a', bcdef);
    opened_close(&o);
}

static void runs(void **state)
{
    (void)state;
    vocabulary_bpe(&v);
    int32_t n1 = user("\n"), n3 = user("\n\n\n"), n2 = user("\n\n");
    struct opened o = vocabulary_opened(&v);
    EXPECT(o, "\n\n\n\n\n\n\n\n", true, n3, n3, n2);
    EXPECT(o, "a\n\n\n\nb", true, 'a', n3, n1, 'b');
    opened_close(&o);
}

/** A run in which every place is the end of two tokens: the worst case of overlap. */
static void huge_run(void **state)
{
    (void)state;
    enum { N = 1 << 19 };
    vocabulary_bpe(&v);
    char word[32];
    memset(word, '\n', sizeof word);
    for (size_t n = 1; n < sizeof word; n++)
        vocabulary_add_bytes(&v, word, n, 0, MODEL_TOKEN_USER_DEFINED);
    struct opened o = vocabulary_opened(&v);
    char *text = malloc(N);
    assert_non_null(text);
    memset(text, '\n', N);
    struct model_tokens ids = opened_encode(&o, text, N, false);
    assert_int_equal(ids.n, N / 31 + 1);
    for (size_t i = 0; i < ids.n; i++)
        assert_int_equal(ids.ids[i], 255 + (i + 1 < ids.n ? 31 : N % 31));
    free(ids.ids);
    free(text);
    opened_close(&o);
}

static void types_and_names(void **state)
{
    (void)state;
    vocabulary_bpe(&v);
    int32_t control = vocabulary_add(&v, "[c]", 0, MODEL_TOKEN_CONTROL);
    int32_t unknown = vocabulary_add(&v, "[k]", 0, MODEL_TOKEN_UNKNOWN);
    int32_t plain = user("[u]");
    vocabulary_add(&v, "[n]", 0, MODEL_TOKEN_NORMAL);
    int32_t end = user("</s>"), im_end = user("<|im_end|>"), turn = user("<end_of_turn>");
    int32_t eot = vocabulary_add(&v, "<|eot_id|>", 0, MODEL_TOKEN_NORMAL);
    int32_t sentence = user("<\xEF\xBD\x9C"
                            "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>");
    int32_t channel = vocabulary_add(&v, "<|channel|>", 0, MODEL_TOKEN_CONTROL);
    struct opened o = vocabulary_opened(&v);
    EXPECT(o, "[c][k][u]", true, control, unknown, plain);
    EXPECT(o, "[c][u]", false, '[', 'c', ']', plain);
    EXPECT(o, "[k]", false, '[', 'k', ']');
    EXPECT(o, "[n]", true, '[', 'n', ']');
    /* A name that ends a turn makes a control token, whatever its type. */
    EXPECT(o, "</s><|im_end|><end_of_turn><|eot_id|>", true, end, im_end, turn, eot);
    EXPECT(o, "<|im_end|>", false, '<', '|', 'i', 'm', '_', 'e', 'n', 'd', '|', '>');
    EXPECT(o, "</s>", false, end); /* a tag of HTML in Gemma's vocabulary */
    struct base_string s = v.tokens[sentence];
    opened_expect(&o, s.data, s.n_bytes, true, &sentence, 1);
    struct model_tokens ids = opened_encode(&o, s.data, s.n_bytes, false);
    assert_int_equal(ids.n, s.n_bytes);
    free(ids.ids);
    EXPECT(o, "<|channel|>", false, channel);
    assert_int_equal(model_token_type(o.tokenizer, end), MODEL_TOKEN_USER_DEFINED); /* as stored */
    opened_close(&o);
    v.llama_compat = true;
    o = vocabulary_opened(&v);
    EXPECT(o, "</s>", false, '<', '/', 's', '>');
    opened_close(&o);
    v.llama_compat = false;
    v.eos = end;
    o = vocabulary_opened(&v);
    EXPECT(o, "</s>", false, '<', '/', 's', '>');
    opened_close(&o);
}

static void phi_3_eats_space(void **state)
{
    (void)state;
    vocabulary_spm(&v);
    v.name = "My Phi-3 mini";
    v.add_space_prefix = 0;
    int32_t a = vocabulary_add(&v, "a", 0, MODEL_TOKEN_NORMAL);
    int32_t end = vocabulary_add(&v, "<|end|>", 0, MODEL_TOKEN_CONTROL);
    struct opened o = vocabulary_opened(&v);
    EXPECT(o, "a<|end|> \n\t a", true, a, end, a);
    EXPECT(o, "<|end|>  <|end|>", true, end, end);
    EXPECT(o, "<|end|>  ", true, end);
    EXPECT(o, "<s>\na", true, 1, 3 + '\n', a); /* <s> does not */
    opened_close(&o);
    v.name = "another";
    o = vocabulary_opened(&v);
    EXPECT(o, "<|end|>\na", true, end, 3 + '\n', a);
    opened_close(&o);
}

/* ---- the oracle: the rule as it is stated, a pass over the text for each length ---- */

enum { TEXT_LIMIT = 200 };

static size_t oracle(const char *text, size_t n, int32_t *ids)
{
    int32_t at[TEXT_LIMIT]; /* the token that begins here, or -1 */
    bool taken[TEXT_LIMIT] = {false};
    memset(at, -1, sizeof at);
    for (size_t length = 16; length > 0; length--)
        for (size_t i = 0; i + length <= n; i++) {
            int32_t id = vocabulary_find(&v, text + i, length);
            bool free_here = id >= 256;
            for (size_t k = i; free_here && k < i + length; k++)
                free_here = !taken[k];
            if (!free_here)
                continue;
            at[i] = id;
            memset(taken + i, true, length);
        }
    size_t n_ids = 0;
    for (size_t i = 0; i < n; i += at[i] >= 0 ? v.tokens[at[i]].n_bytes : 1)
        ids[n_ids++] = at[i] >= 0 ? at[i] : (uint8_t)text[i];
    return n_ids;
}

static void oracle_agrees(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 4);
    for (size_t round = 0; round < 100; round++) {
        vocabulary_bpe(&v);
        size_t n_letters = 1 + rng_below(&r, 3);
        for (size_t k = 1 + rng_below(&r, 10); k > 0; k--) {
            char token[8];
            size_t n = 1 + rng_below(&r, sizeof token);
            for (size_t i = 0; i < n; i++)
                token[i] = (char)('a' + rng_below(&r, n_letters));
            if (n > 1 && vocabulary_find(&v, token, n) < 0)
                vocabulary_add_bytes(&v, token, n, 0, MODEL_TOKEN_USER_DEFINED);
        }
        struct opened o = vocabulary_opened(&v);
        for (size_t k = 0; k < 20; k++) {
            char text[TEXT_LIMIT];
            int32_t expected[TEXT_LIMIT];
            size_t n = rng_below(&r, TEXT_LIMIT);
            for (size_t i = 0; i < n; i++)
                text[i] = rng_below(&r, 12) ? (char)('a' + rng_below(&r, n_letters)) : 'x';
            size_t n_expected = oracle(text, n, expected);
            opened_expect(&o, text, n, false, expected, n_expected);
        }
        opened_close(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(longest_first),    cmocka_unit_test(runs),
        cmocka_unit_test(huge_run),         cmocka_unit_test(types_and_names),
        cmocka_unit_test(phi_3_eats_space), cmocka_unit_test(oracle_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

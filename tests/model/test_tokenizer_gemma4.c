/* gemma4: BPE of characters, on vocabularies made here; a brute-force merge is the oracle. */
#include "tests/harness/cmocka.h"
#include <stdlib.h>
#include <string.h>

#include "tests/harness/rng.h"
#include "tests/model/vocabulary.h"

#define SP "\xE2\x96\x81" /* U+2581 */

#define EXPECT(o, literal, ...)                                                                    \
    opened_expect(&(o), literal, sizeof(literal) - 1, true, (const int32_t[]){__VA_ARGS__},        \
                  sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

static struct vocabulary v;

static int32_t byte_token(unsigned byte)
{
    return 3 + (int32_t)byte;
}

static int32_t normal(const char *text)
{
    return vocabulary_add(&v, text, 0, MODEL_TOKEN_NORMAL);
}

/** <unk>, <s>, </s>, the 256 byte tokens, merges; neither scores nor a pre-tokeniser. */
static void vocabulary_gemma4(void)
{
    vocabulary_spm(&v);
    v.model = "gemma4";
    v.has_merges = true;
    v.bos = 1;
}

static struct opened opened(void)
{
    v.n_scores = 0;
    return vocabulary_opened(&v);
}

static void merges_decide(void **state)
{
    (void)state;
    vocabulary_gemma4();
    int32_t a = normal("a"), b = normal("b"), c = normal("c");
    int32_t bc = vocabulary_merge(&v, "b", "c"), ab = vocabulary_merge(&v, "a", "b");
    normal("ca"); /* no merge makes it */
    int32_t abc = vocabulary_merge(&v, "a", "bc");
    vocabulary_merge(&v, "ab", "ab");
    struct opened o = opened();
    EXPECT(o, "ab", ab);
    EXPECT(o, "abc", abc);
    EXPECT(o, "ba", b, a);
    EXPECT(o, "ca", c, a);
    EXPECT(o, "bcbc", bc, bc);
    EXPECT(o, "aab", a, ab);
    EXPECT(o, "abcab", abc, ab);
    EXPECT(o, "abab", vocabulary_find(&v, "abab", 4));
    opened_close(&o);
}

static void spaces_and_lines(void **state)
{
    (void)state;
    vocabulary_gemma4();
    v.add_space_prefix = 1; /* not read */
    int32_t s = normal(SP), a = normal("a"), n = normal("\n");
    int32_t sa = vocabulary_merge(&v, SP, "a"), ss = vocabulary_merge(&v, SP, SP);
    int32_t nn = vocabulary_merge(&v, "\n", "\n");
    struct opened o = opened();
    EXPECT(o, "a", a);
    EXPECT(o, " a", sa);
    EXPECT(o, "a a", a, sa);
    EXPECT(o, "a   a ", a, ss, sa, s); /* (space, a) comes first */
    EXPECT(o, SP "a", sa);
    EXPECT(o, "\n\n\na\n a", nn, n, a, n, sa);
    opened_close(&o);

    /* Tokens may reach over a space, and over a line's end. */
    int32_t as = vocabulary_merge(&v, "a", SP), na = vocabulary_merge(&v, "\n", "a");
    o = opened();
    EXPECT(o, "a \na", as, na);
    opened_close(&o);
}

static void bytes_where_no_token(void **state)
{
    (void)state;
    vocabulary_gemma4();
    int32_t a = normal("a");
    struct opened o = opened();
    EXPECT(o, "a\xE2\x82\xAC", a, byte_token(0xE2), byte_token(0x82), byte_token(0xAC));
    EXPECT(o, " ", byte_token(0xE2), byte_token(0x96), byte_token(0x81));
    EXPECT(o, "\0", byte_token(0));
    /* Each bad byte is U+FFFD. */
    EXPECT(o,
           "\xFF"
           "a",
           byte_token(0xEF), byte_token(0xBF), byte_token(0xBD), a);
    int32_t bad = normal("\xEF\xBF\xBD");
    opened_close(&o);
    o = opened();
    EXPECT(o, "a\xE2\x82", a, bad, bad);
    EXPECT(o, "\xC3 a", bad, byte_token(0xE2), byte_token(0x96), byte_token(0x81), a);
    opened_close(&o);

    vocabulary_gemma4(); /* without byte tokens: one unknown token for the character */
    v.n_tokens = v.n_types = 3;
    v.unknown = 0;
    a = normal("a");
    o = opened();
    EXPECT(o, "a\xE2\x82\xAC", a, 0);
    opened_close(&o);
}

/** sarvam-moe: the same of a vocabulary called gpt2, but merges stay within a line. */
static void cut_by_a_pretokenizer(void **state)
{
    (void)state;
    vocabulary_gemma4();
    int32_t a = normal("a"), line_end = normal("\n"), space = normal(SP);
    int32_t spa = vocabulary_merge(&v, SP, "a"), lines = vocabulary_merge(&v, "\n", "\n");
    int32_t joined = vocabulary_merge(&v, "a", "\n");
    struct opened o = opened();
    EXPECT(o, "a\na a\n\n", joined, a, spa, lines);
    opened_close(&o);
    v.model = "gpt2";
    v.pre = "sarvam-moe";
    o = opened();
    EXPECT(o, "a\na a\n\n", a, line_end, a, spa, lines);
    EXPECT(o, "a  a\xFF", a, space, spa, byte_token(0xEF), byte_token(0xBF), byte_token(0xBD));
    assert_string_equal(model_tokenizer_pre(o.tokenizer), "sarvam-moe");
    assert_false(model_adds_bos(o.tokenizer));
    opened_close(&o);
}

static void special_tokens(void **state)
{
    (void)state;
    vocabulary_gemma4();
    int32_t a = normal("a"), s = normal(SP);
    int32_t user = vocabulary_add(&v, "  ", 0, MODEL_TOKEN_USER_DEFINED);
    struct opened o = opened();
    EXPECT(o, "a<s> a  ", a, 1, s, a, user);
    char bytes[4];
    assert_int_equal(model_token_bytes(o.tokenizer, s, bytes, 4), 1);
    assert_int_equal(bytes[0], ' ');
    assert_int_equal(model_token_bytes(o.tokenizer, byte_token(0xFE), bytes, 4), 1);
    opened_close(&o);
}

static void keys(void **state)
{
    (void)state;
    vocabulary_gemma4();
    struct opened o = opened();
    assert_string_equal(model_tokenizer_kind(o.tokenizer), "bpe");
    assert_string_equal(model_tokenizer_pre(o.tokenizer), "gemma4");
    assert_true(model_adds_bos(o.tokenizer));
    assert_int_equal(model_token_eos(o.tokenizer), -1);
    opened_close(&o);
    v.add_bos = 0;
    o = opened();
    assert_false(model_adds_bos(o.tokenizer));
    opened_close(&o);

    static const struct {
        int bos;
        bool has_merges;
        const char *merge, *pre;
        enum status code;
        const char *part;
    } rows[] = {
        {VOCABULARY_ABSENT, true, NULL, NULL, STATUS_FORMAT, "bos_token_id is missing"},
        {1, false, NULL, NULL, STATUS_FORMAT, "key tokenizer.ggml.merges is missing"},
        {1, true, "a", NULL, STATUS_FORMAT, "merges: entry 0 is 'a'; expected two tokens"},
        {1, true, "a b", NULL, STATUS_FORMAT, "merges: entry 0 is 'a b': its left half"},
        {1, true, NULL, "qwen2", STATUS_USAGE, "this vocabulary is gemma4, which has none"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        vocabulary_gemma4();
        v.bos = rows[i].bos;
        v.has_merges = rows[i].has_merges;
        if (rows[i].merge)
            v.merges[v.n_merges++] = (struct base_string){rows[i].merge, strlen(rows[i].merge)};
        struct status_why why = {0};
        enum status status = vocabulary_open(&o, &v, rows[i].pre, &why);
        if (status != rows[i].code || !strstr(why.text, rows[i].part))
            fail_msg("%s; expected: %s", why.text, rows[i].part);
        opened_close(&o);
    }
}

/* ---- the oracle: quadratic, from the definition, over the whole text at once ---- */

enum { TEXT_LIMIT = 256 };

static const char *const alphabet[] = {"a", "b", SP, "\xC3\xA9", "\n"};

static size_t rank_of(const char *left, size_t n_left, const char *right, size_t n_right)
{
    for (size_t i = 0; i < v.n_merges; i++)
        if (v.merges[i].n_bytes == n_left + 1 + n_right && v.merges[i].data[n_left] == ' ' &&
            memcmp(v.merges[i].data, left, n_left) == 0 &&
            memcmp(v.merges[i].data + n_left + 1, right, n_right) == 0)
            return i;
    return v.n_merges;
}

static size_t oracle(const char *text, const size_t *begin, size_t n, int32_t *ids)
{
    size_t at[TEXT_LIMIT]; /* where each symbol begins, and the end */
    memcpy(at, begin, (n + 1) * sizeof *at);
    for (;;) {
        size_t best = n, lowest = v.n_merges;
        for (size_t i = 0; i + 1 < n; i++) {
            size_t rank =
                rank_of(text + at[i], at[i + 1] - at[i], text + at[i + 1], at[i + 2] - at[i + 1]);
            if (rank < lowest) {
                lowest = rank;
                best = i;
            }
        }
        if (best == n)
            break;
        memmove(at + best + 1, at + best + 2, (n - best - 1) * sizeof *at);
        n--;
    }
    size_t n_ids = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t id = vocabulary_find(&v, text + at[i], at[i + 1] - at[i]);
        if (id >= 0)
            ids[n_ids++] = id;
        for (size_t k = at[i]; id < 0 && k < at[i + 1]; k++)
            ids[n_ids++] = byte_token((uint8_t)text[k]);
    }
    return n_ids;
}

static void random_vocabulary(struct rng *r)
{
    vocabulary_gemma4();
    size_t first = v.n_tokens, n_letters = 3 + rng_below(r, 3); /* not all need be tokens */
    for (size_t i = 0; i < n_letters; i++)
        normal(alphabet[i]);
    for (size_t k = 0; k < 30; k++) {
        char half[2][64];
        size_t n = 0;
        for (size_t h = 0; h < 2; h++) {
            struct base_string t = v.tokens[first + rng_below(r, v.n_tokens - first)];
            n += t.n_bytes;
            memcpy(half[h], t.data, t.n_bytes);
            half[h][t.n_bytes] = 0;
        }
        if (n < 24)
            vocabulary_merge(&v, half[0], half[1]);
    }
}

static void oracle_agrees(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 1);
    for (size_t round = 0; round < 300; round++) {
        random_vocabulary(&r);
        struct opened o = opened();
        for (size_t k = 0; k < 20; k++) {
            char raw[TEXT_LIMIT], escaped[TEXT_LIMIT];
            size_t begin[TEXT_LIMIT], n_raw = 0, n_bytes = 0, n = 1 + rng_below(&r, 60);
            for (size_t i = 0; i < n; i++) {
                const char *letter = alphabet[rng_below(&r, sizeof alphabet / sizeof *alphabet)];
                const char *as = strcmp(letter, SP) == 0 && rng_below(&r, 8) > 0 ? " " : letter;
                begin[i] = n_bytes;
                memcpy(escaped + n_bytes, letter, strlen(letter));
                memcpy(raw + n_raw, as, strlen(as));
                n_bytes += strlen(letter);
                n_raw += strlen(as);
            }
            begin[n] = n_bytes;
            int32_t expected[TEXT_LIMIT];
            size_t n_expected = oracle(escaped, begin, n, expected);
            opened_expect(&o, raw, n_raw, true, expected, n_expected);
        }
        opened_close(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_decide),        cmocka_unit_test(spaces_and_lines),
        cmocka_unit_test(bytes_where_no_token), cmocka_unit_test(cut_by_a_pretokenizer),
        cmocka_unit_test(special_tokens),       cmocka_unit_test(keys),
        cmocka_unit_test(oracle_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

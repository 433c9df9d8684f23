/* Byte-level BPE on vocabularies made here: each rule, and a brute-force merge as oracle. */
#include "tests/harness/cmocka.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/cache.h"
#include "tests/harness/rng.h"
#include "tests/model/vocabulary.h"

#define SP "\xC4\xA0" /* U+0120, the stand-in of a space */

#define EXPECT(o, literal, ...)                                                                    \
    opened_expect(&(o), literal, sizeof(literal) - 1, true, (const int32_t[]){__VA_ARGS__},        \
                  sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

static struct vocabulary v;

static void ranks_decide(void **state)
{
    (void)state;
    vocabulary_bpe(&v);
    int32_t bc = vocabulary_merge(&v, "b", "c"), ab = vocabulary_merge(&v, "a", "b");
    int32_t abc = vocabulary_merge(&v, "a", "bc"), aa = vocabulary_merge(&v, "a", "a");
    vocabulary_merge(&v, "b", "c"); /* again, of no effect */
    struct opened o = vocabulary_opened(&v);
    EXPECT(o, "ab", ab);
    EXPECT(o, "abc", abc);
    EXPECT(o, "aab", 'a', ab);
    EXPECT(o, "aaa", aa, 'a');
    EXPECT(o, "aaaaabc", aa, aa, abc);
    EXPECT(o, "bcb", bc, 'b');
    opened_close(&o);
}

/** A token may be made by several pairs, and only its own pairs make it. */
static void pairs_not_strings(void **state)
{
    (void)state;
    vocabulary_bpe(&v);
    int32_t ab = vocabulary_merge(&v, "a", "b");
    vocabulary_merge(&v, "b", "c");
    vocabulary_merge(&v, "a", "bc"); /* never met: a+b comes first */
    int32_t xbc = vocabulary_merge(&v, "x", "bc");
    struct opened o = vocabulary_opened(&v);
    EXPECT(o, "abc", ab, 'c');
    EXPECT(o, "xbc", xbc);
    opened_close(&o);
}

static void pieces_bound_merges(void **state)
{
    (void)state;
    vocabulary_bpe(&v);
    int32_t spa = vocabulary_merge(&v, SP, "a");
    vocabulary_merge(&v, "a", SP);
    int32_t ss = vocabulary_merge(&v, SP, SP);
    vocabulary_merge(&v, "a", "1");
    struct opened o = vocabulary_opened(&v);
    EXPECT(o, "a a", 'a', spa);
    EXPECT(o, "a   a", 'a', ss, spa);
    EXPECT(o, "a1", 'a', '1');
    EXPECT(o, "a\n\na", 'a', '\n', '\n', 'a');
    opened_close(&o);
}

static void whole_pieces(void **state)
{
    (void)state;
    vocabulary_bpe(&v);
    int32_t ab = vocabulary_merge(&v, "a", "b");
    int32_t word = vocabulary_add(&v, SP "abc", 0, MODEL_TOKEN_NORMAL); /* no merge makes it */
    struct opened o = vocabulary_opened(&v);
    EXPECT(o, " abc", ' ', ab, 'c');
    opened_close(&o);
    v.pre = "smaug-bpe"; /* llama-bpe's expression without its ignore_merges */
    o = vocabulary_opened(&v);
    EXPECT(o, " abc", ' ', ab, 'c');
    opened_close(&o);
    v.bos = 0;
    v.pre = "llama-bpe";
    o = vocabulary_opened(&v);
    EXPECT(o, " abc", word);
    EXPECT(o, "abc", ab, 'c');
    EXPECT(o, " abc abcd", word, ' ', ab, 'c', 'd');
    opened_close(&o);
}

/** A merge across two letters that only llama.cpp leaves in one piece: small zhe, capital zhe. */
static void case_of_all_alphabets(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt-4o", "llama4", "minimax-m2", "tekken"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        vocabulary_bpe(&v);
        v.pre = names[i];
        v.bos = 0;
        int32_t joined = vocabulary_merge(&v, "\xC2\xB6", "\xC3\x90"); /* stand-ins of B6, D0 */
        struct opened o = vocabulary_opened(&v);
        EXPECT(o, "\xD0\xB6\xD0\x96", 0xD0, 0xB6, 0xD0, 0x96);
        opened_close(&o);
        v.llama_compat = true;
        o = vocabulary_opened(&v);
        EXPECT(o, "\xD0\xB6\xD0\x96", 0xD0, joined, 0x96);
        opened_close(&o);
    }
}

static void all_bytes(void **state)
{
    (void)state;
    vocabulary_bpe(&v);
    struct opened o = vocabulary_opened(&v);
    /* Every byte that can stand in well-formed text, as part of such a text. */
    for (uint32_t cp = 1; cp < 0x110000; cp += cp < 0x900 ? 1 : 0x3FF) {
        if (cp >= 0xD800 && cp < 0xE000)
            continue;
        char text[4];
        size_t n = 1;
        if (cp < 0x80) {
            text[0] = (char)cp;
        } else {
            n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
            for (size_t i = 0; i < n; i++)
                text[i] = (char)(0x80 | (cp >> 6 * (n - 1 - i) & 0x3F));
            text[0] = (char)((0xF00 >> n & 0xFF) | cp >> 6 * (n - 1));
        }
        int32_t expected[4];
        for (size_t i = 0; i < n; i++)
            expected[i] = (uint8_t)text[i];
        opened_expect(&o, text, n, true, expected, n);
    }
    for (int32_t b = 0; b < 256; b++) {
        char byte = 0;
        assert_int_equal(model_token_bytes(o.tokenizer, b, &byte, 1), 1);
        assert_int_equal((uint8_t)byte, b);
    }
    opened_close(&o);
}

static void invalid_utf8(void **state)
{
    (void)state;
    vocabulary_bpe(&v);
    struct opened o = vocabulary_opened(&v);
    const int32_t bad[] = {0xEF, 0xBF, 0xBD};
    static const struct {
        const char *text;
        size_t n_bytes, n_bad; /* that many U+FFFD, nothing else */
    } rows[] = {
        {"\x80", 1, 1}, /* stray continuation */
        {"\xC3", 1, 1}, /* cut off */
        {"\xE2\x82", 2, 2},
        {"\xF0\x9F\x98", 3, 3},
        {"\xC0\x80", 2, 2}, /* overlong */
        {"\xE0\x9F\xBF", 3, 3},
        {"\xF0\x8F\xBF\xBF", 4, 4},
        {"\xED\xA0\x80", 3, 3},     /* surrogate */
        {"\xF4\x90\x80\x80", 4, 4}, /* above U+10FFFF */
        {"\xF8\x88\x80\x80", 4, 4},
        {"\xF9\x90\x80\x80", 4, 4},
        {"\xFD\x90\x80\x80", 4, 4},
        {"\xFF\xFE", 2, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int32_t expected[12];
        for (size_t k = 0; k < rows[i].n_bad; k++)
            memcpy(expected + 3 * k, bad, sizeof bad);
        opened_expect(&o, rows[i].text, rows[i].n_bytes, true, expected, 3 * rows[i].n_bad);
    }
    EXPECT(o,
           "a\xE2\x82"
           "b\xC3\xA9",
           'a', 0xEF, 0xBF, 0xBD, 0xEF, 0xBF, 0xBD, 'b', 0xC3, 0xA9);
    EXPECT(o, "\0a\0", 0, 'a', 0);
    opened_expect(&o, "", 0, true, NULL, 0);
    opened_close(&o);
}

static void special_tokens(void **state)
{
    (void)state;
    vocabulary_bpe(&v);
    int32_t control = vocabulary_add(&v, "<c>", 0, MODEL_TOKEN_CONTROL);
    int32_t user = vocabulary_add(&v, "\n\n", 0, MODEL_TOKEN_USER_DEFINED);
    struct opened o = vocabulary_opened(&v);
    EXPECT(o, "a<c> \n\n\n", 'a', control, ' ', user, '\n');
    const int32_t plain[] = {'<', 'c', '>', user};
    opened_expect(&o, "<c>\n\n", 5, false, plain, 4);
    char bytes[4];
    assert_int_equal(model_token_bytes(o.tokenizer, control, bytes, 4), 3);
    assert_memory_equal(bytes, "<c>", 3);
    opened_close(&o);
}

static void missing_bytes(void **state)
{
    (void)state;
    vocabulary_bpe(&v);
    v.tokens['x'].data = "other";
    v.tokens['x'].n_bytes = 5;
    struct opened o = vocabulary_opened(&v);
    struct model_tokens ids = {0};
    struct status_why why = {0};
    assert_int_equal(model_tokenize(o.tokenizer, "ab", 2, true, &ids, &why), STATUS_OK);
    assert_int_equal(ids.n, 2);
    assert_int_equal(ids.n_dropped, 0);
    assert_int_equal(model_tokenize(o.tokenizer, "axb x xx", 8, true, &ids, &why), STATUS_OK);
    assert_int_equal(ids.n, 6); /* a word that came before is counted again */
    assert_int_equal(ids.n_dropped, 4);
    assert_int_equal(model_token_span(o.tokenizer, ids.ids[3], "xb x xx", 7), 2);
    free(ids.ids);
    opened_close(&o);
    v.unknown = 7;
    o = vocabulary_opened(&v);
    EXPECT(o, "axb", 'a', 'b');
    opened_close(&o);
}

/* ---- the oracle: quadratic, from the definition ---- */

enum { TEXT_LIMIT = 128 };

static size_t rank_of(int32_t left, int32_t right)
{
    struct base_string l = v.tokens[left], r = v.tokens[right];
    for (size_t i = 0; i < v.n_merges; i++)
        if (v.merges[i].n_bytes == l.n_bytes + 1 + r.n_bytes &&
            memcmp(v.merges[i].data, l.data, l.n_bytes) == 0 &&
            v.merges[i].data[l.n_bytes] == ' ' &&
            memcmp(v.merges[i].data + l.n_bytes + 1, r.data, r.n_bytes) == 0)
            return i;
    return v.n_merges;
}

static size_t oracle(const char *text, size_t n, int32_t *ids)
{
    for (size_t i = 0; i < n; i++)
        ids[i] = (uint8_t)text[i];
    for (;;) {
        size_t best = 0, lowest = v.n_merges;
        for (size_t i = 0; i + 1 < n; i++) {
            size_t rank = rank_of(ids[i], ids[i + 1]);
            if (rank < lowest) {
                lowest = rank;
                best = i;
            }
        }
        if (lowest == v.n_merges)
            return n;
        struct base_string l = v.tokens[ids[best]], r = v.tokens[ids[best + 1]];
        char joined[TEXT_LIMIT * 2];
        memcpy(joined, l.data, l.n_bytes);
        memcpy(joined + l.n_bytes, r.data, r.n_bytes);
        ids[best] = vocabulary_find(&v, joined, l.n_bytes + r.n_bytes);
        memmove(ids + best + 1, ids + best + 2, (n - best - 2) * sizeof *ids);
        n--;
    }
}

static void oracle_agrees(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 2);
    for (size_t round = 0; round < 200; round++) {
        vocabulary_bpe(&v);
        for (size_t k = 0; k < 30; k++) { /* halves: the letters a, b, c and tokens made so far */
            char half[2][64];
            for (size_t h = 0; h < 2; h++) {
                size_t pick = rng_below(&r, 3 + v.n_tokens - 256);
                struct base_string t = pick < 3 ? v.tokens['a' + pick] : v.tokens[256 + pick - 3];
                snprintf(half[h], sizeof half[h], "%.*s", (int)t.n_bytes, t.data);
            }
            if (strlen(half[0]) + strlen(half[1]) < 24)
                vocabulary_merge(&v, half[0], half[1]);
        }
        struct opened o = vocabulary_opened(&v);
        for (size_t k = 0; k < 20; k++) {
            char text[TEXT_LIMIT];
            int32_t expected[TEXT_LIMIT];
            size_t n = 1 + rng_below(&r, TEXT_LIMIT - 1);
            for (size_t i = 0; i < n; i++)
                text[i] = (char)('a' + rng_below(&r, 3));
            size_t n_expected = oracle(text, n, expected);
            opened_expect(&o, text, n, true, expected, n_expected);
        }
        opened_close(&o);
    }
}

static void huge_piece(void **state)
{
    (void)state;
    enum { N = 1 << 19 };
    vocabulary_bpe(&v);
    vocabulary_merge(&v, "a", "a");
    int32_t aaaa = vocabulary_merge(&v, "aa", "aa");
    struct opened o = vocabulary_opened(&v);
    char *text = malloc(N);
    assert_non_null(text);
    memset(text, 'a', N);
    struct model_tokens ids = opened_encode(&o, text, N, true);
    assert_int_equal(ids.n, N / 4);
    for (size_t i = 0; i < ids.n; i++)
        assert_int_equal(ids.ids[i], aaaa);
    free(ids.ids);
    free(text);
    opened_close(&o);
}

static void cache_tells_words_apart(void **state)
{
    (void)state;
    struct model_tok_cache c = {0};
    struct status_why why;
    assert_int_equal(model_tok_cache_init(&c, 0, &why), STATUS_OK);
    c.mask = 0; /* all words share one place */
    int hit;
    struct model_tok_entry *e = model_tok_cache_find(&c, "a", 1, &hit);
    assert_false(hit);
    model_tok_cache_put(e, "abc", 3, (const int32_t[]){1, 2}, 2);
    assert_ptr_equal(model_tok_cache_find(&c, "abc", 3, &hit), e);
    assert_true(hit);
    model_tok_cache_find(&c, "ab", 2, &hit);
    assert_false(hit);
    model_tok_cache_find(&c, "abcd", 4, &hit);
    assert_false(hit);
    model_tok_cache_put(e, "x", 1, (const int32_t[MODEL_TOK_CACHE_IDS + 1]){0},
                        MODEL_TOK_CACHE_IDS + 1); /* too many: left out */
    model_tok_cache_find(&c, "x", 1, &hit);
    assert_false(hit);
    model_tok_cache_free(&c);
}

/** The cache must not be seen: the same words again and again, more than it has room for. */
static void cache_is_not_seen(void **state)
{
    (void)state;
    vocabulary_bpe(&v);
    vocabulary_merge(&v, "a", "b");
    vocabulary_merge(&v, "c", "ab");
    vocabulary_merge(&v, "b", "c");
    struct opened o = vocabulary_opened(&v);
    struct rng r = rng_open(rng_seed(), 3);
    enum { N_WORDS = 20000 };
    char *text = malloc(N_WORDS * 32);
    assert_non_null(text);
    size_t n = 0;
    struct model_tokens one_by_one = {0};
    struct status_why why = {0};
    for (size_t w = 0; w < N_WORDS; w++) {
        size_t begin = n, length = 1 + rng_below(&r, 5) + (rng_below(&r, 9) ? 0 : 20);
        text[n++] = ' ';
        for (size_t i = 0; i < length; i++)
            text[n++] = (char)('a' + rng_below(&r, 3));
        assert_int_equal(
            model_tokenize(o.tokenizer, text + begin, n - begin, true, &one_by_one, &why), 0);
    }
    opened_expect(&o, text, n, true, one_by_one.ids, one_by_one.n);
    free(one_by_one.ids);
    free(text);
    opened_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_decide),
        cmocka_unit_test(pairs_not_strings),
        cmocka_unit_test(pieces_bound_merges),
        cmocka_unit_test(whole_pieces),
        cmocka_unit_test(case_of_all_alphabets),
        cmocka_unit_test(all_bytes),
        cmocka_unit_test(invalid_utf8),
        cmocka_unit_test(special_tokens),
        cmocka_unit_test(missing_bytes),
        cmocka_unit_test(oracle_agrees),
        cmocka_unit_test(huge_piece),
        cmocka_unit_test(cache_is_not_seen),
        cmocka_unit_test(cache_tells_words_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

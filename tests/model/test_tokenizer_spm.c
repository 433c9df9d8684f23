/* SentencePiece-BPE on vocabularies made here: each rule, and a brute-force merge as oracle. */
#include "tests/harness/cmocka.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/rng.h"
#include "tests/model/vocabulary.h"

#define SP "\xE2\x96\x81" /* U+2581 */

/* Literals may hold NUL bytes, so their length is taken from the type. */
#define EXPECT(o, literal, ...)                                                                    \
    opened_expect(&(o), literal, sizeof(literal) - 1, true, (const int32_t[]){__VA_ARGS__},        \
                  sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

static struct vocabulary v;

static int32_t byte_token(unsigned byte)
{
    return 3 + (int32_t)byte;
}

static int32_t normal(const char *text, float score)
{
    return vocabulary_add(&v, text, score, MODEL_TOKEN_NORMAL);
}

static void scores_decide(void **state)
{
    (void)state;
    vocabulary_spm(&v);
    v.add_space_prefix = 0;
    int32_t a = normal("a", 0), b = normal("b", 0), c = normal("c", 0);
    int32_t ab = normal("ab", -3), bc = normal("bc", -1), abc = normal("abc", -9);
    struct opened o = vocabulary_opened(&v);
    EXPECT(o, "ab", ab);
    EXPECT(o, "ba", b, a);
    EXPECT(o, "abc", abc); /* bc first, then a+bc */
    EXPECT(o, "abcb", abc, b);
    EXPECT(o, "cab", c, ab);
    EXPECT(o, "aab", a, ab);
    EXPECT(o, "bcbc", bc, bc);
    opened_close(&o);
}

/** On both sides of 0, which has two signs, and at both ends. */
static void scores_of_any_sign(void **state)
{
    static const struct {
        float left, right;
        bool left_wins;
    } cases[] = {{1e-30f, 2, false},   {-1e-30f, -2, true},     {1e-30f, -1e-30f, true},
                 {0, -0.0f, true},     {-0.0f, 0, true},        {-INFINITY, -3e38f, false},
                 {-2, -1e-30f, false}, {INFINITY, 3e38f, true}, {-1e-30f, 0, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        vocabulary_spm(&v);
        v.add_space_prefix = 0;
        int32_t a = normal("a", 0), b = normal("b", 0), c = normal("c", 0);
        int32_t ab = normal("ab", cases[i].left), bc = normal("bc", cases[i].right);
        struct opened o = vocabulary_opened(&v);
        if (cases[i].left_wins)
            EXPECT(o, "abc", ab, c);
        else
            EXPECT(o, "abc", a, bc);
        EXPECT(o, "bab", b, ab);
        opened_close(&o);
    }
}

static void leftmost_of_equals(void **state)
{
    (void)state;
    vocabulary_spm(&v);
    v.add_space_prefix = 0;
    int32_t a = normal("a", 0), b = normal("b", 0), aa = normal("aa", -1);
    int32_t ab = normal("ab", -2), ba = normal("ba", -2);
    struct opened o = vocabulary_opened(&v);
    EXPECT(o, "aaa", aa, a);
    EXPECT(o, "aaaaa", aa, aa, a);
    EXPECT(o, "aba", ab, a); /* ab and ba have the same score */
    EXPECT(o, "bab", ba, b);
    opened_close(&o);
}

static void spaces(void **state)
{
    (void)state;
    vocabulary_spm(&v);
    int32_t s = normal(SP, 0), a = normal("a", 0), sa = normal(SP "a", -1), ss = normal(SP SP, -2);
    struct opened o = vocabulary_opened(&v);
    EXPECT(o, "a", sa); /* add_space_prefix is the default */
    EXPECT(o, " a", s, sa);
    EXPECT(o, "  a", ss, sa);
    EXPECT(o, "a a", sa, sa);
    EXPECT(o, "a   a ", sa, ss, sa, s);
    EXPECT(o, SP "a", s, sa); /* U+2581 itself counts as a space */
    opened_expect(&o, "", 0, true, NULL, 0);
    opened_close(&o);

    v.add_space_prefix = 0;
    o = vocabulary_opened(&v);
    EXPECT(o, "a", a);
    EXPECT(o, "a a", a, sa);
    opened_close(&o);
}

static void tokens_across_spaces(void **state)
{
    (void)state;
    vocabulary_spm(&v);
    v.add_space_prefix = 0;
    normal(SP, 0), normal("a", 0);
    int32_t b = normal("b", 0), sa = normal(SP "a", -5), as = normal("a" SP, -1);
    int32_t bsa = normal("b" SP "a", -7), e = normal("\xC3\xA9" SP, -1);
    struct opened o = vocabulary_opened(&v);
    EXPECT(o, "b a", bsa);   /* no cut between b and the space */
    EXPECT(o, "a b", as, b); /* nor after a */
    EXPECT(o, "a a", as, vocabulary_find(&v, "a", 1));
    EXPECT(o, "\xC3\xA9 b", e, b); /* nor after a character of two bytes */
    EXPECT(o, "c a", byte_token('c'), sa);
    opened_close(&o);
}

static void bytes_where_no_token(void **state)
{
    (void)state;
    vocabulary_spm(&v);
    v.add_space_prefix = 0;
    int32_t a = normal("a", 0), nul_a = vocabulary_add_bytes(&v, "\0a", 2, -1, MODEL_TOKEN_NORMAL);
    struct opened o = vocabulary_opened(&v);
    EXPECT(o, "\xE2\x82\xAC", byte_token(0xE2), byte_token(0x82), byte_token(0xAC));
    EXPECT(o, "\n", byte_token('\n'));
    EXPECT(o, "\0", byte_token(0));
    EXPECT(o, "\0a\0", nul_a, byte_token(0));
    /* Invalid UTF-8 stays as it is; a lead byte takes along what it announces. */
    EXPECT(o,
           "\xFF"
           "a",
           byte_token(0xFF), byte_token('a'));
    EXPECT(o,
           "\x80"
           "a",
           byte_token(0x80), a);
    EXPECT(o, "a\xE2\x82", a, byte_token(0xE2), byte_token(0x82));
    /* Here it takes the first byte of U+2581, which the space has become. */
    EXPECT(o, "\xC3 a", byte_token(0xC3), byte_token(0xE2), byte_token(0x96), byte_token(0x81), a);
    opened_close(&o);
}

static void without_byte_tokens(void **state)
{
    (void)state;
    vocabulary_spm(&v);
    /* Keep <unk>, <s>, </s> only; then a token that is the byte itself serves as well. */
    v.n_tokens = v.n_scores = v.n_types = 3;
    v.add_space_prefix = 0;
    int32_t a = normal("a", 0);
    struct opened o = vocabulary_opened(&v);
    EXPECT(o, "a\xE2\x82\xAC", a, 0);
    EXPECT(o, "xa", 0, a);
    opened_close(&o);
}

static void special_tokens(void **state)
{
    (void)state;
    vocabulary_spm(&v);
    int32_t s = normal(SP, 0), sa = normal(SP "a", -1);
    normal("a", 0);
    int32_t user = vocabulary_add(&v, "[u]", 0, MODEL_TOKEN_USER_DEFINED);
    int32_t meta = vocabulary_add(&v, "  ", 0, MODEL_TOKEN_USER_DEFINED);
    struct opened o = vocabulary_opened(&v);
    EXPECT(o, "<s>a", 1, sa); /* a prefix after the special token too */
    EXPECT(o, "a<s> a</s>", sa, 1, s, sa, 2);
    EXPECT(o, "a[u]a", sa, user, sa);
    EXPECT(o, "<unk>", 0);
    EXPECT(o, "a  a", sa, meta, sa); /* user-defined tokens match before spaces change */
    EXPECT(o, "<s>", 1);
    /* Without parse_special only user-defined tokens are seen. */
    const int32_t plain[] = {s, byte_token('<'), byte_token('s'), byte_token('>'), user, sa};
    opened_expect(&o, "<s>[u]a", 7, false, plain, 6);
    opened_close(&o);
}

static void bytes_of_tokens(void **state)
{
    (void)state;
    vocabulary_spm(&v);
    int32_t word = normal(SP "a" SP, 0);
    int32_t user = vocabulary_add(&v, SP "u", 0, MODEL_TOKEN_USER_DEFINED);
    struct opened o = vocabulary_opened(&v);
    char bytes[8];
    assert_int_equal(model_token_bytes(o.tokenizer, word, bytes, sizeof bytes), 3);
    assert_memory_equal(bytes, " a ", 3);
    assert_int_equal(model_token_bytes(o.tokenizer, byte_token(0xFE), bytes, 1), 1);
    assert_int_equal((uint8_t)bytes[0], 0xFE);
    assert_int_equal(model_token_bytes(o.tokenizer, user, bytes, sizeof bytes), 4);
    assert_memory_equal(bytes, SP "u", 4);
    bytes[1] = 'x';
    assert_int_equal(model_token_bytes(o.tokenizer, 1, bytes, 1), 3); /* cut */
    assert_int_equal(bytes[0], '<');
    assert_int_equal(bytes[1], 'x');
    assert_int_equal(model_token_bytes(o.tokenizer, word, NULL, 0), 3);
    opened_close(&o);
}

/* Spaces and U+2581 are one to the vocabulary; the bytes of the text count each as it is. */
static void spans_add_up(void **state)
{
    (void)state;
    static const char *const parts[] = {" ",    SP,         "a",   "b",    "\xE2",        "\x96",
                                        "\x81", "\xC3\xA9", "[u]", "\xEF", "\xEF\xBF\xBD"};
    struct rng r = rng_open(rng_seed(), 3);
    for (int kind = 0; kind < 5; kind++) {
        vocabulary_spm(&v);
        v.add_space_prefix = kind == 2;
        if (kind > 2) /* bad bytes become U+FFFD, a token or three */
            v.model = "gemma4", v.has_merges = true, v.bos = 1;
        if (kind == 4)
            normal("\xEF\xBF\xBD", 0), vocabulary_merge(&v, "\xEF\xBF\xBD", "\xEF\xBF\xBD");
        if (kind > 0) { /* otherwise a space is three byte tokens */
            normal(SP, 0), normal(SP "a", -1), normal(SP SP, -2), normal("a" SP "b", -3);
        }
        normal("a", 0);
        vocabulary_add(&v, "[u]", 0, MODEL_TOKEN_USER_DEFINED);
        struct opened o = vocabulary_opened(&v);
        for (int k = 0; k < 2000; k++) {
            char text[64];
            size_t n_bytes = 0, at = 0;
            for (size_t n = 1 + rng_below(&r, 12); n > 0; n--)
                n_bytes += (size_t)snprintf(text + n_bytes, sizeof text - n_bytes, "%s",
                                            parts[rng_below(&r, sizeof parts / sizeof parts[0])]);
            struct model_tokens ids = {0};
            assert_int_equal(model_tokenize(o.tokenizer, text, n_bytes, true, &ids, NULL),
                             STATUS_OK);
            for (size_t i = 0; i < ids.n; i++)
                at += model_token_span(o.tokenizer, ids.ids[i], text + at, n_bytes - at);
            if (at != n_bytes)
                fail_msg("kind %d, %s: %zu of %zu", kind, text, at, n_bytes);
            free(ids.ids);
        }
        opened_close(&o);
    }
}

/* ---- the oracle: quadratic, from the definition, over the whole text at once ---- */

enum { TEXT_LIMIT = 256, SYMBOL_LIMIT = TEXT_LIMIT };

struct symbol {
    size_t begin, end;
};

static size_t oracle(const char *text, size_t n_bytes, int32_t *ids)
{
    struct symbol symbols[SYMBOL_LIMIT];
    size_t n = 0;
    for (size_t i = 0; i < n_bytes; n++) {
        uint8_t lead = (uint8_t)text[i];
        size_t step = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : 3;
        symbols[n] = (struct symbol){i, i + step};
        i += step;
    }
    for (;;) {
        size_t best = n;
        float best_score = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            int32_t id =
                vocabulary_find(&v, text + symbols[i].begin, symbols[i + 1].end - symbols[i].begin);
            if (id >= 0 && (best == n || v.scores[id] > best_score)) {
                best = i;
                best_score = v.scores[id];
            }
        }
        if (best == n)
            break;
        symbols[best].end = symbols[best + 1].end;
        memmove(symbols + best + 1, symbols + best + 2, (n - best - 2) * sizeof *symbols);
        n--;
    }
    size_t n_ids = 0;
    for (size_t i = 0; i < n; i++) {
        size_t length = symbols[i].end - symbols[i].begin;
        int32_t id = vocabulary_find(&v, text + symbols[i].begin, length);
        if (id >= 0)
            ids[n_ids++] = id;
        for (size_t k = 0; id < 0 && k < length; k++)
            ids[n_ids++] = byte_token((uint8_t)text[symbols[i].begin + k]);
    }
    return n_ids;
}

static const char *const alphabet[] = {"a", "b", SP, "\xC3\xA9", "c"};

/** A string of n letters; returns its bytes. U+2581 is written as a space if `raw`. */
static size_t random_text(struct rng *r, size_t n, bool raw, char *out)
{
    size_t n_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        const char *letter = alphabet[rng_below(r, sizeof alphabet / sizeof *alphabet)];
        letter = raw && strcmp(letter, SP) == 0 && rng_below(r, 8) > 0 ? " " : letter;
        memcpy(out + n_bytes, letter, strlen(letter));
        n_bytes += strlen(letter);
    }
    return n_bytes;
}

/** Whether U+2581 follows another character in here. */
static bool has_space_after_letter(const char *text)
{
    for (const char *p = text; (p = strstr(p, SP)) != NULL; p += 3)
        if (p > text && (p < text + 3 || memcmp(p - 3, SP, 3) != 0))
            return true;
    return false;
}

/** Few letters and few scores, so that tokens overlap and ties abound. */
static void random_vocabulary(struct rng *r)
{
    vocabulary_spm(&v);
    v.add_space_prefix = 0;
    for (size_t i = 0; i < 3; i++) /* not all letters are tokens */
        normal(alphabet[i], -1);
    bool may_join = rng_below(r, 2);
    for (size_t tries = 0; tries < 40; tries++) {
        char text[64];
        size_t n_bytes = random_text(r, 2 + rng_below(r, 4), false, text);
        text[n_bytes] = 0;
        if ((may_join || !has_space_after_letter(text)) && vocabulary_find(&v, text, n_bytes) < 0)
            normal(text, -(float)rng_below(r, 6));
    }
}

static void oracle_agrees(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 1);
    for (size_t round = 0; round < 300; round++) {
        random_vocabulary(&r);
        struct opened o = vocabulary_opened(&v);
        for (size_t k = 0; k < 20; k++) {
            char raw[TEXT_LIMIT], escaped[TEXT_LIMIT];
            size_t n_raw = random_text(&r, 1 + rng_below(&r, 60), true, raw), n = 0;
            for (size_t i = 0; i < n_raw; i++) {
                memcpy(escaped + n, raw[i] == ' ' ? SP : raw + i, raw[i] == ' ' ? 3 : 1);
                n += raw[i] == ' ' ? 3 : 1;
            }
            int32_t expected[TEXT_LIMIT];
            size_t n_expected = oracle(escaped, n, expected);
            opened_expect(&o, raw, n_raw, true, expected, n_expected);
        }
        opened_close(&o);
    }
}

/** Long runs: as many tokens as must come out, in a time that a quadratic method would not meet. */
static void huge_runs(void **state)
{
    (void)state;
    enum { N = 1 << 19 };
    vocabulary_spm(&v);
    v.add_space_prefix = 0;
    normal(SP, 0), normal("a", 0), normal("7", 0), normal("\n", 0);
    normal("aa", -1);
    int32_t aaaa = normal("aaaa", -2), ss = normal(SP SP, -3);
    struct opened o = vocabulary_opened(&v);
    const struct {
        char letter;
        int32_t id;
        size_t step;
    } runs[] = {{'a', aaaa, 4},
                {' ', ss, 2},
                {'7', vocabulary_find(&v, "7", 1), 1},
                {'\n', vocabulary_find(&v, "\n", 1), 1},
                {'z', byte_token('z'), 1},
                {'\0', byte_token(0), 1}};
    char *text = malloc(N);
    assert_non_null(text);
    for (size_t k = 0; k < sizeof runs / sizeof *runs; k++) {
        memset(text, runs[k].letter, N);
        struct model_tokens ids = opened_encode(&o, text, N, true);
        assert_int_equal(ids.n, N / runs[k].step);
        for (size_t i = 0; i < ids.n; i++)
            assert_int_equal(ids.ids[i], runs[k].id);
        free(ids.ids);
    }
    free(text);
    opened_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scores_decide),        cmocka_unit_test(scores_of_any_sign),
        cmocka_unit_test(leftmost_of_equals),   cmocka_unit_test(spaces),
        cmocka_unit_test(tokens_across_spaces), cmocka_unit_test(bytes_where_no_token),
        cmocka_unit_test(without_byte_tokens),  cmocka_unit_test(special_tokens),
        cmocka_unit_test(bytes_of_tokens),      cmocka_unit_test(spans_add_up),
        cmocka_unit_test(oracle_agrees),        cmocka_unit_test(huge_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

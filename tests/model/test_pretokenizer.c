/*
 * The pre-tokenisers against pieces that another regular expression engine made, from the
 * expressions in their published form: tests/model/pretokenizer_vectors.py.
 *
 * tests/data/pretokenizer-pieces.tsv: names, text in hex, lengths of its pieces in bytes.
 * tests/data/pretokenizer-digests.tsv: names, how many pieces 10,000 texts have, and a digest of
 * their lengths. The texts are made here from pretokenizer-units.txt.
 */
#include "tests/harness/cmocka.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/pretokenizer.h"
#include "tests/harness/rng.h"

#define FNV_BASIS UINT64_C(0xcbf29ce484222325)

struct pieces {
    const char *text;
    size_t n_bytes; /* handed out so far */
    char lengths[4096];
    size_t n_pieces;
    uint64_t digest; /* of the lengths */
};

static uint64_t digest_add(uint64_t digest, uint64_t number)
{
    return (digest ^ number) * UINT64_C(0x100000001b3);
}

static enum status collect(void *user, const char *piece, size_t n_bytes)
{
    struct pieces *p = user;
    assert_ptr_equal(piece, p->text + p->n_bytes);
    assert_true(n_bytes > 0);
    p->n_bytes += n_bytes;
    size_t used = strlen(p->lengths);
    if (used + 32 < sizeof p->lengths)
        snprintf(p->lengths + used, sizeof p->lengths - used, "%s%zu", used ? "," : "", n_bytes);
    p->n_pieces++;
    p->digest = digest_add(p->digest, n_bytes);
    return STATUS_OK;
}

/** name: "llama.cpp:NAME" is llama.cpp's form. */
static struct model_pretokenizer compiled(const char *name)
{
    struct model_pretokenizer p;
    struct status_why why = {0};
    const char *colon = strchr(name, ':');
    struct base_string s = {colon ? colon + 1 : name, strlen(colon ? colon + 1 : name)};
    if (model_pretokenizer_init(&p, s, colon != NULL, &why))
        fail_msg("%s", why.text);
    return p;
}

/** Cut the first name off "a,b" or "llama.cpp:a,b"; false where there is none left. */
static bool next_name(char list[256], char name[64])
{
    char *begin = strchr(list, ':') ? strchr(list, ':') + 1 : list;
    size_t n = strcspn(begin, ",");
    if (n == 0)
        return false;
    snprintf(name, 64, "%.*s%.*s", (int)(begin - list), list, (int)n, begin);
    memmove(begin, begin + n + (begin[n] == ','), strlen(begin + n + (begin[n] == ',')) + 1);
    return true;
}

static void split(const struct model_pretokenizer *p, struct model_tok_run *run,
                  struct pieces *pieces, const char *text, size_t n_bytes)
{
    struct status_why why = {0};
    run->why = &why;
    pieces->text = text;
    pieces->n_bytes = 0;
    pieces->lengths[0] = 0;
    if (model_pretokenizer_split(p, run, text, n_bytes, collect, pieces))
        fail_msg("%s: %s", p->row->name, why.text);
    assert_int_equal(pieces->n_bytes, n_bytes);
}

static size_t unhex(const char *hex, char *bytes, size_t capacity)
{
    size_t n = strlen(hex) / 2;
    assert_true(n <= capacity);
    for (size_t i = 0; i < n; i++) {
        unsigned byte;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
        bytes[i] = (char)byte;
    }
    return n;
}

static FILE *open_data(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/data/%s", ASSAY_SOURCE_DIR, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    return f;
}

static void shown_pieces(void **state)
{
    (void)state;
    FILE *f = open_data("pretokenizer-pieces.tsv");
    char line[4096], names[256], name[64], hex[2048], lengths[2048];
    size_t n_lines = 0;
    for (; fgets(line, sizeof line, f); n_lines++) {
        assert_int_equal(sscanf(line, "%255s %2047s %2047s", names, hex, lengths), 3);
        /* Zeros after the text: PCRE2 reads its last 16 bytes at once, which valgrind sees. */
        char text[1024] = {0};
        size_t n_bytes = unhex(hex, text, sizeof text - 16);
        while (next_name(names, name)) {
            struct model_pretokenizer p = compiled(name);
            struct model_tok_run run = {0};
            struct pieces pieces = {0};
            split(&p, &run, &pieces, text, n_bytes);
            model_regex_run_free(&run.regex);
            if (strcmp(pieces.lengths, lengths) != 0)
                fail_msg("%s, text %s: pieces of %s bytes; expected %s", name, hex, pieces.lengths,
                         lengths);
            model_pretokenizer_free(&p);
        }
    }
    fclose(f);
    assert_int_equal(n_lines, 637);
}

enum { UNIT_BYTES = 16, UNITS = 512, TEXT_BYTES = 24 * 6 * UNIT_BYTES };

struct units {
    char bytes[UNITS][UNIT_BYTES];
    size_t n_bytes[UNITS], n, n_common; /* the common ones come first */
};

static void read_units(struct units *u)
{
    FILE *f = open_data("pretokenizer-units.txt");
    char line[64];
    *u = (struct units){0};
    while (fgets(line, sizeof line, f)) {
        assert_true(u->n < UNITS);
        line[strcspn(line, "\n")] = 0;
        if (line[0] == '-') {
            u->n_common = u->n;
            continue;
        }
        u->n_bytes[u->n] = unhex(line, u->bytes[u->n], UNIT_BYTES);
        u->n++;
    }
    fclose(f);
}

static size_t append(char *text, size_t n, const struct units *u, size_t unit)
{
    memcpy(text + n, u->bytes[unit], u->n_bytes[unit]);
    return n + u->n_bytes[unit];
}

/** Text i, as pretokenizer_vectors.py makes it: a unit among others, or units at random. */
static size_t make_text(const struct units *u, size_t i, struct rng *r, char *text)
{
    size_t n = 0;
    if (i < u->n) {
        for (const char *p = "a*b *7**.*\n"; *p; p++)
            if (*p == '*')
                n = append(text, n, u, i);
            else
                text[n++] = *p;
        return n;
    }
    for (size_t left = 1 + rng_below(r, 24); left > 0; left--) {
        size_t unit = rng_below(r, 2) ? rng_below(r, u->n_common) : rng_below(r, u->n);
        for (size_t times = rng_below(r, 4) ? 1 : 1 + rng_below(r, 6); times > 0; times--)
            n = append(text, n, u, unit);
    }
    return n;
}

static void check_digest(const char *name, const struct units *u, size_t n_pieces, uint64_t digest)
{
    enum { TEXTS = 10000, SEED = 20260811 };
    struct model_pretokenizer p = compiled(name);
    struct rng r = rng_open(SEED, 1);
    struct model_tok_run run = {0};
    struct pieces pieces = {.digest = FNV_BASIS};
    for (size_t i = 0; i < TEXTS; i++) {
        char text[TEXT_BYTES + 16] = {0};
        size_t n_bytes = make_text(u, i, &r, text);
        split(&p, &run, &pieces, text, n_bytes);
        pieces.digest = digest_add(pieces.digest, 0);
    }
    if (pieces.n_pieces != n_pieces || pieces.digest != digest)
        fail_msg("%s: %zu pieces, digest %016llx; expected %zu and %016llx", name, pieces.n_pieces,
                 (unsigned long long)pieces.digest, n_pieces, (unsigned long long)digest);
    model_regex_run_free(&run.regex);
    model_pretokenizer_free(&p);
}

/** Every name of the list is here, or a new one would go untested. */
static void digests(void **state)
{
    (void)state;
    static struct units units;
    read_units(&units);
    FILE *f = open_data("pretokenizer-digests.tsv");
    char line[512], names[256], name[64];
    size_t n_pieces, n_published = 0, n_rows = 0;
    unsigned long long digest;
    while (fgets(line, sizeof line, f)) {
        assert_int_equal(sscanf(line, "%255s %zu %llx", names, &n_pieces, &digest), 3);
        assert_true(next_name(names, name));
        check_digest(name, &units, n_pieces, digest);
        struct model_pretokenizer first = compiled(name), other;
        do {
            n_published += !strchr(name, ':');
            other = compiled(name);
            assert_memory_equal(other.row->expressions, first.row->expressions,
                                sizeof first.row->expressions);
            model_pretokenizer_free(&other);
        } while (next_name(names, name));
        model_pretokenizer_free(&first);
    }
    fclose(f);
    while (model_pretokenizer_row_at(n_rows))
        n_rows++;
    assert_int_equal(n_published, n_rows);
}

/** One name of each way to cut, and the nearest. */
static void unknown_name(void **state)
{
    (void)state;
    struct model_pretokenizer p;
    struct status_why why = {0};
    assert_int_equal(model_pretokenizer_init(&p, (struct base_string){"no\nsuch", 7}, false, &why),
                     STATUS_UNSUPPORTED);
    assert_null(strchr(why.text, '\n'));
    assert_null(strstr(why.text, "..."));
    assert_non_null(strstr(why.text, "docs/tokenizers.md"));
    const struct model_pretokenizer_row *row, *before = NULL;
    for (size_t i = 0; (row = model_pretokenizer_row_at(i)) != NULL; before = row, i++)
        if (!before || memcmp(before->expressions, row->expressions, sizeof row->expressions) != 0)
            assert_non_null(strstr(why.text, row->name));
    model_pretokenizer_free(&p);
    assert_int_equal(model_pretokenizer_init(&p, (struct base_string){"spark2.5", 8}, false, &why),
                     STATUS_UNSUPPORTED);
    assert_non_null(
        strstr(why.text, "'spark2.5' is not known (did you mean spark2_5?); known are"));
    model_pretokenizer_free(&p);
}

/** The page's table has each name, and in its last cells what the list says. */
static void names_are_documented(void **state)
{
    (void)state;
    char path[512], quoted[80], line[1024];
    const struct model_pretokenizer_row *row;
    snprintf(path, sizeof path, "%s/docs/tokenizers.md", ASSAY_SOURCE_DIR);
    for (size_t i = 0; (row = model_pretokenizer_row_at(i)) != NULL; i++) {
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        bool found = false;
        snprintf(quoted, sizeof quoted, "`%s`", row->name);
        while (!found && fgets(line, sizeof line, f)) {
            char *cell = strstr(line, " | ");
            char *name = strstr(line, quoted);
            if (line[0] != '|' || !cell || !name || name > cell)
                continue;
            snprintf(quoted, sizeof quoted, "| %s | %s |\n",
                     row->flags & MODEL_PRE_WHOLE ? "yes" : "no",
                     row->flags & MODEL_PRE_BOS ? "yes" : "no");
            found = strstr(line, quoted);
        }
        fclose(f);
        if (!found)
            fail_msg("docs/tokenizers.md has no row for %s that ends in %s", row->name, quoted);
    }
}

static enum status give_up(void *user, const char *piece, size_t n_bytes)
{
    (void)piece, (void)n_bytes;
    return ++*(size_t *)user == 3 ? STATUS_CANCELLED : STATUS_OK;
}

static void callback_may_stop(void **state)
{
    (void)state;
    struct model_pretokenizer p = compiled("default");
    struct model_tok_run run = {0};
    size_t n_calls = 0;
    assert_int_equal(model_pretokenizer_split(&p, &run, "a b c d", 7, give_up, &n_calls),
                     STATUS_CANCELLED);
    assert_int_equal(n_calls, 3);
    model_regex_run_free(&run.regex);
    model_pretokenizer_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shown_pieces),      cmocka_unit_test(digests),
        cmocka_unit_test(unknown_name),      cmocka_unit_test(names_are_documented),
        cmocka_unit_test(callback_may_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

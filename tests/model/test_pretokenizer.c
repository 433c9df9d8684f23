/*
 * The pre-tokenisers against pieces that another regular expression engine made.
 *
 * tests/data/pretokenizer-pieces.tsv: name, text in hex, lengths of its pieces in bytes. Made
 * with the module `regex` of Python from the expressions in their published form, and with the
 * rule that white space beyond ASCII counts as U+000B. The texts are random strings of letters
 * of many alphabets, digits, marks, punctuation, spaces and line ends, and for each such
 * character one that puts it beside letters, digits, spaces and itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/pretokenizer.h"

struct pieces {
    const char *text;
    size_t n_bytes; /* handed out so far */
    char lengths[4096];
    size_t n_pieces;
};

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
    return STATUS_OK;
}

static struct model_pretokenizer compiled(const char *name)
{
    struct model_pretokenizer p;
    struct status_why why = {0};
    if (model_pretokenizer_init(&p, (struct base_string){name, strlen(name)}, &why))
        fail_msg("%s", why.text);
    return p;
}

static void split(const struct model_pretokenizer *p, struct pieces *pieces, const char *text,
                  size_t n_bytes)
{
    struct status_why why = {0};
    struct model_tok_run run = {.why = &why};
    memset(pieces, 0, sizeof *pieces);
    pieces->text = text;
    if (model_pretokenizer_split(p, &run, text, n_bytes, collect, pieces))
        fail_msg("%s: %s", p->row->name, why.text);
    assert_int_equal(pieces->n_bytes, n_bytes);
    model_pretokenizer_run_free(&run);
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

static void vectors(void **state)
{
    (void)state;
    FILE *f = fopen(ASSAY_SOURCE_DIR "/tests/data/pretokenizer-pieces.tsv", "r");
    assert_non_null(f);
    char line[4096], name[64], hex[2048], lengths[2048];
    size_t n_lines = 0;
    struct model_pretokenizer p = {0};
    while (fgets(line, sizeof line, f)) {
        assert_int_equal(sscanf(line, "%63s %2047s %2047s", name, hex, lengths), 3);
        if (!p.row || strcmp(p.row->name, name) != 0) {
            model_pretokenizer_free(&p);
            p = compiled(name);
        }
        /* Zeros behind the text: PCRE2 reads its last 16 bytes at once, which valgrind sees. */
        char text[1024] = {0};
        size_t n_bytes = unhex(hex, text, sizeof text);
        struct pieces pieces;
        split(&p, &pieces, text, n_bytes);
        if (strcmp(pieces.lengths, lengths) != 0)
            fail_msg("%s, text %s: pieces of %s bytes; expected %s", name, hex, pieces.lengths,
                     lengths);
        n_lines++;
    }
    fclose(f);
    model_pretokenizer_free(&p);
    assert_int_equal(n_lines, 882);
}

/** Every row of the table is in the vectors, or a new one would go untested. */
static void vectors_cover_the_table(void **state)
{
    (void)state;
    FILE *f = fopen(ASSAY_SOURCE_DIR "/tests/data/pretokenizer-pieces.tsv", "r");
    assert_non_null(f);
    char line[4096];
    size_t i = 0;
    const char *name = "";
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == '\t')
            continue;
        const struct model_pretokenizer_row *row = model_pretokenizer_row_at(i++);
        assert_non_null(row);
        name = row->name;
        assert_int_equal(strncmp(line, name, strlen(name)), 0);
    }
    fclose(f);
    assert_null(model_pretokenizer_row_at(i));
}

static void unknown_name(void **state)
{
    (void)state;
    struct model_pretokenizer p;
    struct status_why why = {0};
    assert_int_equal(model_pretokenizer_init(&p, (struct base_string){"no\nsuch", 7}, &why),
                     STATUS_UNSUPPORTED);
    assert_null(strchr(why.text, '\n'));
    const struct model_pretokenizer_row *row;
    for (size_t i = 0; (row = model_pretokenizer_row_at(i)) != NULL; i++)
        assert_non_null(strstr(why.text, row->name));
    model_pretokenizer_free(&p);
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
    model_pretokenizer_run_free(&run);
    model_pretokenizer_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors),
        cmocka_unit_test(vectors_cover_the_table),
        cmocka_unit_test(unknown_name),
        cmocka_unit_test(callback_may_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The tokenizers against ids that another program made: the cases beside each vocabulary of
 * the reference material, those of pre-tokenisers, and whole texts by count and SHA-256. Skipped
 * where it is absent.
 */
#include "tests/harness/cmocka.h"
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/tokenizer/pretokenizer.h"
#include "model/tokenizer/tokenizer.h"

static const char folder[] = ASSAY_REFERENCE_DIR "/reference/tokenizers";

/** A whole file, with a NUL after it; the caller frees it. */
static char *slurp(const char *path, size_t *n_bytes)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("cannot open %s", path);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *n_bytes = (size_t)ftell(f);
    rewind(f);
    char *bytes = malloc(*n_bytes + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *n_bytes, f), *n_bytes);
    bytes[*n_bytes] = 0;
    fclose(f);
    return bytes;
}

struct opened {
    struct gguf_file *file;
    struct model_tokenizer *tokenizer;
};

/** pre: the pre-tokeniser in place of the file's, in llama.cpp's form; or NULL. */
static struct opened open_vocabulary(const char *path, const char *pre)
{
    struct opened o;
    struct status_why why = {0};
    if (gguf_open(&o.file, path, &why) ||
        model_tokenizer_open(&o.tokenizer, o.file, pre, pre != NULL, &why))
        fail_msg("%s", why.text);
    return o;
}

static void close_vocabulary(struct opened *o)
{
    model_tokenizer_close(o->tokenizer);
    gguf_close(o->file);
}

static void check_case(const struct opened *o, const char *text, size_t n_bytes, char **expected)
{
    struct model_tokens ids = {0};
    struct status_why why = {0};
    if (model_tokenize(o->tokenizer, text, n_bytes, true, &ids, &why))
        fail_msg("%s", why.text);
    for (size_t i = 0;; i++) {
        char *end;
        long id = strtol(*expected, &end, 10);
        bool more = end != *expected && memchr(*expected, '\n', (size_t)(end - *expected)) == NULL;
        if (!more && i == ids.n)
            break;
        if (!more || i >= ids.n || ids.ids[i] != id)
            fail_msg("text \"%.*s\": token %zu is %d of %zu; expected %ld", (int)n_bytes, text, i,
                     i < ids.n ? ids.ids[i] : -1, ids.n, more ? id : -1);
        *expected = end;
    }
    free(ids.ids);
}

/** Each case of a file of texts is followed by a separator; the file of ids has a line for each. */
static void check_cases(struct opened o, const char *texts_path, const char *ids_path, size_t n)
{
    static const char separator[] = "\n__ggml_vocab_test__\n";
    size_t n_texts, n_ids, n_cases = 0;
    char *texts = slurp(texts_path, &n_texts), *ids = slurp(ids_path, &n_ids);
    char *expected = ids, *line_end;
    for (char *text = texts, *end; (end = strstr(text, separator)) != NULL; n_cases++) {
        check_case(&o, text, (size_t)(end - text), &expected);
        line_end = strchr(expected, '\n');
        assert_non_null(line_end);
        expected = line_end + 1;
        text = end + strlen(separator);
    }
    assert_int_equal(n_cases, n);
    assert_int_equal(expected - ids, n_ids);
    free(texts);
    free(ids);
    close_vocabulary(&o);
}

static void cases_of_vocabularies(void **state)
{
    static const char *const names[] = {"llama-spm", "phi-3", "gpt-2", "llama-bpe"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512], texts[512], ids[512];
        snprintf(path, sizeof path, "%s/ggml-vocab-%s.gguf", folder, names[i]);
        snprintf(texts, sizeof texts, "%s/ggml-vocab-%s.gguf.inp", folder, names[i]);
        snprintf(ids, sizeof ids, "%s/ggml-vocab-%s.gguf.out", folder, names[i]);
        check_cases(open_vocabulary(path, NULL), texts, ids, 46);
    }
}

/** NAME.VOCABULARY.out: with that vocabulary and the pre-tokeniser NAME. */
static void cases_of_pretokenizers(void **state)
{
    static const char cases[] = ASSAY_REFERENCE_DIR "/reference/pretokenizers";
    static const char *const vocabularies[] = {"gpt-2", "llama-bpe"};
    const struct model_pretokenizer_row *row;
    size_t n = 0;
    (void)state;
    for (size_t i = 0; (row = model_pretokenizer_row_at(i)); i++)
        for (size_t k = 0; k < sizeof vocabularies / sizeof *vocabularies; k++) {
            char path[512], ids[512];
            snprintf(ids, sizeof ids, "%s/%s.%s.out", cases, row->name, vocabularies[k]);
            if (access(ids, R_OK) != 0)
                continue;
            print_message("%s with the vocabulary %s\n", row->name, vocabularies[k]);
            snprintf(path, sizeof path, "%s/ggml-vocab-%s.gguf", folder, vocabularies[k]);
            check_cases(open_vocabulary(path, row->name),
                        ASSAY_REFERENCE_DIR "/reference/pretokenizers/strings.inp", ids, 59);
            n++;
        }
    assert_int_equal(n, 56);
}

static void check_whole_text(const char *vocabulary, const char *text_name, size_t count,
                             const char *sha256)
{
    char path[512];
    snprintf(path, sizeof path, "%s/ggml-vocab-%s.gguf", folder, vocabulary);
    struct opened o = open_vocabulary(path, NULL);
    snprintf(path, sizeof path, "%s/text/%s", ASSAY_REFERENCE_DIR, text_name);
    size_t n_bytes;
    char *text = slurp(path, &n_bytes);
    struct model_tokens ids = {0};
    struct status_why why = {0};
    /* BOS is the caller's to add, and the sums include it. */
    ids.ids = malloc(sizeof *ids.ids);
    assert_non_null(ids.ids);
    ids.capacity = 1;
    if (model_adds_bos(o.tokenizer))
        ids.ids[ids.n++] = model_token_bos(o.tokenizer);
    if (model_tokenize(o.tokenizer, text, n_bytes, true, &ids, &why))
        fail_msg("%s", why.text);
    assert_int_equal(ids.n, count);
    unsigned char digest[SHA256_DIGEST_LENGTH];
    char hex[2 * SHA256_DIGEST_LENGTH + 1];
    SHA256((const unsigned char *)ids.ids, ids.n * sizeof *ids.ids, digest);
    for (int i = 0; i < SHA256_DIGEST_LENGTH; i++)
        snprintf(hex + 2 * (size_t)i, 3, "%02x", digest[i]);
    assert_string_equal(hex, sha256);
    free(ids.ids);
    free(text);
    close_vocabulary(&o);
}

static void whole_texts(void **state)
{
    (void)state;
    char path[512];
    snprintf(path, sizeof path, "%s/whole-texts.tsv", folder);
    size_t n_bytes, n_rows = 0;
    char *table = slurp(path, &n_bytes);
    char *line = strchr(table, '\n');
    assert_non_null(line);
    for (line++; *line; line = strchr(line, '\n') + 1, n_rows++) {
        char vocabulary[64], text[64], sha256[65];
        size_t count;
        assert_int_equal(sscanf(line, "%63s %63s %zu %64s", vocabulary, text, &count, sha256), 4);
        check_whole_text(vocabulary, text, count, sha256);
    }
    assert_true(n_rows > 0);
    free(table);
}

int main(void)
{
    FILE *there = fopen(ASSAY_REFERENCE_DIR "/reference/tokenizers/whole-texts.tsv", "rb");
    if (!there)
        return 77;
    fclose(there);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_of_vocabularies),
        cmocka_unit_test(cases_of_pretokenizers),
        cmocka_unit_test(whole_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

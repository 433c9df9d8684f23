/* Reading the text of an evaluation. Digests: `printf ... | sha256sum`. */
#include "base/content/text.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/temp.h"

static char folder[64], path[128];

static int setup(void **state)
{
    (void)state;
    temp_make(folder);
    temp_path(path, folder, "text");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

/** Only the last of several newlines goes; a carriage return stays. */
static void drops_one_final_newline(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        size_t n_bytes;
        bool dropped;
    } cases[] = {{"abc", 3, false}, {"abc\n", 3, true}, {"abc\n\n", 4, true}, {"abc\r\n", 4, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct base_text text;
        temp_write(path, cases[i].file, strlen(cases[i].file));
        assert_int_equal(base_text_read(&text, path, 100, NULL), STATUS_OK);
        assert_int_equal(text.n_bytes, cases[i].n_bytes);
        assert_int_equal(text.file_bytes, strlen(cases[i].file));
        assert_int_equal(text.newline_dropped, cases[i].dropped);
        assert_memory_equal(text.data, cases[i].file, cases[i].n_bytes);
        base_text_free(&text);
    }
}

/** The same file read whole, and the same bytes copied, keep their newline. */
static void keeps_the_final_newline(void **state)
{
    (void)state;
    struct base_text read, copied;
    temp_write(path, "abc\n\n", 5);
    assert_int_equal(base_text_read_whole(&read, path, 100, NULL), STATUS_OK);
    assert_int_equal(base_text_copy(&copied, "abc\n\n", 5, NULL), STATUS_OK);
    assert_int_equal(read.n_bytes, 5);
    assert_int_equal(copied.n_bytes, 5);
    assert_memory_equal(read.data, "abc\n\n", 5);
    assert_memory_equal(copied.data, "abc\n\n", 5);
    assert_false(read.newline_dropped || copied.newline_dropped);
    assert_string_equal(read.sha256, copied.sha256);
    base_text_free(&read);
    base_text_free(&copied);
    struct status_why why;
    assert_int_equal(base_text_copy(&copied, "", 0, &why), STATUS_FORMAT);
    assert_string_equal(why.text, "the text given: is empty (of 0 bytes)");
    base_text_free(&copied);
}

/** The digest is the file's, so that sha256sum agrees: printf 'abc\n' | sha256sum. */
static void hashes_the_file(void **state)
{
    (void)state;
    struct base_text text;
    temp_write(path, "abc\n", 4);
    assert_int_equal(base_text_read(&text, path, 100, NULL), STATUS_OK);
    assert_string_equal(text.sha256,
                        "edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb");
    base_text_free(&text);
}

static void keeps_any_bytes(void **state)
{
    (void)state;
    struct base_text text;
    static const char bytes[] = {'\0', '\xff', '\xc3', '\0', 'x'};
    temp_write(path, bytes, sizeof bytes);
    assert_int_equal(base_text_read(&text, path, 100, NULL), STATUS_OK);
    assert_int_equal(text.n_bytes, sizeof bytes);
    assert_memory_equal(text.data, bytes, sizeof bytes);
    base_text_free(&text);
}

/** Longer than the first buffer, with a period that is prime to the buffer sizes. */
static void reads_large_files(void **state)
{
    (void)state;
    size_t n = 300007;
    char *bytes = malloc(n);
    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(i % 251);
    temp_write(path, bytes, n);
    struct base_text text;
    assert_int_equal(base_text_read(&text, path, n, NULL), STATUS_OK);
    assert_int_equal(text.n_bytes, n);
    assert_memory_equal(text.data, bytes, n);
    base_text_free(&text);

    struct status_why why = {0};
    assert_int_equal(base_text_read(&text, path, n - 1, &why), STATUS_FORMAT);
    assert_non_null(strstr(why.text, "300006"));
    assert_null(text.data);
    free(bytes);
}

static void refuses_what_is_no_text(void **state)
{
    (void)state;
    struct base_text text;
    struct status_why why = {0};
    assert_int_equal(base_text_read(&text, folder, 100, &why), STATUS_IO);
    assert_non_null(strstr(why.text, "Is a directory"));
    assert_int_equal(base_text_read(&text, "/tmp/assay-no-such-file", 100, &why), STATUS_IO);
    assert_non_null(strstr(why.text, "/tmp/assay-no-such-file"));
    temp_write(path, "", 0);
    assert_int_equal(base_text_read(&text, path, 100, &why), STATUS_FORMAT);
    assert_non_null(strstr(why.text, "empty"));
    temp_write(path, "\n", 1);
    assert_int_equal(base_text_read(&text, path, 100, &why), STATUS_FORMAT);
    assert_int_equal(base_text_read(&text, "/dev/zero", BASE_TEXT_MAX_BYTES, &why), STATUS_FORMAT);
    assert_non_null(strstr(why.text, "all 0"));
}

/** UTF-16 with and without a mark, either way round; the digest and the size are the file's. */
static void converts_utf16(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *from, *text;
    } cases[] = {
        {"\xff\xfe"
         "a\0\xe9\0\n\0",
         8, "UTF-16LE", "a\xc3\xa9"},
        {"\xfe\xff\0a\0\n\0\n", 8, "UTF-16BE", "a\n"},
        {"a\0b\0", 4, "UTF-16LE", "ab"},
        {"\0a\0b\0\n", 6, "UTF-16BE", "ab"},
        {"plain\n", 6, NULL, "plain"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct base_text text;
        temp_write(path, cases[i].bytes, cases[i].n);
        assert_int_equal(base_text_read_utf8(&text, path, 100, "", NULL), STATUS_OK);
        assert_int_equal(text.n_bytes, strlen(cases[i].text));
        assert_memory_equal(text.data, cases[i].text, text.n_bytes);
        assert_int_equal(text.file_bytes, cases[i].n);
        assert_int_equal(text.converted_from != NULL, cases[i].from != NULL);
        if (cases[i].from)
            assert_string_equal(text.converted_from, cases[i].from);
        base_text_free(&text);
    }
    static const struct {
        const char *bytes;
        size_t n;
        const char *sentence;
    } refused[] = {
        {"\xff\xfe"
         "a\0b",
         5, "seems to be UTF-16LE, but byte 4 begins no character of it"},
        {"\xff\xfe\0\xd8", 4, "seems to be UTF-16LE, but byte 2 begins no character of it"},
        {"\xff\xfe\0\0a\0\0\0", 8, "seems to be UTF-32"},
        {"\x7f"
         "ELF\1\2\3\4",
         8, "seems to be binary"},
        {"GGUF\3\0\0\0", 8, "is a GGUF file, expected a text; "},
        {"\2\0\0\0\0\0\0\0{}", 10, "is a safetensors file, expected a text; "},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct base_text text;
        struct status_why why = {0};
        temp_write(path, refused[i].bytes, refused[i].n);
        assert_int_equal(base_text_read_utf8(&text, path, 100, "", &why), STATUS_FORMAT);
        if (!strstr(why.text, refused[i].sentence))
            fail_msg("%s", why.text);
    }
}

/** What nobody sees, and what is counted of it. */
static void finds_marks_and_line_ends(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t n, n_crlf;
        bool mark;
    } rows[] = {
        {"a\nb\n", 4, 0, false},
        {"a\r\nb\r\n", 6, 2, false},
        {"a\rb\n\rc\r\r\nd", 10, 1, false},
        {"\xef\xbb\xbf\r", 4, 1, true},
        {"\xef\xbb", 2, 0, false},
        {"a\xef\xbb\xbf", 4, 0, false},
        {"\xff\xfe\r\0\n\0a\0", 8, 1, false}, /* converted, without its mark */
        {"<html><p>\r\n", 11, 1, false},      /* a text, whatever is said of it */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct base_text text;
        temp_write(path, rows[i].bytes, rows[i].n);
        assert_int_equal(base_text_read_utf8(&text, path, 100, "", NULL), STATUS_OK);
        assert_int_equal(base_count_crlf(text.data, text.n_bytes), rows[i].n_crlf);
        assert_int_equal(base_text_has_mark(&text), rows[i].mark);
        base_text_free(&text);
    }
    assert_int_equal(base_count_crlf(NULL, 0), 0);
}

static void reads_standard_input(void **state)
{
    (void)state;
    int saved = dup(STDIN_FILENO);
    temp_write(path, "from a pipe\n", 12);
    assert_non_null(freopen(path, "r", stdin));
    struct base_text text;
    assert_int_equal(base_text_read(&text, "-", 100, NULL), STATUS_OK);
    assert_int_equal(text.n_bytes, 11);
    assert_memory_equal(text.data, "from a pipe", 11);
    base_text_free(&text);
    dup2(saved, STDIN_FILENO);
    close(saved);
}

/** Escapes as llama-perplexity's -e has them; what is none stays, also at the end. */
static void unescapes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"a\\nb\\r\\t\\'\\\"\\\\n", "a\nb\r\t'\"\\n"},
        {"\\x41\\xe9\\xE9z", "A\xe9\xe9z"},
        {"\\x4\\xg1\\x", "\\x4\\xg1\\x"},
        {"\\q \\", "\\q \\"},
        {"\\x4", "\\x4"},
        {"none", "none"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct base_text text;
        assert_int_equal(base_text_copy(&text, cases[i].text, strlen(cases[i].text), NULL),
                         STATUS_OK);
        base_text_unescape(&text);
        assert_int_equal(text.n_bytes, strlen(cases[i].expected));
        assert_memory_equal(text.data, cases[i].expected, text.n_bytes);
        base_text_free(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drops_one_final_newline), cmocka_unit_test(keeps_the_final_newline),
        cmocka_unit_test(hashes_the_file),         cmocka_unit_test(keeps_any_bytes),
        cmocka_unit_test(reads_large_files),       cmocka_unit_test(refuses_what_is_no_text),
        cmocka_unit_test(converts_utf16),          cmocka_unit_test(finds_marks_and_line_ends),
        cmocka_unit_test(reads_standard_input),    cmocka_unit_test(unescapes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

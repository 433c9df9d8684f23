/* base/content/kind.h: what files of the wrong kind are called, and that texts are none. */
#include "tests/harness/cmocka.h"
#include <string.h>

#include "base/content/kind.h"

#define BYTES(bytes)                                                                               \
    {                                                                                              \
        bytes, sizeof bytes - 1                                                                    \
    }

static void test_kinds(void **state)
{
    (void)state;
    static const struct {
        struct base_string bytes;
        const char *name;
    } rows[] = {
        {BYTES("version https://git-lfs.github.com/spec/v1\noid sha256:00\n"), "Git LFS pointer"},
        {BYTES("\x02\0\0\0\0\0\0\0{}"), "safetensors"},
        {BYTES("\x40\1\0\0\0\0\0\0{\"__metadata__\":{"), "safetensors"},
        {BYTES("PK\3\4\x14\0\x08\x08"), "ZIP"},
        {BYTES("\x80\2\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19."), "pickle"},
        {BYTES("\x80\4\x95\0\0"), "pickle"},
        {BYTES("<!DOCTYPE html>\n<html lang=\"en\">"), "HTML"},
        {BYTES("\xef\xbb\xbf \n<html>\n"), "HTML"},
        {BYTES("<HTML dir=ltr>"), "HTML"},
        {BYTES("GGUF\3\0\0\0"), "GGUF"},
        {BYTES("tjgg\3\0\0\0"), "GGML"},
        {BYTES("PAR1\x15\x04"), "Parquet"},
        {BYTES("%PDF-1.7\n"), "PDF"},
        {BYTES("\x1f\x8b\x08\0"), "gzip"},
        {BYTES("\x28\xb5\x2f\xfd\4"), "zstd"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct base_file_kind *kind = base_file_kind(rows[i].bytes);
        struct status_why why = {""};
        assert_non_null(kind);
        assert_non_null(strstr(kind->name, rows[i].name));
        assert_int_equal(kind->is_text, strcmp(rows[i].name, "HTML") == 0);
        assert_int_equal(base_file_check_kind(rows[i].bytes, "a text", &why), STATUS_FORMAT);
        assert_memory_equal(why.text, "is a", 4);
        assert_non_null(strstr(why.text, ", expected a text; "));
    }
}

/* Where no text was expected, texts with a form have names, too. */
static void test_texts(void **state)
{
    (void)state;
    static const struct {
        struct base_string bytes;
        const char *sentence; /* NULL: it has none */
    } rows[] = {
        {BYTES("{\n\t\"schema\":\t\"assay-kld\",\n"),
         "is a result that assay wrote, expected a model; assay table, compare and report read it"},
        {BYTES("{\"schema\": \"assay-sweep\", \"schema_version\": 1,"),
         "is a result of assay sweep, expected a model; assay recipe and report read it"},
        {BYTES("\r\n{\"architectures\": [\"X\"]}"),
         "is JSON, expected a model; a config.json lies"},
        {BYTES("[{\"a\" : 1}]"), "is JSON, expected a model; "},
        {BYTES("name,ppl\r\nQ4,1\r\n"), "is a table (CSV or TSV), expected a model; "},
        {BYTES("a\tb\tc\n1\t2\t3\n4"), "is a table (CSV or TSV), expected a model; "},
        {BYTES("PK\3\4\x14\0\x08\x08"), "is a ZIP archive"},
        {BYTES("name,ppl\n"), NULL},
        {BYTES("a, b\nand c, d, e\n"), NULL},
        {BYTES("a\1,b\nc,d\n"), NULL},
        {BYTES("{ a brace }"), NULL},
        {BYTES("words\nand words\n"), NULL},
        {BYTES(""), NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct status_why why = {""};
        enum status status = base_file_check_no_text(rows[i].bytes, "a model", &why);
        assert_int_equal(status, rows[i].sentence ? STATUS_FORMAT : STATUS_OK);
        if (rows[i].sentence)
            assert_memory_equal(why.text, rows[i].sentence, strlen(rows[i].sentence));
    }
}

static void test_others(void **state)
{
    (void)state;
    static const struct base_string rows[] = {
        BYTES(""),
        BYTES("version https://"),
        BYTES("version 1 of this text"),
        BYTES("PK is short for"),
        BYTES("GGUF is a format"),
        BYTES("GGUF\3\0\0"),
        BYTES("%PDF is"),
        BYTES("PAR1 is"),
        BYTES("<htmlx>"),
        BYTES("<html"),
        BYTES("<p>a part of a page</p>"),
        BYTES("\x80\2\0\0\x84\n\0\0"),         /* 640 choice tasks */
        BYTES("\x02\0\0\0\x0c\0\0\0\x2c\0{"),  /* 2 of them */
        BYTES("\1\0\0\0\0\0\0\0{"),            /* too short for an object */
        BYTES("\xff\xff\xff\xff\0\0\0\0{\"a"), /* longer than any header */
        BYTES("_logits_\0\2\0\0"),
        BYTES("{\"text\": \"a\"}"),
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_null(base_file_kind(rows[i]));
        assert_int_equal(base_file_check_kind(rows[i], "a text", NULL), STATUS_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_others),
    };
    return cmocka_run_group_tests_name("kind", tests, NULL, NULL);
}

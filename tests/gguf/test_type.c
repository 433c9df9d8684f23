/* The table of tensor types against the published sizes. */
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "gguf/type.h"

/* Bits per weight as people quote them: an independent way to state bytes per block. */
static const struct {
    const char *name;
    uint32_t id;
    uint32_t block_elems;
    double bits;
} published[] = {
    {"F32", 0, 1, 32},           {"F16", 1, 1, 16},
    {"BF16", 30, 1, 16},         {"Q4_0", 2, 32, 4.5},
    {"Q4_1", 3, 32, 5},          {"Q5_0", 6, 32, 5.5},
    {"Q5_1", 7, 32, 6},          {"Q8_0", 8, 32, 8.5},
    {"Q2_K", 10, 256, 2.625},    {"Q3_K", 11, 256, 3.4375},
    {"Q4_K", 12, 256, 4.5},      {"Q5_K", 13, 256, 5.5},
    {"Q6_K", 14, 256, 6.5625},   {"IQ2_XXS", 16, 256, 2.0625},
    {"IQ2_XS", 17, 256, 2.3125}, {"IQ3_XXS", 18, 256, 3.0625},
    {"IQ1_S", 19, 256, 1.5625},  {"IQ4_NL", 20, 32, 4.5},
    {"IQ3_S", 21, 256, 3.4375},  {"IQ2_S", 22, 256, 2.5625},
    {"IQ4_XS", 23, 256, 4.25},   {"IQ1_M", 29, 256, 1.75},
    {"TQ1_0", 34, 256, 1.6875},  {"TQ2_0", 35, 256, 2.0625},
    {"MXFP4", 39, 32, 4.25},     {"NVFP4", 40, 64, 4.5},
    {"Q1_0", 41, 128, 1.125},    {"Q2_0", 42, 64, 2.25},
};

enum { N_PUBLISHED = sizeof published / sizeof published[0] };

static void test_sizes(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_PUBLISHED; i++) {
        const struct gguf_type_info *info = gguf_type_info(published[i].id);
        assert_non_null(info);
        assert_string_equal(info->name, published[i].name);
        assert_int_equal(info->block_elems, published[i].block_elems);
        assert_true(info->block_bytes * 8.0 / info->block_elems == published[i].bits);
    }
}

static void test_walk(void **state)
{
    (void)state;
    size_t n = 0;
    for (; gguf_type_at(n); n++) {
        const struct gguf_type_info *info = gguf_type_at(n);
        assert_ptr_equal(gguf_type_info((uint32_t)info->type), info);
        assert_true(info->type < GGUF_TYPE_LIMIT);
    }
    assert_int_equal(n, N_PUBLISHED);
    assert_null(gguf_type_at(SIZE_MAX));
}

static void test_names_of_refused(void **state)
{
    (void)state;
    assert_string_equal(gguf_type_name(9), "Q8_1");
    assert_string_equal(gguf_type_name(15), "Q8_K");
    assert_string_equal(gguf_type_name(24), "I8");
    assert_string_equal(gguf_type_name(28), "F64");
    assert_string_equal(gguf_type_name(33), "Q4_0_8_8");
    assert_string_equal(gguf_type_name(12), "Q4_K");
    assert_string_equal(gguf_type_name(43), "unknown");
    assert_string_equal(gguf_type_name(UINT32_MAX), "unknown");
    assert_string_equal(gguf_type_name(139), "IQ4_K");
    for (uint32_t id = 0; id < 500; id++) {
        const struct gguf_type_info *listed = gguf_type_listed(id);
        assert_true(listed->name[0] != '\0' && listed->block_elems > 0);
        assert_true(listed == gguf_type_info(id) || !gguf_type_info(id));
        assert_true((uint32_t)listed->type == id || strcmp(listed->name, "unknown") == 0);
    }
    assert_null(gguf_type_info(9));
    assert_null(gguf_type_info(UINT32_MAX));
}

/* Against the list of the reference vectors, where they lie beside the checkout. */
static void test_reference_vectors(void **state)
{
    (void)state;
    FILE *list = fopen(ASSAY_REFERENCE_DIR "/format/vectors/MANIFEST.tsv", "r");
    if (!list)
        skip();
    char line[256], name[32];
    unsigned id, block_elems, block_bytes;
    size_t n = 0;
    while (fgets(line, sizeof line, list)) {
        if (sscanf(line, "%31s %u %u %u", name, &id, &block_elems, &block_bytes) != 4)
            continue; /* the heading */
        const struct gguf_type_info *info = gguf_type_info(id);
        assert_non_null(info);
        assert_int_equal(strcasecmp(info->name, name), 0);
        assert_int_equal(info->block_elems, block_elems);
        assert_int_equal(info->block_bytes, block_bytes);
        n++;
    }
    fclose(list);
    assert_int_equal(n, N_PUBLISHED - 1); /* F32 needs no vector */
}

/* The same for ik_llama.cpp's types: listed, not decoded, and of these sizes. */
static void test_listed(void **state)
{
    (void)state;
    FILE *list = fopen(ASSAY_REFERENCE_DIR "/format/vectors-ik/MANIFEST.tsv", "r");
    if (!list)
        skip();
    char line[256], name[32];
    unsigned id, block_elems, block_bytes, n_rows, n_cols;
    size_t n = 0;
    while (fgets(line, sizeof line, list)) {
        if (sscanf(line, "%31s %u %u %u %u %u", name, &id, &block_elems, &block_bytes, &n_rows,
                   &n_cols) != 6)
            continue; /* the heading */
        char path[256];
        struct stat blocks;
        snprintf(path, sizeof path, ASSAY_REFERENCE_DIR "/format/vectors-ik/%s.blocks", name);
        assert_int_equal(stat(path, &blocks), 0);
        const struct gguf_type_info *info = gguf_type_listed(id);
        assert_int_equal(strncasecmp(info->name, name, strlen(info->name)), 0);
        assert_int_equal(info->block_elems, block_elems);
        assert_int_equal(info->block_bytes, block_bytes);
        assert_int_equal(n_rows *
                             (info->row_prefix + n_cols / info->block_elems * info->block_bytes),
                         blocks.st_size);
        n++;
    }
    fclose(list);
    assert_true(n > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_names_of_refused),
        cmocka_unit_test(test_reference_vectors),
        cmocka_unit_test(test_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

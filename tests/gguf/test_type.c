/* The table of tensor types against the published sizes. */
#include "tests/harness/cmocka.h"
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "gguf/type.h"
#include "tests/harness/types.h"

/* Bits per weight as people quote them: an independent way to state bytes per block. */
static const struct {
    const char *name;
    uint32_t id;
    uint32_t block_elems;
    double bits;
} published[] = {
    {"F32", 0, 1, 32},
    {"F16", 1, 1, 16},
    {"BF16", 30, 1, 16},
    {"Q4_0", 2, 32, 4.5},
    {"Q4_1", 3, 32, 5},
    {"Q5_0", 6, 32, 5.5},
    {"Q5_1", 7, 32, 6},
    {"Q8_0", 8, 32, 8.5},
    {"Q2_K", 10, 256, 2.625},
    {"Q3_K", 11, 256, 3.4375},
    {"Q4_K", 12, 256, 4.5},
    {"Q5_K", 13, 256, 5.5},
    {"Q6_K", 14, 256, 6.5625},
    {"IQ2_XXS", 16, 256, 2.0625},
    {"IQ2_XS", 17, 256, 2.3125},
    {"IQ3_XXS", 18, 256, 3.0625},
    {"IQ1_S", 19, 256, 1.5625},
    {"IQ4_NL", 20, 32, 4.5},
    {"IQ3_S", 21, 256, 3.4375},
    {"IQ2_S", 22, 256, 2.5625},
    {"IQ4_XS", 23, 256, 4.25},
    {"IQ1_M", 29, 256, 1.75},
    {"TQ1_0", 34, 256, 1.6875},
    {"TQ2_0", 35, 256, 2.0625},
    {"I2_S", 36, 128, 2},
    {"MXFP4", 39, 32, 4.25},
    {"NVFP4", 40, 64, 4.5},
    {"Q1_0", 41, 128, 1.125},
    {"Q2_0", 42, 64, 2.25},
    {"Q6_0", 133, 32, 6.5},
    {"IQ1_BN", 134, 64, 1.625},
    {"IQ2_BN", 135, 64, 2},
    {"IQ2_K", 137, 256, 2.375},
    {"IQ3_K", 138, 256, 3.4375},
    {"IQ4_K", 139, 256, 4.5},
    {"IQ5_K", 140, 256, 5.5},
    {"IQ6_K", 141, 256, 6.625},
    {"IQ4_KS", 144, 256, 4.25},
    {"IQ2_KS", 145, 256, 2.1875},
    {"IQ4_KSS", 146, 256, 4},
    {"Q8_KV", 151, 32, 8},
    {"IQ5_KS", 152, 256, 5.25},
    {"IQ2_KT", 153, 256, 2.125},
    {"IQ3_KT", 154, 256, 3.125},
    {"IQ4_KT", 155, 256, 4},
    {"IQ3_KS", 156, 256, 3.1875},
    {"IQ2_KL", 157, 256, 2.6875},
    {"IQ1_KT", 158, 256, 1.75},
    {"F8_E4M3", 400, 32, 8},
    {"F8_E5M2", 401, 32, 8},
    {"MXFP4_APART", 402, 32, 4},
    {"NVFP4_APART", 403, 64, 4},
    {"INT4_APART", 406, 32, 4},
    {"INT8_APART", 407, 32, 8},
    {"INT4_VALUES", 408, 32, 4},
    {"INT8_VALUES", 409, 32, 8},
};

/* Those whose rows are stored together: as the type that they are named after, but for these. */
static const struct {
    const char *name;
    double bits;
} woven[] = {{"IQ1_S_R4", 1.5}, {"IQ1_M_R4", 1.75}, {"Q8_K_R8", 8.0625}, {"Q8_K_R16", 8.0625}};

enum { N_WOVEN = 30, N_LLAMA = 28 };
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
        assert_int_equal(info->bundle_rows, 1);
        assert_ptr_equal(gguf_type_named(info->name),
                         published[i].id < GGUF_FIRST_FOLDER ? info : NULL);
    }
    assert_ptr_equal(gguf_type_named("q4_k"), gguf_type_info(GGUF_TYPE_Q4_K));
    assert_null(gguf_type_named("Q8_K")); /* which no weight has */
    assert_null(gguf_type_named(""));
}

/* The bits per weight that a type of bundles should have. */
static double bits_of_woven(const char *name, size_t n_stem)
{
    for (size_t i = 0; i < sizeof woven / sizeof woven[0]; i++)
        if (strcmp(woven[i].name, name) == 0)
            return woven[i].bits;
    for (size_t i = 0; i < N_PUBLISHED; i++)
        if (strlen(published[i].name) == n_stem && strncmp(published[i].name, name, n_stem) == 0)
            return published[i].bits;
    return 0;
}

static void test_bundles(void **state)
{
    (void)state;
    const struct gguf_type_info *info;
    size_t n = 0;
    for (size_t i = 0; (info = type_at(i)); i++) {
        if (info->bundle_rows == 1)
            continue;
        const char *rows = strrchr(info->name, 'R');
        assert_int_equal(info->bundle_rows, strtol(rows + 1, NULL, 10));
        assert_true(info->bundle_rows <= GGUF_MAX_BUNDLE);
        assert_true(info->block_bytes * 8.0 / info->block_elems ==
                    bits_of_woven(info->name, (size_t)(rows - info->name) - 1));
        n++;
    }
    assert_int_equal(n, N_WOVEN);
}

static void test_row_bytes(void **state)
{
    (void)state;
    uint64_t n = 0;
    assert_true(gguf_row_bytes(gguf_type_info(GGUF_TYPE_IQ4_KS), 512, &n));
    assert_int_equal(n, 4 + 2 * 136);
    assert_true(gguf_row_bytes(gguf_type_info(GGUF_TYPE_IQ1_BN), 64, &n));
    assert_int_equal(n, 2 + 13);
    assert_true(gguf_row_bytes(gguf_type_info(GGUF_TYPE_BF16_R16), 6, &n));
    assert_int_equal(n, 12);
    assert_false(gguf_row_bytes(gguf_type_info(GGUF_TYPE_F32), UINT64_MAX / 2, &n));
}

static void test_walk(void **state)
{
    (void)state;
    size_t n = 0;
    for (; type_at(n); n++) {
        const struct gguf_type_info *info = type_at(n);
        assert_ptr_equal(gguf_type_info((uint32_t)info->type), info);
        assert_true(info->type < GGUF_TYPE_LIMIT);
    }
    assert_int_equal(n, N_PUBLISHED + N_WOVEN);
    assert_null(type_at(SIZE_MAX));
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
    assert_string_equal(gguf_type_name(36), "I2_S");
    assert_string_equal(gguf_type_name(66), "IQ1_XXXS");
    assert_string_equal(gguf_type_name(150), "Q8_K128");
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
    assert_int_equal(n, N_LLAMA - 1); /* F32 needs no vector */
}

/* ik_llama.cpp's types have a vector each, too. */
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
        assert_int_equal(info->block_elems * block_bytes, info->block_bytes * block_elems);
        uint64_t row_bytes;
        assert_true(gguf_row_bytes(info, n_cols, &row_bytes));
        assert_int_equal(n_rows * row_bytes, blocks.st_size);
        n++;
    }
    fclose(list);
    assert_true(n > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_bundles),
        cmocka_unit_test(test_row_bytes),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_names_of_refused),
        cmocka_unit_test(test_reference_vectors),
        cmocka_unit_test(test_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

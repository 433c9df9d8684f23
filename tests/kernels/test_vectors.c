/**
 * Every block format against vectors that were not made here: packed rows (NAME.blocks) and the
 * float32 values that they decode to (NAME.f32), listed in MANIFEST.tsv. Every ISA that this
 * processor has, to the bit, the sign of zero included.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/kernels.h"
#include "kernels/quant/rows.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"

#define VECTORS    ASSAY_SOURCE_DIR "/tests/data/vectors/"
#define VECTORS_IK ASSAY_SOURCE_DIR "/tests/data/vectors-ik/"
#define REFERENCE  ASSAY_REFERENCE_DIR "/format/vectors-ik/"

/** One row of the manifest. */
struct vector {
    const char *folder;
    char name[32];
    unsigned type, block_elems, block_bytes, rows, cols;
};

/** The whole file, which must have n_bytes; the caller frees it. */
static void *read_file(const struct vector *v, const char *extension, size_t n_bytes)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s.%s", v->folder, v->name, extension);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("cannot open %s", path);
    void *data = malloc(n_bytes + 1);
    assert_non_null(data);
    if (fread(data, 1, n_bytes + 1, file) != n_bytes)
        fail_msg("%s: expected %zu bytes", path, n_bytes);
    fclose(file);
    return data;
}

static void check_vector(const struct vector *v, kern_decode_fn *decode, const char *variant)
{
    size_t n = (size_t)v->rows * v->cols;
    uint64_t row_bytes;
    assert_true(gguf_row_bytes(gguf_type_info(v->type), v->cols, &row_bytes));
    uint8_t *blocks = read_file(v, "blocks", v->rows * row_bytes);
    float *expected = read_file(v, "f32", n * sizeof(float));
    const struct kern_rows rows = {(enum gguf_type)v->type, blocks, row_bytes};
    float *found = malloc(n * sizeof(float));
    assert_non_null(found);
    for (size_t row = 0; row < v->rows; row++)
        kern_rows_decode(&rows, decode, row, 0, v->cols, found + row * v->cols);
    size_t i = compare_bits(found, expected, n);
    if (i < n)
        fail_msg("%s %s: element %zu is %a, expected %a", v->name, variant, i, (double)found[i],
                 (double)expected[i]);
    free(blocks);
    free(expected);
    free(found);
}

/** What ik_llama.cpp's to_float makes of blocks that its matrix kernels take for something else. */
static bool is_to_float(const char *name)
{
    return strcmp(name, "iq6_k") == 0 || strcmp(name, "iq2_kt") == 0 || strcmp(name, "iq3_kt") == 0;
}

/** All sets of a folder; the number of them, 0 if it is not there. */
static unsigned check_folder(const char *folder)
{
    char path[512];
    snprintf(path, sizeof path, "%sMANIFEST.tsv", folder);
    FILE *manifest = fopen(path, "r");
    if (!manifest)
        return 0;
    char line[256];
    assert_non_null(fgets(line, sizeof line, manifest)); /* header */
    unsigned n_vectors = 0;
    while (fgets(line, sizeof line, manifest)) {
        struct vector v = {.folder = folder};
        assert_int_equal(sscanf(line, "%31s %u %u %u %u %u", v.name, &v.type, &v.block_elems,
                                &v.block_bytes, &v.rows, &v.cols),
                         6);
        if (!kern_quant_find((enum gguf_type)v.type))
            fail_msg("%s: type %u is not in the registry", v.name, v.type);
        if (is_to_float(v.name))
            continue;
        for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
            struct kern_kernels table;
            kern_kernels_build(&table, (enum kern_isa)isa);
            check_vector(&v, table.decode[v.type], kern_isa_name((enum kern_isa)isa));
        }
        n_vectors++;
    }
    fclose(manifest);
    return n_vectors;
}

static void test_vectors(void **state)
{
    (void)state;
    assert_int_equal(check_folder(VECTORS), 27);
    assert_int_equal(check_folder(VECTORS_IK), 49);
}

/** More rows of the same, where the reference material lies beside the checkout. */
static void test_reference(void **state)
{
    (void)state;
    unsigned n = check_folder(REFERENCE);
    if (n == 0)
        skip();
    assert_int_equal(n, 51);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors),
                                       cmocka_unit_test(test_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

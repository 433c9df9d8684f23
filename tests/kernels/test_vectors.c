/**
 * Every block format against vectors that were not made here: packed rows (NAME.blocks) and the
 * float32 values that they decode to (NAME.f32), listed in MANIFEST.tsv. Every ISA that this
 * processor has, to the bit, the sign of zero included.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/cpu/kernels.h"
#include "tests/harness/compare.h"

#define VECTORS ASSAY_SOURCE_DIR "/tests/data/vectors/"

/** One row of the manifest. */
struct vector {
    char name[32];
    unsigned type, block_elems, block_bytes, rows, cols;
};

/** The whole file, which must have n_bytes; the caller frees it. */
static void *read_file(const char *name, const char *extension, size_t n_bytes)
{
    char path[512];
    snprintf(path, sizeof path, VECTORS "%s.%s", name, extension);
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
    size_t row_bytes = (size_t)v->cols / v->block_elems * v->block_bytes;
    uint8_t *blocks = read_file(v->name, "blocks", v->rows * row_bytes);
    float *expected = read_file(v->name, "f32", n * sizeof(float));
    float *found = malloc(n * sizeof(float));
    assert_non_null(found);
    for (size_t row = 0; row < v->rows; row++)
        decode(blocks + row * row_bytes, found + row * v->cols, v->cols);
    size_t i = compare_bits(found, expected, n);
    if (i < n)
        fail_msg("%s %s: element %zu is %a, expected %a", v->name, variant, i, (double)found[i],
                 (double)expected[i]);
    free(blocks);
    free(expected);
    free(found);
}

static void test_vectors(void **state)
{
    (void)state;
    FILE *manifest = fopen(VECTORS "MANIFEST.tsv", "r");
    assert_non_null(manifest);
    char line[256];
    assert_non_null(fgets(line, sizeof line, manifest)); /* header */
    unsigned n_vectors = 0;
    while (fgets(line, sizeof line, manifest)) {
        struct vector v;
        assert_int_equal(sscanf(line, "%31s %u %u %u %u %u", v.name, &v.type, &v.block_elems,
                                &v.block_bytes, &v.rows, &v.cols),
                         6);
        const struct kern_quant *format = kern_quant_find((enum gguf_type)v.type);
        if (!format)
            fail_msg("%s: type %u is not in the registry", v.name, v.type);
        assert_int_equal(format->block_bytes, v.block_bytes);
        for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
            struct kern_kernels table;
            kern_kernels_build(&table, (enum kern_isa)isa);
            check_vector(&v, table.decode[v.type], kern_isa_name((enum kern_isa)isa));
        }
        n_vectors++;
    }
    fclose(manifest);
    assert_int_equal(n_vectors, 27);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_vectors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/**
 * The packed codebooks against the number tables of the reference material beside the checkout,
 * every entry. The vectors of test_vectors meet nearly all of them where there is no such material.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/quant/codebook_4bit.h"
#include "kernels/quant/codebook_iq1.h"
#include "kernels/quant/codebook_iq2.h"
#include "kernels/quant/codebook_iq3.h"
#include "kernels/quant/octet.h"
#include "tests/harness/cmocka.h"

#define CODEBOOKS ASSAY_REFERENCE_DIR "/format/codebooks/"

/** Read the numbers of a table: lines of an index, a tab, and `width` numbers. */
static void read_table(const char *name, size_t n_entries, size_t width, int *numbers)
{
    char path[512], line[256];
    snprintf(path, sizeof path, CODEBOOKS "%s.tsv", name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t i = 0;
    while (fgets(line, sizeof line, file)) {
        if (line[0] == '#')
            continue;
        assert_true(i < n_entries);
        char *cursor = line;
        assert_int_equal(strtol(cursor, &cursor, 10), i);
        for (size_t j = 0; j < width; j++)
            numbers[i * width + j] = (int)strtol(cursor, &cursor, 10);
        i++;
    }
    fclose(file);
    assert_int_equal(i, n_entries);
}

/** Value of a code: values[code], an array of bytes. */
static void check_codes(const char *name, const uint16_t *codes, size_t n_entries, unsigned width,
                        const uint8_t *values)
{
    int *numbers = malloc(n_entries * width * sizeof *numbers);
    assert_non_null(numbers);
    read_table(name, n_entries, width, numbers);
    unsigned bits = width == 8 ? 2 : 3;
    for (size_t i = 0; i < n_entries; i++)
        for (unsigned j = 0; j < width; j++)
            assert_int_equal((int8_t)values[codes[i] >> bits * j & ((1u << bits) - 1)],
                             numbers[i * width + j]);
    free(numbers);
}

static void test_codes(void **state)
{
    (void)state;
    static const uint8_t ternary[4] = {0xff, 0, 1, 2};
    check_codes("iq1_s", kern_iq1_codes, 2048, 8, ternary);
    check_codes("iq2_xxs", kern_iq2_xxs_codes, 256, 8, kern_iq2_values);
    check_codes("iq2_xs", kern_iq2_xs_codes, 512, 8, kern_iq2_values);
    check_codes("iq2_s", kern_iq2_s_codes, 1024, 8, kern_iq2_values);
    check_codes("iq3_xxs", kern_iq3_xxs_codes, 256, 4, kern_iq3_xxs_values);
    check_codes("iq3_s", kern_iq3_s_codes, 512, 4, kern_iq3_s_values);
}

static void test_values(void **state)
{
    (void)state;
    int numbers[128];
    read_table("iq4_nl", 16, 1, numbers);
    for (int i = 0; i < 16; i++)
        assert_int_equal(kern_iq4_values[i], numbers[i]);
    read_table("fp4_e2m1_doubled", 16, 1, numbers);
    for (int i = 0; i < 16; i++)
        assert_int_equal(kern_fp4_values[i], numbers[i]);
    read_table("signs7", 128, 1, numbers);
    for (uint32_t i = 0; i < 128; i++)
        assert_int_equal(kern_sign_byte(i), numbers[i]);
}

int main(void)
{
    if (access(CODEBOOKS, R_OK) != 0)
        return 77; /* reported as skipped */
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_codes), cmocka_unit_test(test_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

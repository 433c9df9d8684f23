/**
 * Every ISA's decoder of every block format against the scalar one, to the bit: random bits, all
 * zeros, all ones, scales that are NaN, infinite, subnormal or -0, rows of one to several blocks,
 * inputs and outputs at odd addresses and with an inaccessible page right after them.
 * ASSAY_TEST_SEED repeats a run.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/kernels.h"
#include "kernels/quant/f16.h"
#include "kernels/quant/rows.h"
#include "tests/harness/blocks.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/guard.h"
#include "tests/harness/types.h"

/** A decoder under test, and what the message of a failure says about it. */
struct subject {
    const struct gguf_type_info *type;
    const struct kern_quant *format;
    kern_decode_fn *reference;
    kern_decode_fn *decode;
    const char *isa;
};

/** One row to decode. */
struct row_case {
    size_t n; /* elements */
    enum blocks_fill fill;
    size_t input_slack;  /* bytes between the row and the inaccessible page */
    size_t output_slack; /* floats */
};

static void check_row(const struct subject *s, const struct row_case *c, struct rng *r)
{
    size_t n_bytes = kern_quant_bytes(s->format, c->n);
    struct guard input = guard_open(n_bytes, c->input_slack);
    struct guard output = guard_open(c->n * sizeof(float), c->output_slack * sizeof(float));
    float *expected = malloc(c->n * sizeof(float) + 1);
    uint8_t *copy = malloc(n_bytes + 1);
    assert_true(expected && copy);
    blocks_fill(r, c->fill, input.data, n_bytes);
    memcpy(copy, input.data, n_bytes);
    s->reference(copy, expected, c->n);
    s->decode(input.data, (float *)(void *)output.data, c->n);

    size_t i = compare_bits((const float *)(const void *)output.data, expected, c->n);
    if (i < c->n)
        fail_msg("%s %s: element %zu of %zu is %08x, expected %08x (fill %d)", s->type->name,
                 s->isa, i, c->n, compare_float_bits(((const float *)(const void *)output.data)[i]),
                 compare_float_bits(expected[i]), (int)c->fill);
    if (memcmp(copy, input.data, n_bytes) != 0 || !guard_intact(&input) || !guard_intact(&output))
        fail_msg("%s %s: wrote outside its output (%zu elements)", s->type->name, s->isa, c->n);
    free(expected);
    free(copy);
    guard_close(&input);
    guard_close(&output);
}

/** Short rows of every length under all conditions, then long ones that meet every code. */
static void check_subject(const struct subject *s, struct rng *r)
{
    static const size_t input_slacks[] = {0, 1, 3};
    static const size_t output_slacks[] = {0, 1, 3};
    size_t elems = s->format->block_elems;
    size_t n_lengths = elems == 1 ? 70 : 6;
    for (size_t blocks = 0; blocks <= n_lengths; blocks++)
        for (int fill = 0; fill < BLOCKS_FILLS; fill++)
            for (size_t i = 0; i < 3; i++) {
                struct row_case c = {blocks * elems, (enum blocks_fill)fill, input_slacks[i],
                                     output_slacks[rng_below(r, 3)]};
                check_row(s, &c, r);
            }
    for (int i = 0; i < 8; i++) {
        struct row_case c = {1 << 16, i % 2 == 0 ? BLOCKS_RANDOM : BLOCKS_SPECIAL, 0, 0};
        check_row(s, &c, r);
    }
}

static void test_all_variants(void **state)
{
    (void)state;
    int top = (int)kern_isa_detect();
    printf("coverage: decoders of their own, by type and ISA\n%-10s", "");
    for (int isa = 0; isa <= top; isa++)
        printf("%-11s", kern_isa_name((enum kern_isa)isa));
    printf("\n");
    const struct kern_quant *format;
    for (size_t i = 0; (format = kern_quant_at(i)); i++) {
        struct subject s = {
            .type = gguf_type_info(format->type), .format = format, .reference = format->decode};
        assert_non_null(s.type);
        if (format->plain != format->type &&
            format->decode == kern_quant_find(format->plain)->decode)
            continue; /* decoded as another, whose turn it is too */
        printf("%-10s", s.type->name);
        for (int isa = 0; isa <= top; isa++) {
            struct kern_kernels table;
            kern_kernels_build(&table, (enum kern_isa)isa);
            bool own = isa == 0 || table.decode[format->type] != s.decode;
            printf("%-11s", own ? "own" : "inherited");
            s.decode = table.decode[format->type];
            s.isa = kern_isa_name((enum kern_isa)isa);
            struct rng r = rng_open(rng_seed(), format->type * 8u + (unsigned)isa);
            if (own)
                check_subject(&s, &r);
        }
        printf("\n");
    }
}

/** The list and the reader's table of types speak of the same types and sizes. */
static void test_list_matches_reader(void **state)
{
    (void)state;
    const struct gguf_type_info *type;
    size_t n = 0;
    for (; (type = type_at(n)); n++) {
        const struct kern_quant *format = kern_quant_find(type->type);
        if (!format)
            fail_msg("%s can be read but not decoded", type->name);
        assert_true(type->bundle_rows > 1 ? format->unweave != NULL
                                          : !format->unweave || type->scale_elems > 0);
        assert_non_null(kern_quant_find(format->plain));
        /* in the blocks that are decoded there is room for the prefix, or what is used of it, or
         * for scales */
        size_t n_bytes = kern_quant_bytes(format, type->block_elems);
        size_t room = type->packed_bits   ? KERN_ROWS_WORK_BYTES * type->block_elems
                      : type->scale_elems ? 4
                                          : type->row_prefix;
        assert_in_range(n_bytes, type->block_bytes, type->block_bytes + room);
        if (kern_rows_are_copied(type->type))
            assert_in_range(n_bytes, 1, KERN_ROWS_WORK_BYTES * type->block_elems);
    }
    assert_non_null(kern_quant_at(n - 1));
    assert_null(kern_quant_at(n));
    assert_null(kern_quant_find((enum gguf_type)9));
}

/** All 65536 halves against their definition. */
static void test_halves(void **state)
{
    (void)state;
    for (uint32_t half = 0; half < 0x10000; half++) {
        int exponent = (int)(half >> 10 & 31);
        double mantissa = half & 0x3ff;
        double magnitude =
            exponent == 0 ? ldexp(mantissa, -24) : ldexp(mantissa + 1024, exponent - 25);
        if (exponent == 31)
            magnitude = mantissa == 0 ? (double)INFINITY : (double)NAN;
        float expected = (float)copysign(magnitude, (half & 0x8000) != 0 ? -1.0 : 1.0);
        float found = kern_half_to_float(half);
        assert_int_equal(compare_bits(&found, &expected, 1), 1);
    }
}

/** NVFP4 alone has a bit pattern that must not occur: a scale of 0xff. */
static void test_find_invalid(void **state)
{
    (void)state;
    const struct kern_quant *format;
    for (size_t i = 0; (format = kern_quant_at(i)); i++)
        assert_true((format->find_invalid != NULL) == (format->type == GGUF_TYPE_NVFP4));
    format = kern_quant_find(GGUF_TYPE_NVFP4);
    uint8_t blocks[3][36];
    memset(blocks, 0xff, sizeof blocks);
    for (size_t i = 0; i < 3; i++)
        memset(blocks[i], 0x7f, 4);
    assert_int_equal(format->find_invalid(blocks, 3), 3);
    blocks[1][3] = 0xff;
    assert_int_equal(format->find_invalid(blocks, 3), 1);
    assert_int_equal(format->find_invalid(blocks, 1), 1);
    blocks[0][0] = 0xff;
    assert_int_equal(format->find_invalid(blocks, 3), 0);
}

int main(void)
{
    rng_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list_matches_reader),
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_find_invalid),
        cmocka_unit_test(test_all_variants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

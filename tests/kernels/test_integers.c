/**
 * Quantised formats as integers times scales (kernels/quant/integers.h): for every format and every
 * ISA's decoder the integers are whole and small, and scale * integer + min has the bits that the
 * scalar decoder gives. Blocks of random bits, zeros, ones, and with halves that are NaN, infinite,
 * subnormal or zero. ASSAY_TEST_SEED repeats a run.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/cpu/kernels.h"
#include "kernels/quant/ik/trellis.h"
#include "kernels/quant/integer_list.h"
#include "kernels/quant/integers.h"
#include "tests/harness/blocks.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/guard.h"

enum { N = 4096, MAX_RUNS = N / 16 };

/** A row of a format, and what comes of it. */
struct row {
    const struct kern_integers *format;
    const char *name;
    struct guard blocks, copy, scales, mins, integers;
    struct guard straight[3]; /* integers, scales, minima */
    float y[N];
    int largest; /* of all integers so far */
};

static struct row *row_open(const struct kern_integers *format, unsigned bits)
{
    struct row *r = calloc(1, sizeof *r);
    assert_non_null(r);
    size_t n_bytes = N / format->block_elems * format->block_bytes;
    size_t n_runs = N / format->run, n_mins = format->min_run > 0 ? N / format->min_run : 0;
    r->format = format;
    r->name = gguf_type_info(format->type)->name;
    r->blocks = guard_open(n_bytes, 1);
    r->copy = guard_open(n_bytes, 3);
    r->scales = guard_open(n_runs * sizeof(float), 0);
    r->mins = guard_open(n_mins * sizeof(float), 0);
    r->integers = guard_open(N * sizeof(int16_t), 0);
    r->straight[0] = guard_open(N * (bits == 8 ? sizeof(int8_t) : sizeof(int16_t)), 0);
    r->straight[1] = guard_open(n_runs * sizeof(float), 4);
    r->straight[2] = guard_open(n_mins * sizeof(float), 4);
    return r;
}

static void row_close(struct row *r)
{
    struct guard *guards[] = {&r->blocks,   &r->copy,        &r->scales,      &r->mins,
                              &r->integers, &r->straight[0], &r->straight[1], &r->straight[2]};
    for (size_t i = 0; i < sizeof guards / sizeof guards[0]; i++) {
        assert_true(guard_intact(guards[i]));
        guard_close(guards[i]);
    }
    free(r);
}

static void *data(const struct guard *g)
{
    return g->data;
}

/** The neutral copy, decoded by `decode`, against the integers of the plain way. */
static void check_integers(struct row *r, kern_decode_fn *decode, const char *isa)
{
    const int16_t *integers = data(&r->integers);
    kern_integers_neutral(r->format, r->blocks.data, N, r->copy.data);
    decode(r->copy.data, r->y, N);
    blocks_integers(r->format, decode, r->blocks.data, N, data(&r->integers));
    for (size_t i = 0; i < N; i++)
        if (!(fabsf(r->y[i]) <= (float)r->format->largest && r->y[i] == (float)integers[i] &&
              (r->y[i] != KERN_INTEGER_LIMIT || r->format->run == 64)))
            fail_msg("%s %s: element %zu is %g, integer %d", r->name, isa, i, (double)r->y[i],
                     integers[i]);
    for (size_t i = 0; i < N; i++)
        r->largest = abs(integers[i]) > r->largest ? abs(integers[i]) : r->largest;
}

/** scale * integer + min against the scalar decoder. */
static void check_values(struct row *r)
{
    const struct kern_integers *format = r->format;
    const int16_t *integers = data(&r->integers);
    const float *scales = data(&r->scales), *mins = data(&r->mins);
    kern_integers_scales(format, r->blocks.data, N, data(&r->scales),
                         format->min_run > 0 ? data(&r->mins) : NULL);
    kern_quant_find(format->type)->decode(r->blocks.data, r->y, N);
    for (size_t i = 0; i < N; i++) {
        float value = scales[i / format->run] * (float)integers[i];
        if (format->min_run > 0)
            value += mins[i / format->min_run];
        bool any_zero =
            value == 0 && r->y[i] == 0 && (format->run == 64 || format->type == GGUF_TYPE_IQ3_KT);
        if (compare_bits(&value, &r->y[i], 1) != 1 && !any_zero)
            fail_msg("%s: element %zu is %a * %d + min = %a, expected %a", r->name, i,
                     (double)scales[i / format->run], integers[i], (double)value, (double)r->y[i]);
    }
}

/** What an ISA makes of the blocks straight, against the plain way. */
static void check_straight(struct row *r, kern_straight_fn *straight, unsigned bits,
                           const char *isa)
{
    const int8_t *bytes = data(&r->straight[0]);
    const int16_t *words = data(&r->straight[0]), *expected = data(&r->integers);
    straight(r->blocks.data, N, data(&r->straight[0]), data(&r->straight[1]),
             data(&r->straight[2]));
    for (size_t i = 0; i < N; i++) {
        int found = bits == 8 ? bytes[i] : words[i];
        if (found != expected[i])
            fail_msg("%s %s: integer %zu of %u bits is %d, expected %d", r->name, isa, i, bits,
                     found, expected[i]);
    }
    size_t n_runs = r->scales.n_bytes / sizeof(float), n_mins = r->mins.n_bytes / sizeof(float);
    assert_int_equal(compare_bits(data(&r->straight[1]), data(&r->scales), n_runs), n_runs);
    assert_int_equal(compare_bits(data(&r->straight[2]), data(&r->mins), n_mins), n_mins);
}

static bool is_trellis(enum gguf_type type)
{
    return type == GGUF_TYPE_IQ1_KT || type == GGUF_TYPE_IQ2_KT || type == GGUF_TYPE_IQ3_KT ||
           type == GGUF_TYPE_IQ4_KT;
}

static void check_format(const struct kern_integers *format, unsigned bits)
{
    struct rng rng = rng_open(rng_seed(), format->type);
    struct row *r = row_open(format, bits);
    for (int fill = 0; fill < 64; fill++) {
        blocks_fill(&rng, (enum blocks_fill)(fill % BLOCKS_FILLS), r->blocks.data,
                    r->blocks.n_bytes);
        for (int isa = (int)kern_isa_detect(); isa >= 0; isa--) {
            struct kern_kernels kernels;
            kern_kernels_build(&kernels, (enum kern_isa)isa);
            check_integers(r, kernels.decode[format->type], kern_isa_name((enum kern_isa)isa));
        }
        check_values(r);
        for (int isa = (int)kern_isa_detect(); isa >= 0; isa--) {
            struct kern_kernels kernels;
            kern_kernels_build(&kernels, (enum kern_isa)isa);
            kern_straight_fn *straight =
                (bits == 8 ? kernels.straight8 : kernels.straight16)[format->type];
            if (straight)
                check_straight(r, straight, bits, kern_isa_name((enum kern_isa)isa));
        }
    }
    if (!is_trellis(format->type)) /* whose largest number few starts have */
        assert_int_equal(r->largest, format->largest);
    row_close(r);
}

static void test_all_formats(void **state)
{
    (void)state;
    const struct kern_quant *quant;
    for (size_t i = 0; (quant = kern_quant_at(i)); i++) {
        const struct kern_integers *format = kern_integers_find(quant->type, 8);
        const struct kern_integers *wide = kern_integers_find(quant->type, 16);
        if (!format || quant->plain != quant->type)
            continue;
        check_format(format, 8);
        check_format(wide, 16);
    }
}

/** Every start of the KT types: none has a larger number than the list says, and one has it. */
static void test_trellis(void **state)
{
    (void)state;
    static const struct {
        enum gguf_type type;
        uint32_t n_starts;
        unsigned run;
    } types[] = {{GGUF_TYPE_IQ1_KT, 1 << 13, 8},
                 {GGUF_TYPE_IQ2_KT, 1 << 16, 8},
                 {GGUF_TYPE_IQ3_KT, 1 << 16, 8},
                 {GGUF_TYPE_IQ4_KT, 1 << 16, 4}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        float most = 0, y[8];
        for (uint32_t x = 0; x < types[i].n_starts; x++) {
            kern_trellis_run(x + KERN_TRELLIS_START, 1, types[i].run, y);
            for (unsigned j = 0; j < types[i].run; j++)
                most = fmaxf(most, fabsf(y[j]));
        }
        assert_true(most == (float)kern_integers_find(types[i].type, 8)->largest);
    }
}

/** Every type but the floats, of 8 bits too, has a row, which agrees with the reader's list of
 * types. */
static void test_list(void **state)
{
    (void)state;
    const struct kern_quant *quant;
    for (size_t i = 0; (quant = kern_quant_at(i)); i++) {
        const struct gguf_type_info *type = gguf_type_info(quant->type);
        for (unsigned bits = 8; bits <= 16; bits += 8) {
            const struct kern_integers *format = kern_integers_find(quant->type, bits);
            bool is_float = quant->block_elems == 1 || quant->type == GGUF_TYPE_F8_E4M3 ||
                            quant->type == GGUF_TYPE_F8_E5M2;
            if (is_float != (format == NULL))
                fail_msg("%s: %s as integers", type->name, format ? "listed" : "not listed");
            if (!format)
                continue;
            size_t run = format->run, min_run = format->min_run;
            assert_int_equal(format->type, quant->plain);
            assert_int_equal(format->block_bytes, quant->block_bytes);
            assert_int_equal(format->block_elems, quant->block_elems);
            assert_true(run == 16 || run == 32 || (run == 64 && bits == 16));
            assert_int_equal(type->block_elems % run, 0);
            assert_true(min_run == 0 || min_run == 16 || min_run == 32);
            assert_true(min_run == 0 || run % min_run == 0);
            assert_true(format->largest <= (run == 64 ? KERN_INTEGER_LONG : KERN_INTEGER_LIMIT));
        }
    }
    /* A run's sum with activations of 16 bits, its largest; and below it all of its terms. */
    assert_true(INT64_C(64) * KERN_INTEGER_WIDE * KERN_INT16_MAX <= INT32_MAX);
    assert_true(INT64_C(16) * KERN_INTEGER_LONG * KERN_INT16_LONG_MAX <= INT32_MAX);
    assert_true(KERN_INTEGER_WIDE + KERN_INT16_MAX <= INT16_MAX);
    assert_true(KERN_INTEGER_LONG + KERN_INT16_LONG_MAX <= INT16_MAX);
    assert_null(kern_integers_find((enum gguf_type)9, 8));
}

/** The numbers of one Q8_0 and one Q4_1 block, written out; 127 and -128 occur. */
static void test_by_hand(void **state)
{
    (void)state;
    uint8_t q8_0[34] = {0x00, 0xc0, 0x80, 0x7f, 0xff}; /* d = -2; -128, 127, -1, 0, ... */
    uint8_t q4_1[20] = {0x00, 0x38, 0x00, 0x42, 0xf1}; /* d = 0.5, m = 3; q 1 and 15 (element 16) */
    int16_t integers[32];
    float scale, min;
    const struct kern_integers *format = kern_integers_find(GGUF_TYPE_Q8_0, 8);
    blocks_integers(format, kern_quant_find(GGUF_TYPE_Q8_0)->decode, q8_0, 32, integers);
    kern_integers_scales(format, q8_0, 32, &scale, NULL);
    assert_true(scale == -2.0f && format->min_run == 0);
    assert_int_equal(integers[0], -128);
    assert_int_equal(integers[1], 127);
    assert_int_equal(integers[2], -1);
    assert_int_equal(integers[3], 0);
    format = kern_integers_find(GGUF_TYPE_Q4_1, 8);
    blocks_integers(format, kern_quant_find(GGUF_TYPE_Q4_1)->decode, q4_1, 32, integers);
    kern_integers_scales(format, q4_1, 32, &scale, &min);
    assert_true(scale == 0.5f && min == 3.0f && format->min_run == 32);
    assert_int_equal(integers[0], 1);
    assert_int_equal(integers[16], 15);
    assert_int_equal(integers[1], 0);
}

int main(void)
{
    rng_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_all_formats),
        cmocka_unit_test(test_trellis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

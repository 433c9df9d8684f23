/*
 * Recorded rows to and from lanes: the scalar kernels against the formula in double, every
 * ISA's variant against the scalar one, in buffers that end where the last record does.
 */
#include <stdlib.h>

#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/guard.h"
#include "tests/kernels/ops_variants.h"

/* Records of random codes; now and then a scale or floor that is not finite. */
static void fill_records(struct rng *r, uint16_t *records, size_t stride, size_t n)
{
    static const float wild[] = {0.0f, NAN, INFINITY, -INFINITY, 1e-44f, 3e38f};
    rng_bytes(r, records, n * stride * sizeof *records);
    for (size_t i = 0; i < n; i++) {
        float scale = rng_float(r, 0.0f, 16.0f / 65535.0f), floor = rng_float(r, -30.0f, -16.0f);
        if (rng_below(r, 6) == 0)
            scale = wild[rng_below(r, 6)];
        if (rng_below(r, 6) == 0)
            floor = wild[rng_below(r, 6)];
        memcpy(records + i * stride, &scale, sizeof scale);
        memcpy(records + i * stride + 2, &floor, sizeof floor);
    }
}

static void check_decoding(struct rng *r, int isa, size_t n_vocab, size_t n_rows)
{
    size_t stride = kern_record_codes(n_vocab);
    struct guard g = guard_open(n_rows * stride * sizeof(uint16_t), 0);
    uint16_t *records = (uint16_t *)(void *)g.data;
    fill_records(r, records, stride, n_rows);
    struct kern_code_rows rows;
    kern_code_rows_read(&rows, records, stride, n_rows);
    size_t first = rng_below(r, n_vocab), n = n_vocab - first;
    size_t out_stride = KERN_LANES + 3;
    float *logits = malloc(n * out_stride * sizeof *logits);
    struct kern_decoded out = {logits, out_stride, n, first};
    ops_variant(isa)->decode_codes(&rows, &out);
    for (size_t i = 0; i < n * KERN_LANES; i++) {
        size_t lane = i % KERN_LANES, token = first + i / KERN_LANES;
        const uint16_t *record = records + (lane < n_rows ? lane : 0) * stride;
        float scale, floor;
        memcpy(&scale, record, sizeof scale);
        memcpy(&floor, record + 2, sizeof floor);
        /* Exact in double but for the addition, whose error is far below half a float's unit:
         * the two roundings can only differ from one where they are tied. */
        float expected = (float)((double)scale * (double)record[4 + token] + (double)floor);
        float found = logits[i / KERN_LANES * out_stride + lane];
        assert_true(compare_ulps(found, expected) <= 1);
        float single = kern_code_log_prob(record, token);
        assert_int_equal(compare_bits(&found, &single, 1), 1);
    }
    free(logits);
    guard_close(&g);
}

static void test_decoding(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 1);
    for (int isa = KERN_ISA_SCALAR; isa < KERN_ISA_COUNT; isa++) {
        for (size_t n_vocab = 1; n_vocab <= 60 && ops_variant(isa); n_vocab++) {
            check_decoding(&r, isa, n_vocab, 1 + n_vocab % KERN_LANES);
            check_decoding(&r, isa, n_vocab, KERN_LANES);
        }
    }
}

/* The definition: in double, halves to even. */
static uint16_t code_of(float logit, float scale, float floor)
{
    if (!(logit > floor) || scale == 0.0f)
        return 0;
    double code = rint(((double)logit - (double)floor) / (double)scale);
    return (uint16_t)(code < 65535.0 ? code : 65535.0);
}

static void check_encoding(struct rng *r, int isa, size_t n_vocab, size_t n_rows, bool wild)
{
    size_t codes_stride = n_vocab + 1;
    struct guard g = guard_open(n_rows * codes_stride * sizeof(uint16_t), 0);
    uint16_t *codes = (uint16_t *)(void *)g.data;
    float *logits = malloc(n_vocab * KERN_LANES * sizeof *logits);
    (wild ? fill_wild : fill_normal)(r, logits, n_vocab * KERN_LANES, 5.0f);
    struct kern_encoded_rows rows = {.n_lanes = n_rows};
    static const float scales[] = {0.0f, 1e-45f, 0x1p-12f, 16.0f / 65535.0f};
    for (size_t lane = 0; lane < KERN_LANES; lane++) {
        rows.codes[lane] = lane < n_rows ? codes + lane * codes_stride + 1 : NULL;
        rows.scale[lane] = scales[rng_below(r, 4)];
        rows.floor[lane] = rng_float(r, -8.0f, 3.0f);
        if (rows.scale[lane] == 0x1p-12f) { /* ties: logits in halves of the scale */
            rows.floor[lane] = -4.0f;
            for (size_t i = 0; i < n_vocab; i++)
                logits[i * KERN_LANES + lane] = (float)rng_below(r, 1 << 16) * 0x1p-13f - 4.0f;
        }
    }
    size_t half = n_vocab / 2;
    struct kern_logit_tile low = {logits, KERN_LANES, half, 0};
    struct kern_logit_tile high = {logits + half * KERN_LANES, KERN_LANES, n_vocab - half,
                                   (int32_t)half};
    ops_variant(isa)->encode_codes(&rows, &low);
    ops_variant(isa)->encode_codes(&rows, &high);
    for (size_t i = 0; i < n_vocab; i++) {
        for (size_t lane = 0; lane < n_rows; lane++)
            assert_int_equal(rows.codes[lane][i], code_of(logits[i * KERN_LANES + lane],
                                                          rows.scale[lane], rows.floor[lane]));
    }
    for (size_t lane = 0; lane < n_rows; lane++)
        assert_int_equal(codes[lane * codes_stride], 0xa5a5); /* what lies between the rows */
    assert_true(guard_intact(&g));
    free(logits);
    guard_close(&g);
}

static void test_encoding(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 2);
    for (int isa = KERN_ISA_SCALAR; isa < KERN_ISA_COUNT; isa++) {
        for (size_t n_vocab = 1; n_vocab <= 60 && ops_variant(isa); n_vocab++) {
            check_encoding(&r, isa, n_vocab, 1 + n_vocab % KERN_LANES, false);
            check_encoding(&r, isa, n_vocab, KERN_LANES, true);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decoding),
        cmocka_unit_test(test_encoding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Numbers into blocks (kernels/quant/pack.h) and what a cache holds of them
 * (kernels/quant/round.h): the bytes that another program makes, no more than half a step away, and
 * numbers that no block can hold.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "kernels/quant/round.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/rng.h"
#include "tests/kernels/nearest_small.h"
#include "tests/kernels/pack_vectors.h"

enum { N_BLOCKS = 12, N = N_BLOCKS * KERN_PACK_ELEMS, MAX_BYTES = 34 };

/** Ordinary numbers of several sizes, one that sticks out, two values, zeros, one value, even
 * steps, and numbers far from zero. */
static void fill(float *x)
{
    uint32_t s = 1;
    for (int b = 0; b < N_BLOCKS; b++)
        for (int j = 0; j < KERN_PACK_ELEMS; j++) {
            s = s * 1664525u + 1013904223u;
            int32_t signed_bits = (int32_t)(s >> 8) - (s >> 31 ? 1 << 24 : 0);
            float v = (float)signed_bits * 0x1p-23f;
            v = b > 0 ? v * (float)(1 << b) * 0x1p-5f : v;
            v = b == 3 && j == 17 ? v * 9 : v;
            v = b == 4 ? (j % 2 ? -1.5f : 1.5f) : v;
            v = b == 5 ? 0.0f : v;
            v = b == 6 ? -2.25f : v;
            v = b == 7 ? (float)(j - 16) * 0.25f : v;
            x[b * KERN_PACK_ELEMS + j] = b == 8 ? v + 100 : v;
        }
}

#define PACK(type, format)                                                                         \
    static size_t pack_##format(const float *x, void *to)                                          \
    {                                                                                              \
        struct kern_block_##format block;                                                          \
        kern_##format##_pack(x, &block);                                                           \
        memcpy(to, &block, sizeof block);                                                          \
        return sizeof block;                                                                       \
    }
PACK(Q8_0, q8_0)
PACK(Q4_0, q4_0)
PACK(Q4_1, q4_1)
PACK(IQ4_NL, iq4_nl)
PACK(Q5_0, q5_0)
PACK(Q5_1, q5_1)
PACK(Q6_0, q6_0)

static const struct {
    enum gguf_type type;
    size_t (*pack)(const float *x, void *to);
} formats[] = {
    {GGUF_TYPE_Q8_0, pack_q8_0},     {GGUF_TYPE_Q4_0, pack_q4_0}, {GGUF_TYPE_Q4_1, pack_q4_1},
    {GGUF_TYPE_IQ4_NL, pack_iq4_nl}, {GGUF_TYPE_Q5_0, pack_q5_0}, {GGUF_TYPE_Q5_1, pack_q5_1},
    {GGUF_TYPE_Q6_0, pack_q6_0},
};
enum { N_FORMATS = sizeof formats / sizeof *formats };

static void test_bytes_are_another_programs(void **state)
{
    (void)state;
    float x[N];
    fill(x);
    for (size_t f = 0; f < N_FORMATS; f++) {
        const struct pack_vector *v = &pack_vectors[f];
        assert_int_equal(strcasecmp(v->name, gguf_type_name(formats[f].type)), 0);
        const char *expected = v->digits;
        for (size_t b = 0; b < N_BLOCKS; b++) {
            uint8_t bytes[MAX_BYTES];
            size_t n = formats[f].pack(x + b * KERN_PACK_ELEMS, bytes);
            for (size_t i = 0; i < n; i++, expected += 2) {
                char found[3];
                snprintf(found, sizeof found, "%02x", bytes[i]);
                if (i >= 2 && formats[f].type == GGUF_TYPE_IQ4_NL && bytes[0] + bytes[1] == 0)
                    continue; /* codes of a scale 0 mean nothing, and are other ones there */
                if (memcmp(found, expected, 2) != 0)
                    fail_msg("%s, block %zu, byte %zu: %s, expected %.2s", v->name, b, i, found,
                             expected);
            }
        }
        assert_int_equal(*expected, '\0');
    }
}

/** The largest magnitude, or the range, is so many steps. */
static float steps_of(enum gguf_type type)
{
    switch (type) {
    case GGUF_TYPE_Q8_0:
        return 127;
    case GGUF_TYPE_Q4_0:
        return 8;
    case GGUF_TYPE_Q5_0:
        return 16;
    case GGUF_TYPE_Q4_1:
        return 15;
    case GGUF_TYPE_Q5_1:
        return 31;
    case GGUF_TYPE_Q6_0:
        return 32;
    default: /* IQ4_NL: its widest gap is 24 of 127, and the scale is moved by squares */
        return 127.0f / 48;
    }
}

static void test_rounding_is_near(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 1);
    for (int k = 0; k < 2000; k++)
        for (size_t f = 0; f < N_FORMATS; f++) {
            float x[KERN_PACK_ELEMS], y[KERN_PACK_ELEMS], low = 0, high = 0, most = 0;
            for (int j = 0; j < KERN_PACK_ELEMS; j++)
                x[j] = rng_normal(&r) * (1.0f + (float)k);
            memcpy(y, x, sizeof y);
            kern_round_numbers(formats[f].type, y, KERN_PACK_ELEMS);
            for (int j = 0; j < KERN_PACK_ELEMS; j++) {
                low = fminf(low, x[j]);
                high = fmaxf(high, x[j]);
                most = fmaxf(most, fabsf(x[j]));
            }
            bool above = formats[f].type == GGUF_TYPE_Q4_1 || formats[f].type == GGUF_TYPE_Q5_1;
            float step = (above ? high - low : most) / steps_of(formats[f].type);
            /* Half a step; a whole one at the end of the range that the codes do not reach, and
             * half of one more where 30 numbers that were rounded alike move Q6_0's scale (1.45
             * at worst); and what rounding scale and minimum to halves does to the largest code. */
            bool moved = formats[f].type == GGUF_TYPE_Q6_0;
            bool lopsided = formats[f].type == GGUF_TYPE_Q4_0 || formats[f].type == GGUF_TYPE_Q5_0;
            float most_off = step * (moved ? 1.5f : lopsided ? 1.0f : 0.5f) + most * 0x1p-9f;
            for (int j = 0; j < KERN_PACK_ELEMS; j++)
                if (!(fabsf(y[j] - x[j]) <= most_off))
                    fail_msg("%s: %g becomes %g, expected at most %g off",
                             gguf_type_name(formats[f].type), (double)x[j], (double)y[j],
                             (double)most_off);
        }
}

/** What has been rounded is rounded to itself by 16 bits; halves go to even. */
static void test_sixteen_bits(void **state)
{
    (void)state;
    const float x[] = {1.0f,     1.00048828125f, 1.00146484375f, 65519.0f,
                       65520.0f, 0x1p-25f,       -3.14159f};
    const float half[] = {1.0f, 1.0f, 1.001953125f, 65504.0f, INFINITY, 0.0f, -3.140625f};
    const float bf16[] = {1.0f, 1.0f, 1.0f, 65536.0f, 65536.0f, 0x1p-25f, -3.140625f};
    float y[7];
    memcpy(y, x, sizeof y);
    kern_round_numbers(GGUF_TYPE_F16, y, 7);
    assert_memory_equal(y, half, sizeof y);
    memcpy(y, x, sizeof y);
    kern_round_numbers(GGUF_TYPE_BF16, y, 7);
    assert_memory_equal(y, bf16, sizeof y);
    memcpy(y, x, sizeof y);
    kern_round_numbers(GGUF_TYPE_F32, y, 7);
    assert_memory_equal(y, x, sizeof y);
}

/** One number that is not finite is all of its block; what is too small is zero. */
static void test_no_numbers(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f};
    for (size_t f = 0; f < N_FORMATS; f++) {
        float x[KERN_PACK_ELEMS];
        for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
            memset(x, 0, sizeof x);
            x[5] = bad[k];
            x[6] = k < 3 ? 1.0f : -bad[k];
            kern_round_numbers(formats[f].type, x, KERN_PACK_ELEMS);
            for (int j = 0; j < KERN_PACK_ELEMS; j++)
                assert_false(isfinite(x[j]));
        }
        for (int j = 0; j < KERN_PACK_ELEMS; j++)
            x[j] = (float)(j - 9) * 1e-40f;
        kern_round_numbers(formats[f].type, x, KERN_PACK_ELEMS);
        for (int j = 0; j < KERN_PACK_ELEMS; j++)
            assert_true(fabsf(x[j]) <= 0.0f);
    }
}

static uint8_t byte_of(const char *digits)
{
    unsigned byte;
    assert_int_equal(sscanf(digits, "%2x", &byte), 1);
    return (uint8_t)byte;
}

/** Rows of q8_kv are what another program's scales and codes stand for. */
static void test_rows_are_another_programs(void **state)
{
    (void)state;
    enum { ROW = 4 * KERN_PACK_ELEMS };
    float x[N];
    fill(x);
    for (size_t r = 0; r < N / ROW; r++) {
        const char *digits = q8_kv_rows[r];
        uint8_t bytes[4];
        for (size_t i = 0; i < sizeof bytes; i++, digits += 2)
            bytes[i] = byte_of(digits);
        kern_round_q8_kv(x + r * ROW, ROW);
        for (size_t i = 0; i < ROW; i++, digits += 2) {
            float expected = kern_load_float(bytes) * (float)(int8_t)byte_of(digits);
            assert_true(x[r * ROW + i] == expected);
        }
    }
    float odd[ROW] = {1.0f, NAN};
    kern_round_q8_kv(odd, ROW);
    assert_true(isnan(odd[0]) && isnan(odd[ROW - 1]));
    memset(odd, 0, sizeof odd);
    odd[3] = 1e-40f;
    kern_round_q8_kv(odd, ROW);
    assert_true(odd[3] == 0 && odd[4] == 0);
}

static void test_eight_bits(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 2);
    for (int i = 0; i < 5000; i++) {
        double x = ldexp((double)rng_below(&r, 4096) - 2048, (int)rng_below(&r, 38) - 30);
        float y = (float)x;
        kern_round_numbers(GGUF_TYPE_F8_E5M2, &y, 1);
        assert_true((double)y == nearest_small(x, 2, 15, 123));
    }
    float y[] = {INFINITY, -70000.0f, 61440.0f, NAN};
    kern_round_numbers(GGUF_TYPE_F8_E5M2, y, 4);
    assert_true(y[0] == 57344 && y[1] == -57344 && y[2] == 57344 && isnan(y[3]));
    float z[] = {464.0f, -1.0625f, 0x1p-10f, NAN};
    kern_round_numbers(GGUF_TYPE_F8_E4M3, z, 4);
    assert_true(z[0] == 448 && z[1] == -1 && z[2] == 0 && isnan(z[3]));
}

/** A scale of each 16 numbers, and none where it would be 0. */
static void test_four_bits(void **state)
{
    (void)state;
    float x[KERN_PACK_ELEMS] = {6.0f, 0.3f, -2.4f, 5.1f};
    x[16] = 0.001f, x[17] = 0.0006f;
    kern_round_numbers(GGUF_TYPE_NVFP4, x, KERN_PACK_ELEMS);
    assert_true(x[0] == 6 && x[1] == 0.5f && x[2] == -2 && x[3] == 6);
    assert_true(x[16] == 0 && x[17] == 0);
    x[18] = 12.0f, x[19] = 1.0f;
    kern_round_numbers(GGUF_TYPE_NVFP4, x, KERN_PACK_ELEMS);
    assert_true(x[0] == 6 && x[18] == 12 && x[19] == 1);
    x[20] = INFINITY;
    kern_round_numbers(GGUF_TYPE_NVFP4, x, KERN_PACK_ELEMS);
    assert_true(x[0] == 6 && isnan(x[16]) && isnan(x[31]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_are_another_programs),
        cmocka_unit_test(test_rounding_is_near),
        cmocka_unit_test(test_sixteen_bits),
        cmocka_unit_test(test_no_numbers),
        cmocka_unit_test(test_rows_are_another_programs),
        cmocka_unit_test(test_eight_bits),
        cmocka_unit_test(test_four_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Activations in integers of 16 and 8 bits (kernels/cpu/gemm/rounded.h): the scalar kernels against
 * the definition in double, those of every ISA against the scalar ones to the bit. Buffers end at
 * inaccessible pages.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/kernels/rounded_kinds.h"

enum fill {
    FILL_NORMAL,
    FILL_ANY_BITS,
    FILL_RARE,    /* normal, one in a hundred NaN, infinite, denormal or zero */
    FILL_EXTREME, /* blocks of zeros, around the least, near FLT_MAX, of integers, of halves */
    FILLS
};

/** A block whose largest magnitude, -most or most, is at a random place. */
static void extreme_block(struct rng *r, float *x, size_t n)
{
    const float limit = (float)kind->largest;
    const float largest[] = {
        0,     KERN_ROUNDED_LEAST, 0x0.fffffep-100f, 0x1.000002p-100f, FLT_MAX, 0x1.fffffcp127f,
        limit, limit / 2.0f,       FLT_MIN};
    float most = largest[rng_below(r, sizeof largest / sizeof largest[0])];
    float step = most / limit;
    for (size_t i = 0; i < n; i++)
        x[i] = step * ((float)rng_below(r, (size_t)kind->largest) - limit / 2);
    x[rng_below(r, n)] = rng_below(r, 2) ? most : -most;
}

static void fill_tokens(struct rng *r, enum fill fill, float *x, size_t n)
{
    if (fill == FILL_ANY_BITS)
        rng_bytes(r, x, n * sizeof *x);
    for (size_t i = 0; i < n && fill != FILL_ANY_BITS; i++)
        x[i] = fill == FILL_RARE && rng_below(r, 100) == 0 ? rare_number(r) : rng_normal(r);
    for (size_t i = 0; i < n && fill == FILL_EXTREME; i += kind->block)
        extreme_block(r, x + i, base_min(n - i, kind->block));
}

static const int32_t *begins_at(const void *chunks, size_t i)
{
    const void *chunk = chunk_at(chunks, i);
    return kind->bytes ? ((const struct kern_int8_chunk *)chunk)->begins[0]
                       : ((const struct kern_int16_chunk *)chunk)->begins[0];
}

static void assert_same_chunk(const void *found, const void *expected, size_t n_k)
{
    size_t n_factors = sizeof(struct kern_rounded_factors) / sizeof(float);
    for (size_t k = 0; k < n_k; k++)
        for (size_t lane = 0; lane < TOKENS; lane++)
            if (own_integer_at(found, lane, k) != integer_at(expected, lane, k))
                fail_msg("%s: integer %zu of token %zu is %d, expected %d", variant->name, k, lane,
                         own_integer_at(found, lane, k), integer_at(expected, lane, k));
    for (size_t i = 0; i < n_k / COLUMNS; i++) {
        const float *a = (const void *)factors_at(found, i);
        const float *b = (const void *)factors_at(expected, i);
        size_t at = compare_bits(a, b, n_factors);
        if (at < n_factors)
            fail_msg("%s: factor %zu of chunk %zu is %a, expected %a", variant->name, at, i,
                     (double)a[at], (double)b[at]);
        if (!variant->word) /* where sums of pairs begin is of no use to them */
            assert_memory_equal(begins_at(found, i), begins_at(expected, i),
                                2 * TOKENS * sizeof(int32_t));
    }
}

static int draw_largest(struct rng *r)
{
    if (kind->bytes)
        return kind->largest - kern_rooms[rng_below(r, KERN_ROOMS)];
    return !has_words() && rng_below(r, 2) ? KERN_INT16_LONG_MAX : kind->largest;
}

/** The sum of a block's squares, which float32 rounds, where formats may be long. */
static void check_squares(const void *chunks, size_t lane, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += pow(own_integer_at(chunks, lane, i), 2);
    double found = (double)((const struct kern_int16_chunk *)chunks)->squares[lane];
    assert_true(fabs(found - sum) <= 0x1p-20 * sum);
}

static void check_pack(struct rng *r, enum fill fill, size_t n_lanes, size_t n_k)
{
    size_t stride = n_k + rng_below(r, 3) * (fill == FILL_EXTREME ? COLUMNS : 1);
    size_t n_x = n_lanes ? (n_lanes - 1) * stride + n_k : 0,
           n_out = n_k / COLUMNS * kind->chunk_bytes;
    struct guard g[] = {guard_open(n_x * sizeof(float), 4 * rng_below(r, 3)), guard_open(n_out, 0),
                        guard_open(n_out, 0)};
    fill_tokens(r, fill, data(&g[0]), n_x);
    struct kern_panel_pack op = {
        .x = data(&g[0]), .x_stride = stride, .n_lanes = n_lanes, .n_k = n_k, .out = data(&g[1])};
    int largest = draw_largest(r);
    pack(&kern_kernels_scalar, op, largest);
    op.out = data(&g[2]);
    pack(&kernels, op, largest);
    assert_same_chunk(data(&g[2]), data(&g[1]), n_k);
    for (size_t k = 0; largest == KERN_INT16_LONG_MAX && k < n_k; k += kind->block)
        for (size_t lane = 0; lane < TOKENS; lane++)
            check_squares(chunk_at(data(&g[2]), k / COLUMNS), lane, base_min(n_k - k, kind->block));
    guards_close(g, 3);
}

static void test_pack(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 1);
    for (size_t n_lanes = 0; n_lanes <= TOKENS; n_lanes++)
        for (int fill = 0; fill < FILLS; fill++)
            for (size_t n_k = COLUMNS; n_k <= 2 * MAX_BLOCK + COLUMNS; n_k += COLUMNS)
                check_pack(&r, (enum fill)fill, n_lanes, n_k);
}

/** A chunk's sums are those of its integers, of which none is beyond `largest`. */
static void check_sums(const void *chunk, size_t lane, int largest)
{
    int sums[2] = {0, 0};
    int64_t begins[2] = {0, 0};
    for (size_t i = 0; i < COLUMNS; i++) {
        int integer = integer_at(chunk, lane, i);
        assert_true(abs(integer) <= largest);
        sums[i / (COLUMNS / 2)] += integer;
        if (kind->bytes && i % 8 < 4 && i < 24)
            begins[i / (COLUMNS / 2)] -=
                (integer + KERN_INT8_OFFSET) * integer_at(chunk, lane, i + 4);
        if (!kind->bytes && i % 4 < 2 && i % 16 < 12)
            begins[i / (COLUMNS / 2)] -= (int64_t)integer * integer_at(chunk, lane, i + 2);
    }
    for (size_t i = 0; i < 2; i++)
        assert_true((uint32_t)begins_at(chunk, 0)[i * TOKENS + lane] == (uint32_t)begins[i]);
    const struct kern_rounded_factors *of = factors_at(chunk, 0);
    assert_true(of->sum[0][lane] == (float)sums[0]);
    assert_true(of->sum[1][lane] == (float)sums[1]);
    assert_true(of->sum[2][lane] == (float)(sums[0] + sums[1]));
}

/**
 * A packed block of n columns against the definition. A step is largest / 31743 or / 127. The
 * integer is off by half a step, the factor and its product with x by 2^-24 each of at most 31743
 * steps, and so is the scale: 0.5 + 3 * 31743 * 2^-24 < 0.506 steps, of 127 steps 0.50003.
 */
static void check_definition(const void *chunks, size_t lane, const float *x, size_t n, int largest)
{
    double most = 0;
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        finite = finite && isfinite(x[i]);
        most = fmax(most, fabs((double)x[i]));
    }
    bool any = finite && most >= (double)KERN_ROUNDED_LEAST;
    for (size_t i = 0; i < n; i++) {
        double scale = (double)factors_at(chunks, i / COLUMNS)->scale[lane];
        double expected = any ? most / largest : 0;
        assert_true(finite ? fabs(scale - expected) <= 0x1p-24 * scale : isnan(scale));
        double error = fabs((double)x[i] - scale * integer_at(chunks, lane, i));
        assert_true(!any || error <= (kind->bytes ? 0.50003 : 0.506) / largest * most);
    }
    for (size_t i = 0; i < n / COLUMNS; i++)
        check_sums(chunk_at(chunks, i), lane, any ? largest : 0);
}

static void test_pack_is_the_definition(void **state)
{
    (void)state;
    enum { LANES = 29, N_K = 3 * MAX_BLOCK + COLUMNS };
    static const float zeros[MAX_BLOCK];
    struct rng r = rng_open(rng_seed(), 2);
    float *x = malloc(LANES * N_K * sizeof *x);
    void *chunks = aligned_alloc(64, N_K / COLUMNS * kind->chunk_bytes);
    for (size_t round = 0; round < 100; round++) {
        for (size_t lane = 0; lane < LANES; lane++)
            fill_tokens(&r, (enum fill)(round % FILLS), x + lane * N_K, N_K);
        int largest = draw_largest(&r);
        pack(&kern_kernels_scalar,
             (struct kern_panel_pack){
                 .x = x, .x_stride = N_K, .n_lanes = LANES, .n_k = N_K, .out = chunks},
             largest);
        for (size_t k = 0; k < N_K; k += kind->block)
            for (size_t lane = 0; lane < TOKENS; lane++)
                check_definition(chunk_at(chunks, k / COLUMNS), lane,
                                 lane < LANES ? x + lane * N_K + k : zeros,
                                 base_min(N_K - k, kind->block), largest);
    }
    free(x);
    free(chunks);
}

int main(void)
{
    const struct CMUnitTest definition[] = {cmocka_unit_test(test_pack_is_the_definition)};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pack)};
    RUN_KINDS(definition, tests);
}

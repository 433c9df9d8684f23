/*
 * The host's model of the tensor cores' product, element by element against a plain product of
 * matrices whose fragments are laid out here as the PTX manual's formulas say; numbers in parts
 * and their products; reductions over quads. The device's own instructions are tested where they
 * are used, by test_cuda_attention.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernels/cuda/kernels/mma.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/rng.h"

enum { M = 16, N = 8, K = 16 };

struct matrices {
    float a[M][K], b[K][N], c[M][N];
};

struct fragments {
    struct kern_mma_a a[KERN_WARP];
    struct kern_mma_b b[KERN_WARP];
    struct kern_mma_c c[KERN_WARP];
};

/** The upper half of a float's bits: exact for what these tests put in. */
static uint32_t bf16_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    assert_int_equal(bits & 0xffff, 0);
    return bits >> 16;
}

/* PTX ISA, mma.m16n8k16 with .bf16: groupID and threadID_in_group of a lane, element i. */
static unsigned a_row(unsigned lane, unsigned i)
{
    return i < 2 || (i >= 4 && i < 6) ? lane >> 2 : (lane >> 2) + 8;
}

static unsigned a_column(unsigned lane, unsigned i)
{
    return (lane % 4) * 2 + (i & 1) + (i < 4 ? 0 : 8);
}

static unsigned b_row(unsigned lane, unsigned i)
{
    return (lane % 4) * 2 + (i & 1) + (i < 2 ? 0 : 8);
}

static unsigned c_row(unsigned lane, unsigned i)
{
    return i < 2 ? lane >> 2 : (lane >> 2) + 8;
}

static unsigned c_column(unsigned lane, unsigned i)
{
    return (lane % 4) * 2 + (i & 1);
}

static void lay_out(const struct matrices *m, struct fragments *f)
{
    memset(f, 0, sizeof *f);
    for (unsigned lane = 0; lane < KERN_WARP; lane++) {
        for (unsigned i = 0; i < 8; i++)
            f->a[lane].v[i / 2] |= bf16_bits(m->a[a_row(lane, i)][a_column(lane, i)])
                                   << 16 * (i % 2);
        for (unsigned i = 0; i < 4; i++) {
            f->b[lane].v[i / 2] |= bf16_bits(m->b[b_row(lane, i)][lane >> 2]) << 16 * (i % 2);
            f->c[lane].v[i] = m->c[c_row(lane, i)][c_column(lane, i)];
        }
    }
}

static void check_product(const struct matrices *m)
{
    struct fragments f;
    lay_out(m, &f);
    kern_mma_bf16(f.c, f.a, f.b);
    bool found[M][N] = {{false}};
    for (unsigned lane = 0; lane < KERN_WARP; lane++) {
        for (unsigned i = 0; i < 4; i++) {
            unsigned row = c_row(lane, i), column = c_column(lane, i);
            double sum = (double)m->c[row][column];
            for (unsigned k = 0; k < K; k++)
                sum += (double)m->a[row][k] * (double)m->b[k][column];
            assert_true((double)f.c[lane].v[i] == sum);
            found[row][column] = true;
        }
    }
    for (unsigned i = 0; i < M * N; i++)
        assert_true(found[i / N][i % N]);
}

/** Small integers: every sum is exact, in whatever order. */
static void test_product(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 1);
    for (int round = 0; round < 100; round++) {
        struct matrices m;
        for (unsigned i = 0; i < M * K; i++)
            m.a[i / K][i % K] = (float)rng_below(&r, 255) - 127;
        for (unsigned i = 0; i < K * N; i++)
            m.b[i / N][i % N] = (float)rng_below(&r, 255) - 127;
        for (unsigned i = 0; i < M * N; i++)
            m.c[i / N][i % N] = (float)rng_below(&r, 20001) - 10000;
        check_product(&m);
    }
}

/** One element of a and one of b at a time: where each goes, and that nothing else does. */
static void test_places(void **state)
{
    (void)state;
    for (unsigned row = 0; row < M; row++) {
        for (unsigned k = 0; k < K; k++) {
            struct matrices m = {0};
            m.a[row][k] = 3;
            for (unsigned i = 0; i < K * N; i++)
                m.b[i / N][i % N] = (float)i + 1;
            check_product(&m);
        }
    }
}

/** What n parts leave of x, which float64 holds. */
static double left_of(float x, unsigned n_parts)
{
    uint32_t parts[KERN_MAX_PARTS];
    double left = (double)x;
    kern_parts_of(x, -x, n_parts, parts);
    for (unsigned p = 0; p < n_parts; p++) {
        left -= (double)kern_float_from_bits(parts[p] << 16);
        /* That of -x is beside it; what is left of both may be 0. */
        assert_int_equal(parts[p] >> 16, parts[p] ? (parts[p] & 0xffff) ^ 0x8000 : 0);
    }
    return left;
}

static void test_parts(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 2);
    for (int round = 0; round < 100000; round++) {
        /* 24 bits below the last normal one: exponents from 2^-100 up. */
        float x = ldexpf(rng_float(&r, 1, 2), (int)rng_below(&r, 226) - 100);
        x = rng_below(&r, 2) ? x : -x;
        for (unsigned n = 1; n <= KERN_MAX_PARTS; n++)
            assert_true(fabs(left_of(x, n)) <= ldexp(fabs((double)x), -8 * (int)n));
    }
}

static void test_part_rounding(void **state)
{
    (void)state;
    static const struct {
        float x;
        uint16_t bits;
    } rows[] = {
        {1.0f, 0x3f80},        {0x1.01p0f, 0x3f80} /* ties to even */,
        {0x1.03p0f, 0x3f82},   {0x1.010002p0f, 0x3f81},
        {0x1.fep127f, 0x7f7f}, {0x1.fefffep127f, 0x7f7f},
        {0x1.ffp127f, 0x7f80}, {INFINITY, 0x7f80},
        {0x1p-126f, 0x0080},   {0x1p-133f, 0x0001},
        {0x1p-134f, 0x0000},   {NAN, 0x7fff},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t pair = kern_bf16_pair(rows[i].x, -rows[i].x);
        assert_int_equal(pair & 0xffff, rows[i].bits);
        uint16_t sign = isnan(rows[i].x) ? 0 : 0x8000; /* as the device: a NaN without a sign */
        assert_int_equal(pair >> 16, rows[i].bits | sign);
        assert_int_equal(kern_bf16_holds(rows[i].x), (rows[i].bits & 0x7f80) != 0x7f80);
        assert_int_equal(kern_bf16_holds(-rows[i].x), (rows[i].bits & 0x7f80) != 0x7f80);
    }
}

/** A tile a of random rows, its four numbers per lane and row half as the multiplication wants. */
static void store_a(float x[M][K], unsigned n_parts, struct kern_parts_a *a)
{
    for (unsigned lane = 0; lane < KERN_WARP; lane++) {
        for (unsigned i = 0; i < 8; i += 2) {
            uint32_t parts[KERN_MAX_PARTS];
            const float *at = &x[a_row(lane, i)][a_column(lane, i)];
            kern_parts_of(at[0], at[1], n_parts, parts);
            for (unsigned p = 0; p < n_parts; p++)
                a->part[p][lane].v[i / 2] = parts[p];
        }
    }
}

/**
 * Four tiles against float64. The parts leave (n + 1) 2^-8n of the sum of magnitudes; each of the
 * K times 1, 3 or 6 additions of float32 rounds once.
 */
static void test_parts_multiply(void **state)
{
    (void)state;
    enum { TILES = KERN_MMA_GROUP };
    struct rng r = rng_open(rng_seed(), 3);
    for (unsigned n = 1; n <= KERN_MAX_PARTS; n++) {
        float x[M][K], y[TILES][K][N];
        struct kern_parts_a a;
        struct kern_mma_b2 stored[TILES / 2 * KERN_MAX_PARTS * KERN_WARP];
        struct kern_parts_b b;
        struct kern_mma_c c[TILES][KERN_WARP_SLOTS];
        memset(c, 0, sizeof c);
        for (unsigned i = 0; i < M * K; i++)
            x[i / K][i % K] = rng_normal(&r);
        for (unsigned i = 0; i < TILES * K * N; i++)
            y[i / (K * N)][i / N % K][i % N] = rng_normal(&r);
        store_a(x, n, &a);
        for (unsigned i = 0; i < TILES / 2 * KERN_WARP; i++) {
            unsigned lane = i % KERN_WARP, pair = i / KERN_WARP;
            struct kern_vec4 columns[2];
            for (unsigned k = 0; k < 8; k++)
                columns[k / 4].v[k % 4] = y[2 * pair + k / 4][b_row(lane, k % 4)][lane >> 2];
            kern_parts_store_b(columns, n, stored + pair * n * KERN_WARP + lane);
        }
        const struct kern_parts_orders all = {n, 0, n};
        kern_parts_load_b(stored, TILES, all, &b);
        kern_parts_multiply(c, &a, &b, TILES, all);
        for (unsigned tile = 0; tile < TILES; tile += 2) {
            struct kern_mma_c two[2][KERN_WARP_SLOTS] = {0};
            kern_parts_load_b(stored + tile / 2 * n * KERN_WARP, 2, all, &b);
            kern_parts_multiply(two, &a, &b, 2, all);
            assert_memory_equal(two, c[tile], sizeof two);
        }
        for (unsigned i = 0; i < TILES * KERN_WARP * 4; i++) {
            unsigned tile = i / 4 / KERN_WARP, lane = i / 4 % KERN_WARP;
            double sum = 0, magnitude = 0;
            for (unsigned k = 0; k < K; k++) {
                double term =
                    (double)x[c_row(lane, i % 4)][k] * (double)y[tile][k][c_column(lane, i % 4)];
                sum += term;
                magnitude += fabs(term);
            }
            double bound = ldexp(n + 1, -8 * (int)n) + K * n * (n + 1) / 2 * 0x1p-24;
            assert_true(fabs((double)c[tile][lane].v[i % 4] - sum) <= bound * magnitude);
        }
    }
}

static void test_quads(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 4);
    float x[KERN_WARP], max[KERN_WARP], sum[KERN_WARP];
    for (unsigned i = 0; i < KERN_WARP; i++)
        x[i] = max[i] = sum[i] = i == 5 ? -INFINITY : rng_normal(&r);
    kern_quad_max(max);
    kern_quad_sum(sum);
    for (unsigned i = 0; i < KERN_WARP; i++) {
        const float *quad = x + i / 4 * 4;
        assert_true(max[i] == fmaxf(fmaxf(quad[0], quad[1]), fmaxf(quad[2], quad[3])));
        assert_true(sum[i] == (quad[0] + quad[1]) + (quad[2] + quad[3]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_product),        cmocka_unit_test(test_places),
        cmocka_unit_test(test_parts),          cmocka_unit_test(test_part_rounding),
        cmocka_unit_test(test_parts_multiply), cmocka_unit_test(test_quads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

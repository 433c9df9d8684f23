/*
 * Activations and products in 16-bit integers (kernels/cpu/gemm/int16.h): the scalar kernels
 * against the definition in double and long double, those of every ISA, with and without VNNI where
 * the processor has it, against the scalar ones to the bit. Buffers end at inaccessible pages.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arithmetic.h"
#include "kernels/cpu/kernels.h"
#include "tests/harness/compare.h"
#include "tests/harness/guard.h"
#include "tests/harness/rng.h"

enum {
    COLUMNS = KERN_INT16_COLUMNS,
    BLOCK = KERN_INT16_BLOCK,
    TOKENS = KERN_INT16_TOKENS,
    MAX_ROWS = 30
};

/** The kernels under test: an ISA's, and the tiles that VNNI changes. */
struct variant {
    const char *name;
    enum kern_isa isa;
    bool vnni;
    const struct kern_kernels *tiles;
};

static const struct variant variants[] = {
    {"scalar", KERN_ISA_SCALAR, false, &kern_kernels_scalar},
    {"avx2", KERN_ISA_AVX2, false, &kern_kernels_avx2},
    {"avx2 vnni", KERN_ISA_AVX2, true, &kern_kernels_avx2_vnni},
    {"avx512", KERN_ISA_AVX512, false, &kern_kernels_avx512},
    {"avx512 vnni", KERN_ISA_AVX512, true, &kern_kernels_avx512_vnni},
};

static struct kern_kernels kernels;
static const struct variant *variant;

static void *data(const struct guard *g)
{
    return g->data;
}

static void guards_close(struct guard *guards, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_true(guard_intact(&guards[i]));
        guard_close(&guards[i]);
    }
}

/* Packing. */

enum fill {
    FILL_NORMAL,
    FILL_ANY_BITS,
    FILL_RARE,    /* normal, one in a hundred NaN, infinite, denormal or zero */
    FILL_EXTREME, /* blocks of zeros, around KERN_INT16_LEAST, near FLT_MAX, of integers, of halves
                   */
    FILLS
};

static float rare_number(struct rng *r)
{
    static const float numbers[] = {NAN,       -NAN,       INFINITY, -INFINITY,
                                    0x1p-149f, -0x1p-130f, 0,        -0.0f};
    return numbers[rng_below(r, sizeof numbers / sizeof numbers[0])];
}

/** A block whose largest magnitude, -most or most, is at a random place. */
static void extreme_block(struct rng *r, float *x, size_t n)
{
    static const float largest[] = {
        0,       KERN_INT16_LEAST, 0x0.fffffep-100f, 0x1.000002p-100f,
        FLT_MAX, 0x1.fffffcp127f,  KERN_INT16_MAX,   KERN_INT16_MAX / 2.0f,
        FLT_MIN};
    float most = largest[rng_below(r, sizeof largest / sizeof largest[0])];
    float step = most / KERN_INT16_MAX;
    for (size_t i = 0; i < n; i++)
        x[i] = step * ((float)rng_below(r, KERN_INT16_MAX) - KERN_INT16_MAX / 2);
    x[rng_below(r, n)] = rng_below(r, 2) ? most : -most;
}

static void fill_tokens(struct rng *r, enum fill fill, float *x, size_t n)
{
    if (fill == FILL_ANY_BITS)
        rng_bytes(r, x, n * sizeof *x);
    for (size_t i = 0; i < n && fill != FILL_ANY_BITS; i++)
        x[i] = fill == FILL_RARE && rng_below(r, 100) == 0 ? rare_number(r) : rng_normal(r);
    for (size_t i = 0; i < n && fill == FILL_EXTREME; i += BLOCK)
        extreme_block(r, x + i, base_min(n - i, BLOCK));
}

static void assert_same_chunk(const struct kern_int16_chunk *found,
                              const struct kern_int16_chunk *expected, const char *what)
{
    const int16_t *a = &found->x[0][0][0][0], *b = &expected->x[0][0][0][0];
    for (size_t i = 0; i < sizeof found->x / sizeof *a; i++)
        if (a[i] != b[i])
            fail_msg("%s, %s: integer %zu is %d, expected %d", variant->name, what, i, a[i], b[i]);
    size_t i = compare_bits(found->scale, expected->scale, TOKENS);
    if (i < TOKENS)
        fail_msg("%s, %s: scale %zu is %a, expected %a", variant->name, what, i,
                 (double)found->scale[i], (double)expected->scale[i]);
    size_t n = sizeof found->sum / sizeof(float);
    i = compare_bits(found->sum[0], expected->sum[0], n);
    if (i < n)
        fail_msg("%s, %s: sum %zu is %a, expected %a", variant->name, what, i,
                 (double)found->sum[0][i], (double)expected->sum[0][i]);
}

static void check_pack(struct rng *r, enum fill fill, size_t n_lanes, size_t n_k)
{
    size_t stride = n_k + rng_below(r, 3) * (fill == FILL_EXTREME ? COLUMNS : 1);
    size_t n_x = n_lanes ? (n_lanes - 1) * stride + n_k : 0, n_chunks = n_k / COLUMNS;
    struct guard g[] = {guard_open(n_x * sizeof(float), 4 * rng_below(r, 3)),
                        guard_open(n_chunks * sizeof(struct kern_int16_chunk), 0),
                        guard_open(n_chunks * sizeof(struct kern_int16_chunk), 0)};
    fill_tokens(r, fill, data(&g[0]), n_x);
    struct kern_int16_panel op = {
        .x = data(&g[0]), .x_stride = stride, .n_lanes = n_lanes, .n_k = n_k, .out = data(&g[1])};
    kern_scalar_int16_pack(&op);
    op.out = data(&g[2]);
    kernels.int16_pack(&op);
    for (size_t i = 0; i < n_chunks; i++)
        assert_same_chunk((struct kern_int16_chunk *)data(&g[2]) + i,
                          (struct kern_int16_chunk *)data(&g[1]) + i, "int16_pack");
    guards_close(g, 3);
}

static void test_pack(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 1);
    for (size_t n_lanes = 0; n_lanes <= TOKENS; n_lanes++)
        for (int fill = 0; fill < FILLS; fill++)
            for (size_t n_k = COLUMNS; n_k <= 2 * BLOCK + COLUMNS; n_k += COLUMNS)
                check_pack(&r, (enum fill)fill, n_lanes, n_k);
}

/** The integer of column i of a token; chunks: those of a row. */
static int integer_at(const struct kern_int16_chunk *chunks, size_t lane, size_t i)
{
    return chunks[i / COLUMNS].x[lane / 16][i % COLUMNS / 2][lane % 16][i % 2];
}

/** A chunk's sums are those of its integers, of which `any` may be other than 0. */
static void check_sums(const struct kern_int16_chunk *chunk, size_t lane, bool any)
{
    int sums[2] = {0, 0};
    for (size_t i = 0; i < COLUMNS; i++) {
        int integer = integer_at(chunk, lane, i);
        assert_true(integer >= -KERN_INT16_MAX && (any || integer == 0));
        sums[i / (COLUMNS / 2)] += integer;
    }
    assert_true(chunk->sum[0][lane] == (float)sums[0]);
    assert_true(chunk->sum[1][lane] == (float)sums[1]);
    assert_true(chunk->sum[2][lane] == (float)(sums[0] + sums[1]));
}

/**
 * A packed block of n columns against the definition. A step is largest / 32767. The integer is off
 * by half a step, the factor and its product with x by 2^-24 each of at most 32767 steps, and so is
 * the scale: 0.5 + 3 * 32767 * 2^-24 < 0.506 steps.
 */
static void check_definition(const struct kern_int16_chunk *chunks, size_t lane, const float *x,
                             size_t n)
{
    double most = 0;
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        finite = finite && isfinite(x[i]);
        most = fmax(most, fabs((double)x[i]));
    }
    bool any = finite && most >= (double)KERN_INT16_LEAST;
    for (size_t i = 0; i < n; i++) {
        double scale = (double)chunks[i / COLUMNS].scale[lane];
        double expected = any ? most / KERN_INT16_MAX : 0;
        assert_true(finite ? fabs(scale - expected) <= 0x1p-24 * scale : isnan(scale));
        double error = fabs((double)x[i] - scale * integer_at(chunks, lane, i));
        assert_true(!any || error <= 0.506 / KERN_INT16_MAX * most);
    }
    for (size_t i = 0; i < n / COLUMNS; i++)
        check_sums(chunks + i, lane, any);
}

static void test_pack_is_the_definition(void **state)
{
    (void)state;
    enum { LANES = 29, N_K = 3 * BLOCK + COLUMNS };
    static const float zeros[BLOCK];
    struct rng r = rng_open(rng_seed(), 2);
    float *x = malloc(LANES * N_K * sizeof *x);
    struct kern_int16_chunk *chunks = aligned_alloc(64, N_K / COLUMNS * sizeof *chunks);
    for (size_t round = 0; round < 100; round++) {
        for (size_t lane = 0; lane < LANES; lane++)
            fill_tokens(&r, (enum fill)(round % FILLS), x + lane * N_K, N_K);
        kern_scalar_int16_pack(&(struct kern_int16_panel){
            .x = x, .x_stride = N_K, .n_lanes = LANES, .n_k = N_K, .out = chunks});
        for (size_t k = 0; k < N_K; k += BLOCK)
            for (size_t lane = 0; lane < TOKENS; lane++)
                check_definition(chunks + k / COLUMNS, lane,
                                 lane < LANES ? x + lane * N_K + k : zeros,
                                 base_min(N_K - k, BLOCK));
    }
    free(x);
    free(chunks);
}

/* Products. */

static const struct kern_integers *format_with(size_t run, bool has_min)
{
    static const enum gguf_type types[2][2] = {{GGUF_TYPE_Q6_K, GGUF_TYPE_Q2_K},
                                               {GGUF_TYPE_Q8_0, GGUF_TYPE_Q4_K}};
    const struct kern_integers *format = kern_integers_find(types[run == 32][has_min]);
    assert_true(format->run == run && format->has_min == has_min);
    return format;
}

enum operands { OPERANDS_RANDOM, OPERANDS_RARE, OPERANDS_WORST, OPERANDS };

/** One call, and what it reads and writes. */
struct product {
    struct guard w, x, before, expected, found;
    struct kern_fma_tile op;
};

static void fill_row(struct rng *r, enum operands kind, const struct product *p, size_t row)
{
    const struct kern_integers *format = p->op.format;
    float *w = (float *)data(&p->w) + row * p->op.w_row;
    int16_t *integers = (void *)w;
    size_t n_factors = p->op.n_k / format->run * (format->has_min ? 2 : 1);
    for (size_t i = 0; i < p->op.n_k; i++)
        integers[i] = kind == OPERANDS_WORST ? -KERN_INTEGER_LIMIT
                                             : (int16_t)(rng_below(r, 256) - KERN_INTEGER_LIMIT);
    for (size_t i = 0; i < n_factors; i++)
        w[p->op.n_k / 2 + i] = kind == OPERANDS_WORST                           ? 1.0f
                               : kind == OPERANDS_RARE && rng_below(r, 50) == 0 ? rare_number(r)
                                                                                : rng_normal(r);
}

static void fill_chunks(struct rng *r, enum operands kind, const struct product *p)
{
    size_t n = TOKENS * p->op.n_k;
    float *tokens = malloc(n * sizeof *tokens);
    fill_tokens(r, kind == OPERANDS_RARE ? FILL_RARE : FILL_NORMAL, tokens, n);
    for (size_t i = 0; kind == OPERANDS_WORST && i < n; i++)
        tokens[i] = -KERN_INT16_MAX; /* the scale is 1 */
    kern_scalar_int16_pack(&(struct kern_int16_panel){.x = tokens,
                                                      .x_stride = p->op.n_k,
                                                      .n_lanes = TOKENS,
                                                      .n_k = p->op.n_k,
                                                      .out = data(&p->x)});
    free(tokens);
}

static void product_open(struct product *p, struct rng *r, const struct kern_fma_tile *shape,
                         enum operands kind)
{
    const struct kern_integers *format = shape->format;
    size_t row = shape->n_k / 2 + shape->n_k / format->run * (format->has_min ? 2 : 1);
    size_t stride = row + rng_below(r, 3), n_acc = shape->n_rows * KERN_PANEL;
    size_t n_chunks = shape->n_k / COLUMNS;
    p->w = guard_open(((shape->n_rows - 1) * stride + row) * sizeof(float), 4 * rng_below(r, 3));
    p->x = guard_open(n_chunks * sizeof(struct kern_int16_chunk), 0);
    p->before = guard_open(n_acc * sizeof(float), 0);
    p->expected = guard_open(n_acc * sizeof(float), 0);
    p->found = guard_open(n_acc * sizeof(float), 0);
    p->op = *shape;
    p->op.w = data(&p->w);
    p->op.w_row = stride;
    p->op.x = data(&p->x);
    for (size_t i = 0; i < shape->n_rows; i++)
        fill_row(r, kind, p, i);
    fill_chunks(r, kind, p);
    for (size_t i = 0; i < n_acc; i++)
        ((float *)data(&p->before))[i] = rng_normal(r);
    memcpy(p->expected.data, p->before.data, p->before.n_bytes);
    memcpy(p->found.data, p->before.data, p->before.n_bytes);
    p->op.acc = data(&p->expected);
    kern_kernels_scalar.int16_tile(&p->op);
    p->op.acc = data(&p->found);
}

static void assert_found(const struct product *p, const char *what)
{
    size_t n = p->op.n_rows * KERN_PANEL;
    const float *found = data(&p->found), *expected = data(&p->expected);
    size_t i = compare_bits(found, expected, n);
    if (i < n)
        fail_msg("%s, %s, %zu rows, %zu columns, runs of %zu: row %zu, lane %zu is %a, expected %a",
                 variant->name, what, p->op.n_rows, p->op.n_k, p->op.format->run, i / KERN_PANEL,
                 i % KERN_PANEL, (double)found[i], (double)expected[i]);
}

static void product_close(struct product *p)
{
    guards_close((struct guard[]){p->w, p->x, p->before, p->expected, p->found}, 5);
}

/** Rows of any number, both runs, with minima and without; begun and gone on with. */
static void check_tile(struct rng *r, size_t n_rows, size_t n_k)
{
    for (unsigned i = 0; i < 4 * OPERANDS; i++) {
        struct product p;
        struct kern_fma_tile shape = {.n_rows = n_rows,
                                      .n_k = n_k,
                                      .resume = rng_below(r, 2),
                                      .format = format_with(i % 2 ? 32 : 16, i / 2 % 2)};
        product_open(&p, r, &shape, (enum operands)(i / 4));
        p.op.next_x = rng_below(r, 2) ? p.op.x : NULL;
        variant->tiles->int16_tile(&p.op);
        assert_found(&p, "int16_tile");
        product_close(&p);
    }
}

static void test_tile(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 3);
    for (size_t n_rows = 1; n_rows <= MAX_ROWS; n_rows++) {
        check_tile(&r, n_rows, COLUMNS);
        check_tile(&r, n_rows, COLUMNS * (1 + rng_below(&r, 15)));
    }
    check_tile(&r, 7, 512);
}

/** A product may be cut between any two blocks: the rows are then packed anew. */
static void test_resuming_changes_nothing(void **state)
{
    (void)state;
    enum { ROWS = 7, N_K = 4 * BLOCK + COLUMNS };
    struct rng r = rng_open(rng_seed(), 4);
    for (size_t cut = BLOCK; cut < N_K; cut += BLOCK) {
        struct product p;
        struct kern_fma_tile shape = {
            .n_rows = ROWS, .n_k = N_K, .format = format_with(cut / BLOCK % 2 ? 32 : 16, true)};
        product_open(&p, &r, &shape, OPERANDS_RANDOM);
        size_t run = shape.format->run, row = N_K / 2 + 2 * N_K / run, from = 0;
        float *w = malloc(ROWS * row * sizeof *w);
        for (size_t end = cut; from < N_K; from = end, end = N_K) {
            size_t n_k = end - from, n_runs = n_k / run;
            for (size_t i = 0; i < ROWS; i++) {
                const float *whole = p.op.w + i * p.op.w_row;
                float *part = w + i * row;
                memcpy(part, whole + from / 2, n_k / 2 * sizeof *w);
                whole += N_K / 2 + from / run;
                memcpy(part + n_k / 2, whole, n_runs * sizeof *w);
                memcpy(part + n_k / 2 + n_runs, whole + N_K / run, n_runs * sizeof *w);
            }
            struct kern_fma_tile op = p.op;
            op.w = w;
            op.w_row = row;
            op.x = (const void *)((const struct kern_int16_chunk *)data(&p.x) + from / COLUMNS);
            op.n_k = n_k;
            op.resume = from > 0;
            variant->tiles->int16_tile(&op);
        }
        assert_found(&p, "int16_tile in two pieces");
        free(w);
        product_close(&p);
    }
}

/**
 * One output against the definition without rounding. A sum is rounded once, a term is then in one
 * addition for each that follows it in its block, two with minima, and in one per block: each off
 * by 2^-24 of the sum of magnitudes at most.
 */
static void check_output(const struct product *p, size_t row, size_t lane)
{
    const struct kern_integers *format = p->op.format;
    const struct kern_int16_chunk *chunks = data(&p->x);
    const float *w = p->op.w + row * p->op.w_row, *scales = w + p->op.n_k / 2;
    size_t n_runs = p->op.n_k / format->run;
    long double sum = 0, magnitude = 0;
    for (size_t i = 0; i < n_runs; i++) {
        int64_t dot = 0, of_x = 0;
        for (size_t k = i * format->run; k < (i + 1) * format->run; k++) {
            int x = integer_at(chunks, lane, k);
            dot += (int64_t)((const int16_t *)(const void *)w)[k] * x;
            of_x += x;
        }
        assert_true(dot >= INT32_MIN && dot <= INT32_MAX);
        long double x_scale = (long double)chunks[i * format->run / COLUMNS].scale[lane];
        long double product = (long double)scales[i] * x_scale * dot;
        long double min = format->has_min ? (long double)scales[n_runs + i] * x_scale * of_x : 0;
        sum += product + min;
        magnitude += fabsl(product) + fabsl(min);
    }
    long double found = (long double)((const float *)data(&p->expected))[row * KERN_PANEL + lane];
    size_t n_additions = BLOCK / format->run * (format->has_min ? 2 : 1) + p->op.n_k / BLOCK + 1;
    assert_true(fabsl(found - sum) <= 1.01L * (1 + n_additions) * 0x1p-24L * magnitude);
}

static void test_scalar_tile_is_the_definition(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 5);
    for (unsigned i = 0; i < 32; i++) {
        struct product p;
        struct kern_fma_tile shape = {.n_rows = 5,
                                      .n_k = COLUMNS * (1 + rng_below(&r, 16)),
                                      .format = format_with(i % 2 ? 32 : 16, i / 2 % 2)};
        product_open(&p, &r, &shape, i < 16 ? OPERANDS_RANDOM : OPERANDS_WORST);
        for (size_t row = 0; row < shape.n_rows; row++)
            for (size_t lane = 0; lane < KERN_PANEL; lane++)
                check_output(&p, row, lane);
        product_close(&p);
    }
}

/** The largest sum that there can be: 32 * 128 * 32767, exact also as a float. */
static void test_worst_block(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 6);
    struct product p;
    struct kern_fma_tile shape = {.n_rows = 7, .n_k = COLUMNS, .format = format_with(32, false)};
    product_open(&p, &r, &shape, OPERANDS_WORST);
    variant->tiles->int16_tile(&p.op);
    for (size_t i = 0; i < shape.n_rows * KERN_PANEL; i++)
        assert_true(((float *)data(&p.found))[i] == 134213632.0f);
    product_close(&p);
}

static void test_row(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 7);
    for (size_t n_k = COLUMNS; n_k <= 512; n_k += COLUMNS) {
        struct guard y = guard_open(n_k * sizeof(float), 4 * rng_below(&r, 3));
        struct guard out = guard_open(n_k * sizeof(int16_t), 2 * rng_below(&r, 3));
        float *integers = data(&y);
        for (size_t i = 0; i < n_k; i++)
            integers[i] = (float)rng_below(&r, 256) - KERN_INTEGER_LIMIT;
        kernels.int16_row(integers, n_k, data(&out));
        for (size_t i = 0; i < n_k; i++)
            assert_true((float)((int16_t *)data(&out))[i] == integers[i]);
        guards_close((struct guard[]){y, out}, 2);
    }
}

int main(void)
{
    const struct CMUnitTest definitions[] = {
        cmocka_unit_test(test_pack_is_the_definition),
        cmocka_unit_test(test_scalar_tile_is_the_definition),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pack),        cmocka_unit_test(test_row),
        cmocka_unit_test(test_tile),        cmocka_unit_test(test_resuming_changes_nothing),
        cmocka_unit_test(test_worst_block),
    };
    variant = &variants[0];
    int n_failed = cmocka_run_group_tests_name("definitions", definitions, NULL, NULL);
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        variant = &variants[i];
        assert_non_null(variant->tiles->int16_tile);
        if (variant->isa > kern_isa_detect() ||
            (variant->vnni && !kern_isa_has_vnni(variant->isa))) {
            print_message("%s: not on this processor\n", variant->name);
            continue;
        }
        kern_kernels_build(&kernels, variant->isa);
        n_failed += cmocka_run_group_tests_name(variant->name, tests, NULL, NULL);
    }
    return n_failed;
}

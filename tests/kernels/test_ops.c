/*
 * The backend's operations that are not products: what each writes, by its definition, and the
 * same bits for every ISA and number of threads. Cases are larger than what one thread takes at
 * a time, so that work really is divided.
 */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/backend.h"
#include "kernels/operations.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/cpu_backend.h"
#include "tests/kernels/ops_variants.h"

static void rmsnorm(struct kern_backend *b, const struct kern_weight *gain, float eps,
                    const float *x, size_t n_rows, float *y)
{
    struct kern_norm op = {.gain = gain,
                           .eps = eps,
                           .x = x,
                           .y = y,
                           .n_rows = n_rows,
                           .width = gain->n_cols,
                           .n_groups = 1};
    assert_int_equal(kern_norm(b, &op, NULL), STATUS_OK);
}

static enum status silu_mul(struct kern_backend *b, float *gate, const float *up, size_t n)
{
    struct kern_activate op = {.gate = gate, .up = up, .n = n};
    return kern_activate(b, &op, NULL);
}

/* One case: writes n floats to y on the backend, from numbers of its own seed. */
typedef void case_fn(struct kern_backend *b, float *y);

enum { MAX_FLOATS = 400 * 300 };

static void fill(uint64_t stream, float *x, size_t n)
{
    struct rng r = rng_open(rng_seed(), stream);
    fill_normal(&r, x, n, 2.0f);
}

enum { NORM_T = 131, NORM_D = 211 };

static void case_rmsnorm(struct kern_backend *b, float *y)
{
    static float x[NORM_T * NORM_D], gain[NORM_D];
    fill(1, x, NORM_T * NORM_D);
    fill(2, gain, NORM_D);
    struct kern_weight w = f32_row(gain, NORM_D);
    rmsnorm(b, &w, 1e-5f, x, NORM_T, y);
}

/* Partial rotation of three heads of 20 in rows of 70. */
enum { ROPE_T = 133, ROPE_STRIDE = 70, ROPE_POSITIONS = 50 };

/* The heads of tokens, each with a part of the gain and bias, centred, added to y. */
enum { HEADS = 5, HEAD_D = 17, HEADS_T = 400 };

static void case_head_norm(struct kern_backend *b, float *y)
{
    static float x[HEADS_T * HEADS * HEAD_D], vectors[2 * HEADS * HEAD_D];
    fill(11, x, HEADS_T * HEADS * HEAD_D);
    fill(12, y, HEADS_T * HEADS * HEAD_D);
    fill(13, vectors, 2 * HEADS * HEAD_D);
    struct kern_weight gain = f32_row(vectors, (size_t)HEADS * HEAD_D);
    struct kern_weight bias = f32_row(vectors + HEADS * HEAD_D, (size_t)HEADS * HEAD_D);
    struct kern_norm op = {.gain = &gain,
                           .bias = &bias,
                           .center = true,
                           .eps = 1e-5f,
                           .x = x,
                           .y = y,
                           .n_rows = (size_t)HEADS_T * HEADS,
                           .width = HEAD_D,
                           .n_groups = HEADS,
                           .accumulate = true};
    float expected[HEAD_D];
    const float *row = x + (7 * HEADS + 3) * HEAD_D, *y_row = y + (row - x);
    memcpy(expected, y_row, sizeof expected);
    kern_ops_scalar.norm(&(struct kern_norm_row){expected, row, vectors + 3 * HEAD_D,
                                                 vectors + (HEADS + 3) * HEAD_D, HEAD_D, 1e-5f,
                                                 true, true});
    assert_int_equal(kern_norm(b, &op, NULL), STATUS_OK);
    assert_memory_equal(y_row, expected, sizeof expected);
}

static void run_rope(struct kern_backend *b, float *y, size_t n_pairs, bool split_halves)
{
    static float table[ROPE_POSITIONS * 10 * 2];
    static int32_t positions[ROPE_T];
    double frequency[10];
    for (size_t i = 0; i < n_pairs; i++) {
        frequency[i] = pow(0.3, (double)i);
    }
    kern_rope_fill(table, 0, ROPE_POSITIONS, frequency, n_pairs, 1.0);
    for (size_t t = 0; t < ROPE_T; t++) {
        positions[t] = (int32_t)(t * 7 % ROPE_POSITIONS);
    }
    fill(3, y, ROPE_T * ROPE_STRIDE);
    struct kern_rope op = {
        .x = y,
        .stride = ROPE_STRIDE,
        .n_tokens = ROPE_T,
        .n_heads = 3,
        .head_size = 20,
        .n_pairs = n_pairs,
        .split_halves = split_halves,
        .angles = table,
        .n_positions = ROPE_POSITIONS,
        .positions = positions,
    };
    assert_int_equal(kern_rope(b, &op, NULL), STATUS_OK);
}

static void case_rope_adjacent(struct kern_backend *b, float *y)
{
    run_rope(b, y, 7, false);
}

static void case_rope_halves(struct kern_backend *b, float *y)
{
    run_rope(b, y, 7, true);
}

enum { GATE_N = 30011 };

static void case_gate(struct kern_backend *b, float *y)
{
    static float up[GATE_N];
    fill(4, up, GATE_N);
    fill(5, y, GATE_N);
    assert_int_equal(silu_mul(b, y, up, GATE_N), STATUS_OK);
}

enum { ROUTE_T = 101, ROUTE_E = 8, ROUTE_USED = 3 };

/* Experts as floats after the shares. */
static void case_route(struct kern_backend *b, float *y)
{
    static float logits[ROUTE_T * ROUTE_E];
    int32_t experts[ROUTE_T * ROUTE_USED];
    fill(6, logits, ROUTE_T * ROUTE_E);
    struct kern_route op = {.logits = logits,
                            .n_tokens = ROUTE_T,
                            .n_experts = ROUTE_E,
                            .n_used = ROUTE_USED,
                            .normalise = true,
                            .experts = experts,
                            .shares = y};
    assert_int_equal(kern_route(b, &op, NULL), STATUS_OK);
    for (size_t i = 0; i < ROUTE_T * ROUTE_USED; i++) {
        y[ROUTE_T * ROUTE_USED + i] = (float)experts[i];
    }
}

static void case_scale_rows(struct kern_backend *b, float *y)
{
    static float before[NORM_T * NORM_D], factors[NORM_T];
    fill(14, y, NORM_T * NORM_D);
    fill(15, factors, NORM_T);
    memcpy(before, y, sizeof before);
    assert_int_equal(kern_scale_rows(b, y, NORM_D, NORM_T, factors, NULL), STATUS_OK);
    for (size_t i = 0; i < NORM_T * NORM_D; i++)
        assert_true(y[i] == before[i] * factors[i / NORM_D]);
}

/* The second halves of rows of 2 * 17, with gaps of 3 between the copies, which stay. */
enum { COPY_N = 2000, COPY_W = 17, COPY_STRIDE = COPY_W + 3 };

static void case_copy_rows(struct kern_backend *b, float *y)
{
    static float x[COPY_N * 2 * COPY_W], before[COPY_N * COPY_STRIDE];
    fill(16, x, COPY_N * 2 * COPY_W);
    fill(17, y, COPY_N * COPY_STRIDE);
    memcpy(before, y, sizeof before);
    struct kern_copy op = {.x = x + COPY_W,
                           .x_stride = (size_t)2 * COPY_W,
                           .y = y,
                           .y_stride = COPY_STRIDE,
                           .width = COPY_W,
                           .n_rows = COPY_N};
    assert_int_equal(kern_copy_rows(b, &op, NULL), STATUS_OK);
    for (size_t i = 0; i < COPY_N * COPY_STRIDE; i++) {
        size_t r = i / COPY_STRIDE, k = i % COPY_STRIDE;
        assert_true(y[i] == (k < COPY_W ? x[(2 * r + 1) * COPY_W + k] : before[i]));
    }
    /* Three elements of each row, six times each. */
    op.width = 18;
    op.spread = 6;
    assert_int_equal(kern_copy_rows(b, &op, NULL), STATUS_OK);
    for (size_t i = 0; i < COPY_N * COPY_STRIDE; i++) {
        size_t r = i / COPY_STRIDE, k = i % COPY_STRIDE;
        assert_true(y[i] == (k < 18 ? x[(2 * r + 1) * COPY_W + k / 6] : before[i]));
    }
}

/* The rows of an embedding, of which a scale makes other rows. */
static void case_embed(struct kern_backend *b, float *y)
{
    static float table[90 * NORM_D];
    int32_t tokens[NORM_T];
    fill(18, table, 90 * NORM_D);
    struct kern_weight matrix = f32_row(table, NORM_D);
    matrix.n_rows = 90;
    matrix.scale = 11.3f;
    for (int32_t i = 0; i < NORM_T; i++)
        tokens[i] = i * 7 % 90;
    assert_int_equal(kern_embed(b, &matrix, tokens, NORM_T, y, NULL), STATUS_OK);
    for (size_t i = 0; i < NORM_T * NORM_D; i++)
        assert_true(y[i] == table[(size_t)tokens[i / NORM_D] * NORM_D + i % NORM_D] * 11.3f);
}

enum { MOE_N = 150, MOE_W = 37 };

static void moe_rows(uint32_t *rows)
{
    for (uint32_t i = 0; i < MOE_N; i++) {
        rows[i] = i * 77 % MOE_N; /* 77 and 150 have no common factor: each row once */
    }
}

static void case_gather(struct kern_backend *b, float *y)
{
    static float x[MOE_N * MOE_W];
    uint32_t rows[MOE_N];
    fill(7, x, MOE_N * MOE_W);
    moe_rows(rows);
    struct kern_gather op = {x, rows, MOE_N, MOE_W, y};
    assert_int_equal(kern_gather(b, &op, NULL), STATUS_OK);
    for (size_t i = 0; i < MOE_N; i++) {
        assert_memory_equal(y + i * MOE_W, x + rows[i] * MOE_W, MOE_W * sizeof(float));
    }
}

static void case_scatter_add(struct kern_backend *b, float *y)
{
    static float x[MOE_N * MOE_W];
    static float expected[MOE_N * MOE_W];
    float shares[MOE_N];
    uint32_t rows[MOE_N], from[MOE_N];
    fill(8, x, MOE_N * MOE_W);
    fill(9, shares, MOE_N);
    fill(10, y, MOE_N * MOE_W);
    memcpy(expected, y, sizeof expected);
    moe_rows(from);
    struct kern_scatter op = {x, NULL, rows, shares, MOE_N, MOE_W, y};
    for (uint32_t most = 1; most <= 64; most *= 8, op.from = from) { /* for a row */
        for (uint32_t i = 0; i < MOE_N; i++)
            rows[i] = i / most * 77 % MOE_N;
        assert_int_equal(kern_scatter_add(b, &op, NULL), STATUS_OK);
        for (size_t i = 0; i < MOE_N * MOE_W; i++) {
            size_t k = i / MOE_W, row = op.from ? from[k] : k;
            float *sum = &expected[rows[k] * MOE_W + i % MOE_W];
            *sum = fmaf(shares[k], x[row * MOE_W + i % MOE_W], *sum);
        }
        assert_memory_equal(y, expected, sizeof expected);
    }
}

static const struct {
    const char *name;
    case_fn *run;
    size_t n_floats;
} cases[] = {
    {"rmsnorm", case_rmsnorm, NORM_T *NORM_D},
    {"norm of heads", case_head_norm, (size_t)HEADS_T *HEADS *HEAD_D},
    {"scale_rows", case_scale_rows, NORM_T *NORM_D},
    {"copy_rows", case_copy_rows, COPY_N *COPY_STRIDE},
    {"embed", case_embed, NORM_T *NORM_D},
    {"rope adjacent", case_rope_adjacent, ROPE_T *ROPE_STRIDE},
    {"rope halves", case_rope_halves, ROPE_T *ROPE_STRIDE},
    {"gate", case_gate, GATE_N},
    {"route", case_route, 2 * ROUTE_T *ROUTE_USED},
    {"gather", case_gather, MOE_N *MOE_W},
    {"scatter_add", case_scatter_add, MOE_N *MOE_W},
};

static void test_same_bits_for_any_isa_and_threads(void **state)
{
    (void)state;
    static float expected[MAX_FLOATS], found[MAX_FLOATS];
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct kern_backend *b = backend_open(KERN_ISA_SCALAR, 1);
        cases[c].run(b, expected);
        kern_close(b);
        for (int isa = KERN_ISA_SCALAR; isa <= (int)kern_isa_detect(); isa++) {
            static const unsigned threads[] = {1, 2, 3, 5};
            for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
                b = backend_open(isa, threads[i]);
                cases[c].run(b, found);
                kern_close(b);
                size_t at = compare_bits(found, expected, cases[c].n_floats);
                if (at < cases[c].n_floats) {
                    fail_msg("%s, %s, %u threads: element %zu is %a, expected %a", cases[c].name,
                             kern_isa_name((enum kern_isa)isa), threads[i], at, (double)found[at],
                             (double)expected[at]);
                }
            }
        }
    }
}

/* A token alone gives what it gives among others. */
static void test_rmsnorm_of_one_token(void **state)
{
    (void)state;
    static float x[NORM_T * NORM_D], y[NORM_T * NORM_D], gain[NORM_D], alone[NORM_D];
    fill(1, x, NORM_T * NORM_D);
    fill(2, gain, NORM_D);
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 2);
    case_rmsnorm(b, y);
    struct kern_weight w = f32_row(gain, NORM_D);
    for (size_t t = 0; t < NORM_T; t += 13) {
        rmsnorm(b, &w, 1e-5f, x + t * NORM_D, 1, alone);
        assert_memory_equal(alone, y + t * NORM_D, sizeof alone);
    }
    kern_close(b);
}

/* The gain is decoded: a row of halves, at an odd address. */
static void test_rmsnorm_decodes_its_gain(void **state)
{
    (void)state;
    /* 1, -2, 0.5, 1.5 as float16 */
    static const uint8_t bytes[] = {0, 0x00, 0x3c, 0x00, 0xc0, 0x00, 0x38, 0x00, 0x3e};
    const float gain[4] = {1.0f, -2.0f, 0.5f, 1.5f};
    const float x[8] = {1, 2, 3, 4, -5, 6, 7, 8};
    float expected[8], found[8];
    struct kern_weight half = {.type = GGUF_TYPE_F16,
                               .n_rows = 1,
                               .n_cols = 4,
                               .row_bytes = 8,
                               .data = bytes + 1,
                               .scale = 1.0f};
    struct kern_weight full = f32_row(gain, 4);
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 1);
    rmsnorm(b, &full, 1e-6f, x, 2, expected);
    rmsnorm(b, &half, 1e-6f, x, 2, found);
    assert_memory_equal(found, expected, sizeof found);
    kern_close(b);
}

/* Vectors that are not n_groups * width long. */
static void test_norm_refuses_other_shapes(void **state)
{
    (void)state;
    float x[6] = {1, 2, 3, 4, 5, 6};
    struct kern_weight three = f32_row(x, 3), six = f32_row(x, 6);
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 1);
    for (int i = 0; i < 2; i++) {
        struct kern_norm op = {.gain = i ? &six : &three,
                               .bias = &three,
                               .x = x,
                               .y = x,
                               .n_rows = 2,
                               .width = 3,
                               .n_groups = 2};
        struct status_why why = {""};
        assert_int_equal(kern_norm(b, &op, &why), STATUS_USAGE);
        assert_string_equal(why.text, i ? "norm: bias: shape 1 x 3; expected 1 x 6"
                                        : "norm: gain: shape 1 x 3; expected 1 x 6");
    }
    kern_close(b);
}

/* Beyond the rotated part of a head, and between and after the heads, nothing changes. */
static void test_rope_leaves_the_rest_alone(void **state)
{
    (void)state;
    static float before[ROPE_T * ROPE_STRIDE], y[ROPE_T * ROPE_STRIDE];
    fill(3, before, ROPE_T * ROPE_STRIDE);
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 2);
    for (int split = 0; split < 2; split++) {
        run_rope(b, y, 7, split != 0);
        size_t n_rotated = 0, n_changed = 0;
        for (size_t i = 0; i < ROPE_T * ROPE_STRIDE; i++) {
            size_t column = i % ROPE_STRIDE;
            size_t position = i / ROPE_STRIDE * 7 % ROPE_POSITIONS;
            bool rotated = column < 60 && column % 20 < 14 && position != 0;
            assert_true(rotated || y[i] == before[i]);
            n_rotated += rotated;
            n_changed += y[i] != before[i];
        }
        assert_true(100 * n_changed > 99 * n_rotated); /* a few may come out as they were */
    }
    kern_close(b);
}

/* A position of 0 in every head, and rotation by the same angle whichever row it stands in. */
static void test_rope_of_known_angles(void **state)
{
    (void)state;
    const double quarter = 1.57079632679489661923;
    float table[4 * 2];
    kern_rope_fill(table, 0, 4, &quarter, 1, 1.0);
    float x[8] = {1, 2, 1, 2, 1, 2, 1, 2};
    const int32_t positions[4] = {0, 1, 2, 3};
    static const float expected[8] = {1, 2, -2, 1, -1, -2, 2, -1};
    struct kern_rope op = {.x = x,
                           .stride = 2,
                           .n_tokens = 4,
                           .n_heads = 1,
                           .head_size = 2,
                           .n_pairs = 1,
                           .angles = table,
                           .n_positions = 4,
                           .positions = positions};
    struct kern_backend *b = backend_open(KERN_ISA_SCALAR, 1);
    assert_int_equal(kern_rope(b, &op, NULL), STATUS_OK);
    for (size_t i = 0; i < 8; i++) {
        assert_true(fabsf(x[i] - expected[i]) < 1e-6f);
    }
    kern_close(b);
}

static void test_route_chooses_and_shares(void **state)
{
    (void)state;
    const float logits[16] = {
        0.0f,      1.0f,      3.0f, 2.0f,   /* two experts of four */
        1.0f,      5.0f,      5.0f, 5.0f,   /* ties: the first ones */
        -INFINITY, -INFINITY, 7.0f, -1e30f, /* legal: probability 0 */
        0.0f,      NAN,       1.0f, 2.0f,   /* no distribution */
    };
    int32_t experts[8];
    float shares[8];
    struct kern_backend *b = backend_open(KERN_ISA_SCALAR, 1);
    struct kern_route op = {.logits = logits,
                            .n_tokens = 4,
                            .n_experts = 4,
                            .n_used = 2,
                            .normalise = true,
                            .experts = experts,
                            .shares = shares};
    assert_int_equal(kern_route(b, &op, NULL), STATUS_OK);
    static const int32_t expected[6] = {2, 3, 1, 2, 2, 3};
    assert_memory_equal(experts, expected, sizeof expected);
    /* Two roundings: exp in double is far below a float's last place. */
    double first = 1.0 / (1.0 + exp(-1.0));
    assert_true(fabs((double)shares[0] - first) <= 0x1p-24 * first);
    assert_true(fabs((double)shares[1] - (1.0 - first)) <= 0x1.01p-24 * first);
    assert_true(shares[2] == 0.5f && shares[3] == 0.5f && shares[4] == 1.0f && shares[5] == 0.0f);
    assert_true(isnan(shares[6]) && isnan(shares[7]));
    assert_true(experts[6] >= 0 && experts[6] < 4 && experts[7] >= 0 && experts[7] < 4);
    assert_true(experts[6] != experts[7]);
    const float small[] = {-14.0f, -13.0f, -20.0f, -30.0f}; /* shares of less than 6.1e-5 */
    op.logits = small;
    op.n_tokens = 1;
    op.gating = KERN_GATE_SIGMOID;
    for (int i = 0; i < 2; i++, op.sum_eps = 1e-6f) {
        assert_int_equal(kern_route(b, &op, NULL), STATUS_OK);
        double best = 1 / (1 + exp(13.0)), sum = best + 1 / (1 + exp(14.0));
        double share = best / (i ? sum + (double)1e-6f : 6.1e-5);
        assert_true(experts[0] == 1 && fabs((double)shares[0] - share) <= 0x1.01p-24 * share);
    }
    kern_close(b);
}

static void test_cancelled(void **state)
{
    (void)state;
    static float y[MAX_FLOATS], up[GATE_N];
    atomic_bool flag = true;
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 2);
    kern_set_cancel(b, &flag);
    assert_int_equal(silu_mul(b, y, up, GATE_N), STATUS_CANCELLED);
    atomic_store(&flag, false);
    assert_int_equal(silu_mul(b, y, up, GATE_N), STATUS_OK);
    kern_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits_for_any_isa_and_threads),
        cmocka_unit_test(test_rmsnorm_of_one_token),
        cmocka_unit_test(test_rmsnorm_decodes_its_gain),
        cmocka_unit_test(test_norm_refuses_other_shapes),
        cmocka_unit_test(test_rope_leaves_the_rest_alone),
        cmocka_unit_test(test_rope_of_known_angles),
        cmocka_unit_test(test_route_chooses_and_shares),
        cmocka_unit_test(test_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The CUDA backend's kernels and its host side, on a device made of the host's memory and, where
 * there is one, on a real device. `exact` must give the CPU backend's bits, for whatever it is
 * asked and in whatever order the device works; the CPU backend is compared with float64
 * elsewhere.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "kernels/backend.h"
#include "kernels/operations.h"
#include "kernels/quant/round.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/run_kernel.h"
#include "tests/kernels/attention_truth.h"
#include "tests/kernels/cuda_data.h"
#include "tests/kernels/cuda_pair.h"

/** Arrays of an operation on rows, on both backends. */
struct rows {
    struct cuda_pair *p;
    size_t n, width;
    float *x, *expected, *found;
    float *device_x, *device_y;
};

static void rows_open(struct rows *o, struct cuda_pair *p, struct rng *r, size_t n, size_t width)
{
    *o = (struct rows){.p = p, .n = n, .width = width, .x = cuda_data_floats(r, n * width, 3.0f)};
    o->expected = cuda_data_floats(r, n * width, 1.0f);
    o->found = cuda_data_copy(o->expected, n * width);
    o->device_x = cuda_pair_put(p, o->x, n * width);
    o->device_y = cuda_pair_put(p, o->expected, n * width);
}

static void rows_close(struct rows *o)
{
    cuda_pair_take(o->p, o->device_x, NULL, 0);
    cuda_pair_take(o->p, o->device_y, NULL, 0);
    free(o->x);
    free(o->expected);
    free(o->found);
}

static void rows_compare(const struct rows *o, const char *what)
{
    size_t n = o->n * o->width;
    assert_int_equal(kern_download(o->p->cuda, o->found, o->device_y, n * sizeof *o->found, NULL),
                     STATUS_OK);
    cuda_data_assert_same(o->found, o->expected, n, what);
}

/** The other backend's half of an operation whose arrays are x and y. */
#define ON_BOTH(o, op, run, x_of, y_of, what)                                                      \
    do {                                                                                           \
        (op).x_of = (o)->x;                                                                        \
        (op).y_of = (o)->expected;                                                                 \
        assert_int_equal(run((o)->p->cpu, &(op), NULL), STATUS_OK);                                \
        (op).x_of = (o)->device_x;                                                                 \
        (op).y_of = (o)->device_y;                                                                 \
        assert_int_equal(run((o)->p->cuda, &(op), NULL), STATUS_OK);                               \
        rows_compare(o, what);                                                                     \
    } while (0)

/** Plain, and of n_groups groups with all that there is; the vectors' scales change. */
static void check_norms(struct rows *o, struct rng *r, size_t n_groups)
{
    struct kern_weight gain = cuda_data_float_weight(r, 1, n_groups * o->width);
    struct kern_weight bias = cuda_data_float_weight(r, 1, n_groups * o->width);
    struct kern_norm op = {
        .gain = &gain, .eps = 1e-5f, .n_rows = o->n, .width = o->width, .n_groups = n_groups};
    ON_BOTH(o, op, kern_norm, x, y, "rmsnorm");
    gain.scale = 0.3f;
    bias.scale = 1.7f;
    op.bias = &bias;
    op.center = op.accumulate = true;
    ON_BOTH(o, op, kern_norm, x, y, "layernorm added");
    gain.scale = 1.0f;
    op.accumulate = false;
    ON_BOTH(o, op, kern_norm, x, y, "layernorm");
    op = (struct kern_norm){.n_rows = o->n, .width = o->width, .n_groups = 1};
    ON_BOTH(o, op, kern_norm, x, y, "norm without gain");
    op.accumulate = true;
    ON_BOTH(o, op, kern_norm, x, y, "norm without gain added");
    op.n_groups = n_groups;
    op.bias = &bias;
    ON_BOTH(o, op, kern_norm, x, y, "norm with a bias added");
    op.gain = &gain;
    ON_BOTH(o, op, kern_norm, x, y, "norm with all but a mean");
    op.plain = true;
    ON_BOTH(o, op, kern_norm, x, y, "norm without its root");
    cuda_data_weight_free(&gain);
    cuda_data_weight_free(&bias);
}

/** Some gates are special: comparisons must keep a NaN on a device too. */
static void check_activations(struct rows *o)
{
    static const float special[] = {NAN, INFINITY, -INFINITY, -0.0f, -3e38f, 88.8f, -88.8f, 7.5f};
    for (int kind = 0; kind < KERN_N_ACTIVATIONS; kind++) {
        struct kern_activate op = {.kind = (enum kern_activation)kind,
                                   .curve = {.clamp = 2.5f,
                                             .beta = 4,
                                             .up_beta = 3,
                                             .rise = 0.8,
                                             .fall = 1.7,
                                             .slope = 0.45,
                                             .eps = -0.125},
                                   .n = o->n * o->width};
        size_t n_special = base_min(op.n, sizeof special / sizeof *special);
        memcpy(o->expected + op.n - n_special, special, n_special * sizeof *special);
        assert_int_equal(
            kern_upload(o->p->cuda, o->device_y, o->expected, op.n * sizeof *o->expected, NULL),
            STATUS_OK);
        ON_BOTH(o, op, kern_activate, up, gate, "activation");
        if (kind == KERN_SWIGLU_OAI || kind == KERN_SWIGLU_CLAMP_BEFORE ||
            kind == KERN_SWIGLU_CLAMP_AFTER)
            continue;
        op.up = NULL;
        assert_int_equal(kern_activate(o->p->cuda, &op, NULL), STATUS_OK);
        op.gate = o->expected;
        assert_int_equal(kern_activate(o->p->cpu, &op, NULL), STATUS_OK);
        rows_compare(o, "activation without a gate");
    }
}

/** Scaled, and columns of x copied to other columns of y. */
static void check_moves(struct rows *o, struct rng *r)
{
    struct cuda_pair *p = o->p;
    size_t n = o->n, width = o->width;
    float *factors = cuda_data_floats(r, n, 1.0f);
    assert_int_equal(kern_scale_rows(p->cpu, o->expected, width, n, factors, NULL), STATUS_OK);
    assert_int_equal(kern_scale_rows(p->cuda, o->device_y, width, n, factors, NULL), STATUS_OK);
    rows_compare(o, "scale_rows");
    struct kern_copy op = {.x = o->x + width / 3,
                           .x_stride = width,
                           .y = o->expected + width / 4,
                           .y_stride = width,
                           .width = width - width / 3,
                           .n_rows = n};
    assert_int_equal(kern_copy_rows(p->cpu, &op, NULL), STATUS_OK);
    op.x = o->device_x + width / 3;
    op.y = o->device_y + width / 4;
    assert_int_equal(kern_copy_rows(p->cuda, &op, NULL), STATUS_OK);
    rows_compare(o, "copy_rows");
    op.spread = op.width;
    assert_int_equal(kern_copy_rows(p->cuda, &op, NULL), STATUS_OK);
    op.x = o->x + width / 3;
    op.y = o->expected + width / 4;
    assert_int_equal(kern_copy_rows(p->cpu, &op, NULL), STATUS_OK);
    rows_compare(o, "copy_rows, spread");
    free(factors);
}

/** What each type of a cache holds of the numbers, as they are and turned; any n of 16 bits. */
static void check_rounds(struct cuda_pair *p, struct rng *r)
{
#define ID(TYPE, name) GGUF_TYPE_##TYPE,
    static const enum gguf_type types[] = {KERN_ROUND_TYPES(ID)};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (size_t k = 0; k < 4; k++) {
            static const size_t turns[] = {0, 64, 128, 256};
            if (types[i] == GGUF_TYPE_Q8_KV)
                continue; /* a GPU has none */
            size_t n_turn = kern_round_is_turned(types[i]) ? turns[k] : 0;
            size_t unit = n_turn ? n_turn : kern_round_elems(types[i]);
            struct rows o;
            if (k == 1) /* as few as can be turned */
                rows_open(&o, p, r, 1, unit);
            else
                rows_open(&o, p, r, 1 + rng_below(r, 40), unit * (1 + rng_below(r, 3)));
            struct kern_round op = {types[i], o.expected, o.n * o.width, n_turn};
            op.scale = kern_round_is_scaled(types[i]) && k > 1 ? 0.3f : 0;
            o.expected[0] = k % 2 ? NAN : o.expected[0];
            assert_int_equal(
                kern_upload(p->cuda, o.device_y, o.expected, op.n * sizeof *o.expected, NULL), 0);
            assert_int_equal(kern_round(p->cpu, &op, NULL), STATUS_OK);
            op.x = o.device_y;
            assert_int_equal(kern_round(p->cuda, &op, NULL), STATUS_OK);
            rows_compare(&o, gguf_type_name(types[i]));
            rows_close(&o);
        }
}

/** Everything that goes through rows. */
static void check_rows(struct cuda_pair *p, struct rng *r, size_t n, size_t width)
{
    struct rows o;
    rows_open(&o, p, r, n, width);
    check_norms(&o, r, 1 + rng_below(r, 3));
    check_activations(&o);
    check_moves(&o, r);
    rows_close(&o);
}

static void check_rope(struct cuda_pair *p, struct rng *r, bool split_halves, size_t n_tokens)
{
    enum { T = 70, HEADS = 3, D = 20, PAIRS = 8, POSITIONS = 100 };
    size_t stride = HEADS * D + 3;
    float *x = cuda_data_floats(r, T * stride, 1.0f), *expected = cuda_data_copy(x, T * stride);
    float *table = cuda_data_floats(r, (size_t)POSITIONS * PAIRS * 2, 1.0f);
    int32_t positions[T];
    for (size_t i = 0; i < T; i++)
        positions[i] = (int32_t)rng_below(r, POSITIONS);
    struct kern_rope op = {.x = expected,
                           .stride = stride,
                           .n_tokens = n_tokens,
                           .n_heads = HEADS,
                           .head_size = D,
                           .n_pairs = PAIRS,
                           .split_halves = split_halves,
                           .angles = table,
                           .n_positions = POSITIONS,
                           .positions = positions};
    assert_int_equal(kern_rope(p->cpu, &op, NULL), STATUS_OK);
    op.x = cuda_pair_put(p, x, T * stride);
    float *device_table = cuda_pair_put(p, table, (size_t)POSITIONS * PAIRS * 2);
    op.angles = device_table;
    assert_int_equal(kern_rope(p->cuda, &op, NULL), STATUS_OK);
    memset(positions, 0xff, sizeof positions); /* the caller's again once the call returned */
    cuda_pair_take(p, op.x, x, T * stride);
    cuda_pair_take(p, device_table, NULL, 0);
    cuda_data_assert_same(x, expected, T * stride, "rope");
    free(x);
    free(expected);
    free(table);
}

static void check_embed(struct cuda_pair *p, struct rng *r, enum gguf_type type)
{
    enum { T = 50, D = 256, V = 90 };
    struct kern_weight table = cuda_data_random_weight(r, type, V, D);
    table.scale = rng_below(r, 2) ? 1.0f : 45.3f;
    float *x = cuda_data_floats(r, T * D, 1.0f), *expected = cuda_data_copy(x, T * D);
    int32_t tokens[T];
    for (size_t i = 0; i < T; i++)
        tokens[i] = (int32_t)rng_below(r, V);
    assert_int_equal(kern_embed(p->cpu, &table, tokens, T, expected, NULL), STATUS_OK);
    float *device_x = cuda_pair_put(p, x, T * D);
    assert_int_equal(kern_embed(p->cuda, &table, tokens, T, device_x, NULL), STATUS_OK);
    cuda_pair_take(p, device_x, x, T * D);
    cuda_data_assert_same(x, expected, T * D, "embed");
    cuda_data_weight_free(&table);
    free(x);
    free(expected);
}

static void test_row_operations(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUDA_PAIR_N_WAYS; i += cuda_pair_step()) {
        struct rng r = rng_open(rng_seed(), 4);
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(i);
        cuda_pair_open(&p, KERN_PRECISION_EXACT, &way);
        const size_t widths[] = {1, 3, 16, 100, 450, 2048, 4100};
        for (size_t k = 0; k < sizeof widths / sizeof *widths; k++)
            check_rows(&p, &r, k < 2 ? 7 : 1 + rng_below(&r, 9), widths[k]); /* odd sizes first */
        check_rounds(&p, &r);
        for (int k = 0; k < 6; k++)
            check_rope(&p, &r, k % 2 == 1, (const size_t[]){70, 60, 1}[k / 2]);
        check_embed(&p, &r, GGUF_TYPE_Q4_K);
        check_embed(&p, &r, GGUF_TYPE_F16);
        cuda_pair_close(&p);
    }
}

/** Heads, ranges with and without parents; `spoil` makes some values infinite or NaN. */
static void check_attention(struct cuda_pair *p, struct rng *r, const struct attention_shape *shape,
                            bool spoil)
{
    enum { T = 260 };
    struct attention_sinks sinks;
    struct kern_attention op = attention_shape_op(shape, r, &sinks);
    size_t n_q = T * op.n_heads * op.head_size, n_out = T * op.n_heads * op.value_size;
    size_t n_k = T * op.n_kv_heads * op.head_size, n_v = T * op.n_kv_heads * op.value_size;
    const struct kern_query_range ranges[] = {
        {.q_row = 0, .n_q = 150, .kv_row = 0},
        {.q_row = 150, .n_q = 33, .kv_row = 150, .n_parent = 150},
        {.q_row = 183, .n_q = 7, .kv_row = 183, .n_parent = 150},
        {.q_row = 190, .n_q = 40, .q_offset = 30, .kv_row = 160},
        {.q_row = 230, .n_q = 1, .kv_row = 230},
    };
    float *q = cuda_data_floats(r, n_q, 1.5f), *k = cuda_data_floats(r, n_k, 1.5f);
    float *v = cuda_data_floats(r, n_v, 1.5f), *out = cuda_data_floats(r, n_out, 1.0f);
    float *expected = cuda_data_copy(out, n_out);
    for (size_t i = 0; spoil && i < 5; i++) {
        v[rng_below(r, n_v)] = i % 2 ? INFINITY : NAN;
        k[rng_below(r, n_k)] = i % 2 ? -INFINITY : NAN;
    }
    op.q = q;
    op.k = k;
    op.v = v;
    op.out = expected;
    op.ranges = ranges;
    op.n_ranges = sizeof ranges / sizeof *ranges;
    assert_int_equal(kern_attention(p->cpu, &op, NULL), STATUS_OK);
    float *device[] = {cuda_pair_put(p, q, n_q), cuda_pair_put(p, k, n_k), cuda_pair_put(p, v, n_v),
                       cuda_pair_put(p, out, n_out)};
    op.q = device[0];
    op.k = device[1];
    op.v = device[2];
    op.out = device[3];
    assert_int_equal(kern_attention(p->cuda, &op, NULL), STATUS_OK);
    cuda_pair_take(p, device[3], out, n_out);
    for (size_t i = 0; i < 3; i++)
        cuda_pair_take(p, device[i], NULL, 0);
    cuda_data_assert_same(out, expected, n_out, "attention");
    free(q);
    free(k);
    free(v);
    free(out);
    free(expected);
}

/**
 * n queries, which are all of the array: nothing after the last one is read, nor after the last
 * value, of which there are whole chunks or few. Unless they fill a block, one number is NaN, so
 * that everything is done twice. With a sink a sum that lacks its keys is finite.
 */
static void check_last_query(struct cuda_pair *p, struct rng *r, size_t n, size_t head_size)
{
    enum { VALUES = 4, CHUNK = 64, BLOCK = 32 };
    const size_t value_size = head_size % CHUNK ? VALUES : head_size, n_out = n * value_size;
    struct kern_weight sinks = cuda_data_float_weight(r, 1, 1);
    const struct kern_query_range range = {.n_q = n};
    float *x = cuda_data_floats(r, n * head_size, 0.5f);
    float *out = cuda_data_floats(r, n_out, 1.0f), *expected = cuda_data_copy(out, n_out);
    struct kern_attention op = {.q = x,
                                .k = x,
                                .v = x,
                                .out = expected,
                                .n_heads = 1,
                                .n_kv_heads = 1,
                                .head_size = head_size,
                                .value_size = value_size,
                                .scale = 1.0f,
                                .sinks = &sinks,
                                .ranges = &range,
                                .n_ranges = 1};
    if (n != BLOCK)
        x[n * head_size - 1] = NAN;
    assert_int_equal(kern_attention(p->cpu, &op, NULL), STATUS_OK);
    float *device_x = cuda_pair_put(p, x, n * head_size);
    op.q = op.k = op.v = device_x;
    op.out = cuda_pair_put(p, out, n_out);
    assert_int_equal(kern_attention(p->cuda, &op, NULL), STATUS_OK);
    cuda_pair_take(p, op.out, out, n_out);
    cuda_pair_take(p, device_x, NULL, 0);
    cuda_data_assert_same(out, expected, n_out, "attention of all queries");
    cuda_data_weight_free(&sinks);
    free(x);
    free(out);
    free(expected);
}

static void test_attention(void **state)
{
    (void)state;
    static const struct attention_shape shapes[] = {
        {4, 2, 1, 0},
        {4, 2, 16, 1},
        {4, 2, 63, 50},
        {4, 2, 64, 64},
        {4, 2, 80, 500},
        {4, 2, 128, 0},
        {4, 2, 192, 1},
        {4, 2, 256, 50},
        {2, 1, 64, .value_size = 100, .soft_cap = 3},
        {4, 2, 100, .value_size = 30, .sinks = true, .chunk = 70},
        {1, 1, 512, .soft_cap = 50, .sliding_window = 90}, /* as large as gemma4's */
        {2, 1, 576, .value_size = 512, .sinks = true},     /* latent attention */
        {1, 1, 40, .value_size = 257},
        {1, 1, 301, .chunk = 50, .sliding_window = 40}, /* rows that are not aligned */
    };
    enum { N_FIXED = sizeof shapes / sizeof *shapes };
    static const struct {
        size_t n, head_size;
    } last[] = {{32, 64}, {64, 64}, {3, 128}, {3, 192}, {29, 301}};
    struct rng r = rng_open(rng_seed(), 5);
    size_t n = run_kernel_is_slow() ? N_FIXED : N_FIXED + 6;
    for (size_t i = 0; i < n; i++) {
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(i % CUDA_PAIR_N_WAYS);
        struct attention_shape shape = i < N_FIXED ? shapes[i] : attention_shape_random(&r, 100);
        cuda_pair_open(&p, KERN_PRECISION_EXACT, &way);
        if (!run_kernel_is_slow())
            check_attention(&p, &r, &shape, false);
        if (i < 8)
            shape.sliding_window = shapes[(i + 1) % 8].sliding_window;
        check_attention(&p, &r, &shape, true);
        for (size_t k = 0; i == 0 && k < sizeof last / sizeof *last; k++)
            check_last_query(&p, &r, last[k].n, last[k].head_size);
        for (size_t k = 1; i == 0 && k <= 17; k += 2) {
            check_last_query(&p, &r, k, 64);
            check_last_query(&p, &r, k, 300 + k / 2 % 4); /* queries that are loaded in parts */
            check_last_query(&p, &r, k, k == 1 ? 20 : 4 * k + 12);
        }
        cuda_pair_close(&p);
    }
}

/** A device without the shared memory for a block. */
static void test_little_shared_memory(void **state)
{
    (void)state;
    struct cuda_pair p;
    cuda_pair_open(&p, KERN_PRECISION_EXACT, &(struct host_device_options){.shared_bytes = 60000});
    float x[256] = {0};
    struct kern_query_range range = {.n_q = 1};
    struct kern_attention op = {.q = x,
                                .k = x,
                                .v = x,
                                .out = x,
                                .n_heads = 1,
                                .n_kv_heads = 1,
                                .head_size = 256,
                                .value_size = 256,
                                .scale = 1.0f,
                                .ranges = &range,
                                .n_ranges = 1};
    struct status_why why = {""};
    assert_int_equal(kern_attention(p.cuda, &op, &why), STATUS_UNSUPPORTED);
    assert_non_null(strstr(why.text, "heads of 256 elements"));
    cuda_pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row_operations),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_little_shared_memory),
    };
    int n_failed = cmocka_run_group_tests_name("host device", tests, NULL, NULL);
    if (!cuda_pair_use_real_device())
        return n_failed;
    enum { N_ON_DEVICE = sizeof tests / sizeof *tests - 1 }; /* whose shared memory is what it is */
    struct CMUnitTest on_device[N_ON_DEVICE];
    memcpy(on_device, tests, sizeof on_device);
    return n_failed + cmocka_run_group_tests_name("CUDA device", on_device, NULL, NULL);
}

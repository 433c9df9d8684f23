/*
 * What engines round inputs to: each type by its definition, in double precision, and backends that
 * round: their products are those of numbers that were rounded before.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clients/activations/places.h"
#include "clients/activations/rounding.h"
#include "kernels/cuda/cuda.h"
#include "kernels/implementation.h"
#include "kernels/kernels.h"
#include "kernels/quant/round.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/cpu_backend.h"
#include "tests/harness/gguf_writer.h"
#include "tests/harness/host_device.h"
#include "tests/harness/rng.h"
#include "tests/harness/temp.h"

enum { N = 512, ROWS = 5, COLUMNS = 256, OUTPUTS = 8 };

/* The nearest of all numbers of a small float, of two as near the one with an even code. */
static double nearest(double x, int n_codes, double (*value)(int))
{
    int best = 0;
    for (int code = 1; code < n_codes; code++) {
        double now = fabs(fabs(x) - value(code)), before = fabs(fabs(x) - value(best));
        if (now < before || (now == before && code % 2 == 0))
            best = code;
    }
    return copysign(value(best), x);
}

/* By the definitions of the OCP specification: exponents e of bias b, m bits of mantissa. */
static double e4m3_value(int code)
{
    int e = code >> 3, m = code & 7;
    return e ? ldexp(8 + m, e - 7 - 3) : ldexp(m, -6 - 3);
}

static double e2m1_value(int code)
{
    int e = code >> 1, m = code & 1;
    return e ? ldexp(2 + m, e - 1 - 1) : ldexp(m, -1);
}

static void small_floats(void **state)
{
    (void)state;
    struct rng rng = rng_open(1, 0);
    for (int i = 0; i < 20000; i++) {
        float x =
            (float)ldexp((double)(rng_next(&rng) % 4096) - 2048, (int)(rng_next(&rng) % 28) - 20);
        uint8_t code = kern_e4m3_from_float(x);
        assert_true((double)kern_e4m3_to_float(code) == nearest((double)x, 127, e4m3_value));
        code = kern_e2m1_from_float(x);
        assert_true((double)kern_fp4_values[code] / 2 == nearest((double)x, 8, e2m1_value));
    }
    assert_int_equal(kern_e4m3_from_float(INFINITY), 0x7e);
    assert_int_equal(kern_e4m3_from_float(-NAN), 0x7f);
    assert_int_equal(kern_e8m0_for(448, KERN_E4M3_EXPONENT), 127);
    assert_int_equal(kern_e8m0_for(0x1p-140f, KERN_E4M3_EXPONENT), 0);
    assert_int_equal(kern_e8m0_for(7.9f, KERN_E2M1_EXPONENT), 127);
}

/* A block by its definition. x: the numbers; d: of the definition, in double. */
static double largest(const float *x, size_t n)
{
    double amax = 0;
    for (size_t i = 0; i < n; i++)
        amax = fmax(amax, fabs((double)x[i]));
    return amax;
}

/* Whole numbers times the scale, up to the rounding of the scale in float32. */
static void check_integers(const float *x, const float *y, size_t n, double d, double step)
{
    for (size_t i = 0; i < n; i++) {
        double code = (double)y[i] / d;
        assert_true(fabs(code - rint(code)) < 1e-4 && fabs(code) < 127.5);
        assert_true(fabs((double)x[i] / step - rint(code)) < 0.5 + 1e-4);
    }
}

static void check_floats(const float *x, const float *y, size_t n, double d,
                         double (*to_nearest)(double))
{
    for (size_t i = 0; i < n; i++) {
        double scaled = (double)x[i] / d, expected = to_nearest(scaled);
        bool halfway = to_nearest(scaled * (1 + 1e-6)) != to_nearest(scaled * (1 - 1e-6));
        assert_true(halfway || fabs((double)y[i] - d * expected) <= 1e-6 * fabs(d * expected));
    }
}

static double to_e4m3(double x)
{
    return nearest(fmax(-448, fmin(448, x)), 127, e4m3_value);
}

static double to_e2m1(double x)
{
    return nearest(fmax(-6, fmin(6, x)), 8, e2m1_value);
}

static double half_of(double x)
{
    return (double)kern_half_to_float(kern_half_from_float((float)x));
}

static double power_below(double x)
{
    return ldexp(1, (int)floor(log2(x)));
}

static void check_block(enum act_type type, const float *x, const float *y, size_t n, double scale)
{
    double amax = largest(x, n), d = amax / 127;
    switch (type) {
    case ACT_Q8_0:
    case ACT_Q8_1:
        check_integers(x, y, n, half_of(d), d);
        break;
    case ACT_Q8_K:
    case ACT_MMQ:
    case ACT_MMQ_64:
        check_integers(x, y, n, d, d);
        break;
    case ACT_FP8:
        check_floats(x, y, n, amax / 448, to_e4m3);
        break;
    case ACT_FP8_TENSOR:
        check_floats(x, y, n, scale, to_e4m3);
        break;
    case ACT_MXFP8:
        check_floats(x, y, n, power_below(amax) / 256, to_e4m3);
        break;
    case ACT_MXFP4:
        check_floats(x, y, n, power_below(amax) / 4, to_e2m1);
        break;
    case ACT_NVFP4:
        check_floats(x, y, n, to_e4m3(amax / 6 / scale) * scale, to_e2m1);
        break;
    default:
        for (size_t i = 0; i < n; i++) {
            double bits = type == ACT_F32 ? 0x1p-30 : type == ACT_F16 ? 0x1p-11 : 0x1p-8;
            assert_true(fabs((double)y[i] - (double)x[i]) <= bits * fabs((double)x[i]));
        }
    }
}

static void types(void **state)
{
    (void)state;
    for (int t = 0; t < ACT_N_TYPES; t++) {
        enum act_type type = (enum act_type)t;
        size_t n = type == ACT_FP8 ? N : act_type_elems(type);
        float x[N], y[N], scale = 0.01f;
        struct rng rng = rng_open(2, 0);
        for (size_t i = 0; i < N; i++)
            x[i] = rng_normal(&rng) * ldexpf(1, (int)(i / 32) % 5);
        memcpy(y, x, sizeof y);
        act_round_row(type, y, N, scale);
        for (size_t i = 0; i < N; i += n)
            check_block(type, x + i, y + i, n, (double)scale);
        x[N - 1] = NAN; /* of its block alone, or of the row */
        act_round_row(type, x, N, scale);
        assert_true(isnan(x[N - 1]) && (type == ACT_FP8 || memcmp(x, y, sizeof *x) == 0));
        memset(y, 0, sizeof y);
        act_round_row(type, y, N, scale);
        for (size_t i = 0; i < N; i++)
            assert_true(y[i] == 0);
    }
}

static enum act_type of(const char *rule, enum gguf_type weight)
{
    const struct act_rule *found = act_rule_find(rule, NULL);
    enum act_type type;
    assert_non_null(found);
    enum status status = act_rule_type(&type, found, weight, 768, NULL);
    return status ? ACT_N_TYPES : type;
}

static void rules(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        enum gguf_type weight;
        enum act_type type;
    } right[] = {
        {"engine", GGUF_TYPE_Q4_1, ACT_Q8_1},
        {"Engine:llama.cpp-CPU", GGUF_TYPE_Q6_K, ACT_Q8_K},
        {"engine", GGUF_TYPE_MXFP4, ACT_Q8_0},
        {"engine", GGUF_TYPE_BF16, ACT_BF16},
        {"engine", GGUF_TYPE_IQ4_K, ACT_N_TYPES},
        {"engine:llama.cpp-cuda", GGUF_TYPE_Q4_K, ACT_Q8_1},
        {"engine:llama.cpp-cuda", GGUF_TYPE_Q2_K, ACT_MMQ_64},
        {"engine:llama.cpp-cuda", GGUF_TYPE_Q6_K, ACT_MMQ},
        {"engine:vllm-nvfp4", GGUF_TYPE_NVFP4, ACT_NVFP4},
        {"engine:vllm-nvfp4", GGUF_TYPE_Q8_0, ACT_N_TYPES},
        {"fp8", GGUF_TYPE_Q8_0, ACT_FP8},
    };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        assert_int_equal(of(right[i].rule, right[i].weight), right[i].type);
    enum act_type type;
    struct status_why why = {""};
    assert_null(act_rule_find("q8", &why));
    assert_non_null(strstr(why.text, "'q8' is no type"));
    assert_int_equal(act_rule_type(&type, act_rule_find("q8_k", &why), GGUF_TYPE_F32, 320, &why),
                     STATUS_UNSUPPORTED);
    assert_non_null(strstr(why.text, "expected a multiple of 256"));
}

static struct gguf_file *file, *other;
static float numbers[ROWS * COLUMNS];

static struct kern_weight weight_of(const struct gguf_file *from, const char *name)
{
    const struct gguf_tensor *t = gguf_tensor_find(from, name);
    assert_non_null(t);
    return (struct kern_weight){.type = t->type->type,
                                .n_rows = OUTPUTS,
                                .n_cols = COLUMNS,
                                .row_bytes = (size_t)t->row_bytes,
                                .data = (const uint8_t *)t->data + t->row_bytes,
                                .scale = 1};
}

static void multiply(struct kern_backend *b, const struct kern_weight *weight, const float *x,
                     float *y, bool same_x)
{
    const struct kern_linear op = {
        .weight = weight, .x = x, .y = y, .y_stride = OUTPUTS, .n_tokens = ROWS, .same_x = same_x};
    struct status_why why = {""};
    if (kern_linear(b, &op, &why))
        fail_msg("%s", why.text);
}

static struct kern_target_score score(struct kern_backend *b, const struct kern_weight *head,
                                      const float *x)
{
    const struct kern_head heads[] = {{.hidden = x, .matrix = head}};
    const struct kern_target target = {.row = 3, .token = 5};
    struct kern_row_score rows[ROWS];
    struct kern_target_score found;
    const struct kern_score op = {.n_heads = 1,
                                  .heads = heads,
                                  .n_rows = ROWS,
                                  .n_targets = 1,
                                  .targets = &target,
                                  .rows = rows,
                                  .target_scores = &found};
    assert_int_equal(kern_score(b, &op, NULL), STATUS_OK);
    return found;
}

static void backends(void **state)
{
    (void)state;
    struct kern_backend *b = backend_open(KERN_ISA_SCALAR, 2);
    struct act_rounding *rounding;
    float rounded[ROWS * COLUMNS], right[3][ROWS * OUTPUTS], y[ROWS * OUTPUTS];
    const struct kern_weight q = weight_of(file, "blk.0.attn_q.weight"),
                             k = weight_of(file, "blk.0.attn_k.weight"),
                             spared = weight_of(other, "blk.0.attn_q.weight");
    memcpy(rounded, numbers, sizeof rounded);
    for (size_t i = 0; i < ROWS; i++)
        act_round_row(ACT_Q8_K, rounded + i * COLUMNS, COLUMNS, 1);
    multiply(b, &q, rounded, right[0], false);
    multiply(b, &k, rounded, right[1], false);
    multiply(b, &spared, numbers, right[2], false);
    struct kern_target_score scored = score(b, &k, rounded);

    const struct act_rule *rule = act_rule_find("q8_k", NULL);
    assert_int_equal(act_rounding_open(&rounding, rule, &b, 1, NULL), STATUS_OK);
    assert_int_equal(act_rounding_add(rounding, file, NULL), STATUS_OK);
    const struct {
        const struct kern_weight *weight;
        bool same_x;
        const float *right;
    } products[] = {{&q, false, right[0]},     {&k, true, right[1]}, {&spared, true, right[2]},
                    {&k, true, right[1]},      {&q, true, right[0]}, {&spared, false, right[2]},
                    {&spared, true, right[2]}, {&q, true, right[0]}};
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        multiply(b, products[i].weight, numbers, y, products[i].same_x);
        assert_memory_equal(y, products[i].right, sizeof y);
    }
    struct kern_target_score found = score(b, &k, numbers);
    assert_memory_equal(&found.log_prob, &scored.log_prob, sizeof found.log_prob);
    const struct kern_linear op = {.weight = &q, .n_tokens = ROWS};
    size_t n_bytes = kern_linear_bytes(b, &op);
    act_rounding_close(rounding);
    assert_int_equal(n_bytes - kern_linear_bytes(b, &op), sizeof numbers);
    multiply(b, &q, numbers, y, false);
    assert_memory_not_equal(y, right[0], sizeof y);
    kern_close(b);
}

enum { HEADS = 4, HEAD = COLUMNS / HEADS };

static void attend(struct kern_backend *b, const float *q, enum gguf_type k_type, size_t k_turn,
                   float *out)
{
    const struct kern_query_range range = {.n_q = ROWS};
    const struct kern_attention op = {.q = q,
                                      .k = numbers,
                                      .v = numbers,
                                      .out = out,
                                      .n_heads = HEADS,
                                      .n_kv_heads = HEADS,
                                      .head_size = HEAD,
                                      .value_size = HEAD,
                                      .scale = 1.0f / HEAD,
                                      .k_type = k_type,
                                      .k_turn = k_turn,
                                      .ranges = &range,
                                      .n_ranges = 1};
    assert_int_equal(kern_attention(b, &op, NULL), STATUS_OK);
}

/** Queries become what the engine multiplies with keys of a type, turned as those are, where they
    are of a file that was added. */
static void queries(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        enum gguf_type keys;
        size_t turn;
        enum gguf_type queries;
    } cases[] = {
        {"engine", GGUF_TYPE_Q5_1, 64, GGUF_TYPE_Q8_0},
        {"engine", GGUF_TYPE_Q4_0, 0, GGUF_TYPE_Q8_0},
        {"engine", GGUF_TYPE_BF16, 0, GGUF_TYPE_BF16},
        {"engine", GGUF_TYPE_F16, 0, GGUF_TYPE_F32},
        {"engine", GGUF_TYPE_F32, 0, GGUF_TYPE_F32},
        {"engine", GGUF_TYPE_Q6_0, 0, GGUF_TYPE_F32},
        {"engine:llama.cpp-cuda", GGUF_TYPE_Q8_0, 64, GGUF_TYPE_F32},
        {"q8_0", GGUF_TYPE_Q8_0, 64, GGUF_TYPE_F32},
    };
    struct kern_backend *b = backend_open(KERN_ISA_SCALAR, 2);
    const struct kern_weight ours = weight_of(file, "blk.0.attn_v.weight"),
                             spared = weight_of(other, "blk.0.attn_v.weight");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float y[ROWS * OUTPUTS], q[ROWS * COLUMNS], right[ROWS * COLUMNS], found[ROWS * COLUMNS];
        struct act_rounding *rounding;
        struct kern_round op = {cases[i].queries, q, ROWS * COLUMNS, cases[i].turn, HEAD, 0};
        memcpy(q, numbers, sizeof q);
        if (op.type != GGUF_TYPE_F32)
            assert_int_equal(kern_round(b, &op, NULL), STATUS_OK);
        attend(b, q, GGUF_TYPE_F32, 0, right);
        const struct act_rule *rule = act_rule_find(cases[i].rule, NULL);
        assert_int_equal(act_rounding_open(&rounding, rule, &b, 1, NULL), STATUS_OK);
        assert_int_equal(act_rounding_add(rounding, file, NULL), STATUS_OK);
        multiply(b, &ours, numbers, y, false);
        attend(b, numbers, cases[i].keys, cases[i].turn, found);
        assert_memory_equal(found, right, sizeof right);
        multiply(b, &spared, numbers, y, false);
        attend(b, numbers, cases[i].keys, cases[i].turn, found);
        assert_int_equal(memcmp(found, right, sizeof right) == 0, op.type == GGUF_TYPE_F32);
        act_rounding_close(rounding);
    }
    kern_close(b);
}

/* A file with weights of which some have scales of their inputs. */
static struct gguf_file *scaled_file(const char *folder, float of_a, uint64_t n_of_b)
{
    char path[128];
    struct gguf_writer *w;
    struct gguf_file *made;
    struct status_why why = {""};
    static float weights[COLUMNS * (OUTPUTS + 1) * 2];
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++)
        weights[i] = (float)(i % 7) - 3;
    const uint64_t ne[] = {COLUMNS, OUTPUTS + 1, 2}, one = 1;
    const float of_b[] = {0.5f, 2, 4};
    assert_int_equal(gguf_writer_new(&w, &why), STATUS_OK);
    gguf_writer_string(w, "general.architecture", "none");
    gguf_writer_tensor(w, "a.weight", GGUF_TYPE_F32, ne, 2, weights);
    gguf_writer_tensor(w, "a.input_scale", GGUF_TYPE_F32, &one, 1, &of_a);
    gguf_writer_tensor(w, "b.weight", GGUF_TYPE_F32, ne, 3, weights);
    gguf_writer_tensor(w, "b.input_scale", GGUF_TYPE_F32, &n_of_b, 1, of_b);
    gguf_writer_tensor(w, "c.weight", GGUF_TYPE_F32, ne, 2, weights);
    assert_int_equal(gguf_writer_finish(w, temp_path(path, folder, "scaled"), &why), STATUS_OK);
    if (gguf_open(&made, path, &why))
        fail_msg("%s", why.text);
    return made;
}

static void expect_scale(const struct act_places *places, const struct gguf_file *from,
                         const char *name, size_t row, float scale)
{
    const struct gguf_tensor *t = gguf_tensor_find(from, name);
    const struct act_place *place =
        act_places_find(places, (const uint8_t *)t->data + row * t->row_bytes);
    assert_non_null(place);
    assert_true(scale > 0 ? place->scaled && place->scale == scale : !place->scaled);
}

static void scales(void **state)
{
    (void)state;
    char folder[64], path[128];
    temp_make(folder);
    struct act_places places = {0};
    struct status_why why = {""};
    struct gguf_file *made = scaled_file(folder, 0.25f, 2);
    assert_int_equal(act_places_add(&places, made, &why), STATUS_OK);
    expect_scale(&places, made, "a.weight", OUTPUTS, 0.25f);
    expect_scale(&places, made, "b.weight", 3, 0.5f);
    expect_scale(&places, made, "b.weight", OUTPUTS + 1, 2);
    expect_scale(&places, made, "c.weight", 0, 0);
    assert_null(act_places_find(&places, numbers));

    struct kern_backend *b = backend_open(KERN_ISA_SCALAR, 1);
    struct act_rounding *rounding;
    const struct act_rule rule = {.type = ACT_FP8_TENSOR};
    float y[ROWS * OUTPUTS], right[ROWS * OUTPUTS], rounded[ROWS * COLUMNS];
    const struct kern_weight a = weight_of(made, "a.weight"), c = weight_of(made, "c.weight");
    memcpy(rounded, numbers, sizeof rounded);
    act_round_row(ACT_FP8_TENSOR, rounded, ROWS * COLUMNS, 0.25f);
    multiply(b, &a, rounded, right, false);
    assert_int_equal(act_rounding_open(&rounding, &rule, &b, 1, &why), STATUS_OK);
    assert_int_equal(act_rounding_add(rounding, made, &why), STATUS_OK);
    multiply(b, &a, numbers, y, false);
    assert_memory_equal(y, right, sizeof y);
    const struct kern_linear op = {
        .weight = &c, .x = numbers, .y = y, .y_stride = OUTPUTS, .n_tokens = ROWS};
    assert_int_equal(kern_linear(b, &op, &why), STATUS_UNSUPPORTED);
    act_rounding_close(rounding);
    kern_close(b);
    gguf_close(made);
    free(places.items);
    for (int i = 0; i < 2; i++) { /* a scale of 0; three for two matrices */
        places = (struct act_places){0};
        made = scaled_file(folder, i ? 1 : 0, i ? 3 : 2);
        assert_int_equal(act_places_add(&places, made, &why), STATUS_FORMAT);
        assert_non_null(strstr(why.text, i ? "'b.input_scale' is F32 of 3" : "'a.input_scale'"));
        gguf_close(made);
        free(places.items);
    }
    unlink(temp_path(path, folder, "scaled"));
    rmdir(folder);
}

static void devices(void **state)
{
    (void)state;
    const struct host_device_options options = {.order = HOST_DEVICE_UPLOADS_LATE};
    struct kern_backend *b = NULL;
    struct act_rounding *rounding;
    struct act_rule rule = {.type = ACT_Q8_0};
    struct status_why why = {""};
    assert_int_equal(
        kern_cuda_open(&b, host_device_open(&options, NULL), &(struct kern_cuda_options){0}, &why),
        STATUS_OK);
    assert_int_equal(act_rounding_open(&rounding, &rule, &b, 1, &why), STATUS_UNSUPPORTED);
    assert_non_null(strstr(why.text, "expected --device cpu"));
    assert_null(rounding);
    kern_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_floats), cmocka_unit_test(types),   cmocka_unit_test(rules),
        cmocka_unit_test(backends),     cmocka_unit_test(devices), cmocka_unit_test(scales),
        cmocka_unit_test(queries),
    };
    struct rng rng = rng_open(3, 0);
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        numbers[i] = rng_normal(&rng);
    struct status_why why = {""};
    if (gguf_open(&file, ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf", &why) ||
        gguf_open(&other, ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf", &why)) {
        print_error("%s\n", why.text);
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    gguf_close(file);
    gguf_close(other);
    return failed;
}

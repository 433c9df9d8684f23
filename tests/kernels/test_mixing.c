/*
 * The operations that mix rows: by their definitions, the same bits for every ISA and number of
 * threads, and on a device.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/mixing.h"
#include "kernels/operations.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/cpu_backend.h"
#include "tests/kernels/cuda_data.h"
#include "tests/kernels/cuda_pair.h"
#include "tests/kernels/ops_variants.h"

/* One case: writes n floats to y on the backend, from numbers of its own seed. */
typedef void case_fn(struct kern_backend *b, float *y);

enum { MAX_FLOATS = 60 * 3 * 301 };

static void fill(uint64_t stream, float *x, size_t n)
{
    struct rng r = rng_open(rng_seed(), stream);
    fill_normal(&r, x, n, 2.0f);
}

enum { MIX_T = 60, MIX_S = 3, MIX_D = 301, MIX_W = (2 + MIX_S) * MIX_S };
enum form { BY_INPUT, BY_OUTPUT, APART };
/* In place, each stream from y and all of them, the weights in either order, or from itself. */
static void run_mix(struct kern_backend *b, float *out, enum form form)
{
    static float before[MIX_T * MIX_S * MIX_D], y[MIX_T * MIX_D], weights[MIX_T * MIX_W];
    fill(30, out, MIX_T * MIX_S * MIX_D);
    fill(31, y, MIX_T * MIX_D);
    fill(32, weights, MIX_T * MIX_W);
    memcpy(before, out, sizeof before);
    struct kern_mix op = {.x = out,
                          .weights = form == APART ? NULL : weights + 2 * (size_t)MIX_S,
                          .y = y,
                          .y_weights = weights + MIX_S,
                          .stride = MIX_W,
                          .out = out,
                          .n_tokens = MIX_T,
                          .n_in = MIX_S,
                          .n_out = MIX_S,
                          .width = MIX_D,
                          .by_output = form == BY_OUTPUT};
    assert_int_equal(kern_mix(b, &op, NULL), STATUS_OK);
    for (size_t i = 0; i < MIX_T * MIX_S * MIX_D; i++) {
        size_t t = i / (MIX_S * MIX_D), u = i / MIX_D % MIX_S, d = i % MIX_D;
        const float *w = weights + t * MIX_W + MIX_S;
        float sum = y[t * MIX_D + d] * w[u];
        for (size_t s = 0; s < MIX_S; s++)
            sum = fmaf(w[MIX_S + (form == BY_OUTPUT ? u * MIX_S + s : s * MIX_S + u)],
                       before[(t * MIX_S + s) * MIX_D + d], sum);
        assert_true(out[i] == (form == APART ? fmaf(w[u], y[t * MIX_D + d], before[i]) : sum));
    }
}

static void case_mix(struct kern_backend *b, float *out)
{
    run_mix(b, out, BY_INPUT);
}

static void case_mix_by_output(struct kern_backend *b, float *out)
{
    run_mix(b, out, BY_OUTPUT);
}

static void case_mix_apart(struct kern_backend *b, float *out)
{
    run_mix(b, out, APART);
}

/* Shares of y for three streams of each token: of a key of zeros a half, of NaN it is NaN. */
static void case_match(struct kern_backend *b, float *out)
{
    static float kq[2][MIX_T * MIX_S * MIX_D], v[MIX_T * MIX_D];
    fill(40, kq[0], 2 * (size_t)MIX_T * MIX_S * MIX_D);
    fill(42, v, MIX_T * MIX_D);
    memset(kq[0] + 7 * MIX_D, 0, MIX_D * sizeof *v);
    kq[0][5 * MIX_D] = NAN;
    struct kern_match op = {kq[0], kq[1], v, out, MIX_T, MIX_S, MIX_D};
    assert_int_equal(kern_match(b, &op, NULL), STATUS_OK);
    for (size_t row = 0, at = 0; row < MIX_T * MIX_S; row++, at += MIX_D) {
        double z = 0;
        for (size_t i = at; i < at + MIX_D; i++)
            z += (double)kq[0][i] * (double)kq[1][i] / sqrt(MIX_D);
        double share = row == 7 ? 0.5 : 1 / (1 + exp(-copysign(sqrt(fmax(fabs(z), 1e-6)), z)));
        const float *y = v + row / MIX_S * MIX_D, *o = out + at;
        for (size_t i = 0; i < MIX_D; i++)
            assert_true(row == 5 ? isnan(o[i]) : fabs((double)o[i] - share * (double)y[i]) <= 1e-5);
    }
}

enum { ROWS_T = 131, ROWS_D = 211 };

/* Each row by itself: nothing of it reaches another one. */
static void case_sparsify(struct kern_backend *b, float *y)
{
    float expected[ROWS_D];
    fill(19, y, ROWS_T * ROWS_D);
    memcpy(expected, y + 77 * ROWS_D, sizeof expected);
    kern_ops_scalar.sparsify(expected, ROWS_D, 1.1f, true);
    struct kern_sparsify op = {y, ROWS_T, ROWS_D, 1.1f, true};
    assert_int_equal(kern_sparsify(b, &op, NULL), STATUS_OK);
    assert_memory_equal(y + 77 * ROWS_D, expected, sizeof expected);
}

static double length_of(const float *x)
{
    double squares = 0;
    for (size_t i = 0; i < ROWS_D; i++)
        squares += (double)x[i] * (double)x[i];
    return sqrt(squares);
}

/* Rows get the length of another row; one that is shorter than the least counts as that long. */
static void case_stretch(struct kern_backend *b, float *y)
{
    static float x[ROWS_T * ROWS_D], to[ROWS_T * ROWS_D], before[ROWS_D];
    fill(20, x, ROWS_T * ROWS_D);
    fill(21, to, ROWS_T * ROWS_D);
    fill(22, y, ROWS_T * ROWS_D);
    memset(x + 5 * ROWS_D, 0, ROWS_D * sizeof *x);
    x[5 * ROWS_D + 2] = 1e-3f;
    memcpy(before, y + 9 * ROWS_D, sizeof before);
    struct kern_stretch op = {
        .x = x, .to = to, .y = y, .n_rows = ROWS_T, .width = ROWS_D, .least = 1e-4f};
    assert_int_equal(kern_stretch(b, &op, NULL), STATUS_OK);
    for (size_t t = 0; t < ROWS_T; t++) {
        double share = t == 5 ? 1e-3 / sqrt(1e-4 * ROWS_D) : 1;
        assert_true(fabs(length_of(y + t * ROWS_D) / length_of(to + t * ROWS_D) - share) < 1e-6);
    }
    float alone = y[9 * ROWS_D + 4];
    memcpy(y + 9 * ROWS_D, before, sizeof before);
    op.accumulate = true;
    assert_int_equal(kern_stretch(b, &op, NULL), STATUS_OK);
    assert_true(fabsf(y[9 * ROWS_D + 4] - before[4] - alone) < 1e-5f);
}

/* To one row, which no y is added to. */
static void case_mix_to_one(struct kern_backend *b, float *out)
{
    static float x[MIX_T * MIX_S * MIX_D], weights[MIX_T * MIX_W];
    fill(33, x, MIX_T * MIX_S * MIX_D);
    fill(34, weights, MIX_T * MIX_W);
    struct kern_mix op = {.x = x,
                          .weights = weights,
                          .stride = MIX_W,
                          .out = out,
                          .n_tokens = MIX_T,
                          .n_in = MIX_S,
                          .n_out = 1,
                          .width = MIX_D};
    assert_int_equal(kern_mix(b, &op, NULL), STATUS_OK);
    for (size_t i = 0; i < MIX_T * MIX_D; i++) {
        const float *w = weights + i / MIX_D * MIX_W, *in = x + i / MIX_D * MIX_S * MIX_D;
        float sum = in[i % MIX_D] * w[0];
        for (size_t s = 1; s < MIX_S; s++)
            sum = fmaf(w[s], in[s * MIX_D + i % MIX_D], sum);
        assert_true(out[i] == sum);
    }
}

/* The matrix of weights is as good as doubly stochastic; all of it comes of the formula. */
static void case_stream_weights(struct kern_backend *b, float *a)
{
    static float before[MIX_T * MIX_W], base[MIX_W];
    static const float scale[3] = {0.7f, -0.4f, 1.3f};
    const double eps = 1e-4;
    fill(35, a, MIX_T * MIX_W);
    fill(36, base, MIX_W);
    memcpy(before, a, sizeof before);
    struct kern_weight scales = f32_row(scale, 3), bases = f32_row(base, MIX_W);
    struct kern_stream_rule rule = {MIX_S, 4, (float)eps, 2, false};
    struct kern_stream_weights op = {a, &scales, &bases, MIX_T, rule};
    assert_int_equal(kern_stream_weights(b, &op, NULL), STATUS_OK);
    for (size_t t = 0; t < MIX_T; t++) {
        double c[MIX_S][MIX_S], z[MIX_W];
        for (size_t i = 0; i < MIX_W; i++)
            z[i] = (double)before[t * MIX_W + i] * (double)scale[i < MIX_S       ? 0
                                                                 : i < 2 * MIX_S ? 1
                                                                                 : 2] +
                   (double)base[i];
        for (size_t i = 0; i < MIX_S; i++) {
            double sum = 0;
            for (size_t j = 0; j < MIX_S; j++)
                sum += c[i][j] = exp(z[(2 + i) * MIX_S + j]);
            for (size_t j = 0; j < MIX_S; j++)
                c[i][j] = c[i][j] / sum + eps;
        }
        for (size_t pass = 0; pass < 7; pass++) { /* columns, then 3 times rows and columns */
            for (size_t i = 0; i < MIX_S; i++) {
                double sum = eps;
                for (size_t j = 0; j < MIX_S; j++)
                    sum += pass % 2 ? c[i][j] : c[j][i];
                for (size_t j = 0; j < MIX_S; j++)
                    *(pass % 2 ? &c[i][j] : &c[j][i]) /= sum;
            }
        }
        const float *found = a + t * MIX_W;
        for (size_t i = 0; i < MIX_S; i++) {
            assert_true(fabs((double)found[i] - (1 / (1 + exp(-z[i])) + eps)) < 1e-6);
            assert_true(fabs((double)found[MIX_S + i] - 2 / (1 + exp(-z[MIX_S + i]))) < 1e-6);
            for (size_t j = 0; j < MIX_S; j++)
                assert_true(fabs((double)found[(2 + i) * MIX_S + j] - c[i][j]) < 1e-6);
        }
    }
}

static void case_streams_apart(struct kern_backend *b, float *a)
{
    static const float scale[] = {0.7f, -0.4f}, base[] = {0.3f, -0.2f}, before[] = {1.5f, -2.5f};
    struct kern_weight scales = f32_row(scale, 2), bases = f32_row(base, 2);
    struct kern_stream_weights op = {
        a, &scales, &bases, 1, {.n_streams = 1, .eps = 1e-2f, .magnitude = 1.5f}};
    memcpy(a, before, sizeof before);
    assert_int_equal(kern_stream_weights(b, &op, NULL), STATUS_OK);
    for (size_t i = 0; i < 2; i++) {
        double z = (double)before[i] * (double)scale[i] + (double)base[i];
        assert_true(fabs((double)a[i] - (i == 0 ? 1 : 1.5) / (1 + exp(-z)) - 1e-2) < 1e-6);
    }
}

/* Half of the terms take the beginning of their rows, half the end; two are missing. */
enum { RUN_N = 60, RUN_W = 37, RUN_TERMS = 8, RUN_ROWS = 100 };

static void run_compress(struct kern_backend *b, float *y, bool weighed)
{
    static float u[RUN_ROWS * 2 * RUN_W], z[RUN_ROWS * 2 * RUN_W];
    static uint32_t rows[RUN_N * RUN_TERMS];
    fill(37, u, RUN_ROWS * 2 * RUN_W);
    fill(38, z, RUN_ROWS * 2 * RUN_W);
    for (uint32_t i = 0; i < RUN_N * RUN_TERMS; i++)
        rows[i] = i < 2 ? UINT32_MAX : i * 77 % RUN_ROWS;
    struct kern_compress op = {.u = u,
                               .z = weighed ? z : NULL,
                               .stride = (size_t)2 * RUN_W,
                               .rows = rows,
                               .n_terms = RUN_TERMS,
                               .n_early = RUN_TERMS / 2,
                               .late = RUN_W,
                               .y = y,
                               .n_out = RUN_N,
                               .width = RUN_W};
    assert_int_equal(kern_compress(b, &op, NULL), STATUS_OK);
    for (size_t i = 0; i < RUN_N * RUN_W; i++) {
        double sum = 0, mean = 0;
        for (size_t j = 0; j < RUN_TERMS; j++) {
            uint32_t row = rows[i / RUN_W * RUN_TERMS + j];
            if (row == UINT32_MAX)
                continue;
            size_t at = (size_t)row * 2 * RUN_W + (j < RUN_TERMS / 2 ? 0 : RUN_W) + i % RUN_W;
            double weight = weighed ? exp((double)z[at]) : 1;
            sum += weight;
            mean += weight * (double)u[at];
        }
        assert_true(fabs((double)y[i] - mean / sum) < 1e-5);
    }
}

static void case_compress(struct kern_backend *b, float *y)
{
    run_compress(b, y, true);
    run_compress(b, y + RUN_N * RUN_W, false);
}

static const struct {
    const char *name;
    case_fn *run;
    size_t n_floats;
} cases[] = {
    {"mix", case_mix, (size_t)MIX_T *MIX_S *MIX_D},
    {"mix by output", case_mix_by_output, (size_t)MIX_T *MIX_S *MIX_D},
    {"mix apart", case_mix_apart, (size_t)MIX_T *MIX_S *MIX_D},
    {"match", case_match, (size_t)MIX_T *MIX_S *MIX_D},
    {"sparsify", case_sparsify, ROWS_T *ROWS_D},
    {"stretch", case_stretch, ROWS_T *ROWS_D},
    {"mix to one row", case_mix_to_one, MIX_T *MIX_D},
    {"stream_weights", case_stream_weights, (size_t)MIX_T *MIX_W},
    {"stream_weights of streams apart", case_streams_apart, 2},
    {"compress", case_compress, 2 * RUN_N *RUN_W},
};

static void test_same_bits_for_any_isa_and_threads(void **state)
{
    (void)state;
    static float expected[MAX_FLOATS], found[MAX_FLOATS];
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        for (int isa = KERN_ISA_SCALAR; isa <= (int)kern_isa_detect(); isa++) {
            for (unsigned n_threads = 1; n_threads <= 3; n_threads += 2) {
                bool first = isa == KERN_ISA_SCALAR && n_threads == 1;
                struct kern_backend *b = backend_open(isa, n_threads);
                cases[c].run(b, first ? expected : found);
                kern_close(b);
                size_t n = cases[c].n_floats;
                if (!first && compare_bits(found, expected, n) < n)
                    fail_msg("%s, %s, %u threads: other bits", cases[c].name,
                             kern_isa_name((enum kern_isa)isa), n_threads);
            }
        }
    }
}

/** Arrays on both backends. */
struct both {
    struct cuda_pair *p;
    float *host, *device;
    size_t n;
};

/** Takes x. */
static struct both both_of(struct cuda_pair *p, float *x, size_t n)
{
    return (struct both){p, x, cuda_pair_put(p, x, n), n};
}

static struct both both_open(struct cuda_pair *p, struct rng *r, size_t n)
{
    return both_of(p, cuda_data_floats(r, n, 2.0f), n);
}

/** What the device has must be what the host has. */
static void both_close(struct both *a, const char *what)
{
    float *found = cuda_data_copy(a->host, a->n);
    assert_int_equal(kern_download(a->p->cuda, found, a->device, a->n * sizeof *found, NULL), 0);
    cuda_data_assert_same(found, a->host, a->n, what);
    cuda_pair_take(a->p, a->device, NULL, 0);
    free(found);
    free(a->host);
}

/** spread: of the products that weights come from; their exponentials end at some 700. */
static void check_streams(struct cuda_pair *p, struct rng *r, size_t n, size_t n_streams,
                          size_t width, float spread)
{
    size_t n_weights = (2 + n_streams) * n_streams;
    struct kern_weight scale = cuda_data_float_weight(r, 1, 3);
    struct kern_weight base = cuda_data_float_weight(r, 1, n_weights);
    struct kern_stream_rule rule = {(uint32_t)n_streams, 3, 1e-4f, 2, false};
    struct both x = both_open(p, r, n * n_streams * width), y = both_open(p, r, n * width);
    struct both row = both_open(p, r, n * width);
    struct both weights = both_of(p, cuda_data_floats(r, n * n_weights, spread), n * n_weights);
    for (int on_device = 0; on_device < 2; on_device++) {
        struct kern_backend *b = on_device ? p->cuda : p->cpu;
#define OF(a) (on_device ? (a).device : (a).host)
        struct kern_stream_weights weigh = {OF(weights), &scale, &base, n, rule};
        assert_int_equal(kern_stream_weights(b, &weigh, NULL), STATUS_OK);
        struct kern_mix mix = {.x = OF(x),
                               .weights = OF(weights),
                               .stride = n_weights,
                               .out = OF(row),
                               .n_tokens = n,
                               .n_in = n_streams,
                               .n_out = 1,
                               .width = width};
        assert_int_equal(kern_mix(b, &mix, NULL), STATUS_OK);
        mix.weights += 2 * n_streams;
        mix.y = OF(y);
        mix.y_weights = OF(weights) + n_streams;
        mix.out = OF(x);
        mix.n_out = n_streams;
        assert_int_equal(kern_mix(b, &mix, NULL), STATUS_OK);
        mix.by_output = true;
        assert_int_equal(kern_mix(b, &mix, NULL), STATUS_OK);
        mix.y = NULL;
        assert_int_equal(kern_mix(b, &mix, NULL), STATUS_OK);
        mix.y = OF(y);
        mix.weights = NULL;
        assert_int_equal(kern_mix(b, &mix, NULL), STATUS_OK);
        struct kern_match match = {OF(x), OF(x), OF(y), OF(x), n, n_streams, width};
        assert_int_equal(kern_match(b, &match, NULL), STATUS_OK);
    }
    both_close(&weights, "stream_weights");
    both_close(&x, "mix and match");
    both_close(&row, "mix to one row");
    both_close(&y, "what mix reads");
    cuda_data_weight_free(&scale);
    cuda_data_weight_free(&base);
}

/** Without the matrix: of streams that are not mixed, or the first numbers alone. */
static void check_parts(struct cuda_pair *p, struct rng *r, bool pre_only)
{
    enum { N = 5, STREAMS = 4 };
    struct kern_stream_rule rule = {STREAMS, .eps = 1e-2f, .magnitude = 1.5f, .pre_only = pre_only};
    struct kern_weight scale = cuda_data_float_weight(r, 1, pre_only ? 1 : 2);
    struct kern_weight base = cuda_data_float_weight(r, 1, kern_stream_products(&rule));
    struct both a = both_open(p, r, N * base.n_cols);
    struct kern_stream_weights op = {a.host, &scale, &base, N, rule};
    assert_int_equal(kern_stream_weights(p->cpu, &op, NULL), STATUS_OK);
    op.a = a.device;
    assert_int_equal(kern_stream_weights(p->cuda, &op, NULL), STATUS_OK);
    both_close(&a, "stream_weights of one part");
    cuda_data_weight_free(&scale);
    cuda_data_weight_free(&base);
}

static void check_compress(struct cuda_pair *p, struct rng *r, size_t width, uint32_t n_terms)
{
    enum { N = 6, ROWS = 20, MOST_TERMS = 8 };
    uint32_t rows[N * MOST_TERMS];
    for (uint32_t i = 0; i < N * n_terms; i++)
        rows[i] = i + 1 < n_terms && i < 2 ? UINT32_MAX : i * 7 % ROWS;
    struct both u = both_open(p, r, ROWS * 2 * width), z = both_open(p, r, ROWS * 2 * width);
    struct both y = both_open(p, r, N * width), mean = both_open(p, r, N * width);
    struct kern_compress op = {.u = u.host,
                               .z = z.host,
                               .stride = 2 * width,
                               .rows = rows,
                               .n_terms = n_terms,
                               .n_early = n_terms / 2,
                               .late = width,
                               .y = y.host,
                               .n_out = N,
                               .width = width};
    for (int weighed = 1; weighed >= 0; weighed--, op.y = mean.host) {
        op.u = u.host;
        op.z = weighed ? z.host : NULL;
        assert_int_equal(kern_compress(p->cpu, &op, NULL), STATUS_OK);
        op.u = u.device;
        op.z = weighed ? z.device : NULL;
        op.y = weighed ? y.device : mean.device;
        assert_int_equal(kern_compress(p->cuda, &op, NULL), STATUS_OK);
    }
    both_close(&y, "compress");
    both_close(&mean, "mean");
    both_close(&u, "what compress reads");
    both_close(&z, "what compress reads");
}

/** Thresholds, also of a row with a NaN, and lengths. */
static void check_measured(struct cuda_pair *p, struct rng *r, size_t n, size_t width)
{
    struct both x = both_open(p, r, n * width), y = both_open(p, r, n * width);
    struct both z = both_open(p, r, n * width);
    for (int on_device = 0; on_device < 2; on_device++) {
        struct kern_backend *b = on_device ? p->cuda : p->cpu;
        struct kern_stretch stretch = {
            .x = OF(x), .to = OF(z), .y = OF(y), .n_rows = n, .width = width, .least = 1e-5f};
        assert_int_equal(kern_stretch(b, &stretch, NULL), STATUS_OK);
        stretch.accumulate = true;
        assert_int_equal(kern_stretch(b, &stretch, NULL), STATUS_OK);
        struct kern_sparsify cut = {OF(x), n, width, 0.4f, true};
        assert_int_equal(kern_sparsify(b, &cut, NULL), STATUS_OK);
        cut = (struct kern_sparsify){OF(z), n, width, -0.7f, false};
        const float nan = NAN;
        assert_int_equal(kern_upload(b, cut.x, &nan, sizeof nan, NULL), STATUS_OK);
        assert_int_equal(kern_sparsify(b, &cut, NULL), STATUS_OK);
    }
    both_close(&x, "sparsify");
    both_close(&y, "stretch");
    both_close(&z, "sparsify, NaN");
}

static void test_on_a_device(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUDA_PAIR_N_WAYS; i += cuda_pair_step()) {
        struct rng r = rng_open(rng_seed(), 9);
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(i);
        cuda_pair_open(&p, KERN_PRECISION_EXACT, &way);
        check_streams(&p, &r, 40, 4, 70, 2.0f);
        check_streams(&p, &r, 3, 2, 1, 2.0f);
        check_streams(&p, &r, 2, KERN_STREAMS_MAX, 600, 2.0f);
        check_streams(&p, &r, 20, KERN_STREAMS_MAX - 1, 3, 1000.0f);
        check_streams(&p, &r, 9, 3, 5, 1000.0f);
        check_streams(&p, &r, 9, 1, 5, 1000.0f);
        check_measured(&p, &r, 5, 1);
        check_measured(&p, &r, 3, 100);
        check_measured(&p, &r, 1, 2048);
        check_measured(&p, &r, 2, 4100);
        check_parts(&p, &r, true);
        check_parts(&p, &r, false);
        check_compress(&p, &r, 200, 4);
        for (uint32_t n_terms = 1; n_terms <= 7; n_terms += 2)
            check_compress(&p, &r, 5, n_terms);
        cuda_pair_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits_for_any_isa_and_threads),
        cmocka_unit_test(test_on_a_device),
    };
    const struct CMUnitTest device_tests[] = {cmocka_unit_test(test_on_a_device)};
    int n_failed = cmocka_run_group_tests_name("host device", tests, NULL, NULL);
    if (!cuda_pair_use_real_device())
        return n_failed;
    return n_failed + cmocka_run_group_tests_name("CUDA device", device_tests, NULL, NULL);
}

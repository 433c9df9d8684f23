/*
 * Products and embeddings on the CPU backend, every ISA, against the definition: one chain of
 * fmaf() in the order of the columns, to the bit. Buffers end at inaccessible pages.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/operations.h"
#include "kernels/quant/registry.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/cpu_backend.h"
#include "tests/harness/guard.h"
#include "tests/harness/rng.h"

/** One product and everything it reads and writes. */
struct product {
    struct kern_weight weight, bias;
    struct guard weight_bytes, bias_bytes, x, y;
    float *decoded; /* [R, K] */
    struct kern_linear op;
};

struct shape {
    enum gguf_type type;
    size_t n_tokens, n_rows, n_cols;
    float scale;
    bool bias, accumulate;
};

static void fill_floats(struct rng *r, struct guard *g, bool integers)
{
    float *values = (float *)(void *)g->data;
    for (size_t i = 0; i < g->n_bytes / sizeof(float); i++)
        values[i] = integers ? (float)rng_below(r, 17) - 8.0f : rng_normal(r);
}

/** Random bytes decode to something in every type; NaN and infinity are made finite. */
static void fill_weight(struct rng *r, struct product *p, bool integers)
{
    const struct gguf_type_info *info = gguf_type_info(p->weight.type);
    if (p->weight.type == GGUF_TYPE_F32) {
        fill_floats(r, &p->weight_bytes, integers);
    } else {
        rng_bytes(r, p->weight_bytes.data, p->weight_bytes.n_bytes);
        /* The types used here keep their float16 scale in the first two bytes: about 0.01. */
        for (size_t i = 0; i < p->weight_bytes.n_bytes; i += info->block_bytes)
            memcpy(p->weight_bytes.data + i, (const uint8_t[]){0x1f, 0x21}, 2);
    }
    const struct kern_quant *quant = kern_quant_find(p->weight.type);
    for (size_t i = 0; i < p->weight.n_rows; i++)
        quant->decode((const uint8_t *)p->weight.data + i * p->weight.row_bytes,
                      p->decoded + i * p->weight.n_cols, p->weight.n_cols);
}

static void product_open(struct product *p, struct rng *r, const struct shape *s, bool integers)
{
    const struct gguf_type_info *info = gguf_type_info(s->type);
    size_t row_bytes = s->n_cols / info->block_elems * info->block_bytes;
    size_t y_stride = s->n_rows + rng_below(r, 5);
    /* Nothing is written after the last row's last element, so the buffer ends there. */
    size_t y_floats = (s->n_tokens - 1) * y_stride + s->n_rows;
    size_t slack = 4 * rng_below(r, 4);
    p->weight_bytes = guard_open(s->n_rows * row_bytes, 0);
    p->bias_bytes = guard_open(s->n_rows * sizeof(float), 0);
    p->x = guard_open(s->n_tokens * s->n_cols * sizeof(float), slack);
    p->y = guard_open(y_floats * sizeof(float), slack);
    p->decoded = malloc(s->n_rows * s->n_cols * sizeof(float));
    p->weight = (struct kern_weight){.type = s->type,
                                     .n_rows = s->n_rows,
                                     .n_cols = s->n_cols,
                                     .row_bytes = row_bytes,
                                     .data = p->weight_bytes.data,
                                     .scale = s->scale};
    p->bias = (struct kern_weight){.type = GGUF_TYPE_F32,
                                   .n_rows = 1,
                                   .n_cols = s->n_rows,
                                   .row_bytes = s->n_rows * sizeof(float),
                                   .data = p->bias_bytes.data,
                                   .scale = s->scale == 1.0f ? 1.0f : 3.0f};
    fill_weight(r, p, integers);
    fill_floats(r, &p->bias_bytes, integers);
    fill_floats(r, &p->x, integers);
    fill_floats(r, &p->y, integers);
    p->op = (struct kern_linear){.weight = &p->weight,
                                 .bias = s->bias ? &p->bias : NULL,
                                 .x = (const float *)(void *)p->x.data,
                                 .y = (float *)(void *)p->y.data,
                                 .y_stride = y_stride,
                                 .n_tokens = s->n_tokens,
                                 .accumulate = s->accumulate};
}

static void product_close(struct product *p)
{
    assert_true(guard_intact(&p->weight_bytes) && guard_intact(&p->bias_bytes));
    assert_true(guard_intact(&p->x) && guard_intact(&p->y));
    guard_close(&p->weight_bytes);
    guard_close(&p->bias_bytes);
    guard_close(&p->x);
    guard_close(&p->y);
    free(p->decoded);
}

/** The definition. expected: a copy of y that is brought to what y must become. */
static void naive_linear(const struct product *p, float *expected)
{
    const float *bias = (const float *)p->bias.data;
    for (size_t t = 0; t < p->op.n_tokens; t++) {
        const float *x = p->op.x + t * p->weight.n_cols;
        float *y = expected + t * p->op.y_stride;
        for (size_t r = 0; r < p->weight.n_rows; r++) {
            const float *w = p->decoded + r * p->weight.n_cols;
            float acc = 0.0f;
            for (size_t c = 0; c < p->weight.n_cols; c++)
                acc = fmaf(w[c], x[c], acc);
            if (p->weight.scale != 1.0f)
                acc *= p->weight.scale;
            if (p->op.bias)
                acc += bias[r] * p->bias.scale;
            y[r] = p->op.accumulate ? acc + y[r] : acc;
        }
    }
}

static void assert_same(const float *found, const float *expected, size_t n, const char *what,
                        const struct shape *s)
{
    size_t i = compare_bits(found, expected, n);
    if (i < n)
        fail_msg("%s, %s %zu x %zu, %zu tokens: element %zu is %a, expected %a", what,
                 gguf_type_name(s->type), s->n_rows, s->n_cols, s->n_tokens, i, (double)found[i],
                 (double)expected[i]);
}

/** Run a shape on every ISA and some numbers of threads; all must equal the definition. */
static void check_shape(const struct shape *s, bool integers, uint64_t stream)
{
    struct rng r = rng_open(rng_seed(), stream);
    struct product p;
    product_open(&p, &r, s, integers);
    float *before = malloc(p.y.n_bytes);
    float *expected = malloc(p.y.n_bytes);
    memcpy(before, p.y.data, p.y.n_bytes);
    memcpy(expected, p.y.data, p.y.n_bytes);
    naive_linear(&p, expected);
    for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
        for (unsigned n_threads = 1; n_threads <= 4; n_threads *= 2) {
            struct kern_backend *b = backend_open((enum kern_isa)isa, n_threads);
            memcpy(p.y.data, before, p.y.n_bytes);
            assert_int_equal(kern_linear(b, &p.op, NULL), STATUS_OK);
            assert_same(p.op.y, expected, p.y.n_bytes / sizeof(float),
                        kern_isa_name((enum kern_isa)isa), s);
            kern_close(b);
        }
    }
    free(before);
    free(expected);
    product_close(&p);
}

static void test_awkward_shapes(void **state)
{
    (void)state;
    static const size_t tokens[] = {1, 2, 3, 15, 16, 17, 31, 32, 33, 64, 65};
    static const size_t rows[] = {1, 2, 5, 7, 8, 9, 11, 12, 13, 23, 24, 25, 40};
    static const size_t cols[] = {1, 2, 31, 32, 33, 100};
    uint64_t stream = 0;
    for (size_t t = 0; t < sizeof tokens / sizeof tokens[0]; t++) {
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            size_t k = stream++ % (sizeof cols / sizeof cols[0]);
            struct shape s = {
                GGUF_TYPE_F32, tokens[t],      rows[i], cols[k], stream % 3 ? 1.0f : 0.75f,
                stream % 2,    stream % 5 == 0};
            check_shape(&s, false, stream);
        }
    }
}

/** Rows longer than a slab, several tiles per thread, quantised rows of one and more blocks. */
static void test_larger_shapes(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {GGUF_TYPE_F32, 70, 300, 1100, 1.0f, true, true},
        {GGUF_TYPE_Q8_0, 33, 130, 32, 1.0f, false, false},
        {GGUF_TYPE_Q8_0, 5, 77, 1056, 1.0f, false, true},
        {GGUF_TYPE_Q4_0, 40, 61, 544, -3.0f, true, false},
        {GGUF_TYPE_Q4_K, 34, 70, 256, 1.0f, false, false},
        {GGUF_TYPE_Q4_K, 3, 33, 1280, 0.5f, false, true},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        check_shape(&shapes[i], false, 1000 + i);
}

/** Small integers: every partial sum is exact, so the true product must come out. */
static void test_integers_are_exact(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 2000);
    struct shape s = {GGUF_TYPE_F32, 37, 45, 700, 1.0f, false, false};
    struct product p;
    product_open(&p, &r, &s, true);
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 2);
    assert_int_equal(kern_linear(b, &p.op, NULL), STATUS_OK);
    for (size_t t = 0; t < s.n_tokens; t++) {
        for (size_t row = 0; row < s.n_rows; row++) {
            int64_t sum = 0;
            for (size_t c = 0; c < s.n_cols; c++)
                sum += (int64_t)p.decoded[row * s.n_cols + c] * (int64_t)p.op.x[t * s.n_cols + c];
            assert_true(p.op.y[t * p.op.y_stride + row] == (float)sum);
        }
    }
    kern_close(b);
    product_close(&p);
}

/** More tokens than are packed at once, and the same tokens one by one. */
static void test_batch_does_not_matter(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 3000);
    struct shape s = {GGUF_TYPE_F32, 4096 + 45, 9, 33, 1.0f, true, false};
    struct product p;
    product_open(&p, &r, &s, false);
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 2);
    assert_int_equal(kern_linear(b, &p.op, NULL), STATUS_OK);
    float one[9];
    struct kern_linear op = p.op;
    op.y = one;
    op.n_tokens = 1;
    for (size_t t = 0; t < s.n_tokens; t += t < 4090 ? 13 : 1) {
        op.x = p.op.x + t * s.n_cols;
        assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
        assert_same(one, p.op.y + t * p.op.y_stride, s.n_rows, "one token", &s);
    }
    kern_close(b);
    product_close(&p);
}

/** The hint of packed tokens: whatever was packed before, and where, the products are the same. */
static void check_same_x(size_t n_tokens, unsigned n_threads)
{
    enum { N = 4, N_COLS = 33 };
    static const size_t rows[N] = {9, 5, 300, 12}; /* less memory, more, less */
    struct rng r = rng_open(rng_seed(), 3500 + n_tokens);
    float *x = malloc(n_tokens * N_COLS * sizeof(float));
    float *w = malloc(rows[2] * N_COLS * sizeof(float));
    float *y = malloc(n_tokens * rows[2] * sizeof(float)),
          *expected = malloc(n_tokens * rows[2] * 4);
    for (size_t i = 0; i < rows[2] * N_COLS; i++)
        w[i] = rng_normal(&r);
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, n_threads);
    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < n_tokens * N_COLS; i++)
            x[i] = rng_normal(&r);
        for (size_t i = 0; i < N; i++) {
            struct kern_weight weight = {.type = GGUF_TYPE_F32,
                                         .n_rows = rows[i],
                                         .n_cols = N_COLS,
                                         .row_bytes = N_COLS * sizeof(float),
                                         .data = w,
                                         .scale = 1.0f};
            struct kern_linear op = {.weight = &weight,
                                     .x = x,
                                     .y = y,
                                     .y_stride = rows[i],
                                     .n_tokens = n_tokens,
                                     .same_x = i > 0};
            assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
            struct kern_backend *fresh = backend_open(KERN_ISA_COUNT - 1, 1);
            op.y = expected;
            op.same_x = false;
            assert_int_equal(kern_linear(fresh, &op, NULL), STATUS_OK);
            kern_close(fresh);
            assert_int_equal(compare_bits(y, expected, n_tokens * rows[i]), n_tokens * rows[i]);
        }
    }
    kern_close(b);
    free(x);
    free(w);
    free(y);
    free(expected);
}

static void test_same_x(void **state)
{
    (void)state;
    check_same_x(1, 1);
    check_same_x(70, 2);
    check_same_x(4096 + 45, 2);
}

/** A NaN or infinity stays with its own token and row. */
static void test_nonfinite_stays_where_it_is(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 4000);
    struct shape s = {GGUF_TYPE_F32, 40, 20, 50, 1.0f, false, false};
    struct product p;
    product_open(&p, &r, &s, false);
    ((float *)(void *)p.x.data)[7 * s.n_cols + 3] = NAN;
    ((float *)(void *)p.weight_bytes.data)[11 * s.n_cols + 4] = INFINITY;
    p.decoded[11 * s.n_cols + 4] = INFINITY;
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 2);
    assert_int_equal(kern_linear(b, &p.op, NULL), STATUS_OK);
    for (size_t t = 0; t < s.n_tokens; t++) {
        for (size_t row = 0; row < s.n_rows; row++) {
            bool expected = t != 7 && row != 11;
            assert_int_equal(!!isfinite(p.op.y[t * p.op.y_stride + row]), expected);
        }
    }
    kern_close(b);
    product_close(&p);
}

static void test_embed(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 5000);
    struct shape s = {GGUF_TYPE_Q4_K, 1, 30, 512, 1.0f, false, false};
    struct product p;
    product_open(&p, &r, &s, false);
    enum { N = 200 };
    int32_t tokens[N];
    float *x = malloc(N * s.n_cols * sizeof(float));
    for (size_t i = 0; i < N; i++)
        tokens[i] = (int32_t)rng_below(&r, s.n_rows);
    for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
        struct kern_backend *b = backend_open((enum kern_isa)isa, 2);
        assert_int_equal(kern_embed(b, &p.weight, tokens, N, x, NULL), STATUS_OK);
        for (size_t i = 0; i < N; i++)
            assert_same(x + i * s.n_cols, p.decoded + (size_t)tokens[i] * s.n_cols, s.n_cols,
                        "embed", &s);
        struct status_why why = {{0}};
        tokens[N - 1] = (int32_t)s.n_rows;
        assert_int_equal(kern_embed(b, &p.weight, tokens, N, x, &why), STATUS_USAGE);
        assert_string_equal(why.text, "embed: token 30 at 199; the matrix has 30 rows");
        tokens[N - 1] = -1;
        assert_int_equal(kern_embed(b, &p.weight, tokens, N, x, &why), STATUS_USAGE);
        tokens[N - 1] = 0;
        kern_close(b);
    }
    free(x);
    product_close(&p);
}

/** A backend of its own for each of two threads, both at work. */
struct user {
    pthread_t thread;
    enum kern_isa isa;
    struct kern_linear op;
    enum status status;
};

static void *use_backend(void *context)
{
    struct user *user = context;
    struct kern_cpu_options options = {.n_threads = 2, .isa_cap = user->isa};
    struct kern_backend *b = NULL;
    user->status = kern_cpu_open(&b, &options, NULL);
    for (int i = 0; i < 10 && user->status == STATUS_OK; i++)
        user->status = kern_linear(b, &user->op, NULL);
    kern_close(b);
    return NULL;
}

static void test_two_backends_at_once(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 7000);
    struct shape s = {GGUF_TYPE_Q8_0, 40, 60, 96, 1.0f, true, false};
    struct product p;
    product_open(&p, &r, &s, false);
    float *y = malloc(p.y.n_bytes);
    struct user users[] = {{.isa = KERN_ISA_SCALAR, .op = p.op},
                           {.isa = KERN_ISA_COUNT - 1, .op = p.op}};
    users[1].op.y = y;
    memcpy(y, p.y.data, p.y.n_bytes);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&users[i].thread, NULL, use_backend, &users[i]), 0);
    for (size_t i = 0; i < 2; i++) {
        pthread_join(users[i].thread, NULL);
        assert_int_equal(users[i].status, STATUS_OK);
    }
    assert_same(y, p.op.y, p.y.n_bytes / sizeof(float), "two backends", &s);
    free(y);
    product_close(&p);
}

static void test_cancel(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 6000);
    struct shape s = {GGUF_TYPE_F32, 64, 64, 64, 1.0f, false, false};
    struct product p;
    product_open(&p, &r, &s, false);
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 2);
    atomic_bool cancel = false;
    kern_set_cancel(b, &cancel);
    assert_int_equal(kern_linear(b, &p.op, NULL), STATUS_OK);
    atomic_store(&cancel, true);
    assert_int_equal(kern_linear(b, &p.op, NULL), STATUS_CANCELLED);
    kern_set_cancel(b, NULL);
    assert_int_equal(kern_linear(b, &p.op, NULL), STATUS_OK);
    kern_close(b);
    product_close(&p);
}

/** Weights that cannot be: refused with a sentence. */
static void test_bad_weights(void **state)
{
    (void)state;
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 1);
    static const float data[64] = {0};
    float x[64] = {0}, y[64];
    static const struct {
        struct kern_weight weight;
        enum status status;
        const char *text;
    } cases[] = {
        {{.type = (enum gguf_type)9, .n_rows = 1, .n_cols = 32, .row_bytes = 36},
         STATUS_UNSUPPORTED,
         "linear: weight: type Q8_1 cannot be decoded"},
        {{.type = GGUF_TYPE_Q8_0, .n_rows = 1, .n_cols = 33, .row_bytes = 68},
         STATUS_USAGE,
         "linear: weight: rows of 33 elements; Q8_0 needs a multiple of 32"},
        {{.type = GGUF_TYPE_F32, .n_rows = 2, .n_cols = 8, .row_bytes = 31},
         STATUS_USAGE,
         "linear: weight: rows 31 bytes apart; 8 elements of F32 take 32"},
        {{.type = GGUF_TYPE_F32, .n_rows = 0, .n_cols = 8, .row_bytes = 32},
         STATUS_USAGE,
         "linear: weight: empty matrix of 0 x 8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kern_weight weight = cases[i].weight;
        weight.data = data;
        weight.scale = 1.0f;
        struct kern_linear op = {.weight = &weight, .x = x, .y = y, .y_stride = 64, .n_tokens = 1};
        struct status_why why = {{0}};
        assert_int_equal(kern_linear(b, &op, &why), cases[i].status);
        assert_string_equal(why.text, cases[i].text);
    }
    kern_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_awkward_shapes),
        cmocka_unit_test(test_larger_shapes),
        cmocka_unit_test(test_integers_are_exact),
        cmocka_unit_test(test_batch_does_not_matter),
        cmocka_unit_test(test_same_x),
        cmocka_unit_test(test_nonfinite_stays_where_it_is),
        cmocka_unit_test(test_embed),
        cmocka_unit_test(test_two_backends_at_once),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_bad_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

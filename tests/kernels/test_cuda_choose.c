/*
 * The CUDA backend's choice of keys, and its attention to chosen keys and to keys of runs of
 * tokens, on a device made of the host's memory and, where there is one, on a real device: the CPU
 * backend's bits, or in `high` and `fast` what float64 makes of it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/run_kernel.h"
#include "tests/kernels/choose_scene.h"
#include "tests/kernels/cuda_data.h"
#include "tests/kernels/flash_scene.h"

static uint64_t *put_words(struct cuda_pair *p, const uint64_t *words, size_t n)
{
    return (uint64_t *)(void *)cuda_pair_put(p, (const float *)(const void *)words, 2 * n);
}

static void take_words(struct cuda_pair *p, uint64_t *copy, uint64_t *to, size_t n)
{
    cuda_pair_take(p, (float *)(void *)copy, (float *)(void *)to, 2 * n);
}

/** The scene's operation on the device; its bits to the scene's. */
static void choose(struct cuda_pair *p, struct choose_scene *s)
{
    struct kern_choose op = s->op;
    float *arrays[] = {cuda_pair_put(p, s->q, s->n_q), cuda_pair_put(p, s->k, s->n_k),
                       cuda_pair_put(p, s->weights, s->n_weights)};
    uint64_t *bits = put_words(p, s->bits, s->n_words);
    op.q = arrays[0];
    op.k = arrays[1];
    op.weights = s->op.weights ? arrays[2] : NULL;
    op.bits = bits;
    struct status_why why = {""};
    if (kern_choose(p->cuda, &op, &why) != STATUS_OK)
        fail_msg("%s", why.text);
    for (size_t i = 0; i < 3; i++)
        cuda_pair_take(p, arrays[i], NULL, 0);
    take_words(p, bits, s->bits, s->n_words);
}

static void test_choice(void **state)
{
    (void)state;
    for (size_t i = 0; i < CHOOSE_SCENE_SHAPES; i++) {
        struct rng r = rng_open(rng_seed(), i);
        struct host_device_options way = cuda_pair_way(i % CUDA_PAIR_N_WAYS);
        struct choose_shape shape = choose_scene_shape(i);
        struct choose_scene s;
        struct cuda_pair p;
        cuda_pair_open(&p, KERN_PRECISION_EXACT, &way);
        choose_scene_open(&s, &r, &shape);
        choose(&p, &s);
        choose_scene_check(&s, s.bits);
        assert_true(kern_choose_bytes(p.cuda, &s.op) > 0);
        choose_scene_close(&s);
        cuda_pair_close(&p);
    }
}

/** So many keys that tasks have to wait for others' memory: all that a query sees are equal. */
static void test_many_keys(void **state)
{
    (void)state;
    enum { N = 300000, WORDS = (N + 63) / 64, QUERIES = 70, BEST = 3 };
    if (run_kernel_is_slow())
        return; /* nothing new for a kernel */
    struct cuda_pair p;
    struct host_device_options way = cuda_pair_way(1);
    cuda_pair_open(&p, KERN_PRECISION_EXACT, &way);
    const struct kern_query_range range = {.n_q = QUERIES};
    float ones[QUERIES];
    for (size_t i = 0; i < QUERIES; i++)
        ones[i] = 1.0f;
    uint64_t *bits = malloc((size_t)QUERIES * WORDS * sizeof *bits);
    assert_non_null(bits);
    memset(bits, 0xff, (size_t)QUERIES * WORDS * sizeof *bits);
    float *x = cuda_pair_put(&p, ones, QUERIES);
    struct kern_choose op = {.q = x,
                             .k = x,
                             .bits = put_words(&p, bits, (size_t)QUERIES * WORDS),
                             .n_heads = 1,
                             .head_size = 1,
                             .k_stride = 1,
                             .n_best = BEST,
                             .together = 1,
                             .most_keys = N,
                             .ranges = &range,
                             .n_ranges = 1};
    assert_int_equal(kern_choose(p.cuda, &op, NULL), STATUS_OK);
    if (!cuda_pair_is_real())
        assert_int_equal(p.log.n_launches[KERN_CUDA_CHOOSE], 3);
    take_words(&p, op.bits, bits, (size_t)QUERIES * WORDS);
    cuda_pair_take(&p, x, NULL, 0);
    for (size_t i = 0; i < (size_t)QUERIES * WORDS; i++) {
        size_t query = i / WORDS, n = query < BEST ? query + 1 : BEST;
        assert_true(bits[i] == (i % WORDS ? 0 : ((uint64_t)1 << n) - 1));
    }
    free(bits);
    cuda_pair_close(&p);
}

/* The last one has as many queries as a block of threads, and keys to the end of rows of bits. */
static const struct kern_query_range ranges[] = {
    {.q_row = 0, .n_q = 90, .kv_row = 0},
    {.q_row = 90, .n_q = 33, .kv_row = 90, .n_parent = 90},
    {.q_row = 123, .n_q = 128, .q_offset = 64, .kv_row = 0},
};
enum { TOKENS = 251, MOST_KEYS = 64 + 128 };

/**
 * Chosen keys at random, each query's own among them; free(). Of the first 64 few have chosen any:
 * blocks are left out before all others, or after the first.
 */
static uint64_t *choose_at_random(struct rng *r, struct kern_chosen *chosen, size_t *n)
{
    size_t words = kern_chosen_words(MOST_KEYS);
    *n = TOKENS * chosen->n_sets * words;
    uint64_t *bits = malloc(*n * sizeof *bits);
    assert_non_null(bits);
    for (size_t i = 0; i < *n; i++) {
        size_t row = i / words / chosen->n_sets;
        bool some = row >= ranges[1].q_row && row < ranges[2].q_row;
        bits[i] = rng_next(r) & rng_next(r) & (i % words ? UINT64_MAX : some ? UINT32_MAX : 0);
    }
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        for (size_t q = 0; q < ranges[i].n_q * chosen->n_sets; q++) {
            size_t own = ranges[i].n_parent + ranges[i].q_offset + q / chosen->n_sets;
            bits[(ranges[i].q_row * chosen->n_sets + q) * words + own / 64] |= (uint64_t)1
                                                                               << own % 64;
        }
    chosen->bits = bits;
    return bits;
}

/** Attention on the device to keys that were chosen on the host. */
static void attend(struct cuda_pair *p, struct flash_scene *s, size_t n_words)
{
    struct kern_chosen chosen = s->op.chosen;
    uint64_t *copy = put_words(p, chosen.bits, n_words);
    s->op.chosen.bits = copy;
    flash_scene_run(p, s);
    s->op.chosen = chosen;
    take_words(p, copy, NULL, 0);
}

static void test_attention(void **state)
{
    (void)state;
    static const struct {
        struct attention_shape shape;
        bool each, spoil;
    } rows[] = {
        {{4, 2, 16, 0}, false, true},
        {{2, 1, 72, .value_size = 130, .sinks = true}, true, false},
        {{2, 1, 100, .value_size = 60, .sinks = true}, true, false},
        {{2, 2, 33, .sliding_window = 90}, true, false},
        {{1, 1, 130, .chunk = 100}, false, true},
        {{1, 1, 65, 0}, false, false},
    };
    const size_t n = run_kernel_is_slow() ? 9 : 18;
    for (size_t i = 0; i <= n; i++) {
        const bool little = i == n; /* shared memory, once */
        size_t row = little ? 2 : i / 3;
        enum kern_precision precision = (const enum kern_precision[]){
            KERN_PRECISION_EXACT, KERN_PRECISION_HIGH, KERN_PRECISION_FAST}[little ? 1 : i % 3];
        struct rng r = rng_open(rng_seed(), 100 + i);
        struct cuda_pair p;
        struct flash_scene s;
        size_t n_words;
        flash_scene_pair_of(&p, precision, i,
                            little ? FLASH_SCENE_LITTLE : FLASH_SCENE_SHARED_BYTES);
        flash_scene_open(&s, &r, rows[row].shape, TOKENS);
        s.op.ranges = ranges;
        s.op.n_ranges = sizeof ranges / sizeof *ranges;
        s.op.chosen = (struct kern_chosen){NULL, rows[row].each ? s.op.n_kv_heads : 1, MOST_KEYS};
        uint64_t *bits = choose_at_random(&r, &s.op.chosen, &n_words);
        if (rows[row].spoil && precision == KERN_PRECISION_EXACT)
            s.v[70 * s.op.n_kv_heads * s.op.value_size] = INFINITY;
        attend(&p, &s, n_words);
        if (precision == KERN_PRECISION_EXACT) {
            size_t n_floats = TOKENS * s.op.n_heads * s.op.value_size;
            float *found = cuda_data_copy(s.out, n_floats);
            assert_int_equal(kern_attention(p.cpu, &s.op, NULL), STATUS_OK);
            cuda_data_assert_same(found, s.out, n_floats, "chosen keys");
            free(found);
        } else {
            (void)flash_scene_check(&s, precision);
        }
        free(bits);
        flash_scene_close(&s);
        cuda_pair_close(&p);
    }
}

/**
 * A token of which no element of the value is finite: queries that have chosen it have no finite
 * output, the others the bits that they have without it.
 */
static void check_bad_row(enum kern_precision precision, size_t size, size_t way,
                          size_t shared_bytes)
{
    enum { BAD = 2, N = 40 };
    static const float bad[] = {NAN, INFINITY, -INFINITY, 0x1.ffp127f};
    struct rng r = rng_open(rng_seed(), 200 + way);
    struct cuda_pair p;
    struct flash_scene s;
    uint64_t bits[N];
    flash_scene_pair_of(&p, precision, way, shared_bytes);
    flash_scene_open(&s, &r, (struct attention_shape){1, 1, size, 0}, N);
    s.op.ranges = &(struct kern_query_range){.n_q = N};
    s.op.n_ranges = 1;
    for (size_t i = 0; i < N; i++)
        bits[i] = rng_next(&r) | (uint64_t)1 << i;
    s.op.chosen = (struct kern_chosen){bits, 1, N};
    attend(&p, &s, N);
    float *good = cuda_data_copy(s.out, N * size);
    for (size_t e = 0; e < size; e++)
        s.v[BAD * size + e] = bad[e % 4];
    attend(&p, &s, N);
    for (size_t i = 0; i < N * size; i++) {
        size_t query = i / size;
        if (query >= BAD && (bits[query] >> BAD & 1))
            assert_false(isfinite(s.out[i]));
        else
            cuda_data_assert_same(s.out + i, good + i, 1, "away from the bad row");
    }
    free(good);
    flash_scene_close(&s);
    cuda_pair_close(&p);
}

static void test_bad_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < 6; i++)
        check_bad_row(i % 2 ? KERN_PRECISION_FAST : KERN_PRECISION_HIGH, (size_t)64 << i / 2, i,
                      FLASH_SCENE_SHARED_BYTES);
    check_bad_row(KERN_PRECISION_HIGH, 128, 6, FLASH_SCENE_LITTLE);
}

/** Attention of two queries' sequences, a child and its parent, with further keys. */
enum {
    ROOT = 70,
    CHILD = 50,
    ALL = ROOT + CHILD,
    RUN = 3,
    HEADS = 2,
    SIZE = 5,
    FURTHER = ALL / RUN
};

struct further_scene {
    float *q, *k, *further, *out; /* [ALL, HEADS * SIZE], [ALL, SIZE], [FURTHER, SIZE], as q */
    uint64_t *chosen;             /* [ALL] */
};

static void attend_further(struct kern_backend *b, const struct further_scene *s)
{
    struct kern_query_range tokens[2] = {
        {.n_q = ROOT}, {.q_row = ROOT, .n_q = CHILD, .kv_row = ROOT, .n_parent = ROOT}};
    struct kern_query_range rows[2] = {tokens[0], tokens[1]};
    rows[1].kv_row = rows[1].n_parent = ROOT / RUN;
    struct kern_attention op = {.q = s->q,
                                .k = s->k,
                                .v = s->k,
                                .out = s->out,
                                .n_heads = HEADS,
                                .n_kv_heads = 1,
                                .head_size = SIZE,
                                .value_size = SIZE,
                                .scale = 0.3f,
                                .sliding_window = 7,
                                .further = {s->further, s->further, rows, RUN},
                                .chosen = {s->chosen, 1, FURTHER},
                                .ranges = tokens,
                                .n_ranges = 2};
    assert_int_equal(kern_attention(b, &op, NULL), STATUS_OK);
}

/** The product of a query and a key. */
static double product(const float *q, const float *k)
{
    double sum = 0;
    for (size_t i = 0; i < SIZE; i++)
        sum += (double)q[i] * (double)k[i];
    return 0.3 * sum;
}

/** out of the query at p, from its keys in double. */
static void check_query(const struct further_scene *s, size_t p, size_t head)
{
    const float *q = s->q + (p * HEADS + head) * SIZE;
    double total = 0, mean[SIZE] = {0};
    for (size_t j = 0; j < (p + 1) / RUN + p + 1; j++) {
        size_t token = j - (p + 1) / RUN;
        bool of_run = j < (p + 1) / RUN;
        if (of_run ? !(s->chosen[p] >> j & 1) : token + 7 <= p)
            continue;
        const float *key = (of_run ? s->further + j * SIZE : s->k + token * SIZE);
        double e = exp(product(q, key));
        total += e;
        for (size_t i = 0; i < SIZE; i++)
            mean[i] += e * (double)key[i];
    }
    for (size_t i = 0; i < SIZE; i++)
        assert_true(fabs((double)s->out[(p * HEADS + head) * SIZE + i] - mean[i] / total) < 1e-5);
}

/** The scene on the device must have the bits that it has on the host. */
static void check_further(struct cuda_pair *p, const struct further_scene *s)
{
    enum { N_OUT = ALL * HEADS * SIZE };
    float found[N_OUT];
    struct further_scene on = {cuda_pair_put(p, s->q, N_OUT),
                               cuda_pair_put(p, s->k, (size_t)ALL * SIZE),
                               cuda_pair_put(p, s->further, (size_t)FURTHER * SIZE),
                               cuda_pair_put(p, s->out, N_OUT), put_words(p, s->chosen, ALL)};
    attend_further(p->cuda, &on);
    cuda_pair_take(p, on.q, NULL, 0);
    cuda_pair_take(p, on.k, NULL, 0);
    cuda_pair_take(p, on.further, NULL, 0);
    cuda_pair_take(p, on.out, found, N_OUT);
    take_words(p, on.chosen, NULL, 0);
    attend_further(p->cpu, s);
    cuda_data_assert_same(found, s->out, N_OUT, "further keys");
}

static void test_further(void **state)
{
    (void)state;
    for (size_t way = 0; way < CUDA_PAIR_N_WAYS; way += cuda_pair_step()) {
        struct rng r = rng_open(rng_seed(), 300);
        struct cuda_pair p;
        struct host_device_options options = cuda_pair_way(way);
        cuda_pair_open(&p, KERN_PRECISION_EXACT, &options);
        uint64_t chosen[ALL]; /* of the first all, then every fifth, and for some none */
        for (size_t i = 0; i < ALL; i++)
            chosen[i] = i < 20 ? UINT64_MAX : i < 100 ? UINT64_C(0x1084210842108421) : 0;
        struct further_scene s = {cuda_data_floats(&r, (size_t)ALL * HEADS * SIZE, 2.0f),
                                  cuda_data_floats(&r, (size_t)ALL * SIZE, 2.0f),
                                  cuda_data_floats(&r, (size_t)FURTHER * SIZE, 2.0f),
                                  cuda_data_floats(&r, (size_t)ALL * HEADS * SIZE, 2.0f), chosen};
        check_further(&p, &s);
        for (size_t i = 0; i < (size_t)ALL * HEADS; i++)
            check_query(&s, i / HEADS, i % HEADS);
        s.further[3 * SIZE + 1] = INFINITY; /* a key that few have chosen */
        check_further(&p, &s);
        assert_false(isfinite(s.out[15 * HEADS * SIZE + 1]));
        assert_true(isfinite(s.out[30 * HEADS * SIZE + 1]));
        free(s.q);
        free(s.k);
        free(s.further);
        free(s.out);
        cuda_pair_close(&p);
    }
}

/** So few tokens that no query sees a further key: there is no memory of any. Done twice: a NaN. */
static void test_no_further(void **state)
{
    (void)state;
    struct cuda_pair p;
    struct host_device_options way = cuda_pair_way(0);
    cuda_pair_open(&p, KERN_PRECISION_EXACT, &way);
    enum { N = RUN - 1, WIDTH = 4 };
    float x[N * WIDTH] = {0.5f}, out[N * WIDTH], found[N * WIDTH] = {0};
    x[N * WIDTH - 1] = NAN;
    float *copy = cuda_pair_put(&p, x, N * WIDTH), *y = cuda_pair_put(&p, found, N * WIDTH);
    const struct kern_query_range tokens = {.n_q = N};
    struct kern_attention op = {.q = x,
                                .k = x,
                                .v = x,
                                .out = out,
                                .n_heads = 1,
                                .n_kv_heads = 1,
                                .head_size = WIDTH,
                                .value_size = WIDTH,
                                .scale = 1.0f,
                                .further = {NULL, NULL, &tokens, RUN},
                                .ranges = &tokens,
                                .n_ranges = 1};
    assert_int_equal(kern_attention(p.cpu, &op, NULL), STATUS_OK);
    op.q = op.k = op.v = copy;
    op.out = y;
    assert_int_equal(kern_attention(p.cuda, &op, NULL), STATUS_OK);
    cuda_pair_take(&p, copy, NULL, 0);
    cuda_pair_take(&p, y, found, N * WIDTH);
    cuda_data_assert_same(found, out, N * WIDTH, "no further keys");
    assert_true(out[0] == 0.5f && isnan(out[N * WIDTH - 1]));
    cuda_pair_close(&p);
}

/** Values of more elements than are added up at a time, one of which is not finite in each part. */
static void test_wide_further(void **state)
{
    (void)state;
    enum { N = 9, WIDTH = 200, N_ROWS = N / RUN };
    struct rng r = rng_open(rng_seed(), 301);
    struct cuda_pair p;
    struct host_device_options way = cuda_pair_way(0);
    cuda_pair_open(&p, KERN_PRECISION_EXACT, &way);
    uint64_t chosen[N] = {0, 0, 1, 1, 0, 3, 2, 1, 5}, *bits = put_words(&p, chosen, N);
    float *x = cuda_data_floats(&r, N * WIDTH, 2.0f), found[N * WIDTH], out[N * WIDTH] = {0};
    for (size_t e = 0; e < WIDTH; e += 50)
        x[2 * WIDTH + e] = INFINITY;
    float *copy = cuda_pair_put(&p, x, N * WIDTH), *y = cuda_pair_put(&p, out, N * WIDTH);
    const struct kern_query_range tokens = {.n_q = N};
    struct kern_attention op = {.q = x,
                                .k = x,
                                .v = x,
                                .out = out,
                                .n_heads = 1,
                                .n_kv_heads = 1,
                                .head_size = 1,
                                .value_size = WIDTH,
                                .scale = 0.3f,
                                .sliding_window = 2,
                                .further = {x, x, &tokens, RUN},
                                .chosen = {chosen, 1, N_ROWS},
                                .ranges = &tokens,
                                .n_ranges = 1};
    assert_int_equal(kern_attention(p.cpu, &op, NULL), STATUS_OK);
    op.q = op.k = op.v = op.further.k = op.further.v = copy;
    op.out = y;
    op.chosen.bits = bits;
    assert_int_equal(kern_attention(p.cuda, &op, NULL), STATUS_OK);
    cuda_pair_take(&p, copy, NULL, 0);
    cuda_pair_take(&p, y, found, N * WIDTH);
    take_words(&p, bits, NULL, 0);
    cuda_data_assert_same(found, out, N * WIDTH, "further keys of wide values");
    assert_true(isfinite(out[7 * WIDTH]) && !isfinite(out[8 * WIDTH + 150]));
    free(x);
    cuda_pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_keys),    cmocka_unit_test(test_choice),
        cmocka_unit_test(test_attention),    cmocka_unit_test(test_bad_rows),
        cmocka_unit_test(test_further),      cmocka_unit_test(test_no_further),
        cmocka_unit_test(test_wide_further),
    };
    int n_failed = cmocka_run_group_tests_name("host device", tests, NULL, NULL);
    if (!cuda_pair_use_real_device())
        return n_failed;
    return n_failed + cmocka_run_group_tests_name("CUDA device", tests, NULL, NULL);
}

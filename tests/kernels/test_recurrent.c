/*
 * Recurrent layers on the CPU backend: against float64 one token at a time, and to the bit for any
 * ISA, any number of threads, sequences cut anywhere, prefixes shared or not.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/recurrent.h"
#include "kernels/recurrent/gates.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/cpu_backend.h"
#include "tests/kernels/ops_variants.h"
#include "tests/kernels/recurrent_scene.h"

/** Both operations on these runs. */
static void run(struct kern_backend *b, struct recurrent_scene *s, const struct kern_run *runs,
                size_t n_runs)
{
    struct status_why why = {""};
    s->recur.runs = s->convolve.runs = runs;
    s->recur.n_runs = s->convolve.n_runs = n_runs;
    if (kern_recur(b, &s->recur, &why) != STATUS_OK ||
        kern_convolve(b, &s->convolve, &why) != STATUS_OK)
        fail_msg("%s", why.text);
}

static void assert_same(const float *found, const float *expected, size_t n, const char *what)
{
    size_t i = compare_bits(found, expected, n);
    if (i < n)
        fail_msg("%s: element %zu is %a, expected %a", what, i, (double)found[i],
                 (double)expected[i]);
}

static void *copy_of(const struct guard *g)
{
    void *copy = malloc(g->n_bytes);
    assert_non_null(copy);
    return memcpy(copy, g->data, g->n_bytes);
}

/** The outputs of both operations as they are now. */
struct outputs {
    float *out, *y;
};

static struct outputs outputs_take(struct recurrent_scene *s)
{
    struct outputs o = {copy_of(&s->out), copy_of(&s->y)};
    memset(s->out.data, 0xa5, s->out.n_bytes);
    memset(s->y.data, 0xa5, s->y.n_bytes);
    return o;
}

static void outputs_free(struct outputs *o)
{
    free(o->out);
    free(o->y);
}

/** n tokens from `row` on have the outputs that those from expected_row on had. */
static void check_rows(const struct recurrent_scene *s, size_t row, const struct outputs *expected,
                       size_t expected_row, size_t n, const char *what)
{
    size_t width = s->recur.n_heads * s->recur.v_size, channels = recurrent_scene_width(s);
    assert_same(s->recur.out + row * width, expected->out + expected_row * width, n * width, what);
    assert_same(s->convolve.y + row * channels, expected->y + expected_row * channels, n * channels,
                what);
}

static struct kern_run run_of(size_t row, size_t n, size_t index, ptrdiff_t parent)
{
    return (struct kern_run){row, n, index, parent, KERN_NONE, KERN_NONE};
}

static const struct recurrent_shape shapes[] = {
    {1, 1, 1, 1, true, false, KERN_UNIT_ADD, 0.9f, 0},
    {2, 4, 16, 16, true, true, KERN_UNIT_ADD, 0.98f, 0},
    {2, 6, 24, 40, true, false, KERN_UNIT_ADD, 0.95f, 0},
    {1, 2, 128, 128, true, true, KERN_UNIT_ADD, 0.99f, 0},
    {1, 3, 7, 33, false, false, KERN_UNIT_NONE, 0.9f, 0.5f},
    {2, 4, 128, 64, false, false, KERN_UNIT_NONE, 0.98f, 0.001f},
    {3, 3, 23, 41, true, false, KERN_UNIT_ADD, 0.9f, 0, true},
    {1, 1, 64, 64, true, false, KERN_UNIT_ADD, 0.98f, 0.01f, true},
    {2, 2, 25, 32, true, false, KERN_UNIT_ADD, 0, 0, true, -5},
};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

/**
 * The largest error of a head's outputs, in roundings (2^-24) of their root mean square. An output
 * is a chain of some hundred multiply-adds of rounded terms, and what S carries on decays as S
 * does. Measured over 2048 tokens of heads of 128: 3e-7 to 6e-7 of the outputs in the root mean
 * square, 2e-6 to 6e-6 at most (100 roundings), as float32 has it token by token (3e-7 to 1e-6,
 * 3e-6 to 6e-6).
 */
enum { MOST_ROUNDINGS = 250 };

static void check_truth(const struct recurrent_scene *s, size_t shape)
{
    double error = recurrent_truth_recur(&s->recur) * 0x1p24;
    print_message("shape %zu: %.1f roundings\n", shape, error);
    assert_true(error < MOST_ROUNDINGS);
    assert_true(recurrent_truth_convolve(&s->convolve) * 0x1p24 < 20);
}

/** Sequences of awkward lengths, some with others that go on from them. */
static void test_truth_and_variants(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 2, 31, 32, 33, 64, 65, 100};
    enum { N = sizeof lengths / sizeof *lengths };
    for (size_t i = 0; i < N_SHAPES; i++) {
        struct rng r = rng_open(rng_seed(), i);
        struct kern_run runs[2 * N];
        size_t n_tokens = 0, n_runs = 0;
        for (size_t j = 0; j < 2 * N; j++) {
            bool child = j % 2 == 1;
            size_t n = lengths[child ? (j * 5 + i) % N : j / 2];
            const struct kern_run *parent = &runs[n_runs - child];
            runs[n_runs] = run_of(n_tokens, n, child ? parent->n : 0,
                                  child ? (ptrdiff_t)n_runs - 1 : KERN_NONE);
            n_runs++;
            n_tokens += n;
        }
        struct recurrent_scene s;
        recurrent_scene_open(&s, &r, &shapes[i], 1 + i % 5, n_tokens);
        struct kern_backend *b = backend_open(KERN_ISA_SCALAR, 1);
        run(b, &s, runs, n_runs);
        kern_close(b);
        check_truth(&s, i);
        struct outputs expected = outputs_take(&s);
        for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
            for (unsigned n_threads = 1; n_threads <= 4; n_threads += 3) {
                b = backend_open((enum kern_isa)isa, n_threads);
                run(b, &s, runs, n_runs);
                kern_close(b);
                check_rows(&s, 0, &expected, 0, n_tokens, kern_isa_name((enum kern_isa)isa));
            }
        }
        outputs_free(&expected);
        recurrent_scene_close(&s);
    }
}

enum { PARENT_STATE, OWN_STATE, N_STATES };

static void states_open(struct recurrent_scene *s)
{
    size_t n = kern_recur_state_bytes(&s->recur), m = kern_convolve_state_bytes(&s->convolve);
    s->recur.states = aligned_alloc(64, N_STATES * n);
    s->convolve.states = aligned_alloc(64, N_STATES * m + 64);
    assert_true(s->recur.states && s->convolve.states);
    memset(s->recur.states, 0xff, N_STATES * n); /* NaN */
    memset(s->convolve.states, 0xff, N_STATES * m);
}

static void states_close(struct recurrent_scene *s)
{
    free(s->recur.states);
    free(s->convolve.states);
}

/** Tokens of a sequence that begins at `row` with index `index`, in calls of random lengths. */
static void run_cut(struct kern_backend *b, struct recurrent_scene *s, struct rng *r,
                    struct kern_run whole, ptrdiff_t own, ptrdiff_t to)
{
    size_t end = whole.row + whole.n;
    while (whole.row < end) {
        size_t n = 1 + rng_below(r, rng_below(r, 3) ? 5 : 80);
        whole.n = n < end - whole.row ? n : end - whole.row;
        whole.to = whole.row + whole.n < end ? own : to;
        run(b, s, &whole, 1);
        whole.row += whole.n;
        whole.index += whole.n;
        whole.from = own;
    }
}

/**
 * A prefix, endings that share it, and each of these texts written out after them. The endings go
 * on from the prefix in the same call, or from its saved state, or are cut.
 */
static void test_cuts_and_shared_prefixes(void **state)
{
    (void)state;
    enum { ENDINGS = 4, PREFIX_MOST = 100, ENDING_MOST = 80 };
    for (size_t round = 0; round < 15 * N_SHAPES; round++) {
        struct rng r = rng_open(rng_seed(), 1000 + round);
        size_t prefix = 1 + rng_below(&r, PREFIX_MOST), lengths[ENDINGS], shared = prefix, all = 0;
        for (size_t i = 0; i < ENDINGS; i++) {
            lengths[i] = 1 + rng_below(&r, ENDING_MOST);
            shared += lengths[i];
            all += prefix + lengths[i];
        }
        struct recurrent_scene s;
        recurrent_scene_open(&s, &r, &shapes[round % N_SHAPES], 1 + round % 5, shared + all);
        states_open(&s);
        struct kern_run written[ENDINGS], runs[1 + ENDINGS];
        runs[0] = run_of(0, prefix, 0, KERN_NONE);
        for (size_t i = 0, row = prefix, to = shared; i < ENDINGS; i++) {
            written[i] = run_of(to, prefix + lengths[i], 0, KERN_NONE);
            runs[1 + i] = run_of(row, lengths[i], prefix, 0);
            for (size_t t = 0; t < prefix + lengths[i]; t++)
                recurrent_scene_copy(&s, t < prefix ? t : row + t - prefix, to++);
            row += lengths[i];
        }
        struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 2);
        run(b, &s, written, ENDINGS);
        struct outputs expected = outputs_take(&s);
        size_t together = rng_below(&r, ENDINGS + 1);
        if (rng_below(&r, 2)) {
            runs[0].to = PARENT_STATE;
            run(b, &s, runs, 1 + together);
        } else {
            run_cut(b, &s, &r, runs[0], OWN_STATE, PARENT_STATE);
            together = 0;
        }
        for (size_t i = together; i < ENDINGS; i++) {
            runs[1 + i].parent = KERN_NONE;
            runs[1 + i].from = PARENT_STATE;
            run_cut(b, &s, &r, runs[1 + i], OWN_STATE, KERN_NONE);
        }
        kern_close(b);
        for (size_t i = 0; i < ENDINGS; i++) {
            check_rows(&s, 0, &expected, written[i].row, prefix, "prefix");
            check_rows(&s, runs[1 + i].row, &expected, written[i].row + prefix, lengths[i],
                       "ending");
        }
        outputs_free(&expected);
        states_close(&s);
        recurrent_scene_close(&s);
    }
}

/** What a token holds must not reach those before it, nor another sequence, however they lie. */
static void test_bad_tokens(void **state)
{
    (void)state;
    enum { N = 70, BAD = 45, OTHER = 30 };
    static const float bad[] = {NAN, INFINITY, -INFINITY, 0x1.ffp127f};
    for (size_t i = 0; i < 4 * N_SHAPES; i++) {
        struct rng r = rng_open(rng_seed(), 2000 + i);
        const struct kern_run runs[] = {run_of(0, N, 0, KERN_NONE), run_of(N, OTHER, N, 0),
                                        run_of(N + OTHER, OTHER, 0, KERN_NONE)};
        struct recurrent_scene s;
        recurrent_scene_open(&s, &r, &shapes[i / 4], 4, N + 2 * OTHER);
        struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 1);
        run(b, &s, runs, 3);
        struct outputs expected = outputs_take(&s);
        float *q = (float *)(void *)s.q.data + BAD * s.recur.stride;
        for (size_t c = 0; c < s.recur.stride; c++) /* q alone, then k, then v as well */
            q[c] = c < (i % 3 + 1) * s.recur.n_k_heads * s.recur.k_size ? bad[i % 4] : q[c];
        ((float *)(void *)s.x.data)[BAD * s.convolve.x_stride] = bad[i % 4];
        run(b, &s, runs, 3);
        kern_close(b);
        check_rows(&s, 0, &expected, 0, BAD, "before the bad token");
        check_rows(&s, N + OTHER, &expected, N + OTHER, OTHER, "another sequence");
        if (i % 4 < 3)
            assert_false(isfinite(s.convolve.y[BAD * recurrent_scene_width(&s)]));
        assert_false(isfinite(s.recur.out[BAD * s.recur.n_heads * s.recur.v_size]) &&
                     shapes[i / 4].unit == KERN_UNIT_NONE);
        outputs_free(&expected);
        recurrent_scene_close(&s);
    }
}

/**
 * Hard on float32: keys that repeat without decay, so that each change undoes the one before; a
 * token that forgets everything among some that forget nothing; a long window.
 */
static void test_hard_sequences(void **state)
{
    (void)state;
    enum { N = 2048 };
    static const size_t chosen[] = {1, 5, 6};
    for (size_t i = 0; i < 9; i++) {
        struct rng r = rng_open(rng_seed(), 3000 + i);
        struct recurrent_shape shape = shapes[chosen[i % 3]];
        size_t n_steps = shape.n_heads * (shape.by_channel ? shape.k_size : 1);
        shape.slowest = i / 3 == 1 ? 0.9999f : 0.999f;
        struct recurrent_scene s;
        recurrent_scene_open(&s, &r, &shape, 4, N);
        float *gates = (float *)(void *)s.gates.data;
        for (size_t t = 0; t < N; t++) {
            if (i / 3 == 1 && t % 3)
                recurrent_scene_copy(&s, t - t % 3, t);
            for (size_t h = 0; h < shape.n_heads && i / 3 == 1; h++)
                gates[t * s.recur.beta_stride + n_steps + h] = 20.0f; /* beta is 1 */
            for (size_t j = 0; j < n_steps && i / 3 == 2 && t % 41 == 3; j++)
                gates[t * s.recur.dt_stride + j] = 1e6f;
        }
        const struct kern_run all = run_of(0, N, 0, KERN_NONE);
        struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 2);
        run(b, &s, &all, 1);
        kern_close(b);
        check_truth(&s, 100 + i);
        recurrent_scene_close(&s);
    }
}

static void test_gates_are_accurate(void **state)
{
    (void)state;
    for (double x = -800; x < 800; x += 0.01237) {
        long double truth =
            x > 30 ? (long double)x + expl(-(long double)x) : log1pl(expl((long double)x));
        assert_true(fabsl((long double)fmath_softplus_f64(x) - truth) <=
                    3 * 0x1p-52L * truth + 1e-307L);
        long double sigmoid = 1 / (1 + expl(-(long double)(float)x));
        assert_true(fabsl((long double)kern_sigmoid_f32((float)x) - sigmoid) <=
                    0x1.001p-24L * sigmoid + 0x1p-149L);
    }
    assert_true(isnan(fmath_softplus_f64((double)NAN)) &&
                fmath_softplus_f64((double)INFINITY) == (double)INFINITY);
}

/** The other kernels of one variant, on arrays that end before inaccessible pages. */
static void check_row_kernels(const struct kern_ops *ops, struct rng *r, size_t n, bool wild)
{
    enum { TAPS = 4 };
    void (*fill)(struct rng *, float *, size_t, float) = wild ? fill_wild : fill_normal;
    struct guard rows = guard_open(2 * TAPS * n * sizeof(float), 0);
    struct guard y = guard_open(n * sizeof(float), 4);
    float *x = (float *)(void *)rows.data, *found = (float *)(void *)y.data;
    float *expected = malloc((n + 1) * sizeof *expected);
    assert_non_null(expected);
    fill(r, x, 2 * TAPS * n, 4.0f);
    memcpy(found, x, n * sizeof *x);
    memcpy(expected, x, n * sizeof *x);
    ops->exp(found, n);
    kern_ops_scalar.exp(expected, n);
    assert_same(found, expected, n, "exp");
    ops->scale(found, x, 0.3f, n);
    kern_ops_scalar.scale(expected, x, 0.3f, n);
    assert_same(found, expected, n, "scale");
    const double squares[] = {ops->squares(x, n), kern_ops_scalar.squares(x, n)};
    assert_int_equal(compare_double_bits(&squares[0], &squares[1], 1), 1);
    struct kern_decay decay = {.rate = -0.7f, .dt_min = n % 3 ? 0.0f : 0.5f};
    struct kern_decays decays = {.dt = x, .bias = x + n, .decay = &decay, .n = n};
    for (int bounded = 0; bounded < 2; bounded++) {
        decay.least_log = bounded ? -5.0f : 0.0f;
        decays.y = found;
        ops->decays(&decays);
        decays.y = expected;
        kern_ops_scalar.decays(&decays);
        assert_same(found, expected, n, "decays");
    }
    struct kern_taps taps = {.weights = x + TAPS * n, .n_taps = TAPS, .stride = n};
    for (size_t first = 0; first <= TAPS; first++) {
        for (size_t j = 0; j < TAPS; j++)
            taps.x[j] = j < first ? NULL : x + j * n;
        taps.bias = first % 2 ? x : NULL;
        taps.bare = first == 3;
        ops->convolve(found, &taps, n);
        kern_ops_scalar.convolve(expected, &taps, n);
        assert_same(found, expected, n, "convolve");
    }
    assert_true(guard_intact(&rows) && guard_intact(&y));
    guard_close(&rows);
    guard_close(&y);
    free(expected);
}

static void test_row_kernel_variants(void **state)
{
    (void)state;
    for (int isa = KERN_ISA_SCALAR + 1; isa < KERN_ISA_COUNT && ops_variant(isa); isa++) {
        for (size_t n = 0; n < 140; n++) {
            struct rng r = rng_open(rng_seed(), 6000 + n);
            check_row_kernels(ops_variant(isa), &r, n, n % 2);
        }
    }
}

/** Every variant of the triangle against the scalar one, whole and resumed. */
static void test_triangle_variants(void **state)
{
    (void)state;
    for (int isa = KERN_ISA_SCALAR + 1; isa < KERN_ISA_COUNT && ops_variant(isa); isa++) {
        for (size_t i = 0; i < 200; i++) {
            struct rng r = rng_open(rng_seed(), 4000 + i);
            _Alignas(64) float w[KERN_CHUNK * KERN_CHUNK], x[KERN_CHUNK * KERN_CHUNK];
            _Alignas(64) float found[KERN_CHUNK * KERN_CHUNK], expected[KERN_CHUNK * KERN_CHUNK];
            void (*fill)(struct rng *, float *, size_t, float) = i % 2 ? fill_wild : fill_normal;
            fill(&r, w, KERN_CHUNK * KERN_CHUNK, 0.5f);
            fill(&r, x, KERN_CHUNK * KERN_CHUNK, 1.0f);
            fill(&r, found, KERN_CHUNK * KERN_CHUNK, 1.0f);
            memcpy(expected, found, sizeof expected);
            size_t end = rng_below(&r, KERN_CHUNK + 1), first = rng_below(&r, end + 1);
            bool diagonal = i / 2 % 2;
            kern_ops_scalar.triangle(
                &(struct kern_triangle){w, diagonal ? x : expected, expected, 0, end, diagonal});
            ops_variant(isa)->triangle(
                &(struct kern_triangle){w, diagonal ? x : found, found, 0, first, diagonal});
            ops_variant(isa)->triangle(
                &(struct kern_triangle){w, diagonal ? x : found, found, first, end, diagonal});
            assert_same(found, expected, KERN_CHUNK * KERN_CHUNK, "triangle");
        }
    }
}

static void test_cancel_and_checks(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 5000);
    struct recurrent_scene s;
    recurrent_scene_open(&s, &r, &shapes[1], 4, 40);
    struct kern_backend *b = backend_open(KERN_ISA_COUNT - 1, 2);
    struct kern_run runs[3] = {run_of(0, 20, 0, KERN_NONE), run_of(20, 10, 20, 0),
                               run_of(30, 10, 20, 0)};
    atomic_bool cancel = true;
    kern_set_cancel(b, &cancel);
    s.recur.runs = s.convolve.runs = runs;
    s.recur.n_runs = s.convolve.n_runs = 3;
    assert_int_equal(kern_recur(b, &s.recur, NULL), STATUS_CANCELLED);
    assert_int_equal(kern_convolve(b, &s.convolve, NULL), STATUS_CANCELLED);
    kern_set_cancel(b, NULL);
    static const struct {
        size_t i;
        struct kern_run broken;
        const char *says;
    } cases[] = {
        {0, {0, 0, 0, -1, -1, -1}, "recur: run 0 has 0 tokens from index 0 on"},
        {0, {0, 20, 3, -1, -1, -1}, "recur: run 0 has 20 tokens from index 3 on"},
        {0, {0, 20, 0, -1, 0, -1}, "recur: run 0 has"},
        {1, {20, 10, 19, 0, -1, -1}, "recur: run 1 has"},
        {1, {20, 10, 20, 0, 1, -1}, "recur: run 1 has"},
        {2, {30, 10, 20, 1, -1, -1}, "recur: run 2 has"},
        {0, {0, 20, 0, -1, -1, -2}, "recur: run 0 has"},
    };
    struct status_why why;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kern_run good = runs[cases[i].i];
        runs[cases[i].i] = cases[i].broken;
        assert_int_equal(kern_recur(b, &s.recur, &why), STATUS_USAGE);
        assert_memory_equal(why.text, cases[i].says, strlen(cases[i].says));
        runs[cases[i].i] = good;
    }
    runs[0].to = runs[2].to = 1;
    assert_int_equal(kern_convolve(b, &s.convolve, &why), STATUS_USAGE);
    assert_string_equal(why.text, "convolve: run 0 saves state 1, which run 2 has, too");
    s.recur.by_channel = true; /* with one bias for each head, then without beta */
    assert_int_equal(kern_recur(b, &s.recur, &why), STATUS_USAGE);
    assert_non_null(strstr(why.text, "recur: dt_bias"));
    struct kern_weight biases = *s.recur.dt_bias;
    biases.n_cols *= s.recur.k_size;
    biases.row_bytes *= s.recur.k_size;
    struct kern_recur no_beta = s.recur;
    no_beta.dt_bias = &biases;
    no_beta.beta = NULL;
    assert_int_equal(kern_recur(b, &no_beta, &why), STATUS_USAGE);
    assert_string_equal(why.text, "recur: decays of channels are a delta net's");
    s.recur.by_channel = false;
    s.recur.n_k_heads = 3;
    assert_int_equal(kern_recur(b, &s.recur, &why), STATUS_USAGE);
    assert_string_equal(why.text, "recur: 4 heads cannot share 3 key heads evenly");
    kern_close(b);
    recurrent_scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truth_and_variants),  cmocka_unit_test(test_cuts_and_shared_prefixes),
        cmocka_unit_test(test_bad_tokens),          cmocka_unit_test(test_hard_sequences),
        cmocka_unit_test(test_gates_are_accurate),  cmocka_unit_test(test_triangle_variants),
        cmocka_unit_test(test_row_kernel_variants), cmocka_unit_test(test_cancel_and_checks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

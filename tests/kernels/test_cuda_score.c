/*
 * Scoring and recording by the CUDA backend on a device made of the host's memory and, where there
 * is one, on a real device. `exact` must give what the CPU backend gives, to the bit; the other
 * precisions are held to a bound, and to the same bits however rows are cut.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/cuda/context.h"
#include "kernels/scoring.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/run_kernel.h"
#include "tests/kernels/cuda_pair.h"
#include "tests/kernels/score_results.h"

/** A scene on both backends. */
static void check_scene(struct cuda_pair *p, const struct kern_score *op, bool pairs)
{
    struct results expected = score(p->cpu, *op, pairs), found = score_cuda(p, *op, pairs);
    assert_same(&found, &expected);
    results_close(&expected);
    results_close(&found);
}

static void test_heads(void **state)
{
    (void)state;
    const size_t n_rows[] = {1, 17, 40, 33}, n_vocab[] = {7, 100, 3000, 1057};
    for (size_t i = 0; i < CUDA_PAIR_N_WAYS; i += cuda_pair_step()) {
        struct scene_cut cut;
        struct scene s;
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(i);
        cuda_pair_open(&p, KERN_PRECISION_EXACT, &way);
        scene_open(&s, 20 + i, 1 + i % SCENE_HEADS, n_rows[i % 4], n_vocab[i % 4]);
        check_scene(&p, &s.op, false);
        check_scene(&p, &s.op, true);
        s.op.want_js = true;
        check_scene(&p, &s.op, true);
        scene_cut(&cut, &s, s.n_vocab / 2); /* some have rows beyond the vocabulary */
        s.op.heads = cut.heads;
        check_scene(&p, &s.op, true);
        scene_close(&s);
        cuda_pair_close(&p);
    }
}

/** Rows of more columns than a kernel holds at a time, in several widths. */
static void test_wide_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUDA_PAIR_N_WAYS; i += cuda_pair_step()) {
        struct scene s;
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(i);
        cuda_pair_open(&p, KERN_PRECISION_EXACT, &way);
        scene_open_wide(&s, 32 + i, &(struct scene_size){3, 30, 90, 3 + 2 * (i % 3)});
        check_scene(&p, &s.op, true);
        scene_close(&s);
        cuda_pair_close(&p);
    }
}

/** Tiles of more vocabulary rows than a block of threads sweeps at a time, as in production. */
static void test_tall_tiles(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct scene s;
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(i);
        cuda_pair_open_panels(&p, KERN_PRECISION_EXACT, &way, 4 << 20);
        scene_open(&s, 80 + i, 2, 5 + 15 * i, 2600);
        check_scene(&p, &s.op, true);
        s.op.want_js = true;
        check_scene(&p, &s.op, true);
        scene_close(&s);
        cuda_pair_close(&p);
    }
}

/** More rows than a walk takes. */
static void test_many_rows(void **state)
{
    (void)state;
    struct scene s;
    struct cuda_pair p;
    cuda_pair_open(&p, KERN_PRECISION_EXACT, &(struct host_device_options){0});
    scene_open(&s, 30, 2, 2100, 40);
    check_scene(&p, &s.op, true);
    scene_close(&s);
    cuda_pair_close(&p);
}

/** Heads whose panels differ are preloaded as they are used together. */
static void test_preload(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUDA_PAIR_N_WAYS; i += cuda_pair_step()) {
        struct scene s;
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(i);
        cuda_pair_open(&p, KERN_PRECISION_EXACT, &way);
        scene_open(&s, 70 + i, 3, 17, 500); /* panels of 384, 384 and 256 rows */
        const size_t *n_uploads = &kern_cuda_of(p.cuda)->cache.n_uploads;
        assert_int_equal(kern_preload_heads(p.cuda, s.heads, 3, NULL), STATUS_OK);
        assert_int_equal(*n_uploads, 3 * 2);
        check_scene(&p, &s.op, true);
        assert_int_equal(*n_uploads, 3 * 2);
        scene_close(&s);
        cuda_pair_close(&p);
    }
}

/**
 * Where there is room, preloaded heads are decoded, too: their first use decodes no more than the
 * second, the rows of targets. Results have the bits of heads that were not preloaded.
 */
static void test_preload_decodes(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * CUDA_PAIR_N_WAYS; i += cuda_pair_step()) {
        struct scene s;
        struct cuda_pair p[2];
        struct host_device_options way = cuda_pair_way(i / 2);
        enum kern_precision precision = i % 2 ? KERN_PRECISION_EXACT : KERN_PRECISION_FAST;
        scene_open(&s, 90 + i, 3, 17, 500);
        for (size_t k = 0; k < 2; k++)
            cuda_pair_open_panels(&p[k], precision, &way, 1 << 20);
        const size_t *n_decoded = &p[1].log.n_launches[KERN_CUDA_DECODE];
        assert_int_equal(kern_preload_heads(p[1].cuda, s.heads, 3, NULL), STATUS_OK);
        size_t n_preloaded = *n_decoded;
        struct results expected = score_cuda(&p[0], s.op, true);
        for (size_t k = 1; k <= 2; k++) {
            struct results found = score_cuda(&p[1], s.op, true);
            assert_same(&found, &expected);
            results_close(&found);
        }
        if (!cuda_pair_is_real()) {
            assert_true(n_preloaded >= 3);
            /* Halves: once more for the largest element of each. */
            size_t of_targets = precision == KERN_PRECISION_EXACT ? 3 : 2 * 3;
            assert_int_equal(*n_decoded - n_preloaded, 2 * of_targets);
        }
        results_close(&expected);
        scene_close(&s);
        for (size_t k = 0; k < 2; k++)
            cuda_pair_close(&p[k]);
    }
}

/** NaN, infinities and rows without any finite logit, in the bias and the hidden rows. */
static void test_not_finite(void **state)
{
    (void)state;
    struct scene s;
    struct cuda_pair p;
    cuda_pair_open(&p, KERN_PRECISION_EXACT, &(struct host_device_options){0});
    scene_open(&s, 31, 3, 40, 700);
    for (size_t h = 0; h < 3; h++) {
        s.memory[3 * h][5] = NAN;        /* row 0 */
        s.memory[3 * h][200] = INFINITY; /* a later row */
    }
    for (size_t v = 0; v < 700; v += 3)
        s.memory[8][v] = -INFINITY; /* bias of head 2 */
    check_scene(&p, &s.op, true);
    scene_close(&s);
    cuda_pair_close(&p);
}

/** n_rows rows of which the halves are NaN, infinite, subnormal or 0. */
static void spoil_rows(float *x, size_t n_rows, size_t width)
{
    static const float words[] = {NAN, INFINITY, 1e-8f, 0.0f, -1e-9f, -INFINITY};
    for (size_t i = 0; i < n_rows * width; i++)
        x[i] = i % width == 0 && i / width % 3 == 1 ? 1.0f : words[i / width % 6];
}

/** With halves: such rows leave the others their bits; where the vocabulary has some, it shows. */
static void test_not_finite_halves(void **state)
{
    (void)state;
    enum { ROWS = 20, VOCAB = 70, BAD = 7 };
    struct scene s;
    struct cuda_pair p;
    cuda_pair_open(&p, KERN_PRECISION_FAST, &(struct host_device_options){0});
    scene_open_wide(&s, 33, &(struct scene_size){3, ROWS, VOCAB, 5});
    struct results before = score_cuda(&p, s.op, true);
    for (size_t h = 0; h < 3; h++)
        spoil_rows(s.memory[3 * h], BAD, s.matrices[h].n_cols);
    struct results after = score_cuda(&p, s.op, true);
    for (size_t i = 0; i < before.n_rows; i++) {
        if (i % ROWS >= BAD)
            assert_same_number(after.rows[i].log_sum, before.rows[i].log_sum, "log_sum of row", i);
    }
    for (size_t i = 0; i < before.n_targets; i++) {
        if (s.targets[i % s.op.n_targets].row >= BAD)
            assert_same_number(after.targets[i].log_prob, before.targets[i].log_prob, "target", i);
    }
    results_close(&after);
    for (size_t h = 0; h < 3; h++) {
        spoil_rows(s.memory[3 * h], ROWS, s.matrices[h].n_cols);
        spoil_rows(s.memory[3 * h + 1], VOCAB, s.matrices[h].n_cols);
        s.matrices[h].generation = kern_next_generation();
    }
    after = score_cuda(&p, s.op, true);
    for (size_t i = 0; i < after.n_targets; i++)
        assert_false(isfinite(after.targets[i].log_prob));
    results_close(&before);
    results_close(&after);
    scene_close(&s);
    cuda_pair_close(&p);
}

/**
 * A kernel of its own makes logits of the sums of every head but the last. There the first one does
 * that reads them: of a head that is scored beside itself, and alone, all bits are the same.
 */
static void check_twice(struct cuda_pair *p, struct kern_score op, struct kern_head head, bool js)
{
    struct kern_head twice[] = {head, head};
    op.heads = twice;
    op.n_heads = 1;
    struct results alone = score_cuda(p, op, false);
    op.n_heads = 2;
    op.want_js = js;
    struct results both = score_cuda(p, op, true), first = both, second = both;
    first.n_rows = second.n_rows = op.n_rows;
    first.n_targets = second.n_targets = op.n_targets;
    alone.n_tops = first.n_tops = 0;
    second.rows += op.n_rows;
    second.targets += op.n_targets;
    second.pairs += op.n_rows;
    for (size_t i = 0; i < op.n_rows; i++) {
        const struct kern_pair_score *pair = &second.pairs[i];
        assert_same_number(fabs(pair->kl) + pair->js + pair->tv, 0.0, "divergence of row", i);
    }
    assert_same(&first, &alone);
    memcpy(both.pairs, second.pairs, op.n_rows * sizeof *both.pairs);
    assert_same(&first, &second);
    results_close(&alone);
    results_close(&both);
}

static void test_twice(void **state)
{
    (void)state;
    for (size_t h = 0; h < 2 * SCENE_HEADS; h++) {
        struct scene s;
        struct cuda_pair p;
        cuda_pair_open(&p, h % 2 ? KERN_PRECISION_FAST : KERN_PRECISION_HIGH,
                       &(struct host_device_options){0});
        scene_open(&s, 34, SCENE_HEADS, 35, 1059);
        struct kern_head head = s.heads[h / 2];
        head.bias = h % 2 ? &s.biases[h / 2] : NULL;
        check_twice(&p, s.op, head, h % 2);
        scene_close(&s);
        cuda_pair_close(&p);
    }
}

/** Records of n_rows hidden rows of head 0 in calls of `step` rows; hidden: the backend's. */
static uint16_t *record(struct kern_backend *b, const struct kern_head *head, const float *hidden,
                        size_t n_rows, size_t step)
{
    size_t stride = kern_record_codes(head->matrix->n_rows);
    uint16_t *records = malloc(n_rows * stride * sizeof *records);
    assert_non_null(records);
    memset(records, 0xa5, n_rows * stride * sizeof *records);
    for (size_t row = 0; row < n_rows; row += step) {
        struct kern_record op = {.head = *head,
                                 .n_rows = n_rows - row < step ? n_rows - row : step,
                                 .records = records + row * stride,
                                 .stride = stride};
        struct status_why why = {""};
        op.head.hidden = hidden + row * head->matrix->n_cols;
        if (kern_record(b, &op, &why) != STATUS_OK)
            fail_msg("%s", why.text);
    }
    return records;
}

/** Slabs of rows, one computed while another is copied: the CPU's records, or those of less rows.
 */
static void test_record_slabs(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUDA_PAIR_N_WAYS; i += cuda_pair_step()) {
        enum kern_precision precision = i % 2 ? KERN_PRECISION_EXACT : KERN_PRECISION_HIGH;
        /* `high` has slabs of the pair's 48 tokens; `exact` of 1024, and these are three. */
        size_t n_rows = i % 2 ? 2100 : 200, n_vocab = i % 2 ? 33 : 500;
        struct scene s;
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(i);
        cuda_pair_open(&p, precision, &way);
        scene_open(&s, 60 + i, 1, n_rows, n_vocab);
        const struct kern_head *head = &s.heads[0];
        float *hidden = cuda_pair_put(&p, head->hidden, n_rows * head->matrix->n_cols);
        uint16_t *found = record(p.cuda, head, hidden, n_rows, n_rows);
        uint16_t *expected = i % 2 ? record(p.cpu, head, head->hidden, n_rows, n_rows)
                                   : record(p.cuda, head, hidden, n_rows, 7);
        assert_memory_equal(found, expected, n_rows * kern_record_codes(n_vocab) * sizeof *found);
        free(found);
        free(expected);
        cuda_pair_take(&p, hidden, NULL, 0);
        scene_close(&s);
        cuda_pair_close(&p);
    }
}

/** Rows of logits: the CPU's in `exact`, and what scores are made of in any precision. */
static void test_logit_rows(void **state)
{
    (void)state;
    enum { ROWS = 70, FIRST = 9 };
    for (size_t i = 0; i < CUDA_PAIR_N_WAYS; i += cuda_pair_step()) {
        enum kern_precision precision = i % 2 ? KERN_PRECISION_EXACT : KERN_PRECISION_HIGH;
        size_t n_vocab = i % 3 ? 64 : 2051, n = n_vocab - FIRST;
        struct scene s;
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(i);
        cuda_pair_open(&p, precision, &way);
        scene_open(&s, 80 + i, 1, ROWS, n_vocab);
        float *logits[2] = {malloc(ROWS * n_vocab * sizeof(float)),
                            malloc(ROWS * n_vocab * sizeof(float))};
        struct kern_row_score rows[ROWS];
        struct kern_target targets[ROWS];
        struct kern_target_score scores[ROWS];
        for (uint32_t row = 0; row < ROWS; row++)
            targets[row] = (struct kern_target){row, (int32_t)(row * 31 % n_vocab)};
        assert_true(logits[0] && logits[1]);
        struct kern_logit_rows op = {
            .head = s.heads[0], .n_rows = ROWS, .n = n_vocab, .logits = logits[0]};
        assert_int_equal(kern_logit_rows(p.cpu, &op, NULL), STATUS_OK);
        float *hidden = cuda_pair_put(&p, op.head.hidden, ROWS * s.matrices[0].n_cols);
        op.head.hidden = hidden;
        op.logits = logits[1];
        assert_int_equal(kern_logit_rows(p.cuda, &op, NULL), STATUS_OK);
        if (precision == KERN_PRECISION_EXACT)
            assert_memory_equal(logits[0], logits[1], ROWS * n_vocab * sizeof(float));
        const struct kern_score score = {.n_heads = 1,
                                         .heads = &op.head,
                                         .n_rows = ROWS,
                                         .rows = rows,
                                         .n_targets = ROWS,
                                         .targets = targets,
                                         .target_scores = scores};
        assert_int_equal(kern_score(p.cuda, &score, NULL), STATUS_OK);
        op.first = FIRST;
        op.n = n;
        op.logits = logits[0];
        assert_int_equal(kern_logit_rows(p.cuda, &op, NULL), STATUS_OK);
        for (size_t row = 0; row < ROWS; row++) {
            const float *whole = logits[1] + row * n_vocab;
            assert_memory_equal(logits[0] + row * n, whole + FIRST, n * sizeof(float));
            assert_same_number((double)whole[targets[row].token] - rows[row].max_logit -
                                   rows[row].log_sum,
                               scores[row].log_prob, "log_prob of row", row);
        }
        cuda_pair_take(&p, hidden, NULL, 0);
        free(logits[0]);
        free(logits[1]);
        scene_close(&s);
        cuda_pair_close(&p);
    }
}

/** Head 0 recorded: by either backend to the same bits, then read back. */
static void test_records(void **state)
{
    (void)state;
    const size_t n_vocabs[] = {64, 2051};
    for (size_t i = 0; i < CUDA_PAIR_N_WAYS; i += cuda_pair_step()) {
        enum { ROWS = 70 };
        size_t n_vocab = n_vocabs[i % 2], stride = kern_record_codes(n_vocab);
        struct scene s;
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(i);
        cuda_pair_open(&p, KERN_PRECISION_EXACT, &way);
        scene_open(&s, 40 + i, 3, ROWS, n_vocab);
        const struct kern_head *head = &s.heads[0];
        float *hidden = cuda_pair_put(&p, head->hidden, ROWS * head->matrix->n_cols);
        uint16_t *records[2] = {record(p.cpu, head, head->hidden, ROWS, ROWS),
                                record(p.cuda, head, hidden, ROWS, ROWS)};
        cuda_pair_take(&p, hidden, NULL, 0);
        assert_memory_equal(records[0], records[1], ROWS * stride * sizeof(uint16_t));
        struct kern_recorded recorded = {.records = records[0], .stride = stride, .cut = -16.0};
        s.heads[0] = (struct kern_head){.recorded = &recorded};
        check_scene(&p, &s.op, true);
        s.op.want_js = true;
        check_scene(&p, &s.op, true);
        free(records[0]);
        free(records[1]);
        scene_close(&s);
        cuda_pair_close(&p);
    }
}

/*
 * With halves, a logit of K products of size up to m (the sum of |w x|) is off by at most
 *   fast  2 * 2^-11 m (both operands rounded to 11 bits, relative 2^-11 each half an ulp: 2^-12
 *         of the value, but 2^-25 of the row's largest for small ones: under 2^-11 together),
 *   high  2^-20 m (22 bits each, and what lo times lo would have added),
 * and K 2^-24 m for adding in float32. Log-probabilities, maxima and sums are off by no more than
 * twice that; scenes have m below 64 (40 to 64 products of a normal with 0.3 of a normal) and
 * scales up to 1.25.
 */
static double bound_of(enum kern_precision precision)
{
    double m = 1.25 * 64, rounding = precision == KERN_PRECISION_FAST ? 0x1p-10 : 0x1p-20;
    return 2.0 * m * (rounding + 64 * 0x1p-24);
}

static void check_near(const struct results *found, const struct results *expected, double bound)
{
    double worst = 0.0;
    for (size_t i = 0; i < found->n_rows; i++) {
        worst = fmax(worst, fabs(found->rows[i].max_logit - expected->rows[i].max_logit));
        worst = fmax(worst, fabs(found->rows[i].log_sum - expected->rows[i].log_sum));
    }
    for (size_t i = 0; i < found->n_targets; i++)
        worst = fmax(worst, fabs(found->targets[i].log_prob - expected->targets[i].log_prob));
    if (!(worst <= bound))
        fail_msg("off by %g, expected at most %g", worst, bound);
}

static void test_precisions(void **state)
{
    (void)state;
    const enum kern_precision precisions[] = {KERN_PRECISION_HIGH, KERN_PRECISION_FAST,
                                              KERN_PRECISION_FAST, KERN_PRECISION_HIGH};
    const enum host_device_gemm gemms[] = {HOST_DEVICE_GEMM_EVEN, HOST_DEVICE_GEMM_EVEN,
                                           HOST_DEVICE_GEMM_BY_NUMBER,
                                           HOST_DEVICE_GEMM_PLANNED_ONLY};
    size_t n = run_kernel_is_slow() ? 2 : sizeof gemms / sizeof *gemms;
    for (size_t i = 0; i < n; i++) {
        struct scene s;
        struct cuda_pair p;
        struct host_device_options way = cuda_pair_way(1 + i);
        way.gemm = gemms[i];
        cuda_pair_open(&p, precisions[i], &way);
        scene_open(&s, 50, 3, 100, 900);
        struct results expected = score(p.cpu, s.op, true), found = score_cuda(&p, s.op, true);
        check_near(&found, &expected, bound_of(precisions[i]));
        /* One row at a time: the same bits. */
        for (size_t row = 0; row < 100; row += 33) {
            struct kern_head heads[SCENE_HEADS];
            struct kern_score one = s.op;
            one.heads = heads;
            one.n_rows = 1;
            one.n_targets = 0;
            for (size_t h = 0; h < 3; h++) {
                heads[h] = s.heads[h];
                heads[h].hidden += row * s.matrices[h].n_cols;
            }
            struct results alone = score_cuda(&p, one, true);
            for (size_t h = 0; h < 3; h++) {
                assert_same_number(alone.rows[h].log_sum, found.rows[h * 100 + row].log_sum,
                                   "log_sum of row", row);
                assert_same_number(alone.pairs[h].kl, found.pairs[h * 100 + row].kl, "kl of row",
                                   row);
            }
            results_close(&alone);
        }
        results_close(&expected);
        results_close(&found);
        scene_close(&s);
        cuda_pair_close(&p);
    }
}

int main(void)
{
    /* Tall tiles first: a changed kernel is tried in the first scenes (tests/ptx/mutants.h). */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tall_tiles),   cmocka_unit_test(test_heads),
        cmocka_unit_test(test_wide_rows),    cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_not_finite),   cmocka_unit_test(test_not_finite_halves),
        cmocka_unit_test(test_twice),        cmocka_unit_test(test_records),
        cmocka_unit_test(test_record_slabs), cmocka_unit_test(test_precisions),
        cmocka_unit_test(test_preload),      cmocka_unit_test(test_preload_decodes),
        cmocka_unit_test(test_logit_rows),
    };
    int n_failed = cmocka_run_group_tests_name("host device", tests, NULL, NULL);
    if (!cuda_pair_use_real_device())
        return n_failed;
    return n_failed + cmocka_run_group_tests_name("CUDA device", tests, NULL, NULL);
}

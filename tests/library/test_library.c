/*
 * include/assay.h: what its functions give agrees with itself and with definitions, whatever the
 * batches and threads; test_same_bits.py compares it with the program.
 */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "models.h"
#include "tests/harness/compare.h"

static void test_names(void **state)
{
    (void)state;
    assert_int_equal(assay_abi(), ASSAY_ABI);
    assert_string_equal(assay_version(), ASSAY_PROJECT_VERSION);
    assert_string_equal(assay_status_name(ASSAY_FORMAT), "format");
    assert_string_equal(assay_status_name((enum assay_status) - 1), "unknown");
}

static void test_description(void **state)
{
    (void)state;
    struct assay_model *m = open_with(Q4, ASSAY_EXACT, 2);
    struct assay_description d = description(m);
    assert_string_equal(d.path, Q4);
    assert_string_equal(d.architecture, "llama");
    assert_string_equal(d.device, "cpu");
    assert_string_equal(d.products, "float32");
    assert_int_equal(d.n_threads, 2);
    assert_int_equal(d.streams, 1);
    assert_true(d.n_layers > 1 && d.width > 1 && d.n_ctx > 1 && d.bos >= 0 && d.adds_bos == 1);
    uint64_t n_weights = 0;
    for (size_t i = 0; i < d.n_tensors; i++) {
        struct assay_tensor t;
        size_t found;
        must(assay_tensor_at(m, i, &t, &why));
        must(assay_tensor_find(m, t.name, &found, &why));
        assert_int_equal(found, i);
        n_weights += t.n_rows * t.ne[0];
    }
    assert_int_equal(d.n_weights, n_weights);
    struct assay_model *same; /* what isa says may be asked for */
    const struct assay_options options = {.size = sizeof options, .isa = d.isa};
    must(assay_open(&same, Q4, &options, &why));
    assert_string_equal(description(same).isa, d.isa);
    assay_close(same);
    assay_close(m);
}

/** Rows of tensors are what their bytes decode to, all at once or some of them. */
static void test_tensors(void **state)
{
    (void)state;
    struct assay_model *m = open_with(Q4, ASSAY_HIGH, 1);
    for (size_t i = 0; i < description(m).n_tensors; i++) {
        struct assay_tensor t;
        must(assay_tensor_at(m, i, &t, &why));
        size_t n = (size_t)(t.n_rows * t.ne[0]), row = (size_t)t.n_rows / 2;
        float *whole = malloc(n * sizeof *whole), *part = malloc(n * sizeof *part);
        assert_true(whole && part);
        const struct assay_matrix matrix = {t.data,          (size_t)t.n_bytes, (size_t)t.n_rows,
                                            (size_t)t.ne[0], t.type_id,         0};
        must(assay_decode(&matrix, whole, &why));
        must(assay_tensor_rows(m, i, row, t.n_rows - row, part, &why));
        assert_memory_equal(part, whole + row * t.ne[0], (n - row * t.ne[0]) * sizeof *part);
        free(whole);
        free(part);
    }
    assay_close(m);
}

static void test_texts(void **state)
{
    (void)state;
    static const char text[] = "In the town of Ar\xc3\xb6s\0 ships";
    struct assay_model *m = open_with(F16, ASSAY_HIGH, 1);
    int32_t ids[sizeof text + 1], some[3] = {-7, -7, -7};
    char spelled[4 * sizeof text] = "";
    size_t n, n_more, n_spelled = 0;
    must(assay_tokenize(m, text, sizeof text - 1, 0, ids, sizeof text, &n, &why));
    must(assay_tokenize(m, text, sizeof text - 1, ASSAY_BOS, some, 2, &n_more, &why));
    assert_int_equal(n_more, n + 1);
    assert_true(some[0] == description(m).bos && some[1] == ids[0] && some[2] == -7);
    must(assay_tokenize(m, NULL, 0, 0, NULL, 0, &n_more, &why));
    assert_int_equal(n_more, 0);
    for (size_t i = 0; i < n; i++) {
        size_t n_bytes;
        must(assay_token_bytes(m, ids[i], spelled + n_spelled, sizeof spelled - n_spelled, &n_bytes,
                               &why));
        n_spelled += n_bytes;
    }
    size_t n_space = spelled[0] == ' '; /* that the tokenizer put in front */
    assert_int_equal(n_spelled, sizeof text - 1 + n_space);
    assert_memory_equal(spelled + n_space, text, sizeof text - 1);
    assay_close(m);
}

/** All windows at once, and each alone, with one thread and two. */
static void test_batches_do_not_matter(void **state)
{
    (void)state;
    for (int precision = ASSAY_HIGH; precision <= ASSAY_FAST; precision++) {
        struct assay_model *m = open_with(Q4, (enum assay_precision)precision, 2);
        struct assay_model *single = open_with(Q4, (enum assay_precision)precision, 1);
        int32_t *targets;
        struct assay_windows windows = make_windows(m, 1, &targets), one = windows;
        struct assay_score all[N], each[N];
        must(assay_log_probs(m, &windows, targets, all, &why));
        one.n_windows = 1;
        for (size_t i = 0; i < N_WINDOWS; i++) {
            one.tokens = windows.tokens + i * N_TOKENS;
            must(assay_log_probs(single, &one, targets + i * N_POSITIONS, each + i * N_POSITIONS,
                                 &why));
        }
        assert_memory_equal(all, each, sizeof all);
        free_windows(&windows, targets);
        assay_close(m);
        assay_close(single);
    }
}

/** Scores, the likeliest tokens and whole rows say the same of a prediction. */
static void check_rows(struct assay_model *m)
{
    size_t n_vocab = description(m).n_vocab, half = n_vocab / 2;
    int32_t *targets;
    struct assay_windows windows = make_windows(m, 2, &targets);
    struct assay_score scores[N];
    struct assay_likely *likely = malloc(N * ASSAY_TOP_MAX * sizeof *likely), two[2 * N];
    double *rows = malloc(N * n_vocab * sizeof *rows), *slice = malloc(N * half * sizeof *slice);
    assert_true(likely && rows && slice);
    must(assay_log_probs(m, &windows, targets, scores, &why));
    must(assay_top(m, &windows, ASSAY_TOP_MAX, likely, &why));
    must(assay_top(m, &windows, 2, two, &why));
    must(assay_rows(m, &windows, 0, n_vocab, rows, &why));
    must(assay_rows(m, &windows, half - 1, half, slice, &why));
    for (size_t i = 0; i < N; i++) {
        const double *row = rows + i * n_vocab;
        double sum = 0, entropy = 0;
        size_t n_above = 0;
        for (size_t t = 0; t < n_vocab; t++) {
            sum += exp(row[t]);
            entropy -= exp(row[t]) * row[t];
            n_above += row[t] > scores[i].log_prob;
        }
        assert_true(fabs(sum - 1) < 1e-9 && fabs(entropy - scores[i].entropy) < 1e-6);
        assert_true(row[targets[i]] == scores[i].log_prob && scores[i].rank > n_above);
        assert_memory_equal(slice + i * half, row + half - 1, half * sizeof *row);
        assert_int_equal(likely[i * ASSAY_TOP_MAX].token, scores[i].likeliest);
        assert_memory_equal(two + 2 * i, likely + i * ASSAY_TOP_MAX, 2 * sizeof *two);
        for (size_t k = 0; k < ASSAY_TOP_MAX; k++) {
            const struct assay_likely *l = &likely[i * ASSAY_TOP_MAX + k];
            assert_true(l->log_prob == row[l->token] && l->unused == 0);
            assert_true(k == 0 || l->log_prob <= l[-1].log_prob);
        }
    }
    free(likely);
    free(rows);
    free(slice);
    free_windows(&windows, targets);
}

static void test_rows(void **state)
{
    (void)state;
    for (int precision = ASSAY_HIGH; precision <= ASSAY_FAST; precision++) {
        struct assay_model *m = open_with(Q4, (enum assay_precision)precision, 2);
        check_rows(m);
        assay_close(m);
    }
}

/** The next tokens of windows are targets like others. */
static void test_next_tokens(void **state)
{
    (void)state;
    struct assay_model *m = open_with(F16, ASSAY_HIGH, 1);
    int32_t *targets;
    struct assay_windows windows = make_windows(m, 3, &targets);
    struct assay_score next[N], given[N];
    for (size_t i = 0; i < N; i++)
        targets[i] = windows.tokens[i / N_POSITIONS * N_TOKENS + FIRST + i % N_POSITIONS + 1];
    must(assay_log_probs(m, &windows, NULL, next, &why));
    must(assay_log_probs(m, &windows, targets, given, &why));
    assert_memory_equal(next, given, sizeof next);
    free_windows(&windows, targets);
    assay_close(m);
}

/** States of some positions are those of the whole windows; the head makes the scores of them. */
static void test_hidden(void **state)
{
    (void)state;
    struct assay_model *m = open_with(F16, ASSAY_EXACT, 2);
    struct assay_description d = description(m);
    int32_t *targets;
    struct assay_windows windows = make_windows(m, 4, &targets), whole = windows;
    whole.first = 0;
    whole.n_positions = N_TOKENS;
    whole.n_windows = 1;
    float *some = malloc(N * d.width * sizeof *some);
    float *all = malloc(N_TOKENS * d.width * sizeof *all);
    assert_true(some && all);
    for (int layer = ASSAY_NORMED; layer < (int)d.n_layers; layer++) {
        must(assay_hidden(m, &windows, layer, some, &why));
        for (size_t i = 0; i < N_WINDOWS; i++) {
            whole.tokens = windows.tokens + i * N_TOKENS;
            must(assay_hidden(m, &whole, layer, all, &why));
            assert_memory_equal(some + i * N_POSITIONS * d.width, all + FIRST * d.width,
                                N_POSITIONS * d.width * sizeof *some);
        }
    }
    size_t i_head;
    struct assay_tensor t;
    must(assay_tensor_find(m, "output.weight", &i_head, &why));
    must(assay_tensor_at(m, i_head, &t, &why));
    const struct assay_matrix head = {t.data, (size_t)t.n_bytes, d.n_vocab, d.width, t.type_id, 0};
    struct assay_options exact = ASSAY_OPTIONS;
    exact.precision = ASSAY_EXACT;
    float *logits = malloc(N * d.n_vocab * sizeof *logits);
    double *rows = malloc(N * d.n_vocab * sizeof *rows);
    assert_true(logits && rows);
    must(assay_hidden(m, &windows, ASSAY_NORMED, some, &why));
    must(assay_multiply(&exact, &head, some, N, logits, &why));
    must(assay_rows(m, &windows, 0, d.n_vocab, rows, &why));
    for (size_t i = 0; i < N * d.n_vocab; i++) {
        size_t row = i / d.n_vocab * d.n_vocab; /* all that a row lacks is one number */
        double expected = (double)logits[i] - (double)logits[row];
        assert_true(fabs(rows[i] - rows[row] - expected) < 1e-12);
    }
    free(some);
    free(all);
    free(logits);
    free(rows);
    free_windows(&windows, targets);
    assay_close(m);
}

static void test_divergence(void **state)
{
    (void)state;
    struct assay_model *p = open_with(F16, ASSAY_HIGH, 2), *q = open_with(Q4, ASSAY_HIGH, 1);
    size_t n_vocab = description(p).n_vocab;
    int32_t *targets;
    struct assay_windows windows = make_windows(p, 5, &targets);
    struct assay_divergence found[N], same[N];
    struct assay_score p_scores[N], q_scores[N];
    double *rows[2] = {malloc(N * n_vocab * sizeof(double)), malloc(N * n_vocab * sizeof(double))};
    assert_true(rows[0] && rows[1]);
    must(assay_diverge(p, q, &windows, targets, found, &why));
    must(assay_diverge(p, p, &windows, targets, same, &why));
    must(assay_log_probs(p, &windows, targets, p_scores, &why));
    must(assay_log_probs(q, &windows, targets, q_scores, &why));
    must(assay_rows(p, &windows, 0, n_vocab, rows[0], &why));
    must(assay_rows(q, &windows, 0, n_vocab, rows[1], &why));
    for (size_t i = 0; i < N; i++) {
        const struct assay_divergence *d = &found[i];
        double kl = 0, tv = 0;
        for (size_t t = 0; t < n_vocab; t++) {
            double a = rows[0][i * n_vocab + t], b = rows[1][i * n_vocab + t];
            kl += exp(a) * (a - b);
            tv += fabs(exp(a) - exp(b)) / 2;
        }
        assert_true(fabs(d->kld - kl) < 1e-9 && fabs(d->tv - tv) < 1e-6 && d->js > 0);
        assert_true(d->base_log_prob == p_scores[i].log_prob &&
                    d->log_prob == q_scores[i].log_prob && d->rank == q_scores[i].rank &&
                    d->base_entropy == p_scores[i].entropy && d->entropy == q_scores[i].entropy &&
                    d->base_rank == p_scores[i].rank && d->likeliest == q_scores[i].likeliest &&
                    d->base_likeliest == p_scores[i].likeliest);
        assert_int_equal(d->common_1, d->likeliest == d->base_likeliest);
        assert_true(same[i].kld == 0 && same[i].js == 0 && same[i].tv == 0 &&
                    same[i].reverse_kld == 0 && same[i].common_10 == 10);
    }
    free(rows[0]);
    free(rows[1]);
    free_windows(&windows, targets);
    assay_close(p);
    assay_close(q);
}

/** Of every type: exact products are chains of fused multiply-adds of what decodes; none depends on
 * the instruction set. */
static void test_products(void **state)
{
    (void)state;
    enum { COLS = 512, ROWS = 32, TOKENS = 3 };
    struct rng r = rng_open(6, 0);
    struct assay_model *m = open_with(Q4, ASSAY_HIGH, 1);
    bool is_amx = strcmp(description(m).isa, "amx") == 0; /* which has products of its own */
    static float x[TOKENS * COLS], decoded[ROWS * COLS], y[TOKENS * ROWS], plain[TOKENS * ROWS];
    for (size_t i = 0; i < TOKENS * COLS; i++)
        x[i] = rng_normal(&r);
    struct assay_type type;
    size_t n_types = 0;
    for (; assay_type_at(n_types, &type, &why) == ASSAY_OK; n_types++) {
        struct assay_type found;
        must(assay_type_find(type.name, &found, &why));
        assert_memory_equal(&found, &type, sizeof type);
        size_t row_bytes = type.row_prefix + COLS / type.block_elems * type.block_bytes;
        struct assay_matrix w = {NULL, ROWS * row_bytes + type.tail_bytes, ROWS, COLS, type.id, 0};
        uint8_t *bytes = malloc(w.n_bytes);
        assert_non_null(bytes);
        rng_bytes(&r, bytes, w.n_bytes);
        for (size_t i = 0; i < w.n_bytes; i++)
            bytes[i] &= 0x3b; /* no half and no float32 is large or infinite then */
        w.bytes = bytes;
        must(assay_decode(&w, decoded, &why));
        struct assay_options options = {.size = sizeof options, .precision = ASSAY_EXACT};
        must(assay_multiply(&options, &w, x, TOKENS, y, &why));
        for (size_t i = 0; i < TOKENS * ROWS; i++) {
            float sum = 0;
            for (size_t k = 0; k < COLS; k++)
                sum = fmaf(decoded[i % ROWS * COLS + k], x[i / ROWS * COLS + k], sum);
            if (compare_bits(&y[i], &sum, 1) != 1)
                fail_msg("%s: product %zu is %a, expected %a", type.name, i, (double)y[i],
                         (double)sum);
        }
        options.precision = ASSAY_HIGH;
        options.isa = "scalar";
        must(assay_multiply(&options, &w, x, TOKENS, plain, &why));
        options.isa = is_amx ? "avx2" : NULL;
        options.n_threads = 2;
        must(assay_multiply(&options, &w, x + COLS, TOKENS - 1, y, &why));
        assert_int_equal(compare_bits(y, plain + ROWS, (TOKENS - 1) * ROWS), (TOKENS - 1) * ROWS);
        free(bytes);
    }
    assert_true(n_types > 50);
    assay_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_description),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_batches_do_not_matter),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_next_tokens),
        cmocka_unit_test(test_hidden),
        cmocka_unit_test(test_divergence),
        cmocka_unit_test(test_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

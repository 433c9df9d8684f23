/*
 * Choice tasks on the bundled model: what is shared and scored, against each sequence evaluated
 * alone, and the scores' arithmetic against values worked out by hand.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bundled.h"
#include "eval/units/choice.h"
#include "run_units.h"
#include "tests/harness/cmocka.h"
#include "tests/model/fixture.h"

/** Load, evaluate in batches of that many tokens. */
static void evaluate(struct eval_choices *c, const char *text, enum eval_choice_kind kind,
                     bool llama_compat, size_t batch_tokens)
{
    struct eval_dataset d;
    struct status_why why = {""};
    char copy[2048];
    size_t n = strlen(text);
    assert_true(n < sizeof copy);
    memcpy(copy, text, n);
    enum status status = kind == EVAL_HELLASWAG
                             ? eval_dataset_hellaswag(&d, copy, n, &why)
                             : eval_dataset_winogrande(&d, copy, n, llama_compat, &why);
    struct eval_choices_options options = {.kind = kind, .llama_compat = llama_compat};
    if (!status)
        status = eval_choices_make(c, &d, &options, model_tokenizer(model), &why);
    struct eval_run_stats stats;
    if (!status)
        status = run_units(&c->sequences.units, model, backend, batch_tokens, &stats, &why);
    if (status)
        fail_msg("%s", why.text);
    eval_dataset_free(&d);
}

/** Log-probabilities of tokens 1 .. n-1 of a sequence evaluated by itself: out[i] of token i. */
static void evaluate_alone(const struct model_tokens *tokens, double *out)
{
    size_t n = tokens->n - 1;
    struct eval_scorer_options options = {.max_batch = n, .max_rows = n, .max_segment = n};
    struct eval_scorer *scorer;
    assert_int_equal(eval_scorer_open(&scorer, model, backend, &options, NULL), STATUS_OK);
    uint32_t *rows = calloc(n, sizeof *rows);
    struct kern_target *targets = calloc(n, sizeof *targets);
    struct kern_row_score *row_scores = calloc(n, sizeof *row_scores);
    struct kern_target_score *scores = calloc(n, sizeof *scores);
    assert_true(rows && targets && row_scores && scores);
    for (size_t i = 0; i < n; i++) {
        rows[i] = (uint32_t)i;
        targets[i] = (struct kern_target){(uint32_t)i, tokens->ids[i + 1]};
    }
    struct model_segment segment = {.n_tokens = n, .parent = -1};
    struct model_batch batch = {tokens->ids, n, &segment, 1};
    struct eval_items items = {.rows = rows,
                               .n_rows = n,
                               .targets = targets,
                               .n_targets = n,
                               .row_scores = row_scores,
                               .target_scores = scores};
    assert_int_equal(eval_scorer_run(scorer, &batch, &items, NULL, NULL), STATUS_OK);
    for (size_t i = 0; i < n; i++)
        out[i + 1] = scores[i].log_prob;
    free(rows);
    free(targets);
    free(row_scores);
    free(scores);
    eval_scorer_close(scorer);
}

/** Every log-probability that a task has, to the bit. */
static void check_against_alone(const struct eval_choice_task *t)
{
    for (size_t i = 0; i < t->n_choices; i++) {
        const struct eval_choice *c = &t->choices[i];
        double alone[512];
        assert_true(c->tokens.n < 512);
        evaluate_alone(&c->tokens, alone);
        for (size_t j = t->first_scored; j < c->tokens.n; j++)
            if (!(t->misread && i == 1 && j == t->n_common))
                assert_memory_equal(&alone[j], &c->log_probs[j], sizeof(double));
    }
}

/* The second task's endings: one begins another, two are equal. */
static const char hellaswag[] =
    "The baker takes the bread out of the oven .\n1\nThe war ended in 1918 .\nHe lets it cool on "
    "a rack .\nA storm was named .\nThe ship sailed north .\n"
    "In the town\n0\nthere was\nthere was a river\nthere was\nships\n";

static void sharing_changes_no_bit(void **state)
{
    (void)state;
    for (size_t batch_tokens = 1; batch_tokens <= 4096; batch_tokens += 4095) {
        struct eval_choices c;
        evaluate(&c, hellaswag, EVAL_HELLASWAG, false, batch_tokens);
        assert_int_equal(c.n, 2);
        for (size_t k = 0; k < c.n; k++) {
            assert_true(c.tasks[k].done);
            assert_true(c.tasks[k].n_common > 1);
            check_against_alone(&c.tasks[k]);
        }
        eval_choices_free(&c);
    }
}

/** Endings on both sides of the boundary: each is rotated as alone. The middle one parts them. */
static void sharing_ends_at_the_boundary(void **state)
{
    (void)state;
    struct model *bundled = model;
    size_t n_shared = 0, n_apart = 0;
    for (uint32_t boundary = 20; boundary <= 100; boundary += 20) {
        struct fixture f = fixture_open(
            &(struct tiny_model_options){.long_factors = true, .rope_original_ctx = boundary});
        struct eval_choices c;
        model = f.model;
        evaluate(&c, hellaswag, EVAL_HELLASWAG, false, 4096);
        for (size_t k = 0; k < c.n; k++) {
            check_against_alone(&c.tasks[k]);
            size_t n_long = 0;
            for (size_t i = 0; i < c.tasks[k].n_choices; i++)
                n_long += c.tasks[k].choices[i].tokens.n - 1 > boundary;
            bool apart = n_long > 0 && n_long < c.tasks[k].n_choices;
            assert_int_equal(c.sequences.groups[k].n_common == 0, apart);
            n_shared += !apart;
            n_apart += apart;
        }
        eval_choices_free(&c);
        fixture_close(&f);
    }
    model = bundled;
    assert_true(n_shared > 0 && n_apart > 0);
}

/** Every choice keeps a token of its own; equal endings score equally, and the first wins. */
static void endings_may_be_equal_or_begin_others(void **state)
{
    (void)state;
    const char text[] = "In the town\n3\nthere was\nthere was a river\nthere was\nthere was\n";
    struct eval_choices c;
    evaluate(&c, text, EVAL_HELLASWAG, false, 4096);
    const struct eval_choice_task *t = &c.tasks[0];
    struct eval_choice_score s[4];
    for (size_t i = 0; i < 4; i++) {
        assert_true(t->choices[i].end > t->choices[i].first);
        s[i] = eval_choice_score(&t->choices[i]);
        assert_true(isfinite(s[i].mean) && s[i].mean < 0);
    }
    assert_int_equal(t->n_common, t->choices[0].tokens.n - 1);
    assert_memory_equal(&s[0], &s[2], sizeof s[0]);
    assert_memory_equal(&s[0], &s[3], sizeof s[0]);
    assert_true(eval_choice_winners(t, false).mean < 2);
    eval_choices_free(&c);
}

/** The tail is short, so the choice is scored too; llama.cpp then reads a wrong row. */
static void winogrande_reads_the_right_row(void **state)
{
    (void)state;
    const char row[] = "0,It was _ .,he,it,2\n\n";
    struct eval_choices right, wrong;
    evaluate(&right, row, EVAL_WINOGRANDE, false, 4096);
    evaluate(&wrong, row, EVAL_WINOGRANDE, true, 4096);
    assert_false(right.tasks[0].misread);
    assert_true(wrong.tasks[0].misread);
    check_against_alone(&right.tasks[0]);
    check_against_alone(&wrong.tasks[0]);
    const struct eval_choice *a = right.tasks[0].choices, *b = wrong.tasks[0].choices;
    size_t n_common = right.tasks[0].n_common;
    assert_memory_equal(a[0].log_probs, b[0].log_probs, a[0].tokens.n * sizeof(double));
    /* What stands after the whole first sequence: one token more, that predicts the other choice.
     */
    struct model_tokens longer = {calloc(a[0].tokens.n + 1, sizeof(int32_t)), a[0].tokens.n + 1, 0};
    assert_non_null(longer.ids);
    memcpy(longer.ids, a[0].tokens.ids, a[0].tokens.n * sizeof(int32_t));
    longer.ids[longer.n - 1] = a[1].tokens.ids[n_common];
    double alone[64];
    evaluate_alone(&longer, alone);
    assert_memory_equal(&alone[longer.n - 1], &b[1].log_probs[n_common], sizeof(double));
    assert_true(a[1].log_probs[n_common] != b[1].log_probs[n_common]);
    free(longer.ids);
    eval_choices_free(&right);
    eval_choices_free(&wrong);
}

/** A longer tail: only what follows the choice counts, without the last token. */
static void winogrande_leaves_out_the_choice(void **state)
{
    (void)state;
    struct eval_choices c;
    evaluate(&c, "0,The boy saw that the _ was too large for the small box .,ball,trophy,1",
             EVAL_WINOGRANDE, false, 4096);
    const struct eval_choice_task *t = &c.tasks[0];
    check_against_alone(t);
    for (size_t i = 0; i < 2; i++) {
        assert_true(t->choices[i].first > t->n_common);
        assert_int_equal(t->choices[i].first, t->choices[i].continuation);
        assert_int_equal(t->choices[i].end, t->choices[i].tokens.n - 1);
        assert_int_equal(t->choices[i].n_chars, strlen("was too large for the small box ."));
    }
    eval_choices_free(&c);
}

/** "paint" ends in other tokens than "painted" has there, so some of the choice's are not its own.
 */
static void winogrande_scores_from_where_the_tokens_are_the_sentences(void **state)
{
    (void)state;
    const char row[] =
        "0,They said that the _ed wall was too large for the small box .,paint,walk,1\n\n";
    const char before[] = "They said that the paint";
    struct model_tokens tokens = {0};
    assert_int_equal(
        model_tokenize(model_tokenizer(model), before, strlen(before), true, &tokens, NULL),
        STATUS_OK);
    size_t n_before = 1 + tokens.n; /* BOS */
    for (int llama_compat = 0; llama_compat < 2; llama_compat++) {
        struct eval_choices c;
        evaluate(&c, row, EVAL_WINOGRANDE, llama_compat, 4096);
        const struct eval_choice *painted = &c.tasks[0].choices[0];
        assert_memory_equal(tokens.ids, painted->tokens.ids + 1, (tokens.n - 1) * sizeof(int32_t));
        assert_int_not_equal(tokens.ids[tokens.n - 1], painted->tokens.ids[n_before - 1]);
        assert_int_equal(painted->first, llama_compat ? n_before : n_before - 1);
        check_against_alone(&c.tasks[0]);
        eval_choices_free(&c);
    }
    free(tokens.ids);
}

/** Scores by hand: tokens 2 and 3 count for the mean, 1 to 3 for the sum. */
static void scores_and_winners(void **state)
{
    (void)state;
    double a[] = {0, -1, -2, -4}, b[] = {0, -9, -1, -3}, nan_scores[] = {0, -1, (double)NAN, -1};
    struct eval_choice choices[3] = {
        {.tokens = {.n = 4}, .first = 2, .end = 4, .continuation = 1, .n_chars = 7, .log_probs = a},
        {.tokens = {.n = 4},
         .first = 2,
         .end = 4,
         .continuation = 1,
         .n_chars = 26,
         .log_probs = b},
        {.tokens = {.n = 4}, .first = 2, .end = 4, .continuation = 1, .n_chars = 7, .log_probs = a},
    };
    struct eval_choice_task task = {.choices = choices, .n_choices = 3, .answer = 1, .index = 5};
    struct eval_choice_score s = eval_choice_score(&choices[1]);
    assert_true(s.mean == -2 && s.sum == -13 && s.per_char == -0.5);
    struct eval_choice_winners w = eval_choice_winners(&task, false);
    assert_int_equal(w.mean, 1);
    assert_int_equal(w.sum, 0);
    assert_int_equal(w.per_char, 1);
    assert_true(w.finite);

    struct eval_choice_tally tally = {0};
    eval_choice_tally_add(&tally, &task, false);
    task.n_choices = 2;
    choices[1].log_probs = a;
    assert_int_equal(eval_choice_winners(&task, false).mean, 0);
    assert_int_equal(eval_choice_winners(&task, true).mean, 1);
    choices[1].log_probs = nan_scores;
    task.answer = 0; /* where nothing beats a first score that is not a number */
    choices[0].log_probs = nan_scores;
    w = eval_choice_tally_add(&tally, &task, true);
    assert_true(w.mean == EVAL_NO_CHOICE && w.sum == EVAL_NO_CHOICE &&
                w.per_char == EVAL_NO_CHOICE);
    assert_false(w.finite);
    assert_int_equal(tally.n_nonfinite, 1);
    assert_int_equal(tally.first_nonfinite, 5);
    assert_true(tally.n == 2 && tally.n_choices == 5 && tally.n_right == 1);
    assert_true(fabs(tally.chance - (1.0 / 3 + 1.0 / 2)) < 1e-15);
}

/** 12 of 40 and 0 of 1: the interval that llama-perplexity prints. */
static void shares_and_intervals(void **state)
{
    (void)state;
    double low, high;
    assert_true(eval_share_error(0.5, 1) == 0);
    assert_true(fabs(eval_share_error(0.3, 40) - sqrt(0.21 / 39)) < 1e-15);
    eval_share_interval(0.3, 40, &low, &high);
    assert_true(fabs(low - 0.180748) < 5e-7);
    assert_true(fabs(high - 0.454300) < 5e-7);
    eval_share_interval(0, 1, &low, &high);
    assert_true(low == 0);
    assert_true(fabs(high - 0.793451) < 5e-7);
    eval_share_interval(1, 1, &low, &high);
    assert_true(high == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sharing_changes_no_bit),
        cmocka_unit_test(sharing_ends_at_the_boundary),
        cmocka_unit_test(endings_may_be_equal_or_begin_others),
        cmocka_unit_test(winogrande_reads_the_right_row),
        cmocka_unit_test(winogrande_leaves_out_the_choice),
        cmocka_unit_test(winogrande_scores_from_where_the_tokens_are_the_sentences),
        cmocka_unit_test(scores_and_winners),
        cmocka_unit_test(shares_and_intervals),
    };
    return cmocka_run_group_tests(tests, bundled_open, bundled_close);
}

/*
 * Requests on the bundled model: tokens and windows against the definitions, scores against the
 * double-precision forward pass, the same bits for any order, grouping and batch.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bundled.h"
#include "eval/units/requests.h"
#include "run_units.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/rng.h"
#include "tests/model/float64.h"

/** Requests and their sequences, not evaluated yet. */
struct scene {
    char text[4096];
    struct eval_requests requests;
    struct eval_request_scores scores;
};

static enum status scene_make(struct scene *s, const char *lines,
                              const struct eval_request_options *options, struct status_why *why)
{
    size_t n = strlen(lines);
    assert_true(n < sizeof s->text);
    memcpy(s->text, lines, n);
    if (eval_requests_read(&s->requests, s->text, n, why))
        fail_msg("%s", why->text);
    return eval_request_scores_make(&s->scores, &s->requests, options, model_tokenizer(model), why);
}

static void scene_free(struct scene *s)
{
    eval_request_scores_free(&s->scores);
    eval_requests_free(&s->requests);
}

static struct eval_run_stats evaluate(struct scene *s, size_t batch_tokens)
{
    struct status_why why = {""};
    struct eval_run_stats stats;
    double started = base_clock_seconds();
    if (run_units(&s->scores.sequences.units, model, backend, batch_tokens, &stats, &why))
        fail_msg("%s", why.text);
    /* Opening and evaluating are two parts of the time that it took. */
    assert_true(stats.seconds_to_open > 0 && stats.seconds > 0);
    assert_true(stats.seconds_to_open + stats.seconds <= base_clock_seconds() - started + 1e-6);
    for (size_t i = 0; i < s->scores.n; i++)
        assert_int_equal(s->scores.items[i].n_left, 0);
    return stats;
}

/** The tokens of a text, after `front` if that is not negative. free(ids). */
static struct model_tokens tokens_of(const char *text, int32_t front)
{
    struct model_tokens t = {0};
    t.ids = malloc(sizeof *t.ids);
    assert_non_null(t.ids);
    t.capacity = 1;
    if (front >= 0)
        t.ids[t.n++] = front;
    assert_int_equal(model_tokenize(model_tokenizer(model), text, strlen(text), false, &t, NULL),
                     STATUS_OK);
    return t;
}

/** The only sequence is `expected`, scored from token first_scored of it. */
static void assert_sequence(const char *lines, const struct eval_request_options *options,
                            const struct model_tokens *expected, size_t first_scored)
{
    struct scene s;
    struct status_why why = {""};
    if (scene_make(&s, lines, options, &why))
        fail_msg("%s: %s", lines, why.text);
    assert_int_equal(s.scores.sequences.n, 1);
    const struct eval_sequence *q = &s.scores.sequences.items[0];
    assert_int_equal(q->n_tokens, expected->n);
    assert_memory_equal(q->ids, expected->ids, expected->n * sizeof *q->ids);
    assert_int_equal(q->first_scored, first_scored);
    assert_int_equal(s.scores.items[0].n_scored, expected->n - first_scored);
    scene_free(&s);
}

static void cuts_pairs_as_the_harness_does(void **state)
{
    (void)state;
    const struct eval_request_options with = {.n_ctx = 512, .bos = true};
    const struct eval_request_options without = {.n_ctx = 512};
    int32_t bos = model_token_bos(model_tokenizer(model));
    struct model_tokens whole = tokens_of("In the town there was", bos);
    struct model_tokens context = tokens_of("In the town", bos);
    /* Blanks between the two belong to the continuation, whichever side they are on. */
    assert_memory_equal(whole.ids, context.ids, context.n * sizeof *whole.ids);
    assert_sequence("{\"context\": \"In the town\", \"continuation\": \" there was\"}", &with,
                    &whole, context.n);
    assert_sequence("{\"context\": \"In the town \", \"continuation\": \"there was\"}", &with,
                    &whole, context.n);
    struct model_tokens bare = tokens_of("In the town there was", -1);
    assert_sequence("{\"context\": \"In the town\", \"continuation\": \" there was\"}", &without,
                    &bare, context.n - 1);
    /* Without a context BOS stands in front, whatever --bos says, and of blanks nothing is left. */
    struct model_tokens alone = tokens_of("there was", bos);
    assert_sequence("{\"context\": \"\", \"continuation\": \"there was\"}", &without, &alone, 1);
    struct model_tokens blank = tokens_of(" there was", bos);
    assert_sequence("{\"context\": \" \", \"continuation\": \"there was\"}", &with, &blank, 1);
    assert_sequence("{\"text\": \"there was\"}", &without, &alone, 1);
    free(whole.ids);
    free(context.ids);
    free(bare.ids);
    free(alone.ids);
    free(blank.ids);
}

/*
 * Where the boundary falls into a token: the context keeps the tokens that it has alone, and of
 * the two together those beyond its number are scored. "th" + "e" is one token of this
 * vocabulary: then nothing is beyond, and the token counts for the continuation.
 */
static void boundaries_inside_a_token(void **state)
{
    (void)state;
    const struct eval_request_options options = {.n_ctx = 512, .bos = true};
    int32_t bos = model_token_bos(model_tokenizer(model));
    struct model_tokens alone = tokens_of("In th", bos), together = tokens_of("In the town", bos);
    assert_true(alone.n < together.n);
    assert_memory_not_equal(alone.ids, together.ids, alone.n * sizeof *alone.ids);
    struct model_tokens expected = tokens_of("In the town", bos);
    memcpy(expected.ids, alone.ids, alone.n * sizeof *alone.ids);
    assert_sequence("{\"context\": \"In th\", \"continuation\": \"e town\"}", &options, &expected,
                    alone.n);
    struct model_tokens merged = tokens_of("In the", bos);
    assert_true(merged.n <= alone.n);
    assert_sequence("{\"context\": \"In th\", \"continuation\": \"e\"}", &options, &merged,
                    merged.n - 1);
    free(alone.ids);
    free(together.ids);
    free(expected.ids);
    free(merged.ids);
}

static void long_contexts_lose_their_begin(void **state)
{
    (void)state;
    const char *lines =
        "{\"context\": \"In the town there was a\", \"continuation\": \" river .\"}";
    struct model_tokens whole =
        tokens_of("In the town there was a river .", model_token_bos(model_tokenizer(model)));
    struct model_tokens context =
        tokens_of("In the town there was a", model_token_bos(model_tokenizer(model)));
    size_t n_scored = whole.n - context.n;
    struct scene s;
    struct status_why why = {""};
    for (size_t n_ctx = whole.n + 1; n_ctx >= n_scored; n_ctx--) {
        struct eval_request_options options = {.n_ctx = n_ctx, .bos = true};
        assert_int_equal(scene_make(&s, lines, &options, &why), STATUS_OK);
        const struct eval_sequence *q = &s.scores.sequences.items[0];
        size_t n = whole.n < n_ctx + 1 ? whole.n : n_ctx + 1;
        assert_int_equal(q->n_tokens, n);
        assert_memory_equal(q->ids, whole.ids + whole.n - n, n * sizeof *q->ids);
        assert_int_equal(s.scores.items[0].n_truncated, whole.n - n);
        assert_int_equal(s.scores.n_truncated, whole.n > n);
        scene_free(&s);
    }
    struct eval_request_options options = {.n_ctx = n_scored - 1, .bos = true};
    assert_int_equal(scene_make(&s, lines, &options, &why), STATUS_USAGE);
    assert_non_null(strstr(why.text, "line 1: the continuation has"));
    eval_requests_free(&s.requests);
    options.n_ctx = 64;
    assert_int_equal(scene_make(&s, "{\"context\": \"a\", \"continuation\": \"\"}", &options, &why),
                     STATUS_FORMAT);
    assert_string_equal(why.text, "line 1: the continuation has no tokens");
    eval_requests_free(&s.requests);
    free(whole.ids);
    free(context.ids);
}

/*
 * A text of n tokens in windows of c: the first is BOS and c - 1 tokens, which predict c; each
 * predicts as many more; the last reaches back to c inputs.
 */
static void texts_are_cut_into_windows(void **state)
{
    (void)state;
    struct model_tokens t =
        tokens_of("In the town there was a river .", model_token_bos(model_tokenizer(model)));
    size_t n = t.n - 1;
    assert_true(n >= 8);
    for (size_t c = 1; c <= n + 1; c++) {
        struct scene s;
        struct status_why why = {""};
        struct eval_request_options options = {.n_ctx = c};
        assert_int_equal(
            scene_make(&s, "{\"text\": \"In the town there was a river .\"}", &options, &why),
            STATUS_OK);
        const struct eval_sequences *all = &s.scores.sequences;
        assert_int_equal(all->n, (n + c - 1) / c);
        for (size_t w = 0; w < all->n; w++) {
            size_t from = w * c, to = from + c < n ? from + c : n; /* targets: tokens of the text */
            size_t begin = to > c ? to - c : 0;                    /* of ids, BOS being 0 */
            const struct eval_sequence *q = &all->items[w];
            assert_int_equal(q->n_tokens, to - begin + 1);
            assert_memory_equal(q->ids, t.ids + begin, q->n_tokens * sizeof *q->ids);
            assert_int_equal(q->n_tokens - q->first_scored, to - from);
            assert_ptr_equal(q->log_probs, s.scores.items[0].log_probs + from);
        }
        scene_free(&s);
    }
    free(t.ids);
}

static const char mixed[] =
    "{\"context\": \"In the town\", \"continuation\": \" there was a river .\"}\n"
    "{\"context\": \"The baker\", \"continuation\": \" takes the bread\"}\n"
    "{\"text\": \"The war ended in 1918 . He lets it cool on a rack .\"}\n"
    "{\"context\": \"In the town\", \"continuation\": \" there was\"}\n"
    "{\"context\": \"\", \"continuation\": \"In the town\"}\n"
    "{\"context\": \"In the town\", \"continuation\": \" ships\"}\n"
    "{\"text\": \"\"}\n"
    "{\"context\": \"The baker\", \"continuation\": \" takes the bread\"}\n";

/** Sum and greediness of a request in double precision, and how many tokens it has. */
struct truth {
    double log_prob;
    bool greedy;
};

static void add_truth(struct truth *t, struct float64_model *m, const struct eval_sequence *q)
{
    size_t width = float64_width(m), n_vocab = float64_vocab(m);
    double *rows = malloc(q->n_tokens * width * sizeof *rows);
    double *all = malloc(n_vocab * sizeof *all);
    assert_true(rows && all);
    float64_hidden(m, q->ids, q->n_tokens - 1, rows);
    for (size_t i = q->first_scored; i < q->n_tokens; i++) {
        float64_log_probs(m, rows + (i - 1) * width, all);
        t->log_prob += all[q->ids[i]];
        for (size_t k = 0; k < n_vocab; k++)
            t->greedy = t->greedy && all[k] <= all[q->ids[i]];
    }
    free(rows);
    free(all);
}

/* A float32 chain per output leaves 1e-5 in a logit: 2e-5 a token, of which there are up to 24. */
static void agrees_with_float64(void **state)
{
    (void)state;
    struct scene s;
    struct status_why why = {""};
    struct eval_request_options options = {.n_ctx = 16, .bos = true};
    assert_int_equal(scene_make(&s, mixed, &options, &why), STATUS_OK);
    struct truth truth[8];
    assert_int_equal(s.scores.n, sizeof truth / sizeof *truth);
    for (size_t i = 0; i < s.scores.n; i++)
        truth[i] = (struct truth){0, true};
    struct float64_model *m = float64_open(model_file(model));
    for (size_t k = 0; k < s.scores.sequences.n; k++)
        add_truth(&truth[s.scores.sequences.items[k].owner], m, &s.scores.sequences.items[k]);
    float64_close(m);
    evaluate(&s, 4096);
    double worst = 0;
    for (size_t i = 0; i < s.scores.n; i++) {
        const struct eval_request_score *score = &s.scores.items[i];
        double error = fabs(eval_request_log_prob(score) - truth[i].log_prob);
        assert_true(error <= 2e-5 * (double)score->n_scored);
        assert_true(truth[i].log_prob < 0 || score->n_scored == 0);
        assert_int_equal(score->greedy, truth[i].greedy);
        worst = error > worst ? error : worst;
    }
    print_message("worst request: off by %.1e\n", worst);
    scene_free(&s);
}

/* The model's own favourites, one after the other, are greedy; one step aside is not. */
static void greedy_is_seen(void **state)
{
    (void)state;
    int32_t ids[6] = {model_token_bos(model_tokenizer(model))};
    struct float64_model *m = float64_open(model_file(model));
    double *rows = malloc(6 * float64_width(m) * sizeof *rows);
    double *all = malloc(float64_vocab(m) * sizeof *all);
    assert_true(rows && all);
    for (size_t n = 1; n < 6; n++) {
        float64_hidden(m, ids, n, rows);
        float64_log_probs(m, rows + (n - 1) * float64_width(m), all);
        for (size_t k = 1; k < float64_vocab(m); k++)
            ids[n] = all[k] > all[ids[n]] ? (int32_t)k : ids[n];
    }
    free(rows);
    free(all);
    float64_close(m);
    int32_t aside[6];
    memcpy(aside, ids, sizeof ids);
    aside[3] = ids[3] ? ids[3] - 1 : 1;
    double log_probs[2][5];
    struct eval_sequence items[] = {
        {.ids = ids, .n_tokens = 6, .first_scored = 1, .owner = 0, .log_probs = log_probs[0]},
        {.ids = aside, .n_tokens = 6, .first_scored = 1, .owner = 1, .log_probs = log_probs[1]},
    };
    struct eval_request_score requests[] = {
        {.ids = ids, .log_probs = log_probs[0], .n_scored = 5, .n_left = 1, .greedy = true},
        {.ids = aside, .log_probs = log_probs[1], .n_scored = 5, .n_left = 1, .greedy = true},
    };
    struct eval_request_scores r = {
        .items = requests, .n = 2, .sequences = {.items = items, .n = 2}};
    eval_request_units_open(&r);
    struct eval_run_stats stats;
    assert_int_equal(run_units(&r.sequences.units, model, backend, 64, &stats, NULL), STATUS_OK);
    assert_int_equal(r.sequences.units.n_items, 1);
    assert_int_equal(r.sequences.groups[0].n_common, 3);
    assert_int_equal(stats.n_inputs, 3 + 2 + 2);
    assert_true(requests[0].greedy && !requests[1].greedy);
    assert_memory_equal(log_probs[0], log_probs[1], 2 * sizeof(double));
    free(r.sequences.groups);
}

static void no_bit_depends_on_the_batch(void **state)
{
    (void)state;
    struct eval_request_options options = {.n_ctx = 16, .bos = true};
    struct status_why why = {""};
    double scores[8];
    size_t n_inputs[3];
    static const size_t batches[] = {1, 20, 4096};
    for (size_t b = 0; b < 3; b++) {
        struct scene s;
        assert_int_equal(scene_make(&s, mixed, &options, &why), STATUS_OK);
        n_inputs[b] = evaluate(&s, batches[b]).n_inputs;
        for (size_t i = 0; i < s.scores.n; i++) {
            double score = eval_request_log_prob(&s.scores.items[i]);
            if (b == 0)
                scores[i] = score;
            assert_memory_equal(&score, &scores[i], sizeof score);
        }
        scene_free(&s);
    }
    assert_true(n_inputs[0] > n_inputs[1] && n_inputs[1] >= n_inputs[2]);
}

/** The least cost of dividing sequences [from, n) into groups of neighbours, tried out. */
static size_t least_cost(const struct eval_sequence *s, size_t n, size_t from, size_t max_tokens)
{
    size_t best = SIZE_MAX, own = 0;
    if (from == n)
        return 0;
    for (size_t end = from + 1; end <= n; end++) {
        size_t common = s[from].n_tokens - 1;
        own += s[end - 1].n_tokens - 1;
        for (size_t i = from + 1; i < end; i++) {
            size_t c = 0;
            while (s[i].is_long == s[from].is_long && c < common && c + 1 < s[i].n_tokens &&
                   s[i].ids[c] == s[from].ids[c])
                c++;
            common = c;
        }
        size_t cost = own - (end - from - 1) * common;
        if (end > from + 1 && (common == 0 || cost > max_tokens))
            continue;
        size_t rest = least_cost(s, n, end, max_tokens);
        best = cost + rest < best ? cost + rest : best;
    }
    return best;
}

static void groups_leave_the_fewest_tokens(void **state)
{
    (void)state;
    struct rng rng = rng_open(rng_seed(), 31);
    for (size_t round = 0; round < 300; round++) {
        int32_t ids[9][8];
        struct eval_sequence items[9];
        size_t n = 1 + rng_below(&rng, 9), max_tokens = 4 + rng_below(&rng, 40);
        for (size_t i = 0; i < n; i++) {
            for (size_t k = 0; k < 8; k++)
                ids[i][k] = (int32_t)rng_below(&rng, 4) / 3;
            items[i] = (struct eval_sequence){
                .ids = ids[i], .n_tokens = 2 + rng_below(&rng, 7), .first_scored = 1, .owner = i};
        }
        struct eval_sequences s = {.units.boundary = rng_below(&rng, 9), .items = items, .n = n};
        assert_int_equal(eval_sequences_group(&s, max_tokens, NULL), STATUS_OK);
        size_t cost = 0, n_seen = 0, owner = 0;
        for (size_t g = 0; g < s.units.n_items; g++) {
            const struct eval_sequence_group *group = &s.groups[g];
            size_t own = group->n_common, least = SIZE_MAX;
            for (size_t i = group->first; i < group->first + group->n; i++) {
                own += items[i].n_tokens - 1 - group->n_common;
                assert_true(items[i].n_tokens > group->n_common);
                assert_int_equal(items[i].is_long, items[i].n_tokens - 1 > s.units.boundary);
                assert_true(items[i].is_long == items[group->first].is_long || !group->n_common);
                assert_memory_equal(items[i].ids, items[group->first].ids,
                                    group->n_common * sizeof(int32_t));
                least = items[i].owner < least ? items[i].owner : least;
            }
            assert_true(group->n == 1 || own <= max_tokens);
            assert_true(g == 0 || least > owner);
            owner = least;
            cost += own;
            n_seen += group->n;
        }
        assert_int_equal(n_seen, n);
        assert_int_equal(cost, least_cost(items, n, 0, max_tokens));
        free(s.groups);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_pairs_as_the_harness_does),
        cmocka_unit_test(boundaries_inside_a_token),
        cmocka_unit_test(long_contexts_lose_their_begin),
        cmocka_unit_test(texts_are_cut_into_windows),
        cmocka_unit_test(agrees_with_float64),
        cmocka_unit_test(greedy_is_seen),
        cmocka_unit_test(no_bit_depends_on_the_batch),
        cmocka_unit_test(groups_leave_the_fewest_tokens),
    };
    return cmocka_run_group_tests(tests, bundled_open, bundled_close);
}

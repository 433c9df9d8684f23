/*
 * Documents and their windows: against a plain account of the rule, over random documents; what
 * lines are refused; when a run has seen enough.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/input/documents.h"
#include "eval/metrics/groups.h"
#include "eval/metrics/stop.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/rng.h"
#include "tests/model/vocabulary.h"

enum { BOS = 1, MOST_TOKENS = 60 };

static const struct base_text no_text = {.sha256 = "0"};

static void add(struct eval_documents *d, size_t n, const uint8_t *scored, const char *category)
{
    int32_t ids[MOST_TOKENS];
    uint32_t n_bytes[MOST_TOKENS];
    for (size_t i = 0; i < n; i++) {
        ids[i] = i ? (int32_t)(100 * d->n + i) : BOS;
        n_bytes[i] = 2;
    }
    const struct eval_document_head head = {
        .category = {category, category ? strlen(category) : 0}};
    const struct eval_document_tokens tokens = {ids, n, n_bytes, scored};
    assert_int_equal(eval_documents_add(d, &head, &tokens, NULL), STATUS_OK);
}

/** Every scored token once, in the first window that has it, after as much as the rule says. */
static void check_plan(const struct eval_plan *plan, const struct eval_documents *d, size_t n_ctx)
{
    size_t n_tokens = d->stream.n, row = 0;
    uint8_t *seen = calloc(n_tokens + 1, 1);
    assert_non_null(seen);
    for (size_t w = 0; w < plan->n_windows; w++) {
        const struct eval_document *item = &d->items[eval_plan_document(plan, w)];
        size_t first = eval_plan_first(plan, w), n = eval_plan_n_scored(plan, w);
        bool begins = first == item->first;
        assert_true(n > 0 && eval_plan_row(plan, w) == row);
        assert_true(eval_plan_n_inputs(plan, w) < n_ctx);
        assert_true((first - item->first) % (n_ctx / 2) == 0);
        for (size_t i = 0; i < n; i++) {
            size_t p = eval_plan_position(plan, w, i), target = eval_plan_target(plan, w, p);
            assert_true(target == first + p + 1);
            assert_true(target < item->first + item->n_tokens);
            assert_true(begins || p + 1 >= n_ctx - n_ctx / 2);
            assert_true(d->scored[target] && !seen[target]);
            seen[target] = 1;
        }
        assert_true(eval_plan_n_inputs(plan, w) == eval_plan_position(plan, w, n - 1) + 1);
        assert_int_equal(eval_plan_input(plan, &d->stream, w, 0), begins || plan->options.bos < 0
                                                                      ? d->stream.ids[first]
                                                                      : plan->options.bos);
        for (size_t p = 1; p < eval_plan_n_inputs(plan, w); p++)
            assert_int_equal(eval_plan_input(plan, &d->stream, w, p), d->stream.ids[first + p]);
        row += n;
    }
    assert_memory_equal(seen, d->scored, n_tokens);
    free(seen);
}

/** Windows side by side: each scored token once, from the window of the token before it. */
static void check_apart(struct eval_plan_options options, const struct eval_documents *d)
{
    struct eval_plan plan;
    size_t n_evaluated = 0, n_scored = 0;
    options.apart = true;
    assert_int_equal(eval_plan_make_documents(&plan, &options, d, NULL), STATUS_OK);
    for (size_t w = 0; w < plan.n_windows; w++) {
        const struct eval_document *item = &d->items[eval_plan_document(&plan, w)];
        size_t first = eval_plan_first(&plan, w), n = eval_plan_n_inputs(&plan, w);
        size_t last = 0;
        assert_true((first - item->first) % options.n_ctx == 0 && n <= options.n_ctx);
        for (size_t i = 0; i < eval_plan_n_scored(&plan, w); i++) {
            last = eval_plan_position(&plan, w, i);
            assert_true(last < n && d->scored[first + last + 1]);
        }
        assert_true(options.whole || last == n - 1);
        n_evaluated += n;
        n_scored += eval_plan_n_scored(&plan, w);
    }
    assert_int_equal(n_scored, d->n_scored);
    assert_true(!options.whole || n_evaluated == d->stream.n);
    eval_plan_free(&plan);
}

static void windows_of_documents(void **state)
{
    (void)state;
    struct rng rng = rng_open(rng_seed(), 0);
    for (int round = 0; round < 300; round++) {
        struct eval_documents d = {0};
        assert_int_equal(eval_documents_begin_file(&d, "f", &no_text, NULL), STATUS_OK);
        for (size_t n = 1 + rng_below(&rng, 8); n > 0; n--) {
            uint8_t scored[MOST_TOKENS];
            for (size_t i = 0; i < MOST_TOKENS; i++)
                scored[i] = rng_below(&rng, 3) == 0;
            add(&d, rng_below(&rng, MOST_TOKENS), rng_below(&rng, 2) ? scored : NULL, NULL);
        }
        add(&d, 2, NULL, NULL);
        assert_int_equal(eval_documents_end(&d, NULL), STATUS_OK);
        size_t n_ctx = 3 + rng_below(&rng, 20);
        struct eval_plan_options options = {.n_ctx = n_ctx, .bos = rng_below(&rng, 2) ? BOS : -1};
        struct eval_plan plan, part;
        assert_int_equal(eval_plan_make_documents(&plan, &options, &d, NULL), STATUS_OK);
        check_plan(&plan, &d, n_ctx);
        check_apart(options, &d);
        options.whole = true;
        check_apart(options, &d);
        options.whole = false;

        options.skip_windows = rng_below(&rng, plan.n_windows);
        options.max_windows = 1;
        assert_int_equal(eval_plan_make_documents(&part, &options, &d, NULL), STATUS_OK);
        assert_int_equal(part.n_windows, 1);
        assert_int_equal(eval_plan_first(&part, 0), eval_plan_first(&plan, options.skip_windows));
        assert_int_equal(eval_plan_row(&part, 1), eval_plan_n_scored(&part, 0));
        options.skip_windows = plan.n_windows;
        eval_plan_free(&part);
        assert_int_equal(eval_plan_make_documents(&part, &options, &d, NULL), STATUS_USAGE);
        eval_plan_free(&plan);
        eval_documents_free(&d);
    }
}

static void nothing_to_score(void **state)
{
    (void)state;
    static const uint8_t none[MOST_TOKENS];
    struct status_why why = {""};
    struct eval_documents d = {0};
    assert_int_equal(eval_documents_end(&d, &why), STATUS_FORMAT);
    assert_int_equal(eval_documents_begin_file(&d, "f", &no_text, NULL), STATUS_OK);
    add(&d, 0, NULL, NULL);
    add(&d, 1, NULL, NULL);
    add(&d, 9, none, NULL);
    assert_int_equal(eval_documents_end(&d, &why), STATUS_FORMAT);
    assert_non_null(strstr(why.text, "3 documents with 10 tokens: none of them is scored"));
    eval_documents_free(&d);
}

/** Boundaries, categories and masks are part of what a journal belongs to. */
static void digests_tell_documents_apart(void **state)
{
    (void)state;
    static const uint8_t mask[] = {0, 1, 0, 1};
    char found[4][BASE_HEX];
    for (size_t i = 0; i < 4; i++) {
        struct eval_documents d = {0};
        assert_int_equal(eval_documents_begin_file(&d, "f", &no_text, NULL), STATUS_OK);
        add(&d, i == 1 ? 3 : 4, i == 3 ? mask : NULL, i == 2 ? "code" : NULL);
        add(&d, i == 1 ? 5 : 4, NULL, NULL);
        assert_int_equal(eval_documents_end(&d, NULL), STATUS_OK);
        memcpy(found[i], d.sha256, BASE_HEX);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(found[i], found[k]);
        eval_documents_free(&d);
    }
}

/** With no document added a line's text need not be tokenised: these fail before that. */
static void refused_lines(void **state)
{
    (void)state;
    static const struct {
        const char *lines, *sentence;
    } cases[] = {
        {"[]", "f: line 1: no JSON object: found ] at column 2, expected {"},
        {"[", "f: line 1: no JSON object: the text ends at column 2"},
        {"\n \n{\"text\": 1}", "f: line 3: \"text\" is no text"},
        {"{}", "f: line 1: expected one of \"text\", \"messages\" and \"ids\", or what data sets "
               "have: \"conversations\", \"instruction\" with \"output\", \"prompt\" with "
               "\"completion\" (docs/chats.md)"},
        {"{\"conversations\": {}}", "f: line 1: expected \"conversations\" with a list of objects"},
        {"{\"conversations\": [{\"from\": \"human\", \"value\": \"a\"}, {\"from\": \"gpt\"}]}",
         "f: line 1: element 2 of \"conversations\": expected texts \"from\" and \"value\", or "
         "\"role\" and \"content\"; what is more goes into \"messages\""},
        {"{\"conversations\": [{\"from\": \"observation\", \"value\": \"a\"}]}",
         "f: line 1: element 1 of \"conversations\": is from 'observation'; expected human or "
         "user, "
         "gpt or assistant, or system"},
        {"{\"conversations\": [{\"from\": \"gpt\", \"value\": \"a\"}], \"tools\": \"[{}]\"}",
         "f: line 1: has \"tools\", which go with \"messages\" only; expected none"},
        {"{\"instruction\": \"a\"}",
         "f: line 1: expected \"instruction\" and \"output\" with a text each"},
        {"{\"instruction\": \"a\", \"output\": \"b\", \"input\": 3}",
         "f: line 1: expected \"input\" with a text"},
        {"{\"instruction\": \"a\", \"output\": \"b\", \"history\": [[\"c\"]]}",
         "f: line 1: expected \"history\" with a list of pairs of texts, a question and its answer "
         "each"},
        {"{\"instruction\": \"a\", \"output\": \"b\", \"output\": \"c\"}",
         "f: line 1: has \"output\" twice; expected it once"},
        {"{\"prompt\": \"a\"}", "f: line 1: expected \"prompt\" and \"completion\" with a text "
                                "each, or with a list of messages each"},
        {"{\"prompt\": [], \"completion\": [{\"role\": \"assistant\", \"content\": \"a\"}]}",
         "f: line 1: expected \"prompt\" with a list of objects"},
        {"{\"text\": null}", "f: line 1: \"text\" is no text"},
        {"{\"text\": \"a\", \"category\": 1}", "f: line 1: expected \"category\" with a text"},
        {"{\"text\": \"a\\u0000b\"}", "f: line 1: has the character U+0000"},
        {"{\"messages\": [{\"role\": \"user\", \"role\": \"system\", \"content\": \"a\"}]}",
         "f: line 1: has \"role\" twice; expected it once"},
        {"{\"text\": \"a\", \"text\": \"b\"}", "f: line 1: has \"text\" twice; expected it once"},
        {"{\"messages\": [], \"messages\": [{\"role\": \"user\"}]}",
         "f: line 1: has \"messages\" twice; expected it once"},
        {"{\"text\": \"a\"", "f: line 1: no JSON object: it is not whole at its end, column 12"},
        {"{\"text\" \"a\"}", "f: line 1: no JSON object: found \"a\"} at column 9, expected :"},
        {"{\"text\": \"a\",}",
         "f: line 1: no JSON object: found } at column 14, expected a name in quotation marks"},
        {"{\"a\": [1, x]}", "f: line 1: no JSON object: found x]} at column 11, expected a value"},
        {"{\"a\": [1 2]}", "f: line 1: no JSON object: found 2]} at column 10, expected , or ]"},
        {"{\"a\": \"b\" 1}", "f: line 1: no JSON object: found 1} at column 11, expected , or }"},
        {"{text: 1}",
         "f: line 1: no JSON object: found text: 1} at column 2, expected a name in quotation "
         "marks, or }"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct eval_documents d = {0};
        struct status_why why = {""};
        char *lines = strdup(cases[i].lines);
        assert_int_equal(eval_documents_begin_file(&d, "f", &no_text, NULL), STATUS_OK);
        assert_int_equal(eval_documents_add_objects(&d, lines, strlen(lines), &why), STATUS_FORMAT);
        assert_string_equal(why.text, cases[i].sentence);
        eval_documents_free(&d);
        free(lines);
    }
}

/** A file's conversations have a limit of time together, which begins anew with the next file. */
static void time_of_a_file(void **state)
{
    (void)state;
    static const char line[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"ab\"}]}\n";
    static const char chat_template[] = "{{ messages[0].content }}";
    static struct vocabulary v;
    vocabulary_spm(&v);
    struct opened opened = vocabulary_opened(&v);
    for (int limited = 0; limited < 2; limited++) {
        const struct eval_document_rules rules = {
            .tokenizer = opened.tokenizer,
            .chat_template = {chat_template, sizeof chat_template - 1},
            .chat_seconds = limited ? 1e-9 : 1e9};
        struct eval_documents d = {.rules = &rules};
        struct status_why why = {""};
        char lines[2 * sizeof line];
        snprintf(lines, sizeof lines, "%s%s", line, line);
        assert_int_equal(eval_documents_begin_file(&d, "f", &no_text, NULL), STATUS_OK);
        enum status status = eval_documents_add_objects(&d, lines, strlen(lines), &why);
        assert_int_equal(status, limited ? STATUS_UNSUPPORTED : STATUS_OK);
        assert_string_equal(why.text,
                            limited ? "f: line 1: chat template: took more than 1e-09 seconds of "
                                      "processor time for the conversations up to this one, the "
                                      "limit of a file"
                                    : "");
        assert_true(d.chat_seconds > 0);
        assert_int_equal(eval_documents_begin_file(&d, "g", &no_text, NULL), STATUS_OK);
        assert_true(d.chat_seconds == 0);
        eval_documents_free(&d);
    }
    opened_close(&opened);
}

/** Means by category: two of one, one of another, one of none. */
static void macro_means(void **state)
{
    (void)state;
    static const char *const categories[] = {"a", "b", "a", NULL};
    struct eval_documents d = {0};
    assert_int_equal(eval_documents_begin_file(&d, "f", &no_text, NULL), STATUS_OK);
    for (size_t i = 0; i < 4; i++)
        add(&d, 2 + i, NULL, categories[i]);
    assert_int_equal(eval_documents_end(&d, NULL), STATUS_OK);
    struct eval_plan plan;
    const struct eval_plan_options options = {.n_ctx = 8, .bos = BOS};
    assert_int_equal(eval_plan_make_documents(&plan, &options, &d, NULL), STATUS_OK);
    struct eval_table table;
    assert_int_equal(eval_table_make_for(&table, EVAL_N_COLUMNS, &plan, NULL), STATUS_OK);
    assert_int_equal(table.n_rows, 1 + 2 + 3 + 4);
    for (size_t i = 0; i < table.n_rows; i++)
        eval_table_row(&table, EVAL_LOG_PROB, 0)[i] = -(double)(i + 1);
    memset(table.done, 1, 4);
    struct eval_groups g;
    const struct eval_kld_tables tables = {&plan, &d.stream, NULL, &table};
    assert_int_equal(eval_groups_make(&g, &d, &tables, NULL), STATUS_OK);
    assert_int_equal(g.n_categories, 3);
    assert_true(eval_group_estimate(&g.categories[0], EVAL_GROUP_NLL).value ==
                (1. + 4 + 5 + 6) / 4);
    assert_true(eval_group_estimate(&g.categories[1], EVAL_GROUP_NLL).value == 2.5);
    assert_true(eval_group_estimate(&g.categories[2], EVAL_GROUP_NLL).value == 8.5);
    assert_true(g.categories[0].n_bytes == 8 && g.categories[0].n_documents == 2);
    assert_true(eval_group_estimate(&g.files[0], EVAL_GROUP_NLL).value == 5.5);
    assert_true(g.macro[EVAL_GROUP_NLL].value == (4. + 2.5 + 8.5) / 3);
    /* Variances of the means: of 1 4 5 6 (spread 14), of 2 3, of 7 8 9 10. */
    double sum = 14. / 4 / 3 + 0.5 / 2 / 1 + 5. / 4 / 3;
    assert_true(fabs(g.macro[EVAL_GROUP_NLL].error - sqrt(sum) / 3) < 1e-15);
    eval_groups_free(&g);
    eval_table_free(&table);
    eval_plan_free(&plan);
    eval_documents_free(&d);
}

/** A spread that falls to what is wanted after 20 windows; one of 0 is enough after the least. */
static void stops(void **state)
{
    (void)state;
    for (int paired = 0; paired < 2; paired++) {
        struct eval_table tables[2];
        for (int i = 0; i < 2; i++) {
            assert_int_equal(eval_table_make(&tables[i], EVAL_N_COLUMNS, 40, 10, NULL), STATUS_OK);
            for (size_t k = 0; k < 400; k++)
                tables[i].cells[k] = i ? -2 : k / 10 % 2 ? -1 : -3;
        }
        struct eval_stop stop;
        double wanted = sqrt(1. / (20 - 1)) + 1e-12; /* each window is 1 off the mean */
        assert_int_equal(eval_stop_make(&stop, wanted, 1 + (size_t)paired, NULL), STATUS_OK);
        size_t w = 0;
        while (!eval_stop_add(&stop, tables, w))
            w++;
        assert_int_equal(w + 1, 20);
        assert_true(fabs(stop.error - wanted) < 2e-12);
        eval_stop_free(&stop);
        assert_int_equal(eval_stop_make(&stop, 1e-300, 1, NULL), STATUS_OK);
        for (w = 0; !eval_stop_add(&stop, &tables[1], w); w++)
            continue;
        assert_int_equal(w + 1, EVAL_STOP_LEAST_WINDOWS);
        eval_stop_free(&stop);
        tables[0].cells[0] = (double)NAN;
        assert_int_equal(eval_stop_make(&stop, 100, 1, NULL), STATUS_OK);
        for (w = 0; w < 40; w++)
            assert_false(eval_stop_add(&stop, tables, w));
        eval_stop_free(&stop);
        eval_table_free(&tables[0]);
        eval_table_free(&tables[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_of_documents),
        cmocka_unit_test(nothing_to_score),
        cmocka_unit_test(digests_tell_documents_apart),
        cmocka_unit_test(refused_lines),
        cmocka_unit_test(time_of_a_file),
        cmocka_unit_test(macro_means),
        cmocka_unit_test(stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

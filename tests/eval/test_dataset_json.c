/* Task files of JSON and CSV as data sets are published: what is read from good ones, and the
 * sentence that a bad one gets. */
#include <stdio.h>
#include <string.h>

#include "tests/eval/dataset_assert.h"
#include "tests/harness/cmocka.h"

static enum status read_jsonl(struct eval_dataset *d, enum eval_choice_kind kind, const char *from,
                              char text[512], struct status_why *why)
{
    snprintf(text, 512, "%s", from);
    return eval_dataset_json(d, &(struct eval_dataset_options){.kind = kind}, text, strlen(text),
                             why);
}

/** Escapes, members that are not known, blank lines, an answer as a number and as a string. */
static void reads_json_lines(void **state)
{
    (void)state;
    struct eval_dataset d;
    char text[512];
    const char *hellaswag = "{\"ind\": [1], \"ctx\": \"a \\\"\\u00e9\\\"\", \"endings\": "
                            "[\"A\", \"B\\n\", \"C\", \"D\"], \"label\": \"3\"}\r\n\n";
    assert_true(eval_dataset_is_json(hellaswag, strlen(hellaswag)));
    assert_int_equal(read_jsonl(&d, EVAL_HELLASWAG, hellaswag, text, NULL), STATUS_OK);
    assert_int_equal(d.n_questions, 1);
    assert_text(d.questions[0].text, "a \"\xC3\xA9\"");
    assert_text(d.choices[1], "B\n");
    assert_int_equal(d.questions[0].answer, 3);
    eval_dataset_free(&d);
    assert_int_equal(read_jsonl(&d, EVAL_WINOGRANDE,
                                "{\"answer\":\"2\",\"option1\":\"x\",\"option2\":\"y\","
                                "\"sentence\":\"a _ b\"}",
                                text, NULL),
                     STATUS_OK);
    assert_text(d.questions[0].text, "a ");
    assert_text(d.questions[0].after, " b");
    assert_text(d.choices[1], "y");
    assert_int_equal(d.questions[0].answer, 1);
    eval_dataset_free(&d);
    assert_int_equal(read_jsonl(&d, EVAL_MULTIPLE_CHOICE,
                                "\n{\"question\":\"q\",\"choices\":[\"x\",\"y\",\"z\"],"
                                "\"answer\":2}",
                                text, NULL),
                     STATUS_OK);
    assert_int_equal(d.questions[0].line, 2);
    assert_int_equal(d.questions[0].n_choices, 3);
    assert_int_equal(d.questions[0].answer, 2);
    eval_dataset_free(&d);
    assert_int_equal(read_jsonl(&d, EVAL_MULTIPLE_CHOICE,
                                "{\"id\":\"i\",\"question\":\"q\",\"choices\":{\"text\":[\"x\","
                                "\"y\",\"z\"],\"label\":[\"A\",\"B\",\"C\"]},\"answerKey\":\"B\"}",
                                text, NULL),
                     STATUS_OK);
    assert_int_equal(d.questions[0].n_choices, 3);
    assert_text(d.choices[2], "z");
    assert_int_equal(d.questions[0].answer, 1);
    eval_dataset_free(&d);
}

static void refuses_bad_json_lines(void **state)
{
    (void)state;
    static const struct {
        enum eval_choice_kind kind;
        const char *text, *sentence;
    } cases[] = {
        {EVAL_HELLASWAG, "", "no tasks"},
        {EVAL_HELLASWAG, "\n{\"ctx\"", "line 2: no JSON object"},
        {EVAL_HELLASWAG, "[]", "line 1: no JSON object"},
        {EVAL_HELLASWAG, "{} {}", "line 1: expected \"ctx\" with text"},
        {EVAL_HELLASWAG, "[{}] {}", "line 1: expected \"ctx\" with text"},
        {EVAL_HELLASWAG, "{\"ctx\":\"a\\u0000b\"}", "line 1: has the character U+0000"},
        {EVAL_HELLASWAG, "{}", "line 1: expected \"ctx\" with text"},
        {EVAL_HELLASWAG, "{\"ctx\":\"\"}", "line 1: expected \"ctx\" with text"},
        {EVAL_HELLASWAG, "{\"ctx\":\"a\",\"endings\":[\"A\"]}",
         "line 1: expected \"endings\" with a list of 4 texts"},
        {EVAL_HELLASWAG, "{\"ctx\":\"a\",\"endings\":[\"A\",\"B\",\"C\",4]}",
         "line 1: expected \"endings\" with text"},
        {EVAL_HELLASWAG, "{\"ctx\":\"a\",\"endings\":[\"A\",\"B\",\"C\",\"D\"],\"label\":4}",
         "line 1: expected \"label\" with a number from 0 to 3"},
        {EVAL_WINOGRANDE, "{\"sentence\":\"a\"}", "line 1: the sentence has no blank"},
        {EVAL_WINOGRANDE, "{\"sentence\":\"_\",\"option1\":\"a\"}",
         "line 1: expected \"option2\" with text"},
        {EVAL_WINOGRANDE, "{\"sentence\":\"_\",\"option1\":\"a\",\"option2\":\"b\",\"answer\":0}",
         "line 1: expected \"answer\" with a number from 1 to 2"},
        {EVAL_HELLASWAG, "{\"ctx\":\"a\",\"ct\\u0078\":\"b\"}",
         "line 1: has \"ctx\" twice; expected it once"},
        {EVAL_MULTIPLE_CHOICE,
         "{\"question\":\"q\",\"choices\":[\"a\",\"b\"],\"answer\":0,\"answer\":1}",
         "line 1: has \"answer\" twice; expected it once"},
        {EVAL_MULTIPLE_CHOICE, "{\"question\":\"q\",\"mc1_targets\":{\"a\":1,\"b\":0,\"a\":0}}",
         "line 1: has \"a\" twice; expected it once"},
        {EVAL_MULTIPLE_CHOICE,
         "{\"question\":\"q\",\"choices\":{\"text\":[\"a\",\"b\"],\"label\":[\"A\",\"A\"]},"
         "\"answerKey\":\"A\"}",
         "line 1: two of \"choices\" have the label \"A\"; expected another one for each"},
        {EVAL_MULTIPLE_CHOICE,
         "{\"question\":{\"stem\":\"q\",\"choices\":[{\"text\":\"a\",\"label\":\"A\"},{\"text\":"
         "\"b\","
         "\"label\":\"B\"},{\"text\":\"c\",\"label\":\"B\"}]},\"answerKey\":\"A\"}",
         "line 1: two of \"choices\" have the label \"B\""},
        {EVAL_MULTIPLE_CHOICE, "{\"question\":\"q\",\"choices\":[\"a\",\"b\"],\"answer\":1.5}",
         "line 1: expected \"answer\" with a number from 0 to 1"},
        {EVAL_MULTIPLE_CHOICE,
         "{\"question\":\"q\",\"choices\":{\"text\":[\"a\",\"b\"],\"label\":[\"A\",\"B\"]},"
         "\"answerKey\":\"C\"}",
         "line 1: expected \"answerKey\" with one of the labels"},
        {EVAL_MULTIPLE_CHOICE,
         "{\"question\":\"q\",\"choices\":{\"text\":[\"a\",\"b\"],\"label\":[\"C\"]},\"answerKey\":"
         "\"C\"}",
         "line 1: expected \"answerKey\" with one of the labels"},
        {EVAL_MULTIPLE_CHOICE,
         "{\"question\":\"q\",\"choices\":{\"text\":[\"a\",\"b\"],\"label\":[1,2]},\"answerKey\":"
         "\"C\"}",
         "line 1: expected \"answerKey\" with one of the labels"},
        {EVAL_MULTIPLE_CHOICE,
         "{\"question\":\"q\",\"choices\":{\"text\":[\"a\",\"b\"]},\"answerKey\":\"C\"}",
         "line 1: expected \"answerKey\" with one of the labels"},
        {EVAL_MULTIPLE_CHOICE,
         "{\"question\":\"q\",\"choices\":{\"text\":[\"a\"],\"label\":[\"C\"]},\"answerKey\":"
         "\"C\"}",
         "line 1: expected \"choices\" with a list of 2 or more"},
        {EVAL_MULTIPLE_CHOICE, "{\"question\":{\"stem\":\"q\",\"choices\":[{\"text\":\"a\"}]}}",
         "line 1: expected \"choices\" with a list of 2 or more objects"},
        {EVAL_MULTIPLE_CHOICE,
         "{\"question\":{\"stem\":\"q\",\"choices\":[{\"text\":\"a\"},{\"label\":\"B\"}]}}",
         "line 1: expected \"text\" with text"},
        {EVAL_MULTIPLE_CHOICE, "{\"goal\":\"g\",\"sol1\":\"a\",\"sol2\":\"b\",\"label\":-1}",
         "line 1: expected \"label\" with a number from 0 to 1"},
        {EVAL_MULTIPLE_CHOICE, "{\"question\":\"q\",\"mc1_targets\":{\"a\":1,\"b\":1}}",
         "line 1: 2 answers of \"mc1_targets\" have the label 1, expected one"},
        {EVAL_MC2, "{\"question\":\"q\",\"mc2_targets\":{\"a\":0,\"b\":0}}",
         "line 1: 0 answers of \"mc2_targets\" have the label 1, expected one or more"},
        {EVAL_MC2, "{\"question\":\"q\",\"mc2_targets\":{\"a\":0,\"b\":2}}",
         "line 1: a label of \"mc2_targets\" is not 0 or 1"},
        {EVAL_MC2,
         "{\"question\":\"q\",\"mc2_targets\":{\"choices\":[\"a\",\"b\"],\"labels\":[1]}}",
         "line 1: expected \"mc2_targets\" with 2 or more answers and a label of 0 or 1 for each"},
        {EVAL_MC2, "{\"question\":\"q\"}",
         "line 1: expected \"mc2_targets\" with 2 or more answers"},
        {EVAL_MULTIPLE_CHOICE, "{\"question\":\"q\",\"choices\":{},\"answerKey\":\"C\"}",
         "line 1: expected \"choices\" with a list of 2 or more"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct eval_dataset d;
        struct status_why why = {""};
        char text[512];
        enum status status = read_jsonl(&d, cases[i].kind, cases[i].text, text, &why);
        assert_sentence(status, &why, cases[i].sentence);
        assert_null(d.questions);
    }
}

/** Each form of a data set: its choices, the right one. */
static void reads_published_forms(void **state)
{
    (void)state;
    static const struct {
        enum eval_choice_kind kind;
        const char *text, *labels, *question, *first;
        size_t n_choices, answer, n_right;
    } cases[] = {
        {EVAL_MULTIPLE_CHOICE,
         "{\"id\":\"i\",\"question\":{\"stem\":\"q\",\"choices\":[{\"text\":\"x\",\"label\":\"A\"},"
         "{"
         "\"text\":\"y\",\"label\":\"2\"}]},\"answerKey\":\"2\"}",
         NULL, "q", "x", 2, 1, 0},
        {EVAL_MULTIPLE_CHOICE, "[{\"goal\":\"g\",\"sol1\":\"a\",\"sol2\":\"b\",\"label\":1}]", NULL,
         "g", "a", 2, 1, 0},
        {EVAL_MULTIPLE_CHOICE, "{\"goal\":\"g\",\"sol1\":\"a\",\"sol2\":\"b\"}", "1\r\n", "g", "a",
         2, 1, 0},
        {EVAL_WINOGRANDE, "{\"sentence\":\"a _\",\"option1\":\"x\",\"option2\":\"y\"}", "2", "a ",
         "x", 2, 1, 0},
        {EVAL_MULTIPLE_CHOICE,
         "{\"question\":\"q\",\"choices\":[\"x\",\"y\",\"z\"],\"answer\":\"C\"}", NULL, "q", "x", 3,
         2, 0},
        {EVAL_MULTIPLE_CHOICE,
         "{\"question\":\"q\",\"mc1_targets\":{\"x\":0,\"y\":1},\"mc2_targets\":{}}", NULL, "q",
         "x", 2, 1, 0},
        {EVAL_MC2, "{\"question\":\"q\",\"mc2_targets\":{\"x\":0,\"y\":1,\"z\":0,\"w\":1}}", NULL,
         "q", "y", 4, 0, 2},
        {EVAL_MC2,
         "{\"question\":\"q\",\"mc2_targets\":{\"choices\":[\"x\",\"y\"],\"labels\":[0,1]}}", NULL,
         "q", "y", 2, 0, 1},
        {EVAL_MULTIPLE_CHOICE, "a \"\"b,1,2,3,4,D\r\n", NULL, "a \"\"b", "1", 4, 3, 0},
        {EVAL_MULTIPLE_CHOICE, "question,A,B,C,D,answer\n\"q, \"\"r\n\"\"\",1,2,3,4,A", NULL,
         "q, \"r\n\"", "1", 4, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *labels = cases[i].labels;
        const struct eval_dataset_options options = {
            .kind = cases[i].kind, .labels = {labels, labels ? strlen(labels) : 0}};
        struct eval_dataset d;
        struct status_why why = {""};
        char text[512];
        size_t n = (size_t)snprintf(text, sizeof text, "%s", cases[i].text);
        assert_int_equal(eval_dataset_read(&d, &options, text, n, &why), STATUS_OK);
        assert_int_equal(d.n_questions, 1);
        assert_text(d.questions[0].text, cases[i].question);
        assert_text(d.choices[0], cases[i].first);
        assert_int_equal(d.questions[0].n_choices, cases[i].n_choices);
        assert_int_equal(d.questions[0].answer, cases[i].answer);
        assert_int_equal(d.questions[0].n_right, cases[i].n_right);
        eval_dataset_free(&d);
    }
}

/** Labels in a file of their own, and CSV, are refused in other forms. */
static void refuses_bad_forms(void **state)
{
    (void)state;
#define PIQA "{\"goal\":\"g\",\"sol1\":\"a\",\"sol2\":\"b\"}\n"
    static const struct {
        const char *text, *labels, *sentence;
    } cases[] = {
        {PIQA PIQA, "1\n",
         "line 2: line 2 of --task-labels is to have its answer, a number from 0 to 1"},
        {PIQA, "1\n0\n", "has 1 tasks, --task-labels has more lines"},
        {PIQA "{\"goal\":\"g\",\"sol1\":\"a\",\"sol2\":\"b\",\"label\":0}", "1\n0\n",
         "1 of 2 tasks have an answer, and --task-labels gives others; leave it out"},
        {PIQA, "10\n", "line 1: line 1 of --task-labels"},
        {"q,1,2,3,4,A\n", "1\n",
         "is no JSON; --task-labels goes with JSON objects without answers"},
        {"q,1,2,3,4,E\n", NULL, "line 1: the answer is 'E', expected A to D"},
        {"\nq,1,2,3,4,A\nq,1,2,,4,A\n", NULL, "line 3: field 4 is empty, expected an answer"},
        {"q,1,2,3,A\n", NULL, "line 1: 5 fields of CSV, expected question,A,B,C,D,answer"},
        {"q,\"1,2,3,A\n", NULL, "line 1: a quoted field does not end"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *labels = cases[i].labels;
        const struct eval_dataset_options options = {
            .kind = EVAL_MULTIPLE_CHOICE, .labels = {labels, labels ? strlen(labels) : 0}};
        struct eval_dataset d;
        struct status_why why = {""};
        char text[512];
        size_t n = (size_t)snprintf(text, sizeof text, "%s", cases[i].text);
        enum status status = eval_dataset_read(&d, &options, text, n, &why);
        assert_sentence(status, &why, cases[i].sentence);
        assert_null(d.questions);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_json_lines),
        cmocka_unit_test(refuses_bad_json_lines),
        cmocka_unit_test(reads_published_forms),
        cmocka_unit_test(refuses_bad_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Files of tasks: what is read from good ones, and the sentence that a bad one gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "eval/tasks/dataset.h"

/* The binary file under construction. */
static char bytes[512];
static size_t n_bytes;

static void put_word(uint32_t word)
{
    for (int i = 0; i < 4; i++)
        bytes[n_bytes++] = (char)(word >> (8 * i));
}

static void put_string(const char *s)
{
    put_word((uint32_t)strlen(s));
    memcpy(bytes + n_bytes, s, strlen(s));
    n_bytes += strlen(s);
}

static void assert_text(struct base_string s, const char *expected)
{
    assert_int_equal(s.n_bytes, strlen(expected));
    assert_memory_equal(s.data, expected, s.n_bytes);
}

static void assert_sentence(enum status status, const struct status_why *why, const char *expected)
{
    if (status != STATUS_FORMAT || !strstr(why->text, expected))
        fail_msg("%s: '%s', expected '%s'", status_name(status), why->text, expected);
}

static void reads_hellaswag(void **state)
{
    (void)state;
    const char text[] = "a b\n2\nA\nB\nC\nD\nc\r\n0\r\nE\r\nF\r\nG\r\nH\r\n\n\n";
    struct eval_dataset d;
    assert_int_equal(eval_dataset_hellaswag(&d, text, sizeof text - 1, NULL), STATUS_OK);
    assert_int_equal(d.n_questions, 2);
    assert_int_equal(d.questions[0].answer, 2);
    assert_text(d.questions[0].text, "a b");
    assert_text(d.choices[3], "D");
    assert_text(d.questions[1].text, "c");
    assert_int_equal(d.questions[1].line, 7);
    assert_int_equal(d.questions[1].first_choice, 4);
    assert_text(d.choices[7], "H");
    eval_dataset_free(&d);
}

static void refuses_bad_hellaswag(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"", "no tasks"},
        {"\n\n", "no tasks"},
        {"a\n0\nA\nB\nC\n", "line 5: the text ends after 5 of the 6 lines of a task"},
        {"a\n4\nA\nB\nC\nD\n", "line 2: '4' is not the index of an ending, expected 0 to 3"},
        {"a\n-1\nA\nB\nC\nD\n", "line 2: '-1' is not the index"},
        {"a\n0\nA\n\nC\nD\n", "line 4: empty, expected an ending"},
        {"a\n0\nA\nB\nC\nD\n\n0\nA\nB\nC\nD\n", "line 7: empty, expected a context"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct eval_dataset d;
        struct status_why why = {""};
        enum status status = eval_dataset_hellaswag(&d, cases[i].text, strlen(cases[i].text), &why);
        assert_sentence(status, &why, cases[i].sentence);
        assert_null(d.questions);
    }
}

static enum status read_winogrande(struct eval_dataset *d, char text[256], const char *from,
                                   bool llama_compat, struct status_why *why)
{
    snprintf(text, 256, "%s", from);
    return eval_dataset_winogrande(d, text, strlen(text), llama_compat, why);
}

/** RFC 4180, an empty line, a line break in quotes, no newline at the end. */
static void reads_winogrande(void **state)
{
    (void)state;
    const char *from = "0,\"a, \"\"b\"\" _ c _\n d\",x,\"y \"\"z\"\"\",2\r\n\n1,_,p,q,1";
    struct eval_dataset d;
    char text[256];
    assert_int_equal(read_winogrande(&d, text, from, false, NULL), STATUS_OK);
    assert_int_equal(d.n_questions, 2);
    assert_text(d.questions[0].text, "a, \"b\" ");
    assert_text(d.questions[0].after, " c _\n d");
    assert_text(d.choices[1], "y \"z\"");
    assert_int_equal(d.questions[0].answer, 1);
    assert_int_equal(d.questions[1].line, 4);
    assert_text(d.questions[1].text, "");
    assert_text(d.choices[3], "q");
    eval_dataset_free(&d);
    const char *headed = "\nqID,sentence,option1,option2,answer\r\n0,a _ b,x,y,2\n";
    assert_int_equal(read_winogrande(&d, text, headed, false, NULL), STATUS_OK);
    assert_int_equal(d.n_questions, 1);
    assert_int_equal(d.questions[0].line, 3);
    assert_text(d.choices[0], "x");
    eval_dataset_free(&d);
}

/** llama.cpp: the last row is lost, quotes stay, what is not understood is passed over. */
static void reads_winogrande_as_llama(void **state)
{
    (void)state;
    const char *from = "0,\"a \"\"b\"\" _\",x,\"y\",2\nnonsense\n1,no blank,p,q,1\n2,_,p,q,1\n";
    struct eval_dataset d;
    char text[256];
    assert_int_equal(read_winogrande(&d, text, from, true, NULL), STATUS_OK);
    assert_int_equal(d.n_questions, 1);
    assert_text(d.questions[0].text, "a \"\"b\"\" ");
    assert_text(d.choices[1], "\"y\"");
    eval_dataset_free(&d);
}

static void refuses_bad_winogrande(void **state)
{
    (void)state;
    static const struct {
        const char *text, *sentence;
    } cases[] = {
        {"", "no tasks"},
        {"0,_,a,b\n", "line 1: 4 fields"},
        {"0,_,a,b,1\n0,_,a,b,1,2\n", "line 2: 6 fields"},
        {"0,\"_,a,b,1\n\n", "line 1: a quoted field does not end"},
        {"\n0,\"_\"x,a,b,1\n", "line 2: 'x' after a quoted field"},
        {"0,a,a,b,1\n", "line 1: the sentence has no blank"},
        {"0,_,a,b,3\n", "line 1: the answer is '3', expected 1 or 2"},
        {"0,_,a,b,\n", "line 1: the answer is ''"},
        {"0,_,,b,1\n", "line 1: choice 1 is empty"},
        {"0,_,a,\" \",1\n", "line 1: choice 2 is empty"},
        {"i,s,a,b,answer\n", "no tasks"},
        {"0,_,a,b,1\ni,_,a,b,answer\n", "line 2: the answer is 'answer'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct eval_dataset d;
        struct status_why why = {""};
        char text[256];
        enum status status = read_winogrande(&d, text, cases[i].text, false, &why);
        assert_sentence(status, &why, cases[i].sentence);
        assert_null(d.questions);
    }
}

/** One task of two answers, then a second list as the format has it. */
static void put_file(uint32_t n_tasks, uint32_t position)
{
    n_bytes = 0;
    put_word(n_tasks);
    put_word(position);
    put_string("Q");
    put_word(2);
    put_string("A");
    put_string("BB");
    put_word(0);
    put_word(1);
    put_word(0);
}

static void reads_multiple_choice(void **state)
{
    (void)state;
    put_file(1, 8);
    struct eval_dataset d;
    assert_int_equal(eval_dataset_multiple_choice(&d, bytes, n_bytes, NULL), STATUS_OK);
    assert_int_equal(d.n_questions, 1);
    assert_text(d.questions[0].text, "Q");
    assert_int_equal(d.questions[0].answer, 1);
    assert_text(d.choices[1], "BB");
    eval_dataset_free(&d);
}

static void refuse(size_t size, const char *sentence)
{
    struct eval_dataset d;
    struct status_why why = {""};
    /* A block of exactly that size, so that sanitizers see a read beyond it. */
    char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    enum status status = eval_dataset_multiple_choice(&d, copy, size, &why);
    free(copy);
    assert_sentence(status, &why, sentence);
    assert_null(d.questions);
}

static void refuses_bad_multiple_choice(void **state)
{
    (void)state;
    enum { QUESTION = 8, COUNT = 13, ANSWER = 17, LABELS = 28 };
    put_file(1, 8);
    for (size_t cut = 0; cut < n_bytes - 4; cut++)
        refuse(cut, cut < 4 ? "the number of tasks at byte 0 is cut off" : "");
    put_file(0, 8);
    refuse(n_bytes, "0 tasks");
    put_file(0xffffffff, 8);
    refuse(n_bytes, "4294967295 tasks");
    put_file(1, 4);
    refuse(n_bytes, "task 0: position 4, expected 8 to");
    put_file(1, 0xfffffff0);
    refuse(n_bytes, "task 0: position 4294967280");
    put_file(1, 8);
    bytes[QUESTION + 3] = (char)0x80;
    refuse(n_bytes, "task 0: the question at byte 12 is cut off: expected 2147483649 bytes");
    put_file(1, 8);
    bytes[COUNT] = 1;
    refuse(n_bytes, "task 0: 1 answer,");
    bytes[COUNT + 2] = 1;
    refuse(n_bytes, "task 0: 65537 answers");
    put_file(1, 8);
    bytes[ANSWER] = 0;
    refuse(n_bytes, "task 0: an answer at byte 21 is empty");
    put_file(1, 8);
    bytes[LABELS] = 1;
    refuse(n_bytes, "task 0: 2 of 2 answers are marked right");
    bytes[LABELS] = bytes[LABELS + 4] = 0;
    refuse(n_bytes, "task 0: 0 of 2 answers are marked right");
    bytes[LABELS] = 7;
    refuse(n_bytes, "task 0: label 7 of answer 0");
}

/** Many tasks at one place: refused before they take memory without bounds. */
static void refuses_tasks_that_overlap(void **state)
{
    (void)state;
    enum { N = 20 };
    n_bytes = 0;
    put_word(N);
    for (int i = 0; i < N; i++)
        put_word(4 + 4 * N);
    put_string("Q");
    put_word(4);
    for (int i = 0; i < 4; i++)
        put_string("A");
    for (int i = 0; i < 4; i++)
        put_word(i == 0);
    refuse(n_bytes, "overlaps others");
}

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

/** Of labels in a file of their own, and of CSV. */
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

static void refuses_other_encodings(void **state)
{
    (void)state;
#define WIDE                                                                                       \
    "a\0\n\0"                                                                                      \
    "0\0\n\0"                                                                                      \
    "A\0\n\0"                                                                                      \
    "B\0\n\0"                                                                                      \
    "C\0\n\0"                                                                                      \
    "D\0\n\0"
    static const struct {
        enum eval_choice_kind kind;
        const char *text;
        size_t n_bytes;
        const char *sentence;
    } cases[] = {
        {EVAL_HELLASWAG, "\xff\xfe" WIDE, sizeof WIDE + 1, "is UTF-16LE, expected UTF-8"},
        {EVAL_HELLASWAG, WIDE, sizeof WIDE - 1, "is UTF-16LE, expected UTF-8"},
        {EVAL_WINOGRANDE, "\xfe\xff\0" WIDE, sizeof WIDE + 1, "is UTF-16BE, expected UTF-8"},
        {EVAL_HELLASWAG, "a context\n0\nA\nB\0\nC\nD\n", 21,
         "line 4: has a byte of 0, expected a text in UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct eval_dataset_options options = {.kind = cases[i].kind};
        struct eval_dataset d;
        struct status_why why = {""};
        char text[64];
        memcpy(text, cases[i].text, cases[i].n_bytes);
        enum status status = eval_dataset_read(&d, &options, text, cases[i].n_bytes, &why);
        assert_sentence(status, &why, cases[i].sentence);
        assert_null(d.questions);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_hellaswag),
        cmocka_unit_test(refuses_bad_hellaswag),
        cmocka_unit_test(refuses_other_encodings),
        cmocka_unit_test(reads_winogrande),
        cmocka_unit_test(reads_winogrande_as_llama),
        cmocka_unit_test(refuses_bad_winogrande),
        cmocka_unit_test(reads_multiple_choice),
        cmocka_unit_test(refuses_bad_multiple_choice),
        cmocka_unit_test(refuses_tasks_that_overlap),
        cmocka_unit_test(reads_json_lines),
        cmocka_unit_test(refuses_bad_json_lines),
        cmocka_unit_test(reads_published_forms),
        cmocka_unit_test(refuses_bad_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Files of tasks: what is read from good ones, and the sentence that a bad one gets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/eval/dataset_assert.h"
#include "tests/harness/cmocka.h"

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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

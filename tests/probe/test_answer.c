/* The forms of answers, as servers were seen to write them; and what is not taken. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "clients/probe/api/answer.h"
#include "tests/harness/cmocka.h"

static struct probe_answer answer;

static void read_text(const char *text)
{
    struct status_why why = {""};
    probe_answer_free(&answer);
    if (probe_answer_read(&answer, text, strlen(text), &why))
        fail_msg("%s: %s", text, why.text);
}

static int clear(void **state)
{
    (void)state;
    probe_answer_free(&answer);
    return 0;
}

static void assert_entry(size_t place, size_t i, int32_t id, double log_q)
{
    assert_true(place < answer.n_places && i < answer.places[place].n);
    const struct probe_entry *e = &answer.entries[answer.places[place].first + i];
    assert_int_equal(e->id, id);
    assert_true(fabs(e->log_q - log_q) < 1e-12);
}

static void llama_server(void **state)
{
    (void)state;
    read_text("{\"content\":\" a\",\"tokens_evaluated\":7,\"timings\":{\"cache_n\":3},"
              "\"completion_probabilities\":[{\"id\":5,\"token\":\" a\",\"logprob\":-0.5,"
              "\"top_logprobs\":[{\"id\":5,\"logprob\":-0.5},{\"id\":9,\"logprob\":-3.4e38}]}]}");
    assert_int_equal(answer.n_places, 1);
    assert_true(answer.places[0].generated && answer.of_llama);
    assert_int_equal(answer.places[0].token, 5);
    assert_int_equal(answer.n_prompt, 7);
    assert_int_equal(answer.n_cached, 3);
    assert_entry(0, 0, 5, -0.5);
    assert_entry(0, 1, 9, -1e4);
}

static void vllm(void **state)
{
    (void)state;
    read_text("{\"choices\":[{\"prompt_logprobs\":[null,{\"7\":{\"logprob\":-1,\"rank\":2},"
              "\"8\":{\"logprob\":-2}}],\"logprobs\":{\"tokens\":[\"token_id:3\"],\"top_logprobs\":"
              "[{\"token_id:3\":-0.25}]}}],\"usage\":{\"prompt_tokens\":2}}");
    assert_int_equal(answer.n_places, 2);
    assert_false(answer.places[0].generated);
    assert_int_equal(answer.places[0].index, 1);
    assert_entry(0, 1, 8, -2);
    assert_true(answer.places[1].generated);
    assert_entry(1, 0, 3, -0.25);
}

static void openai_echo(void **state)
{
    (void)state;
    read_text(
        "{\"choices\":[{\"logprobs\":{\"top_logprobs\":[null,{\" a\":-1,\"b\":-2},{\"c\":-3}]}}],"
        "\"usage\":{\"prompt_tokens\":2}}");
    assert_int_equal(answer.n_places, 2);
    assert_false(answer.places[0].generated);
    assert_true(answer.places[1].generated);
    assert_int_equal(answer.places[1].index, 0);
    assert_entry(0, 0, -1, -1);
    const struct probe_entry *e = &answer.entries[0];
    assert_memory_equal(answer.bytes + e->text, " a", 2);
    assert_int_equal(e->n_text, 2);
}

static void sglang(void **state)
{
    (void)state;
    read_text(
        "{\"meta_info\":{\"prompt_tokens\":2,\"cached_tokens\":1,\"input_top_logprobs\":[null,"
        "[[-1.5,4,null],[-2.5,6,null]]],\"output_top_logprobs\":[[[-0.1,2,null]]]}}");
    assert_int_equal(answer.n_places, 2);
    assert_entry(0, 1, 6, -2.5);
    assert_entry(1, 0, 2, -0.1);
}

static void ollama(void **state)
{
    (void)state;
    read_text(
        "{\"response\":\"\",\"prompt_eval_count\":4,\"logprobs\":[{\"token\":\"x\",\"logprob\":-1,"
        "\"top_logprobs\":[{\"token\":\"x\",\"logprob\":-1,\"bytes\":[226,150]}]}]}");
    assert_int_equal(answer.n_prompt, 4);
    assert_entry(0, 0, -1, -1);
    assert_memory_equal(answer.bytes + answer.entries[0].text, "\xe2\x96", 2);
}

static void request_output(void **state)
{
    (void)state;
    read_text("{\"prompt_token_ids\":[1,2],\"prompt_logprobs\":[null,{\"2\":{\"logprob\":-1}}],"
              "\"outputs\":[{\"logprobs\":[{\"5\":{\"logprob\":-2}}]}]}");
    assert_int_equal(answer.prompt.n, 2);
    assert_int_equal(answer.n_places, 2);
    assert_entry(1, 0, 5, -2);
}

/* A list with something impossible is left out, and counted; the others stay. */
static void spoilt_lists_are_counted(void **state)
{
    (void)state;
    static const char *const wrong[] = {"null", "\"-1\"", "7", "1e999", "[]", "{}", "true"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[512];
        snprintf(
            text, sizeof text,
            "{\"completion_probabilities\":[{\"top_logprobs\":[{\"id\":1,\"logprob\":-1},{\"id\":2,"
            "\"logprob\":%s}]},{\"top_logprobs\":[{\"id\":3,\"logprob\":-2}]},{\"top_logprobs\":[]}"
            "]}",
            wrong[i]);
        read_text(text);
        assert_int_equal(answer.n_spoilt, 2);
        assert_int_equal(answer.n_places, 1);
        assert_entry(0, 0, 3, -2);
    }
}

static void what_is_no_answer_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        "<html>",
                                        "{\"a\":",
                                        "{}",
                                        "[]",
                                        "[1]",
                                        "null",
                                        "\"x\"",
                                        "{\"choices\":[]}",
                                        "{\"choices\":{}}",
                                        "{\"logprobs\":{}}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct status_why why = {""};
        assert_int_equal(probe_answer_read(&answer, wrong[i], strlen(wrong[i]), &why),
                         STATUS_FORMAT);
        probe_answer_free(&answer);
        assert_true(*why.text != '\0');
    }
}

static void a_token_twice_spoils_its_list(void **state)
{
    (void)state;
    read_text(
        "{\"completion_probabilities\":[{\"top_logprobs\":[{\"id\":1,\"logprob\":-1},{\"id\":1,"
        "\"logprob\":-2}]},{\"top_logprobs\":[{\"id\":3,\"logprob\":-2}]}]}");
    assert_int_equal(answer.n_spoilt, 1);
    assert_string_equal(answer.spoilt, "a list that has a token twice");
    assert_int_equal(answer.n_places, 1);
}

static void what_python_writes_is_named(void **state)
{
    (void)state;
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct status_why why = {""};
        char text[128], expected[64];
        snprintf(text, sizeof text, "{\"logprobs\":[{\"top_logprobs\":[{\"logprob\": %s}]}]}",
                 words[i]);
        snprintf(expected, sizeof expected, "found %s at byte ", words[i]);
        assert_int_equal(probe_answer_read(&answer, text, strlen(text), &why), STATUS_FORMAT);
        probe_answer_free(&answer);
        assert_non_null(strstr(why.text, expected));
    }
}

/** Ids of all tokens that were written, and of those that have a list, with where they are. */
static void lists_of_whole_characters_are_placed(void **state)
{
    (void)state;
    static const struct {
        const char *tokens;
        int ids[4], indices[4]; /* up to a 0; -1: it is not certain */
    } cases[] = {
        {"[7,8,9,7,8,5]", {9, 5}, {2, 5}},
        {"[1,2,3]", {1, 2, 3}, {0, 1, 2}},
        {"[7,8,7,8]", {8}, {-1}},
        {"[7,8]", {9}, {-1}},
        {"[]", {9}, {-1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        size_t n = 0, kept = 0;
        int used = snprintf(text, sizeof text,
                            "{\"tokens\":%s,\"tokens_predicted\":6,\"completion_probabilities\":[",
                            cases[i].tokens);
        for (; n < 4 && cases[i].ids[n]; n++)
            used += snprintf(text + used, sizeof text - (size_t)used,
                             "%s{\"id\":%d,\"top_logprobs\":[{\"id\":1,\"logprob\":-1}]}",
                             n ? "," : "", cases[i].ids[n]);
        snprintf(text + used, sizeof text - (size_t)used, "]}");
        read_text(text);
        for (size_t k = 0; k < n; k++)
            if (cases[i].indices[k] >= 0)
                assert_int_equal(answer.places[kept++].index, cases[i].indices[k]);
        assert_int_equal(answer.n_places, kept);
    }
}

static void words_about_errors(void **state)
{
    (void)state;
    char out[64];
    static const char *const texts[][2] = {
        {"{\"error\":{\"message\":\"too long\",\"code\":400}}", "too long"},
        {"{\"error\":\"no model\"}", "no model"},
        {"{\"detail\":\"not found\"}", "not found"},
        {"{\"object\":\"error\",\"message\":\"bad\"}", "bad"},
        {"<html>", ""},
        {"[]", ""},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        probe_answer_error(out, sizeof out, texts[i][0], strlen(texts[i][0]));
        assert_string_equal(out, texts[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(llama_server, clear),
        cmocka_unit_test_teardown(vllm, clear),
        cmocka_unit_test_teardown(openai_echo, clear),
        cmocka_unit_test_teardown(sglang, clear),
        cmocka_unit_test_teardown(ollama, clear),
        cmocka_unit_test_teardown(request_output, clear),
        cmocka_unit_test_teardown(spoilt_lists_are_counted, clear),
        cmocka_unit_test_teardown(what_is_no_answer_is_refused, clear),
        cmocka_unit_test_teardown(a_token_twice_spoils_its_list, clear),
        cmocka_unit_test_teardown(what_python_writes_is_named, clear),
        cmocka_unit_test_teardown(lists_of_whole_characters_are_placed, clear),
        cmocka_unit_test_teardown(words_about_errors, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * Conversations: which part of the text is whose, for templates with headers, without, with
 * thoughts that are left out, with tool calls, with generation blocks; what is refused, in which
 * words; that nothing runs away. What templates make of values is compared with jinja2 in
 * test_chat_jinja.py.
 */
#include <stdio.h>

#include "tests/harness/cmocka.h"
#include <stdlib.h>
#include <string.h>

#include "base/json/parse.h"
#include "base/text/words.h"
#include "model/chat/chat.h"
#include "tests/model/vocabulary.h"

static struct opened vocabulary;

static int open_vocabulary(void **state)
{
    static const char *const controls[] = {"<|start|>", "<|end|>", "<|call|>", "<|return|>"};
    static struct vocabulary v;
    (void)state;
    vocabulary_spm(&v);
    for (size_t i = 0; i < sizeof controls / sizeof *controls; i++)
        vocabulary_add(&v, controls[i], 0, MODEL_TOKEN_CONTROL);
    vocabulary = vocabulary_opened(&v);
    return 0;
}

static int close_vocabulary(void **state)
{
    (void)state;
    opened_close(&vocabulary);
    return 0;
}

static struct base_string string(const char *s)
{
    return (struct base_string){s, strlen(s)};
}

static const struct jinja_limits usual = {8 << 20, 1000000, 1e6};

static enum status render_parsed(const struct model_chat *chat, struct base_string object,
                                 enum model_chat_mask mask, struct model_chat_text *out,
                                 struct status_why *why)
{
    cJSON *parsed;
    assert_false(base_json_parse(&parsed, object.data, object.n_bytes, NULL, why));
    enum status status = model_chat_render(chat, parsed, object, mask, out, why);
    cJSON_Delete(parsed);
    return status;
}

static enum status render_within(const struct jinja_limits *limits, const char *text,
                                 const char *object, enum model_chat_mask mask,
                                 struct model_chat_text *out, struct status_why *why)
{
    struct model_chat *chat;
    *out = (struct model_chat_text){0};
    enum status status = model_chat_open(&chat, string(text), vocabulary.tokenizer, limits, why);
    if (!status)
        status = render_parsed(chat, string(object), mask, out, why);
    model_chat_close(chat);
    return status;
}

static enum status render(const char *text, const char *object, enum model_chat_mask mask,
                          struct model_chat_text *out, struct status_why *why)
{
    return render_within(&usual, text, object, mask, out, why);
}

/** The parts that are scored must be these, each followed by a bar. */
static void expect(const char *text, const char *object, enum model_chat_mask mask,
                   const char *parts)
{
    struct model_chat_text out;
    struct status_why why = {""};
    char found[1024] = "";
    enum status status = render(text, object, mask, &out, &why);
    for (size_t i = 0, n = 0; i < out.n_spans; i++)
        n += (size_t)snprintf(found + n, sizeof found - n, "%.*s|",
                              (int)(out.spans[i].to - out.spans[i].from),
                              out.text + out.spans[i].from);
    assert_string_equal(why.text, "");
    assert_int_equal(status, STATUS_OK);
    assert_string_equal(found, parts);
    model_chat_text_free(&out);
}

static void expect_failure(const char *text, const char *object, const char *sentence)
{
    struct model_chat_text out;
    struct status_why why = {""};
    enum status status = render(text, object, MODEL_CHAT_ASSISTANT, &out, &why);
    if (!strstr(why.text, sentence))
        assert_string_equal(why.text, sentence);
    assert_int_not_equal(status, STATUS_OK);
    assert_null(out.text);
}

#define TURN(role, content) "{\"role\": \"" role "\", \"content\": " content "}"
#define CHAT(...)           "{\"messages\": [" __VA_ARGS__ "]}"
#define TALK                                                                                       \
    CHAT(TURN("system", "\"Be a\"") "," TURN("user", "\"a\"") "," TURN(                            \
        "assistant", "\" b \"") "," TURN("user", "\"c\\n\"") "," TURN("assistant", "\"a\""))

static const char headers[] =
    "{% for m in messages %}<|start|>{{ m.role ~ '\\n' ~ m.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}";
static const char trimmed[] =
    "{{ bos_token }}{% for m in messages %}{{ m.role[0] ~ m.content | trim ~ "
    "(eos_token if m.role == 'assistant' else '') }}{% endfor %}";

static void headers_and_ends(void **state)
{
    (void)state;
    expect(headers, TALK, MODEL_CHAT_ASSISTANT, " b <|end|>|a<|end|>|");
    expect(headers, TALK, MODEL_CHAT_USER, "a|c|");
    expect(headers, CHAT(TURN("user", "\"x\"")), MODEL_CHAT_ASSISTANT, "");
    /* A conversation that asks for the next answer itself. */
    expect(headers,
           "{\"add_generation_prompt\": true, \"messages\": [" TURN("user", "\"a\"") "," TURN(
               "assistant", "\" b \"") "," TURN("user", "\"c\"") "]}",
           MODEL_CHAT_ASSISTANT, " b <|end|>|");
    expect("{% for m in messages %}<|start|>{{ m.role ~ m.content }}<|end|>{% endfor %}"
           "{% if add_generation_prompt %}<|start|>assistant{% endif %}",
           "{\"add_generation_prompt\": true, \"messages\": [" TURN("user", "\"a\"") "," TURN(
               "assistant", "\" b \"") "," TURN("user", "\"c\"") "]}",
           MODEL_CHAT_ASSISTANT, " b <|end|>|");
    expect(trimmed, TALK, MODEL_CHAT_ASSISTANT, "b</s>|a</s>|");
    expect(trimmed, TALK, MODEL_CHAT_ALL, "<s>sBe auaab</s>ucaa</s>|");
    /* The last turn ends with another token. */
    expect("{% for m in messages %}<|start|>{{ m.role ~ m.content }}"
           "{{ '<|return|>' if loop.last else '<|end|>' }}{% endfor %}"
           "{% if add_generation_prompt %}<|start|>assistant{% endif %}",
           TALK, MODEL_CHAT_ASSISTANT, "b <|end|>|a<|return|>|");
    /* An answer is always asked for: where EOS does not tell, nothing does. */
    expect("{% for m in messages %}<|start|>{{ m.role ~ '\\n' ~ m.content }}<|end|>{% endfor %}"
           "<|start|>assistant\n",
           TALK, MODEL_CHAT_ASSISTANT, "b|a|");
    expect("{% for m in messages %}<|start|>{{ m.role ~ '\\n' ~ m.content }}</s>{% endfor %}"
           "<|start|>assistant\n",
           TALK, MODEL_CHAT_ASSISTANT, "b </s>|a</s>|");
}

static void thoughts_and_calls(void **state)
{
    static const char thinks[] =
        "{% for m in messages %}<|start|>{{ m.role }}:{{ m.content.split('</think>')[-1] }}<|end|>"
        "{% endfor %}{% if add_generation_prompt %}<|start|>assistant:<think>\n{% endif %}";
    static const char calls[] = "{% for m in messages %}<|start|>{{ m.role }}:{{ m.content or '' "
                                "}}{% for c in m.tool_calls "
                                "%}<|call|>{{ c | tojson }}{% endfor %}<|end|>\n{% endfor %}"
                                "{% if add_generation_prompt %}<|start|>assistant:{% endif %}";
    (void)state;
    expect(thinks, CHAT(TURN("user", "\"u\"") "," TURN("assistant", "\"<think>hm</think>\\nyes\"")),
           MODEL_CHAT_ASSISTANT, "yes<|end|>|");
    expect(calls,
           CHAT(TURN("user", "\"u\"") ", {\"role\": \"assistant\", \"content\": null, "
                                      "\"tool_calls\": [{\"f\": 1.0}]}, " TURN("tool", "\"r\"")),
           MODEL_CHAT_ASSISTANT, "<|call|>{\"f\": 1.0}<|end|>|");
    expect(calls,
           CHAT(TURN("user", "\"u\"") ", {\"role\": \"assistant\", \"content\": \"so\", "
                                      "\"tool_calls\": [1, 2]}"),
           MODEL_CHAT_ASSISTANT, "so<|call|>1<|call|>2<|end|>|");
    expect("{% for m in messages %}{{ m.role }}:{% if m.role == 'assistant' %}{% generation %}{{ "
           "m.content }};{% endgeneration %}{% endif %}{% endfor %}",
           TALK, MODEL_CHAT_ASSISTANT, " b ;|a;|");
}

static void parts_of_contents(void **state)
{
    static const char lists[] = "{% for m in messages %}<|start|>{% for p in m.content %}{{ p.text "
                                "}}{% endfor %}<|end|>{% endfor %}"
                                "{% if add_generation_prompt %}<|start|>{% endif %}";
    static const char *const parts =
        CHAT(TURN("user", "[{\"type\": \"text\", \"text\": \"a\"}]") "," TURN(
            "assistant",
            "[{\"type\": \"text\", \"text\": \"b\"}, {\"type\": \"text\", \"text\": \"c\"}]"));
    (void)state;
    expect(headers, parts, MODEL_CHAT_ASSISTANT, "bc<|end|>|");
    expect(lists, parts, MODEL_CHAT_ASSISTANT, "bc<|end|>|");
    expect(lists, TALK, MODEL_CHAT_USER, "a|c|");
    expect_failure(headers, CHAT(TURN("user", "[{\"type\": \"image\"}]")),
                   "message 1: part 1 is no text");
}

/** Numbers are read from the text, past those in strings: a double would lose digits of some. */
static void numbers_are_exact(void **state)
{
#define NUMBERS(n)                                                                                 \
    "{\"s\": \"1 \\\" 2\", \"n\": [" n "], \"messages\": [" TURN("user", "\"a\"") "]}"
    static const char template[] = "{{ n }}{% for m in messages %}{{ m.content }}{% endfor %}";
    (void)state;
    expect(template, NUMBERS("9007199254740993, 1.0, -3, 1e2"), MODEL_CHAT_ALL,
           "[9007199254740993, 1.0, -3, 100.0]a|");
    expect_failure(template, NUMBERS("99999999999999999999"),
                   "the number 99999999999999999999 is beyond 64 bits");
}

static void what_is_refused(void **state)
{
    static const struct {
        const char *text, *object, *sentence;
    } cases[] = {
        {"{{ 'a' ", TALK, "chat template, line 1: a tag is not closed: expected '}}'"},
        {"\n\n{% call x() %}{% endcall %}", TALK,
         "chat template, line 3: the statement 'call' is not supported"},
        {"{% if a %}", TALK, "line 1: expected elif else endif, found the end"},
        {"{{ messages | wordcount }}", TALK, "the filter 'wordcount' is not supported"},
        {"{{ 1 is prime }}", TALK, "the test 'prime'"},
        {"{{ 'a'.swapcase() }}", TALK, "the method 'swapcase' of a string is not supported"},
        {"{{ messages.append(1) }}", TALK, "the method 'append' of a list is not supported"},
        {"{{ f() }}", TALK, "the function 'f' is not known"},
        {"\n{{ nope.x }}", TALK, "line 2: the member 'x' of 'nope', which is undefined"},
        {"{{ 1 + 'a' }}", TALK, "'+' of an integer and a string"},
        {"{{ raise_exception('not so') }}", TALK, "the template refuses this conversation: not so"},
        {"{% for i in range(99999) %}{% for k in range(99999) %}{% endfor %}{% endfor %}", TALK,
         "line 1: takes more than 8388608 bytes of memory, the limit of a conversation"},
        {"{{ 'aaaaaaaaaaaaaaaa' * 10000000 }}", TALK, "bytes of memory, the limit of"},
        {"{% set x = range(999) %}{% for i in x %}{% for k in x %}{% for l in x %}{% if k == l %}"
         "{% endif %}{% endfor %}{% endfor %}{% endfor %}",
         TALK, "the limit of a conversation"},
        {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", TALK, "nested more than"},
        {"\xFF", TALK, "byte 0 is not part of a UTF-8 character"},
        {headers, "{\"messages\": []}", "expected \"messages\" with a list of objects"},
        {headers, "{\"messages\": [1]}", "message 1: expected an object with \"role\""},
        {headers, CHAT(TURN("user", "7")), "message 1: \"content\" is an integer"},
        {headers, "{\"now\": \"today\", \"messages\": [" TURN("user", "\"a\"") "]}",
         "expected \"now\" with a day like"},
        {headers, CHAT(TURN("user", "\"\\ue0f0\"")), "has the character U+E0F0"},
        {"{% for m in messages %}{{ m.role }}{% endfor %}", TALK,
         "message 3: cannot tell which part of the text the template makes of it"},
        {"{% for m in messages %}{{ m.content | length }}{% endfor %}", TALK,
         "message 3: cannot tell which part"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_failure(cases[i].text, cases[i].object, cases[i].sentence);
}

/** Whatever walks through much takes steps: else these would take minutes, or years. */
static void steps_are_counted(void **state)
{
#define LISTS "{% set a = range(9999) %}{% set b = range(9999) %}"
#define TEXT  "{% set s = ('1' * 1000) * 300 %}"
#define AGAIN "{% for i in range(n) %}"
#define END   "{% endfor %}{{ messages[0].content }}"
    static const char *const templates[] = {
        LISTS AGAIN "{% if a == b %}{% endif %}" END,
        LISTS AGAIN "{% if [a] < [b] %}{% endif %}" END,
        LISTS AGAIN "{% set x = a.count(-1) %}" END,
        LISTS AGAIN "{% set x = a.index(9998) %}" END,
        LISTS AGAIN "{% set x = a | max %}" END,
        LISTS AGAIN "{% set x = a | reject('defined') %}" END,
        "{% set a = [''] * 9999 %}" AGAIN "{% set x = a | join %}" END,
        "{% set a = [''] * 9999 %}" AGAIN "{% set x = ''.join(a) %}" END,
        "{% set a = [0.1] * 999 %}" AGAIN "{% set x = a | string | length %}" END,
        TEXT AGAIN "{% set x = s.isdigit() %}" END,
        TEXT AGAIN "{% set x = s.startswith(s) %}" END,
        TEXT AGAIN "{% set x = s[299999] %}" END,
        TEXT AGAIN "{% set d = {s: 1} %}{% set x = d[s] %}" END,
        TEXT "{% set x = s[:9999].strip(('2' * 100) * n ~ '1') %}{{ messages[0].content }}",
        AGAIN "{% set x = messages[0].content | upper %}" END,
    };
    const struct jinja_limits limits = {64 << 20, 1000000, 1e6};
    struct model_chat_text out;
    static char object[20000], content[16000];
    (void)state;
    memset(content, 'x', sizeof content - 1);
    for (size_t i = 0; i < 2 * sizeof templates / sizeof *templates; i++) {
        struct status_why why = {""};
        snprintf(object, sizeof object, "{\"n\": %d, \"messages\": [" TURN("user", "\"%s\"") "]}",
                 i % 2 ? 5000 : 1, content);
        enum status status =
            render_within(&limits, templates[i / 2], object, MODEL_CHAT_ALL, &out, &why);
        assert_string_equal(why.text, i % 2 ? "chat template, line 1: takes more than 1000000 "
                                              "steps, the limit of a conversation"
                                            : "");
        assert_int_equal(status, i % 2 ? STATUS_UNSUPPORTED : STATUS_OK);
        model_chat_text_free(&out);
    }
}

/**
 * A limit that is reached in an attempt (here: to find contents by their marks) is the end, not
 * another way to divide the text.
 */
static void limits_in_attempts(void **state)
{
    static const char text[] =
        "{% for m in messages %}\n{% if messages | length > 1 and '\ue0f1' in m.content %}"
        "{% for i in range(2000) %}{% set x = i %}{% endfor %}{% endif %}"
        "<|start|>{{ m.role ~ ':' ~ m.content }}<|end|>{% endfor %}";
    static const struct {
        struct jinja_limits limits;
        const char *sentence;
    } cases[] = {
        {{8 << 20, 1000000, 1e6}, ""},
        {{8 << 20, 1000000, 0},
         "chat template, line 2: takes more than 0 seconds of processor time, the limit of a "
         "conversation"},
        {{8 << 20, 10000, 1e6},
         "chat template, line 2: takes more than 10000 steps, the limit of a conversation"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_chat_text out;
        struct status_why why = {""};
        enum status status =
            render_within(&cases[i].limits, text, TALK, MODEL_CHAT_ASSISTANT, &out, &why);
        assert_string_equal(why.text, cases[i].sentence);
        assert_int_equal(status, i ? STATUS_UNSUPPORTED : STATUS_OK);
        model_chat_text_free(&out);
        /* Where nothing is looked for, the same conversation takes next to nothing. */
        status = render_within(&cases[i].limits, text, TALK, MODEL_CHAT_ALL, &out, &why);
        assert_int_equal(status, STATUS_OK);
        model_chat_text_free(&out);
    }
}

static void days(void **state)
{
    struct model_chat_text out;
    (void)state;
    static const char text[] = "{{ strftime_now('%d %b %Y, %A') }}";
    assert_int_equal(render(text, TALK, MODEL_CHAT_ALL, &out, NULL), STATUS_OK);
    assert_memory_equal(out.text, "26 Jul 2024, Friday", out.n_bytes);
    model_chat_text_free(&out);
    assert_int_equal(render(text,
                            "{\"now\": \"2025-01-31\", \"messages\": [" TURN("user", "1.5e0") "]}",
                            MODEL_CHAT_ALL, &out, NULL),
                     STATUS_FORMAT);
    assert_int_equal(render(text,
                            "{\"now\": \"2025-01-31\", \"messages\": [" TURN("user", "\"a\"") "]}",
                            MODEL_CHAT_ALL, &out, NULL),
                     STATUS_OK);
    assert_memory_equal(out.text, "31 Jan 2025, Friday", out.n_bytes);
    model_chat_text_free(&out);
}

/** Templates by name: the whole text of a talk, and what the assistant wrote of it. */
static void known_templates(void **state)
{
    (void)state;
    static const struct {
        const char *name, *system, *user, *answer; /* around "S", "U" and "A" */
    } cases[] = {
        {"chatml", "<|im_start|>system\nS<|im_end|>\n", "<|im_start|>user\nU<|im_end|>\n",
         "<|im_start|>assistant\nA<|im_end|>\n"},
        {"command-r", "<s><|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>S<|END_OF_TURN_TOKEN|>",
         "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>U<|END_OF_TURN_TOKEN|>",
         "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>A<|END_OF_TURN_TOKEN|>"},
        {"deepseek-v2", "<s>S\n\n", "User: U\n\n", "Assistant: A</s>"},
        {"deepseek-v3", "<s>S", "<｜User｜>U", "<｜Assistant｜>A<｜end▁of▁sentence｜>"},
        {"gemma", "<s>", "<start_of_turn>user\n+U<end_of_turn>\n",
         "<start_of_turn>model\nA<end_of_turn>\n"},
        {"granite", "<|start_of_role|>system<|end_of_role|>S<|end_of_text|>\n",
         "<|start_of_role|>user<|end_of_role|>U<|end_of_text|>\n",
         "<|start_of_role|>assistant<|end_of_role|>A<|end_of_text|>\n"},
        {"llama2", "", "<s>[INST] +U [/INST]", " A </s>"},
        {"llama3", "<s><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|>",
         "<|start_header_id|>user<|end_header_id|>\n\nU<|eot_id|>",
         "<|start_header_id|>assistant<|end_header_id|>\n\nA<|eot_id|>"},
        {"llama4", "<s><|header_start|>system<|header_end|>\n\nS<|eot|>",
         "<|header_start|>user<|header_end|>\n\nU<|eot|>",
         "<|header_start|>assistant<|header_end|>\n\nA<|eot|>"},
        {"mistral-v1", NULL, " [INST] U [/INST]", " A</s>"},
        {"mistral-v3", NULL, "[INST] U[/INST]", " A</s>"},
        {"mistral-v3-tekken", NULL, "[INST]U[/INST]", "A</s>"},
        {"mistral-v7-tekken", "<s>[SYSTEM_PROMPT]S[/SYSTEM_PROMPT]", "[INST]U[/INST]", "A</s>"},
        {"phi3", "<|system|>\nS<|end|>\n", "<|user|>\nU<|end|>\n", "<|assistant|>\nA<|end|>\n"},
        {"phi4", "<|im_start|>system<|im_sep|>S<|im_end|>", "<|im_start|>user<|im_sep|>U<|im_end|>",
         "<|im_start|>assistant<|im_sep|>A<|im_end|>"},
        {"vicuna", "S ", "USER: U", " ASSISTANT: A</s>"},
        {"zephyr", "<|system|>\nS</s>\n", "<|user|>\nU</s>\n", "<|assistant|>\nA</s>\n"},
    };
    const char *next = MODEL_CHAT_KNOWN, *word;
    size_t n_words = 0, length;
    while ((next = base_words_next(next, &word, &length)))
        n_words++;
    assert_int_equal(n_words, sizeof cases / sizeof *cases);
    for (size_t i = 0; i < n_words; i++) {
        const char *user = cases[i].user, *plus = strchr(user, '+');
        bool is_llama = strcmp(cases[i].name, "llama2") == 0;
        char expected[1024], object[512];
        struct model_chat_text out;
        struct status_why why = {""};
        snprintf(expected, sizeof expected, "%s%.*s%s%s%s%.*s%s%s",
                 cases[i].system ? cases[i].system : "<s>", plus ? (int)(plus - user) : 0, user,
                 !plus      ? ""
                 : is_llama ? "<<SYS>>\nS\n<</SYS>>\n\n"
                            : "S\n\n",
                 plus ? plus + 1 : user, cases[i].answer, plus ? (int)(plus - user) : 0, user,
                 plus ? plus + 1 : user, cases[i].answer);
        snprintf(object, sizeof object, "{\"messages\": [%s%s]}",
                 cases[i].system ? TURN("system", "\"S\"") "," : "",
                 TURN("user", "\"U\"") "," TURN("assistant", "\"A\"") "," TURN(
                     "user", "\"U\"") "," TURN("assistant", "\"A\""));
        const char *text = model_chat_known(cases[i].name);
        assert_non_null(text);
        enum status status = render(text, object, MODEL_CHAT_ASSISTANT, &out, &why);
        assert_string_equal(why.text, "");
        assert_int_equal(status, STATUS_OK);
        assert_int_equal(out.n_bytes, strlen(expected));
        assert_memory_equal(out.text, expected, out.n_bytes);
        assert_int_equal(out.n_spans, 2);
        for (size_t k = 0; k < 2; k++) {
            const struct jinja_span *span = &out.spans[k];
            char part[256];
            snprintf(part, sizeof part, "%.*s", (int)(span->to - span->from),
                     out.text + span->from);
            assert_true(strchr(part, 'A') && strstr(cases[i].answer, part));
        }
        model_chat_text_free(&out);
    }
    assert_null(model_chat_known("mistral"));
    expect_failure(model_chat_known("mistral-v1"), TALK, "this format has no role system here");
    expect_failure(model_chat_known("gemma"), CHAT(TURN("assistant", "\"a\"")),
                   "expected turns of user and assistant");
    expect_failure(model_chat_known("phi3"), CHAT(TURN("tool", "\"a\"")),
                   "this format has no role tool here");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_and_ends),   cmocka_unit_test(thoughts_and_calls),
        cmocka_unit_test(parts_of_contents),  cmocka_unit_test(numbers_are_exact),
        cmocka_unit_test(what_is_refused),    cmocka_unit_test(steps_are_counted),
        cmocka_unit_test(limits_in_attempts), cmocka_unit_test(days),
        cmocka_unit_test(known_templates),
    };
    return cmocka_run_group_tests(tests, open_vocabulary, close_vocabulary);
}

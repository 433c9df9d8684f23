/* What models are called beside one another. */
#include "tests/harness/cmocka.h"
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */
#include <string.h>

#include "base/text/labels.h"

enum { MOST = 4 };

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *paths[MOST], *labels[MOST];
    } rows[] = {
        {{"tiny.Q4_K_M.gguf"}, {"tiny.Q4_K_M"}},
        {{"a/tiny.Q4_K_M.gguf", "b/tiny.Q4_K_S.gguf"}, {"Q4_K_M", "Q4_K_S"}},
        {{"m-Q4_K_M.gguf", "m-UD-Q4_K_XL.gguf", "m-Q8_0.gguf"}, {"Q4_K_M", "UD-Q4_K_XL", "Q8_0"}},
        {{"m-Q4_K_M-v2.gguf", "m-Q8_0-v2.gguf"}, {"Q4_K_M", "Q8_0"}},
        {{"m-3.1-Q4.gguf", "m-3.2-Q4.gguf"}, {"3.1", "3.2"}},
        {{"m.gguf", "m-Q4.gguf"}, {"m", "m-Q4"}},
        {{"Q4.gguf", "m-Q4.gguf"}, {"Q4", "m-Q4"}},
        {{"a-b-a.gguf", "a-a.gguf"}, {"b-a", "a"}},
        {{"x/model.gguf", "y/model.gguf"}, {"x", "y"}},
        {{"m.Q4.gguf", "m.Q4.gguf"}, {"m.Q4", "m.Q4"}},
        {{"m.Q4.gguf", "m.Q4.gguf", "m.Q8.gguf"}, {"Q4", "Q4", "Q8"}},
        {{"q-00001-of-00003.gguf", "p-00002-of-00002.gguf"}, {"q", "p"}},
        {{"-00001-of-00003.gguf", ".gguf"}, {"-00001-of-00003", ".gguf"}},
        {{"", "a/", "-"}, {"", "a/", "-"}},
        {{"modèle-Q4.gguf", "modéle-Q4.gguf"}, {"modèle", "modéle"}},
        {{"a\nb.gguf"}, {"a\\x0ab"}},
        {{"Meta-Llama-3.1-405B-Instruct-Q4_K_M.gguf"}, {"Meta-Llama-3.1-…-Instruct-Q4_K_M"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct base_label labels[MOST];
        struct status_why why;
        size_t n = 0;
        while (n < MOST && rows[i].paths[n])
            n++;
        struct base_named models[MOST] = {0};
        for (size_t k = 0; k < n; k++)
            models[k].path = rows[i].paths[k];
        assert_int_equal(base_labels(labels, models, n, &why), STATUS_OK);
        for (size_t k = 0; k < n; k++)
            assert_string_equal(labels[k].text, rows[i].labels[k]);
    }
}

/* Names that differ only where they are cut keep apart. */
static void test_cut_names_stay_different(void **state)
{
    (void)state;
    struct base_label labels[2];
    struct status_why why;
    const struct base_named models[] = {{"aaaaaaaaaaaaaaaaaaaaaaaaXaaaaaaaaaaaaaaaaaaaaaaa"},
                                        {"aaaaaaaaaaaaaaaaaaaaaaaaYaaaaaaaaaaaaaaaaaaaaaaa"}};
    assert_int_equal(base_labels(labels, models, 2, &why), STATUS_OK);
    assert_string_equal(labels[0].text, "aaaaaaaaaaaaaaa…aaaaaaaaaaaaaaaa");
    assert_string_equal(labels[1].text, "aaaaaaaaaaaaaa…aaaaaaaaaaaaaa #2");
}

#define HASH "7f0a4b1c2d3e4f5061728394a5b6c7d8e9f00112233445566778899aabbccddee"

static void test_hashes(void **state)
{
    (void)state;
    static const struct {
        struct base_named models[2];
        const char *labels[2];
    } rows[] = {
        {{{"store/sha256-" HASH, "Gemma 3", "Q4_K_M"}, {"b/Gemma 3-Q8_0.gguf", "x", "Q8_0"}},
         {"Q4_K_M", "Q8_0"}},
        {{{HASH, "Gemma 3", ""}, {"m.gguf"}}, {"Gemma 3", "m"}},
        {{{HASH, "", "Q4_K_M"}, {"m.gguf"}}, {"7f0a4b1c2d3e4f5…778899aabbccddee", "m"}},
        {{{"deadbeef", "Gemma 3", "Q8_0"}, {"m.gguf"}}, {"deadbeef", "m"}},
        {{{HASH "-x", "Gemma 3", "Q8_0"}, {"m.gguf"}}, {"7f0a4b1c2d3e4f5…8899aabbccddee-x", "m"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct base_label labels[2];
        struct status_why why;
        assert_int_equal(base_labels(labels, rows[i].models, 2, &why), STATUS_OK);
        for (size_t k = 0; k < 2; k++)
            assert_string_equal(labels[k].text, rows[i].labels[k]);
    }
}

static void test_fit(void **state)
{
    (void)state;
    struct base_label label;
    assert_string_equal(base_label_fit(&label, "12345678", 8), "12345678");
    assert_string_equal(base_label_fit(&label, "123456789", 8), "123…6789");
    assert_string_equal(base_label_fit(&label, "ééééééééé", 8), "ééé…éééé");
    /* Four bytes for each character: as much as there is room for. */
    char text[4 * 40 + 1];
    for (size_t i = 0; i < 40; i++)
        memcpy(text + 4 * i, "😀", 5);
    assert_int_equal(strlen(base_label_fit(&label, text, BASE_LABEL_WIDTH)), 4 * 31 + 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_cut_names_stay_different),
        cmocka_unit_test(test_hashes),
        cmocka_unit_test(test_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

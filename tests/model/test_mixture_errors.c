/* Numbers of experts of a token that cannot be, each with the sentence that opening the file must
 * give. */
#include <stdio.h>
#include <stdlib.h>

#include "model/model.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/gguf_bytes.h"
#include "tests/harness/gguf_writer.h"
#include "tests/harness/tiny_model.h"

/** A file of two layers of 4 experts, without tensors; n values say how many a token goes through.
 */
static struct tiny_model make_mixture(const char *architecture, const int32_t *used, size_t n)
{
    static const struct {
        const char *suffix;
        uint32_t value;
    } sizes[] = {{"block_count", 2},          {"embedding_length", 8},     {"context_length", 16},
                 {"attention.head_count", 2}, {"feed_forward_length", 12}, {"expert_count", 4}};
    struct tiny_model bytes;
    struct gguf_writer *writer;
    char key[64];
    assert_int_equal(gguf_writer_new(&writer, NULL), STATUS_OK);
    gguf_writer_string(writer, "general.architecture", architecture);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        snprintf(key, sizeof key, "%s.%s", architecture, sizes[i].suffix);
        gguf_writer_u32(writer, key, sizes[i].value);
    }
    snprintf(key, sizeof key, "%s.expert_used_count", architecture);
    if (n == 1)
        gguf_writer_u32(writer, key, (uint32_t)*used);
    else if (n > 1)
        gguf_writer_i32s(writer, key, used, n);
    assert_int_equal(gguf_writer_finish_memory(writer, &bytes.data, &bytes.n_bytes, NULL),
                     STATUS_OK);
    return bytes;
}

static void test_experts_used(void **state)
{
    (void)state;
    static const struct {
        const char *architecture;
        int32_t used[3];
        size_t n;
        const char *sentence;
    } cases[] = {
        {"qwen3moe",
         {0},
         0,
         "tiny.gguf: key 'qwen3moe.expert_used_count' is missing, expected a whole number"},
        {"qwen3moe", {0}, 1, "tiny.gguf: key 'qwen3moe.expert_used_count' is 0, expected 1 to 4"},
        {"qwen2moe", {5}, 1, "tiny.gguf: key 'qwen2moe.expert_used_count' is 5, expected 1 to 4"},
        {"qwen3moe",
         {2, 2},
         2,
         "tiny.gguf: key 'qwen3moe.expert_used_count' is of type array of i32, expected an "
         "integer"},
        {"nemotron_h_moe",
         {0},
         0,
         "tiny.gguf: key 'nemotron_h_moe.expert_used_count' is missing, expected a whole number"},
        {"nemotron_h_moe",
         {2, 0},
         2,
         "tiny.gguf: key 'nemotron_h_moe.expert_used_count' has 0 for layer 1, which has experts, "
         "expected 1 to 4"},
        {"nemotron_h_moe",
         {0, 0},
         2,
         "tiny.gguf: key 'nemotron_h_moe.expert_used_count' has 0 for layer 0, which has experts, "
         "expected 1 to 4"},
        {"nemotron_h_moe",
         {2, 5},
         2,
         "tiny.gguf: key 'nemotron_h_moe.expert_used_count' has 5 for layer 1, expected 0 to 4"},
        {"nemotron_h_moe",
         {2, 2, 2},
         3,
         "tiny.gguf: key 'nemotron_h_moe.expert_used_count' has 3 elements, expected 2, one per "
         "layer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tiny_model bytes = make_mixture(cases[i].architecture, cases[i].used, cases[i].n);
        struct gguf_file *file;
        struct model *model;
        struct status_why why = {0};
        assert_int_equal(gguf_bytes_open(&file, bytes.data, bytes.n_bytes, "tiny.gguf", &why),
                         STATUS_OK);
        assert_int_equal(model_open(&model, file, &(struct model_options){0}, &why), STATUS_FORMAT);
        assert_string_equal(why.text, cases[i].sentence);
        assert_null(model);
        free(bytes.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_experts_used)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

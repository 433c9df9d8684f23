/* Tensors that a file lacks although others of it say that it should have them. */
#include <stdlib.h>

#include "model/model.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/gguf_bytes.h"
#include "tests/harness/tiny_model.h"

static const struct {
    struct tiny_model_options tiny;
    const char *sentence;
} broken[] = {
    {{.skip = "blk.1.attn_q.bias", .biases = true},
     "tiny.gguf: tensor 'blk.1.attn_q.bias' is missing, expected it as in layer 0"},
    {{.skip = "blk.0.ffn_down.bias", .biases = true},
     "tiny.gguf: tensor 'blk.0.ffn_down.bias' is missing, expected it beside "
     "'blk.0.ffn_gate.bias'"},
    {{.skip = "blk.0.attn_k.bias", .biases = true, .n_layers = 1},
     "tiny.gguf: tensor 'blk.0.attn_k.bias' is missing, expected it beside 'blk.0.attn_q.bias'"},
    {{.skip = "blk.0.ffn_up.scale", .scales = true},
     "tiny.gguf: tensor 'blk.0.ffn_up.scale' is missing, expected it as 'blk.1.ffn_up.weight' of "
     "the same type has one"},
    {{.skip = "blk.0.ffn_up.scale",
      .scales = true,
      .n_layers = 1,
      .n_ff = 128,
      .type = GGUF_TYPE_NVFP4},
     "tiny.gguf: tensor 'blk.0.ffn_up.scale' is missing, expected it as 'blk.0.ffn_gate.weight' of "
     "the same type has one"},
    {{.add_tensor = "blk.0.attn_q.weight.scale", .scales = true},
     "tiny.gguf: tensor 'blk.0.attn_q.weight.scale' is not understood by architecture llama, and "
     "results without it may be wrong"},
    {{.add_tensor = "output.scale", .tied_head = true},
     "tiny.gguf: tensor 'output.scale' is not understood by architecture llama, and results "
     "without it may be wrong"},
    {{.add_tensor = "rope_factors_short.weight"},
     "tiny.gguf: tensor 'rope_factors_long.weight' is missing, expected one of shape [8]"},
    {{.add_tensor = "rope_freqs.weight", .long_factors = true},
     "tiny.gguf: tensor 'rope_freqs.weight' is not understood by architecture llama, and results "
     "without it may be wrong"},
};

static void test_sentences(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        struct tiny_model bytes = tiny_model_make(&broken[i].tiny);
        struct gguf_file *file;
        struct model *model;
        struct status_why why = {0};
        assert_int_equal(gguf_bytes_open(&file, bytes.data, bytes.n_bytes, "tiny.gguf", &why), 0);
        assert_int_equal(model_open(&model, file, &(struct model_options){0}, &why), STATUS_FORMAT);
        assert_string_equal(why.text, broken[i].sentence);
        free(bytes.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sentences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Broken models, each with the sentence that opening it must give, and what is only remarked on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/gguf_bytes.h"
#include "tests/harness/tiny_model.h"

/** Open from memory; the model owns the file, not the bytes. */
static enum status open_bytes(const struct tiny_model *bytes, const struct model_options *options,
                              struct model **model, struct status_why *why)
{
    struct gguf_file *file;
    enum status status = gguf_bytes_open(&file, bytes->data, bytes->n_bytes, "tiny.gguf", why);
    assert_int_equal(status, STATUS_OK);
    return model_open(model, file, options, why);
}

static void assert_fails(const struct tiny_model_options *tiny, const struct model_options *options,
                         enum status status, const char *sentence)
{
    struct tiny_model bytes = tiny_model_make(tiny);
    struct model *model;
    struct status_why why = {0};
    enum status found = open_bytes(&bytes, options, &model, &why);
    if (found != status || strcmp(why.text, sentence) != 0)
        fail_msg("found %s: \"%s\"\nexpected %s: \"%s\"", status_name(found), why.text,
                 status_name(status), sentence);
    assert_null(model);
    free(bytes.data);
}

static void assert_remarks(const struct tiny_model_options *tiny,
                           const struct model_options *options, const char *remarks)
{
    struct tiny_model bytes = tiny_model_make(tiny);
    struct model *model;
    struct status_why why = {0};
    if (open_bytes(&bytes, options, &model, &why) != STATUS_OK)
        fail_msg("%s", why.text);
    assert_string_equal(model_remarks(model), remarks);
    model_close(model);
    free(bytes.data);
}

#define WHOLE_CONTEXT                                                                              \
    "key llama.rope.scaling.original_context_length is missing: YaRN takes the whole context for " \
    "what was stretched\n"
#define MISSING(key) "tiny.gguf: key '" key "' is missing, expected a whole number"

/** Files that lack something, or have too much. */
static const struct {
    struct tiny_model_options tiny;
    const char *sentence;
} broken_files[] = {
    {{.skip = "general.architecture"}, "tiny.gguf: key 'general.architecture' is missing"},
    {{.skip = "llama.block_count"}, MISSING("llama.block_count")},
    {{.skip = "llama.embedding_length"}, MISSING("llama.embedding_length")},
    {{.skip = "llama.context_length"}, MISSING("llama.context_length")},
    {{.skip = "llama.feed_forward_length"}, MISSING("llama.feed_forward_length")},
    {{.skip = "llama.attention.head_count"}, MISSING("llama.attention.head_count")},
    {{.skip = "llama.attention.layer_norm_rms_epsilon"},
     "tiny.gguf: key 'llama.attention.layer_norm_rms_epsilon' is missing, expected a float"},
    {{.skip = "llama.expert_used_count", .n_experts = 4, .n_experts_used = 2},
     MISSING("llama.expert_used_count")},
    {{.add_key = "llama.attention.clamp"},
     "tiny.gguf: key 'llama.attention.clamp' is not understood by architecture llama, and "
     "results without it may be wrong"},
    {{.skip = "token_embd.weight"},
     "tiny.gguf: tensor 'token_embd.weight' is missing, expected one of shape [64, 288]"},
    {{.skip = "output_norm.weight"},
     "tiny.gguf: tensor 'output_norm.weight' is missing, expected one of shape [64]"},
    {{.skip = "blk.1.attn_norm.weight"},
     "tiny.gguf: tensor 'blk.1.attn_norm.weight' is missing, expected one of shape [64]"},
    {{.skip = "blk.0.attn_q.weight"},
     "tiny.gguf: tensor 'blk.0.attn_q.weight' is missing, expected one of shape [64, 64]"},
    {{.skip = "blk.0.attn_k.weight"},
     "tiny.gguf: tensor 'blk.0.attn_k.weight' is missing, expected one of shape [64, 32]"},
    {{.skip = "blk.1.attn_v.weight"},
     "tiny.gguf: tensor 'blk.1.attn_v.weight' is missing, expected one of shape [64, 32]"},
    {{.skip = "blk.1.attn_output.weight"},
     "tiny.gguf: tensor 'blk.1.attn_output.weight' is missing, expected one of shape [64, 64]"},
    {{.skip = "blk.1.ffn_norm.weight"},
     "tiny.gguf: tensor 'blk.1.ffn_norm.weight' is missing, expected one of shape [64]"},
    {{.skip = "blk.1.ffn_gate.weight"},
     "tiny.gguf: tensor 'blk.1.ffn_gate.weight' is missing, expected one of shape [64, 96]"},
    {{.skip = "blk.1.ffn_down.weight"},
     "tiny.gguf: tensor 'blk.1.ffn_down.weight' is missing, expected one of shape [96, 64]"},
    {{.skip = "blk.0.ffn_gate_inp.weight", .n_experts = 4, .n_experts_used = 2},
     "tiny.gguf: tensor 'blk.0.ffn_gate_inp.weight' is missing, expected one of shape [64, 4]"},
    {{.skip = "blk.0.ffn_up_exps.weight", .n_experts = 4, .n_experts_used = 2},
     "tiny.gguf: tensor 'blk.0.ffn_up_exps.weight' is missing, expected one of shape [64, 96, "
     "4]"},
    {{.skip = "blk.1.ffn_down.2.weight",
      .n_experts = 3,
      .n_experts_used = 2,
      .split_experts = true},
     "tiny.gguf: tensor 'blk.1.ffn_down.2.weight' is missing, expected one of shape [96, 64]"},
    {{.reshape = "token_embd.weight"},
     "tiny.gguf: tensor 'token_embd.weight' has shape [64, 289], expected [64, 288]"},
    {{.reshape = "output.weight"},
     "tiny.gguf: tensor 'output.weight' has shape [64, 289], expected [64, 288]"},
    {{.reshape = "output_norm.weight"},
     "tiny.gguf: tensor 'output_norm.weight' has shape [65], expected [64]"},
    {{.reshape = "blk.0.attn_k.weight"},
     "tiny.gguf: tensor 'blk.0.attn_k.weight' has shape [64, 33], expected [64, 32]"},
    {{.reshape = "blk.0.attn_k.bias", .biases = true},
     "tiny.gguf: tensor 'blk.0.attn_k.bias' has shape [33], expected [32]"},
    {{.reshape = "blk.0.ffn_down.scale", .scales = true},
     "tiny.gguf: tensor 'blk.0.ffn_down.scale' has shape [2], expected [1]"},
    {{.reshape = "blk.0.ffn_down.input_scale", .scales = true},
     "tiny.gguf: tensor 'blk.0.ffn_down.input_scale' has shape [2], expected [1]"},
    {{.reshape = "blk.1.attn_qkv.weight", .fused_qkv = true},
     "tiny.gguf: tensor 'blk.1.attn_qkv.weight' has shape [64, 129], expected [64, 128]"},
    {{.reshape = "blk.1.ffn_up_exps.weight", .n_experts = 4, .n_experts_used = 2},
     "tiny.gguf: tensor 'blk.1.ffn_up_exps.weight' has shape [64, 97, 4], expected "
     "[64, 96, 4]"},
    {{.reshape = "rope_freqs.weight", .rope_factors = true},
     "tiny.gguf: tensor 'rope_freqs.weight' has shape [9], expected [8]"},
    {{.add_tensor = "blk.0.attn_q_norm.weight"},
     "tiny.gguf: tensor 'blk.0.attn_q_norm.weight' is not understood by architecture llama, "
     "and results without it may be wrong"},
    {{.add_tensor = "blk.0.attn_q.weight", .fused_qkv = true},
     "tiny.gguf: tensor 'blk.0.attn_q.weight' is not understood by architecture llama, and "
     "results without it may be wrong"},
};

static void test_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof broken_files / sizeof broken_files[0]; i++)
        assert_fails(&broken_files[i].tiny, &(struct model_options){0}, STATUS_FORMAT,
                     broken_files[i].sentence);
}

#define ARCHITECTURES                                                                              \
    "llama, qwen2, qwen3, mistral3, qwen3moe, gemma3, gemma2, gpt-oss, phi3, glm4moe, "            \
    "qwen35, qwen35moe, qwen3next, gemma4, deepseek2, minimax-m2, llama4, olmo2, granite, "        \
    "granitemoe, smollm3, glm4, cohere2, command-r, qwen2moe, starcoder2, nemotron_h, "            \
    "nemotron_h_moe, qwen2vl, qwen3vl, qwen3vlmoe, mistral4, seed_oss, ernie4_5, "                 \
    "ernie4_5-moe, hunyuan-dense, hunyuan-moe, hy_v3, exaone4, exaone-moe, dots1, "                \
    "bailingmoe2, arcee, olmoe, mellum, cohere2moe, phi2, stablelm, lfm2, lfm2moe, "               \
    "granitehybrid, falcon-h1, afmoe, laguna, mimo2, step35, smallthinker, apertus, "              \
    "deepseek32, glm-dsa, minimax-m3, kimi-linear, deepseek4, gemma3n, gemma, exaone, "            \
    "internlm2, deepseek, minicpm, deci, phimoe, muse-glimmer, spark2_5, maple, granite_swa, "     \
    "glm5next, glm5-next, bailingmoe3, qwen4exp, hy_v4, dots3note, "                               \
    "kimi-k3"

/** Values that cannot be, put into a good file by --override-kv. */
static const struct {
    const char *override;
    const char *sentence;
    enum status status;
} broken_values[] = {
    {"general.architecture=str:gpt2",
     "tiny.gguf: key 'general.architecture' is 'gpt2', supported: " ARCHITECTURES,
     STATUS_UNSUPPORTED},
    {"general.architecture=str:qwn3",
     "tiny.gguf: key 'general.architecture' is 'qwn3'; the nearest name is qwen3, "
     "supported: " ARCHITECTURES,
     STATUS_UNSUPPORTED},
    {"general.architecture=str:transformer",
     "tiny.gguf: key 'general.architecture' is 'transformer', supported: " ARCHITECTURES,
     STATUS_UNSUPPORTED},
    {"general.architecture=int:3",
     "tiny.gguf: key 'general.architecture' is of type i64, expected string", STATUS_FORMAT},
    {"llama.block_count=int:0", "tiny.gguf: key 'llama.block_count' is 0, expected 1 to 1024",
     STATUS_FORMAT},
    {"llama.block_count=int:4294967295",
     "tiny.gguf: key 'llama.block_count' is 4294967295, expected 1 to 1024", STATUS_FORMAT},
    {"llama.block_count=int:-1",
     "tiny.gguf: key 'llama.block_count' is -1, expected an integer from 0 to 4294967295",
     STATUS_FORMAT},
    {"llama.block_count=str:two",
     "tiny.gguf: key 'llama.block_count' is of type string, expected an integer", STATUS_FORMAT},
    {"llama.block_count=int:3",
     "tiny.gguf: tensor 'blk.2.attn_norm.weight' is missing, expected one of shape [64]",
     STATUS_FORMAT},
    {"llama.embedding_length=int:1048577",
     "tiny.gguf: key 'llama.embedding_length' is 1048577, expected 1 to 1048576", STATUS_FORMAT},
    {"llama.embedding_length=int:65",
     "tiny.gguf: width 65 (key 'llama.embedding_length') does not divide into 4 heads of 2 "
     "or more, expected a multiple, or key 'llama.attention.key_length'",
     STATUS_FORMAT},
    {"llama.embedding_length=int:128",
     "tiny.gguf: tensor 'token_embd.weight' has shape [64, 288], expected [128, 288]",
     STATUS_FORMAT},
    {"llama.context_length=int:0",
     "tiny.gguf: key 'llama.context_length' is 0, expected 1 to 2147483647", STATUS_FORMAT},
    {"llama.feed_forward_length=int:16777217",
     "tiny.gguf: key 'llama.feed_forward_length' is 16777217, expected 1 to 16777216",
     STATUS_FORMAT},
    {"llama.attention.head_count=int:0",
     "tiny.gguf: key 'llama.attention.head_count' is 0, expected 1 to 65536", STATUS_FORMAT},
    {"llama.attention.head_count_kv=int:3",
     "tiny.gguf: layer 0 has 3 key/value heads (key 'llama.attention.head_count_kv'), "
     "expected a divisor of its 4 heads",
     STATUS_FORMAT},
    {"llama.attention.head_count_kv=int:0",
     "tiny.gguf: key 'llama.attention.head_count_kv' is 0, expected 1 to 65536", STATUS_FORMAT},
    {"llama.attention.key_length=int:1",
     "tiny.gguf: key 'llama.attention.key_length' is 1, expected 2 to 65536", STATUS_FORMAT},
    {"llama.attention.value_length=int:32",
     "tiny.gguf: tensor 'blk.0.attn_v.weight' has shape [64, 32], expected [64, 64]",
     STATUS_FORMAT},
    {"llama.attention.causal=bool:false",
     "tiny.gguf: key 'llama.attention.causal' is false, supported is true", STATUS_UNSUPPORTED},
    {"llama.attention.layer_norm_rms_epsilon=float:0",
     "tiny.gguf: key 'llama.attention.layer_norm_rms_epsilon' is 0, expected a number "
     "between 0 and 1",
     STATUS_FORMAT},
    {"llama.attention.layer_norm_rms_epsilon=float:1e300",
     "tiny.gguf: key 'llama.attention.layer_norm_rms_epsilon' is inf, expected a finite "
     "number",
     STATUS_FORMAT},
    {"llama.attention.layer_norm_rms_epsilon=int:1",
     "tiny.gguf: key 'llama.attention.layer_norm_rms_epsilon' is of type i64, expected f32 "
     "or f64",
     STATUS_FORMAT},
    {"llama.expert_used_count=int:2",
     "tiny.gguf: key 'llama.expert_used_count' is 2, expected 0 to 0", STATUS_FORMAT},
    {"llama.expert_count=int:1025",
     "tiny.gguf: key 'llama.expert_count' is 1025, expected 0 to 1024", STATUS_FORMAT},
    {"llama.rope.dimension_count=int:18",
     "tiny.gguf: key 'llama.rope.dimension_count' is 18, expected 2 to 16", STATUS_FORMAT},
    {"llama.rope.dimension_count=int:7",
     "tiny.gguf: 7 elements of a head are rotated (key 'llama.rope.dimension_count'), "
     "expected an even number",
     STATUS_FORMAT},
    {"llama.rope.freq_base=float:-1",
     "tiny.gguf: key 'llama.rope.freq_base' is -1, expected a number above 0", STATUS_FORMAT},
    {"llama.rope.scaling.type=str:cubic",
     "tiny.gguf: key 'llama.rope.scaling.type' is 'cubic', supported are none, linear, yarn and "
     "longrope",
     STATUS_UNSUPPORTED},
    {"llama.rope.scaling.type=str:longrope",
     "tiny.gguf: tensor 'rope_factors_long.weight' is missing, expected one of shape [8]",
     STATUS_FORMAT},
    {"llama.rope.scaling.factor=float:-2",
     "tiny.gguf: key 'llama.rope.scaling.factor' is -2, expected a number above 0", STATUS_FORMAT},
    {"llama.rope.scaling.attn_factor=float:0",
     "tiny.gguf: key 'llama.rope.scaling.attn_factor' is 0, expected a number above 0",
     STATUS_FORMAT},
    {"llama.rope.scaling.original_context_length=int:0",
     "tiny.gguf: key 'llama.rope.scaling.original_context_length' is 0, expected 1 to "
     "2147483647",
     STATUS_FORMAT},
    {"llama.rope.scaling.yarn_ext_factor=float:1.0000001",
     "tiny.gguf: key 'llama.rope.scaling.yarn_ext_factor' is 1.0000001, expected 0 to 1, or below "
     "0 for the default",
     STATUS_FORMAT},
    {"llama.attention.layer_norm_rms_epsilon=float:1.0000001",
     "tiny.gguf: key 'llama.attention.layer_norm_rms_epsilon' is 1.0000001, expected a number "
     "between 0 and 1",
     STATUS_FORMAT},
    {"llama.rope.scaling.yarn_beta_fast=float:0",
     "tiny.gguf: key 'llama.rope.scaling.yarn_beta_fast' is 0, expected a number above 0",
     STATUS_FORMAT},
    {"llama.rope.frequency_base=float:1e6",
     "tiny.gguf: key 'llama.rope.frequency_base' is not understood by architecture llama, "
     "and results without it may be wrong",
     STATUS_FORMAT},
    {"llama.block_count",
     "override \"llama.block_count\" cannot be read, expected KEY=TYPE:VALUE with TYPE int, "
     "float, bool (true or false) or str (at most 256 bytes)",
     STATUS_USAGE},
    {"llama.block_count=2",
     "override \"llama.block_count=2\" cannot be read, expected KEY=TYPE:VALUE with TYPE "
     "int, float, bool (true or false) or str (at most 256 bytes)",
     STATUS_USAGE},
    {"llama.block_count=int:2x",
     "override \"llama.block_count=int:2x\" cannot be read, expected KEY=TYPE:VALUE with "
     "TYPE int, float, bool (true or false) or str (at most 256 bytes)",
     STATUS_USAGE},
    {"a=bool:1",
     "override \"a=bool:1\" cannot be read, expected KEY=TYPE:VALUE with TYPE int, float, "
     "bool (true or false) or str (at most 256 bytes)",
     STATUS_USAGE},
    {"a=float:nan",
     "override \"a=float:nan\" cannot be read, expected KEY=TYPE:VALUE with TYPE int, "
     "float, bool (true or false) or str (at most 256 bytes)",
     STATUS_USAGE},
};

static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof broken_values / sizeof broken_values[0]; i++) {
        const char *const lines[] = {broken_values[i].override};
        struct model_options options = {.overrides = lines, .n_overrides = 1};
        assert_fails(&(struct tiny_model_options){0}, &options, broken_values[i].status,
                     broken_values[i].sentence);
    }
}

/** Arrays that hold a value per layer. */
static void test_arrays(void **state)
{
    (void)state;
    static const char *const three_layers[] = {"llama.block_count=int:3"};
    struct model_options options = {.overrides = three_layers, .n_overrides = 1};
    assert_fails(&(struct tiny_model_options){.vary_layers = true}, &options, STATUS_FORMAT,
                 "tiny.gguf: key 'llama.attention.head_count' has 2 elements, expected 3, one per "
                 "layer");
    assert_fails(&(struct tiny_model_options){.vary_layers = true, .n_kv_heads = 1},
                 &(struct model_options){0}, STATUS_FORMAT,
                 "tiny.gguf: key 'llama.attention.head_count_kv' has 0 for layer 1, expected 1 "
                 "to 65536");
}

/** What the caller may ask for. */
static void test_options(void **state)
{
    (void)state;
    static const struct {
        struct model_options options;
        const char *sentence;
    } cases[] = {
        {{.rope_scaling = "cubic"},
         "RoPE scaling \"cubic\" does not exist, expected none, linear or yarn"},
        {{.rope_freq_scale = -1}, "the RoPE frequency scale is -1, expected a number above 0"},
        {{.rope_freq_scale = NAN}, "the RoPE frequency scale is nan, expected a number above 0"},
        {{.rope_freq_base = INFINITY},
         "the value for llama.rope.freq_base is inf, expected a number above 0"},
        {{.yarn_beta_slow = -3},
         "the value for llama.rope.scaling.yarn_beta_slow is -3, expected a number above 0"},
        {{.has_yarn_ext_factor = true, .yarn_ext_factor = 2},
         "the value for llama.rope.scaling.yarn_ext_factor is 2, expected 0 to 1, or below 0 for "
         "the default"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_fails(&(struct tiny_model_options){0}, &cases[i].options, STATUS_USAGE,
                     cases[i].sentence);
    assert_fails(&(struct tiny_model_options){.rope_freq_base = 1},
                 &(struct model_options){.rope_scaling = "yarn"}, STATUS_FORMAT,
                 "tiny.gguf: key 'llama.rope.freq_base' is 1, expected more than 1 with YaRN");
}

/** Overwrite n bytes of a tensor's data, in the file's bytes. */
static void patch(struct tiny_model *bytes, const char *name, size_t at, const void *with, size_t n)
{
    struct gguf_file *file;
    assert_int_equal(gguf_bytes_open(&file, bytes->data, bytes->n_bytes, "x", NULL), STATUS_OK);
    const struct gguf_tensor *t = gguf_tensor_find(file, name);
    assert_non_null(t);
    size_t offset = (size_t)((const char *)t->data - (const char *)bytes->data);
    memcpy((char *)bytes->data + offset + at, with, n);
    gguf_close(file);
}

/** Values in the tensors that cannot be. */
static void test_contents(void **state)
{
    (void)state;
    static const uint8_t bad_scale = 0xff;
    static const float nan = NAN;
    static const float negative = -1;
    static const struct {
        struct tiny_model_options tiny;
        const char *tensor;
        size_t at;
        const void *with;
        size_t n;
        const char *sentence;
    } cases[] = {
        {{.type = GGUF_TYPE_NVFP4, .n_ff = 64},
         "blk.1.ffn_up.weight",
         5 * 36 + 2,
         &bad_scale,
         1,
         "tiny.gguf: block 5 of tensor 'blk.1.ffn_up.weight' holds a bit pattern that type NVFP4 "
         "does not have, expected none"},
        {{.scales = true},
         "blk.0.attn_v.scale",
         0,
         &nan,
         4,
         "tiny.gguf: element 0 of tensor 'blk.0.attn_v.scale' is nan, expected a finite number"},
        {{.rope_factors = true},
         "rope_freqs.weight",
         12,
         &negative,
         4,
         "tiny.gguf: element 3 of tensor 'rope_freqs.weight' is -1, expected more than 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tiny_model bytes = tiny_model_make(&cases[i].tiny);
        patch(&bytes, cases[i].tensor, cases[i].at, cases[i].with, cases[i].n);
        struct model *model;
        struct status_why why = {0};
        assert_int_equal(open_bytes(&bytes, &(struct model_options){0}, &model, &why),
                         STATUS_FORMAT);
        assert_string_equal(why.text, cases[i].sentence);
        free(bytes.data);
    }
}

static void test_remarks(void **state)
{
    (void)state;
    struct model_options allow = {.allow_unknown = true};
    assert_remarks(&(struct tiny_model_options){0}, &(struct model_options){0}, "");
    assert_remarks(&(struct tiny_model_options){.tied_head = true}, &(struct model_options){0},
                   "no tensor 'output.weight': the head is token_embd.weight\n");
    assert_remarks(&(struct tiny_model_options){.add_tensor = "blk.0.attn_q_norm.weight"}, &allow,
                   "tensor 'blk.0.attn_q_norm.weight' is not understood and not used\n");
    assert_remarks(&(struct tiny_model_options){.add_key = "llama.attention.clamp"}, &allow,
                   "key 'llama.attention.clamp' is not understood and has no effect\n");
    assert_remarks(&(struct tiny_model_options){.sliding_window = 17}, &(struct model_options){0},
                   "attention sees a sliding window of 17 tokens "
                   "(llama.attention.sliding_window; llama.cpp ignores it)\n");
    assert_remarks(&(struct tiny_model_options){.sliding_window = 17},
                   &(struct model_options){.llama_compat = true},
                   "llama.attention.sliding_window (17) is ignored, as llama.cpp does\n");
    static const char *const beta[] = {"llama.rope.scaling.yarn_beta_fast=float:1"};
    static const char *const same[] = {"llama.rope.scaling.yarn_attn_factor=float:1.1386294"};
    static const char *const other[] = {"llama.rope.scaling.yarn_attn_factor=float:0.875"};
    static const struct tiny_model_options yarn = {.rope_scaling = "yarn", .rope_factor = 4};
    assert_remarks(&yarn, &(struct model_options){.overrides = beta, .n_overrides = 1},
                   "override of a key that the file does not have: "
                   "llama.rope.scaling.yarn_beta_fast=float:1\n"
                   "llama.rope.scaling.yarn_beta_fast is 1; llama.cpp ignores it and takes "
                   "32\n" WHOLE_CONTEXT);
    assert_remarks(
        &yarn, &(struct model_options){.overrides = beta, .n_overrides = 1, .llama_compat = true},
        "override of a key that the file does not have: "
        "llama.rope.scaling.yarn_beta_fast=float:1\n"
        "llama.rope.scaling.yarn_beta_fast (1) is ignored, as llama.cpp does\n" WHOLE_CONTEXT);
    assert_remarks(&yarn, &(struct model_options){.overrides = same, .n_overrides = 1},
                   "override of a key that the file does not have: "
                   "llama.rope.scaling.yarn_attn_factor=float:1.1386294\n" WHOLE_CONTEXT);
    assert_remarks(
        &yarn, &(struct model_options){.overrides = other, .n_overrides = 1},
        "override of a key that the file does not have: "
        "llama.rope.scaling.yarn_attn_factor=float:0.875\n"
        "llama.rope.scaling.yarn_attn_factor (0.875) has no effect, as in llama.cpp: "
        "YaRN's own factor is 1.1386294; --yarn-attn-factor 0.875 multiplies it\n" WHOLE_CONTEXT);
    assert_remarks(&(struct tiny_model_options){.add_key = "llama.vocab_size"},
                   &(struct model_options){0},
                   "llama.vocab_size is 1, the vocabulary has 288 tokens: the vocabulary "
                   "counts\n");
    static const char *const lines[] = {"tokenizer.ggml.add_bos_token=bool:false"};
    assert_remarks(&(struct tiny_model_options){0},
                   &(struct model_options){.overrides = lines, .n_overrides = 1},
                   "override of a key that the file does not have: "
                   "tokenizer.ggml.add_bos_token=bool:false\n");
}

/** Zeros after the last tensor are more than padding, and harmless. */
static void test_remark_on_zeros(void **state)
{
    (void)state;
    struct tiny_model bytes = tiny_model_make(&(struct tiny_model_options){0});
    struct model *model;
    struct status_why why = {0};
    bytes.data = realloc(bytes.data, bytes.n_bytes + 4096);
    memset((char *)bytes.data + bytes.n_bytes, 0, 4096);
    bytes.n_bytes += 4096;
    assert_int_equal(open_bytes(&bytes, &(struct model_options){0}, &model, &why), STATUS_OK);
    assert_string_equal(model_remarks(model),
                        "4096 zero bytes after the last tensor belong to none\n");
    model_close(model);
    free(bytes.data);
}

/** --override-kv reaches the tokenizer too. */
static void test_override_tokenizer(void **state)
{
    (void)state;
    static const char *const lines[] = {"tokenizer.ggml.add_bos_token=bool:false",
                                        "tokenizer.ggml.bos_token_id=int:7",
                                        "general.name=str:other"};
    struct tiny_model bytes = tiny_model_make(&(struct tiny_model_options){0});
    struct model *model;
    struct status_why why = {0};
    struct model_options options = {.overrides = lines, .n_overrides = 3};
    assert_int_equal(open_bytes(&bytes, &options, &model, &why), STATUS_OK);
    assert_false(model_adds_bos(model_tokenizer(model)));
    assert_int_equal(model_token_bos(model_tokenizer(model)), 7);
    assert_string_equal(model_hparams(model)->name, "other");
    model_close(model);
    free(bytes.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),           cmocka_unit_test(test_values),
        cmocka_unit_test(test_arrays),          cmocka_unit_test(test_options),
        cmocka_unit_test(test_contents),        cmocka_unit_test(test_remarks),
        cmocka_unit_test(test_remark_on_zeros), cmocka_unit_test(test_override_tokenizer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

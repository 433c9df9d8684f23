/* Published folders of Qwen 3.8 Flash Next. */
#include "model/arch/recurrent/qwen35.h"
#include "model/folder/state.h"
#include "model/hparams/table.h"

static const struct model_folder_name names[] = {
    {"attn_hyper_connection.hc_norm", "hc_attn_norm"},
    {"attn_hyper_connection.input_mix_weight_down", "hc_attn_down"},
    {"attn_hyper_connection.input_mix_weight_up", "hc_attn_up"},
    {"attn_hyper_connection.block_inject_weight", "hc_attn_inject"},
    {"mlp_hyper_connection.hc_norm", "hc_ffn_norm"},
    {"mlp_hyper_connection.input_mix_weight_down", "hc_ffn_down"},
    {"mlp_hyper_connection.input_mix_weight_up", "hc_ffn_up"},
    {"mlp_hyper_connection.block_inject_weight", "hc_ffn_inject"},
    {"hyper_connection_mixer.hc_norm", "output_hc_norm"},
    {"hyper_connection_mixer.input_mix_weight_down", "output_hc_down"},
    {"hyper_connection_mixer.input_mix_weight_up", "output_hc_up"},
    {"self_attn.indexer.index_qk_proj", "indexer.q_proj", MODEL_INDEX_QUERIES},
    {"self_attn.indexer.index_qk_proj", "indexer.k_proj", MODEL_INDEX_KEY},
    {"self_attn.indexer.q_layernorm", "indexer.q_norm"},
    {"self_attn.indexer.k_layernorm", "indexer.k_norm"},
    {"ple.key_proj", "ple_key"},
    {"ple.value_proj", "ple_value"},
    {"ple.norm_key", "ple_norm_key", MODEL_PLUS_ONE},
    {"ple.norm_query", "ple_norm_query", MODEL_PLUS_ONE},
    {"ple.norm_conv", "ple_norm_conv", MODEL_PLUS_ONE},
    {"ple.conv1d", "ple_conv1d", MODEL_SQUEEZE},
    {"ple.ple_embedding.ngram_embedding.shard_*", "per_layer_token_embd", MODEL_PARTS},
    {"ple.ple_embedding.layer_multipliers", "ple.layer_multipliers", MODEL_NUMBERS},
    {"ple.ple_embedding.ngram_heads_offsets", "ple.head_offsets", MODEL_NUMBERS},
    {"ple.ple_embedding.ngram_heads_vocab_sizes", "ple.head_vocab_sizes", MODEL_NUMBERS},
    {0},
};

static const char kinds[] = "linear_attention full_attention indexed_attention";

/** The indexer, which all layers of attention have alike. */
static void write_indexer(struct model_folder *f)
{
    uint32_t interval = model_config_u32_or(f, "full_attention_interval", 4);
    uint32_t run = model_config_u32(f, "indexer_compress_ratio"), runs[MODEL_MAX_BLOCKS] = {0};
    uint8_t kind[MODEL_MAX_BLOCKS];
    model_write_u32(f, "attention.indexer.head_count", model_config_u32(f, "indexer_n_heads"));
    model_write_u32(f, "attention.indexer.key_length", model_config_u32(f, "indexer_head_dim"));
    model_write_u32(f, "attention.indexer.top_k", model_config_u32(f, "indexer_budget"));
    bool listed = model_config_kinds(f, "layer_types", kinds, kind) > 0;
    for (uint32_t i = 0; i < f->n_layers; i++)
        if (listed ? kind[i] > 0 : interval > 0 && (i + 1) % interval == 0)
            runs[i] = run;
    model_write_u32s(f, "attention.compress_ratios", runs, f->n_layers);
}

/** The token that ends a text: of a list the first. */
static uint32_t end_of_text(const struct model_folder *f)
{
    static const char name[] = "eos_token_id";
    struct base_field item = model_config_find(f, name), first = {0};
    if (cJSON_IsArray(item.json) && base_field_next(item, &first))
        return (uint32_t)base_field_uint(first, "", UINT32_MAX);
    return model_config_u32(f, name);
}

/** The layer that begins with an embedding of the last tokens; constants of it are tensors. */
static void write_ngrams(struct model_folder *f)
{
    static const char *const keys[] = {"ple.ngram_size", "ple.heads_per_ngram", "ple.conv_kernel"};
    struct base_field list = model_config_find(f, "ple_layer_ids");
    uint32_t layer = 0, numbers[] = {0, 0, 0},
             width = model_config_u32_or(f, "ple_embed_dim", f->n_embd);
    if (base_field_count(list) == 0)
        return;
    model_config_u32s(list, "", &layer, 1);
    if (layer == 0)
        base_field_fail(list, STATUS_FORMAT, "has layer 0, expected 1 or more");
    layer--;
    model_write_u32s(f, "ple.layers", &layer, 1);
    for (size_t i = 0; i < 3; i++) {
        numbers[i] = model_config_u32(f, model_hparam_row(keys[i])->members);
        model_write_u32(f, keys[i], numbers[i]);
    }
    model_write_u32(f, "ple.eos_token_id", end_of_text(f));
    if (width != f->n_embd)
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "member 'ple_embed_dim' is %u, expected %u, which is 'hidden_size'",
                          width, f->n_embd);
    uint64_t n_hashes = (numbers[0] - 1ULL) * numbers[1];
    model_write_u32(f, "embedding_length_per_layer_input",
                    n_hashes > 0 ? (uint32_t)(width / n_hashes) : 0);
}

/** The output of delta nets has a sigmoid; without the member it is the model's activation. */
static void check_gate(struct model_folder *f)
{
    static const char name[] = "output_gate_type";
    struct base_field item = model_config_find(f, name);
    struct base_field_shown shown;
    if (!base_field_is(item, "sigmoid"))
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "member '%s' is %s, expected sigmoid, which is what architecture %s "
                          "computes",
                          name, item.json ? base_field_show(&shown, item) : "absent",
                          f->arch->name);
}

static void write(struct model_folder *f)
{
    model_qwen35_write(f, kinds);
    write_indexer(f);
    write_ngrams(f);
    check_gate(f);
}

const struct model_folder_map model_qwen4exp_folder = {
    .classes = {"Qwen4ExpForConditionalGeneration", "Qwen4ExpForCausalLM"},
    .names = {model_qwen35_names, model_qwen35_apart, names},
    .norms_less_one = true,
    .write = write,
};

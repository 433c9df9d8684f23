/** Granite 3: four scales; granitemoe the same with experts; Granite 4 mostly Mamba-2. */
#include <string.h>

#include "base/text/number.h"
#include "model/arch.h"
#include "model/folder/state.h"

static void read(struct model_hparams *h, const struct model_reading *r)
{
    const struct model_keys *keys = &r->keys;
    float attention_scale = model_key_positive(keys, "attention.scale", 0);
    float logit_scale = model_key_f32(keys, "logit_scale", 1);
    bool rotates = model_key_bool(keys, "rope.scaling.finetuned", true);
    struct base_number shown;
    if (!(logit_scale > 0))
        model_key_fail(keys, STATUS_FORMAT, "logit_scale", "is %s, expected a number above 0",
                       base_float_text(&shown, logit_scale));
    h->logit_scale = 1 / logit_scale;
    for (uint32_t i = 0; i < h->n_layers; i++) {
        if (attention_scale > 0)
            h->layers[i].scale = attention_scale;
        if (!rotates)
            h->layers[i].rope = MODEL_ROPE_OFF;
    }
}

/** Whether each layer of the hybrid is attention; how many there are: 0 where nothing says it. */
static uint32_t read_kinds(const struct model_folder *f, uint8_t *attends)
{
    uint32_t n = model_config_kinds(f, "layer_types",
                                    "mamba linear_attention attention full_attention", attends);
    for (uint32_t i = 0; i < n; i++)
        attends[i] = attends[i] >= 2;
    return n;
}

static bool is_hybrid_class(const struct model_folder *f)
{
    return strcmp(f->class_name, "GraniteMoeHybridForCausalLM") == 0;
}

static bool has_mamba(const struct model_folder *f)
{
    struct base_field types = model_config_find(f, "layer_types"), item = {0};
    while (base_field_next(types, &item))
        if (base_field_is(item, "mamba") || base_field_is(item, "linear_attention"))
            return true;
    return !types.json;
}

static bool has_experts(const struct model_folder *f)
{
    const cJSON *n = model_config_find(f, "num_local_experts").json;
    return cJSON_IsNumber(n) && n->valuedouble > 0;
}

static bool is_dense(const struct model_folder *f)
{
    return !is_hybrid_class(f) || (!has_mamba(f) && !has_experts(f));
}

static bool is_moe(const struct model_folder *f)
{
    return !is_hybrid_class(f) || (!has_mamba(f) && has_experts(f));
}

/** Without experts what is shared is all; the hybrid's layers say which attend. */
static void sizes_of_folder(struct model_folder *f)
{
    uint8_t attends[MODEL_MAX_BLOCKS];
    if (!is_hybrid_class(f))
        return;
    uint32_t n = read_kinds(f, attends);
    uint32_t n_ff =
        model_config_u32(f, f->n_experts > 0 ? "intermediate_size" : "shared_intermediate_size");
    if (n == 0)
        model_config_fail(f, STATUS_UNSUPPORTED, "has no member 'layer_types'");
    for (uint32_t i = 0; i < n; i++) {
        f->kv_heads_of[i] = attends[i] ? f->n_kv_heads : 0;
        f->n_ff_of[i] = n_ff;
    }
    f->kv_by_layer = f->ff_by_layer = true;
}

static void write_folder(struct model_folder *f)
{
    if (!is_hybrid_class(f))
        return;
    model_write_bool(f, "rope.scaling.finetuned",
                     base_field_is(model_config_find(f, "position_embedding_type"), "rope"));
    uint32_t expand = has_mamba(f) ? model_config_u32(f, "mamba_expand") : 0;
    if (expand > 0)
        model_write_u32(f, "ssm.inner_size", expand * f->n_embd);
}

static const struct model_arch_key keys[] = {
    {"attention.scale"},
    {"embedding_scale", MODEL_OPTIONAL},
    {"residual_scale", MODEL_OPTIONAL},
    {"logit_scale", .from = "logits_scaling"},
    {0},
};

static const struct model_folder_name dense_names[] = {
    {"shared_mlp.input_linear", "ffn_gate", MODEL_FIRST_HALF},
    {"shared_mlp.input_linear", "ffn_up", MODEL_SECOND_HALF},
    {"shared_mlp.output_linear", "ffn_down"},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"GraniteForCausalLM", "GraniteMoeHybridForCausalLM"},
    .names = {dense_names},
    .turned = true,
    .is = is_dense,
    .sizes = sizes_of_folder,
    .write = write_folder,
};

static const struct model_folder_name moe_names[] = {
    {"block_sparse_moe.router.layer", "ffn_gate_inp"},
    {"block_sparse_moe.input_linear", "ffn_gate_exps", MODEL_FIRST_HALF},
    {"block_sparse_moe.input_linear", "ffn_up_exps", MODEL_SECOND_HALF},
    {"block_sparse_moe.output_linear", "ffn_down_exps"},
    {"shared_mlp.input_linear", "ffn_gate_shexp", MODEL_FIRST_HALF},
    {"shared_mlp.input_linear", "ffn_up_shexp", MODEL_SECOND_HALF},
    {"shared_mlp.output_linear", "ffn_down_shexp"},
    {0},
};

static const struct model_arch_key moe_keys[] = {
    {"expert_shared_feed_forward_length", .from = "shared_intermediate_size"},
    {0},
};

static const struct model_folder_map moe_folder = {
    .classes = {"GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM",
                "GraniteMoeHybridForCausalLM"},
    .names = {moe_names},
    .turned = true,
    .is = is_moe,
    .sizes = sizes_of_folder,
    .write = write_folder,
};

/** What a branch adds is scaled in the next node; here its weight has the scale. */
static const struct model_node nodes[] = {
    {MODEL_AT_EMBEDDING, "embd", "GET_ROWS", .other = true},
    {MODEL_AT_ATTN_OUT, "", .other = true},
    {MODEL_AT_FFN_OUT, "", .other = true},
    {MODEL_AT_EXPERT_OUT, "", .other = true},
    {MODEL_AT_SHARED_OUT, "", .other = true},
    {0},
};

const struct model_arch model_arch_granite = {
    .name = "granite",
    .nodes = nodes,
    .key_blind = {"expert_shared_feed_forward_length"}, /* of Granite 4, where the class has it */
    .folder = &folder,
    .keys = {keys},
    .needs = {{"embedding_scale"}, {"residual_scale"}, {"attention.scale"}, {"logit_scale"}},
    .read = read,
};

const struct model_arch model_arch_granitemoe = {
    .name = "granitemoe",
    .folder = &moe_folder,
    .nodes = nodes,
    .keys = {keys, moe_keys},
    .needs = {{"embedding_scale"}, {"residual_scale"}, {"attention.scale"}, {"logit_scale"}},
    .shared = MODEL_SHARED_PLAIN,
    .read = read,
};

/** Its steps may be as short as they come. */
static void read_hybrid(struct model_hparams *h, const struct model_reading *r)
{
    read(h, r);
    h->recurrent.scale = 1;
    model_recurrent_read(h, r);
}

static const struct model_folder_name mamba_names[] = {
    {"mamba.in_proj", "ssm_in"},
    {"mamba.conv1d", "ssm_conv1d", MODEL_SQUEEZE},
    {"mamba.dt_bias", "ssm_dt.bias"},
    {"mamba.A_log", "ssm_a", MODEL_NEGATIVE_EXP},
    {"mamba.D", "ssm_d"},
    {"mamba.norm", "ssm_norm"},
    {"mamba.out_proj", "ssm_out"},
    {0},
};

static const struct model_arch_key hybrid_keys[] = {
    {"ssm.conv_kernel"}, {"ssm.state_size"}, {"ssm.group_count"}, {"ssm.time_step_rank"}, {0},
};

static void sizes_of_hybrid(struct model_folder *f)
{
    static const struct model_folder_name *const dense[] = {mamba_names, dense_names, NULL};
    f->names = f->n_experts > 0 ? f->names : dense;
    sizes_of_folder(f);
}

static void write_hybrid(struct model_folder *f)
{
    uint32_t width = model_config_u32(f, "shared_intermediate_size");
    if (f->n_experts > 0)
        model_write_u32(f, "expert_shared_feed_forward_length", width);
    write_folder(f);
}

static const struct model_folder_map hybrid_folder = {
    .classes = {"GraniteMoeHybridForCausalLM"},
    .names = {mamba_names, moe_names},
    .turned = true,
    .is = has_mamba,
    .sizes = sizes_of_hybrid,
    .write = write_hybrid,
};

const struct model_arch model_arch_granitehybrid = {
    .name = "granitehybrid",
    .nodes = nodes,
    .key_blind = {"expert_shared_feed_forward_length"}, /* of models without experts */
    .folder = &hybrid_folder,
    .keys = {keys, hybrid_keys},
    .needs = {{"rope.scaling.finetuned"},
              {"embedding_scale", MODEL_WHEN_OTHERS}, /* Bamba has none of the scales */
              {"residual_scale", MODEL_WHEN_OTHERS},
              {"attention.scale", MODEL_WHEN_OTHERS},
              {"logit_scale", MODEL_WHEN_OTHERS}},
    .without_keys = MODEL_MAMBA2,
    .shared = MODEL_SHARED_PLAIN,
    .experts_by_tensors = true,
    .read = read_hybrid,
};

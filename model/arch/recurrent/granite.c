/** Granite 3: four scales; granitemoe the same with experts; granite_swa with windows and sinks;
 * Granite 4 mostly Mamba-2. */
#include <string.h>

#include "base/text/number.h"
#include "model/arch.h"
#include "model/folder/state.h"

static void read_scales(struct model_hparams *h, const struct model_reading *r)
{
    const struct model_keys *keys = &r->keys;
    float attention_scale = model_key_positive(keys, "attention.scale", 0);
    float logit_scale = model_key_f32(keys, "logit_scale", 1);
    struct base_number shown;
    if (!(logit_scale > 0))
        model_key_fail(keys, STATUS_FORMAT, "logit_scale", "is %s, expected a number above 0",
                       base_float_text(&shown, logit_scale));
    h->logit_scale = model_key_inverse(keys, "logit_scale", logit_scale);
    for (uint32_t i = 0; i < h->n_layers && attention_scale > 0; i++)
        h->layers[i].scale = attention_scale;
}

static void read(struct model_hparams *h, const struct model_reading *r)
{
    bool rotates = model_key_bool(&r->keys, "rope.scaling.finetuned", true);
    read_scales(h, r);
    for (uint32_t i = 0; i < h->n_layers && !rotates; i++)
        h->layers[i].rope = MODEL_ROPE_OFF;
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

/** Which layers have positions; windows do not tell. */
static void read_swa(struct model_hparams *h, const struct model_reading *r)
{
    bool rotates[MODEL_MAX_BLOCKS];
    for (uint32_t i = 0; i < h->n_layers; i++)
        rotates[i] = true;
    read_scales(h, r);
    model_key_bools(&r->keys, "attention.rope_pattern", rotates, h->n_layers);
    for (uint32_t i = 0; i < h->n_layers; i++)
        h->layers[i].rope = rotates[i] ? MODEL_ROPE_FULL : MODEL_ROPE_OFF;
}

/** Bases of the layers, of which 0 stands for no positions: GGUF has one for all others. Where no
 * list says it, one layer of four sees all keys, the first. */
static void write_swa(struct model_folder *f)
{
    struct base_field bases = model_config_find(f, "layer_rope_theta");
    struct base_field rope = model_config_rope(f);
    uint8_t rotates[MODEL_MAX_BLOCKS], slides[MODEL_MAX_BLOCKS];
    double base = base_field_get(rope, "rope_theta").json ? model_config_real(rope, "rope_theta")
                                                          : model_config_f32(f, "rope_theta");
    uint32_t n = f->n_layers;
    for (uint32_t i = 0; bases.json && i < n; i++) {
        double own = model_config_at(bases, i);
        rotates[i] = own != 0;
        if (own != 0 && own != base)
            base_field_fail(bases, STATUS_UNSUPPORTED,
                            "has the base %g for layer %u, expected 0 or the %g of 'rope_theta', "
                            "since GGUF's %s has one for all",
                            own, i, base, f->arch->name);
    }
    if (bases.json)
        model_write_bools(f, "attention.rope_pattern", rotates, n);
    for (uint32_t i = 0; i < n; i++)
        slides[i] = i % 4 != 0;
    if (!model_config_find(f, "layer_types").json)
        model_write_bools(f, "attention.sliding_window_pattern", slides, n);
}

static const struct model_folder_name swa_names[] = {
    {"self_attn.sinks", "attn_sinks.weight"},
    {"block_sparse_moe.router.layer", "ffn_gate_inp"},
    {"block_sparse_moe.experts.gate_up_proj", "ffn_gate_up_exps.weight"},
    {"block_sparse_moe.experts.down_proj", "ffn_down_exps.weight"},
    {"block_sparse_moe.input_linear", "ffn_gate_up_exps"},
    {"block_sparse_moe.output_linear", "ffn_down_exps"},
    {"shared_mlp.input_linear", "ffn_up_shexp"},
    {"shared_mlp.output_linear", "ffn_down_shexp"},
    {0},
};

static const struct model_folder_map swa_folder = {
    .classes = {"GraniteSWAForCausalLM", "GraniteMoeSWAForCausalLM"},
    .names = {swa_names},
    .turned = true,
    .write = write_swa,
};

static const struct model_node swa_nodes[] = {
    {MODEL_AT_EMBEDDING, "embd", "GET_ROWS", .other = true},
    {MODEL_AT_ATTN_OUT, "", .other = true},
    {MODEL_AT_FFN_OUT, "", .other = true},
    {MODEL_AT_EXPERT_OUT, "", .other = true},
    {MODEL_AT_SHARED_UP, "", .other = true}, /* it holds the gate, too */
    {MODEL_AT_SHARED_OUT, "", .other = true},
    {0},
};

const struct model_arch model_arch_granite_swa = {
    .name = "granite_swa",
    .key_blind = {"deepstack_mapping",                  /* of pictures */
                  "expert_shared_feed_forward_length"}, /* of dense ones, as in granite */
    .folder = &swa_folder,
    .nodes = swa_nodes,
    .keys = {keys, moe_keys},
    .windows = {.period = 4, .first_full = true, .by_array = true},
    .sinks = true,
    .needs = {{"embedding_scale"},
              {"residual_scale"},
              {"attention.scale"},
              {"logit_scale"},
              {"attention.sliding_window"},
              {"attention.sliding_window_pattern"}},
    .shared = MODEL_SHARED_PLAIN,
    .shared_gate_in_up = true,
    .read = read_swa,
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

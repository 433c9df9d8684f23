/** Ling 3.0: Kimi's delta nets, and latent attention whose heads have gates; experts in groups. */
#include "model/arch/latent/latent.h"
#include "model/arch/recurrent/kimi.h"
#include "model/folder/state.h"

static void read(struct model_hparams *h, const struct model_reading *r)
{
    bool pictures = model_key_find(&r->keys, "rope.dimension_sections");
    h->rope_halves = pictures && r->options->llama_compat;
    if (h->rope_halves)
        model_remark(r->remarks,
                     "elements that are half of what is rotated apart are rotated together, as "
                     "llama.cpp does in files with key %s.rope.dimension_sections",
                     r->keys.prefix);
    model_latent_read(h, r);
    model_kimi_read(h, r);
    model_kimi_bound_read(h, r);
    if (!model_key_bool(&r->keys, "kda.safe_gate", true))
        model_key_fail(&r->keys, STATUS_UNSUPPORTED, "kda.safe_gate",
                       "is false, supported is true: decays have a least one");
    model_clamps_read(h, r, KERN_SWIGLU_CLAMP_AFTER, 1e-6F);
}

static const struct model_arch_key keys[] = {
    {"kda.head_dim", MODEL_REQUIRED, .from = "linear_head_dim head_dim"},
    {"ssm.conv_kernel", MODEL_REQUIRED, .from = "linear_conv_kernel_dim short_conv_kernel_size"},
    {"kda.gate_lower_bound", .from = "kda_lower_bound", .unset = -5},
    {"expert_group_count", .from = "num_expert_group n_group"},
    {"expert_weights_norm", .from = "moe_renormalize norm_topk_prob"},
    {"expert_gating_func", .from = "score_function scoring_func"},
    {"expert_shared_feed_forward_length", .from = "moe_shared_expert_intermediate_size"},
    {.from = "no_kda_lora", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {.from = "kda_safe_gate", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {.from = "use_mla_nope", .member = MODEL_MEMBER_FALSE},
    {.from = "value_norm", .member = MODEL_MEMBER_FALSE},
    {.from = "up_proj_norm", .member = MODEL_MEMBER_FALSE},
    {.from = "scale_router_input", .member = MODEL_MEMBER_FALSE},
    {.from = "use_nGPT", .member = MODEL_MEMBER_FALSE},
    {0},
};

static const struct model_node nodes[] = {
    {MODEL_AT_ALPHA, "blk.ssm_f_a.weight", "MUL_MAT"},
    {MODEL_AT_MIXER_GATE, "blk.ssm_g_a.weight", "MUL_MAT"},
    {MODEL_AT_RECURRED, "attn_output (cont)"},
    {MODEL_AT_MIXER_GATED, "", .other = true}, /* it has no name */
    {0},
};

static const struct model_folder_name folder_names[] = {
    {"word_embeddings.weight", "token_embd.weight"},
    {"self_attn.f_proj", "ssm_f_a"},
    {"self_attn.g_proj", "ssm_g_a", MODEL_IF_RECURRENT},
    {"self_attn.g_proj", "attn_gate", MODEL_IF_ATTENTION},
    {"self_attn.A_log", "ssm_a", MODEL_SQUEEZE | MODEL_EXP},
    {"self_attn.dense", "attn_output"},
    {"mlp.gate.expert_bias", "exp_probs_b.bias"},
    {"linear_proj.*", NULL}, /* of pictures */
    {0},
};

/** Which layers attend: by a list, or the last of each group and those after the last group. */
static void heads(const struct model_folder *f, struct model_folder_heads *of)
{
    uint8_t kinds[MODEL_MAX_BLOCKS];
    uint32_t n = model_config_kinds(f, "layer_types", "linear_attention full_attention", kinds);
    uint32_t size = n > 0 ? 1 : model_config_u32(f, "layer_group_size");
    size = size > 0 ? size : 1;
    for (uint32_t i = 0; i < of->n; i++) {
        bool attends = (i + 1) % size == 0 || i >= f->n_layers / size * size;
        of->n_kv_heads[i] = (n > 0 ? kinds[i] > 0 : attends) ? f->n_kv_heads : 0;
    }
}

/** A limit of SwiGLU for each layer, or null for none; layers that the list lacks have none. */
static void write_limits(struct model_folder *f, const char *member, const char *suffix)
{
    struct base_field list = model_config_find(f, member);
    float limits[MODEL_MAX_BLOCKS] = {0};
    for (uint32_t i = 0; i < f->n_layers && i < MODEL_MAX_BLOCKS; i++)
        limits[i] = (float)model_config_at(list, i);
    if (list.json)
        model_write_f32s(f, suffix, limits, f->n_layers);
}

static void write(struct model_folder *f)
{
    static const char per[] = "gated_attention_proj_granularity_type";
    struct base_field gates = model_config_find(f, per), sections;
    if (gates.json && !base_field_is(gates, "head_wise"))
        model_config_fail(f, STATUS_UNSUPPORTED, "member '%s' is not head_wise", per);
    write_limits(f, "expert_swiglu_limit_list", "swiglu_clamp_exp");
    write_limits(f, "share_expert_swiglu_limit_list", "swiglu_clamp_shexp");
    sections = model_config_find(f, "mrope_section");
    uint32_t pairs[4] = {0};
    if (!sections.json)
        return;
    model_config_u32s(sections, "", pairs, 3);
    model_write_u32s(f, "rope.dimension_sections", pairs, 4);
}

static const struct model_folder_map folder = {
    .classes = {"BailingMoeV3ForCausalLM", "BailingMoeV3VLForConditionalGeneration",
                "BailingHybridForCausalLM"},
    .names = {folder_names, model_latent_names, model_kimi_names},
    .compressed = true,
    .bare_attention = true,
    .heads = heads,
    .write = write,
};

const struct model_arch model_arch_bailingmoe3 = {
    .name = "bailingmoe3",
    .folder = &folder,
    .nodes = nodes,
    .keys = {keys, model_grouped_keys},
    .without_keys = MODEL_KIMI_DELTA_NET,
    .whole_f = "ssm_f_a",
    .whole_g = "ssm_g_a",
    .attn_gate = true,
    .gate_kind = KERN_SIGMOID,
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .needs = {{"kda.gate_lower_bound"}, {"expert_group_count", MODEL_WHEN_EXPERTS}},
    .needs_shares = true,
    .read = read,
    .presence = {{MODEL_ALWAYS, "output.weight"}},
};

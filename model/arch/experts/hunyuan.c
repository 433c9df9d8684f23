/** Hunyuan, dense and with experts, and Hy 3: norms of each head's queries and keys. */
#include <math.h>

#include "model/arch.h"
#include "model/folder/state.h"

/** A stretch of the base that depends on the size of heads; files mostly have it in the base. */
static void read(struct model_hparams *h, const struct model_reading *r)
{
    float alpha = model_key_positive(&r->keys, "rope.scaling.alpha", 0);
    double size = h->layers[0].key_size;
    if (alpha > 0 && size > 2)
        h->ropes[MODEL_ROPE_FULL].freq_base *= (float)pow((double)alpha, size / (size - 2));
}

static const struct model_folder_name folder_names[] = {
    {"self_attn.query_layernorm", "attn_q_norm"},
    {"self_attn.key_layernorm", "attn_k_norm"},
    {"mlp.gate.wg", "ffn_gate_inp"},
    {"mlp.router.gate", "ffn_gate_inp"},
    {"mlp.expert_bias", "exp_probs_b.bias"},
    {"mlp.shared_mlp.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_mlp.up_proj", "ffn_up_shexp"},
    {"mlp.shared_mlp.down_proj", "ffn_down_shexp"},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"HunYuanDenseV1ForCausalLM"},
    .names = {folder_names},
};

static const struct model_arch_key moe_keys[] = {
    {"expert_shared_feed_forward_length", .from = "intermediate_size"},
    {0},
};

/** Each token of these has the experts' width of `moe_intermediate_size`, or else of all. */
static const struct model_folder_map moe_folder = {
    .classes = {"HunYuanMoEV1ForCausalLM"},
    .names = {folder_names},
};

static const struct model_arch_key v3_keys[] = {
    {"expert_weights_scale", .from = "router_scaling_factor"},
    {"expert_weights_norm", .from = "route_norm", .unset = 1},
    {"leading_dense_block_count"},
    {"expert_shared_count", .from = "num_shared_experts"},
    {0},
};

static void write_v3(struct model_folder *f)
{
    uint32_t n = model_config_u32(f, "num_shared_experts");
    model_write_u32(f, "expert_shared_feed_forward_length",
                    n * model_config_u32(f, "moe_intermediate_size"));
}

static const struct model_folder_map v3_folder = {
    .classes = {"HYV3ForCausalLM"},
    .names = {folder_names},
    .write = write_v3,
};

const struct model_arch model_arch_hunyuan_dense = {
    .name = "hunyuan-dense",
    .folder = &folder,
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .qk_norm_last = true,
    .read = read,
};

const struct model_arch model_arch_hunyuan_moe = {
    .name = "hunyuan-moe",
    .folder = &moe_folder,
    .keys = {moe_keys},
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .qk_norm_last = true,
    .shared = MODEL_SHARED_PLAIN,
    .experts_by_tensors = true,
};

const struct model_arch model_arch_hy_v3 = {
    .name = "hy_v3",
    .folder = &v3_folder,
    .keys = {v3_keys},
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .experts_by_tensors = true,
    .nextn = MODEL_NEXTN_NORMED,
    .needs_shares = true,
};

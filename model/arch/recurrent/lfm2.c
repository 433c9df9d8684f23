/** LFM 2, dense and with experts: short convolutions instead of attention in most layers. */
#include "model/arch.h"
#include "model/folder/state.h"

static void read(struct model_hparams *h, const struct model_reading *r)
{
    h->recurrent.n_inner = h->n_embd;
    h->experts.sum_eps = r->options->llama_compat ? 0 : 1e-6f;
}

static const struct model_folder_name folder_names[] = {
    {"embedding_norm", "token_embd_norm"},
    {"operator_norm", "attn_norm"},
    {"ffn_norm", "ffn_norm"},
    {"conv.conv", "shortconv.conv", MODEL_SQUEEZE},
    {"conv.in_proj", "shortconv.in_proj"},
    {"conv.out_proj", "shortconv.out_proj"},
    {"self_attn.q_layernorm", "attn_q_norm"},
    {"self_attn.k_layernorm", "attn_k_norm"},
    {"self_attn.out_proj", "attn_output"},
    {"feed_forward.w1", "ffn_gate"},
    {"feed_forward.w3", "ffn_up"},
    {"feed_forward.w2", "ffn_down"},
    {"feed_forward.gate", "ffn_gate_inp"},
    {"feed_forward.expert_bias", "exp_probs_b.bias"},
    {"feed_forward.experts.*.w1", "ffn_gate_exps"},
    {"feed_forward.experts.*.w3", "ffn_up_exps"},
    {"feed_forward.experts.*.w2", "ffn_down_exps"},
    {0},
};

/** Layers of short convolutions have no keys. */
static void heads(const struct model_folder *f, struct model_folder_heads *of)
{
    const cJSON *types = model_config_find(f, "layer_types").json;
    struct base_field full = model_config_find(f, "full_attn_idxs");
    for (uint32_t i = 0; i < of->n && (types || full.json); i++) {
        bool is = model_config_is(f, "layer_types", i, "full_attention");
        for (struct base_field item = {0}; !types && base_field_next(full, &item);)
            is |= item.json->valuedouble == i;
        of->n_kv_heads[i] = is ? f->n_kv_heads : 0;
    }
}

/** The width is two thirds of what config.json says, or so, as a multiple. */
static void write_width(struct model_folder *f)
{
    uint32_t n_ff = model_config_u32(f, "block_ff_dim intermediate_size");
    uint32_t multiple = model_config_u32_or(f, "block_multiple_of", 256);
    double factor = model_config_f32_or(f, "block_ffn_dim_multiplier", 1);
    if (multiple == 0 || multiple > INT16_MAX ||
        !(factor > 0 && factor <= 16 && n_ff <= INT32_MAX / 16)) {
        model_config_fail(f, STATUS_FORMAT,
                          "block_multiple_of is %u, block_ffn_dim_multiplier %g, the width %u, "
                          "expected numbers above 0 and smaller ones",
                          multiple, factor, n_ff);
        return;
    }
    if (!cJSON_IsFalse(model_config_find(f, "block_auto_adjust_ff_dim").json)) {
        n_ff = (uint32_t)(factor * (2 * n_ff / 3));
        n_ff = (n_ff + multiple - 1) / multiple * multiple;
    }
    model_write_u32(f, "feed_forward_length", n_ff);
}

static const struct model_arch_key keys[] = {
    {"shortconv.l_cache", MODEL_REQUIRED, .unset = 3},
    {"feed_forward_length", .from = ""}, /* write_width's */
    {0},
};

static const struct model_arch_key moe_keys[] = {
    {"shortconv.l_cache", MODEL_REQUIRED, .unset = 3},
    {"leading_dense_block_count", .from = "num_dense_layers", .unset = 2},
    {.from = "norm_topk_prob", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {.from = "routed_scaling_factor", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {"expert_gating_func", .unset = 2},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"Lfm2ForCausalLM", "LFM2ForCausalLM"},
    .names = {folder_names},
    .heads = heads,
    .write = write_width,
};

static const struct model_folder_map moe_folder = {
    .classes = {"Lfm2MoeForCausalLM"},
    .names = {folder_names},
    .heads = heads,
};

#define LFM2                                                                                       \
    .norms = {.output = "token_embd_norm"}, .without_keys = MODEL_SHORT_CONVOLUTION,               \
    .rope_halves = true, .qk_norm = MODEL_QK_NORM_HEADS, .windows = {.period = 1}, .read = read

const struct model_arch model_arch_lfm2 = {.name = "lfm2", .folder = &folder, .keys = {keys}, LFM2};

const struct model_arch model_arch_lfm2moe = {
    .name = "lfm2moe",
    .folder = &moe_folder,
    .keys = {moe_keys},
    .gating = KERN_GATE_SIGMOID,
    LFM2,
};

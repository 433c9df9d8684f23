/** EXAONE 3, which is a LLaMA; EXAONE 4 and K-EXAONE: layers that see all keys have no positions.
 */
#include "model/arch.h"

static const struct model_folder_name names3[] = {
    {"wte.weight", "token_embd.weight"},
    {"ln_f", "output_norm"},
    {"ln_1", "attn_norm"},
    {"attn.attention.q_proj", "attn_q"},
    {"attn.attention.k_proj", "attn_k"},
    {"attn.attention.v_proj", "attn_v"},
    {"attn.attention.out_proj", "attn_output"},
    {"ln_2", "ffn_norm"},
    {"mlp.c_fc_0", "ffn_gate"},
    {"mlp.c_fc_1", "ffn_up"},
    {"mlp.c_proj", "ffn_down"},
    {0},
};

static const struct model_folder_map folder3 = {
    .classes = {"ExaoneForCausalLM"},
    .names = {names3},
};

const struct model_arch model_arch_exaone = {
    .name = "exaone",
    .folder = &folder3,
    .rope_halves = true,
};

/** Hybrids are told by their window, also where no layer has one; by llama.cpp by their number of
 * blocks alone. */
static void read_exaone4(struct model_hparams *h, const struct model_reading *r)
{
    enum { LLAMA_CPP_HYBRID = 64, LLAMA_CPP_WINDOW = 4096 };
    bool compat = r->options->llama_compat;
    uint32_t window = model_key_u32_or(&r->keys, "attention.sliding_window",
                                       (struct model_range){0, INT32_MAX}, 0);
    bool hybrid = compat ? h->n_layers == LLAMA_CPP_HYBRID : window > 0;
    for (uint32_t i = 0; compat && i < h->n_layers; i++) {
        struct model_layer_shape *l = &h->layers[i];
        l->slides = hybrid && (window > 0 ? l->slides : i % 4 != 3);
        l->window = !l->slides ? 0 : window > 0 ? window : LLAMA_CPP_WINDOW;
    }
    if (hybrid)
        model_still_full_layers(h);
    else if (h->n_layers == LLAMA_CPP_HYBRID)
        model_remark(
            r->remarks,
            "key %s.attention.sliding_window is missing or 0: all layers see all keys, with "
            "positions; llama.cpp takes a model of %d blocks for a hybrid",
            r->keys.prefix, LLAMA_CPP_HYBRID);
}

static const struct model_folder_name folder_names[] = {
    {"post_attention_layernorm", "post_attention_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"Exaone4ForCausalLM"},
    .names = {folder_names},
};

const struct model_arch model_arch_exaone4 = {
    .name = "exaone4",
    .nodes = model_normed_heads_nodes,
    .folder = &folder,
    .norms = {.attn = "",
              .attn_post = "post_attention_norm",
              .ffn = "",
              .ffn_post = "post_ffw_norm"},
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .windows = {.period = 4},
    .read = read_exaone4,
    .presence = {{MODEL_MOSTLY, "rope_freqs.weight"}},
};

static void read_moe(struct model_hparams *h, const struct model_reading *r)
{
    (void)r;
    model_still_full_layers(h);
}

static const struct model_folder_name moe_names[] = {
    {"mlp.e_score_correction_bias", "exp_probs_b.bias"},
    {0},
};

static const struct model_arch_key moe_keys[] = {
    {"expert_weights_scale", .unset = 2.5},
    {"expert_weights_norm", .unset = 1},
    {"expert_gating_func"},
    {0},
};

static const struct model_folder_map moe_folder = {
    .classes = {"ExaoneMoeForCausalLM", "ExaoneMoEForCausalLM"},
    .names = {moe_names},
};

const struct model_arch model_arch_exaone_moe = {
    .name = "exaone-moe",
    .nodes = model_normed_heads_nodes,
    .folder = &moe_folder,
    .keys = {moe_keys, model_grouped_keys},
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .windows = {.period = 4},
    .needs = {{"attention.sliding_window"}},
    .needs_shares = true,
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .experts_by_tensors = true,
    .nextn = MODEL_NEXTN_NORMED,
    .read = read_moe,
    .presence = {{MODEL_ALWAYS, "output.weight"}},
};

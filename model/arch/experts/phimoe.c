/** Phi 3.5 MoE: LayerNorms and biases everywhere, and two experts that a sparse mixer chooses. */
#include "model/arch.h"

/** llama.cpp takes RMS norms, to which it adds the bias, and the shares that Mixtral has. */
static void read(struct model_hparams *h, const struct model_reading *r)
{
    bool theirs = r->options->llama_compat;
    uint32_t gating =
        model_key_u32_or(&r->keys, "expert_gating_func", (struct model_range){0, 4}, 0);
    model_remark(r->remarks, theirs ? "norms do not subtract the mean and shares of experts are a "
                                      "softmax, as in llama.cpp"
                                    : "norms subtract the mean and a sparse mixer chooses experts, "
                                      "as the authors have it; llama.cpp does neither");
    if (gating > 0)
        model_remark(r->remarks, "%s.expert_gating_func (%u) is ignored, as llama.cpp does",
                     r->keys.prefix, gating);
    h->experts.gating = theirs ? KERN_GATE_SOFTMAX : KERN_GATE_SPARSEMIXER;
    h->experts.normalise = theirs;
    h->layer_norm = !theirs;
}

static const struct model_arch_key keys[] = {
    {.from = "router_jitter_noise", .unset = 0.01, .member = MODEL_MEMBER_FIXED},
    {.from = "lm_head_bias", .member = MODEL_MEMBER_TRUE},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"PhimoeForCausalLM", "PhiMoEForCausalLM"},
    .names = {model_mixtral_names},
};

const struct model_arch model_arch_phimoe = {
    .name = "phimoe",
    .folder = &folder,
    .keys = {keys},
    .layer_norm = true,
    .rms_eps = true,
    .rope_halves = true,
    .windows = {.period = 1, .unknown_to_llama_cpp = true},
    .gating = KERN_GATE_SPARSEMIXER,
    .normalise = MODEL_NORMALISE_NO,
    .presence = {{MODEL_ALWAYS, "output.weight output.bias attn_output.bias " MODEL_QKV_BIASES},
                 {MODEL_NEVER, "exp_probs_b.bias"}},
    .needs = {{"rope.scaling.attn_factor", MODEL_WHEN_LONG},
              {"rope.scaling.original_context_length", MODEL_WHEN_LONG}},
    .read = read,
};

/** Ling 3.0: Kimi's delta nets, and latent attention whose heads have gates; experts in groups. */
#include "model/arch/latent/latent.h"
#include "model/arch/recurrent/kimi.h"

static void read(struct model_hparams *h, const struct model_reading *r)
{
    bool pictures = model_key_find(&r->keys, "rope.dimension_sections");
    h->rope_halves = pictures && r->options->llama_compat; /* as it turns sections */
    model_latent_read(h, r);
    model_kimi_read(h, r);
    model_kimi_bound_read(h, r);
    if (!model_key_bool(&r->keys, "kda.safe_gate", true))
        model_key_fail(&r->keys, STATUS_UNSUPPORTED, "kda.safe_gate",
                       "is false, supported is true: decays have a least one");
    model_clamps_read(h, r, KERN_SWIGLU_CLAMP_AFTER, 1e-6F);
}

static const struct model_arch_key keys[] = {
    {"kda.head_dim", MODEL_REQUIRED},
    {"ssm.conv_kernel", MODEL_REQUIRED},
    {0},
};

static const struct model_node nodes[] = {
    {MODEL_AT_ALPHA, "blk.ssm_f_a.weight", "MUL_MAT"},
    {MODEL_AT_MIXER_GATE, "blk.ssm_g_a.weight", "MUL_MAT"},
    {MODEL_AT_RECURRED, "attn_output (cont)"},
    {MODEL_AT_MIXER_GATED, "", .other = true}, /* it has no name */
    {0},
};

const struct model_arch model_arch_bailingmoe3 = {
    .name = "bailingmoe3",
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

/**
 * Kimi K3: Kimi Linear with gates, whose branches read earlier residuals, too; SiTU; and experts
 * that work on narrower rows.
 */
#include <stdio.h>

#include "base/text/number.h"
#include "model/arch/latent/latent.h"
#include "model/arch/recurrent/kimi.h"
#include "model/bind/bind.h"
#include "model/state.h"

static void read_situ(struct model_hparams *h, const struct model_reading *r)
{
    static const char suffix[] = "activation.situ_beta";
    float beta = model_key_f32(&r->keys, suffix, 0);
    float up_beta = model_key_f32(&r->keys, "activation.situ_linear_beta", 0);
    struct base_number shown;
    if (model_key_find(&r->keys, suffix) && !(beta > 0))
        model_key_fail(&r->keys, STATUS_FORMAT, suffix, "is %s, expected a number above 0",
                       base_float_text(&shown, beta));
    for (uint32_t i = 0; i < h->n_layers; i++) {
        struct kern_curve *curve = &h->layers[i].activation.curve;
        curve->beta = beta;
        curve->up_beta = up_beta > 0 ? up_beta : 0;
        h->layers[i].expert_activation = h->layers[i].activation;
    }
}

static void read(struct model_hparams *h, const struct model_reading *r)
{
    model_latent_read(h, r);
    model_kimi_read(h, r);
    model_kimi_bound_read(h, r);
    read_situ(h, r);
    for (uint32_t i = 0; i < h->n_layers; i++)
        h->layers[i].rope = MODEL_ROPE_OFF;
    if (h->experts.width > h->n_embd)
        model_key_fail(&r->keys, STATUS_FORMAT, "expert_latent_length",
                       "is %u, expected at most the %u of the model's width", h->experts.width,
                       h->n_embd);
    if (h->residual_block > 0)
        h->n_streams = 1 + (h->n_layers + h->residual_block - 1) / h->residual_block;
}

static void bind_score(struct model *m, const char *name, struct model_stream_mixer *mixer)
{
    if (m->hparams.residual_block > 0)
        model_bind_vector(m, &mixer->product.weight, name, m->hparams.n_embd, MODEL_ALWAYS);
}

static void bind(struct model *m, size_t i)
{
    char name[64];
    if (i == MODEL_NO_LAYER) {
        bind_score(m, "output_res_score.weight", &m->output_mixer);
        return;
    }
    struct model_layer *l = &m->layers[i];
    snprintf(name, sizeof name, "blk.%zu.attn_res_score.weight", i);
    bind_score(m, name, &l->attn_mixer);
    snprintf(name, sizeof name, "blk.%zu.ffn_res_score.weight", i);
    bind_score(m, name, &l->ffn_mixer);
    size_t n = m->hparams.experts.width, n_embd = m->hparams.n_embd;
    if (n == 0 || m->hparams.layers[i].n_experts == 0)
        return;
    model_bind_product(m, i, "ffn_routed_down", n, n_embd, &l->experts.narrow);
    model_bind_product(m, i, "ffn_routed_up", n_embd, n, &l->experts.widen);
    model_bind_norm(m, i, "ffn_routed_norm", n, &l->experts.narrow_norm);
}

static const struct model_arch_key keys[] = {
    {"kda.head_dim", MODEL_REQUIRED},
    {"ssm.conv_kernel", MODEL_REQUIRED},
    {"attn_res.block_size", MODEL_OPTIONAL},
    {"expert_latent_length", MODEL_OPTIONAL},
    {0},
};

const struct model_arch model_arch_kimi_k3 = {
    .name = "kimi-k3",
    .nodes = (const struct model_node[]){{MODEL_AT_CONVOLVED, "kda_q_conv"},
                                         {MODEL_AT_K_CONVOLVED, "kda_k_conv"},
                                         {MODEL_AT_V_CONVOLVED, "kda_v_conv"},
                                         {MODEL_AT_RECURRED, "kda_scan_out"},
                                         {MODEL_AT_MIXER_GATE, "kda_g2"},
                                         {MODEL_AT_GATED, "mla_gated"},
                                         {MODEL_AT_ATTN_OUT, "kda_out"},
                                         {MODEL_AT_ATTN_OUT, "mla_out"},
                                         {MODEL_AT_ATTN_RESIDUAL, "prefix_sum_attn"},
                                         {0}},
    .keys = {keys, model_grouped_keys},
    .without_keys = MODEL_KIMI_DELTA_NET,
    .whole_g = "ssm_g",
    .attn_gate = true,
    .gate_kind = KERN_SIGMOID,
    .activation = KERN_SITU,
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .needs = {{"attn_res.block_size"},
              {"activation.situ_beta"},
              {"activation.situ_linear_beta"},
              {"expert_latent_length", MODEL_WHEN_EXPERTS}},
    .needs_shares = true,
    .read = read,
    .bind = bind,
    .presence = {{MODEL_ALWAYS, "output.weight"},
                 {MODEL_MOSTLY, "attn_gate.weight ffn_routed_norm.weight"}},
};

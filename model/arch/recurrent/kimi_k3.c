/**
 * Kimi K3: Kimi Linear with gates, whose branches read earlier residuals, too; SiTU; and experts
 * that work on narrower rows.
 */
#include <stdio.h>

#include "base/text/number.h"
#include "model/arch/latent/latent.h"
#include "model/arch/recurrent/kimi.h"
#include "model/bind/bind.h"
#include "model/folder/state.h"
#include "model/state.h"

static void read_situ(struct model_hparams *h, const struct model_reading *r)
{
    static const char *const suffixes[] = {"activation.situ_beta", "activation.situ_linear_beta"};
    const float most = 1e30F; /* what is divided by more loses its digits */
    float beta = model_key_f32(&r->keys, suffixes[0], 0);
    float up_beta = model_key_f32(&r->keys, suffixes[1], 0);
    struct base_number shown;
    if (model_key_find(&r->keys, suffixes[0]) && !(beta > 0 && beta <= most))
        model_key_fail(&r->keys, STATUS_FORMAT, suffixes[0],
                       "is %s, expected a number above 0, up to 1e30",
                       base_float_text(&shown, beta));
    if (!(up_beta <= most))
        model_key_fail(&r->keys, STATUS_FORMAT, suffixes[1], "is %s, expected at most 1e30",
                       base_float_text(&shown, up_beta));
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
    {"kda.head_dim", MODEL_REQUIRED, .from = ""}, /* model_kimi_write's */
    {"ssm.conv_kernel", MODEL_REQUIRED, .from = ""},
    {"attn_res.block_size", MODEL_OPTIONAL},
    {"activation.situ_beta"},
    {"activation.situ_linear_beta"},
    {"expert_latent_length", MODEL_OPTIONAL},
    {"expert_group_count", .from = "num_expert_group n_group"},
    {"expert_weights_norm", .from = "moe_renormalize norm_topk_prob"},
    {"expert_gating_func", .from = "moe_router_activation_func", .unset = 2},
    {.from = "mla_use_nope", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {0},
};

static const struct model_folder_name folder_names[] = {
    {"self_attn.g_proj", "ssm_g", MODEL_IF_RECURRENT},
    {"self_attn.g_proj", "attn_gate", MODEL_IF_ATTENTION},
    {"self_attn.A_log", "ssm_a", MODEL_SQUEEZE | MODEL_NEGATIVE_EXP | MODEL_OF_HEADS},
    {"block_sparse_moe.routed_expert_down_proj", "ffn_routed_down"},
    {"block_sparse_moe.routed_expert_up_proj", "ffn_routed_up"},
    {"block_sparse_moe.routed_expert_norm", "ffn_routed_norm"},
    {"self_attention_res_norm", "attn_res_score", MODEL_SQUEEZE | MODEL_FACTOR},
    {"self_attention_res_proj", "attn_res_score", MODEL_SQUEEZE | MODEL_SECOND_FACTOR},
    {"mlp_res_norm", "ffn_res_score", MODEL_SQUEEZE | MODEL_FACTOR},
    {"mlp_res_proj", "ffn_res_score", MODEL_SQUEEZE | MODEL_SECOND_FACTOR},
    {"output_attn_res_norm", "output_res_score", MODEL_SQUEEZE | MODEL_FACTOR},
    {"output_attn_res_proj", "output_res_score", MODEL_SQUEEZE | MODEL_SECOND_FACTOR},
    {0},
};

/** Decays have no bound without the member. */
static void write(struct model_folder *f)
{
    static const char bound[] = "gate_lower_bound";
    struct base_field group = model_config_find(f, "linear_attn_config");
    model_kimi_write(f);
    if (cJSON_IsNumber(base_field_get(group, bound).json))
        model_write_f32(f, "kda.gate_lower_bound", model_config_real(group, bound));
}

static const struct model_folder_map folder = {
    .classes = {"KimiK3ForConditionalGeneration", "KimiK3ForCausalLM"},
    .names = {folder_names, model_latent_names, model_kimi_names, model_mixtral_names},
    .compressed = true,
    .heads = model_kimi_heads,
    .write = write,
};

const struct model_arch model_arch_kimi_k3 = {
    .name = "kimi-k3",
    .folder = &folder,
    .nodes = (const struct model_node[]){{MODEL_AT_GATED, "mla_gated"},
                                         {MODEL_AT_ATTN_OUT, "kda_out"},
                                         {MODEL_AT_ATTN_OUT, "mla_out"},
                                         {MODEL_AT_ATTN_RESIDUAL, "prefix_sum_attn"},
                                         {0}},
    .keys = {keys, model_grouped_keys},
    .without_keys = MODEL_KIMI_DELTA_NET,
    .whole_g = "ssm_g",
    .attn_gate = true,
    .gates_elements = true,
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

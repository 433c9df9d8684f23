/**
 * Hunyuan 4: latent attention with sinks and gates, in a residual of several streams that are not
 * mixed with each other; limits in the experts that a token chooses.
 */
#include "model/arch.h"
#include "model/arch/latent/latent.h"
#include "model/bind/bind.h"
#include "model/folder/state.h"

/** Models whose queries see all keys have none of its keys. */
static void read_indexer(struct model_hparams *h, const struct model_reading *r)
{
    if (!model_key_find(&r->keys, "attention.indexer.top_k"))
        return;
    model_indexer_read(h, r);
    model_latent_read_choices(h, r, NULL);
    h->index.eps = h->eps;
    h->index.at_end = true;
}

static void read(struct model_hparams *h, const struct model_reading *r)
{
    model_latent_read(h, r);
    read_indexer(h, r);
    model_expert_clamps_read(h, r, KERN_SWIGLU_CLAMP_BEFORE, 1e-6F);
}

static void bind(struct model *m, size_t i)
{
    if (i == MODEL_NO_LAYER)
        model_streams_bind_end(m);
    else
        model_streams_bind(m, i);
}

static const struct model_folder_name folder_names[] = {
    {"self_attn.learnable_sink_param", "attn_sinks.weight"},
    {"self_attn.linear_gate", "attn_gate"},
    {"hc_attn_layer.hc_pre.hc_fn", "hc_attn_fn.weight"},
    {"hc_attn_layer.hc_pre.hc_base", "hc_attn_base.weight"},
    {"hc_attn_layer.hc_pre.hc_scale", "hc_attn_scale.weight"},
    {"hc_mlp_layer.hc_pre.hc_fn", "hc_ffn_fn.weight"},
    {"hc_mlp_layer.hc_pre.hc_base", "hc_ffn_base.weight"},
    {"hc_mlp_layer.hc_pre.hc_scale", "hc_ffn_scale.weight"},
    {"hc_head.hc_head_fn", "output_hc_fn.weight"},
    {"hc_head.hc_head_base", "output_hc_base.weight"},
    {"hc_head.hc_head_scale", "output_hc_scale.weight"},
    {0},
};

/** Where no list says it, every fourth layer after the first two has an indexer. */
static void write_folder(struct model_folder *f)
{
    model_indexer_write(f, 4);
    model_limit_write(f, "swiglu_clamp_exp");
}

static const struct model_folder_map folder = {
    .classes = {"HYV4ForCausalLM"},
    .names = {model_latent_names, model_indexer_names, folder_names},
    .compressed = true,
    .write = write_folder,
};

static const struct model_arch_key keys[] = {
    {"attention.q_lora_rank", MODEL_REQUIRED, .least = 1},
    {"hyper_connection.count", MODEL_REQUIRED},
    {"hyper_connection.epsilon", MODEL_REQUIRED},
    {"hyper_connection.magnitude", MODEL_REQUIRED},
    {"expert_gating_func", .unset = 2},
    {0},
};

const struct model_arch model_arch_hy_v4 = {
    .name = "hy_v4",
    .folder = &folder,
    .keys = {keys, model_indexer_keys, model_grouped_keys},
    .needs = {{"attention.key_length_mla"},
              {"attention.indexer.head_count", MODEL_WHEN_OTHERS},
              {"attention.indexer.key_length", MODEL_WHEN_OTHERS},
              {"attention.indexer.top_k", MODEL_WHEN_OTHERS},
              {"attention.indexer.types", MODEL_WHEN_OTHERS},
              {"swiglu_clamp_exp", MODEL_WHEN_EXPERTS,
               "experts have no limits; the published model's are 10"}},
    .needs_shares = true,
    .sinks = true,
    .attn_gate = true,
    .gate_kind = KERN_SIGMOID,
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .nodes =
        (const struct model_node[]){{MODEL_AT_EMBEDDING, "embd", .other = true}, /* one stream */
                                    {MODEL_AT_ATTENTION, "attn_kqv"},
                                    {MODEL_AT_ATTN_RESIDUAL, "hc_attn_out"},
                                    {0}},
    .read = read,
    .bind = bind,
    .presence = {{MODEL_ALWAYS, "output.weight"}},
};

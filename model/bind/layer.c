/* A layer: its norms, what mixes its tokens, its feed-forward. */
#include <stdio.h>

#include "model/arch.h"
#include "model/bind/bind.h"
#include "model/state.h"

static const char *name_or(const char *name, const char *standard)
{
    return name ? name : standard;
}

static enum status bind_norms(struct model *m, size_t i, struct status_why *why)
{
    const struct model_norm_names *names = &m->arch->norms;
    const struct model_layer_shape *shape = &m->hparams.layers[i];
    struct model_layer *l = &m->layers[i];
    size_t n = m->hparams.n_embd;
    const char *attn = name_or(names->attn, "attn_norm");
    const char *ffn = m->hparams.parallel ? "" : name_or(names->ffn, "ffn_norm");
    if (m->arch->mixed) { /* one part, one norm */
        bool mixes = shape->mixer != MODEL_NO_MIXER;
        ffn = mixes ? "" : attn;
        attn = mixes ? attn : "";
    }
    enum status status = model_bind_norm(m, i, attn, n, &l->attn_norm, why);
    if (!status)
        status = model_bind_norm(m, i, name_or(names->attn_post, ""), n, &l->attn_post_norm, why);
    if (!status)
        status = model_bind_norm(m, i, ffn, n, &l->ffn_norm, why);
    if (!status)
        status = model_bind_norm(m, i, name_or(names->ffn_post, ""), n, &l->ffn_post_norm, why);
    return status;
}

static enum status bind_mixer(struct model *m, size_t i, struct status_why *why)
{
    enum status status = STATUS_OK;
    switch (m->hparams.layers[i].mixer) {
    case MODEL_ATTENTION:
        return model_bind_attention(m, i, why);
    case MODEL_LATENT_ATTENTION:
        return model_bind_latent(m, i, why);
    case MODEL_RUN_ATTENTION:
        return model_bind_runs(m, i, why);
    case MODEL_DELTA_NET:
        return model_bind_delta_net(m, i, why);
    case MODEL_MAMBA2:
        return model_bind_mamba2(m, i, why);
    case MODEL_KIMI_DELTA_NET:
        return model_bind_kimi_delta_net(m, i, why);
    case MODEL_SHORT_CONVOLUTION:
        return model_bind_short_convolution(m, i, why);
    case MODEL_ATTENTION_MAMBA2:
        status = model_bind_attention(m, i, why);
        return status ? status : model_bind_mamba2(m, i, why);
    case MODEL_NO_MIXER:
        break;
    }
    return status;
}

/** What closes a branch is multiplied by the model's scale of branches. */
static void scale_branch(struct model_product *product, float scale)
{
    product->weight.scale *= scale;
    product->bias.scale *= scale;
}

static void scale_branches(struct model *m, size_t i)
{
    struct model_layer *l = &m->layers[i];
    float scale = m->hparams.residual_scale;
    if (scale == 1)
        return;
    scale_branch(&l->output, scale);
    scale_branch(&l->recurrent.out, scale);
    scale_branch(&l->ffn.down, scale);
    scale_branch(&l->experts.shared.down, scale);
    for (uint32_t e = 0; e < m->hparams.layers[i].n_experts; e++)
        scale_branch(&l->experts.each[e].down, scale);
}

static enum status bind_layer(struct model *m, size_t i, struct status_why *why)
{
    m->layers[i].output_scale = 1;
    enum status status = bind_norms(m, i, why);
    if (!status)
        status = bind_mixer(m, i, why);
    if (!status)
        status = model_bind_indexer(m, i, why);
    if (!status)
        status = model_bind_ffn(m, i, why);
    if (!status && m->arch->bind)
        status = m->arch->bind(m, i, why);
    if (!status)
        scale_branches(m, i);
    return status;
}

/** Tensors of the blocks that predict further tokens and are not evaluated. */
static void skip_nextn(struct model *m)
{
    for (size_t t = 0; t < gguf_n_tensors(m->file); t++) {
        size_t block = model_block_of(m->tensors[t].source->name);
        if (block >= m->hparams.n_layers + m->hparams.n_bound &&
            block < m->hparams.n_layers + m->hparams.n_nextn)
            m->tensors[t].understood = m->tensors[t].unused = true;
    }
}

enum status model_bind(struct model *m, struct status_why *why)
{
    enum status status = model_bind_ends(m, why);
    if (!status)
        status = model_bind_rope_factors(m, why);
    if (!status && m->arch->bind)
        status = m->arch->bind(m, MODEL_NO_LAYER, why);
    size_t n = m->hparams.n_layers + m->hparams.n_bound;
    for (size_t i = 0; !status && i < n; i++)
        status = bind_layer(m, i, why);
    if (!status && m->hparams.n_bound)
        status = model_bind_nextn(m, m->hparams.n_layers, why);
    skip_nextn(m);
    return status;
}

enum status model_bind_again(struct model *m, const char *name, struct status_why *why)
{
    size_t block = model_block_of(name);
    if (block < m->hparams.n_layers)
        return bind_layer(m, block, why);
    return block == SIZE_MAX ? model_bind(m, why) : STATUS_OK;
}

/* A layer: its norms, what mixes its tokens, its feed-forward. */
#include <stdio.h>

#include "model/arch.h"
#include "model/bind/bind.h"
#include "model/state.h"

static const char *name_or(const char *name, const char *standard)
{
    return name ? name : standard;
}

static void bind_norms(struct model *m, size_t i)
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
    if (m->arch->partial) {
        attn = shape->mixer == MODEL_NO_MIXER ? "" : attn;
        ffn = shape->n_ff == 0 ? "" : ffn;
    }
    model_bind_norm(m, i, attn, n, &l->attn_norm);
    model_bind_norm(m, i, name_or(names->attn_post, ""), n, &l->attn_post_norm);
    model_bind_norm(m, i, ffn, n, &l->ffn_norm);
    model_bind_norm(m, i, name_or(names->ffn_post, ""), n, &l->ffn_post_norm);
    l->attn_post_norm.eps = l->ffn_post_norm.eps = m->arch->post_eps;
}

static void bind_attention_mamba2(struct model *m, size_t i)
{
    model_bind_attention(m, i);
    model_bind_mamba2(m, i);
}

static void bind_matrix(struct model *m, size_t i)
{
    size_t n = m->hparams.n_embd;
    model_bind_product(m, i, "attn_output", n, n, &m->layers[i].output);
}

static void bind_mixer(struct model *m, size_t i)
{
    static void (*const by_mixer[])(struct model * m, size_t i) = {
        [MODEL_ATTENTION] = model_bind_attention,
        [MODEL_LATENT_ATTENTION] = model_bind_latent,
        [MODEL_RUN_ATTENTION] = model_bind_runs,
        [MODEL_DELTA_NET] = model_bind_delta_net,
        [MODEL_MAMBA2] = model_bind_mamba2,
        [MODEL_KIMI_DELTA_NET] = model_bind_kimi_delta_net,
        [MODEL_SHORT_CONVOLUTION] = model_bind_short_convolution,
        [MODEL_ATTENTION_MAMBA2] = bind_attention_mamba2,
        [MODEL_MATRIX] = bind_matrix,
        [MODEL_NO_MIXER] = NULL,
    };
    enum model_mixer mixer = m->hparams.layers[i].mixer;
    if (by_mixer[mixer])
        by_mixer[mixer](m, i);
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

static void bind_layer(struct model *m, size_t i)
{
    m->layers[i].output_scale = 1;
    bind_norms(m, i);
    bind_mixer(m, i);
    model_bind_indexer(m, i);
    model_bind_ffn(m, i);
    if (m->arch->bind)
        m->arch->bind(m, i);
    if (!m->kept.status)
        scale_branches(m, i);
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
    m->kept.status = STATUS_OK;
    model_bind_ends(m);
    model_bind_rope_factors(m);
    if (m->arch->bind)
        m->arch->bind(m, MODEL_NO_LAYER);
    size_t n = m->hparams.n_layers + m->hparams.n_bound;
    for (size_t i = 0; !m->kept.status && i < n; i++)
        bind_layer(m, i);
    if (m->hparams.n_bound)
        model_bind_nextn(m, m->hparams.n_layers);
    skip_nextn(m);
    return status_of(&m->kept, why);
}

enum status model_bind_again(struct model *m, const char *name, struct status_why *why)
{
    size_t block = model_block_of(name);
    if (block == SIZE_MAX)
        return model_bind(m, why);
    m->kept.status = STATUS_OK;
    if (block < m->hparams.n_layers)
        bind_layer(m, block);
    return status_of(&m->kept, why);
}

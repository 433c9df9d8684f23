/* Layers with a state: the gated delta net, Mamba-2 and the short convolution. */
#include "model/bind/bind.h"
#include "model/state.h"

/** What both have: the convolution over n_channels, decays, the norm of n_groups times n_norm, the
 * way out. */
static enum status bind_common(struct model *m, size_t i, size_t n_channels, size_t n_groups,
                               size_t n_norm, struct status_why *why)
{
    const struct model_recurrent_hparams *h = &m->hparams.recurrent;
    struct model_recurrent *l = &m->layers[i].recurrent;
    bool norm_required = m->hparams.layers[i].mixer != MODEL_ATTENTION_MAMBA2;
    enum status status = model_bind_layer_matrix(
        m, i, "ssm_conv1d.weight", (struct model_shape){.n_rows = n_channels, .n_cols = h->n_taps},
        &l->taps, why);
    if (!status)
        status =
            model_bind_layer_vector(m, i, "ssm_conv1d.bias", n_channels, true, &l->taps_bias, why);
    if (!status)
        status = model_bind_layer_vector(m, i, "ssm_dt.bias", h->n_heads, false, &l->dt_bias, why);
    l->norm.gain = (struct kern_weight){0};
    if (!status && (norm_required || model_has_projection(m, i, "ssm_norm")))
        status = model_bind_gains(m, i, "ssm_norm.weight", n_groups, n_norm, &l->norm.gain, why);
    if (!status)
        status = model_bind_product(m, i, "ssm_out", m->hparams.n_embd, h->n_inner, &l->out, why);
    return status;
}

enum status model_bind_delta_net(struct model *m, size_t i, struct status_why *why)
{
    const struct model_recurrent_hparams *h = &m->hparams.recurrent;
    struct model_recurrent *l = &m->layers[i].recurrent;
    size_t n_embd = m->hparams.n_embd;
    size_t n_channels = 2 * (size_t)h->n_groups * h->state + h->n_inner;
    bool joined = m->arch->grouped_values && model_has_projection(m, i, "ssm_in");
    enum status status =
        joined
            ? model_bind_product(m, i, "ssm_in", n_channels + h->n_inner, n_embd, &l->joined, why)
            : model_bind_product(m, i, "attn_qkv", n_channels, n_embd, &l->in, why);
    if (!status && !joined)
        status = model_bind_product(m, i, "attn_gate", h->n_inner, n_embd, &l->gate, why);
    if (!status)
        status = bind_common(m, i, n_channels, 1, h->state, why);
    if (!status)
        status = model_bind_layer_vector(m, i, "ssm_a", h->n_heads, false, &l->a, why);
    if (!status && model_has_projection(m, i, "ssm_ba"))
        return model_bind_product(m, i, "ssm_ba", 2 * (size_t)h->n_heads, n_embd, &l->beta_alpha,
                                  why);
    if (!status)
        status = model_bind_product(m, i, "ssm_beta", h->n_heads, n_embd, &l->beta, why);
    if (!status)
        status = model_bind_product(m, i, "ssm_alpha", h->n_heads, n_embd, &l->alpha, why);
    return status;
}

enum status model_bind_mamba2(struct model *m, size_t i, struct status_why *why)
{
    const struct model_recurrent_hparams *h = &m->hparams.recurrent;
    struct model_recurrent *l = &m->layers[i].recurrent;
    size_t n_channels = h->n_inner + 2 * (size_t)h->n_groups * h->state;
    enum status status = model_bind_product(m, i, "ssm_in", h->n_inner + n_channels + h->n_heads,
                                            m->hparams.n_embd, &l->in, why);
    if (!status)
        status = bind_common(m, i, n_channels, h->n_groups, h->n_inner / h->n_groups, why);
    if (!status)
        status = model_bind_gains(m, i, "ssm_a", h->n_heads, 1, &l->a, why);
    return status ? status : model_bind_gains(m, i, "ssm_d", h->n_heads, 1, &l->skip, why);
}

enum status model_bind_short_convolution(struct model *m, size_t i, struct status_why *why)
{
    const struct model_recurrent_hparams *h = &m->hparams.recurrent;
    struct model_recurrent *l = &m->layers[i].recurrent;
    size_t n = h->n_inner, n_embd = m->hparams.n_embd;
    struct model_shape taps = {.n_rows = n, .n_cols = h->n_taps};
    enum status status = model_bind_product(m, i, "shortconv.in_proj", 3 * n, n_embd, &l->in, why);
    if (!status)
        status = model_bind_layer_matrix(m, i, "shortconv.conv.weight", taps, &l->taps, why);
    return status ? status
                  : model_bind_product(m, i, "shortconv.out_proj", n_embd, n, &l->out, why);
}

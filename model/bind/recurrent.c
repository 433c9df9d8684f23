/* Layers with a state: delta nets, Mamba-2 and the short convolution. */
#include <stdio.h>

#include "model/bind/bind.h"
#include "model/state.h"

/** What both have: the convolution over n_channels, decays, the norm of n_groups times n_norm, the
 * way out. */
static void bind_common(struct model *m, size_t i, size_t n_channels, size_t n_groups,
                        size_t n_norm)
{
    const struct model_recurrent_hparams *h = &m->hparams.recurrent;
    struct model_recurrent *l = &m->layers[i].recurrent;
    model_bind_layer_matrix(m, i, "ssm_conv1d.weight",
                            (struct model_shape){.n_rows = n_channels, .n_cols = h->n_taps},
                            &l->taps);
    model_bind_layer_vector(
        m, i, "ssm_conv1d.bias", n_channels,
        m->hparams.layers[i].mixer == MODEL_DELTA_NET ? MODEL_NEVER : MODEL_ALWAYS, &l->taps_bias);
    model_bind_layer_vector(m, i, "ssm_dt.bias", h->n_heads, MODEL_ALWAYS, &l->dt_bias);
    model_bind_gains(m, i, "ssm_norm.weight", n_groups, n_norm, &l->norm.gain);
    model_bind_product(m, i, "ssm_out", m->hparams.n_embd, h->n_inner, &l->out);
}

void model_bind_delta_net(struct model *m, size_t i)
{
    const struct model_recurrent_hparams *h = &m->hparams.recurrent;
    struct model_recurrent *l = &m->layers[i].recurrent;
    size_t n_embd = m->hparams.n_embd;
    size_t n_channels = 2 * (size_t)h->n_groups * h->state + h->n_inner;
    bool joined = m->arch->grouped_values && model_has_projection(m, i, "ssm_in");
    if (joined) {
        model_bind_product(m, i, "ssm_in", n_channels + h->n_inner, n_embd, &l->joined);
    } else {
        model_bind_product(m, i, "attn_qkv", n_channels, n_embd, &l->in);
        model_bind_product(m, i, "attn_gate", h->n_inner, n_embd, &l->gate);
    }
    bind_common(m, i, n_channels, 1, h->state);
    model_bind_layer_vector(m, i, "ssm_a", h->n_heads, MODEL_ALWAYS, &l->a);
    if (model_has_projection(m, i, "ssm_ba")) {
        model_bind_product(m, i, "ssm_ba", 2 * (size_t)h->n_heads, n_embd, &l->beta_alpha);
    } else {
        model_bind_product(m, i, "ssm_beta", h->n_heads, n_embd, &l->beta);
        model_bind_product(m, i, "ssm_alpha", h->n_heads, n_embd, &l->alpha);
    }
}

void model_bind_mamba2(struct model *m, size_t i)
{
    const struct model_recurrent_hparams *h = &m->hparams.recurrent;
    struct model_recurrent *l = &m->layers[i].recurrent;
    size_t n_channels = h->n_inner + 2 * (size_t)h->n_groups * h->state;
    model_bind_product(m, i, "ssm_in", h->n_inner + n_channels + h->n_heads, m->hparams.n_embd,
                       &l->in);
    bind_common(m, i, n_channels, h->n_groups, h->n_inner / h->n_groups);
    model_bind_gains(m, i, "ssm_a", h->n_heads, 1, &l->a);
    model_bind_gains(m, i, "ssm_d", h->n_heads, 1, &l->skip);
}

/** Taps as [channels, taps], or with axes of 1 between and after them. */
static void bind_taps(struct model *m, size_t i, const char *name, size_t n_channels,
                      struct kern_weight *out)
{
    size_t n_taps = m->hparams.recurrent.n_taps;
    char whole[64];
    snprintf(whole, sizeof whole, "blk.%zu.%s", i, name);
    const struct gguf_tensor *stored = gguf_tensor_find(m->file, whole);
    bool apart = stored && n_channels > 1 && stored->ne[1] == 1;
    struct model_shape shape = {
        .n_rows = apart ? 1 : n_channels, .n_cols = n_taps, .n_matrices = apart ? n_channels : 0};
    model_bind_layer_matrix(m, i, name, shape, out);
}

/** A product of one matrix, or of two that are narrow between them. */
struct kimi_gate {
    const char *whole; /* NULL: low, then high */
    const char *low, *high;
};

static void bind_kimi_gate(struct model *m, size_t i, const struct kimi_gate *gate,
                           struct model_product *low, struct model_product *high)
{
    const struct model_recurrent_hparams *h = &m->hparams.recurrent;
    if (!gate->whole)
        model_bind_product(m, i, gate->low, h->state, m->hparams.n_embd, low);
    model_bind_product(m, i, gate->whole ? gate->whole : gate->high, h->n_inner,
                       gate->whole ? m->hparams.n_embd : h->state, high);
}

/** What decays, lengths and shares of a layer's tokens are made of. */
static void bind_kimi_gates(struct model *m, size_t i)
{
    const struct model_recurrent_hparams *h = &m->hparams.recurrent;
    struct model_recurrent *l = &m->layers[i].recurrent;
    const struct kimi_gate f = {m->arch->whole_f, "ssm_f_a", "ssm_f_b"};
    const struct kimi_gate g = {m->arch->whole_g, "ssm_g_a", "ssm_g_b"};
    bind_kimi_gate(m, i, &f, &l->alpha_low, &l->alpha);
    bind_kimi_gate(m, i, &g, &l->gate_low, &l->gate);
    model_bind_product(m, i, "ssm_beta", h->n_heads, m->hparams.n_embd, &l->beta);
    model_bind_layer_vector(m, i, "ssm_dt.bias", h->n_inner, MODEL_ALWAYS, &l->dt_bias);
    model_bind_gains(m, i, "ssm_a", h->n_heads, 1, &l->a);
}

void model_bind_kimi_delta_net(struct model *m, size_t i)
{
    const struct model_recurrent_hparams *h = &m->hparams.recurrent;
    struct model_layer *layer = &m->layers[i];
    size_t n_embd = m->hparams.n_embd;
    static const char *const names[] = {"attn_q", "attn_k", "attn_v"};
    static const char *const taps_names[] = {"ssm_conv1d_q.weight", "ssm_conv1d_k.weight",
                                             "ssm_conv1d_v.weight"};
    struct model_product *const products[] = {&layer->q, &layer->k, &layer->v};
    struct kern_weight *const taps[] = {&layer->recurrent.taps, &layer->recurrent.k_taps,
                                        &layer->recurrent.v_taps};
    for (size_t p = 0; p < 3; p++) {
        model_bind_product(m, i, names[p], h->n_inner, n_embd, products[p]);
        bind_taps(m, i, taps_names[p], h->n_inner, taps[p]);
    }
    bind_kimi_gates(m, i);
    model_bind_norm(m, i, "ssm_norm", h->state, &layer->recurrent.norm);
    model_bind_product(m, i, "attn_output", n_embd, h->n_inner, &layer->output);
}

void model_bind_short_convolution(struct model *m, size_t i)
{
    const struct model_recurrent_hparams *h = &m->hparams.recurrent;
    struct model_recurrent *l = &m->layers[i].recurrent;
    size_t n = h->n_inner, n_embd = m->hparams.n_embd;
    struct model_shape taps = {.n_rows = n, .n_cols = h->n_taps};
    model_bind_product(m, i, "shortconv.in_proj", 3 * n, n_embd, &l->in);
    model_bind_layer_matrix(m, i, "shortconv.conv.weight", taps, &l->taps);
    model_bind_product(m, i, "shortconv.out_proj", n_embd, n, &l->out);
}

/** Nemotron H: each block is Mamba-2, or attention without positions, or a feed-forward. */
#include <stdio.h>

#include "model/arch.h"
#include "model/bind/bind.h"
#include "model/state.h"

static enum status read(struct model_hparams *h, const struct model_reading *r,
                        struct status_why *why)
{
    for (uint32_t i = 0; i < h->n_layers; i++) {
        struct model_layer_shape *l = &h->layers[i];
        l->rope = MODEL_ROPE_OFF;
        l->mixer = l->n_ff > 0         ? MODEL_NO_MIXER
                   : l->n_kv_heads > 0 ? MODEL_ATTENTION
                                       : MODEL_MAMBA2;
    }
    /* The tensors say how wide the rows are that the experts work on; a key may repeat it. */
    for (uint32_t i = 0; i < h->n_layers; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%u.ffn_latent_down.weight", i);
        const struct gguf_tensor *narrow = gguf_tensor_find(r->keys.file, name);
        if (narrow && narrow->ne[1] <= h->n_embd)
            h->experts.width = (uint32_t)narrow->ne[1];
    }
    uint32_t width;
    enum status status = model_key_u32_or(&r->keys, "moe_latent_size", model_width_range,
                                          h->experts.width, &width, why);
    if (!status && width != h->experts.width)
        status = status_fail(why, STATUS_FORMAT,
                             "%s: key '%s.moe_latent_size' is %u, expected %u, the rows of "
                             "'ffn_latent_down'",
                             gguf_path(r->keys.file), r->keys.prefix, width, h->experts.width);
    if (status)
        return status;
    h->recurrent.dt_min = r->options->llama_compat ? 0 : 0.001f;
    h->recurrent.scale = 1;
    return model_recurrent_read(h, r, why);
}

static enum status bind(struct model *m, size_t i, struct status_why *why)
{
    size_t n = m->hparams.experts.width;
    size_t n_embd = m->hparams.n_embd;
    if (i == MODEL_NO_LAYER || n == 0 || m->hparams.layers[i].n_experts == 0)
        return STATUS_OK;
    struct model_experts *x = &m->layers[i].experts;
    enum status status = model_bind_product(m, i, "ffn_latent_down", n, n_embd, &x->narrow, why);
    return status ? status : model_bind_product(m, i, "ffn_latent_up", n_embd, n, &x->widen, why);
}

#define NEMOTRON                                                                                   \
    .mixed = true, .ffn = MODEL_FFN_UNGATED, .activation = KERN_RELU_SQUARED, .read = read

const struct model_arch model_arch_nemotron_h = {.name = "nemotron_h", NEMOTRON};

const struct model_arch model_arch_nemotron_h_moe = {
    .name = "nemotron_h_moe",
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .bind = bind,
    NEMOTRON,
};

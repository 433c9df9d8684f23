/**
 * MiniMax M2: norms of all heads as one vector, experts with a bias in their selection. M3: norms
 * of each head, and after a dense beginning blocks of keys that each key head chooses.
 */
#include "model/arch.h"

/** Blocks of keys, and how many of the last ones are chosen whatever they hold. */
static enum status read_blocks(struct model_hparams *h, const struct model_reading *r,
                               struct status_why *why)
{
    struct model_index_hparams *x = &h->index;
    enum status status = model_key_u32_required(&r->keys, "attention.indexer.block_size",
                                                model_positions_range, &x->together, why);
    if (!status)
        status = model_key_u32_required(&r->keys, "attention.indexer.local_blocks",
                                        (struct model_range){0, x->n_best}, &x->n_local, why);
    return status;
}

static enum status read_m3(struct model_hparams *h, const struct model_reading *r,
                           struct status_why *why)
{
    enum status status = model_indexer_read(h, r, why);
    if (!status)
        status = read_blocks(h, r, why);
    h->index.weighed = false;
    h->index.eps = h->eps;
    for (uint32_t i = 0; !status && i < h->n_layers; i++) {
        struct model_layer_shape *l = &h->layers[i];
        l->sparse = l->n_experts > 0;
        if (l->sparse && l->n_kv_heads != h->index.n_heads)
            status = status_fail(why, STATUS_FORMAT,
                                 "%s: key '%s.attention.indexer.head_count' is %u, expected the %u "
                                 "key/value heads of layer %u",
                                 gguf_path(r->keys.file), r->keys.prefix, h->index.n_heads,
                                 l->n_kv_heads, i);
    }
    if (!status && h->experts.n > 0)
        status = model_key_require(&r->keys, "expert_gating_func", "a whole number", why);
    return status;
}

const struct model_arch model_arch_minimax_m3 = {
    .name = "minimax-m3",
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .activation = KERN_SWIGLU_OAI,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .read = read_m3,
};

const struct model_arch model_arch_minimax_m2 = {
    .name = "minimax-m2",
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_WHOLE,
};

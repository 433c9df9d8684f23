/**
 * MiniMax M2: norms of all heads as one vector, experts with a bias in their selection. M3: norms
 * of each head, and after a dense beginning blocks of keys that each key head chooses.
 */
#include <string.h>

#include "model/arch.h"
#include "model/folder/state.h"

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

static const struct model_folder_name folder_names[] = {
    {"block_sparse_moe.gate", "ffn_gate_inp", MODEL_KEEP},
    {"block_sparse_moe.e_score_correction_bias", "exp_probs_b.bias", MODEL_KEEP},
    {"mlp.e_score_correction_bias", "exp_probs_b.bias", MODEL_KEEP},
    {"block_sparse_moe.experts.*.w1", "ffn_gate_exps", MODEL_KEEP},
    {"block_sparse_moe.experts.*.w3", "ffn_up_exps", MODEL_KEEP},
    {"block_sparse_moe.experts.*.w2", "ffn_down_exps", MODEL_KEEP},
    {0},
};

static const struct model_folder_key folder_keys[] = {
    {"intermediate_size", "expert_feed_forward_length", MODEL_MEMBER_U32, 0},
    {0},
};

/** Shares are sigmoids in the authors' code; a folder that was saved again does not say so. */
static enum status write_folder(struct model_folder *f, struct status_why *why)
{
    const cJSON *gating = model_config_find(f, "scoring_func");
    if (gating && (!cJSON_IsString(gating) || strcmp(gating->valuestring, "sigmoid") != 0))
        return model_config_fail(f, STATUS_UNSUPPORTED, why,
                                 "member 'scoring_func' is not sigmoid, which architecture %s has",
                                 f->arch->name);
    model_write_u32(f, "expert_gating_func", 2);
    return STATUS_OK;
}

static const struct model_folder_map folder = {
    .classes = {"MiniMaxM2ForCausalLM"},
    .names = folder_names,
    .keys = folder_keys,
    .write = write_folder,
    .defaults = "{\"rope_theta\": 5000000, \"head_dim\": 128}",
};

const struct model_arch model_arch_minimax_m2 = {
    .name = "minimax-m2",
    .folder = &folder,
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_WHOLE,
};

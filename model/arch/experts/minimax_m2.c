/**
 * MiniMax M2: norms of all heads as one vector, experts with a bias in their selection. M3: norms
 * of each head, and after a dense beginning blocks of keys that each key head chooses.
 */
#include <string.h>

#include "model/arch.h"
#include "model/folder/state.h"

/** Blocks of keys, and how many of the last ones are chosen whatever they hold. */
static void read_blocks(struct model_hparams *h, const struct model_reading *r)
{
    static const struct model_arch_key blocks[] = {{"attention.indexer.block_size", MODEL_REQUIRED},
                                                   {0}};
    struct model_index_hparams *x = &h->index;
    model_hparams_read_keys(h, r, blocks);
    x->n_local = model_key_u32(&r->keys, "attention.indexer.local_blocks",
                               (struct model_range){0, x->n_best});
}

static void read_m3(struct model_hparams *h, const struct model_reading *r)
{
    model_indexer_read(h, r);
    read_blocks(h, r);
    h->index.weighed = false;
    h->index.eps = h->eps;
    for (uint32_t i = 0; i < h->n_layers; i++) {
        struct model_layer_shape *l = &h->layers[i];
        l->sparse = l->n_experts > 0;
        if (l->sparse && l->n_kv_heads != h->index.n_heads)
            model_key_fail(&r->keys, STATUS_FORMAT, "attention.indexer.head_count",
                           "is %u, expected the %u key/value heads of layer %u", h->index.n_heads,
                           l->n_kv_heads, i);
    }
}

static const struct model_folder_name m3_names[] = {
    {"self_attn.index_q_proj", "indexer.q_proj"},
    {"self_attn.index_k_proj", "indexer.k_proj"},
    {"self_attn.index_q_norm", "indexer.q_norm"},
    {"self_attn.index_k_norm", "indexer.k_norm"},
    {0},
};

static const struct model_arch_key m3_keys[] = {
    {"expert_feed_forward_length", .from = "intermediate_size"},
    {"expert_shared_count", .from = "n_shared_experts", .unset = 1},
    {"expert_weights_scale", .unset = 2},
    {"expert_weights_norm", .unset = 1},
    {"expert_gating_func", .unset = 2},
    {.from = "swiglu_alpha", .unset = 1.702, .member = MODEL_MEMBER_FIXED},
    {.from = "swiglu_limit", .unset = 7, .member = MODEL_MEMBER_FIXED},
    {0},
};

/** The sizes of what chooses blocks: a group of members, or members that transformers saves. */
static void write_index(struct model_folder *f)
{
    static const struct {
        const char *in_group, *alone, *to;
    } sizes[] = {
        {"sparse_num_index_heads", "index_n_heads", "attention.indexer.head_count"},
        {"sparse_index_dim", "index_head_dim", "attention.indexer.key_length"},
        {"sparse_topk_blocks", "index_topk_blocks", "attention.indexer.top_k"},
        {"sparse_block_size", "index_block_size", "attention.indexer.block_size"},
        {"sparse_local_block", "index_local_blocks", "attention.indexer.local_blocks"},
    };
    struct base_field group = model_config_find(f, "sparse_attention_config");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const cJSON *item = base_field_get(group, sizes[i].in_group).json;
        bool is = cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble <= INT32_MAX;
        model_write_u32(f, sizes[i].to,
                        is ? (uint32_t)item->valuedouble : model_config_u32(f, sizes[i].alone));
    }
}

/** Whether a layer is of a kind: a name in a list, or not 0 in another. */
static bool is_kind(const struct model_folder *f, uint32_t i, const char *names, const char *kind,
                    const cJSON *numbers)
{
    const cJSON *item = cJSON_GetArrayItem(numbers, (int)i);
    return item ? item->valuedouble != 0 : model_config_is(f, names, i, kind);
}

/** A beginning of dense layers that see all, then sparse ones: GGUF can say no other order. */
static void write_m3(struct model_folder *f)
{
    struct base_field group = model_config_find(f, "sparse_attention_config");
    const cJSON *chosen = base_field_get(group, "sparse_attention_freq").json;
    const cJSON *experts = model_config_find(f, "moe_layer_freq").json;
    uint32_t n_dense = 0;
    for (uint32_t i = 0; i < f->n_layers && !f->json.status; i++) {
        bool sparse = is_kind(f, i, "mlp_layer_types", "sparse", experts);
        if (sparse != is_kind(f, i, "layer_types", "minimax_m3_sparse", chosen) ||
            (!sparse && n_dense < i))
            model_config_fail(f, STATUS_UNSUPPORTED,
                              "layer %u has experts or a choice of keys without the other, or "
                              "neither after layers with both",
                              i);
        n_dense += !sparse;
    }
    model_write_u32(f, "leading_dense_block_count", n_dense);
    write_index(f);
}

static const struct model_folder_map m3_folder = {
    .classes = {"MiniMaxM3SparseForConditionalGeneration", "MiniMaxM3SparseForCausalLM"},
    .names = {m3_names, model_mixtral_names},
    .norms_less_one = true,
    .write = write_m3,
};

const struct model_arch model_arch_minimax_m3 = {
    .name = "minimax-m3",
    .folder = &m3_folder,
    .keys = {m3_keys},
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .activation = KERN_SWIGLU_OAI,
    .needs = {{"rope.dimension_count"}, {"expert_gating_func", MODEL_WHEN_EXPERTS}},
    .needs_shares = true,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .read = read_m3,
    .presence = {{MODEL_ALWAYS, "output.weight exp_probs_b.bias"}},
};

static const struct model_folder_name folder_names[] = {
    {"block_sparse_moe.gate", "ffn_gate_inp"},
    {"block_sparse_moe.e_score_correction_bias", "exp_probs_b.bias"},
    {"mlp.e_score_correction_bias", "exp_probs_b.bias"},
    {"block_sparse_moe.experts.*.w1", "ffn_gate_exps"},
    {"block_sparse_moe.experts.*.w3", "ffn_up_exps"},
    {"block_sparse_moe.experts.*.w2", "ffn_down_exps"},
    {0},
};

static const struct model_arch_key keys[] = {
    {"expert_feed_forward_length", .from = "intermediate_size"},
    {0},
};

/** Shares are sigmoids in the authors' code; a folder that was saved again does not say so. */
static void write_folder(struct model_folder *f)
{
    struct base_field gating = model_config_find(f, "scoring_func");
    if (gating.json && !base_field_is(gating, "sigmoid"))
        base_field_fail(gating, STATUS_UNSUPPORTED, "is not sigmoid, which architecture %s has",
                        f->arch->name);
    model_write_u32(f, "expert_gating_func", 2);
}

static const struct model_folder_map folder = {
    .classes = {"MiniMaxM2ForCausalLM"},
    .names = {folder_names},
    .write = write_folder,
};

const struct model_arch model_arch_minimax_m2 = {
    .name = "minimax-m2",
    .folder = &folder,
    .keys = {keys},
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_WHOLE,
    .presence = {{MODEL_ALWAYS, "output.weight exp_probs_b.bias"}},
    .needs = {{"rope.dimension_count"}, {"expert_gating_func", MODEL_WHEN_EXPERTS}},
};

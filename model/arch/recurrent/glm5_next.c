/**
 * GLM 5.3 Flash, which two converters name differently: streams as DeepSeek V4's, delta nets as
 * Kimi Linear's, and between them latent attention without positions, to pools of keys that an
 * indexer chooses.
 */
#include "base/text/number.h"
#include "model/arch/latent/latent.h"
#include "model/arch/recurrent/kimi.h"
#include "model/bind/bind.h"
#include "model/folder/state.h"

/** Pools of positions, of which an indexer chooses as many as hold top_k of them. */
static void read_pools(struct model_hparams *h, const struct model_reading *r)
{
    static const char suffix[] = "attention.indexer.kpool", eps[] = "attention.layer_norm_epsilon";
    struct base_number shown;
    model_indexer_read(h, r);
    h->index.eps = model_key_f32(&r->keys, eps, 1e-6F);
    if (!(h->index.eps >= 0 && h->index.eps < 1))
        model_key_fail(&r->keys, STATUS_FORMAT, eps, "is %s, expected a number between 0 and 1",
                       base_float_text(&shown, h->index.eps));
    uint32_t pool = model_key_u32(&r->keys, suffix, (struct model_range){1, h->index.n_best});
    if (h->index.n_best % pool != 0)
        model_key_fail(&r->keys, STATUS_FORMAT, suffix,
                       "is %u, expected a divisor of the %u keys that are chosen", pool,
                       h->index.n_best);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        h->layers[i].sparse = h->layers[i].mixer == MODEL_LATENT_ATTENTION;
        h->layers[i].pool = pool;
        h->layers[i].rope = MODEL_ROPE_OFF;
    }
}

static void read(struct model_hparams *h, const struct model_reading *r)
{
    static const char tail[] = "attention.indexer.kpool_select_tail";
    model_latent_read(h, r);
    model_kimi_read(h, r);
    model_kimi_bound_read(h, r);
    h->recurrent.unit_eps = 1e-6F; /* in llama.cpp, too */
    read_pools(h, r);
    model_latent_read_choices(h, r, NULL);
    if (!model_key_bool(&r->keys, tail, true))
        model_key_fail(&r->keys, STATUS_UNSUPPORTED, tail,
                       "is false, supported is true: queries see the keys after the last pool");
    model_clamps_read(h, r, KERN_SWIGLU_CLAMP_BEFORE, 1e-6F);
}

/** After the last layer streams are averaged, without a mixer. */
static void bind(struct model *m, size_t i)
{
    if (i != MODEL_NO_LAYER)
        model_streams_bind(m, i);
}

static const struct model_arch_key keys[] = {
    {"attention.q_lora_rank", MODEL_REQUIRED, .least = 1},
    {"kda.head_dim", MODEL_REQUIRED, .from = ""}, /* model_kimi_write's */
    {"ssm.conv_kernel", MODEL_REQUIRED, .from = ""},
    {"hyper_connection.count", MODEL_REQUIRED, .unset = 4},
    {"hyper_connection.sinkhorn_iterations", MODEL_REQUIRED, .unset = 20},
    {"hyper_connection.epsilon", MODEL_REQUIRED, .unset = 1e-6},
    {"attention.indexer.head_count", .unset = 32},
    {"attention.indexer.key_length", .unset = 128},
    {"attention.indexer.top_k", .unset = 2048},
    {"attention.indexer.kpool", .unset = 16},
    {"expert_shared_count", .unset = 1},
    {"expert_weights_scale", .unset = 2.5},
    {"expert_weights_norm", .unset = 1},
    {"expert_gating_func", .unset = 2},
    {.from = "qk_rope_head_dim", .member = MODEL_MEMBER_FIXED},
    {.from = "index_kpool_compress", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {.from = "index_kpool_always_select_tail", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {0},
};

static const struct model_folder_name folder_names[] = {
    {"hc_attn_fn", "hc_attn_fn.weight"},
    {"hc_attn_base", "hc_attn_base.weight"},
    {"hc_attn_scale", "hc_attn_scale.weight"},
    {"hc_ffn_fn", "hc_ffn_fn.weight"},
    {"hc_ffn_base", "hc_ffn_base.weight"},
    {"hc_ffn_scale", "hc_ffn_scale.weight"},
    {"self_attn.indexer.index_kpool_compress_gate", "indexer_compressor_gate.weight"},
    {"self_attn.indexer.index_kpool_compress_ape", "indexer_compressor_ape.weight"},
    {0},
};

/** Which layers have latent attention: by a list, or every fourth. */
static void heads(const struct model_folder *f, struct model_folder_heads *of)
{
    uint8_t kinds[MODEL_MAX_BLOCKS];
    uint32_t n = model_config_kinds(f, "layer_types",
                                    "linear_attention indexed_attention full_attention", kinds);
    for (uint32_t i = 0; i < of->n; i++)
        of->n_kv_heads[i] = n > 0 ? kinds[i] > 0 : i % 4 == 3;
}

/** The least logarithm of a decay. null is none, but where a group of members is safe, as it is
 * unless it says no. */
static void write_bound(struct model_folder *f)
{
    static const char own[] = "linear_lower_bound", in_group[] = "gate_lower_bound";
    enum { USUAL = -5 };
    struct base_field group = model_config_find(f, "linear_attn_config");
    struct base_field said = base_field_get(group, in_group);
    bool none = said.json ? cJSON_IsNull(said.json) : model_config_null(f, own);
    if (none && !(group.json && base_field_flag_or(group, "safe_gate", true)))
        return;
    double bound = none        ? USUAL
                   : said.json ? model_config_real(group, in_group)
                               : model_config_f32_or(f, own, USUAL);
    model_write_f32(f, "kda.gate_lower_bound", bound);
}

static void write(struct model_folder *f)
{
    model_kimi_write(f);
    write_bound(f);
    model_indexer_write(f, 1);
    model_limit_write(f, "swiglu_clamp_exp");
    model_limit_write(f, "swiglu_clamp_shexp");
}

static const struct model_folder_map folder = {
    .classes = {"Glm5NextForConditionalGeneration", "Glm5NextForCausalLM"},
    .names = {model_latent_names, model_kimi_names, model_indexer_names, folder_names},
    .compressed = true,
    .heads = heads,
    .write = write,
};

static const struct model_node nodes[] = {
    {MODEL_AT_Q_LOW_NORM, "q_resid", "MUL"},
    {MODEL_AT_Q_WIDE, "q_absorbed", "PERMUTE"},
    {MODEL_AT_INDEX_K, "indexer_k", "ADD"},
    {MODEL_AT_INDEX_Q, "indexer_q", "RESHAPE"},
    {MODEL_AT_ALPHA, "blk.ssm_f_b.weight", "MUL_MAT"},
    {MODEL_AT_MIXER_GATED, "", .other = true}, /* it has no name */
    {0},
};

#define GLM5_NEXT                                                                                  \
    .keys = {keys, model_grouped_keys}, .unrotated = true, .without_keys = MODEL_KIMI_DELTA_NET,   \
    .needs_shares = true, .gating = KERN_GATE_SIGMOID, .normalise = MODEL_NORMALISE_BY_KEY,        \
    .nodes = nodes, .shared = MODEL_SHARED_PLAIN, .read = read, .bind = bind,                      \
    .presence = {{MODEL_ALWAYS, "output.weight exp_probs_b.bias"},                                 \
                 {MODEL_NEVER, "indexer_compressor_gate.bias"}}

const struct model_arch model_arch_glm5next = {
    .name = "glm5next",
    .needs = {{"swiglu_clamp_exp"},
              {"swiglu_clamp_shexp"},
              {"kda.gate_lower_bound"},
              {"expert_gating_func", MODEL_WHEN_EXPERTS}},
    GLM5_NEXT,
};

const struct model_arch model_arch_glm5_next = {
    .name = "glm5-next",
    .folder = &folder,
    .needs = {{"swiglu_clamp_exp"}, {"swiglu_clamp_shexp"}},
    GLM5_NEXT,
};

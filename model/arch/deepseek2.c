/**
 * DeepSeek V2, V3 and R1, Kimi K2 and others of the same name: latent attention, a dense beginning,
 * then experts. DeepSeek V3.2 and GLM 5 (glm-dsa) choose the keys that a query sees. And
 * Kimi Linear.
 */
#include <math.h>
#include <string.h>

#include "model/arch.h"
#include "model/folder/state.h"

/** Sizes of heads; key_length and value_length are those of the compressed cache in newer files. */
static enum status read_heads(struct model_hparams *h, const struct model_reading *r,
                              struct status_why *why)
{
    const struct model_keys *keys = &r->keys;
    static const char value[] = "attention.value_length_mla";
    struct model_range range = model_head_size_range;
    uint32_t key_size, value_size = h->layers[0].value_size;
    h->compressed_keys = model_key_find(keys, "attention.key_length_mla");
    enum status status = model_key_u32_or(keys, "attention.key_length_mla", range,
                                          h->layers[0].key_size, &key_size, why);
    if (!status)
        status = h->compressed_keys
                     ? model_key_u32_required(keys, value, range, &value_size, why)
                     : model_key_u32_or(keys, value, range, value_size, &value_size, why);
    if (!status)
        status = model_key_u32_required(keys, "attention.kv_lora_rank", model_width_range,
                                        &h->kv_rank, why);
    if (!status)
        status =
            model_key_u32_or(keys, "attention.q_lora_rank",
                             (struct model_range){0, model_width_range.high}, 0, &h->q_rank, why);
    if (!status && h->ropes[MODEL_ROPE_FULL].n_rot >= key_size)
        status = status_fail(why, STATUS_FORMAT,
                             "%s: key '%s.rope.dimension_count' is %u, expected less than the %u "
                             "elements of a key",
                             gguf_path(keys->file), keys->prefix, h->ropes[MODEL_ROPE_FULL].n_rot,
                             key_size);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        struct model_layer_shape *l = &h->layers[i];
        if (l->n_kv_heads == 0) /* Kimi's, of another kind */
            continue;
        l->mixer = MODEL_LATENT_ATTENTION;
        l->key_size = key_size;
        l->value_size = value_size;
        l->n_kv_heads = h->compressed_keys ? 1 : l->n_heads;
        l->scale = (float)(1 / sqrt((double)key_size));
    }
    return status;
}

/** YaRN's magnitude goes into the scale of the scores instead of cos and sin. */
static enum status read_magnitude(struct model_hparams *h, const struct model_reading *r,
                                  struct status_why *why)
{
    struct model_rope *rope = &h->ropes[MODEL_ROPE_FULL];
    float l = 0;
    enum status status = model_key_f32(&r->keys, "rope.scaling.yarn_log_multiplier", &l, why);
    if (status || rope->yarn_ext_factor <= 0 || rope->factor <= 1)
        return status;
    double log_factor = log((double)rope->factor);
    rope->magnitude /= 1 + 0.1 * log_factor;
    double m = 1 + (double)l * log_factor;
    for (uint32_t i = 0; i < h->n_layers; i++)
        h->layers[i].scale = (float)(m * m / sqrt((double)h->layers[i].key_size));
    return STATUS_OK;
}

static enum status read_mistral4(struct model_hparams *h, const struct model_reading *r,
                                 struct status_why *why)
{
    enum status status = read_heads(h, r, why);
    if (!status)
        status = read_magnitude(h, r, why);
    return status ? status : model_temperature_read(h, r, why);
}

static enum status read(struct model_hparams *h, const struct model_reading *r,
                        struct status_why *why)
{
    /* V2, which has softmax gating, takes the groups by their best expert, V3 by the best two. */
    h->experts.groups_by_best = h->experts.gating == KERN_GATE_SOFTMAX && !r->options->llama_compat;
    return read_mistral4(h, r, why);
}

/** Queries see the keys that an indexer chooses. */
static enum status read_sparse(struct model_hparams *h, const struct model_reading *r,
                               struct status_why *why)
{
    enum status status = read_heads(h, r, why);
    if (!status)
        status = model_key_u32_required(&r->keys, "attention.q_lora_rank", model_width_range,
                                        &h->q_rank, why);
    if (!status)
        status = read_magnitude(h, r, why);
    h->index.eps = 1e-6f; /* no key has it */
    if (!status)
        status = model_indexer_read(h, r, why);
    if (h->n_bound > 0 && r->options->llama_compat) /* all keys of the token after the next */
        h->layers[h->n_layers - 1].sparse = false;
    return status;
}

static enum status read_deepseek32(struct model_hparams *h, const struct model_reading *r,
                                   struct status_why *why)
{
    enum status status = read_sparse(h, r, why);
    h->index.halves = true;
    return status;
}

/** Some layers use the choice of the nearest one before them that has an indexer. */
static enum status read_shared_choices(struct model_hparams *h, const struct model_reading *r,
                                       struct status_why *why)
{
    static const char suffix[] = "attention.indexer.types";
    enum { LONG_CONTEXT = 1048576, PERIOD = 4 };
    bool own[MODEL_MAX_BLOCKS];
    for (uint32_t i = 0; i < h->n_layers; i++)
        own[i] = h->n_ctx_train < LONG_CONTEXT || i < 2 || i % PERIOD == 2;
    uint32_t n_own = h->n_layers - h->n_bound; /* the block after them chooses for itself */
    enum status status = model_key_bools(&r->keys, suffix, own, n_own, why);
    if (!status && !own[0])
        status = status_fail(why, STATUS_FORMAT,
                             "%s: key '%s.%s' says that block 0 has no indexer, expected one that "
                             "later blocks can use",
                             gguf_path(r->keys.file), r->keys.prefix, suffix);
    for (uint32_t i = 1; !status && i < n_own; i++)
        h->layers[i].index_layer = own[i] ? i : h->layers[i - 1].index_layer;
    return status;
}

static enum status read_glm_dsa(struct model_hparams *h, const struct model_reading *r,
                                struct status_why *why)
{
    enum status status = read_sparse(h, r, why);
    if (!status)
        status = read_shared_choices(h, r, why);
    if (status || !r->options->llama_compat)
        return status;
    h->index.eps = 0;
    return model_remark(r->remarks, why,
                        "the norm of the indexer's keys has an epsilon of 0, as in llama.cpp");
}

#define LATENT_NAMES                                                                               \
    {"self_attn.q_a_proj", "attn_q_a", MODEL_KEEP},                                                \
        {"self_attn.q_a_layernorm", "attn_q_a_norm", MODEL_KEEP},                                  \
        {"self_attn.q_b_proj", "attn_q_b", MODEL_KEEP},                                            \
        {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa", MODEL_KEEP},                             \
    {                                                                                              \
        "self_attn.kv_a_layernorm", "attn_kv_a_norm", MODEL_KEEP                                   \
    }

/** The matrix that makes keys and values, cut into those of newer GGUF files where it can be. */
#define COMPRESSED_NAMES                                                                           \
    LATENT_NAMES, {"self_attn.kv_b_proj", "attn_kv_b", MODEL_IF_WHOLE},                            \
        {"self_attn.kv_b_proj.weight", "attn_k_b.weight", MODEL_OF_KEYS | MODEL_TURN_OVER},        \
    {                                                                                              \
        "self_attn.kv_b_proj.weight", "attn_v_b.weight", MODEL_OF_VALUES                           \
    }

static const struct model_folder_name folder_names[] = {
    LATENT_NAMES,
    {"self_attn.kv_b_proj", "attn_kv_b", MODEL_KEEP},
    {0},
};

static const struct model_folder_name sparse_names[] = {
    COMPRESSED_NAMES,
    {"self_attn.indexer.wq_b", "indexer.attn_q_b", MODEL_KEEP},
    {"self_attn.indexer.wk", "indexer.attn_k", MODEL_KEEP},
    {"self_attn.indexer.k_norm", "indexer.k_norm", MODEL_KEEP},
    {"self_attn.indexer.weights_proj", "indexer.proj", MODEL_KEEP},
    {0},
};

/** YaRN's magnitude, which GGUF can say where both of its members are equal. */
static enum status write_magnitude(struct model_folder *f, struct status_why *why)
{
    const cJSON *rope = model_config_any(f, "rope_parameters rope_scaling");
    const cJSON *all = cJSON_GetObjectItemCaseSensitive(rope, "mscale_all_dim");
    const cJSON *one = cJSON_GetObjectItemCaseSensitive(rope, "mscale");
    if (!all && !one) {
        model_write_f32(f, "rope.scaling.yarn_log_multiplier", 0);
        return STATUS_OK;
    }
    if (!cJSON_IsNumber(all) || !cJSON_IsNumber(one) || all->valuedouble != one->valuedouble)
        return model_config_fail(f, STATUS_UNSUPPORTED, why,
                                 "members 'mscale' and 'mscale_all_dim' of RoPE differ, expected "
                                 "equal ones, which GGUF's %s can say",
                                 f->arch->name);
    model_write_f32(f, "rope.scaling.yarn_log_multiplier", 0.1 * all->valuedouble);
    return STATUS_OK;
}

/** Also the gating, which V3 leaves to its code where a folder was saved again. */
static enum status write_folder(struct model_folder *f, struct status_why *why)
{
    const cJSON *class = cJSON_GetObjectItemCaseSensitive(f->config, "architectures")->child;
    enum status status =
        model_write_gating(f, "scoring_func", strstr(class->valuestring, "V2") ? 1 : 2, why);
    return status ? status : write_magnitude(f, why);
}

static const struct model_folder_key sparse_keys[] = {
    {"index_n_heads", "attention.indexer.head_count", MODEL_MEMBER_U32, 0},
    {"index_head_dim", "attention.indexer.key_length", MODEL_MEMBER_U32, 0},
    {"index_topk", "attention.indexer.top_k", MODEL_MEMBER_U32, 0},
    {"routed_scaling_factor", "expert_weights_scale", MODEL_MEMBER_F32, 2.5},
    {"norm_topk_prob", "expert_weights_norm", MODEL_MEMBER_BOOL, 1},
    {0},
};

static const struct model_folder_map folder32 = {
    .classes = {"DeepseekV32ForCausalLM"},
    .names = sparse_names,
    .keys = sparse_keys,
    .grouped = true,
    .compressed = true,
    .write = write_folder,
};

/** Which layers choose for themselves: a list, a text of F and S, or a period after a beginning. */
static enum status write_choices(struct model_folder *f, struct status_why *why)
{
    const cJSON *list = model_config_find(f, "indexer_types");
    const cJSON *text = model_config_find(f, "index_topk_pattern");
    const char *pattern = cJSON_IsString(text) ? text->valuestring : NULL;
    uint8_t own[MODEL_MAX_BLOCKS];
    uint32_t period = 1, offset = 2;
    enum status status = model_config_u32(f, "index_topk_freq", false, &period, why);
    if (!status)
        status = model_config_u32(f, "index_skip_topk_offset", false, &offset, why);
    if (!status && (f->n_layers > MODEL_MAX_BLOCKS || (pattern && strlen(pattern) < f->n_layers) ||
                    (list && cJSON_GetArraySize(list) < (int)f->n_layers)))
        status = model_config_fail(f, STATUS_FORMAT, why,
                                   "member '%s' does not say of each of %u layers whether it has "
                                   "an indexer, expected layers below %d",
                                   list ? list->string : "index_topk_pattern", f->n_layers,
                                   MODEL_MAX_BLOCKS);
    period = period > 0 ? period : 1;
    for (uint32_t i = 0; !status && i < f->n_layers; i++)
        own[i] = list      ? model_config_is(f, "indexer_types", i, "full")
                 : pattern ? pattern[i] == 'F'
                           : i + 1 <= offset || (i + 1 - offset) % period == 0;
    if (!status)
        model_write_bools(f, "attention.indexer.types", own, f->n_layers);
    return status ? status : write_folder(f, why);
}

static const struct model_folder_map folder_glm = {
    .classes = {"GlmMoeDsaForCausalLM"},
    .names = sparse_names,
    .keys = sparse_keys,
    .grouped = true,
    .compressed = true,
    .write = write_choices,
};

#define NEEDS_OF_YARN                                                                              \
    {"rope.scaling.yarn_log_multiplier", MODEL_WHEN_YARN},                                         \
    {                                                                                              \
        "rope.scaling.original_context_length", MODEL_WHEN_YARN                                    \
    }

const struct model_arch model_arch_deepseek32 = {
    .name = "deepseek32",
    .folder = &folder32,
    .needs = {{"expert_gating_func", MODEL_WHEN_EXPERTS},
              {"expert_group_count", MODEL_WHEN_EXPERTS},
              NEEDS_OF_YARN,
              MODEL_NEEDS_SHARES},
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .nextn = MODEL_NEXTN_NORMED,
    .read = read_deepseek32,
    .presence = {{MODEL_ALWAYS, "output.weight exp_probs_b.bias"}},
};

const struct model_arch model_arch_glm_dsa = {
    .name = "glm-dsa",
    .folder = &folder_glm,
    .needs = {MODEL_NEEDS_SHARES},
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .nextn = MODEL_NEXTN_NORMED,
    .read = read_glm_dsa,
    .presence = {{MODEL_ALWAYS, "output.weight"}},
};

/** As older GGUF files: kv_b_proj whole, so nothing is turned over. */
static const struct model_folder_map folder = {
    .classes = {"DeepseekV3ForCausalLM", "DeepseekV2ForCausalLM", "Glm4MoeLiteForCausalLM",
                "KimiVLForConditionalGeneration", "KimiK25ForConditionalGeneration"},
    .names = folder_names,
    .keys = model_folder_grouped,
    .write = write_folder,
};

/** Mistral 4: a softmax over experts, and queries that grow with their position. */
static enum status write_mistral4(struct model_folder *f, struct status_why *why)
{
    const cJSON *rope = model_config_any(f, "rope_parameters rope_scaling");
    const cJSON *beta = cJSON_GetObjectItemCaseSensitive(rope, "llama_4_scaling_beta");
    if (cJSON_IsNumber(beta))
        model_write_f32(f, "attention.temperature_scale", beta->valuedouble);
    model_write_u32(f, "expert_gating_func", 1);
    return write_magnitude(f, why);
}

static bool is_mistral4(const struct model_folder *f)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(f->text, "model_type");
    return cJSON_IsString(type) && strcmp(type->valuestring, "mistral4") == 0;
}

static const struct model_folder_map folder_mistral4 = {
    .classes = {"Mistral4ForCausalLM", "Mistral3ForConditionalGeneration"},
    .names = folder_names,
    .keys = model_folder_grouped,
    .is = is_mistral4,
    .write = write_mistral4,
};

const struct model_arch model_arch_mistral4 = {
    .folder = &folder_mistral4,
    .name = "mistral4",
    .needs = {{"attention.temperature_scale", MODEL_WHEN_EVER,
               "queries do not grow with their position; the published model's do, by 0.1"},
              NEEDS_OF_YARN,
              MODEL_NEEDS_SHARES},
    .yarn_factor = true,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .read = read_mistral4,
};

/** Kimi Linear: delta nets, and latent attention without positions. */
static enum status read_kimi(struct model_hparams *h, const struct model_reading *r,
                             struct status_why *why)
{
    struct model_recurrent_hparams *n = &h->recurrent;
    enum status status = read_heads(h, r, why);
    if (!status)
        status = model_key_u32_required(&r->keys, "kda.head_dim", (struct model_range){1, 1024},
                                        &n->state, why);
    if (!status)
        status =
            model_key_u32_required(&r->keys, "ssm.conv_kernel",
                                   (struct model_range){1, KERN_CONVOLVE_MAX}, &n->n_taps, why);
    for (uint32_t i = 0; !status && i < h->n_layers; i++) {
        h->layers[i].rope = MODEL_ROPE_OFF;
        if (h->layers[i].n_heads != h->layers[0].n_heads)
            status = status_fail(why, STATUS_FORMAT,
                                 "%s: layer %u has %u heads (key '%s.attention.head_count'), "
                                 "expected %u as in layer 0",
                                 gguf_path(r->keys.file), i, h->layers[i].n_heads, r->keys.prefix,
                                 h->layers[0].n_heads);
    }
    n->n_heads = n->n_groups = h->layers[0].n_heads;
    n->n_inner = n->n_heads * n->state;
    n->unit = r->options->llama_compat ? KERN_UNIT_MAX : KERN_UNIT_ADD;
    n->unit_eps = r->options->llama_compat ? h->eps : 1e-6f;
    n->scale = (float)(1 / sqrt((double)n->state));
    return status;
}

static const struct model_folder_name kimi_names[] = {
    COMPRESSED_NAMES,
    {"self_attn.q_conv1d", "ssm_conv1d_q", MODEL_SQUEEZE},
    {"self_attn.k_conv1d", "ssm_conv1d_k", MODEL_SQUEEZE},
    {"self_attn.v_conv1d", "ssm_conv1d_v", MODEL_SQUEEZE},
    {"self_attn.f_a_proj", "ssm_f_a", MODEL_KEEP},
    {"self_attn.f_b_proj", "ssm_f_b", MODEL_KEEP},
    {"self_attn.g_a_proj", "ssm_g_a", MODEL_KEEP},
    {"self_attn.g_b_proj", "ssm_g_b", MODEL_KEEP},
    {"self_attn.b_proj", "ssm_beta", MODEL_KEEP},
    {"self_attn.dt_bias", "ssm_dt.bias", MODEL_KEEP},
    {"self_attn.A_log", "ssm_a", MODEL_SQUEEZE | MODEL_NEGATIVE_EXP},
    {"self_attn.o_norm", "ssm_norm", MODEL_KEEP},
    MODEL_MIXTRAL_NAMES,
    {"block_sparse_moe.gate_proj", "ffn_gate", MODEL_KEEP}, /* transformers saves them so */
    {"block_sparse_moe.up_proj", "ffn_up", MODEL_KEEP},
    {"block_sparse_moe.down_proj", "ffn_down", MODEL_KEEP},
    {0},
};

/** Layers of latent attention are counted from 1 in one list, or named in another. */
static enum status kimi_heads(const struct model_folder *f, struct model_folder_heads *of,
                              struct status_why *why)
{
    const cJSON *linear = model_config_find(f, "linear_attn_config");
    const cJSON *full = cJSON_GetObjectItemCaseSensitive(linear, "full_attn_layers");
    for (uint32_t i = 0; i < of->n; i++) {
        bool is = model_config_is(f, "layer_types", i, "full_attention");
        for (const cJSON *item = full ? full->child : NULL; item; item = item->next)
            is |= item->valuedouble == i + 1;
        of->n_kv_heads[i] = is;
    }
    if (full || model_config_find(f, "layer_types"))
        return STATUS_OK;
    return model_config_fail(f, STATUS_FORMAT, why,
                             "has neither 'full_attn_layers' in 'linear_attn_config' nor "
                             "'layer_types'");
}

static const struct model_folder_key kimi_keys[] = {
    {"num_expert_group n_group", "expert_group_count", MODEL_MEMBER_U32, 0},
    {"routed_scaling_factor", "expert_weights_scale", MODEL_MEMBER_F32, 2.446},
    {"moe_renormalize norm_topk_prob", NULL, MODEL_MEMBER_FIXED, 1},
    {"moe_router_activation_func", "expert_gating_func", MODEL_MEMBER_GATING, 2},
    {0},
};

/** A size of the delta nets: of a group of members, or a member that transformers saves. */
static enum status write_kimi_size(struct model_folder *f, const char *in_group, const char *alone,
                                   const char *to, struct status_why *why)
{
    uint32_t value;
    const cJSON *item =
        cJSON_GetObjectItemCaseSensitive(model_config_find(f, "linear_attn_config"), in_group);
    if (cJSON_IsNumber(item) && item->valuedouble >= 1 && item->valuedouble <= UINT16_MAX)
        value = (uint32_t)item->valuedouble;
    else {
        enum status status = model_config_u32(f, alone, true, &value, why);
        if (status)
            return status;
    }
    if (to)
        model_write_u32(f, to, value);
    if (to || value == f->n_heads)
        return STATUS_OK;
    return model_config_fail(f, STATUS_UNSUPPORTED, why,
                             "delta nets have %u heads, expected the %u of attention", value,
                             f->n_heads);
}

static enum status write_kimi(struct model_folder *f, struct status_why *why)
{
    enum status status = write_kimi_size(f, "head_dim", "linear_head_dim", "kda.head_dim", why);
    if (!status)
        status = write_kimi_size(f, "short_conv_kernel_size", "linear_conv_kernel_dim",
                                 "ssm.conv_kernel", why);
    return status ? status : write_kimi_size(f, "num_heads", "linear_num_heads", NULL, why);
}

static const struct model_folder_map folder_kimi = {
    .classes = {"KimiLinearForCausalLM"},
    .names = kimi_names,
    .keys = kimi_keys,
    .grouped = true,
    .compressed = true,
    .heads = kimi_heads,
    .write = write_kimi,
};

const struct model_arch model_arch_kimi_linear = {
    .name = "kimi-linear",
    .folder = &folder_kimi,
    .without_keys = MODEL_KIMI_DELTA_NET,
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_SCALED,
    .shared = MODEL_SHARED_PLAIN,
    .key_blind = {"expert_weights_norm"},
    .needs = {{"expert_weights_scale", MODEL_WHEN_EXPERTS}},
    .read = read_kimi,
    .presence = {{MODEL_ALWAYS, "output.weight"}},
};

const struct model_arch model_arch_deepseek2 = {
    .name = "deepseek2",
    .folder = &folder,
    .sigmoid_if_biased = true,
    .needs = {{"expert_group_count", MODEL_WHEN_EXPERTS,
               "experts are chosen from all, as in V2 Lite; V2 and V3 choose groups first"},
              {"expert_weights_norm", MODEL_WHEN_SIGMOID},
              {"expert_weights_scale", MODEL_WHEN_EXPERTS},
              NEEDS_OF_YARN},
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .nextn = MODEL_NEXTN_NORMED,
    .read = read,
    .presence = {{MODEL_ALWAYS, "exp_probs_b.bias", MODEL_WHERE_SIGMOID}},
};

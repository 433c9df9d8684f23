/**
 * DeepSeek V2, V3 and R1, Kimi K2 and others of the same name: latent attention, a dense beginning,
 * then experts. DeepSeek V3.2 and GLM 5 (glm-dsa) choose the keys that a query sees.
 */
#include <math.h>
#include <string.h>

#include "model/arch.h"
#include "model/arch/latent/latent.h"
#include "model/folder/state.h"

/** Elements of a head of keys and of values, and of a compressed row. */
struct sizes {
    uint32_t key, value, rank;
};

/** Give them to the layers that slide, or to all. */
static void set_sizes(struct model_hparams *h, const struct model_reading *r, struct sizes z,
                      bool sliding)
{
    if (h->ropes[MODEL_ROPE_FULL].n_rot >= z.key)
        model_key_fail(&r->keys, STATUS_FORMAT, "rope.dimension_count",
                       "is %u, expected less than the %u elements of a key",
                       h->ropes[MODEL_ROPE_FULL].n_rot, z.key);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        struct model_layer_shape *l = &h->layers[i];
        if (l->n_kv_heads == 0 || (sliding && !l->slides)) /* 0: Kimi's, of another kind */
            continue;
        l->mixer = MODEL_LATENT_ATTENTION;
        l->key_size = z.key;
        l->value_size = z.value;
        l->kv_rank = z.rank;
        l->n_kv_heads = h->compressed_keys ? 1 : l->n_heads;
        l->scale = (float)(1 / sqrt((double)z.key));
    }
}

void model_latent_read(struct model_hparams *h, const struct model_reading *r)
{
    const struct model_keys *keys = &r->keys;
    static const char value[] = "attention.value_length_mla";
    struct model_range range = model_head_size_range;
    h->compressed_keys = model_key_find(keys, "attention.key_length_mla");
    struct sizes z = {
        .key = model_key_u32_or(keys, "attention.key_length_mla", range, h->layers[0].key_size),
        .value = h->compressed_keys ? model_key_u32(keys, value, range)
                                    : model_key_u32_or(keys, value, range, h->layers[0].value_size),
        .rank = model_key_u32(keys, "attention.kv_lora_rank", model_width_range)};
    model_hparams_read_keys(h, r, model_latent_keys);
    set_sizes(h, r, z, false);
}

void model_latent_read_sliding(struct model_hparams *h, const struct model_reading *r)
{
    const struct model_keys *keys = &r->keys;
    struct model_range range = model_head_size_range;
    struct sizes z = {.key = model_key_u32(keys, "attention.key_length_mla_swa", range),
                      .value = model_key_u32(keys, "attention.value_length_mla_swa", range),
                      .rank = model_key_u32(keys, "attention.kv_lora_rank_swa", model_width_range)};
    set_sizes(h, r, z, true);
}

/** YaRN's magnitude goes into the scale of the scores instead of cos and sin. */
static void read_magnitude(struct model_hparams *h, const struct model_reading *r)
{
    struct model_rope *rope = &h->ropes[MODEL_ROPE_FULL];
    float l = model_key_f32(&r->keys, "rope.scaling.yarn_log_multiplier", 0);
    if (rope->yarn_ext_factor <= 0 || rope->factor <= 1)
        return;
    double log_factor = log((double)rope->factor);
    rope->magnitude /= 1 + 0.1 * log_factor;
    double m = 1 + (double)l * log_factor;
    for (uint32_t i = 0; i < h->n_layers; i++)
        h->layers[i].scale = (float)(m * m / sqrt((double)h->layers[i].key_size));
}

static void read_mistral4(struct model_hparams *h, const struct model_reading *r)
{
    model_latent_read(h, r);
    read_magnitude(h, r);
    model_temperature_read(h, r);
}

static void read(struct model_hparams *h, const struct model_reading *r)
{
    /* V2, which has softmax gating, takes the groups by their best expert, V3 by the best two. */
    h->experts.groups_by_best = h->experts.gating == KERN_GATE_SOFTMAX && !r->options->llama_compat;
    read_mistral4(h, r);
}

/** Queries see the keys that an indexer chooses. */
static void read_sparse(struct model_hparams *h, const struct model_reading *r)
{
    model_latent_read(h, r);
    read_magnitude(h, r);
    h->index.eps = 1e-6f; /* no key has it */
    model_indexer_read(h, r);
    if (h->n_bound > 0 && r->options->llama_compat) /* all keys of the token after the next */
        h->layers[h->n_layers - 1].sparse = false;
}

static void read_deepseek32(struct model_hparams *h, const struct model_reading *r)
{
    read_sparse(h, r);
    h->index.halves = true;
}

void model_latent_read_choices(struct model_hparams *h, const struct model_reading *r,
                               const bool *usual)
{
    static const char suffix[] = "attention.indexer.types";
    bool own[MODEL_MAX_BLOCKS];
    uint32_t n_own = h->n_layers - h->n_bound; /* the block after them chooses for itself */
    uint32_t nearest = UINT32_MAX;
    for (uint32_t i = 0; i < n_own; i++)
        own[i] = !usual || usual[i];
    model_key_bools(&r->keys, suffix, own, n_own);
    for (uint32_t i = 0; i < n_own; i++) {
        if (!h->layers[i].sparse)
            continue;
        nearest = own[i] ? i : nearest;
        if (nearest == UINT32_MAX)
            model_key_fail(
                &r->keys, STATUS_FORMAT, suffix,
                "says that block %u has no indexer, expected one that later blocks can use", i);
        h->layers[i].index_layer = nearest;
    }
}

static void read_glm_dsa(struct model_hparams *h, const struct model_reading *r)
{
    enum { LONG_CONTEXT = 1048576, PERIOD = 4 };
    bool own[MODEL_MAX_BLOCKS];
    for (uint32_t i = 0; i < h->n_layers; i++)
        own[i] = h->n_ctx_train < LONG_CONTEXT || i < 2 || i % PERIOD == 2;
    read_sparse(h, r);
    model_latent_read_choices(h, r, own);
    if (!r->options->llama_compat)
        return;
    h->index.eps = 0;
    model_remark(r->remarks, "the norm of the indexer's keys has an epsilon of 0, as in llama.cpp");
}

const struct model_folder_name model_latent_names[] = {
    {"self_attn.q_a_proj", "attn_q_a"},
    {"self_attn.q_a_layernorm", "attn_q_a_norm"},
    {"self_attn.q_b_proj", "attn_q_b"},
    {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
    {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
    {"self_attn.kv_b_proj", "attn_kv_b", MODEL_IF_WHOLE},
    {"self_attn.kv_b_proj.weight", "attn_k_b.weight", MODEL_OF_KEYS | MODEL_TURN_OVER},
    {"self_attn.kv_b_proj.weight", "attn_v_b.weight", MODEL_OF_VALUES},
    {0},
};

const struct model_folder_name model_indexer_names[] = {
    {"self_attn.indexer.wq_b", "indexer.attn_q_b"},
    {"self_attn.indexer.wk", "indexer.attn_k"},
    {"self_attn.indexer.k_norm", "indexer.k_norm"},
    {"self_attn.indexer.weights_proj", "indexer.proj"},
    {0},
};

/** YaRN's magnitude, which GGUF can say where both of its members are equal. */
static void write_magnitude(struct model_folder *f)
{
    struct base_field rope = model_config_rope(f);
    const cJSON *all = base_field_get(rope, "mscale_all_dim").json;
    const cJSON *one = base_field_get(rope, "mscale").json;
    double factor = cJSON_IsNumber(all) ? all->valuedouble : 0;
    if ((all || one) && !(cJSON_IsNumber(all) && cJSON_IsNumber(one) && factor == one->valuedouble))
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "members 'mscale' and 'mscale_all_dim' of RoPE differ, expected equal "
                          "ones, which GGUF's %s can say",
                          f->arch->name);
    model_write_f32(f, "rope.scaling.yarn_log_multiplier", 0.1 * factor);
}

/** V2's shares are not divided by their sum, and its groups count only by one method. */
static void check_v2(const struct model_folder *f)
{
    uint32_t n_groups = model_config_u32_or(f, "n_group", 1);
    bool greedy = base_field_is(model_config_find(f, "topk_method"), "greedy");
    if ((greedy && n_groups > 1) || cJSON_IsTrue(model_config_find(f, "norm_topk_prob").json))
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "'topk_method' is greedy although there are %u groups ('n_group'), or "
                          "'norm_topk_prob' is true: not computed of V2",
                          n_groups);
}

/** Also the gating, which V3 leaves to its code where a folder was saved again. */
static void write_folder(struct model_folder *f)
{
    bool is_v2 = strstr(f->class_name, "V2") != NULL;
    if (is_v2)
        check_v2(f);
    model_write_gating(f, "scoring_func", is_v2 ? 1 : 2);
    write_magnitude(f);
}

static const struct model_arch_key sparse_keys[] = {
    {"attention.q_lora_rank", MODEL_REQUIRED, .least = 1},
    {"expert_weights_scale", .unset = 2.5},
    {"expert_weights_norm", .unset = 1},
    {0},
};

static const struct model_folder_map folder32 = {
    .classes = {"DeepseekV32ForCausalLM"},
    .names = {model_latent_names, model_indexer_names},
    .compressed = true,
    .own_magnitude = true,
    .write = write_folder,
};

void model_indexer_write(struct model_folder *f, uint32_t period)
{
    const cJSON *list = model_config_find(f, "indexer_types").json;
    const cJSON *text = model_config_find(f, "index_topk_pattern").json;
    const char *pattern = cJSON_IsString(text) ? text->valuestring : NULL;
    uint8_t own[MODEL_MAX_BLOCKS];
    period = model_config_u32_or(f, "index_topk_freq", period);
    uint32_t offset = model_config_u32_or(f, "index_skip_topk_offset", 2);
    if ((pattern && strlen(pattern) < f->n_layers) ||
        (list && cJSON_GetArraySize(list) < (int)f->n_layers)) {
        model_config_fail(f, STATUS_FORMAT,
                          "member '%s' does not say of each of %u layers whether it has an "
                          "indexer",
                          list ? list->string : "index_topk_pattern", f->n_layers);
        return;
    }
    period = period > 0 ? period : 1;
    for (uint32_t i = 0; i < f->n_layers; i++)
        own[i] = list      ? model_config_is(f, "indexer_types", i, "full")
                 : pattern ? pattern[i] == 'F'
                           : i + 1 <= offset || (i + 1 - offset) % period == 0;
    model_write_bools(f, "attention.indexer.types", own, f->n_layers);
}

static void write_glm(struct model_folder *f)
{
    model_indexer_write(f, 1);
    write_folder(f);
}

static const struct model_folder_map folder_glm = {
    .classes = {"GlmMoeDsaForCausalLM"},
    .names = {model_latent_names, model_indexer_names},
    .compressed = true,
    .own_magnitude = true,
    .write = write_glm,
};

const struct model_arch model_arch_deepseek32 = {
    .name = "deepseek32",
    .folder = &folder32,
    .keys = {sparse_keys, model_indexer_keys, model_grouped_keys},
    .needs = {{"expert_gating_func", MODEL_WHEN_EXPERTS},
              {"expert_group_count", MODEL_WHEN_EXPERTS},
              {"rope.scaling.yarn_log_multiplier", MODEL_WHEN_YARN},
              {"rope.scaling.original_context_length", MODEL_WHEN_YARN}},
    .needs_shares = true,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .nextn = MODEL_NEXTN_NORMED,
    .read = read_deepseek32,
    .presence = {{MODEL_ALWAYS, "output.weight exp_probs_b.bias"}},
};

const struct model_arch model_arch_glm_dsa = {
    .name = "glm-dsa",
    .folder = &folder_glm,
    .keys = {sparse_keys, model_indexer_keys, model_grouped_keys},
    .needs_shares = true,
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
    .names = {model_latent_names},
    .own_magnitude = true,
    .write = write_folder,
};

/** Mistral 4: a softmax over experts, and queries that grow with their position. */
static void write_mistral4(struct model_folder *f)
{
    model_write_u32(f, "expert_gating_func", 1);
    model_folder_temperature(f);
    write_magnitude(f);
}

static bool is_mistral4(const struct model_folder *f)
{
    return base_field_is(base_field_get(f->text, "model_type"), "mistral4");
}

static const struct model_folder_map folder_mistral4 = {
    .classes = {"Mistral4ForCausalLM", "Mistral3ForConditionalGeneration"},
    .names = {model_latent_names},
    .is = is_mistral4,
    .own_magnitude = true,
    .write = write_mistral4,
};

const struct model_arch model_arch_mistral4 = {
    .folder = &folder_mistral4,
    .keys = {model_grouped_keys},
    .name = "mistral4",
    .needs = {{"attention.temperature_scale", MODEL_WHEN_EVER,
               "queries do not grow with their position; the published model's do, by 0.1"},
              {"rope.scaling.yarn_log_multiplier", MODEL_WHEN_YARN},
              {"rope.scaling.original_context_length", MODEL_WHEN_YARN}},
    .needs_shares = true,
    .yarn_factor = true,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .read = read_mistral4,
};

const struct model_arch model_arch_deepseek2 = {
    .name = "deepseek2",
    .folder = &folder,
    .nodes = (const struct model_node[]){{MODEL_AT_Q_WIDE, "Qcur_attn_temp_scaled", "MUL"}, {0}},
    .keys = {model_grouped_keys},
    .sigmoid_if_biased = true,
    .needs = {{"expert_group_count", MODEL_WHEN_EXPERTS,
               "experts are chosen from all, as in V2 Lite; V2 and V3 choose groups first"},
              {"expert_weights_norm", MODEL_WHEN_SIGMOID},
              {"expert_weights_scale", MODEL_WHEN_EXPERTS},
              {"rope.scaling.yarn_log_multiplier", MODEL_WHEN_YARN},
              {"rope.scaling.original_context_length", MODEL_WHEN_YARN}},
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .nextn = MODEL_NEXTN_NORMED,
    .read = read,
    .presence = {{MODEL_ALWAYS, "exp_probs_b.bias", MODEL_WHERE_SIGMOID}},
};

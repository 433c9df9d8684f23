/** Nemotron H: each block is Mamba-2, or attention without positions, or a feed-forward. */
#include <stdio.h>
#include <string.h>

#include "base/text/words.h"
#include "model/arch.h"
#include "model/bind/bind.h"
#include "model/folder/state.h"
#include "model/state.h"

static void read(struct model_hparams *h, const struct model_reading *r)
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
    uint32_t width =
        model_key_u32_or(&r->keys, "moe_latent_size", model_width_range, h->experts.width);
    if (width != h->experts.width)
        model_key_fail(&r->keys, STATUS_FORMAT, "moe_latent_size",
                       "is %u, expected %u, the rows of 'ffn_latent_down'", width,
                       h->experts.width);
    h->recurrent.dt_min = r->options->llama_compat ? 0 : 0.001f;
    h->recurrent.scale = 1;
    model_recurrent_read(h, r);
}

static void bind(struct model *m, size_t i)
{
    size_t n = m->hparams.experts.width;
    size_t n_embd = m->hparams.n_embd;
    if (i == MODEL_NO_LAYER || n == 0 || m->hparams.layers[i].n_experts == 0)
        return;
    struct model_experts *x = &m->layers[i].experts;
    model_bind_product(m, i, "ffn_latent_down", n, n_embd, &x->narrow);
    model_bind_product(m, i, "ffn_latent_up", n_embd, n, &x->widen);
}

/** q and k as GGUF has them, turned, although nothing rotates: products are sums in that order. */
static const struct model_folder_name folder_names[] = {
    {"embeddings", "token_embd"},
    {"norm_f", "output_norm"},
    {"norm", "attn_norm"},
    {"mixer.in_proj", "ssm_in"},
    {"mixer.conv1d", "ssm_conv1d", MODEL_SQUEEZE},
    {"mixer.dt_bias", "ssm_dt.bias"},
    {"mixer.A_log", "ssm_a", MODEL_NEGATIVE_EXP},
    {"mixer.D", "ssm_d"},
    {"mixer.norm", "ssm_norm"},
    {"mixer.out_proj", "ssm_out"},
    {"mixer.q_proj", "attn_q"},
    {"mixer.k_proj", "attn_k"},
    {"mixer.v_proj", "attn_v"},
    {"mixer.o_proj", "attn_output"},
    {"mixer.up_proj", "ffn_up"},
    {"mixer.down_proj", "ffn_down"},
    {"mixer.gate", "ffn_gate_inp"},
    {"mixer.gate.e_score_correction_bias", "exp_probs_b.bias"},
    {"mixer.gate.e_score_correction", "exp_probs_b"},
    {"mixer.experts.*.up_proj", "ffn_up_exps"},
    {"mixer.experts.*.down_proj", "ffn_down_exps"},
    {"mixer.shared_experts.up_proj", "ffn_up_shexp"},
    {"mixer.shared_experts.down_proj", "ffn_down_shexp"},
    {"mixer.fc1_latent_proj", "ffn_latent_down"},
    {"mixer.fc2_latent_proj", "ffn_latent_up"},
    {0},
};

static const struct model_arch_key keys[] = {
    {"ssm.conv_kernel", .from = "conv_kernel"},
    {"ssm.state_size", .from = "ssm_state_size"},
    {"ssm.group_count", .from = "n_groups"},
    {.from = "time_step_min", .unset = 0.001, .member = MODEL_MEMBER_FIXED},
    {"ssm.time_step_rank", .from = "mamba_num_heads"},
    {0},
};

/** Experts' number and width are `write`'s: layers may have their own. */
static const struct model_arch_key moe_keys[] = {
    {"expert_used_count", .from = ""},
    {"expert_feed_forward_length", .from = ""},
    {"expert_shared_feed_forward_length", .from = "moe_shared_expert_intermediate_size"},
    {"expert_group_count"},
    {"expert_group_used_count"},
    {"expert_weights_scale"},
    {"expert_weights_norm"},
    {"expert_shared_count", .from = "n_shared_experts"},
    {0},
};

/** What a layer is, by a letter of the older form or the names of the newer ones. */
enum { IS_MAMBA, IS_ATTENTION, IS_DENSE, IS_EXPERTS };

static int kind_of(const cJSON *pattern, const cJSON *item, uint32_t i)
{
    static const char letters[] = "M*-E";
    static const char *const names[] = {"mamba linear_attention", "attention full_attention", "mlp",
                                        "moe"};
    if (cJSON_IsObject(item))
        item = cJSON_GetObjectItemCaseSensitive(item, "block_type");
    if (cJSON_IsString(pattern)) {
        const char *at = strchr(letters, pattern->valuestring[i]);
        return at && *at ? (int)(at - letters) : -1;
    }
    for (int k = 0; cJSON_IsString(item) && k < 4; k++)
        if (base_words_index(names[k], item->valuestring) >= 0)
            return k;
    return -1;
}

/** Kinds of at most MODEL_MAX_BLOCKS layers; returns how many there are. */
static uint32_t read_kinds(const struct model_folder *f, int *kinds)
{
    const cJSON *pattern =
        model_config_find(f, "block_configs hybrid_override_pattern layers_block_type").json;
    const cJSON *item = pattern ? pattern->child : NULL;
    bool text = cJSON_IsString(pattern);
    uint32_t n = 0;
    while (n < MODEL_MAX_BLOCKS && (text ? pattern->valuestring[n] != '\0' : item != NULL)) {
        kinds[n] = kind_of(pattern, item, n);
        item = item ? item->next : NULL;
        n++;
    }
    return n;
}

static bool has_experts(const struct model_folder *f)
{
    int kinds[MODEL_MAX_BLOCKS];
    bool found = false;
    for (uint32_t i = 0, n = read_kinds(f, kinds); i < n; i++)
        found |= kinds[i] == IS_EXPERTS;
    return found;
}

static bool has_none(const struct model_folder *f)
{
    return !has_experts(f);
}

/** A number of experts: of layer i itself, else of all. */
static uint32_t of_layer(const struct model_folder *f, uint32_t i, const char *member)
{
    struct base_field blocks = model_config_find(f, "block_configs");
    if (!blocks.json)
        return model_config_u32(f, member);
    blocks.json = cJSON_GetArrayItem(blocks.json, (int)i);
    double value = model_config_real(blocks, member);
    return value >= 0 && value <= UINT32_MAX ? (uint32_t)value : 0;
}

static void sizes_of_folder(struct model_folder *f)
{
    int kinds[MODEL_MAX_BLOCKS];
    uint32_t n = read_kinds(f, kinds);
    if (n != f->n_layers)
        model_config_fail(f, STATUS_FORMAT,
                          "member 'hybrid_override_pattern' or 'layers_block_type' has %u layers, "
                          "expected %u",
                          n, f->n_layers);
    for (uint32_t i = 0; i < n; i++) {
        if (kinds[i] < 0)
            model_config_fail(f, STATUS_UNSUPPORTED,
                              "layer %u is neither Mamba, attention, mlp nor moe", i);
        f->kv_heads_of[i] = kinds[i] == IS_ATTENTION ? f->n_kv_heads : 0;
        f->n_ff_of[i] = 0;
        if (kinds[i] == IS_DENSE)
            f->n_ff_of[i] = model_config_u32(f, "intermediate_size");
        if (kinds[i] == IS_EXPERTS)
            f->n_ff_of[i] = of_layer(f, i, "moe_intermediate_size");
    }
    f->kv_by_layer = f->ff_by_layer = true;
    f->n_experts = has_experts(f) ? f->n_experts : 0;
}

static void write_folder(struct model_folder *f)
{
    uint32_t n_heads = model_config_u32(f, "mamba_num_heads");
    model_write_u32(f, "ssm.inner_size", n_heads * model_config_u32(f, "mamba_head_dim"));
}

/** One number and width for all layers, or arrays of them. */
static void write_moe(struct model_folder *f)
{
    static const char used[] = "expert_used_count", width[] = "expert_feed_forward_length";
    int kinds[MODEL_MAX_BLOCKS];
    uint32_t values[MODEL_MAX_BLOCKS], n = read_kinds(f, kinds);
    bool listed = model_config_find(f, "block_configs").json != NULL;
    write_folder(f);
    for (uint32_t i = 0; listed && i < n; i++)
        values[i] = kinds[i] == IS_EXPERTS ? of_layer(f, i, "num_experts_per_tok") : 0;
    if (listed) {
        model_write_u32s(f, used, values, n);
        model_write_u32s(f, width, f->n_ff_of, n);
    } else {
        model_write_u32(f, used, model_config_u32(f, "num_experts_per_tok"));
        model_write_u32(f, width, model_config_u32(f, "moe_intermediate_size"));
    }
}

static const struct model_folder_map folder = {
    .classes = {"NemotronHForCausalLM"},
    .names = {folder_names},
    .turned = true,
    .is = has_none,
    .sizes = sizes_of_folder,
    .write = write_folder,
};

static const struct model_folder_map moe_folder = {
    .classes = {"NemotronHForCausalLM", "NemotronHPuzzleForCausalLM"},
    .names = {folder_names},
    .turned = true,
    .is = has_experts,
    .sizes = sizes_of_folder,
    .write = write_moe,
};

#define NEMOTRON                                                                                   \
    .mixed = true, .rms_by_either = true, .key_blind = {"attention.layer_norm_epsilon"},           \
    .ffn = MODEL_FFN_UNGATED, .activation = KERN_RELU_SQUARED, .read = read

static const struct model_node nodes[] = {
    {MODEL_AT_FFN_NORM, "attn_norm", "MUL"},
    {MODEL_AT_FFN_OUT, "l_out", "MUL_MAT MUL"},
    {MODEL_AT_LAYER_OUT, "l_out", .other = true},
    {0},
};

const struct model_arch model_arch_nemotron_h = {
    .name = "nemotron_h",
    .folder = &folder,
    .nodes = nodes,
    .keys = {keys},
    NEMOTRON,
};

const struct model_arch model_arch_nemotron_h_moe = {
    .name = "nemotron_h_moe",
    .folder = &moe_folder,
    .nodes = nodes,
    .keys = {keys, moe_keys},
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .needs_shares = true,
    .shared = MODEL_SHARED_PLAIN,
    .bind = bind,
    NEMOTRON,
    .presence = {{MODEL_ALWAYS, "output.weight"}},
};

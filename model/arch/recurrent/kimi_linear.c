/** Kimi Linear: delta nets, and latent attention without positions. */
#include <math.h>

#include "base/text/number.h"
#include "model/arch/latent/latent.h"
#include "model/arch/recurrent/kimi.h"
#include "model/folder/state.h"

void model_kimi_read(struct model_hparams *h, const struct model_reading *r)
{
    struct model_recurrent_hparams *n = &h->recurrent;
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (h->layers[i].n_heads != h->layers[0].n_heads)
            model_keys_fail(
                &r->keys, STATUS_FORMAT,
                "layer %u has %u heads (key '%s.attention.head_count'), expected %u as in layer 0",
                i, h->layers[i].n_heads, r->keys.prefix, h->layers[0].n_heads);
    n->n_heads = n->n_groups = h->layers[0].n_heads;
    n->n_inner = n->n_heads * n->state;
    n->unit = KERN_UNIT_ADD;
    n->unit_eps = r->options->llama_compat ? h->eps : 1e-6f;
    n->scale = (float)(1 / sqrt((double)n->state));
}

void model_kimi_bound_read(struct model_hparams *h, const struct model_reading *r)
{
    static const char suffix[] = "kda.gate_lower_bound";
    struct base_number shown;
    float bound = model_key_f32(&r->keys, suffix, 0);
    if (model_key_find(&r->keys, suffix) && bound >= 0)
        model_key_fail(&r->keys, STATUS_FORMAT, suffix, "is %s, expected a number below 0",
                       base_float_text(&shown, bound));
    h->recurrent.least_log = bound;
}

static void read_kimi(struct model_hparams *h, const struct model_reading *r)
{
    model_latent_read(h, r);
    model_kimi_read(h, r);
    for (uint32_t i = 0; i < h->n_layers; i++)
        h->layers[i].rope = MODEL_ROPE_OFF;
}

const struct model_folder_name model_kimi_names[] = {
    {"self_attn.q_conv1d", "ssm_conv1d_q", MODEL_SQUEEZE},
    {"self_attn.k_conv1d", "ssm_conv1d_k", MODEL_SQUEEZE},
    {"self_attn.v_conv1d", "ssm_conv1d_v", MODEL_SQUEEZE},
    {"self_attn.f_a_proj", "ssm_f_a"},
    {"self_attn.f_b_proj", "ssm_f_b"},
    {"self_attn.g_a_proj", "ssm_g_a"},
    {"self_attn.g_b_proj", "ssm_g_b"},
    {"self_attn.b_proj", "ssm_beta"},
    {"self_attn.dt_bias", "ssm_dt.bias"},
    {"self_attn.A_log", "ssm_a", MODEL_SQUEEZE | MODEL_NEGATIVE_EXP},
    {"self_attn.o_norm", "ssm_norm"},
    {"block_sparse_moe.gate_proj", "ffn_gate"}, /* transformers saves them so */
    {"block_sparse_moe.up_proj", "ffn_up"},
    {"block_sparse_moe.down_proj", "ffn_down"},
    {0},
};

/** Layers of latent attention are counted from 1 in one list, or named in another. */
void model_kimi_heads(const struct model_folder *f, struct model_folder_heads *of)
{
    struct base_field full =
        base_field_get(model_config_find(f, "linear_attn_config"), "full_attn_layers");
    for (uint32_t i = 0; i < of->n; i++) {
        bool is = model_config_is(f, "layer_types", i, "full_attention");
        for (struct base_field item = {0}; base_field_next(full, &item);)
            is |= item.json->valuedouble == i + 1;
        of->n_kv_heads[i] = is;
    }
    if (!full.json && !model_config_find(f, "layer_types").json)
        model_config_fail(f, STATUS_FORMAT,
                          "has neither 'full_attn_layers' in 'linear_attn_config' nor "
                          "'layer_types'");
}

static const struct model_arch_key kimi_keys[] = {
    {"kda.head_dim", MODEL_REQUIRED, .from = ""}, /* model_kimi_write's */
    {"ssm.conv_kernel", MODEL_REQUIRED, .from = ""},
    {"expert_group_count", .from = "num_expert_group n_group"},
    {"expert_weights_scale", .unset = 2.446},
    {.from = "moe_renormalize norm_topk_prob", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {"expert_gating_func", .from = "moe_router_activation_func", .unset = 2},
    {0},
};

/** A size of the delta nets: of a group of members, or a member that transformers saves. */
static uint32_t kimi_size(const struct model_folder *f, const char *in_group, const char *alone)
{
    const cJSON *item = base_field_get(model_config_find(f, "linear_attn_config"), in_group).json;
    if (cJSON_IsNumber(item) && item->valuedouble >= 1 && item->valuedouble <= UINT16_MAX)
        return (uint32_t)item->valuedouble;
    return model_config_u32(f, alone);
}

void model_kimi_write(struct model_folder *f)
{
    model_write_u32(f, "kda.head_dim", kimi_size(f, "head_dim", "linear_head_dim"));
    model_write_u32(f, "ssm.conv_kernel",
                    kimi_size(f, "short_conv_kernel_size", "linear_conv_kernel_dim"));
    uint32_t n_heads = kimi_size(f, "num_heads", "linear_num_heads");
    if (n_heads != f->n_heads)
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "delta nets have %u heads, expected the %u of attention", n_heads,
                          f->n_heads);
}

static const struct model_folder_map folder_kimi = {
    .classes = {"KimiLinearForCausalLM"},
    .names = {model_latent_names, model_kimi_names, model_mixtral_names},
    .compressed = true,
    .heads = model_kimi_heads,
    .write = model_kimi_write,
};

const struct model_arch model_arch_kimi_linear = {
    .name = "kimi-linear",
    .folder = &folder_kimi,
    .keys = {kimi_keys, model_grouped_keys},
    .without_keys = MODEL_KIMI_DELTA_NET,
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_SCALED,
    .shared = MODEL_SHARED_PLAIN,
    .key_blind = {"expert_weights_norm"},
    .needs = {{"expert_weights_scale", MODEL_WHEN_EXPERTS}},
    .read = read_kimi,
    .presence = {{MODEL_ALWAYS, "output.weight"}},
};

/**
 * Qwen 3.5 and Qwen 3 Next: three layers of four are gated delta nets, the fourth is attention
 * whose output has a gate. The block that predicts the token after the next is of the latter kind.
 */
#include <math.h>

#include "model/arch.h"
#include "model/arch/recurrent/qwen35.h"
#include "model/folder/state.h"

void model_qwen35_read(struct model_hparams *h, const struct model_reading *r)
{
    uint32_t interval =
        model_key_u32_or(&r->keys, "full_attention_interval", (struct model_range){1, 1024}, 4);
    model_recurrent_read(h, r);
    h->recurrent.grouped = r->arch->grouped_values;
    if (!h->recurrent.grouped) /* of published folders: no converter writes it */
        h->recurrent.grouped =
            model_key_bool(&r->keys, "ssm.value_heads_grouped", h->recurrent.grouped);
    uint32_t n_heads = h->recurrent.n_heads;
    if (h->recurrent.n_inner != h->recurrent.state * n_heads)
        model_key_fail(&r->keys, STATUS_FORMAT, "ssm.inner_size",
                       "is %u, expected %u, %u heads of %u", h->recurrent.n_inner,
                       h->recurrent.state * n_heads, n_heads, h->recurrent.state);
    h->recurrent.unit = KERN_UNIT_ADD;
    h->recurrent.unit_eps = r->options->llama_compat ? h->eps : 1e-6f;
    h->recurrent.scale = (float)(1 / sqrt((double)h->recurrent.state));
    bool recurrent[MODEL_MAX_BLOCKS] = {false};
    for (uint32_t i = 0; i + h->n_bound < h->n_layers; i++)
        recurrent[i] = (i + 1) % interval != 0;
    model_key_bools(&r->keys, "attention.recurrent_layers", recurrent, r->n_blocks);
    for (uint32_t i = 0; i + h->n_bound < h->n_layers; i++)
        if (recurrent[i])
            h->layers[i].mixer = MODEL_DELTA_NET;
}

#define QWEN35_ATTENTION                                                                           \
    .norms = {.ffn = "post_attention_norm"}, .rope_halves = true, .qk_norm = MODEL_QK_NORM_HEADS,  \
    .gated_attention = true, .gate_kind = KERN_SIGMOID, .nextn = MODEL_NEXTN_NORMED,               \
    .read = model_qwen35_read, .keys = {model_qwen35_keys},                                        \
    .key_blind = {"rope.dimension_sections"}, .needs = {{"rope.dimension_count"}}

/** Names that all have; the delta nets' products are apart, or joined by key head. */
const struct model_folder_name model_qwen35_names[] = {
    {"linear_attn.conv1d", "ssm_conv1d", MODEL_SQUEEZE},
    {"linear_attn.A_log", "ssm_a", MODEL_NEGATIVE_EXP},
    {"linear_attn.dt_bias", "ssm_dt.bias"},
    {"linear_attn.norm", "ssm_norm", MODEL_AS_IS},
    {"linear_attn.out_proj", "ssm_out"},
    {"post_attention_layernorm", "post_attention_norm"},
    {0},
};

const struct model_folder_name model_qwen35_apart[] = {
    {"linear_attn.in_proj_qkv", "attn_qkv"},
    {"linear_attn.in_proj_z", "attn_gate"},
    {"linear_attn.in_proj_b", "ssm_beta"},
    {"linear_attn.in_proj_a", "ssm_alpha"},
    {0},
};

static const struct model_folder_name next_names[] = {
    {"linear_attn.in_proj_qkvz", "ssm_in"},
    {"linear_attn.in_proj_ba", "ssm_ba"},
    {0},
};

const struct model_arch_key model_qwen35_keys[] = {
    {"ssm.conv_kernel", .from = "linear_conv_kernel_dim"},
    {"ssm.state_size", .from = "linear_key_head_dim"},
    {"ssm.group_count", .from = "linear_num_key_heads"},
    {"ssm.time_step_rank", .from = "linear_num_value_heads"},
    {"full_attention_interval", .unset = 4},
    {"expert_shared_feed_forward_length"},
    {.from = "attn_output_gate", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {.from = "norm_topk_prob", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {0},
};

void model_qwen35_write(struct model_folder *f, const char *kinds)
{
    uint32_t n_heads = model_config_u32(f, "linear_num_value_heads");
    uint32_t n_key_heads = model_config_u32(f, "linear_num_key_heads");
    uint8_t recurrent[MODEL_MAX_BLOCKS];
    model_write_u32(f, "ssm.inner_size", n_heads * model_config_u32(f, "linear_value_head_dim"));
    if (!f->arch->grouped_values && n_heads != n_key_heads)
        model_write_bool(f, "ssm.value_heads_grouped", true);
    uint32_t n = model_config_kinds(f, "layer_types", kinds, recurrent);
    for (uint32_t i = 0; i < n; i++)
        recurrent[i] = recurrent[i] == 0;
    if (n > 0)
        model_write_bools(f, "attention.recurrent_layers", recurrent, n);
}

static void write_folder(struct model_folder *f)
{
    model_qwen35_write(f, "linear_attention full_attention");
}

static const struct model_folder_map folder = {
    .classes = {"Qwen3_5ForConditionalGeneration", "Qwen3_5ForCausalLM"},
    .names = {model_qwen35_names, model_qwen35_apart},
    .norms_less_one = true,
    .write = write_folder,
};

static const struct model_folder_map moe_folder = {
    .classes = {"Qwen3_5MoeForConditionalGeneration", "Qwen3_5MoeForCausalLM"},
    .names = {model_qwen35_names, model_qwen35_apart},
    .norms_less_one = true,
    .write = write_folder,
};

static const struct model_folder_map next_folder = {
    .classes = {"Qwen3NextForCausalLM"},
    .names = {model_qwen35_names, next_names},
    .norms_less_one = true,
    .write = write_folder,
};

/** The feed-forward's norm has the name of a norm after attention. */
static const struct model_node nodes[] = {
    {MODEL_AT_BETA, "beta", "RESHAPE"}, /* not of Qwen 3 Next */
    {MODEL_AT_RECURRED, "attn_output", "VIEW"},
    {MODEL_AT_ATTN_OUT, "attn_output", "MUL_MAT MUL"},
    {MODEL_AT_ATTN_OUT, "linear_attn_out", "MUL_MAT MUL"},
    {MODEL_AT_FFN_NORM, "attn_post_norm", "MUL"},
    {0},
};

const struct model_arch model_arch_qwen35 = {
    .name = "qwen35",
    .folder = &folder,
    .nodes = nodes,
    QWEN35_ATTENTION,
};

const struct model_arch model_arch_qwen35moe = {
    .name = "qwen35moe",
    .folder = &moe_folder,
    .nodes = nodes,
    .shared = MODEL_SHARED_GATED,
    .split_ff = true,
    QWEN35_ATTENTION,
    .presence = {{MODEL_ALWAYS, "output.weight"}},
};

const struct model_arch model_arch_qwen3next = {
    .name = "qwen3next",
    .folder = &next_folder,
    .nodes = nodes + 1,
    .shared = MODEL_SHARED_GATED,
    .split_ff = true,
    .grouped_values = true,
    QWEN35_ATTENTION,
    .presence = {{MODEL_ALWAYS, "output.weight"}},
};

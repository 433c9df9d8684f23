/** Step 3.5: a gate for each head's result; limits of SwiGLU that differ from layer to layer. */
#include "model/arch.h"
#include "model/folder/state.h"

/** Full layers turn half as many elements; their list of factors has as many as there could be. */
static void read_ropes(struct model_hparams *h, const struct model_reading *r)
{
    model_sliding_rope_read(h, r);
    struct model_rope *full = &h->ropes[MODEL_ROPE_FULL];
    if (full->n_rot % 4 != 0)
        model_keys_fail(&r->keys, STATUS_FORMAT,
                        "half of %u elements of a head are rotated (key "
                        "'%s.rope.dimension_count'), expected a multiple of 4",
                        full->n_rot, r->keys.prefix);
    full->n_rot /= 2;
}

static void read(struct model_hparams *h, const struct model_reading *r)
{
    read_ropes(h, r);
    model_clamps_read(h, r, KERN_SWIGLU_CLAMP_AFTER, 0);
}

/** Layers that slide have heads of their own number. */
static void heads(const struct model_folder *f, struct model_folder_heads *of)
{
    struct base_field other = model_config_find(f, "attention_other_setting");
    const cJSON *n = base_field_get(other, "num_attention_heads").json;
    const cJSON *n_kv = base_field_get(other, "num_attention_groups").json;
    uint32_t n_heads = model_config_u32_or(f, "num_sliding_attention_heads", f->n_heads);
    for (uint32_t i = 0; i < of->n; i++) {
        if (!model_config_is(f, "layer_types", i, "sliding_attention"))
            continue;
        of->n_heads[i] = cJSON_IsNumber(n) ? (uint32_t)n->valueint : n_heads;
        of->n_kv_heads[i] = cJSON_IsNumber(n_kv) ? (uint32_t)n_kv->valueint : f->n_kv_heads;
    }
}

/** A list of limits, where null and 0 mean that there is no limit; those of further blocks are left
 * out. */
static void write_limits(struct model_folder *f, const char *from, const char *to)
{
    float values[MODEL_MAX_BLOCKS] = {0}; /* the heads were checked against as many layers */
    struct base_field list = model_config_find(f, from), item = {0};
    for (uint32_t i = 0; i < f->n_layers && base_field_next(list, &item); i++) {
        values[i] = (float)base_field_real_or(item, "", 0);
        if (!(values[i] >= 0))
            base_field_fail(item, STATUS_FORMAT, "is %g, expected a limit above 0",
                            (double)values[i]);
    }
    if (list.json)
        model_write_f32s(f, to, values, f->n_layers);
}

static void write(struct model_folder *f)
{
    write_limits(f, "swiglu_limits", "swiglu_clamp_exp");
    write_limits(f, "swiglu_limits_shared", "swiglu_clamp_shexp");
    double scalar = model_config_f32_or(f, "query_pre_attn_scalar", f->head_size);
    if (scalar != f->head_size)
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "member 'query_pre_attn_scalar' is %g, expected the %u of a head", scalar,
                          f->head_size);
}

static const struct model_folder_name folder_names[] = {
    {"self_attn.g_proj", "attn_gate"},
    {"moe.gate", "ffn_gate_inp"},
    {"moe.router_bias", "exp_probs_b.bias"},
    {"moe.gate_proj", "ffn_gate_exps"},
    {"moe.up_proj", "ffn_up_exps"},
    {"moe.down_proj", "ffn_down_exps"},
    {"share_expert.gate_proj", "ffn_gate_shexp"},
    {"share_expert.up_proj", "ffn_up_shexp"},
    {"share_expert.down_proj", "ffn_down_shexp"},
    {0},
};

static const struct model_arch_key keys[] = {
    {"expert_shared_feed_forward_length", .from = "share_expert_dim share_expert_dims"},
    {"expert_weights_scale", .from = "moe_router_scaling_factor"},
    {"expert_weights_norm", .from = "norm_expert_weight", .unset = 1},
    {"expert_gating_func", .from = "moe_router_activation"},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"Step3p5ForCausalLM", "Step3p7ForConditionalGeneration"},
    .names = {folder_names},
    .norms_less_one = true,
    .full_share = 0.5,
    .heads = heads,
    .write = write,
};

const struct model_arch model_arch_step35 = {
    .name = "step35",
    /* attn_out is what attention's gates multiply. */
    .nodes = (const struct model_node[]){{MODEL_AT_ATTN_GATE, "attn_gate", "MUL_MAT"},
                                         {MODEL_AT_ATTENTION, "attn_out"},
                                         {MODEL_AT_ATTN_OUT, "attn_out", .other = true},
                                         {MODEL_AT_ATTN_OUT, "attn_proj", "MUL_MAT"},
                                         {MODEL_AT_SHARED_OUT, "ffn_shared_out", "MUL_MAT"},
                                         {0}},
    .key_blind = {"moe_every_n_layers"}, /* tensors say which layers have experts */
    .folder = &folder,
    .keys = {keys},
    .rope_halves = true,
    .sliding_rope = true,
    .sliding_base = 10000,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .attn_gate = true,
    .gate_kind = KERN_SIGMOID,
    .windows = {.period = 4, .by_array = true},
    .needs = {{"attention.sliding_window"},
              {"attention.sliding_window_pattern"},
              {"swiglu_clamp_exp"},
              {"swiglu_clamp_shexp"}},
    .needs_shares = true,
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_BY_KEY,
    .shared = MODEL_SHARED_PLAIN,
    .experts_by_tensors = true,
    .nextn = MODEL_NEXTN_STREAM,
    .nextn_slides = true,
    .read = read,
    .presence = {{MODEL_ALWAYS, "output.weight"}, {MODEL_MOSTLY, "rope_freqs.weight"}},
};

/** MiMo V2: values of another size than keys, and a scale of them; sinks in some layers. */
#include "model/arch.h"
#include "model/folder/state.h"

/** Neither the authors' code nor llama.cpp has other experts than these. */
static void check_experts(const struct model_hparams *h, const struct model_reading *r)
{
    const struct model_expert_hparams *e = &h->experts;
    bool divides = model_key_bool(&r->keys, "expert_weights_norm", true);
    float scale = model_key_positive(&r->keys, "expert_weights_scale", 1);
    if (e->n == 0 || (e->gating == KERN_GATE_SIGMOID && divides && scale == 1))
        return;
    model_keys_fail(
        &r->keys, STATUS_UNSUPPORTED,
        "experts by another rule than sigmoids divided by their sum (key '%s.expert_gating_func', "
        "'%s.expert_weights_norm' or '%s.expert_weights_scale'), supported are 2, true and 1",
        r->keys.prefix, r->keys.prefix, r->keys.prefix);
}

static void read(struct model_hparams *h, const struct model_reading *r)
{
    model_sliding_rope_read(h, r);
    check_experts(h, r);
}

/** Layers that slide: 1 in one list, or named in another, with twice the key heads. */
static bool slides(const struct model_folder *f, uint32_t i)
{
    struct base_field list = model_config_find(f, "hybrid_layer_pattern");
    return list.json ? model_config_at(list, i) == 1
                     : model_config_is(f, "layer_types", i, "sliding_attention");
}

static void heads(const struct model_folder *f, struct model_folder_heads *of)
{
    uint32_t n = model_config_u32_or(f, "swa_num_key_value_heads",
                                     f->n_kv_heads <= INT32_MAX ? 2 * f->n_kv_heads : 0);
    for (uint32_t i = 0; i < of->n; i++)
        of->n_kv_heads[i] = slides(f, i) ? n : f->n_kv_heads;
}

/** Sizes of heads that slide are the others', and the pattern of one of the lists. */
static void write(struct model_folder *f)
{
    static const char *const same[][2] = {{"swa_head_dim", "head_dim"},
                                          {"swa_v_head_dim", "v_head_dim"},
                                          {"swa_num_attention_heads", "num_attention_heads"}};
    uint8_t pattern[MODEL_MAX_BLOCKS]; /* the heads were checked against as many layers */
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        uint32_t full = model_config_u32(f, same[i][1]);
        uint32_t sliding = model_config_u32_or(f, same[i][0], full);
        if (sliding != full)
            model_config_fail(f, STATUS_UNSUPPORTED, "member '%s' is %u, expected the %u of '%s'",
                              same[i][0], sliding, full, same[i][1]);
    }
    for (uint32_t i = 0; i < f->n_layers; i++)
        pattern[i] = slides(f, i);
    if (model_config_find(f, "hybrid_layer_pattern").json)
        model_write_bools(f, "attention.sliding_window_pattern", pattern, f->n_layers);
}

static const struct model_folder_name folder_names[] = {
    {"self_attn.qkv_proj", "attn_qkv"},
    {"self_attn.attention_sink_bias", "attn_sinks.weight"},
    {0},
};

static const struct model_arch_key keys[] = {
    {"attention.value_length"},
    {"attention.value_scale", MODEL_OPTIONAL},
    {"expert_gating_func"},
    {.from = "norm_topk_prob", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {.from = "routed_scaling_factor", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {.from = "n_group", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"MiMoV2FlashForCausalLM", "MiMoV2ForCausalLM"},
    .names = {folder_names},
    .heads = heads,
    .write = write,
};

const struct model_arch model_arch_mimo2 = {
    .name = "mimo2",
    .folder = &folder,
    .keys = {keys},
    .rope_halves = true,
    .sliding_rope = true,
    .sliding_base = 10000,
    .sinks = true,
    .windows = {.period = 4, .by_array = true},
    .needs = {{"attention.sliding_window"},
              {"attention.sliding_window_pattern"},
              {"rope.dimension_count"},
              {"attention.value_scale", MODEL_WHEN_EVER,
               "values are not scaled; the published MiMo V2 Flash multiplies them by 0.707"}},
    .gating = KERN_GATE_SIGMOID,
    .experts_by_tensors = true,
    .nextn = MODEL_NEXTN_STREAM,
    .nextn_slides = true,
    .read = read,
    .presence = {{MODEL_ALWAYS, "output.weight"},
                 {MODEL_SOMETIMES, "attn_sinks.weight", MODEL_WHERE_FULL}},
};

/** Muse Glimmer: afmoe's attention and norms without experts, and an embedding that is normed. */
#include <stdio.h>

#include "model/arch.h"
#include "model/folder/state.h"

/** Layers that see all keys have no positions. */
static void read(struct model_hparams *h, const struct model_reading *r)
{
    (void)r;
    model_still_full_layers(h);
}

/** Norms of heads without gains: queries are multiplied by a number, keys by 1. */
static void give_gains(struct model_folder *f, uint32_t i, double scale)
{
    static const char *const names[] = {"attn_q_norm", "attn_k_norm"};
    for (size_t n = 0; n < 2; n++) {
        char name[MODEL_TARGET_BYTES];
        snprintf(name, sizeof name, "blk.%u.%s.weight", i, names[n]);
        float *gains = model_folder_give(f, name, f->head_size);
        for (uint32_t e = 0; gains && e < f->head_size; e++)
            gains[e] = n == 0 ? (float)scale : 1;
        if (!gains)
            model_config_fail(f, STATUS_MEMORY, "no memory for gains of heads");
    }
}

/** Where no list says it, one layer of four sees all keys and has no positions: the last, and so on
 * backwards. */
static void write(struct model_folder *f)
{
    struct base_field bases = model_config_find(f, "layer_rope_theta");
    double scale = model_config_f32(f, "qk_scale_factor");
    uint8_t slides[MODEL_MAX_BLOCKS];
    uint32_t n = model_config_kinds(f, "layer_types", "full_attention sliding_attention", slides);
    bool listed = n > 0;
    n = f->n_layers;
    for (uint32_t i = 0; i < n && !f->json.status; i++) {
        bool turns = (f->n_layers - 1 - i) % 4 != 0;
        slides[i] = listed ? slides[i] : turns;
        turns = bases.json ? model_config_at(bases, i) != 0 : turns;
        model_folder_check_turns(f, i, slides[i], turns);
        give_gains(f, i, scale);
    }
    if (!listed)
        model_write_bools(f, "attention.sliding_window_pattern", slides, n);
}

static const struct model_folder_name folder_names[] = {
    {"norm", "output_norm", MODEL_AS_IS},      {"post_attention_layernorm", "post_attention_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"}, {"post_feedforward_layernorm", "post_ffw_norm"},
    {"self_attn.gate_proj", "attn_gate"},      {0},
};

static const struct model_arch_key keys[] = {
    {"logit_scale", MODEL_OPTIONAL, .from = "output_multiplier"},
    {"final_logit_softcapping", MODEL_OPTIONAL},
    {.from = "post_norm_eps", .unset = 1e-8, .member = MODEL_MEMBER_FIXED},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"MuseGlimmerForConditionalGeneration"},
    .names = {folder_names},
    .turned = true,
    .norms_less_one = true,
    .write = write,
};

/** attn_out is what attention's gates multiply. */
static const struct model_node nodes[] = {
    {MODEL_AT_EMBEDDING, "embd", "GET_ROWS", .other = true},
    {MODEL_AT_EMBEDDING, "embd_norm", "RMS_NORM"},
    {MODEL_AT_ATTENTION, "attn_out"},
    {MODEL_AT_ATTN_OUT, "attn_out", .other = true},
    {0},
};

const struct model_arch model_arch_muse_glimmer = {
    .name = "muse-glimmer",
    .folder = &folder,
    .nodes = nodes,
    .keys = {keys},
    .norms = {.attn_post = "post_attention_norm", .ffn_post = "post_ffw_norm"},
    .post_eps = 1e-8F,
    .embedding_norm = true,
    .sliding_rope = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .attn_gate = true,
    .gate_kind = KERN_SIGMOID,
    .windows = {.period = 4},
    .needs = {{"attention.sliding_window"}, {"logit_scale"}},
    .read = read,
    .presence = {{MODEL_ALWAYS, "output.weight"}},
};

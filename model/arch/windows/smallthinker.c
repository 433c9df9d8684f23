/** SmallThinker: experts are chosen by what the layer reads; full layers have no positions. */
#include "model/arch.h"
#include "model/folder/state.h"

enum { PERIOD = 4, LLAMA_CPP_WINDOW = 4096 };

/** llama.cpp has one window, and positions by the number of a layer: in a model of 4 everywhere. */
static void imitate(struct model_hparams *h, const struct model_reading *r, uint32_t window)
{
    for (uint32_t i = 0; i < h->n_layers; i++) {
        struct model_layer_shape *l = &h->layers[i];
        if (l->slides)
            l->window = LLAMA_CPP_WINDOW;
        l->rope = h->n_layers == PERIOD || i % PERIOD != 0 ? MODEL_ROPE_FULL : MODEL_ROPE_OFF;
    }
    if (window == LLAMA_CPP_WINDOW)
        return;
    model_remark(r->remarks, "%s.attention.sliding_window (%u) is taken for %d, as llama.cpp does",
                 r->keys.prefix, window, LLAMA_CPP_WINDOW);
}

static void read(struct model_hparams *h, const struct model_reading *r)
{
    uint32_t window = model_key_u32_or(&r->keys, "attention.sliding_window",
                                       (struct model_range){0, INT32_MAX}, 0);
    if (window == 0)
        return;
    if (r->options->llama_compat) {
        imitate(h, r, window);
        return;
    }
    model_still_full_layers(h);
    if (window == LLAMA_CPP_WINDOW)
        return;
    model_remark(r->remarks, "%s.attention.sliding_window is %u; llama.cpp takes %d whatever it is",
                 r->keys.prefix, window, LLAMA_CPP_WINDOW);
}

static const struct model_folder_name folder_names[] = {
    {"block_sparse_moe.primary_router", "ffn_gate_inp"},
    {"block_sparse_moe.experts.*.gate", "ffn_gate_exps"},
    {"block_sparse_moe.experts.*.up", "ffn_up_exps"},
    {"block_sparse_moe.experts.*.down", "ffn_down_exps"},
    {0},
};

static const struct model_arch_key keys[] = {
    {.from = "norm_topk_prob", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {.from = "moe_enable_early_router", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {.from = "moe_enable_secondary_experts", .member = MODEL_MEMBER_FIXED},
    {"attention.sliding_window", .from = ""}, /* write's */
    {0},
};

/** Layers slide where they rotate; where none slides all rotate. */
static void write(struct model_folder *f)
{
    struct base_field layout = model_config_find(f, "sliding_window_layout");
    struct base_field rotates = model_config_find(f, "rope_layout");
    uint32_t slides[MODEL_MAX_BLOCKS] = {0};
    uint32_t turned[MODEL_MAX_BLOCKS];
    uint8_t pattern[MODEL_MAX_BLOCKS];
    uint32_t n = f->n_layers;
    bool any = false;
    if (layout.json)
        model_config_u32s(layout, "", slides, n);
    for (uint32_t i = 0; i < n; i++) {
        any |= slides[i] != 0;
        pattern[i] = slides[i] != 0;
    }
    for (uint32_t i = 0; i < n; i++)
        turned[i] = !any || slides[i];
    if (rotates.json)
        model_config_u32s(rotates, "", turned, n);
    for (uint32_t i = 0; i < n; i++)
        model_folder_check_turns(f, i, !any || slides[i], turned[i]);
    if (any) {
        model_write_u32(f, "attention.sliding_window",
                        model_config_u32(f, "sliding_window_size sliding_window"));
        model_write_bools(f, "attention.sliding_window_pattern", pattern, n);
    }
    bool softmax = cJSON_IsTrue(model_config_find(f, "moe_primary_router_apply_softmax").json);
    model_write_u32(f, "expert_gating_func", softmax ? 1 : 2);
}

static const struct model_folder_map folder = {
    .classes = {"SmallThinkerForCausalLM"},
    .names = {folder_names},
    .write = write,
};

const struct model_arch model_arch_smallthinker = {
    .name = "smallthinker",
    .folder = &folder,
    .keys = {keys},
    .rope_halves = true,
    .windows = {.period = PERIOD, .first_full = true},
    .activation = KERN_RELU,
    .early_router = true,
    .needs = {{"expert_gating_func", MODEL_WHEN_EXPERTS}},
    .read = read,
};

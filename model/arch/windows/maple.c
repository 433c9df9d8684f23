/** Maple: Qwen 3 with experts within limits, and windows; layers that see all have no positions. */
#include "model/arch.h"
#include "model/folder/state.h"

static void read(struct model_hparams *h, const struct model_reading *r)
{
    model_expert_clamps_read(h, r, KERN_SWIGLU_CLAMP_BEFORE, 1e-6F);
    model_still_full_layers(h);
}

/** The limit is a number of the authors' code. */
static void write(struct model_folder *f)
{
    float limits[MODEL_MAX_BLOCKS];
    uint32_t n = f->n_layers;
    for (uint32_t i = 0; i < n; i++)
        limits[i] = 7;
    model_write_f32s(f, "swiglu_clamp_exp", limits, n);
}

static const struct model_arch_key keys[] = {
    {.from = "norm_topk_prob", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {.from = "num_shared_experts", .member = MODEL_MEMBER_FIXED},
    {.from = "nope_on_global_attention", .member = MODEL_MEMBER_TRUE},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"MapleForCausalLM"},
    .named_layers = true,
    .write = write,
};

const struct model_arch model_arch_maple = {
    .name = "maple",
    .folder = &folder,
    .nodes = model_normed_heads_nodes,
    .keys = {keys},
    .rope_halves = true,
    .sliding_rope = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .windows = {.period = 4, .by_array = true},
    .needs = {{"attention.sliding_window"},
              {"attention.sliding_window_pattern"},
              {"expert_count"},
              {"expert_feed_forward_length"},
              {"swiglu_clamp_exp"}},
    .read = read,
    .presence = {{MODEL_ALWAYS, "output.weight"}},
};

/** Mellum 2: Qwen 3 with experts and windows; layers that slide do not stretch their positions. */
#include "base/text/number.h"
#include "model/arch.h"

/** llama.cpp takes one base for all layers. */
static void read(struct model_hparams *h, const struct model_reading *r)
{
    float full = h->ropes[MODEL_ROPE_FULL].freq_base;
    float *sliding = &h->ropes[MODEL_ROPE_SLIDING].freq_base;
    if (*sliding == full)
        return;
    bool compat = r->options->llama_compat;
    struct base_number theirs;
    struct base_number given;
    model_remark(r->remarks,
                 compat ? "%s.rope.freq_base_swa (%s) is ignored, as llama.cpp does"
                        : "%s.rope.freq_base_swa is %s; llama.cpp ignores it and takes %s",
                 r->keys.prefix, base_float_text(&given, *sliding), base_float_text(&theirs, full));
    if (compat)
        *sliding = full;
}

static const struct model_arch_key keys[] = {
    {.from = "norm_topk_prob", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {0},
};

static const struct model_folder_map folder = {.classes = {"MellumForCausalLM"}};

const struct model_arch model_arch_mellum = {
    .name = "mellum",
    .folder = &folder,
    .keys = {keys},
    .rope_halves = true,
    .sliding_rope = true,
    .yarn_factor = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .windows = {.period = 4},
    .needs = {{"attention.sliding_window_pattern", MODEL_WHEN_WINDOWS},
              {"rope.scaling.original_context_length", MODEL_WHEN_YARN},
              {"rope.freq_base_swa", MODEL_WHEN_WINDOWS,
               "layers that slide take the base of the others"}},
    .experts_by_tensors = true,
    .read = read,
    .presence = {{MODEL_ALWAYS, "output.weight"}},
};

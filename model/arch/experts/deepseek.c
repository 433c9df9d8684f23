/** DeepSeek's first mixture, and GigaChat 20B: a dense beginning, many small experts. */
#include "model/arch.h"

/** llama.cpp takes a softmax whose shares are not divided by their sum, whatever the keys say. */
static void read(struct model_hparams *h, const struct model_reading *r)
{
    struct model_expert_hparams *e = &h->experts;
    if (e->gating == KERN_GATE_SOFTMAX && !e->normalise)
        return;
    bool theirs = r->options->llama_compat;
    model_remark(r->remarks, theirs ? "keys of how shares of experts are computed are ignored, as "
                                      "llama.cpp does: a softmax, not divided by its sum"
                                    : "shares of experts are computed as keys say; llama.cpp takes "
                                      "a softmax, not divided by its sum");
    if (!theirs)
        return;
    e->gating = KERN_GATE_SOFTMAX;
    e->normalise = false;
}

static const struct model_arch_key keys[] = {
    {"expert_gating_func"},
    {"expert_weights_norm"},
    {"leading_dense_block_count"},
    {"expert_shared_count"},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"DeepseekForCausalLM"},
    .turned = true,
};

const struct model_arch model_arch_deepseek = {
    .name = "deepseek",
    .folder = &folder,
    .keys = {keys},
    .normalise = MODEL_NORMALISE_BY_KEY,
    .read = read,
    .shared = MODEL_SHARED_PLAIN,
    .presence = {{MODEL_NEVER, "exp_probs_b.bias"}},
};

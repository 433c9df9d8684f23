/** SmolLM 3: every fourth layer has no positions. */
#include "model/arch.h"

static void read(struct model_hparams *h, const struct model_reading *r)
{
    (void)r;
    for (uint32_t i = 3; i < h->n_layers; i += 4)
        h->layers[i].rope = MODEL_ROPE_OFF;
}

static const struct model_folder_map folder = {
    .classes = {"SmolLM3ForCausalLM"},
    .turned = true,
    .still_period = 4,
};

const struct model_arch model_arch_smollm3 = {.name = "smollm3", .folder = &folder, .read = read};

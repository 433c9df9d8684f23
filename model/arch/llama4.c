/** Llama 4: three layers of four see their own run of 8192 positions, the fourth has no positions.
 */
#include "model/arch.h"

static enum status read(struct model_hparams *h, const struct model_reading *r,
                        struct status_why *why)
{
    enum { RUN = 8192, PERIOD = 4, MAVERICK_EXPERTS = 128 };
    struct model_range any = {0, INT32_MAX};
    uint32_t window;
    uint32_t step = 0;
    enum status status =
        model_key_u32_or(&r->keys, "attention.sliding_window", any, RUN, &window, why);
    window = window ? RUN : 0; /* the key only switches it off */
    if (!status)
        status = model_key_u32_or(&r->keys, "interleave_moe_layer_step", any, 0, &step, why);
    h->experts.n_ff_shared = h->layers[h->n_layers - 1].n_ff_expert;
    h->temperature = (struct model_temperature){.scale = 0.1f, .length = RUN, .offset = 1};
    for (uint32_t i = 0; i < h->n_layers; i++) {
        struct model_layer_shape *l = &h->layers[i];
        bool rotates = window == 0 || (i + 1) % PERIOD != 0;
        if (step == 0 || (i + 1) % step != 0)
            l->n_experts = 0;
        l->bare_qk_norm = rotates && h->experts.n != MAVERICK_EXPERTS;
        l->chunk = rotates ? window : 0;
        l->tempered = !rotates;
        if (!rotates)
            l->rope = MODEL_ROPE_OFF;
    }
    return status;
}

const struct model_arch model_arch_llama4 = {
    .name = "llama4",
    .gating = KERN_GATE_SIGMOID,
    .normalise = MODEL_NORMALISE_NO,
    .shared = MODEL_SHARED_PLAIN,
    .weigh_inputs = true,
    .read = read,
};

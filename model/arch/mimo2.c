/** MiMo V2: values of another size than keys, and a scale of them; sinks in some layers. */
#include "model/arch.h"

/** Neither the authors' code nor llama.cpp has other experts than these. */
static enum status check_experts(const struct model_hparams *h, const struct model_reading *r,
                                 struct status_why *why)
{
    const struct model_expert_hparams *e = &h->experts;
    bool divides = true;
    float scale = 1;
    enum status status = model_key_bool(&r->keys, "expert_weights_norm", &divides, why);
    if (!status)
        status = model_key_positive(&r->keys, "expert_weights_scale", &scale, why);
    if (status || e->n == 0 || (e->gating == KERN_GATE_SIGMOID && divides && scale == 1))
        return status;
    return status_fail(why, STATUS_UNSUPPORTED,
                       "%s: experts by another rule than sigmoids divided by their sum (key "
                       "'%s.expert_gating_func', '%s.expert_weights_norm' or "
                       "'%s.expert_weights_scale'), supported are 2, true and 1",
                       gguf_path(r->keys.file), r->keys.prefix, r->keys.prefix, r->keys.prefix);
}

static enum status read(struct model_hparams *h, const struct model_reading *r,
                        struct status_why *why)
{
    enum status status = model_pattern_require(r, why);
    if (!status)
        status = model_sliding_rope_read(h, r, 10000, why);
    if (!status)
        status = model_key_positive(&r->keys, "attention.value_scale", &h->value_scale, why);
    return status ? status : check_experts(h, r, why);
}

const struct model_arch model_arch_mimo2 = {
    .name = "mimo2",
    .rope_halves = true,
    .sliding_rope = true,
    .sinks = MODEL_SOMETIMES,
    .windows = {.period = 4},
    .gating = KERN_GATE_SIGMOID,
    .experts_by_tensors = true,
    .nextn = MODEL_NEXTN_STREAM,
    .nextn_slides = true,
    .read = read,
};

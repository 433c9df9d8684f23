/** gpt-oss: sinks, biases everywhere, experts with a clamped activation, every second layer slides.
 */
#include "model/arch.h"

static enum status read(struct model_hparams *h, const struct model_reading *r,
                        struct status_why *why)
{
    h->ropes[MODEL_ROPE_FULL].yarn_unrounded = !r->options->llama_compat;
    return r->options->llama_compat
               ? model_remark(r->remarks, why,
                              "YaRN's range of pairs is rounded, as llama.cpp does")
               : STATUS_OK;
}

const struct model_arch model_arch_gpt_oss = {
    .name = "gpt-oss",
    .norms = {.ffn = "post_attention_norm"},
    .rope_halves = true,
    .sinks = MODEL_ALWAYS,
    .windows = {.period = 2, .length = 128},
    .activation = KERN_SWIGLU_OAI,
    .gating = KERN_GATE_SOFTMAX_CHOSEN,
    .normalise = MODEL_NORMALISE_NO,
    .read = read,
};

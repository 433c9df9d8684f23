/** SmallThinker: experts are chosen by what the layer reads; full layers have no positions. */
#include "model/arch.h"

enum { PERIOD = 4, LLAMA_CPP_WINDOW = 4096 };

/** llama.cpp has one window and one pattern, and positions everywhere in a model of 4 layers. */
static enum status imitate(struct model_hparams *h, const struct model_reading *r, uint32_t window,
                           struct status_why *why)
{
    for (uint32_t i = 0; i < h->n_layers; i++) {
        struct model_layer_shape *l = &h->layers[i];
        if (l->slides)
            l->window = LLAMA_CPP_WINDOW;
        l->rope = h->n_layers == PERIOD || i % PERIOD != 0 ? MODEL_ROPE_FULL : MODEL_ROPE_OFF;
    }
    if (window == LLAMA_CPP_WINDOW)
        return STATUS_OK;
    return model_remark(r->remarks, why,
                        "%s.attention.sliding_window (%u) is taken for %d, as llama.cpp does",
                        r->keys.prefix, window, LLAMA_CPP_WINDOW);
}

static enum status read(struct model_hparams *h, const struct model_reading *r,
                        struct status_why *why)
{
    uint32_t window;
    enum status status = model_key_u32_or(&r->keys, "attention.sliding_window",
                                          (struct model_range){0, INT32_MAX}, 0, &window, why);
    if (!status && h->experts.n > 0)
        status = model_key_require(&r->keys, "expert_gating_func", "1 to 3", why);
    if (status || window == 0)
        return status;
    if (r->options->llama_compat)
        return imitate(h, r, window, why);
    model_still_full_layers(h);
    if (window == LLAMA_CPP_WINDOW)
        return STATUS_OK;
    return model_remark(r->remarks, why,
                        "%s.attention.sliding_window is %u; llama.cpp takes %d whatever it is",
                        r->keys.prefix, window, LLAMA_CPP_WINDOW);
}

const struct model_arch model_arch_smallthinker = {
    .name = "smallthinker",
    .rope_halves = true,
    .windows = {.period = PERIOD, .llama_cpp_period = PERIOD, .first_full = true},
    .activation = KERN_RELU,
    .early_router = true,
    .read = read,
};

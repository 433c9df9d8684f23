/** Apertus: a feed-forward without gate whose activation, xIELU, has its numbers in each layer. */
#include <math.h>

#include "kernels/numerics/fmath.h"
#include "model/arch.h"

/** A number of each layer's curve, by its place there. The keys are of no architecture. */
static enum status read_numbers(struct model_hparams *h, const struct model_reading *r,
                                const char *name, size_t field, struct status_why *why)
{
    struct model_keys keys = r->keys;
    keys.prefix = "xielu";
    float values[MODEL_MAX_BLOCKS];
    enum status status = model_key_require(&keys, name, "a float, or one per layer", why);
    if (!status)
        status = model_key_floats(&keys, name, values, r->n_blocks, why);
    for (uint32_t i = 0; !status && i < h->n_layers; i++)
        *(double *)((char *)&h->layers[i].activation.curve + field) = (double)values[i];
    return status;
}

static enum status read(struct model_hparams *h, const struct model_reading *r,
                        struct status_why *why)
{
    enum status status = read_numbers(h, r, "alpha_p", offsetof(struct kern_curve, rise), why);
    if (!status)
        status = read_numbers(h, r, "alpha_n", offsetof(struct kern_curve, fall), why);
    if (!status)
        status = read_numbers(h, r, "beta", offsetof(struct kern_curve, slope), why);
    if (!status)
        status = read_numbers(h, r, "eps", offsetof(struct kern_curve, eps), why);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        struct kern_curve *curve = &h->layers[i].activation.curve;
        curve->rise = fmath_softplus_f64(curve->rise);
        curve->fall = curve->slope + fmath_softplus_f64(curve->fall);
        curve->eps = fmin(curve->eps, 0); /* where it counts, z is not above 0 */
    }
    return status;
}

const struct model_arch model_arch_apertus = {
    .name = "apertus",
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .ffn = MODEL_FFN_UNGATED,
    .activation = KERN_XIELU,
    .read = read,
};

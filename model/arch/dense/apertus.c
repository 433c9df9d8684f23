/** Apertus: a feed-forward without gate whose activation, xIELU, has its numbers in each layer. */
#include <math.h>
#include <stdio.h>

#include "kernels/numerics/fmath.h"
#include "model/arch.h"
#include "model/folder/state.h"

/** A number of each layer's curve, by its place there. The keys are of no architecture. */
static void read_numbers(struct model_hparams *h, const struct model_reading *r, const char *name,
                         size_t field)
{
    struct model_keys keys = r->keys;
    keys.prefix = "xielu";
    float values[MODEL_MAX_BLOCKS] = {0};
    model_key_require(&keys, name, "a float, or one per layer");
    model_key_floats(&keys, name, values, r->n_blocks);
    for (uint32_t i = 0; i < h->n_layers; i++)
        *(double *)((char *)&h->layers[i].activation.curve + field) = (double)values[i];
}

static void read(struct model_hparams *h, const struct model_reading *r)
{
    read_numbers(h, r, "alpha_p", offsetof(struct kern_curve, rise));
    read_numbers(h, r, "alpha_n", offsetof(struct kern_curve, fall));
    read_numbers(h, r, "beta", offsetof(struct kern_curve, slope));
    read_numbers(h, r, "eps", offsetof(struct kern_curve, eps));
    for (uint32_t i = 0; i < h->n_layers; i++) {
        struct kern_curve *curve = &h->layers[i].activation.curve;
        curve->rise = fmath_softplus_f64(curve->rise);
        curve->fall = curve->slope + fmath_softplus_f64(curve->fall);
        curve->eps = fmin(curve->eps, 0); /* where it counts, z is not above 0 */
    }
}

/** The curves' numbers, which are tensors of one element in each layer. */
static void write_numbers(struct model_folder *f)
{
    struct status_why why;
    static const struct {
        const char *name;
        float absent;
    } numbers[] = {{"alpha_p", NAN}, {"alpha_n", NAN}, {"beta", 0.5f}, {"eps", -1e-6f}};
    float values[MODEL_MAX_BLOCKS];
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
        char name[64];
        for (uint32_t i = 0; i < f->n_layers; i++) {
            snprintf(name, sizeof name, "model.layers.%u.mlp.act_fn.%s", i, numbers[n].name);
            values[i] = numbers[n].absent;
            if (!model_folder_number(f, name, &values[i]) && isnan(values[i]))
                base_json_keep(&f->json,
                               status_fail(&why, STATUS_FORMAT,
                                           "has no tensor '%s' of one number, which xIELU needs",
                                           name),
                               &why);
        }
        snprintf(name, sizeof name, "xielu.%s", numbers[n].name);
        model_write_named_f32s(f, name, values, f->n_layers);
    }
}

static const struct model_folder_name folder_names[] = {
    {"attention_layernorm", "attn_norm"},
    {"feedforward_layernorm", "ffn_norm"},
    {"mlp.act_fn.alpha_p", NULL},
    {"mlp.act_fn.alpha_n", NULL},
    {"mlp.act_fn.beta", NULL},
    {"mlp.act_fn.eps", NULL},
    {0},
};

static const struct model_folder_map folder = {
    .classes = {"ApertusForCausalLM"},
    .names = {folder_names},
    .write = write_numbers,
};

const struct model_arch model_arch_apertus = {
    .name = "apertus",
    .folder = &folder,
    .nodes = (const struct model_node[]){{MODEL_AT_FFN_OUT, "ffn_down", "MUL_MAT"}, {0}},
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .ffn = MODEL_FFN_UNGATED,
    .activation = KERN_XIELU,
    .read = read,
    .presence = {{MODEL_ALWAYS, "output.weight"}, {MODEL_MOSTLY, "rope_freqs.weight"}},
};

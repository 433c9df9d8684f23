/* What lies before the first layer and after the last one, and RoPE's factors. */
#include <stdio.h>

#include "base/text/number.h"
#include "model/arch.h"
#include "model/bind/bind.h"
#include "model/hparams/rope.h"
#include "model/state.h"

/** The head, or the embedding in its place. */
static void bind_head(struct model *m)
{
    const struct model_hparams *h = &m->hparams;
    static const char name[] = "output.weight";
    m->head = (struct model_product){.weight = m->embedding};
    m->head.weight.scale = 1;
    if (gguf_tensor_find(m->file, name) ||
        model_presence_of(m, name, MODEL_SOMETIMES) == MODEL_ALWAYS)
        model_bind_product(m, MODEL_NO_LAYER, "output", h->n_vocab, h->n_embd, &m->head);
    else
        model_bind_vector(m, &m->head.bias, "output.bias", h->n_vocab, MODEL_SOMETIMES);
}

void model_bind_ends(struct model *m)
{
    const struct model_hparams *h = &m->hparams;
    struct model_shape shape = {.n_rows = h->n_vocab, .n_cols = h->n_embd};
    const struct model_tensor *tensor =
        model_bind_tensor(m, "token_embd.weight", shape, MODEL_ALWAYS);
    if (!tensor)
        return;
    m->embedding = model_tensor_rows(tensor, 0, h->n_vocab);
    m->embedding.scale = h->embedding_scale;
    char gain[64], bias[64];
    const char *norm = m->arch->norms.output ? m->arch->norms.output : "output_norm";
    snprintf(gain, sizeof gain, "%s.weight", norm);
    snprintf(bias, sizeof bias, "%s.bias", norm);
    if (*norm)
        model_bind_vector(m, &m->output_norm.gain, gain, h->n_embd, MODEL_ALWAYS);
    if (m->hparams.norm_bias)
        model_bind_vector(m, &m->output_norm.bias, bias, h->n_embd, MODEL_ALWAYS);
    bind_head(m);
    m->head.weight.scale *= h->logit_scale;
    m->head.bias.scale = h->logit_scale;
}

/** One list of factors. */
static void bind_factors(struct model *m, const char *name, enum model_presence usual,
                         struct model_factors *factors)
{
    size_t n = m->hparams.ropes[MODEL_ROPE_FULL].n_factors;
    struct model_shape shape = {.n_rows = 1, .n_cols = n};
    const struct model_tensor *tensor = model_bind_tensor(m, name, shape, usual);
    struct base_number shown;
    factors->generation = tensor ? tensor->generation : 1;
    factors->exists = tensor != NULL;
    for (size_t i = 0; tensor && i < n; i++) {
        factors->values[i] = model_tensor_element(m, tensor, i);
        if (factors->values[i] <= 0)
            status_keep(&m->kept, STATUS_FORMAT,
                        "%s: element %zu of tensor '%s' is %s, expected more than 0",
                        gguf_path(tensor->file), i, name,
                        base_float_text(&shown, factors->values[i]));
    }
}

/** Whether a layer rotates by the angles of full attention, which alone have factors. */
static bool rotates(const struct model_hparams *h)
{
    for (size_t i = 0; i < h->n_layers; i++)
        if (model_mixer_has_keys(h->layers[i].mixer) && h->layers[i].rope == MODEL_ROPE_FULL)
            return true;
    return false;
}

void model_bind_rope_factors(struct model *m)
{
    static const char one[] = "rope_freqs.weight", far[] = "rope_factors_long.weight",
                      near[] = "rope_factors_short.weight";
    bool by_length = m->hparams.ropes[MODEL_ROPE_FULL].scaling == MODEL_ROPE_LONG;
    bool any = gguf_tensor_find(m->file, far) || gguf_tensor_find(m->file, near);
    enum model_presence pair = by_length || any ? MODEL_ALWAYS : MODEL_NEVER;
    m->factors[MODEL_FACTORS].generation = 1;
    bind_factors(m, far, pair, &m->factors[MODEL_FACTORS_LONG]);
    bind_factors(m, near, pair, &m->factors[MODEL_FACTORS_SHORT]);
    if (!by_length && rotates(&m->hparams)) /* else it would have no effect */
        bind_factors(m, one, MODEL_SOMETIMES, &m->factors[MODEL_FACTORS]);
}

size_t model_rope_boundary(const struct model *m)
{
    const struct model_rope *rope = &m->hparams.ropes[MODEL_ROPE_FULL];
    return rope->scaling == MODEL_ROPE_LONG ? rope->original_ctx : SIZE_MAX;
}

double model_rope_frequencies(const struct model *m, enum model_rope_use use, size_t n_positions,
                              double *frequency)
{
    const struct model_rope *rope = &m->hparams.ropes[use];
    const struct model_factors *factors = &m->factors[MODEL_FACTORS];
    if (rope->scaling == MODEL_ROPE_LONG)
        factors = &m->factors[n_positions > model_rope_boundary(m) ? MODEL_FACTORS_LONG
                                                                   : MODEL_FACTORS_SHORT];
    bool listed = factors->exists && (rope->has_factors || rope->scaling == MODEL_ROPE_LONG);
    model_rope_pairs(rope, listed ? factors->values : NULL, frequency);
    return rope->magnitude;
}

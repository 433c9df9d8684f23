/* What lies before the first layer and after the last one, and RoPE's factors. */
#include <stdio.h>

#include "base/text/number.h"
#include "model/arch.h"
#include "model/bind/bind.h"
#include "model/hparams/rope.h"
#include "model/state.h"

enum status model_bind_ends(struct model *m, struct status_why *why)
{
    const struct model_hparams *h = &m->hparams;
    struct model_shape shape = {.n_rows = h->n_vocab, .n_cols = h->n_embd};
    struct model_tensor *tensor;
    enum status status = model_bind_tensor(m, &tensor, "token_embd.weight", shape, false, why);
    if (status)
        return status;
    m->embedding = model_tensor_rows(tensor, 0, h->n_vocab);
    m->head.weight = m->embedding;
    m->embedding.scale = h->embedding_scale;
    char gain[64], bias[64];
    const char *norm = m->arch->norms.output ? m->arch->norms.output : "output_norm";
    snprintf(gain, sizeof gain, "%s.weight", norm);
    snprintf(bias, sizeof bias, "%s.bias", norm);
    status = model_bind_vector(m, &m->output_norm.gain, gain, h->n_embd, false, why);
    if (!status && m->hparams.layer_norm)
        status = model_bind_vector(m, &m->output_norm.bias, bias, h->n_embd, true, why);
    if (!status && model_has_projection(m, MODEL_NO_LAYER, "output"))
        status =
            model_bind_product(m, MODEL_NO_LAYER, "output", h->n_vocab, h->n_embd, &m->head, why);
    else if (!status)
        status = model_bind_vector(m, &m->head.bias, "output.bias", h->n_vocab, true, why);
    m->head.weight.scale *= h->logit_scale;
    m->head.bias.scale = h->logit_scale;
    return status;
}

/** One list of factors. */
static enum status bind_factors(struct model *m, const char *name, bool optional,
                                struct model_factors *factors, struct status_why *why)
{
    size_t n = m->hparams.ropes[MODEL_ROPE_FULL].n_factors;
    struct model_tensor *tensor;
    struct model_shape shape = {.n_rows = 1, .n_cols = n};
    enum status status = model_bind_tensor(m, &tensor, name, shape, optional, why);
    if (status)
        return status;
    factors->generation = tensor ? tensor->generation : 1;
    factors->exists = tensor != NULL;
    for (size_t i = 0; tensor && i < n; i++) {
        struct base_number shown;
        status = model_tensor_element(tensor, i, &factors->values[i], why);
        if (!status && factors->values[i] <= 0)
            status = status_fail(
                why, STATUS_FORMAT, "%s: element %zu of tensor '%s' is %s, expected more than 0",
                gguf_path(tensor->file), i, name, base_float_text(&shown, factors->values[i]));
        if (status)
            return status;
    }
    return STATUS_OK;
}

enum status model_bind_rope_factors(struct model *m, struct status_why *why)
{
    static const char *const names[MODEL_N_FACTORS] = {
        [MODEL_FACTORS] = "rope_freqs.weight",
        [MODEL_FACTORS_LONG] = "rope_factors_long.weight",
        [MODEL_FACTORS_SHORT] = "rope_factors_short.weight",
    };
    bool wants_lists = m->hparams.ropes[MODEL_ROPE_FULL].scaling == MODEL_ROPE_LONG;
    enum status status = STATUS_OK;
    for (size_t i = 0; !status && i < MODEL_N_FACTORS; i++)
        status = bind_factors(m, names[i], i == MODEL_FACTORS || !wants_lists, &m->factors[i], why);
    return status;
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

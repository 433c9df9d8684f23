/* Streams of the residual: what mixes them around each branch, and after the last layer. */
#include <stdio.h>

#include "model/bind/bind.h"
#include "model/state.h"

/** The three tensors "<name>_fn" and so on; with a matrix where streams are mixed. */
static void bind_mixer(struct model *m, const char *name, bool last, struct model_stream_mixer *x)
{
    bool mixed = m->hparams.stream_rounds > 0;
    size_t n = m->hparams.n_streams, rows = last ? n : mixed ? (2 + n) * n : 2 * n;
    struct model_shape fn = {.n_rows = rows, .n_cols = model_residual_width(&m->hparams)};
    char whole[64];
    snprintf(whole, sizeof whole, "%s_fn.weight", name);
    const struct model_tensor *tensor = model_bind_tensor(m, whole, fn, MODEL_ALWAYS);
    if (tensor)
        x->product.weight = model_tensor_rows(tensor, 0, rows);
    snprintf(whole, sizeof whole, "%s_scale.weight", name);
    model_bind_vector(m, &x->scale, whole, last ? 1 : mixed ? 3 : 2, MODEL_ALWAYS);
    snprintf(whole, sizeof whole, "%s_base.weight", name);
    model_bind_vector(m, &x->base, whole, rows, MODEL_ALWAYS);
}

void model_streams_bind(struct model *m, size_t i)
{
    char name[48];
    snprintf(name, sizeof name, "blk.%zu.hc_attn", i);
    bind_mixer(m, name, false, &m->layers[i].attn_mixer);
    snprintf(name, sizeof name, "blk.%zu.hc_ffn", i);
    bind_mixer(m, name, false, &m->layers[i].ffn_mixer);
}

void model_streams_bind_end(struct model *m)
{
    bind_mixer(m, "output_hc", true, &m->output_mixer);
}

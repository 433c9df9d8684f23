/* What Gemma 3n and 4 share: keys of earlier layers, and a further input of each layer. */
#include <math.h>

#include "kernels/quant/rows.h"
#include "model/arch/gemma/gemma.h"
#include "model/bind/bind.h"
#include "model/state.h"

/** The keys of layers from n_own on are those of the last layer of their kind before it. */
static void share_keys(struct model_hparams *h, const struct model_reading *r, uint32_t n_own)
{
    for (uint32_t i = n_own; i < h->n_layers; i++) {
        struct model_layer_shape *l = &h->layers[i];
        uint32_t from = n_own;
        while (from > 0 && h->layers[from - 1].slides != l->slides)
            from--;
        if (from == 0) {
            model_keys_fail(&r->keys, STATUS_FORMAT,
                            "layer %u shares keys (key '%s.attention.shared_kv_layers'), but no "
                            "layer of its kind has any, expected one before it",
                            i, r->keys.prefix);
            return;
        }
        struct model_layer_shape *own = &h->layers[from - 1];
        if (own->n_kv_heads != l->n_kv_heads)
            model_keys_fail(&r->keys, STATUS_FORMAT,
                            "key '%s.attention.head_count_kv': layer %u has %u heads, "
                            "expected the %u of layer %u, whose keys it uses",
                            r->keys.prefix, i, l->n_kv_heads, own->n_kv_heads, from - 1);
        l->kv_layer = from - 1;
        l->kept = own->kept = l->slides;
    }
}

void model_gemma_read_shared(struct model_hparams *h, const struct model_reading *r)
{
    uint32_t n_shared = model_key_u32(&r->keys, "attention.shared_kv_layers",
                                      (struct model_range){0, h->n_layers - 1});
    share_keys(h, r, h->n_layers - n_shared);
}

void model_gemma_bind_input_ends(struct model *m)
{
    const struct model_hparams *h = &m->hparams;
    size_t n = (size_t)h->n_layers * h->per_layer_width;
    struct model_shape table = {.n_rows = h->n_vocab, .n_cols = n};
    struct model_shape project = {.n_rows = n, .n_cols = h->n_embd};
    const struct model_tensor *tensor =
        model_bind_tensor(m, "per_layer_token_embd.weight", table, MODEL_ALWAYS);
    if (!tensor)
        return;
    m->per_layer_embedding = model_tensor_rows(tensor, 0, h->n_vocab);
    if (h->per_layer_width % tensor->type->block_elems != 0 ||
        kern_rows_are_copied(tensor->type->type))
        model_tensor_fail(m, tensor, STATUS_FORMAT,
                          "has type %s, whose blocks of %u cannot be cut where the %u columns of a "
                          "layer end",
                          tensor->type->name, tensor->type->block_elems, h->per_layer_width);
    tensor = model_bind_tensor(m, "per_layer_model_proj.weight", project, MODEL_ALWAYS);
    if (tensor)
        m->per_layer_project = model_tensor_rows(tensor, 0, n);
    model_bind_vector(m, &m->per_layer_norm, "per_layer_proj_norm.weight", h->per_layer_width,
                      MODEL_ALWAYS);
}

/** u = (norm(project x0 / sqrt D) + embedding sqrt P) / sqrt 2. The last factor is out's: without
 * it the norm after it would divide by the root of a sum in which eps counts half. */
void model_gemma_bind_input(struct model *m, size_t i)
{
    const struct model_hparams *h = &m->hparams;
    size_t n = h->per_layer_width;
    struct model_per_layer_input *input = &m->layers[i].input;
    input->embedding = model_weight_columns(&m->per_layer_embedding, i * n, n);
    input->embedding.scale = (float)sqrt((double)n);
    input->project.weight = kern_weight_rows(&m->per_layer_project, i * n, n);
    input->project.weight.scale = (float)(1 / sqrt((double)h->n_embd));
    model_bind_product(m, i, "inp_gate", n, h->n_embd, &input->gate);
    model_bind_product(m, i, "proj", h->n_embd, n, &input->out);
    input->out.weight.scale *= (float)sqrt(0.5);
    model_bind_norm(m, i, "post_norm", h->n_embd, &input->post_norm);
}

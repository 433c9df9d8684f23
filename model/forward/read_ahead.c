#include "model/forward/read_ahead.h"

#include "gguf/map.h"

static void read_weight(const struct kern_weight *weight)
{
    if (weight->data)
        gguf_map_read_ahead(weight->data, weight->n_rows * weight->row_bytes);
}

void model_read_ahead(const struct model *m, size_t i)
{
    const struct model_hparams *h = model_hparams(m);
    if (i >= h->n_layers) {
        read_weight(model_output_norm(m));
        read_weight(model_head(m));
        return;
    }
    const struct model_layer *layer = model_layer(m, i);
    const struct kern_weight *const weights[] = {&layer->attn_norm, &layer->q,      &layer->k,
                                                 &layer->v,         &layer->output, &layer->router,
                                                 &layer->ffn_norm};
    for (size_t k = 0; k < sizeof weights / sizeof *weights; k++)
        read_weight(weights[k]);
    size_t n_ffn = h->n_experts ? h->n_experts : 1;
    for (size_t k = 0; k < n_ffn; k++) {
        read_weight(&layer->ffn[k].gate);
        read_weight(&layer->ffn[k].up);
        read_weight(&layer->ffn[k].down);
    }
}

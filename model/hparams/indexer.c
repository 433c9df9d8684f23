/* Layers whose queries see chosen keys: how many, and how they are chosen. */
#include "model/hparams/read.h"

void model_indexer_read(struct model_hparams *h, const struct model_reading *r)
{
    struct model_index_hparams *x = &h->index;
    uint32_t n_rot = h->ropes[MODEL_ROPE_FULL].n_rot;
    x->together = 1;
    x->weighed = true;
    x->halves = h->rope_halves;
    static const struct model_arch_key keys[] = {{"attention.indexer.head_count", MODEL_REQUIRED},
                                                 {"attention.indexer.key_length", MODEL_REQUIRED},
                                                 {"attention.indexer.top_k", MODEL_REQUIRED},
                                                 {0}};
    model_hparams_read_keys(h, r, keys);
    if (x->key_size < n_rot)
        model_key_fail(&r->keys, STATUS_FORMAT, "attention.indexer.key_length",
                       "is %u, expected at least the %u elements that are rotated", x->key_size,
                       n_rot);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        h->layers[i].sparse = true;
        h->layers[i].index_layer = i;
    }
}

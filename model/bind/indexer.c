/* What chooses the keys of a sparse layer. */
#include "model/bind/bind.h"
#include "model/state.h"

/** Heads that choose as one: queries of the compressed row, a LayerNorm of keys, weights. */
static void bind_weighed(struct model *m, size_t i)
{
    const struct model_index_hparams *h = &m->hparams.index;
    struct model_indexer *x = &m->layers[i].indexer;
    size_t n_embd = m->hparams.n_embd;
    model_bind_product(m, i, "indexer.attn_q_b", (size_t)h->n_heads * h->key_size,
                       m->hparams.q_rank, &x->q);
    model_bind_product(m, i, "indexer.attn_k", h->key_size, n_embd, &x->k);
    model_bind_layer_vector(m, i, "indexer.k_norm.weight", h->key_size, MODEL_ALWAYS,
                            &x->k_norm.gain);
    model_bind_layer_vector(m, i, "indexer.k_norm.bias", h->key_size, MODEL_ALWAYS,
                            &x->k_norm.bias);
    model_bind_product(m, i, "indexer.proj", h->n_heads, n_embd, &x->weights);
    uint32_t pool = m->hparams.layers[i].pool;
    if (pool == 0)
        return;
    struct model_compressor *c = &m->layers[i].index_compressor;
    struct model_shape ape = {.n_rows = pool, .n_cols = h->key_size};
    model_bind_product(m, i, "indexer_compressor_gate", h->key_size, n_embd, &c->gate);
    model_bind_layer_matrix(m, i, "indexer_compressor_ape.weight", ape, &c->ape);
}

/** Heads that choose for themselves: queries and keys with norms of each head. */
static void bind_each(struct model *m, size_t i)
{
    const struct model_index_hparams *h = &m->hparams.index;
    struct model_indexer *x = &m->layers[i].indexer;
    size_t n_embd = m->hparams.n_embd;
    model_bind_product(m, i, "indexer.q_proj", (size_t)h->n_heads * h->key_size, n_embd, &x->q);
    model_bind_product(m, i, "indexer.k_proj", h->key_size, n_embd, &x->k);
    model_bind_norm(m, i, "indexer.q_norm", h->key_size, &x->q_norm);
    model_bind_norm(m, i, "indexer.k_norm", h->key_size, &x->k_norm);
}

/** A layer that uses another's choice, or none, may have an indexer in the file all the same. */
static void leave_out(struct model *m, size_t i)
{
    static const char *const names[] = {"indexer.attn_q_b",        "indexer.attn_k",
                                        "indexer.k_norm",          "indexer.proj",
                                        "indexer_compressor_gate", "indexer_compressor_ape"};
    if (!m->hparams.index.weighed || m->hparams.layers[i].mixer != MODEL_LATENT_ATTENTION)
        return;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        model_bind_unused(m, i, names[n]);
}

void model_bind_indexer(struct model *m, size_t i)
{
    const struct model_layer_shape *shape = &m->hparams.layers[i];
    if (!shape->sparse || shape->index_layer != i)
        leave_out(m, i);
    else if (m->hparams.index.weighed)
        bind_weighed(m, i);
    else
        bind_each(m, i);
}

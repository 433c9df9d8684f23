/* Attention with further keys that are made of runs of tokens. */
#include <stdio.h>

#include "model/bind/bind.h"
#include "model/state.h"

/** The four tensors "<name>_kv" and so on: keys of `width`, of rows of n_cols. */
static enum status bind_compressor(struct model *m, size_t i, const char *prefix, size_t width,
                                   struct model_compressor *c, struct status_why *why)
{
    const struct model_layer_shape *shape = &m->hparams.layers[i];
    size_t wide = shape->runs_overlap ? 2 * width : width;
    char name[48];
    snprintf(name, sizeof name, "%s_kv", prefix);
    enum status status = model_bind_product(m, i, name, wide, m->hparams.n_embd, &c->kv, why);
    snprintf(name, sizeof name, "%s_gate", prefix);
    if (!status)
        status = model_bind_product(m, i, name, wide, m->hparams.n_embd, &c->gate, why);
    snprintf(name, sizeof name, "%s_ape.weight", prefix);
    struct model_shape ape = {.n_rows = shape->run, .n_cols = wide};
    if (!status)
        status = model_bind_layer_matrix(m, i, name, ape, &c->ape, why);
    snprintf(name, sizeof name, "%s_norm", prefix);
    return status ? status : model_bind_norm(m, i, name, width, &c->norm, why);
}

static enum status bind_indexer(struct model *m, size_t i, struct status_why *why)
{
    struct model_indexer *x = &m->layers[i].indexer;
    enum status status = bind_compressor(m, i, "indexer_compressor", m->hparams.index.key_size,
                                         &m->layers[i].index_compressor, why);
    if (!status)
        status = model_bind_product(m, i, "indexer.attn_q_b",
                                    (size_t)m->hparams.index.n_heads * m->hparams.index.key_size,
                                    m->hparams.q_rank, &x->q, why);
    return status ? status
                  : model_bind_product(m, i, "indexer.proj", m->hparams.index.n_heads,
                                       m->hparams.n_embd, &x->weights, why);
}

static enum status bind_output(struct model *m, size_t i, struct status_why *why)
{
    const struct model_run_hparams *r = &m->hparams.runs;
    const struct model_layer_shape *shape = &m->hparams.layers[i];
    size_t rows = (size_t)r->n_groups * r->rank;
    struct model_shape groups = {.n_rows = rows,
                                 .n_cols = (size_t)shape->n_heads * shape->key_size / r->n_groups};
    enum status status = model_bind_layer_matrix(m, i, "attn_output_a.weight", groups,
                                                 &m->layers[i].output_groups, why);
    return status ? status
                  : model_bind_product(m, i, "attn_output_b", m->hparams.n_embd, rows,
                                       &m->layers[i].output, why);
}

enum status model_bind_runs(struct model *m, size_t i, struct status_why *why)
{
    const struct model_hparams *h = &m->hparams;
    const struct model_layer_shape *shape = &h->layers[i];
    struct model_layer *l = &m->layers[i];
    size_t d = shape->key_size, q_rows = shape->n_heads * d;
    enum status status =
        model_bind_product(m, i, "attn_q_a", h->q_rank, h->n_embd, &l->latent.q_down, why);
    if (!status)
        status = model_bind_norm(m, i, "attn_q_a_norm", h->q_rank, &l->latent.q_norm, why);
    if (!status)
        status = model_bind_product(m, i, "attn_q_b", q_rows, h->q_rank, &l->q, why);
    if (!status)
        status = model_bind_product(m, i, "attn_kv", d, h->n_embd, &l->latent.kv_down, why);
    if (!status)
        status = model_bind_norm(m, i, "attn_kv_a_norm", d, &l->latent.kv_norm, why);
    if (!status)
        status = model_bind_layer_vector(m, i, "attn_sinks.weight", shape->n_heads, MODEL_ALWAYS,
                                         &l->sinks, why);
    if (!status)
        status = bind_output(m, i, why);
    if (!status && shape->run > 0)
        status = bind_compressor(m, i, "attn_compressor", d, &l->compressor, why);
    return status || !shape->runs_overlap ? status : bind_indexer(m, i, why);
}

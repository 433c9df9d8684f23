/* Attention with further keys that are made of runs of tokens. */
#include <stdio.h>

#include "model/bind/bind.h"
#include "model/state.h"

/** The four tensors "<name>_kv" and so on: keys of `width`, of rows of n_cols. */
static void bind_compressor(struct model *m, size_t i, const char *prefix, size_t width,
                            struct model_compressor *c)
{
    const struct model_layer_shape *shape = &m->hparams.layers[i];
    size_t wide = shape->runs_overlap ? 2 * width : width;
    char name[48];
    snprintf(name, sizeof name, "%s_kv", prefix);
    model_bind_product(m, i, name, wide, m->hparams.n_embd, &c->kv);
    snprintf(name, sizeof name, "%s_gate", prefix);
    model_bind_product(m, i, name, wide, m->hparams.n_embd, &c->gate);
    snprintf(name, sizeof name, "%s_ape.weight", prefix);
    struct model_shape ape = {.n_rows = shape->run, .n_cols = wide};
    model_bind_layer_matrix(m, i, name, ape, &c->ape);
    snprintf(name, sizeof name, "%s_norm", prefix);
    model_bind_norm(m, i, name, width, &c->norm);
}

static void bind_indexer(struct model *m, size_t i)
{
    struct model_indexer *x = &m->layers[i].indexer;
    bind_compressor(m, i, "indexer_compressor", m->hparams.index.key_size,
                    &m->layers[i].index_compressor);
    model_bind_product(m, i, "indexer.attn_q_b",
                       (size_t)m->hparams.index.n_heads * m->hparams.index.key_size,
                       m->hparams.q_rank, &x->q);
    model_bind_product(m, i, "indexer.proj", m->hparams.index.n_heads, m->hparams.n_embd,
                       &x->weights);
}

static void bind_output(struct model *m, size_t i)
{
    const struct model_run_hparams *r = &m->hparams.runs;
    const struct model_layer_shape *shape = &m->hparams.layers[i];
    size_t rows = (size_t)r->n_groups * r->rank;
    struct model_shape groups = {.n_rows = rows,
                                 .n_cols = (size_t)shape->n_heads * shape->key_size / r->n_groups};
    model_bind_layer_matrix(m, i, "attn_output_a.weight", groups, &m->layers[i].output_groups);
    model_bind_product(m, i, "attn_output_b", m->hparams.n_embd, rows, &m->layers[i].output);
}

void model_bind_runs(struct model *m, size_t i)
{
    const struct model_hparams *h = &m->hparams;
    const struct model_layer_shape *shape = &h->layers[i];
    struct model_layer *l = &m->layers[i];
    size_t d = shape->key_size, q_rows = shape->n_heads * d;
    model_bind_product(m, i, "attn_q_a", h->q_rank, h->n_embd, &l->latent.q_down);
    model_bind_norm(m, i, "attn_q_a_norm", h->q_rank, &l->latent.q_norm);
    model_bind_product(m, i, "attn_q_b", q_rows, h->q_rank, &l->q);
    model_bind_product(m, i, "attn_kv", d, h->n_embd, &l->latent.kv_down);
    model_bind_norm(m, i, "attn_kv_a_norm", d, &l->latent.kv_norm);
    model_bind_layer_vector(m, i, "attn_sinks.weight", shape->n_heads, MODEL_ALWAYS, &l->sinks);
    bind_output(m, i);
    if (shape->run > 0)
        bind_compressor(m, i, "attn_compressor", d, &l->compressor);
    if (shape->runs_overlap)
        bind_indexer(m, i);
}

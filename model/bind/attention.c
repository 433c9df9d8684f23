/* Attention with keys and values for each head. */
#include <stdio.h>

#include "model/arch.h"
#include "model/bind/bind.h"
#include "model/state.h"

/** q, k and v: three tensors, or the rows of one. */
static void bind_qkv(struct model *m, size_t i)
{
    const struct model_layer_shape *shape = &m->hparams.layers[i];
    struct model_layer *l = &m->layers[i];
    size_t q_rows = (size_t)shape->n_heads * shape->key_size * (m->arch->gated_attention ? 2 : 1);
    const size_t n_rows[] = {q_rows, (size_t)shape->n_kv_heads * shape->key_size,
                             (size_t)shape->n_kv_heads * shape->value_size};
    static const char *const names[] = {"attn_q", "attn_k", "attn_v"};
    struct model_product *const products[] = {&l->q, &l->k, &l->v};
    size_t n_embd = m->hparams.n_embd;
    bool own_keys = shape->kv_layer == i;
    if (!model_has_projection(m, i, "attn_qkv") || !own_keys) {
        for (size_t p = 0; p < 3; p++)
            if (p > 0 && !own_keys)
                model_bind_unused(m, i, names[p]);
            else
                model_bind_product(m, i, names[p], n_rows[p], n_embd, products[p]);
        if (own_keys && !l->v.weight.data) /* where an architecture may lack it */
            l->v = l->k;
        return;
    }
    struct model_projection stored = {
        .layer = i,
        .name = "attn_qkv",
        .shape = {.n_rows = n_rows[0] + n_rows[1] + n_rows[2], .n_cols = n_embd}};
    struct model_part part = {0};
    for (size_t p = 0; p < 3; p++) {
        part.n_rows = n_rows[p];
        model_bind_part(m, &stored, part, products[p]);
        part.first_row += n_rows[p];
    }
}

/** Gains of one head, for all alike or for each its own; or of all heads as one vector. */
static void bind_qk_norm(struct model *m, size_t i, const char *name, size_t n_heads,
                         struct model_norm *norm)
{
    size_t n = m->hparams.layers[i].key_size;
    *norm = (struct model_norm){0};
    char whole[32];
    snprintf(whole, sizeof whole, "%s.weight", name);
    if (m->arch->qk_norm == MODEL_QK_NORM_WHOLE)
        model_bind_norm(m, i, name, n_heads * n, norm);
    else if (m->arch->qk_norm == MODEL_QK_NORM_HEADS)
        model_bind_norm(m, i, name, n, norm);
    else if (m->arch->qk_norm == MODEL_QK_NORM_EACH)
        model_bind_gains(m, i, whole, n_heads, n, &norm->gain);
}

static void bind_sinks(struct model *m, size_t i)
{
    if (m->arch->sinks)
        model_bind_layer_vector(m, i, "attn_sinks.weight", m->hparams.layers[i].n_heads,
                                MODEL_ALWAYS, &m->layers[i].sinks);
}

/** A gate for each head, or for each element of each head. */
static void bind_gate(struct model *m, size_t i)
{
    static const char name[] = "attn_gate";
    const struct model_layer_shape *shape = &m->hparams.layers[i];
    if (!m->arch->attn_gate)
        return;
    char whole[64];
    snprintf(whole, sizeof whole, "blk.%zu.%s.weight", i, name);
    const struct gguf_tensor *t = gguf_tensor_find(m->file, whole);
    bool by_head = !m->arch->gates_elements && t && t->n_dims == 2 && t->ne[1] == shape->n_heads;
    size_t n_rows = (size_t)shape->n_heads * (by_head ? 1 : shape->value_size);
    model_bind_product(m, i, name, n_rows, m->hparams.n_embd, &m->layers[i].gate);
}

void model_bind_attention(struct model *m, size_t i)
{
    const struct model_layer_shape *shape = &m->hparams.layers[i];
    struct model_layer *l = &m->layers[i];
    bind_qkv(m, i);
    bind_qk_norm(m, i, "attn_q_norm", shape->n_heads, &l->q_norm);
    if (shape->kv_layer == i)
        bind_qk_norm(m, i, "attn_k_norm", shape->n_kv_heads, &l->k_norm);
    else
        model_bind_unused(m, i, "attn_k_norm");
    model_bind_product(m, i, "attn_output", m->hparams.n_embd,
                       (size_t)shape->n_heads * shape->value_size, &l->output);
    l->output.weight.scale *= m->hparams.value_scale; /* a cache holds values without it */
    if (m->hparams.no_output_bias)
        l->output.bias.data = NULL;
    bind_sinks(m, i);
    bind_gate(m, i);
}

/** A matrix for each head; those of a folder lie in another tensor, so far apart. */
static void bind_stack(struct model *m, size_t i, const char *name, struct model_shape shape,
                       struct kern_weight *out, size_t *step)
{
    char whole[48];
    snprintf(whole, sizeof whole, "blk.%zu.%s.weight", i, name);
    const struct model_tensor *tensor = model_bind_tensor(m, whole, shape, MODEL_ALWAYS);
    if (!tensor)
        return;
    const void *const *matrices = tensor->view ? tensor->view->matrices : NULL;
    if (matrices && shape.n_matrices > 1)
        *step = (size_t)((const char *)matrices[1] - (const char *)matrices[0]);
    *out = model_tensor_rows(tensor, 0, shape.n_rows * (matrices ? 1 : shape.n_matrices));
    out->n_rows = shape.n_rows * shape.n_matrices;
}

static void bind_stacks(struct model *m, size_t i, size_t n_plain, struct model_latent *l)
{
    const struct model_layer_shape *shape = &m->hparams.layers[i];
    size_t n = shape->n_heads, rank = shape->kv_rank;
    struct model_shape k_up = {.n_rows = rank, .n_cols = n_plain, .n_matrices = n};
    struct model_shape v_up = {.n_rows = shape->value_size, .n_cols = rank, .n_matrices = n};
    bind_stack(m, i, "attn_k_b", k_up, &l->k_up, &l->step);
    bind_stack(m, i, "attn_v_b", v_up, &l->v_up, &l->step);
}

void model_bind_latent(struct model *m, size_t i)
{
    const struct model_hparams *h = &m->hparams;
    const struct model_layer_shape *shape = &h->layers[i];
    struct model_latent *l = &m->layers[i].latent;
    size_t n_rot = h->ropes[MODEL_ROPE_FULL].n_rot;
    size_t n_plain = shape->key_size - n_rot;
    size_t q_cols = h->q_rank ? h->q_rank : h->n_embd;
    size_t q_rows = (size_t)shape->n_heads * shape->key_size;
    size_t v_rows = (size_t)shape->n_heads * shape->value_size;
    if (h->q_rank)
        model_bind_product(m, i, "attn_q_a", h->q_rank, h->n_embd, &l->q_down);
    model_bind_norm(m, i, h->q_rank ? "attn_q_a_norm" : "", h->q_rank, &l->q_norm);
    model_bind_product(m, i, h->q_rank ? "attn_q_b" : "attn_q", q_rows, q_cols, &m->layers[i].q);
    model_bind_product(m, i, "attn_kv_a_mqa", shape->kv_rank + n_rot, h->n_embd, &l->kv_down);
    model_bind_norm(m, i, "attn_kv_a_norm", shape->kv_rank, &l->kv_norm);
    if (m->arch->rot_norm)
        model_bind_norm(m, i, "attn_k_norm", n_rot, &m->layers[i].k_norm);
    if (h->compressed_keys)
        bind_stacks(m, i, n_plain, l);
    else
        model_bind_product(m, i, "attn_kv_b", shape->n_heads * n_plain + v_rows, shape->kv_rank,
                           &l->kv_up);
    model_bind_product(m, i, "attn_output", h->n_embd, v_rows, &m->layers[i].output);
    bind_sinks(m, i);
    bind_gate(m, i);
}

/* The feed-forward: dense, or a mixture of experts, or both. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "model/arch.h"
#include "model/bind/bind.h"
#include "model/state.h"

/** Names of the three products: "ffn_gate" and so on with what follows ("", "_exps", "_shexp"). */
struct names {
    char gate[40], up[40], down[40], gate_up[40];
};

static struct names names_of(const char *suffix)
{
    struct names n;
    snprintf(n.gate, sizeof n.gate, "ffn_gate%s", suffix);
    snprintf(n.up, sizeof n.up, "ffn_up%s", suffix);
    snprintf(n.down, sizeof n.down, "ffn_down%s", suffix);
    snprintf(n.gate_up, sizeof n.gate_up, "ffn_gate_up%s", suffix);
    return n;
}

/** What a feed-forward is made of: width within, and which matrix of a stack it is. */
struct ffn_place {
    size_t n_ff, n_cols; /* F, D */
    size_t matrix, n_matrices;
    enum model_ffn_form form;
};

/** Rows of one tensor as gate and as up: the gate's come first. */
static void bind_fused(struct model *m, size_t i, const char *name, const struct ffn_place *at,
                       struct model_ffn *ffn)
{
    struct model_projection stored = {
        .layer = i,
        .name = name,
        .shape = {.n_rows = 2 * at->n_ff, .n_cols = at->n_cols, .n_matrices = at->n_matrices}};
    struct model_part part = {.matrix = at->matrix, .n_rows = at->n_ff};
    model_bind_part(m, &stored, part, &ffn->gate);
    part.first_row = at->n_ff;
    model_bind_part(m, &stored, part, &ffn->up);
}

static void bind_one(struct model *m, size_t i, const struct names *names,
                     const struct ffn_place *at, struct model_ffn *ffn)
{
    struct model_part part = {.matrix = at->matrix};
    struct model_projection stored = {
        .layer = i,
        .name = names->gate,
        .shape = {.n_rows = at->n_ff, .n_cols = at->n_cols, .n_matrices = at->n_matrices}};
    bool one_tensor = at->form == MODEL_FFN_GATE_IN_UP;
    if (one_tensor || model_has_projection(m, i, names->gate_up)) {
        bind_fused(m, i, one_tensor ? names->up : names->gate_up, at, ffn);
    } else {
        if (at->form == MODEL_FFN_GATED)
            model_bind_part(m, &stored, part, &ffn->gate);
        stored.name = names->up;
        model_bind_part(m, &stored, part, &ffn->up);
    }
    stored.name = names->down;
    stored.shape.n_rows = at->n_cols;
    stored.shape.n_cols = at->n_ff;
    model_bind_part(m, &stored, part, &ffn->down);
}

/**
 * Expert e: from the tensors that stack all of them ("ffn_gate_exps"), or, in files from before
 * such tensors, from its own ("ffn_gate.3").
 */
static void bind_expert(struct model *m, size_t i, size_t e, size_t n_cols)
{
    const struct model_expert_hparams *h = &m->hparams.experts;
    struct ffn_place at = {
        .n_ff = m->hparams.layers[i].n_ff_expert, .n_cols = n_cols, .form = m->arch->ffn};
    char suffix[24];
    snprintf(suffix, sizeof suffix, ".%zu", e);
    struct names names = names_of(suffix);
    if (!model_has_projection(m, i, names.up)) {
        names = names_of("_exps");
        at.matrix = e;
        at.n_matrices = h->n;
    }
    bind_one(m, i, &names, &at, &m->layers[i].experts.each[e]);
}

static void bind_shared(struct model *m, size_t i)
{
    const struct model_hparams *h = &m->hparams;
    struct model_experts *x = &m->layers[i].experts;
    if (h->experts.n_ff_shared == 0)
        return;
    struct names names = names_of("_shexp");
    struct ffn_place at = {.n_ff = h->experts.n_ff_shared, .n_cols = h->n_embd};
    at.form = m->arch->shared_gate_in_up ? MODEL_FFN_GATE_IN_UP : m->arch->ffn;
    bind_one(m, i, &names, &at, &x->shared);
    if (m->arch->shared == MODEL_SHARED_GATED)
        model_bind_product(m, i, "ffn_gate_inp_shexp", 1, h->n_embd, &x->shared_gate);
}

static void bind_experts(struct model *m, size_t i)
{
    const struct model_hparams *h = &m->hparams;
    struct model_experts *x = &m->layers[i].experts;
    if (!x->each && !m->kept.status)
        m->kept.status = base_array_new(x->each, h->experts.n, "experts", &m->kept.why);
    if (!x->each)
        return;
    struct model_projection router = {
        .layer = i, .name = "ffn_gate_inp", .shape = {.n_rows = h->experts.n, .n_cols = h->n_embd}};
    struct model_part whole = {.unscaled = m->arch->experts_beside_dense};
    model_bind_part(m, &router, whole, &x->router);
    char plain[40]; /* the bias without the suffix that it has in most files */
    snprintf(plain, sizeof plain, "blk.%zu.exp_probs_b", i);
    const char *bias = gguf_tensor_find(m->file, plain) ? "exp_probs_b" : "exp_probs_b.bias";
    enum model_presence usual =
        m->arch->gating == KERN_GATE_SIGMOID ? MODEL_ALWAYS : MODEL_SOMETIMES;
    if (i >= h->experts.n_by_token)
        model_bind_layer_vector(m, i, bias, h->experts.n, usual, &x->selection_bias);
    size_t n_cols = h->experts.width ? h->experts.width : h->n_embd;
    for (size_t e = 0; e < h->experts.n; e++)
        bind_expert(m, i, e, n_cols);
    bind_shared(m, i);
}

/** Each row of the table has different experts, which are there. */
static void check_experts(struct model *m, const struct model_tensor *table, size_t token)
{
    uint32_t n = m->hparams.experts.n, n_used = m->hparams.experts.n_used;
    const uint8_t *row = table->data + token * table->row_bytes;
    for (size_t i = 0; i < n_used; i++) {
        int32_t id, other;
        memcpy(&id, row + i * sizeof id, sizeof id);
        bool fits = id >= 0 && (uint32_t)id < n;
        for (size_t j = 0; j < i; j++) {
            memcpy(&other, row + j * sizeof other, sizeof other);
            fits &= id != other;
        }
        if (!fits) {
            model_tensor_fail(m, table, STATUS_FORMAT,
                              "has expert %d for token %zu, expected %u different ones below %u",
                              id, token, n_used, n);
            return;
        }
    }
}

void model_bind_experts_by_token(struct model *m, size_t layer, const char *name)
{
    size_t n_used = m->hparams.experts.n_used;
    size_t n_vocab = m->hparams.n_vocab;
    if (m->hparams.experts.n_used_chosen)
        model_bind_fail(m, STATUS_UNSUPPORTED,
                        "tensor 'blk.%zu.%s' says which experts each token goes through, so "
                        "that another number of them (--experts-used) has no meaning",
                        layer, name);
    struct model_shape shape = {.n_rows = n_vocab, .n_cols = n_used};
    char whole[64];
    snprintf(whole, sizeof whole, "blk.%zu.%s", layer, name);
    const struct model_tensor *tensor = model_bind_table(m, whole, shape);
    for (size_t i = 0; tensor && !m->kept.status && i < n_vocab; i++)
        check_experts(m, tensor, i);
    if (tensor)
        m->layers[layer].experts.by_token = tensor->data;
}

void model_bind_ffn(struct model *m, size_t i)
{
    const struct model_layer_shape *shape = &m->hparams.layers[i];
    if (shape->n_ff > 0) {
        struct names names = names_of("");
        struct ffn_place at = {
            .n_ff = shape->n_ff, .n_cols = m->hparams.n_embd, .form = m->arch->ffn};
        bind_one(m, i, &names, &at, &m->layers[i].ffn);
    }
    if (shape->n_experts > 0)
        bind_experts(m, i);
}

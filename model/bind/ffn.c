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
};

/** Rows of one tensor as gate and as up: the gate's come first. */
static enum status bind_fused(struct model *m, size_t i, const char *name,
                              const struct ffn_place *at, struct model_ffn *ffn,
                              struct status_why *why)
{
    struct model_projection stored = {
        .layer = i,
        .name = name,
        .shape = {.n_rows = 2 * at->n_ff, .n_cols = at->n_cols, .n_matrices = at->n_matrices}};
    struct model_part part = {.matrix = at->matrix, .n_rows = at->n_ff};
    enum status status = model_bind_part(m, &stored, part, &ffn->gate, why);
    part.first_row = at->n_ff;
    return status ? status : model_bind_part(m, &stored, part, &ffn->up, why);
}

static enum status bind_one(struct model *m, size_t i, const struct names *names,
                            const struct ffn_place *at, struct model_ffn *ffn,
                            struct status_why *why)
{
    struct model_part part = {.matrix = at->matrix};
    struct model_projection stored = {
        .layer = i,
        .name = names->gate,
        .shape = {.n_rows = at->n_ff, .n_cols = at->n_cols, .n_matrices = at->n_matrices}};
    enum status status = STATUS_OK;
    bool one_tensor = m->arch->ffn == MODEL_FFN_GATE_IN_UP;
    if (one_tensor || model_has_projection(m, i, names->gate_up)) {
        status = bind_fused(m, i, one_tensor ? names->up : names->gate_up, at, ffn, why);
    } else {
        if (m->arch->ffn == MODEL_FFN_GATED)
            status = model_bind_part(m, &stored, part, &ffn->gate, why);
        stored.name = names->up;
        if (!status)
            status = model_bind_part(m, &stored, part, &ffn->up, why);
    }
    stored.name = names->down;
    stored.shape.n_rows = at->n_cols;
    stored.shape.n_cols = at->n_ff;
    return status ? status : model_bind_part(m, &stored, part, &ffn->down, why);
}

/**
 * Expert e: from the tensors that stack all of them ("ffn_gate_exps"), or, in files from before
 * such tensors, from its own ("ffn_gate.3").
 */
static enum status bind_expert(struct model *m, size_t i, size_t e, size_t n_cols,
                               struct status_why *why)
{
    const struct model_expert_hparams *h = &m->hparams.experts;
    struct ffn_place at = {.n_ff = m->hparams.layers[i].n_ff_expert, .n_cols = n_cols};
    char suffix[24];
    snprintf(suffix, sizeof suffix, ".%zu", e);
    struct names names = names_of(suffix);
    if (!model_has_projection(m, i, names.up)) {
        names = names_of("_exps");
        at.matrix = e;
        at.n_matrices = h->n;
    }
    return bind_one(m, i, &names, &at, &m->layers[i].experts.each[e], why);
}

static enum status bind_shared(struct model *m, size_t i, struct status_why *why)
{
    const struct model_hparams *h = &m->hparams;
    struct model_experts *x = &m->layers[i].experts;
    if (h->experts.n_ff_shared == 0)
        return STATUS_OK;
    struct names names = names_of("_shexp");
    struct ffn_place at = {.n_ff = h->experts.n_ff_shared, .n_cols = h->n_embd};
    enum status status = bind_one(m, i, &names, &at, &x->shared, why);
    if (!status && m->arch->shared == MODEL_SHARED_GATED)
        status = model_bind_product(m, i, "ffn_gate_inp_shexp", 1, h->n_embd, &x->shared_gate, why);
    return status;
}

static enum status bind_experts(struct model *m, size_t i, struct status_why *why)
{
    const struct model_hparams *h = &m->hparams;
    struct model_experts *x = &m->layers[i].experts;
    if (!x->each)
        if (base_array_new(x->each, h->experts.n, "experts", why))
            return STATUS_MEMORY;
    struct model_projection router = {
        .layer = i, .name = "ffn_gate_inp", .shape = {.n_rows = h->experts.n, .n_cols = h->n_embd}};
    struct model_part whole = {.unscaled = m->arch->experts_beside_dense};
    enum status status = model_bind_part(m, &router, whole, &x->router, why);
    char plain[40]; /* the bias without the suffix that it has in most files */
    snprintf(plain, sizeof plain, "blk.%zu.exp_probs_b", i);
    const char *bias = gguf_tensor_find(m->file, plain) ? "exp_probs_b" : "exp_probs_b.bias";
    enum model_presence usual =
        m->arch->gating == KERN_GATE_SIGMOID ? MODEL_ALWAYS : MODEL_SOMETIMES;
    if (!status && i >= h->experts.n_by_token)
        status = model_bind_layer_vector(m, i, bias, h->experts.n, usual, &x->selection_bias, why);
    size_t n_cols = h->experts.width ? h->experts.width : h->n_embd;
    for (size_t e = 0; !status && e < h->experts.n; e++)
        status = bind_expert(m, i, e, n_cols, why);
    return status ? status : bind_shared(m, i, why);
}

/** Each row of the table has different experts, which are there. */
static enum status check_experts(const struct model *m, const struct model_tensor *table,
                                 size_t token, struct status_why *why)
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
        if (!fits)
            return status_fail(why, STATUS_FORMAT,
                               "%s: tensor '%s' has expert %d for token %zu, expected %u different "
                               "ones below %u",
                               gguf_path(table->file), table->source->name, id, token, n_used, n);
    }
    return STATUS_OK;
}

enum status model_bind_experts_by_token(struct model *m, size_t layer, const char *name,
                                        struct status_why *why)
{
    size_t n_used = m->hparams.experts.n_used;
    size_t n_vocab = m->hparams.n_vocab;
    if (m->hparams.experts.n_used_chosen)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%s: tensor 'blk.%zu.%s' says which experts each token goes through, so "
                           "that another number of them (--experts-used) has no meaning",
                           gguf_path(m->file), layer, name);
    struct model_tensor *tensor;
    struct model_shape shape = {.n_rows = n_vocab, .n_cols = n_used};
    char whole[64];
    snprintf(whole, sizeof whole, "blk.%zu.%s", layer, name);
    enum status status = model_bind_table(m, &tensor, whole, shape, why);
    for (size_t i = 0; !status && i < n_vocab; i++)
        status = check_experts(m, tensor, i, why);
    if (!status)
        m->layers[layer].experts.by_token = tensor->data;
    return status;
}

enum status model_bind_ffn(struct model *m, size_t i, struct status_why *why)
{
    const struct model_layer_shape *shape = &m->hparams.layers[i];
    enum status status = STATUS_OK;
    if (shape->n_ff > 0) {
        struct names names = names_of("");
        struct ffn_place at = {.n_ff = shape->n_ff, .n_cols = m->hparams.n_embd};
        status = bind_one(m, i, &names, &at, &m->layers[i].ffn, why);
    }
    if (!status && shape->n_experts > 0)
        status = bind_experts(m, i, why);
    return status;
}

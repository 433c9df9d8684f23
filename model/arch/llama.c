/**
 * Architecture "llama": LLaMA 1 to 3, Mistral, Mixtral and what is stored like them.
 * Tensor names and shapes as GGUF has them; H, G and F may differ from layer to layer.
 */
#include "model/arch/arch.h"

#include <stdio.h>
#include <stdlib.h>

#include "model/state.h"

static const char *const llama_keys[] = {
    "attention.causal",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_rms_epsilon",
    "attention.sliding_window",
    "attention.value_length",
    "block_count",
    "context_length",
    "embedding_length",
    "expert_count",
    "expert_used_count",
    "feed_forward_length",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scale_linear",
    "rope.scaling.attn_factor",
    "rope.scaling.factor",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "rope.scaling.yarn_attn_factor",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "rope.scaling.yarn_ext_factor",
    "tensor_data_layout",
    "vocab_size",
    NULL,
};

static enum status llama_read(struct model_hparams *h, const struct model_keys *keys,
                              const struct model_options *options, struct model_remarks *remarks,
                              struct status_why *why)
{
    bool causal = true;
    enum status status =
        gguf_get_bool(keys->file, "llama.attention.causal", &causal, &(bool){false}, why);
    if (status)
        return status;
    if (!causal)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%s: key 'llama.attention.causal' is false, supported is true",
                           gguf_path(keys->file));
    h->rope_split_halves = false;
    return model_hparams_read(h, keys, options, remarks, why);
}

/** q, k and v: three tensors, or the rows of one. */
static enum status bind_qkv(struct model *m, size_t i, struct status_why *why)
{
    const struct model_hparams *h = &m->hparams;
    struct model_layer *layer = &m->layers[i];
    size_t q_rows = (size_t)h->n_heads[i] * h->head_size;
    size_t kv_rows = (size_t)h->n_kv_heads[i] * h->head_size;
    static const char *const names[] = {"attn_q", "attn_k", "attn_v"};
    struct model_part parts[] = {
        {.n_rows = q_rows, .weight = &layer->q, .bias = &layer->q_bias},
        {.n_rows = kv_rows, .weight = &layer->k, .bias = &layer->k_bias},
        {.n_rows = kv_rows, .weight = &layer->v, .bias = &layer->v_bias},
    };
    bool fused = model_has_projection(m, i, "attn_qkv");
    struct model_projection stored = {
        .layer = i,
        .name = "attn_qkv",
        .shape = {.n_rows = q_rows + 2 * kv_rows, .n_cols = h->n_embd}};
    size_t row = 0;
    for (size_t p = 0; p < 3; p++) {
        if (fused) {
            parts[p].first_row = row;
            row += parts[p].n_rows;
        } else {
            stored.name = names[p];
            stored.shape.n_rows = parts[p].n_rows;
        }
        enum status status = model_bind_part(m, &stored, &parts[p], why);
        if (status)
            return status;
    }
    return STATUS_OK;
}

/** One whole matrix with an optional bias. */
static enum status bind_plain(struct model *m, size_t i, const char *name, struct model_shape shape,
                              const struct model_part *to, struct status_why *why)
{
    struct model_projection stored = {.layer = i, .name = name, .shape = shape};
    struct model_part part = *to;
    part.n_rows = shape.n_rows;
    return model_bind_part(m, &stored, &part, why);
}

static enum status bind_dense(struct model *m, size_t i, struct status_why *why)
{
    struct model_ffn *ffn = m->layers[i].ffn;
    struct model_shape inward = {.n_rows = m->hparams.n_ff[i], .n_cols = m->hparams.n_embd};
    struct model_shape outward = {.n_rows = m->hparams.n_embd, .n_cols = m->hparams.n_ff[i]};
    enum status status =
        bind_plain(m, i, "ffn_gate", inward,
                   &(struct model_part){.weight = &ffn->gate, .bias = &ffn->gate_bias}, why);
    if (!status)
        status = bind_plain(m, i, "ffn_up", inward,
                            &(struct model_part){.weight = &ffn->up, .bias = &ffn->up_bias}, why);
    if (!status)
        status =
            bind_plain(m, i, "ffn_down", outward,
                       &(struct model_part){.weight = &ffn->down, .bias = &ffn->down_bias}, why);
    return status;
}

/**
 * One matrix of expert e: from the tensor that stacks all of them ("ffn_gate_exps"), or, in
 * files from before such tensors, from its own ("ffn_gate.3").
 */
static enum status bind_expert(struct model *m, size_t i, const char *base, size_t e,
                               struct model_shape shape, struct kern_weight *weight,
                               struct status_why *why)
{
    char name[32];
    snprintf(name, sizeof name, "%s.%zu", base, e);
    struct model_part part = {.weight = weight};
    if (!model_has_projection(m, i, name)) {
        snprintf(name, sizeof name, "%s_exps", base);
        shape.n_matrices = m->hparams.n_experts;
        part.matrix = e;
    }
    return bind_plain(m, i, name, shape, &part, why);
}

static enum status bind_experts(struct model *m, size_t i, struct status_why *why)
{
    const struct model_hparams *h = &m->hparams;
    struct model_layer *layer = &m->layers[i];
    struct model_shape router = {.n_rows = h->n_experts, .n_cols = h->n_embd};
    enum status status = bind_plain(m, i, "ffn_gate_inp", router,
                                    &(struct model_part){.weight = &layer->router}, why);
    struct model_shape inward = {.n_rows = h->n_ff[i], .n_cols = h->n_embd};
    struct model_shape outward = {.n_rows = h->n_embd, .n_cols = h->n_ff[i]};
    for (size_t e = 0; !status && e < h->n_experts; e++) {
        struct model_ffn *ffn = &layer->ffn[e];
        status = bind_expert(m, i, "ffn_gate", e, inward, &ffn->gate, why);
        if (!status)
            status = bind_expert(m, i, "ffn_up", e, inward, &ffn->up, why);
        if (!status)
            status = bind_expert(m, i, "ffn_down", e, outward, &ffn->down, why);
    }
    return status;
}

static enum status bind_layer(struct model *m, size_t i, struct status_why *why)
{
    const struct model_hparams *h = &m->hparams;
    struct model_layer *layer = &m->layers[i];
    size_t n_ffn = h->n_experts ? h->n_experts : 1;
    if (!layer->ffn)
        layer->ffn = calloc(n_ffn, sizeof *layer->ffn);
    if (!layer->ffn)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu experts", n_ffn);

    struct model_shape output = {.n_rows = h->n_embd,
                                 .n_cols = (size_t)h->n_heads[i] * h->head_size};
    enum status status = model_bind_norm(m, i, "attn_norm", &layer->attn_norm, why);
    if (!status)
        status = bind_qkv(m, i, why);
    if (!status)
        status = bind_plain(
            m, i, "attn_output", output,
            &(struct model_part){.weight = &layer->output, .bias = &layer->output_bias}, why);
    if (!status)
        status = model_bind_norm(m, i, "ffn_norm", &layer->ffn_norm, why);
    if (!status)
        status = h->n_experts ? bind_experts(m, i, why) : bind_dense(m, i, why);
    return status;
}

static enum status llama_bind(struct model *m, struct status_why *why)
{
    enum status status = model_bind_ends(m, why);
    if (!status)
        status = model_bind_rope_factors(m, why);
    for (size_t i = 0; !status && i < m->hparams.n_layers; i++)
        status = bind_layer(m, i, why);
    return status;
}

const struct model_arch model_arch_llama = {
    .name = "llama", .key_suffixes = llama_keys, .read = llama_read, .bind = llama_bind};

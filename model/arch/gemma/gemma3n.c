/**
 * Gemma 3n: four streams of which each layer works on the first (AltUp), a low-rank branch beside
 * attention (Laurel), sparse gates, and of Gemma 4 the shared keys and the further inputs.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "model/arch/gemma/gemma.h"
#include "model/bind/bind.h"
#include "model/state.h"

/** What llama.cpp has for all files: sparse gates of the first layers. */
enum { N_SPARSE = 10 };
#define SPARSITY                                                                                   \
    1.6448533535003662f /* where 95 of 100 numbers of a normal distribution are below */

static void sparsify_first(struct model_hparams *h)
{
    for (uint32_t i = 0; i < h->n_layers && i < N_SPARSE; i++) {
        h->layers[i].sparse_gates = true;
        h->layers[i].sparsity = SPARSITY;
    }
}

/** A threshold for each layer; -infinity: it has none. */
static void read_sparsity(struct model_hparams *h, const struct model_reading *r)
{
    static const char suffix[] = "activation_sparsity_scale";
    const struct gguf_kv *kv = model_key_find(&r->keys, suffix);
    if (!kv || r->options->llama_compat) {
        sparsify_first(h);
        return;
    }
    bool is_float = kv->element_type == GGUF_VALUE_F32 || kv->element_type == GGUF_VALUE_F64;
    if (kv->type != GGUF_VALUE_ARRAY || !is_float || kv->count != r->n_blocks) {
        model_key_fail(&r->keys, STATUS_FORMAT, suffix,
                       "is not an array of %u floats, one per layer", r->n_blocks);
        return;
    }
    for (uint32_t i = 0; i < h->n_layers; i++) {
        float value = (float)gguf_kv_float(kv, i);
        if (!(value <= FLT_MAX))
            model_key_fail(&r->keys, STATUS_FORMAT, suffix,
                           "has %g for layer %u, expected a number, or -infinity for none",
                           (double)value, i);
        h->layers[i].sparse_gates = value >= -FLT_MAX;
        h->layers[i].sparsity = h->layers[i].sparse_gates ? value : 0;
    }
}

static void read(struct model_hparams *h, const struct model_reading *r)
{
    h->sample_deviation = r->options->llama_compat;
    h->stream_least = r->options->llama_compat ? 0 : 1e-5f;
    for (uint32_t i = 0; i < h->n_layers; i++)
        h->layers[i].scale = 1;
    (void)model_key_u32_or(&r->keys, "altup.active_idx", (struct model_range){0, 0}, 0);
    read_sparsity(h, r);
    model_gemma_scale(h);
    model_gemma_read_shared(h, r);
}

/** Square matrices, one for each stream but the first, below one another. */
static void bind_square(struct model *m, const char *name, struct model_product *out)
{
    size_t n = m->hparams.n_embd, n_more = m->hparams.n_streams - 1;
    struct model_shape shape = {.n_rows = n, .n_cols = n, .n_matrices = n_more};
    const struct model_tensor *tensor =
        model_bind_tensor(m, name, shape, n_more ? MODEL_ALWAYS : MODEL_SOMETIMES);
    if (tensor)
        out->weight = model_tensor_rows(tensor, 0, n_more * n);
}

static void bind_ends(struct model *m)
{
    bind_square(m, "altup_proj.weight", &m->stream_in);
    bind_square(m, "altup_unembd_proj.weight", &m->stream_out);
    model_gemma_bind_input_ends(m);
}

static void bind_altup(struct model *m, size_t i)
{
    struct model_altup *a = &m->layers[i].altup;
    size_t n = m->hparams.n_embd, s = m->hparams.n_streams;
    model_bind_norm(m, i, "altup_router_norm", n, &a->router_norm);
    model_bind_product(m, i, "altup_router", s, n, &a->router);
    a->router.weight.scale /= (float)n;
    model_bind_product(m, i, "altup_predict_coef", s * s, s, &a->predict);
    model_bind_product(m, i, "altup_correct_coef", s, s, &a->correct);
    model_bind_norm(m, i, "altup_correct_scale", n, &a->scale);
}

/** Its rank is what the first matrix says. */
static void bind_laurel(struct model *m, size_t i)
{
    struct model_altup *a = &m->layers[i].altup;
    char name[48];
    snprintf(name, sizeof name, "blk.%zu.laurel_l.weight", i);
    const struct gguf_tensor *low = gguf_tensor_find(m->file, name);
    size_t n = m->hparams.n_embd, rank = low && low->n_dims == 2 ? (size_t)low->ne[1] : 1;
    model_bind_product(m, i, "laurel_l", rank, n, &a->low);
    model_bind_product(m, i, "laurel_r", n, rank, &a->high);
    model_bind_norm(m, i, "laurel_post_norm", n, &a->low_post_norm);
}

static void bind(struct model *m, size_t i)
{
    if (i == MODEL_NO_LAYER) {
        bind_ends(m);
        return;
    }
    model_gemma_bind_input(m, i);
    bind_altup(m, i);
    bind_laurel(m, i);
}

static const struct model_arch_key keys[] = {
    {"altup.num_inputs", MODEL_OPTIONAL, .absent = 4},
    {"embedding_length_per_layer_input", MODEL_OPTIONAL, .least = 1, .absent = 256},
    {"final_logit_softcapping", MODEL_OPTIONAL, .absent = 30},
    {0},
};

const struct model_arch model_arch_gemma3n = {
    .name = "gemma3n",
    /* Streams of l_out lie in another order. */
    .nodes = (const struct model_node[]){{MODEL_AT_EMBEDDING, "embd", "GET_ROWS", .other = true},
                                         {MODEL_AT_ATTN_RESIDUAL, "attn_laurel", "SCALE"},
                                         {MODEL_AT_LAYER_OUT, "l_out", .other = true},
                                         {0}},
    .norms = {.attn_post = "post_attention_norm", .ffn_post = "post_ffw_norm"},
    .altup = true,
    .rope_halves = true,
    .sliding_rope = true,
    .sliding_base = 10000,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .bare_v_norm = true,
    .windows = {.period = 5},
    .keys = {keys},
    .needs = {{"attention.sliding_window"},
              {"activation_sparsity_scale"},
              {"final_logit_softcapping"},
              {"embedding_length_per_layer_input"}},
    .activation = KERN_GELU,
    .read = read,
    .bind = bind,
};

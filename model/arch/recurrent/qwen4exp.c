/**
 * Qwen 3.8 Flash Next: a residual of several streams with mixers of low rank in place of norms, the
 * delta nets and the gated attention of Qwen 3.5, whose keys an indexer chooses by runs, and an
 * embedding of each token's last tokens.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/arithmetic.h"
#include "model/arch.h"
#include "model/arch/recurrent/qwen35.h"
#include "model/bind/bind.h"
#include "model/state.h"

/** n whole numbers of 64 bits. */
static void read_numbers(const struct model_reading *r, const char *suffix, uint64_t *out, size_t n)
{
    model_key_require(&r->keys, suffix, "an array of whole numbers");
    const struct gguf_kv *kv = model_key_find(&r->keys, suffix);
    if (r->keys.kept->status)
        return;
    if (kv->type != GGUF_VALUE_ARRAY || !gguf_value_is_int(kv->element_type) || kv->count != n) {
        model_key_fail(&r->keys, STATUS_FORMAT, suffix, "is not an array of %zu whole numbers", n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        out[i] = gguf_kv_uint(kv, i);
        if (gguf_kv_int(kv, i) < 0)
            model_key_fail(&r->keys, STATUS_FORMAT, suffix, "has %" PRId64 ", expected 0 or more",
                           gguf_kv_int(kv, i));
    }
}

/** Rows are found by numbers of 31 bits. */
static void check_rows(const struct model_ngram_hparams *n, const struct model_reading *r)
{
    for (size_t i = 0; i < model_ngram_rows(n); i++)
        if (n->n_rows[i] < 1 || n->n_rows[i] > INT32_MAX || n->first_row[i] > INT32_MAX ||
            n->first_row[i] + n->n_rows[i] > INT32_MAX)
            model_key_fail(&r->keys, STATUS_FORMAT, "ple.head_vocab_sizes",
                           "has %" PRIu64 " for hash %zu, expected 1 or more that end at most at "
                           "row %" PRId32 ", from row %" PRIu64 " on (key '%s.ple.head_offsets')",
                           n->n_rows[i], i, INT32_MAX, n->first_row[i], r->keys.prefix);
}

/** The layer that begins with an embedding of the last tokens, and what this is made of. */
static void read_ngrams(struct model_hparams *h, const struct model_reading *r)
{
    static const char layers[] = "ple.layers", width[] = "embedding_length_per_layer_input";
    static const struct model_arch_key keys[] = {{"ple.ngram_size", MODEL_REQUIRED},
                                                 {"ple.heads_per_ngram", MODEL_REQUIRED},
                                                 {"ple.conv_kernel", MODEL_REQUIRED},
                                                 {"ple.eos_token_id", MODEL_REQUIRED},
                                                 {0}};
    struct model_ngram_hparams *n = &h->ngrams;
    uint64_t layer = 0;
    if (!model_key_find(&r->keys, layers))
        return;
    read_numbers(r, layers, &layer, 1);
    model_hparams_read_keys(h, r, keys);
    if (r->keys.kept->status)
        return;
    if (layer >= h->n_layers || h->layers[layer].mixer != MODEL_DELTA_NET) {
        model_key_fail(&r->keys, STATUS_FORMAT, layers, "is %" PRIu64 ", expected a delta net",
                       layer);
        return;
    }
    if (model_ngram_rows(n) > MODEL_NGRAM_ROWS) {
        model_key_fail(&r->keys, STATUS_UNSUPPORTED, "ple.heads_per_ngram",
                       "is %u for up to %u tokens, supported are %d hashes of a token", n->n_heads,
                       n->most, MODEL_NGRAM_ROWS);
        return;
    }
    h->layers[layer].ngrams = true;
    n->width = model_key_u32(&r->keys, width, model_width_range);
    if (n->width * (uint64_t)model_ngram_rows(n) != h->n_embd)
        model_key_fail(&r->keys, STATUS_FORMAT, width, "is %u, expected %u / %zu", n->width,
                       h->n_embd, model_ngram_rows(n));
    read_numbers(r, "ple.layer_multipliers", n->multipliers, n->most);
    read_numbers(r, "ple.head_offsets", n->first_row, model_ngram_rows(n));
    read_numbers(r, "ple.head_vocab_sizes", n->n_rows, model_ngram_rows(n));
    if (!r->keys.kept->status)
        check_rows(n, r);
}

/** How many tokens a key that queries choose by is the mean of, in layers of attention. */
static void read_runs(struct model_hparams *h, const struct model_reading *r)
{
    static const char suffix[] = "attention.compress_ratios";
    struct model_index_hparams *x = &h->index;
    struct model_range any = {0, model_positions_range.high};
    uint32_t runs[MODEL_MAX_BLOCKS] = {0};
    model_key_require(&r->keys, suffix, "an array of whole numbers");
    model_key_per_layer(&r->keys, suffix, any, runs, r->n_blocks);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        h->layers[i].sparse = h->layers[i].mixer != MODEL_DELTA_NET;
        if (!h->layers[i].sparse)
            continue;
        if (runs[i] == 0)
            model_key_fail(&r->keys, STATUS_FORMAT, suffix,
                           "is 0 for layer %u, expected 1 or more, as it is attention", i);
        else if (x->n_best % runs[i] != 0)
            model_key_fail(&r->keys, STATUS_FORMAT, "attention.indexer.top_k",
                           "is %u, expected a multiple of the %u tokens of a key", x->n_best,
                           runs[i]);
        h->layers[i].pool = runs[i];
    }
}

/** The indexer: heads that choose as one. Its keys' angles are found by positions. */
static void read_indexer(struct model_hparams *h, const struct model_reading *r)
{
    struct model_index_hparams *x = &h->index;
    model_indexer_read(h, r);
    x->weighed = false;
    x->as_one = true;
    x->means = true;
    x->fill = r->options->llama_compat;
    if (h->ropes[MODEL_ROPE_FULL].scaling == MODEL_ROPE_LONG)
        model_key_fail(&r->keys, STATUS_UNSUPPORTED, "rope.scaling.type",
                       "is longrope, supported are yarn, linear and none");
    read_runs(h, r);
}

static void read(struct model_hparams *h, const struct model_reading *r)
{
    model_qwen35_read(h, r);
    read_indexer(h, r);
    read_ngrams(h, r);
}

static void divide(struct model_product *product, size_t n)
{
    product->weight.scale /= (float)n;
}

/** The tensors "<name>_norm" and so on; layer: MODEL_NO_LAYER: the last one, without a branch. */
static void bind_mixer(struct model *m, size_t layer, const char *name,
                       struct model_stream_mixer *x)
{
    size_t n = m->hparams.n_streams, width = model_residual_width(&m->hparams);
    size_t rank = m->hparams.stream_rank;
    bool last = layer == MODEL_NO_LAYER;
    char down[32], up[32], inject[32], norm[32];
    snprintf(down, sizeof down, "%s_down", name);
    snprintf(up, sizeof up, "%s_up", name);
    snprintf(inject, sizeof inject, "%s_inject", name);
    snprintf(norm, sizeof norm, last ? "%s_norm.weight" : "%s_norm", name);
    if (last)
        model_bind_vector(m, &x->norm.gain, norm, width, MODEL_ALWAYS);
    else
        model_bind_norm(m, layer, norm, width, &x->norm);
    model_bind_product(m, layer, down, rank, width, &x->product);
    model_bind_product(m, layer, up, width, rank, &x->up);
    divide(&x->product, n);
    if (last)
        return;
    model_bind_product(m, layer, inject, n, width, &x->inject);
    divide(&x->inject, n);
}

/** The table has the rows that hashes name, and may have more. */
static void bind_ngrams(struct model *m, size_t i)
{
    static const char name[] = "per_layer_token_embd.weight";
    const struct model_hparams *h = &m->hparams;
    struct model_ngrams *x = &m->layers[i].ngrams;
    const struct gguf_tensor *table = gguf_tensor_find(m->file, name);
    struct model_shape shape = {.n_rows = 1, .n_cols = h->ngrams.width};
    size_t width = model_residual_width(h), n = h->n_embd;
    for (size_t k = 0; k < model_ngram_rows(&h->ngrams); k++)
        shape.n_rows = base_max(shape.n_rows, h->ngrams.first_row[k] + h->ngrams.n_rows[k]);
    if (table && table->n_dims == 2 && table->ne[1] <= INT32_MAX)
        shape.n_rows = base_max(shape.n_rows, table->ne[1]);
    if (h->ngrams.end >= h->n_vocab)
        model_bind_fail(m, STATUS_FORMAT,
                        "key '%s.ple.eos_token_id' is %u, expected one of the %u tokens",
                        m->arch->name, h->ngrams.end, h->n_vocab);
    struct model_tensor *tensor = model_bind_tensor(m, name, shape, MODEL_ALWAYS);
    if (tensor) {
        tensor->rows_of_token = model_ngram_rows(&h->ngrams);
        x->source = tensor;
        x->table = model_tensor_rows(tensor, 0, shape.n_rows);
    }
    model_bind_product(m, i, "ple_key", width, n, &x->key);
    model_bind_product(m, i, "ple_value", n, n, &x->value);
    model_bind_norm(m, i, "ple_norm_key", width, &x->key_norm);
    model_bind_norm(m, i, "ple_norm_query", width, &x->query_norm);
    model_bind_norm(m, i, "ple_norm_conv", width, &x->taps_norm);
    model_bind_layer_matrix(m, i, "ple_conv1d.weight",
                            (struct model_shape){.n_rows = width, .n_cols = h->ngrams.n_taps},
                            &x->taps);
}

static void bind(struct model *m, size_t i)
{
    if (i == MODEL_NO_LAYER) {
        bind_mixer(m, MODEL_NO_LAYER, "output_hc", &m->output_mixer);
        return;
    }
    bind_mixer(m, i, "hc_attn", &m->layers[i].attn_mixer);
    bind_mixer(m, i, "hc_ffn", &m->layers[i].ffn_mixer);
    if (m->hparams.layers[i].ngrams)
        bind_ngrams(m, i);
}

static const struct model_arch_key keys[] = {
    {"attention.indexer.head_count", MODEL_REQUIRED, .from = ""}, /* the folder's `write` */
    {"attention.indexer.key_length", MODEL_REQUIRED, .from = ""},
    {"attention.indexer.top_k", MODEL_REQUIRED, .from = ""},
    {"hyper_connection.count", MODEL_REQUIRED, .from = "hc_count"},
    {"hyper_connection.low_rank", MODEL_REQUIRED},
    {.from = "indexer_kv_heads", .unset = 1, .member = MODEL_MEMBER_FIXED},
    {0},
};

/** Keys of the indexer are shown before they become means. */
static const struct model_node nodes[] = {
    {MODEL_AT_EMBEDDING, "hc_init"},
    {MODEL_AT_EMBEDDING, "model.input_embed", .other = true}, /* one stream */
    {MODEL_AT_BETA, "beta", "RESHAPE"},
    {MODEL_AT_INDEX_K, "indexer_k_raw"},
    {MODEL_AT_INDEX_K, "indexer_k", .other = true},
    {MODEL_AT_ATTN_OUT, "attn_output", "MUL_MAT MUL"},
    {MODEL_AT_ATTN_OUT, "linear_attn_out", "MUL_MAT MUL"},
    {MODEL_AT_LAYER_OUT, "l_last"},
    {0},
};

const struct model_arch model_arch_qwen4exp = {
    .name = "qwen4exp",
    .folder = &model_qwen4exp_folder,
    .nodes = nodes,
    .norms = {.attn = "", .ffn = "", .output = ""},
    .rope_halves = true,
    .qk_norm = MODEL_QK_NORM_HEADS,
    .gated_attention = true,
    .gate_kind = KERN_SIGMOID,
    .mixer_gate = KERN_SIGMOID,
    .shared = MODEL_SHARED_GATED,
    .read = read,
    .bind = bind,
    .keys = {model_qwen35_keys, keys},
    .key_blind = {"rope.dimension_sections", "ple.image_token_id"},
    .needs = {{"rope.dimension_count"}},
    .presence = {{MODEL_NEVER, "hc_attn_down.bias hc_attn_up.bias hc_attn_inject.bias "
                               "hc_ffn_down.bias hc_ffn_up.bias hc_ffn_inject.bias "
                               "output_hc_down.bias output_hc_up.bias ple_key.bias "
                               "ple_value.bias"}},
};

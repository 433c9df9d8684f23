/* What operations of the forward pass take of memory inside the backend, and what a cache takes. */
#include "model/forward/session.h"

/** A walk over weights that keeps the most that a product takes. */
struct most {
    struct kern_backend *backend;
    size_t n_tokens, n_bytes;
};

static void add_product(void *user, const struct kern_weight *weight, double share)
{
    (void)share;
    struct most *most = user;
    struct kern_linear op = {.weight = weight, .n_tokens = most->n_tokens};
    most->n_bytes = base_max(most->n_bytes, kern_linear_bytes(most->backend, &op));
}

/** A tile's tokens are at most so many ranges or runs. */
static size_t mixer_bytes(const struct model *m, struct kern_backend *backend, size_t i, size_t n)
{
    const struct model_hparams *h = &m->hparams;
    const struct model_layer_shape *l = &h->layers[i];
    if (l->mixer == MODEL_DELTA_NET || l->mixer == MODEL_MAMBA2) {
        struct kern_recur op = model_recur_of(m, i);
        op.n_runs = n;
        return kern_recur_bytes(backend, &op);
    }
    if (l->mixer == MODEL_NO_MIXER)
        return 0;
    struct model_kv_widths w = model_kv_widths(h, i);
    struct kern_attention op = {.n_heads = l->n_heads,
                                .n_kv_heads = l->n_kv_heads,
                                .head_size = w.k / l->n_kv_heads,
                                .value_size = w.v / l->n_kv_heads,
                                .n_ranges = n};
    return kern_attention_bytes(backend, &op);
}

size_t model_operation_bytes(const struct model *model, struct kern_backend *backend,
                             const struct model_session_options *options)
{
    struct model_scratch scratch = model_scratch_of(model, options);
    struct most most = {backend, scratch.n_tokens, 0};
    struct model_layer_range layers = model_session_layers(model, options);
    for (size_t i = layers.from; i < layers.to; i++) {
        model_layer_walk(model, i, add_product, &most);
        most.n_bytes = base_max(most.n_bytes, mixer_bytes(model, backend, i, scratch.n_tokens));
    }
    return most.n_bytes;
}

/** A row of a cache, rounded up to whole blocks. */
static double row_bytes(enum gguf_type type, size_t n)
{
    const struct gguf_type_info *info = gguf_type_info((uint32_t)type);
    size_t n_blocks = (n + info->block_elems - 1) / info->block_elems;
    return (double)n_blocks * info->block_bytes;
}

/** What convolution and recurrence of a layer keep of a sequence. */
static double state_bytes(const struct model_recurrent_hparams *n)
{
    double channels = n->n_inner + 2.0 * n->n_groups * n->state;
    return ((n->n_taps - 1.0) * channels + (double)n->state * n->n_inner) * sizeof(float);
}

double model_cache_bytes(const struct model_hparams *h, const struct model_kv_types *types,
                         size_t n_positions)
{
    double sum = 0;
    for (size_t i = 0; i < h->n_layers; i++) {
        const struct model_layer_shape *l = &h->layers[i];
        if (l->mixer == MODEL_DELTA_NET || l->mixer == MODEL_MAMBA2)
            sum += state_bytes(&h->recurrent);
        if (l->kv_layer != i)
            continue;
        struct model_kv_widths w = model_kv_widths(h, i);
        bool compressed = l->mixer == MODEL_LATENT_ATTENTION && h->compressed_keys;
        size_t n = l->window ? base_min(n_positions, l->window) : n_positions;
        n = l->chunk ? base_min(n, l->chunk) : n;
        sum += (double)n * (row_bytes(types->k, w.k) + (compressed ? 0 : row_bytes(types->v, w.v)));
    }
    return sum;
}

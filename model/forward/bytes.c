/* What operations of the forward pass take of memory inside the backend, and what a cache takes. */
#include "model/forward/index/index.h"

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
static size_t mixer_bytes(const struct model *m, struct kern_backend *backend, size_t i, size_t n,
                          size_t n_positions)
{
    const struct model_hparams *h = &m->hparams;
    const struct model_layer_shape *l = &h->layers[i];
    size_t n_bytes = 0;
    if (model_mixer_has_state(l->mixer) && l->mixer != MODEL_SHORT_CONVOLUTION) {
        struct kern_recur op = model_recur_of(m, i);
        op.n_runs = n;
        n_bytes = kern_recur_bytes(backend, &op);
    }
    if (!model_mixer_has_keys(l->mixer))
        return n_bytes;
    struct model_kv_widths w = model_kv_widths(h, i);
    bool same = l->mixer == MODEL_RUN_ATTENTION; /* rows are keys and values at once */
    struct kern_attention op = {.n_heads = l->n_heads,
                                .n_kv_heads = l->n_kv_heads,
                                .head_size = w.k / l->n_kv_heads,
                                .value_size = (same ? w.k : w.v) / l->n_kv_heads,
                                .n_ranges = n};
    n_bytes = base_max(n_bytes, kern_attention_bytes(backend, &op));
    bool of_runs = l->runs_overlap; /* what is chosen are further keys */
    if (!of_runs && !model_index_decides(h, i, n_positions))
        return n_bytes;
    struct kern_choose choose = model_choose_of(h, i, of_runs ? n_positions / l->run : n_positions);
    choose.n_ranges = n;
    return base_max(n_bytes, kern_choose_bytes(backend, &choose));
}

size_t model_operation_bytes(const struct model *model, struct kern_backend *backend,
                             const struct model_session_options *options)
{
    struct model_scratch scratch = model_scratch_of(model, options);
    struct most most = {backend, scratch.n_tokens, 0};
    struct model_layer_range layers = model_session_layers(model, options);
    for (size_t i = layers.from; i < layers.to; i++) {
        model_layer_walk(model, i, add_product, &most);
        size_t n_bytes = mixer_bytes(model, backend, i, scratch.n_tokens, options->max_segment);
        most.n_bytes = base_max(most.n_bytes, n_bytes);
    }
    return most.n_bytes;
}

/** Rows of a position in a cache, n numbers together, rounded up to whole blocks. */
static double row_bytes(enum gguf_type type, size_t n, size_t n_rows)
{
    const struct gguf_type_info *info = gguf_type_listed((uint32_t)type);
    size_t n_blocks = (n + info->block_elems - 1) / info->block_elems;
    return (double)n_blocks * info->block_bytes + (double)(n ? n_rows : 0) * info->row_prefix;
}

/** What convolution and recurrence of a layer keep of a sequence. */
static double state_bytes(const struct model_recurrent_hparams *n)
{
    double channels = n->n_inner + 2.0 * n->n_groups * n->state;
    return ((n->n_taps - 1.0) * channels + (double)n->state * n->n_inner) * sizeof(float);
}

/** What a layer keeps of each position: numbers, and of how many positions. */
struct kept {
    size_t k, v, index, most; /* most: SIZE_MAX: of all */
    size_t n_rows;            /* heads */
};

static struct kept kept_of(const struct model_hparams *h, size_t i)
{
    const struct model_layer_shape *l = &h->layers[i];
    if (l->kv_layer != i)
        return (struct kept){.most = SIZE_MAX};
    struct model_kv_widths w = model_kv_widths(h, i);
    bool compressed = model_keys_are_compressed(h, i);
    size_t most = base_min(l->window ? l->window : SIZE_MAX, l->chunk ? l->chunk : SIZE_MAX);
    size_t index = l->sparse && l->index_layer == i && (l->pool == 0 || h->index.means)
                       ? h->index.key_size
                       : 0;
    return (struct kept){w.k, compressed ? 0 : w.v, index, most, compressed ? 1 : l->n_kv_heads};
}

/** Keys of an indexer that no exception rounds are of the type of its layer's, as in llama.cpp. */
static enum gguf_type index_type(const struct model_hparams *h, size_t i)
{
    enum gguf_type type = model_index_type(h, i).type;
    return type == GGUF_TYPE_F32 ? model_key_type(h, i).type : type;
}

/** FP8_DS_MLA holds the rotated part of a row in BF16. */
static double key_bytes(enum gguf_type type, size_t kv_rank, struct kept kept)
{
    if (type != GGUF_TYPE_FP8_DS_MLA || kept.k == 0)
        return row_bytes(type, kept.k, kept.n_rows);
    return row_bytes(type, kv_rank, 1) + row_bytes(GGUF_TYPE_BF16, kept.k - kv_rank, 1);
}

/** Bytes that a layer keeps of a position. */
static double position_bytes(const struct model_hparams *h, size_t i)
{
    struct kept kept = kept_of(h, i);
    return key_bytes(model_key_type(h, i).type, h->layers[i].kv_rank, kept) +
           row_bytes(model_value_type(h, i).type, kept.v, kept.n_rows) +
           row_bytes(index_type(h, i), kept.index, 1);
}

/** Positions that a layer's further keys or pools are made of, and their numbers. */
struct further {
    size_t run, key, index; /* run 0: there are none */
};

static struct further further_of(const struct model_hparams *h, size_t i)
{
    const struct model_layer_shape *l = &h->layers[i];
    if (l->run > 0)
        return (struct further){l->run, l->key_size, l->runs_overlap ? h->index.key_size : 0};
    bool pools = l->pool > 0 && l->index_layer == i && !h->index.means; /* of rows that are kept */
    return pools ? (struct further){l->pool, 0, h->index.key_size} : (struct further){0};
}

static double further_bytes(const struct model_hparams *h, size_t i)
{
    struct further further = further_of(h, i);
    return row_bytes(model_key_type(h, i).type, further.key, 1) +
           row_bytes(index_type(h, i), further.index, 1);
}

static double state_bytes_of(const struct model_hparams *h, size_t i)
{
    const struct model_layer_shape *l = &h->layers[i];
    double times = l->runs_overlap ? 2 : 1; /* runs, and halves of each row */
    struct further further = further_of(h, i);
    double width = (double)(further.key + further.index);
    if (further.run > 0) /* what the next one is made of */
        return 2 * times * times * (double)further.run * width * sizeof(float);
    double ngrams = (h->ngrams.n_taps - 1.0) * h->ngrams.most * (double)model_residual_width(h);
    return (model_mixer_has_state(l->mixer) ? state_bytes(&h->recurrent) : 0) +
           (l->ngrams ? ngrams * sizeof(float) : 0);
}

double model_cache_bytes(const struct model_hparams *h, const struct model_kv_types *types,
                         size_t n_positions)
{
    struct model_hparams typed = *h;
    typed.kv = *types;
    double sum = 0;
    for (size_t i = 0; i < h->n_layers; i++) {
        sum += state_bytes_of(h, i);
        sum += (double)base_min(n_positions, kept_of(h, i).most) * position_bytes(&typed, i);
        if (further_of(h, i).run > 0)
            sum += (double)(n_positions / further_of(h, i).run) * further_bytes(&typed, i);
    }
    return sum;
}

struct model_cache_shape model_cache_shape(const struct model_hparams *h)
{
    struct model_cache_shape shape = {0};
    for (size_t i = 0; i < h->n_layers; i++) {
        struct kept kept = kept_of(h, i);
        bool all = kept.most == SIZE_MAX;
        *(all ? &shape.k : &shape.window_k) += kept.k + kept.index;
        *(all ? &shape.v : &shape.window_v) += kept.v;
        *(all ? &shape.bytes : &shape.window_bytes) += position_bytes(h, i);
        if (!all)
            shape.window = base_max(shape.window, kept.most);
        struct further further = further_of(h, i);
        if (further.run > 0) {
            shape.k += base_div_up(further.key + further.index, further.run);
            shape.bytes += further_bytes(h, i) / (double)further.run;
        }
        shape.state_bytes += state_bytes_of(h, i);
    }
    return shape;
}

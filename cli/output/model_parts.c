#include "cli/output/model_parts.h"

#include "gguf/gguf.h"
#include "model/swap.h"

/* What has one type. */
struct total {
    const struct gguf_type_info *type;
    uint64_t n_tensors, n_weights, n_bytes;
};

static size_t count_types(struct total totals[GGUF_MAX_LISTED], const struct model *model)
{
    const struct gguf_file *file = model_file(model);
    size_t n = 0;
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(file, i);
        struct model_in_force force = model_in_force(model, i);
        size_t at = 0;
        while (at < n && totals[at].type != force.type)
            at++;
        if (at == GGUF_MAX_LISTED)
            continue;
        if (at == n)
            totals[n++] = (struct total){.type = force.type};
        totals[at].n_tensors++;
        totals[at].n_weights += tensor->n_rows * tensor->ne[0];
        totals[at].n_bytes += force.n_bytes;
    }
    return n;
}

void cli_json_add_types(struct base_json *json, cJSON *o, const struct model *model)
{
    struct total totals[GGUF_MAX_LISTED];
    size_t n = count_types(totals, model);
    cJSON *list = base_json_list(json, o, "types");
    for (; n > 0; n--) {
        size_t most = 0;
        for (size_t i = 1; i < n; i++)
            most = totals[i].n_weights > totals[most].n_weights ? i : most;
        cJSON *item = base_json_object(json, list, NULL);
        base_json_text(json, item, "type", totals[most].type->name);
        base_json_uint(json, item, "n_tensors", totals[most].n_tensors);
        base_json_uint(json, item, "n_weights", totals[most].n_weights);
        base_json_uint(json, item, "n_bytes", totals[most].n_bytes);
        for (size_t i = most; i + 1 < n; i++) /* the others keep the order of the file */
            totals[i] = totals[i + 1];
    }
}

/* Numbers that a layer keeps of a token, and of how many tokens. */
struct kept {
    uint64_t k, v;
    uint32_t window; /* the last so many; 0: all */
};

static struct kept kept_of(const struct model_hparams *h, uint32_t i)
{
    const struct model_layer_shape *l = &h->layers[i];
    bool latent = l->mixer == MODEL_LATENT_ATTENTION;
    if ((l->mixer != MODEL_ATTENTION && !latent) || l->kv_layer != i)
        return (struct kept){0};
    if (latent && h->compressed_keys) /* the values are a part of the keys */
        return (struct kept){h->kv_rank + h->ropes[MODEL_ROPE_FULL].n_rot, 0, 0};
    return (struct kept){(uint64_t)l->n_kv_heads * l->key_size,
                         (uint64_t)l->n_kv_heads * l->value_size, l->window ? l->window : l->chunk};
}

/* The state of a layer that has no keys, and the last inputs of its convolution, in float32. */
static uint64_t state_bytes_of(const struct model_hparams *h, uint32_t i)
{
    const struct model_recurrent_hparams *r = &h->recurrent;
    enum model_mixer mixer = h->layers[i].mixer;
    if (mixer != MODEL_DELTA_NET && mixer != MODEL_MAMBA2)
        return 0;
    uint64_t taps = r->n_taps ? r->n_taps - 1 : 0;
    return 4 * (taps * (r->n_inner + 2 * (uint64_t)r->n_groups * r->state) +
                (uint64_t)r->state * r->n_inner);
}

void cli_json_add_cache(struct base_json *json, cJSON *o, const struct model_hparams *h)
{
    struct kept all = {0}, sliding = {0};
    uint64_t state_bytes = 0;
    for (uint32_t i = 0; i < h->n_layers; i++) {
        struct kept kept = kept_of(h, i);
        struct kept *sum = kept.window ? &sliding : &all;
        sum->k += kept.k;
        sum->v += kept.v;
        sum->window = kept.window > sum->window ? kept.window : sum->window;
        state_bytes += state_bytes_of(h, i);
    }
    cJSON *cache = base_json_object(json, o, "cache");
    base_json_uint(json, cache, "k", all.k);
    base_json_uint(json, cache, "v", all.v);
    base_json_uint(json, cache, "window", sliding.window);
    base_json_uint(json, cache, "window_k", sliding.k);
    base_json_uint(json, cache, "window_v", sliding.v);
    base_json_uint(json, cache, "state_bytes", state_bytes);
}

/* What keys and values are rounded to. */
#include "kernels/quant/round.h"
#include "model/forward/session.h"

/** A row of keys or values must be whole blocks in each head. */
static enum status check_heads(const struct model *m, uint32_t i_layer, const char *what,
                               enum gguf_type type, size_t size, struct status_why *why)
{
    size_t n_elems = kern_round_elems(type);
    if (n_elems && size % n_elems == 0)
        return STATUS_OK;
    return status_fail(
        why, STATUS_UNSUPPORTED,
        "%s: the %s of layer %u are rows of %zu numbers, expected a multiple of %zu, "
        "the block of %s; f16 and bf16 have none",
        gguf_path(m->file), what, i_layer, size, n_elems, gguf_type_name((uint32_t)type));
}

static enum status check_layer(const struct model *m, uint32_t i,
                               const struct model_kv_types *types, struct status_why *why)
{
    const struct model_hparams *h = &m->hparams;
    const struct model_layer_shape *l = &h->layers[i];
    bool runs = l->mixer == MODEL_RUN_ATTENTION;
    bool compressed = runs || (l->mixer == MODEL_LATENT_ATTENTION && h->compressed_keys);
    if (!model_mixer_has_keys(l->mixer))
        return STATUS_OK;
    if (!compressed && types->v == GGUF_TYPE_Q8_KV)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%s: q8_kv is a type of keys: ik_llama.cpp writes values of several "
                           "tokens as one row; expected another type for values",
                           gguf_path(m->file));
    if (compressed && types->v != GGUF_TYPE_F32 && types->v != types->k)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%s: its compressed rows are keys and values at once: expected one type "
                           "for both, or the keys' alone; found %s and %s",
                           gguf_path(m->file), gguf_type_name((uint32_t)types->k),
                           gguf_type_name((uint32_t)types->v));
    size_t k = compressed ? model_kv_widths(h, i).k : l->key_size;
    enum status status = check_heads(m, i, "keys", types->k, k, why);
    if (!status && l->runs_overlap)
        status = check_heads(m, i, "indexer's keys", types->k, h->index.key_size, why);
    return status || compressed ? status
                                : check_heads(m, i, "values", types->v, l->value_size, why);
}

enum status model_round_kv(struct model *m, const struct model_kv_types *types,
                           struct status_why *why)
{
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < m->hparams.n_layers && !status; i++)
        status = check_layer(m, i, types, why);
    if (!status)
        m->hparams.kv = *types;
    return status;
}

/**
 * How many numbers of a head llama.cpp turns together before its cache rounds them: the largest
 * power of two that divides the head, at most `most`; none where the head, or that of the first
 * layer, is no multiple of 64.
 */
static size_t turn_of(const struct model_session *s, size_t head_size, size_t first_size,
                      size_t most)
{
    size_t n = head_size & -head_size;
    bool turns = n >= 64 && first_size % 64 == 0 && !s->model->hparams.kv.unturned;
    return turns ? base_min(n, most) : 0;
}

static enum status round_numbers(struct model_session *s, struct kern_round op,
                                 struct status_why *why)
{
    if (!kern_round_is_turned(op.type))
        op.n_turn = 0;
    return op.type == GGUF_TYPE_F32 ? STATUS_OK : kern_round(s->backend, &op, why);
}

enum status model_round_keys(struct model_session *s, float *k, size_t n_heads, size_t size,
                             struct status_why *why)
{
    const struct model_hparams *h = &s->model->hparams;
    size_t turn = turn_of(s, size, h->layers[0].key_size, KERN_TURN_MAX);
    return round_numbers(s, (struct kern_round){h->kv.k, k, n_heads * size, turn, size}, why);
}

enum status model_round_values(struct model_session *s, float *v, size_t n_heads, size_t size,
                               struct status_why *why)
{
    const struct model_hparams *h = &s->model->hparams;
    size_t turn = turn_of(s, size, h->layers[0].value_size, 64);
    return round_numbers(s, (struct kern_round){h->kv.v, v, n_heads * size, turn, size}, why);
}

enum status model_round_compressed(struct model_session *s, float *k, size_t n, size_t width,
                                   struct status_why *why)
{
    return round_numbers(s, (struct kern_round){s->model->hparams.kv.k, k, n * width, 0, width},
                         why);
}

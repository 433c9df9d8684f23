/* What keys and values are rounded to. */
#include <stdio.h>

#include "base/text/number.h"
#include "kernels/quant/cache_types.h"
#include "model/forward/session.h"

struct model_kv_widths model_kv_widths(const struct model_hparams *h, size_t i_layer)
{
    const struct model_layer_shape *l = &h->layers[i_layer];
    size_t k = (size_t)l->n_kv_heads * l->key_size, v = (size_t)l->n_kv_heads * l->value_size;
    if (model_keys_are_compressed(h, i_layer))
        return (struct model_kv_widths){l->kv_rank + h->ropes[MODEL_ROPE_FULL].n_rot, l->kv_rank};
    if (l->mixer == MODEL_RUN_ATTENTION) /* rows are keys and values at once */
        return (struct model_kv_widths){k, 0};
    if (model_mixer_has_keys(l->mixer))
        return (struct model_kv_widths){k, v};
    return (struct model_kv_widths){0, 0};
}

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

/** Rows of a layer that are keys and values at once. */
static bool is_compressed(const struct model_hparams *h, size_t i)
{
    return h->layers[i].mixer == MODEL_RUN_ATTENTION || model_keys_are_compressed(h, i);
}

/** Whether a layer has an indexer of its own. */
static bool has_index(const struct model_hparams *h, size_t i)
{
    const struct model_layer_shape *l = &h->layers[i];
    return l->runs_overlap || (l->sparse && l->index_layer == i);
}

static bool is_among(const struct model_hparams *h, size_t i, const struct model_kv_exception *e)
{
    const struct model_layer_shape *l = &h->layers[i];
    bool windows = l->window || l->chunk;
    if (e->where == MODEL_KV_INDEXER)
        return has_index(h, i);
    if (!model_mixer_has_keys(l->mixer) || l->kv_layer != i)
        return false;
    return e->where == MODEL_KV_LAYERS ? e->from <= i && i <= e->to
                                       : windows == (e->where == MODEL_KV_WINDOWS);
}

/** The type of a layer, or of its indexer's keys, that the last exception says; else `type`. */
static struct model_kv_type type_of(const struct model_hparams *h, size_t i, bool of_index,
                                    const struct model_kv_exceptions *but,
                                    struct model_kv_type type)
{
    for (size_t k = 0; k < but->n; k++) {
        const struct model_kv_exception *e = &but->at[k];
        if ((e->where == MODEL_KV_INDEXER) == of_index && is_among(h, i, e))
            type = e->type;
    }
    return type;
}

struct model_kv_type model_key_type(const struct model_hparams *h, size_t i_layer)
{
    struct model_kv_type type = type_of(h, i_layer, false, &h->kv.k_but, h->kv.k);
    if (type.calibrated && h->kv.scales)
        type.scale = h->kv.scales[i_layer].k;
    return type;
}

struct model_kv_type model_value_type(const struct model_hparams *h, size_t i_layer)
{
    struct model_kv_type type = type_of(h, i_layer, false, &h->kv.v_but, h->kv.v);
    if (type.calibrated && h->kv.scales)
        type.scale = h->kv.scales[i_layer].v;
    return type;
}

static bool any_calibrated(const struct model_kv_exceptions *but)
{
    bool found = false;
    for (size_t i = 0; i < but->n; i++)
        found |= but->at[i].type.calibrated;
    return found;
}

bool model_kv_calibrated(const struct model_kv_types *kv)
{
    return kv->k.calibrated || kv->v.calibrated || any_calibrated(&kv->k_but) ||
           any_calibrated(&kv->v_but);
}

struct model_kv_type model_index_type(const struct model_hparams *h, size_t i_layer)
{
    bool of_runs = h->layers[i_layer].runs_overlap;
    struct model_kv_type type = {GGUF_TYPE_F32, 0};
    if (of_runs)
        type = model_key_type(h, i_layer);
    return type_of(h, i_layer, true, &h->kv.k_but, type);
}

const char *model_kv_type_name(char out[MODEL_KV_TYPE_NAME], struct model_kv_type type)
{
    struct base_number scale;
    const char *name = gguf_type_name((uint32_t)type.type);
    bool plain = type.scale == 0 && !type.calibrated;
    snprintf(out, MODEL_KV_TYPE_NAME, plain ? "%s" : "%s@%s", name,
             type.calibrated ? "calibrated" : base_float_text(&scale, type.scale));
    return out;
}

/** FP8_DS_MLA is of rows of two parts, which latent attention alone has. */
static enum status check_parts(const struct model *m, const struct model_hparams *h, uint32_t i,
                               struct status_why *why)
{
    const enum gguf_type type = GGUF_TYPE_FP8_DS_MLA;
    if (has_index(h, i) && model_index_type(h, i).type == type)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%s: fp8_ds_mla is a type of compressed rows, expected another one for "
                           "an indexer's keys",
                           gguf_path(m->file));
    bool used = model_key_type(h, i).type == type || model_value_type(h, i).type == type;
    if (used && !model_keys_are_compressed(h, i))
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%s: fp8_ds_mla is a type of the compressed rows of latent attention; "
                           "layer %u has none, expected another type",
                           gguf_path(m->file), i);
    return STATUS_OK;
}

/** h: with the types that are to be checked. */
static enum status check_layer(const struct model *m, const struct model_hparams *h, uint32_t i,
                               struct status_why *why)
{
    const struct model_layer_shape *l = &h->layers[i];
    struct model_kv_type key = model_key_type(h, i), value = model_value_type(h, i);
    char names[2][MODEL_KV_TYPE_NAME];
    bool compressed = is_compressed(h, i);
    if (!model_mixer_has_keys(l->mixer))
        return STATUS_OK;
    if (!compressed && value.type == GGUF_TYPE_Q8_KV)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%s: q8_kv is a type of keys: ik_llama.cpp writes values of several "
                           "tokens as one row; expected another type for values",
                           gguf_path(m->file));
    bool same = value.type == key.type && value.calibrated == key.calibrated &&
                (key.calibrated || value.scale == key.scale);
    if (l->mixer == MODEL_RUN_ATTENTION && (key.calibrated || value.calibrated))
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%s: layer %u makes further keys of runs of tokens, which do not "
                           "calibrate a scale; expected a number after @",
                           gguf_path(m->file), i);
    if (compressed && value.type != GGUF_TYPE_F32 && !same)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%s: its compressed rows are keys and values at once: expected one type "
                           "for both, or the keys' alone; found %s and %s",
                           gguf_path(m->file), model_kv_type_name(names[0], key),
                           model_kv_type_name(names[1], value));
    enum status status = check_parts(m, h, i, why);
    if (status)
        return status;
    size_t k = compressed ? model_kv_widths(h, i).k : l->key_size;
    bool parts = key.type == GGUF_TYPE_FP8_DS_MLA;
    status = check_heads(m, i, parts ? "compressed keys" : "keys", key.type, parts ? l->kv_rank : k,
                         why);
    if (!status && has_index(h, i))
        status = check_heads(m, i, "indexer's keys", model_index_type(h, i).type, h->index.key_size,
                             why);
    return status || compressed ? status
                                : check_heads(m, i, "values", value.type, l->value_size, why);
}

/** An exception of no layer is a mistake. */
static enum status check_exceptions(const struct model *m, const struct model_kv_exceptions *but,
                                    struct status_why *why)
{
    static const char *const none[] = {
        [MODEL_KV_LAYERS] = "keep keys and values of their own",
        [MODEL_KV_WINDOWS] = "see a window",
        [MODEL_KV_FULL] = "see all positions",
        [MODEL_KV_INDEXER] = "have an indexer",
    };
    const struct model_hparams *h = &m->hparams;
    for (size_t k = 0; k < but->n; k++) {
        const struct model_kv_exception *e = &but->at[k];
        bool found = false;
        for (size_t i = 0; i < h->n_layers && !found; i++)
            found = is_among(h, i, e);
        uint32_t last = e->to == UINT32_MAX ? e->from : e->to;
        if (e->where == MODEL_KV_LAYERS && last >= h->n_layers)
            return status_fail(why, STATUS_USAGE,
                               "%s: a type of a cache is for layer %u; expected one of its layers, "
                               "0 to %u",
                               gguf_path(m->file), last, h->n_layers - 1);
        if (!found)
            return status_fail(why, STATUS_USAGE,
                               "%s: a type of a cache is for layers that %s; expected some, found "
                               "none",
                               gguf_path(m->file), none[e->where]);
    }
    return STATUS_OK;
}

enum status model_round_kv(struct model *m, const struct model_kv_types *types,
                           struct status_why *why)
{
    struct model_hparams h = m->hparams;
    h.kv = *types;
    enum status status = check_exceptions(m, &types->k_but, why);
    if (!status)
        status = check_exceptions(m, &types->v_but, why);
    for (uint32_t i = 0; i < h.n_layers && !status; i++)
        status = check_layer(m, &h, i, why);
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

static void round_numbers(struct model_session *s, struct model_kv_type type, struct kern_round op)
{
    op.type = type.type;
    op.scale = type.scale;
    if (!kern_round_is_turned(op.type))
        op.n_turn = 0;
    if (op.type != GGUF_TYPE_F32)
        MODEL_TRY(s, kern_round(s->backend, &op, &s->failure.why));
}

void model_round_keys(struct model_session *s, size_t i_layer, float *k, size_t n_heads,
                      size_t size)
{
    const struct model_hparams *h = &s->model->hparams;
    size_t turn = turn_of(s, size, h->layers[0].key_size, KERN_TURN_MAX);
    struct kern_round op = {.x = k, .n = n_heads * size, .n_turn = turn, .row = size};
    round_numbers(s, model_key_type(h, i_layer), op);
}

void model_name_keys(const struct model_session *s, size_t kv_layer, struct kern_attention *op)
{
    const struct model_hparams *h = &s->model->hparams;
    op->k_type = model_key_type(h, kv_layer).type;
    if (kern_round_is_turned(op->k_type) && !is_compressed(h, kv_layer))
        op->k_turn = turn_of(s, op->head_size, h->layers[0].key_size, KERN_TURN_MAX);
}

void model_round_values(struct model_session *s, size_t i_layer, float *v, size_t n_heads,
                        size_t size)
{
    const struct model_hparams *h = &s->model->hparams;
    size_t turn = turn_of(s, size, h->layers[0].value_size, 64);
    struct kern_round op = {.x = v, .n = n_heads * size, .n_turn = turn, .row = size};
    round_numbers(s, model_value_type(h, i_layer), op);
}

void model_round_rows(struct model_session *s, struct model_kv_type type, float *k, size_t n,
                      size_t width)
{
    struct kern_round op = {.x = k, .n = n * width, .row = width};
    round_numbers(s, type, op);
}

/* What a file may lack: what architectures say of it, and what layers that are alike have. */
#include <stdio.h>
#include <string.h>

#include "base/text/words.h"
#include "model/bind/bind.h"
#include "model/state.h"

enum { WITHIN_BYTES = 96, NAME_BYTES = 128, MANY_LAYERS = 64 };

size_t model_block_of(const char *name)
{
    unsigned block;
    return sscanf(name, "blk.%u.", &block) == 1 ? block : SIZE_MAX;
}

/** What follows "blk.3." in a layer's tensor; else all of it. */
static const char *within_layer(const char *name)
{
    return model_block_of(name) == SIZE_MAX ? name : strchr(name + strlen("blk."), '.') + 1;
}

static bool holds(const struct model *m, enum model_where where, size_t layer)
{
    const struct model_hparams *h = &m->hparams;
    switch (where) {
    case MODEL_WHERE_FULL:
        return layer < h->n_layers + h->n_bound && !h->layers[layer].slides;
    case MODEL_WHERE_SHALLOW:
        return h->n_layers < MANY_LAYERS;
    case MODEL_WHERE_SIGMOID:
        return h->experts.gating == KERN_GATE_SIGMOID;
    case MODEL_EVERYWHERE:
        break;
    }
    return true;
}

static enum model_presence presence_in(const struct model *m, size_t layer, const char *within,
                                       enum model_presence usual)
{
    for (const struct model_presence_rule *rule = m->arch->presence; rule->tensors; rule++)
        if (base_words_index(rule->tensors, within) >= 0 && holds(m, rule->where, layer))
            return rule->presence;
    return usual;
}

enum model_presence model_presence_of(const struct model *m, const char *name,
                                      enum model_presence usual)
{
    return presence_in(m, model_block_of(name), within_layer(name), usual);
}

/** Find the tensor that another layer calls `within`; NULL: that layer lacks it. */
static const struct gguf_tensor *of_layer(const struct model *m, size_t layer, const char *within,
                                          char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "blk.%zu.%s", layer, within);
    return gguf_tensor_find(m->file, name);
}

/** The matrix "attn_q.weight" that "attn_q.bias" of a layer is added after; NULL: there is none. */
static const struct gguf_tensor *biased(const struct model *m, size_t layer, const char *within)
{
    static const char end[] = ".bias";
    size_t n = strlen(within), n_end = strlen(end);
    char matrix[WITHIN_BYTES], name[NAME_BYTES];
    if (n <= n_end || strcmp(within + n - n_end, end) != 0)
        return NULL;
    snprintf(matrix, sizeof matrix, "%.*s.weight", (int)(n - n_end), within);
    return of_layer(m, layer, matrix, name);
}

/** Whether two layers are to have the same tensor: the part that it belongs to is the same. */
static bool alike(const struct model *m, size_t i, size_t j, const char *within)
{
    const struct model_layer_shape *a = &m->hparams.layers[i], *b = &m->hparams.layers[j];
    bool of_ffn = strncmp(within, "ffn_", 4) == 0 || strncmp(within, "exp_", 4) == 0;
    if (presence_in(m, i, within, MODEL_SOMETIMES) != presence_in(m, j, within, MODEL_SOMETIMES))
        return false;
    return of_ffn ? (a->n_ff > 0) == (b->n_ff > 0) && (a->n_experts > 0) == (b->n_experts > 0)
                  : a->mixer == b->mixer && (a->kv_layer == i) == (b->kv_layer == j);
}

/** The next layers like this one, on both sides, have what it has. */
static void check_alike(struct model *m, size_t i, const char *within)
{
    const struct model_hparams *h = &m->hparams;
    bool is_bias = biased(m, i, within) != NULL;
    for (int step = -1; step <= 1; step += 2) {
        size_t j = i + (size_t)step;
        while (j < h->n_layers && !(alike(m, i, j, within) && (!is_bias || biased(m, j, within))))
            j += (size_t)step;
        char name[NAME_BYTES];
        if (j < h->n_layers && !of_layer(m, j, within, name))
            model_bind_fail(m, STATUS_FORMAT, "tensor '%s' is missing, expected it as in layer %zu",
                            name, i);
    }
}

/** What a layer has all of or none of, where it has the matrices. */
static const char *const together[] = {
    "attn_q.bias attn_k.bias attn_v.bias",
    "ffn_gate.bias ffn_up.bias ffn_down.bias",
    MODEL_QK_GAINS,
};

static void check_together(struct model *m, size_t layer, const char *within)
{
    const char *word, *rest = NULL;
    size_t length;
    bool has_keys = m->hparams.layers[layer].kv_layer == layer;
    for (size_t i = 0; i < sizeof together / sizeof *together && !rest; i++)
        rest = base_words_index(together[i], within) >= 0 ? together[i] : NULL;
    while (rest && (rest = base_words_next(rest, &word, &length))) {
        char other[WITHIN_BYTES], name[NAME_BYTES];
        snprintf(other, sizeof other, "%.*s", (int)length, word);
        bool is_bias = strstr(other, ".bias") != NULL;
        bool could = is_bias ? biased(m, layer, other) != NULL : has_keys;
        if (could && !of_layer(m, layer, other, name))
            model_bind_fail(m, STATUS_FORMAT,
                            "tensor '%s' is missing, expected it beside 'blk.%zu.%s'", name, layer,
                            within);
    }
}

/** Whether a scale stands beside a layer's matrix "attn_q.weight", by either of its names. */
static bool has_scale(const struct model *m, size_t layer, const char *matrix)
{
    char name[NAME_BYTES], scale[WITHIN_BYTES];
    snprintf(scale, sizeof scale, "%.*s.scale", (int)(strlen(matrix) - strlen(".weight")), matrix);
    if (of_layer(m, layer, scale, name))
        return true;
    snprintf(scale, sizeof scale, "%s.scale", matrix);
    return of_layer(m, layer, scale, name);
}

/** Blocks of these have scales within a range that one of the whole matrix places. */
static bool is_nvfp4(const struct gguf_tensor *t)
{
    return t->type_id == GGUF_TYPE_NVFP4 || t->type_id == GGUF_TYPE_NVFP4_APART;
}

/** A matrix before this one that is to have a scale if this one has: the same one of a layer
 * before, in the same type, or any of NVFP4. */
static const struct gguf_tensor *neighbour(const struct model *m, const struct gguf_tensor *t,
                                           const struct gguf_tensor *last_nvfp4)
{
    char name[NAME_BYTES];
    const struct gguf_tensor *other = NULL;
    if (is_nvfp4(t))
        return last_nvfp4;
    for (size_t j = model_block_of(t->name); j-- > 0;) {
        other = of_layer(m, j, within_layer(t->name), name);
        if (other && other->type_id == t->type_id)
            return other;
    }
    return NULL;
}

/** Matrices that are alike have a scale beside all of them, or beside none. */
static void check_scales(struct model *m)
{
    const struct gguf_tensor *last_nvfp4 = NULL;
    for (size_t i = 0; i < gguf_n_tensors(m->file); i++) {
        const struct gguf_tensor *t = m->tensors[i].source;
        size_t layer = model_block_of(t->name);
        if (!m->tensors[i].may_scale || layer >= m->hparams.n_layers)
            continue;
        const struct gguf_tensor *other = neighbour(m, t, last_nvfp4);
        bool has = has_scale(m, layer, within_layer(t->name));
        if (other && has_scale(m, model_block_of(other->name), within_layer(other->name)) != has) {
            const char *without = has ? other->name : t->name;
            model_bind_fail(
                m, STATUS_FORMAT,
                "tensor '%.*s.scale' is missing, expected it as '%s' of the same type has one",
                (int)(strlen(without) - strlen(".weight")), without, has ? t->name : other->name);
        }
        last_nvfp4 = is_nvfp4(t) ? t : last_nvfp4;
    }
}

void model_bind_check_missing(struct model *m)
{
    check_scales(m);
    for (size_t t = 0; t < gguf_n_tensors(m->file); t++) {
        const struct model_tensor *tensor = &m->tensors[t];
        size_t layer = model_block_of(tensor->source->name);
        if (!tensor->may_lack || layer >= m->hparams.n_layers)
            continue;
        const char *within = within_layer(tensor->source->name);
        check_alike(m, layer, within);
        check_together(m, layer, within);
    }
}

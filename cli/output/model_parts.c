#include "cli/output/model_parts.h"

#include <stdio.h>

#include "cli/options/common.h"
#include "gguf/gguf.h"
#include "model/forward/forward.h"
#include "model/swap.h"

enum { MOST_PARENTS = 16, METADATA_KEY = 64 };

/* The text of the first of two keys that the file has, or nothing. */
static struct base_string text_of(const struct gguf_file *file, const char *key, const char *other)
{
    struct base_string text = {0};
    bool found = false;
    if ((gguf_get_string(file, key, &text, &found, NULL) || !found) && other)
        return text_of(file, other, NULL);
    return found ? text : (struct base_string){0};
}

static void add_origin(struct base_json *json, cJSON *model, const char *of,
                       struct base_string name, struct base_string url)
{
    if (!name.n_bytes && !url.n_bytes)
        return;
    cJSON *list = cJSON_GetObjectItem(model, "origins");
    cJSON *o = base_json_object(json, list ? list : base_json_list(json, model, "origins"), NULL);
    base_json_text(json, o, "of", of);
    if (name.n_bytes)
        base_json_bytes(json, o, "name", name.data, name.n_bytes);
    if (url.n_bytes)
        base_json_bytes(json, o, "url", url.data, url.n_bytes);
}

void cli_json_add_origins(struct base_json *json, cJSON *o, const struct gguf_file *file)
{
    for (int i = 0; i < MOST_PARENTS; i++) {
        char name[METADATA_KEY], url[METADATA_KEY], repo_url[METADATA_KEY];
        snprintf(name, sizeof name, "general.base_model.%d.name", i);
        snprintf(url, sizeof url, "general.base_model.%d.url", i);
        snprintf(repo_url, sizeof repo_url, "general.base_model.%d.repo_url", i);
        add_origin(json, o, "parent", text_of(file, name, NULL), text_of(file, repo_url, url));
    }
    add_origin(json, o, "source", (struct base_string){0},
               text_of(file, "general.source.repo_url", "general.source.url"));
}

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
        totals[at].n_bytes += force.n_bytes + force.n_scale_bytes;
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

void cli_json_add_cache(struct base_json *json, cJSON *o, const struct model_hparams *hparams)
{
    struct model_cache_shape shape = model_cache_shape(hparams);
    cJSON *cache = base_json_object(json, o, "cache");
    base_json_uint(json, cache, "k", shape.k);
    base_json_uint(json, cache, "v", shape.v);
    base_json_uint(json, cache, "window", shape.window);
    base_json_uint(json, cache, "window_k", shape.window_k);
    base_json_uint(json, cache, "window_v", shape.window_v);
    base_json_uint(json, cache, "state_bytes", (uint64_t)shape.state_bytes);
}

/* What is not rounded counts as halves, which caches hold by default. */
static void count_as_halves(struct model_kv_type *type, struct model_kv_exceptions *but)
{
    if (type->type == GGUF_TYPE_F32)
        type->type = GGUF_TYPE_F16;
    for (size_t i = 0; i < but->n; i++)
        if (but->at[i].type.type == GGUF_TYPE_F32)
            but->at[i].type.type = GGUF_TYPE_F16;
}

void cli_json_add_kv_types(struct base_json *json, cJSON *o, const struct model_hparams *hparams)
{
    const struct model_kv_types *kv = &hparams->kv;
    bool several = kv->k_but.n || kv->v_but.n, parts = kv->k.type == GGUF_TYPE_FP8_DS_MLA;
    if (kv->k.type == GGUF_TYPE_F32 && kv->v.type == GGUF_TYPE_F32 && !several)
        return;
    char text[CLI_KV_SPELLING];
    cJSON *types = base_json_object(json, o, "kv_types");
    base_json_text(json, types, "k", cli_kv_spelling(text, kv->k, &kv->k_but));
    base_json_text(json, types, "v", cli_kv_spelling(text, kv->v, &kv->v_but));
    base_json_flag(json, types, "rotation", !kv->unturned);
    if (kv->scales) {
        cJSON *k = base_json_list(json, types, "k_scales"),
              *v = base_json_list(json, types, "v_scales");
        for (uint32_t i = 0; i < hparams->n_layers; i++) {
            base_json_real(json, k, NULL, (double)kv->scales[i].k);
            base_json_real(json, v, NULL, (double)kv->scales[i].v);
        }
    }
    if (!several && !parts)
        return;
    struct model_hparams held = *hparams;
    count_as_halves(&held.kv.k, &held.kv.k_but);
    count_as_halves(&held.kv.v, &held.kv.v_but);
    struct model_cache_shape shape = model_cache_shape(&held);
    base_json_real(json, types, "token_bytes", shape.bytes);
    base_json_real(json, types, "window_bytes", shape.window_bytes);
}

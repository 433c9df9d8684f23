#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "cli/inspect/info.h"
#include "cli/output/json_parts.h"
#include "cli/output/model_parts.h"
#include "cli/session/outputs.h"

enum {
    WHOLE_ARRAY = 64,      /* longer arrays are told by their length and first elements */
    WHOLE_STRING = 1 << 16 /* bytes; of longer strings these are given */
};

/* A string or a name of the file. Returns whether it is cut, between characters. */
static bool add_bytes(struct base_json *json, cJSON *parent, const char *key,
                      struct base_string string)
{
    size_t n = string.n_bytes;
    if (n > WHOLE_STRING)
        for (n = WHOLE_STRING; n > WHOLE_STRING - 4; n--)
            if (((unsigned char)string.data[n] & 0xc0) != 0x80)
                break;
    base_json_bytes(json, parent, key, string.data, n);
    return n < string.n_bytes;
}

/* Element i of a value; `string` is it where the elements are strings. Returns whether it is cut.
 */
static bool add_element(struct base_json *json, cJSON *parent, const char *key,
                        const struct gguf_kv *kv, uint64_t i, const struct base_string *string)
{
    enum gguf_value_type type = kv->element_type;
    assert(type != GGUF_VALUE_STRING || string);
    if (type == GGUF_VALUE_STRING)
        return add_bytes(json, parent, key, *string);
    if (type == GGUF_VALUE_BOOL)
        base_json_flag(json, parent, key, gguf_kv_int(kv, i) != 0);
    else if (gguf_value_is_float(type))
        base_json_real(json, parent, key, gguf_kv_float(kv, i));
    else if (type == GGUF_VALUE_U64) {
        uint64_t value;
        memcpy(&value, kv->data + 8 * i, sizeof value);
        base_json_uint(json, parent, key, value);
    } else
        base_json_int(json, parent, key, gguf_kv_int(kv, i));
    return false;
}

/*
 * A value under `key`: a scalar as it is, an array as a list of at most WHOLE_ARRAY elements.
 * Returns whether a string of it is cut.
 */
static bool add_value(struct base_json *json, cJSON *parent, const char *key,
                      const struct gguf_kv *kv)
{
    struct gguf_kv head = *kv;
    if (head.count > WHOLE_ARRAY)
        head.count = WHOLE_ARRAY;
    struct base_string *strings = NULL;
    if (kv->element_type == GGUF_VALUE_STRING && gguf_kv_strings(&head, &strings, NULL)) {
        json->failed = true;
        return false;
    }
    bool cut = false;
    if (kv->type != GGUF_VALUE_ARRAY) {
        cut = add_element(json, parent, key, kv, 0, strings);
    } else {
        cJSON *list = base_json_list(json, parent, key);
        for (uint64_t i = 0; i < head.count; i++)
            cut |= add_element(json, list, NULL, kv, i, strings ? &strings[i] : NULL);
    }
    free(strings);
    return cut;
}

static void add_metadata(struct base_json *json, const struct gguf_file *file)
{
    cJSON *list = base_json_list(json, json->root, "metadata");
    for (size_t i = 0; i < gguf_n_kv(file); i++) {
        const struct gguf_kv *kv = gguf_kv_at(file, i);
        cJSON *pair = base_json_object(json, list, NULL);
        bool cut = add_bytes(json, pair, "key", kv->key);
        base_json_text(json, pair, "type", gguf_value_type_name(kv->type));
        if (kv->type == GGUF_VALUE_ARRAY) {
            base_json_text(json, pair, "element_type", gguf_value_type_name(kv->element_type));
            base_json_uint(json, pair, "count", kv->count);
        }
        cut |= add_value(json, pair, kv->count > WHOLE_ARRAY ? "first" : "value", kv);
        if (cut)
            base_json_flag(json, pair, "cut", true);
    }
}

static void add_sizes(struct base_json *json, cJSON *object, const struct cli_type_total *total)
{
    if (total->n_unsized)
        base_json_text(json, object, "n_bytes", NULL);
    else
        base_json_uint(json, object, "n_bytes", total->n_bytes);
    base_json_real(json, object, "bits_per_weight", cli_bits_per_weight(total));
}

static void add_total(struct base_json *json, cJSON *object, const struct cli_type_total *total)
{
    base_json_uint(json, object, "n_tensors", total->n_tensors);
    base_json_uint(json, object, "n_weights", total->n_elements);
    add_sizes(json, object, total);
}

static void add_type(struct base_json *json, cJSON *object, const struct cli_type_total *total)
{
    base_json_text(json, object, "type", total->type->name);
    if (total->several_ids)
        base_json_text(json, object, "type_id", NULL);
    else
        base_json_uint(json, object, "type_id", total->type_id);
}

static void add_tensors(struct base_json *json, const struct gguf_file *file)
{
    cJSON *list = base_json_list(json, json->root, "tensors");
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(file, i);
        cJSON *object = base_json_object(json, list, NULL);
        const struct cli_type_total total = cli_total_of(tensor);
        add_bytes(json, object, "name", (struct base_string){tensor->name, strlen(tensor->name)});
        add_type(json, object, &total);
        cJSON *shape = base_json_list(json, object, "ne");
        for (uint32_t d = 0; d < tensor->n_dims; d++)
            base_json_uint(json, shape, NULL, tensor->ne[d]);
        add_sizes(json, object, &total);
        base_json_uint(json, object, "part", tensor->shard);
        base_json_uint(json, object, "offset", tensor->offset);
    }
}

enum status cli_info_write_json(const struct cli_info *info, bool tensors, struct status_why *why)
{
    struct base_file *file;
    enum status status = cli_output_create(&file, "-", NULL, why);
    if (status)
        return status;
    struct base_json json;
    doc_json_begin(&json, "assay-info");
    base_json_text(&json, json.root, "file", gguf_path(info->file));
    base_json_uint(&json, json.root, "gguf_version", gguf_version(info->file));
    if (gguf_is_folder(info->file))
        base_json_flag(&json, json.root, "folder", true);
    base_json_uint(&json, json.root, "n_parts",
                   gguf_n_shards(info->file) - gguf_is_folder(info->file));
    base_json_uint(&json, json.root, "file_bytes", info->file_bytes);
    base_json_text(&json, json.root, "model_id", info->model_id);
    const struct gguf_quantisation *q = &info->quantisation;
    base_json_text(&json, json.root, "quantisation", *q->name ? q->name : NULL);
    base_json_text(&json, json.root, "quantisation_by",
                   !*q->name         ? NULL
                   : q->is_mixture   ? "assay.mix.recipe"
                   : q->by_file_type ? "general.file_type"
                                     : "tensors");
    if (q->types_of)
        base_json_text(&json, json.root, "types_of", q->types_of);
    base_json_text(&json, json.root, "unsupported",
                   *info->unsupported.text ? info->unsupported.text : NULL);

    cJSON *hparams = base_json_object(&json, json.root, "hyperparameters");
    for (size_t i = 0; i < info->n_hparams; i++) {
        if (info->hparams[i].kv)
            add_value(&json, hparams, info->hparams[i].name, info->hparams[i].kv);
        else
            base_json_int(&json, hparams, info->hparams[i].name, info->hparams[i].derived);
    }
    if (info->has_cache)
        cli_json_add_cache(&json, json.root, &info->model);
    if (info->has_cache && info->n_context) {
        base_json_uint(&json, json.root, "context", info->n_context);
        base_json_real(&json, json.root, "cache_bytes",
                       cli_info_cache_bytes(info, info->n_context));
    }
    add_metadata(&json, info->file);

    cJSON *types = base_json_list(&json, json.root, "types");
    for (size_t i = 0; i < info->n_types; i++) {
        cJSON *type = base_json_object(&json, types, NULL);
        add_type(&json, type, &info->types[i]);
        add_total(&json, type, &info->types[i]);
    }
    add_total(&json, base_json_object(&json, json.root, "total"), &info->total);
    if (tensors)
        add_tensors(&json, info->file);
    return cli_output_commit(&file, doc_json_end(&json, file, why), why);
}

/* What assay info tells of a file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/inspect/info.h"
#include "model/hparams/table.h"

double cli_bits_per_weight(const struct cli_type_total *total)
{
    if (total->n_unsized)
        return (double)NAN;
    return total->n_elements ? 8.0 * (double)total->n_bytes / (double)total->n_elements : 0;
}

static void count_tensor(struct cli_type_total *total, const struct gguf_tensor *tensor)
{
    total->several_ids |= total->n_tensors && total->type_id != tensor->type_id;
    if (!total->n_tensors++)
        total->type_id = tensor->type_id;
    total->n_elements += tensor->n_rows * tensor->ne[0];
    total->n_bytes += gguf_tensor_stored_bytes(tensor);
    total->n_unsized += tensor->n_bytes == 0;
}

struct cli_type_total cli_total_of(const struct gguf_tensor *tensor)
{
    struct cli_type_total total = {.type = tensor->type};
    count_tensor(&total, tensor);
    return total;
}

static struct cli_type_total *total_of(struct cli_info *info, const struct gguf_type_info *type)
{
    for (size_t i = 0; i < info->n_types; i++)
        if (info->types[i].type == type)
            return &info->types[i];
    info->types[info->n_types].type = type;
    return &info->types[info->n_types++];
}

static const struct gguf_kv *find_key(const struct cli_info *info, struct base_string architecture,
                                      const char *suffix)
{
    char key[256];
    snprintf(key, sizeof key, "%.*s.%s",
             architecture.n_bytes < 128 ? (int)architecture.n_bytes : 128, architecture.data,
             suffix);
    return gguf_kv_find(info->file, key);
}

/* A hyper-parameter that is a scalar integer, or 0. */
static int64_t scalar_of(const struct cli_info *info, struct base_string architecture,
                         const char *suffix)
{
    const struct gguf_kv *kv = find_key(info, architecture, suffix);
    return kv && gguf_value_is_int(kv->type) ? gguf_kv_int(kv, 0) : 0;
}

/* What the format says of an absent key, where that follows from others. */
static int64_t derive(const struct cli_info *info, struct base_string architecture,
                      const char *name)
{
    int64_t n_heads = scalar_of(info, architecture, "attention.head_count");
    if (strcmp(name, "n_kv_heads") == 0)
        return n_heads;
    if (strcmp(name, "head_size") == 0)
        return n_heads > 0 ? scalar_of(info, architecture, "embedding_length") / n_heads : 0;
    if (strcmp(name, "n_vocab") == 0) {
        const struct gguf_kv *tokens = gguf_kv_find(info->file, "tokenizer.ggml.tokens");
        return tokens ? (int64_t)tokens->count : 0;
    }
    return 0;
}

static enum status read_hparams(struct cli_info *info, struct status_why *why)
{
    struct base_string architecture;
    const struct gguf_kv *kv = gguf_kv_find(info->file, "general.architecture");
    size_t n = 0;
    if (!kv || kv->type != GGUF_VALUE_STRING ||
        gguf_get_string(info->file, "general.architecture", &architecture, NULL, NULL))
        return STATUS_OK;
    for (const struct model_hparam *row = model_hparam_table; row->suffix; row++)
        n += row->label != NULL;
    enum status status = base_array_new(info->hparams, n, "hyper-parameters", why);
    for (const struct model_hparam *row = model_hparam_table; row->suffix && !status; row++) {
        struct cli_hparam told = {row->label, row->name, find_key(info, architecture, row->suffix),
                                  0};
        if (row->label && !told.kv)
            told.derived = derive(info, architecture, row->name);
        if (row->label && (told.kv || told.derived))
            info->hparams[info->n_hparams++] = told;
    }
    return status;
}

double cli_info_cache_bytes(const struct cli_info *info, size_t n_tokens)
{
    const struct model_kv_types halves = {.k = {GGUF_TYPE_F16, 0}, .v = {GGUF_TYPE_F16, 0}};
    return model_cache_bytes(&info->model, &halves, n_tokens);
}

enum status cli_info_gather(struct cli_info *info, struct gguf_file *file, struct status_why *why)
{
    struct status_why unknown;
    info->file = file;
    info->has_cache = !model_hparams_look(&info->model, file, &unknown);
    for (size_t i = gguf_is_folder(file); i < gguf_n_shards(file); i++) {
        uint64_t n_bytes, data_offset;
        gguf_shard_data(file, i, &n_bytes, &data_offset);
        info->file_bytes += n_bytes;
    }
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(file, i);
        count_tensor(&info->total, tensor);
        count_tensor(total_of(info, tensor->type), tensor);
    }
    info->quantisation = gguf_quantisation(file);
    gguf_check_types(file, &info->unsupported);
    enum status status = read_hparams(info, why);
    return status ? status : gguf_model_id(info->model_id, file, why);
}

void cli_info_free(struct cli_info *info)
{
    model_hparams_free(&info->model);
    free(info->hparams);
}

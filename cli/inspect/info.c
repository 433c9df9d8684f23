/* assay info: what a GGUF file, or an importance matrix, holds. */
#include "cli/inspect/info.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/escape.h"
#include "cli/commands.h"
#include "cli/imatrix/files/files.h"
#include "cli/input/models.h"
#include "cli/process/say.h"
#include "clients/imatrix/file/read.h"
#include "gguf/gguf.h"
#include "model/hparams/table.h"
#include "model/model.h"

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

static void read_hparams(struct cli_info *info)
{
    struct base_string architecture;
    const struct gguf_kv *kv = gguf_kv_find(info->file, "general.architecture");
    if (!kv || kv->type != GGUF_VALUE_STRING ||
        gguf_get_string(info->file, "general.architecture", &architecture, NULL, NULL))
        return;
    for (const struct model_hparam *row = model_hparam_table; row->suffix; row++) {
        struct cli_hparam told = {row->label, row->name, find_key(info, architecture, row->suffix),
                                  0};
        if (row->label && !told.kv)
            told.derived = derive(info, architecture, row->name);
        if (row->label && (told.kv || told.derived) && info->n_hparams < CLI_N_HPARAMS)
            info->hparams[info->n_hparams++] = told;
    }
}

double cli_info_cache_bytes(const struct cli_info *info, size_t n_tokens)
{
    const struct model_kv_types halves = {.k = {GGUF_TYPE_F16, 0}, .v = {GGUF_TYPE_F16, 0}};
    return model_cache_bytes(&info->model, &halves, n_tokens);
}

static enum status gather(struct cli_info *info, struct gguf_file *file, struct status_why *why)
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
    read_hparams(info);
    info->quantisation = gguf_quantisation(file);
    gguf_check_types(file, &info->unsupported);
    return gguf_model_id(info->model_id, file, why);
}

/* A string of a pair, escaped and cut to what fits. */
static size_t string_text(char *out, size_t capacity, const struct gguf_kv *kv, uint64_t i)
{
    struct base_string string = gguf_kv_string(kv, i);
    size_t n = base_escape(out, capacity - 1, string.data, string.n_bytes);
    out[n < capacity ? n : capacity - 1] = '\0';
    return n;
}

/* The fewest digits that are read back as the same number: 1e-05, not 9.99999975e-06. */
static int real_text(char *out, size_t capacity, double value, bool is_float)
{
    char digits[40];
    for (int n_digits = 1; n_digits <= 17; n_digits++) {
        snprintf(digits, sizeof digits, "%.*g", n_digits, value);
        double read = is_float ? (double)strtof(digits, NULL) : strtod(digits, NULL);
        if (read == value)
            break;
    }
    return snprintf(out, capacity, "%s", digits);
}

size_t cli_kv_text(char *out, size_t capacity, const struct gguf_kv *kv, uint64_t i)
{
    enum gguf_value_type type = kv->element_type;
    int n;
    if (type == GGUF_VALUE_STRING)
        return string_text(out, capacity, kv, i);
    if (type == GGUF_VALUE_BOOL) {
        n = snprintf(out, capacity, "%s", gguf_kv_int(kv, i) ? "true" : "false");
    } else if (type == GGUF_VALUE_U64) {
        uint64_t value;
        memcpy(&value, kv->data + 8 * i, sizeof value);
        n = snprintf(out, capacity, "%" PRIu64, value);
    } else if (gguf_value_is_int(type)) {
        n = snprintf(out, capacity, "%" PRId64, gguf_kv_int(kv, i));
    } else {
        n = real_text(out, capacity, gguf_kv_float(kv, i), type == GGUF_VALUE_F32);
    }
    return (size_t)n;
}

struct settings {
    struct cli_list files;
    int64_t context;
    bool json, tensors;
};

/* A folder is listed although its tokens cannot be read. */
static void tell_of_tokens(const struct gguf_file *listed, const char *path)
{
    struct gguf_file *tokens = NULL;
    struct status_why why = {""};
    const struct gguf_tensor *embedding = gguf_tensor_find(listed, "token_embd.weight");
    if (gguf_is_folder(listed) && !gguf_kv_find(listed, "tokenizer.ggml.tokens") &&
        model_tokens_open(&tokens, path, embedding ? embedding->ne[1] : 0, &why))
        cli_say("assay: note: %s\n", why.text);
    gguf_close(tokens);
}

static enum status tell(const char *path, const struct settings *settings, bool again,
                        struct status_why *why)
{
    struct gguf_file *file = NULL;
    bool old = imat_kind_of(path) == IMAT_DAT;
    enum status status = old ? STATUS_OK : model_file_list(&file, path, why);
    struct cli_info info = {.n_context = (size_t)settings->context};
    if (!status && again && !settings->json)
        putchar('\n');
    if (!status && (old || (imat_is_matrix(file) && !settings->tensors))) {
        status = cli_imatrix_info(path, file, settings->json, why);
        gguf_close(file);
        return status;
    }
    if (!status)
        tell_of_tokens(file, path);
    if (!status)
        status = gather(&info, file, why);
    if (!status && settings->json)
        status = cli_info_write_json(&info, settings->tensors, why);
    else if (!status)
        cli_info_print(&info, settings->tensors);
    if (!status)
        status = gguf_check_unchanged(file, why);
    model_hparams_free(&info.model);
    gguf_close(file);
    return status;
}

/* A file that cannot be read keeps nobody from the others. */
static enum status run_info(const void *opaque, const struct cli_args *args, struct status_why *why)
{
    const struct settings *settings = opaque;
    size_t n = cli_models_once(&settings->files, NULL);
    enum status first = STATUS_OK;
    bool told = false;
    (void)args;
    for (size_t i = 0; i < n; i++) {
        struct status_why own = {""};
        enum status status = tell(settings->files.items[i], settings, told, &own);
        told |= !status;
        if (status && first) /* the last sentence is printed at the end */
            cli_complain("assay: %s\n", why->text);
        if (status) {
            first = first ? first : status;
            *why = own;
        }
    }
    return first;
}

static const struct cli_option options[] = {
    {"--tensors", CLI_ON, NULL, "also list every tensor", offsetof(struct settings, tensors)},
    {"--context", CLI_COUNT, "N",
     "also print how large a cache of keys and values for N tokens is in F16",
     offsetof(struct settings, context), 0, INT32_MAX},
    {"--json", CLI_ON, NULL, "print a JSON document instead; docs/json.md describes it",
     offsetof(struct settings, json)},
    {.type = CLI_OPERANDS,
     .help = "the files",
     .offset = offsetof(struct settings, files),
     .required = true},
    {0},
};

const struct cli_command cli_command_info = {
    .name = "info",
    .usage = "FILE ... [options]",
    .summary = "Print what a GGUF file holds: metadata, hyper-parameters, sizes and types.",
    .description =
        "FILE may be any file of a split model. No tensor is decoded, so types that cannot be\n"
        "evaluated are listed, too. Several files are described one after the other, also where\n"
        "one of them cannot be read. For an importance matrix (GGUF, or llama-imatrix's older\n"
        "format) the command prints statistics of each matrix, and says which experts had few\n"
        "rows or none; with --tensors it prints what the file holds.",
    .examples = "assay info *.gguf\n"
                "What files hold, one after the other.\n"
                "assay info --tensors model.gguf\n"
                "Tensor by tensor.\n"
                "assay info imatrix.gguf\n"
                "Statistics of an importance matrix.",
    .options = options,
    .settings_bytes = sizeof(struct settings),
    .run = run_info,
};

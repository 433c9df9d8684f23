#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/escape.h"
#include "base/text/printable.h"
#include "cli/inspect/info.h"
#include "cli/output/value.h"

enum { TYPE_WIDTH = 11 };

static const double gibibyte = 1073741824.0;

/* A name of the file, which may hold anything, in a column. */
static void print_name(const char *bytes, size_t n_bytes, int width)
{
    char text[300];
    printf("  %-*s", width, base_printable(text, sizeof text, bytes, n_bytes));
}

static void print_metadata(const struct gguf_file *file)
{
    printf("\nmetadata: %zu key%s\n", gguf_n_kv(file), status_plural(gguf_n_kv(file)));
    for (size_t i = 0; i < gguf_n_kv(file); i++) {
        const struct gguf_kv *kv = gguf_kv_at(file, i);
        char type[48];
        if (kv->type == GGUF_VALUE_ARRAY)
            snprintf(type, sizeof type, "%s[%" PRIu64 "]", gguf_value_type_name(kv->element_type),
                     kv->count);
        else
            snprintf(type, sizeof type, "%s", gguf_value_type_name(kv->type));
        print_name(kv->key.data, kv->key.n_bytes, 42);
        printf(" %-15s ", type);
        cli_print_value(kv);
        putchar('\n');
    }
}

/* The type's name; of one that nobody knows its number. */
static void print_type(const struct cli_type_total *total, int width)
{
    char text[32];
    if (total->several_ids)
        snprintf(text, sizeof text, "%s", total->type->name);
    else
        snprintf(text, sizeof text, "id %" PRIu32, total->type_id);
    printf("%-*s", width, total->type->type == GGUF_TYPE_LIMIT ? text : total->type->name);
}

/* Bytes and bits per weight, where they are known. */
static void print_sizes(const struct cli_type_total *total)
{
    if (total->n_unsized)
        printf(" %15s %12s\n", "?", "?");
    else
        printf(" %15" PRIu64 " %12.4f\n", total->n_bytes, cli_bits_per_weight(total));
}

static void print_total(const struct cli_type_total *total)
{
    printf(" %7" PRIu64 " %15" PRIu64, total->n_tensors, total->n_elements);
    print_sizes(total);
}

static void print_types(const struct cli_info *info)
{
    printf("\n  %-*s %7s %15s %15s %12s\n", TYPE_WIDTH, "type", "tensors", "weights", "bytes",
           "bits/weight");
    for (size_t i = 0; i < info->n_types; i++) {
        fputs("  ", stdout);
        print_type(&info->types[i], TYPE_WIDTH);
        print_total(&info->types[i]);
    }
    printf("  %-*s", TYPE_WIDTH, "all");
    print_total(&info->total);
}

static void print_tensors(const struct gguf_file *file)
{
    printf("\n  %-42s %-*s %-26s %15s %12s\n", "tensor", TYPE_WIDTH, "type", "shape", "bytes",
           "bits/weight");
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(file, i);
        char shape[100] = "";
        size_t used = 0;
        for (uint32_t d = 0; d < tensor->n_dims; d++)
            used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%" PRIu64,
                                     d ? " x " : "", tensor->ne[d]);
        print_name(tensor->name, strlen(tensor->name), 42);
        const struct cli_type_total total = cli_total_of(tensor);
        putchar(' ');
        print_type(&total, TYPE_WIDTH);
        printf(" %-26s", shape);
        print_sizes(&total);
    }
}

/* What a cache keeps of a sequence, in 16 bits. */
static void print_cache(const struct cli_info *info)
{
    const int per_number = 2;
    struct model_cache_shape shape = model_cache_shape(&info->model);
    size_t n = (shape.k + shape.v) * per_number;
    size_t n_window = (shape.window_k + shape.window_v) * per_number;
    printf("\ncache of keys and values in F16\n");
    printf("  %-20s %zu bytes\n", "a token", n);
    if (n_window)
        printf("  %-20s %zu bytes more, of the last %zu tokens\n", "in windows", n_window,
               shape.window);
    if (shape.state_bytes > 0)
        printf("  %-20s %.0f bytes, whatever the number of tokens\n", "states", shape.state_bytes);
    if (info->n_context)
        printf("  %zu token%-*s %.0f bytes (%.4f GiB)\n", info->n_context,
               14 - snprintf(NULL, 0, "%zu", info->n_context), info->n_context == 1 ? "" : "s",
               cli_info_cache_bytes(info, info->n_context),
               cli_info_cache_bytes(info, info->n_context) / gibibyte);
}

static void print_quantisation(const struct gguf_quantisation *q)
{
    if (q->types_of)
        printf("types of  %s, which alone has some of them\n", q->types_of);
    if (!*q->name)
        return;
    printf("quantised %s", q->name);
    if (q->is_mixture)
        printf(" (by assay mix)");
    else if (!q->by_file_type)
        printf(" (by the tensors' types; general.file_type %s%s)",
               q->said ? "says " : "does not tell", q->said ? q->said : "");
    putchar('\n');
}

void cli_info_print(const struct cli_info *info, bool tensors)
{
    size_t n_shards = gguf_n_shards(info->file);
    char text[BASE_PATH_BYTES];
    printf("file      %s\n", base_printable_text(text, sizeof text, gguf_path(info->file)));
    if (gguf_is_folder(info->file))
        printf("format    published folder, %" PRIu64 " bytes in %zu file%s", info->file_bytes,
               n_shards - 1, status_plural(n_shards - 1));
    else
        printf("format    GGUF v%" PRIu32 ", %" PRIu64 " bytes", gguf_version(info->file),
               info->file_bytes);
    if (n_shards > 1 && !gguf_is_folder(info->file))
        printf(" in %zu parts", n_shards);
    printf("\nmodel id  %s\n", info->model_id);
    print_quantisation(&info->quantisation);
    if (*info->unsupported.text)
        printf("cannot be evaluated: %s\n",
               base_printable_text(text, sizeof text, info->unsupported.text));

    if (info->n_hparams)
        printf("\nhyper-parameters\n");
    for (size_t i = 0; i < info->n_hparams; i++) {
        const struct cli_hparam *hparam = &info->hparams[i];
        printf("  %-20s ", hparam->label);
        if (hparam->kv)
            cli_print_value(hparam->kv);
        else
            printf("%" PRId64 " (not stored; follows from the others)", hparam->derived);
        putchar('\n');
    }
    if (info->has_cache)
        print_cache(info);
    print_metadata(info->file);
    print_types(info);
    if (tensors)
        print_tensors(info->file);
}

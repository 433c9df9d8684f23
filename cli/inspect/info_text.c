#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/escape.h"
#include "base/text/printable.h"
#include "cli/inspect/info.h"

enum {
    VALUE_WIDTH = 72,    /* a longer value is cut */
    LISTED_ELEMENTS = 8, /* of an array */
    TYPE_WIDTH = 11
};

static const double gibibyte = 1073741824.0;

/* An escaped text, cut where it is too long for a line; never inside a character. */
static void print_cut(const char *text, size_t n_bytes)
{
    size_t n = n_bytes;
    if (n > VALUE_WIDTH) {
        n = VALUE_WIDTH;
        while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
            n--;
    }
    printf("%.*s%s", (int)n, text, n < n_bytes ? "..." : "");
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

/*
 * Element i of a pair's value: numbers with all their digits, strings escaped. Returns how many
 * bytes there are; writes at most `capacity`, NUL included (as snprintf).
 */
static size_t value_text(char *out, size_t capacity, const struct gguf_kv *kv, uint64_t i)
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

static void print_value(const struct gguf_kv *kv)
{
    char text[512];
    if (kv->type != GGUF_VALUE_ARRAY) {
        size_t n = value_text(text, sizeof text, kv, 0);
        print_cut(text, n < sizeof text ? n : sizeof text - 1);
        return;
    }
    size_t used = 0;
    uint64_t i = 0;
    for (; i < kv->count && i < LISTED_ELEMENTS && used < VALUE_WIDTH; i++) {
        char element[160];
        size_t n = value_text(element, sizeof element, kv, i);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s", i ? ", " : "", element,
                                 n >= sizeof element ? "..." : "");
    }
    text[used] = '\0';
    printf("[");
    print_cut(text, used);
    printf("%s]", i < kv->count ? ", ..." : "");
}

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
        print_value(kv);
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
            print_value(hparam->kv);
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

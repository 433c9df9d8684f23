/* Keys of the tokenizer: lists entry by entry, and what stands for itself. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conversion/keys.h"

/** An entry of a list, or a scalar, as text. */
static void write_entry(char text[CONV_VALUE_BYTES], const struct gguf_kv *kv, uint64_t i,
                        const struct base_string *strings)
{
    if (strings)
        snprintf(text, CONV_VALUE_BYTES, "'%.*s'", (int)(strings[i].n_bytes % CONV_VALUE_BYTES),
                 strings[i].data);
    else if (gguf_value_is_float(kv->element_type))
        snprintf(text, CONV_VALUE_BYTES, "%.9g", gguf_kv_float(kv, i));
    else if (kv->element_type == GGUF_VALUE_BOOL)
        snprintf(text, CONV_VALUE_BYTES, "%s", gguf_kv_int(kv, i) ? "true" : "false");
    else
        snprintf(text, CONV_VALUE_BYTES, "%" PRId64, gguf_kv_int(kv, i));
}

/** A key of both files, with its strings. */
struct list {
    const struct gguf_kv *kv;
    struct base_string *strings; /* NULL: it has none */
    bool are_types;
    const struct gguf_kv *types; /* of tokens: theirs; else NULL */
};

/** Types of tokens: unknown, control and user-defined ones stand for themselves in a text. */
static bool is_special(int64_t type)
{
    return type >= 2 && type <= 4;
}

enum { UNUSED = 5 };

/** Programs differ in how they call tokens that stand for themselves, and those that are unused. */
static bool same_type(int64_t a, int64_t b)
{
    return a == b || a == UNUSED || b == UNUSED || (is_special(a) && is_special(b));
}

/** Whether the folder has no token of this id, which programs may then name as they like. */
static bool is_unused(const struct gguf_kv *types, uint64_t i)
{
    return types && i < types->count && gguf_value_is_int(types->element_type) &&
           gguf_kv_int(types, i) == UNUSED;
}

static bool same_entry(const struct list *a, const struct list *b, uint64_t i)
{
    if (is_unused(a->types, i))
        return true;
    if (a->are_types)
        return same_type(gguf_kv_int(a->kv, i), gguf_kv_int(b->kv, i));
    if (a->strings)
        return a->strings[i].n_bytes == b->strings[i].n_bytes &&
               memcmp(a->strings[i].data, b->strings[i].data, a->strings[i].n_bytes) == 0;
    if (gguf_value_is_float(a->kv->element_type))
        return gguf_kv_float(a->kv, i) == gguf_kv_float(b->kv, i);
    return gguf_kv_int(a->kv, i) == gguf_kv_int(b->kv, i);
}

/** Entries that differ, of those that both have; the first of them in *first. */
static uint64_t count_other(const struct list *a, const struct list *b, uint64_t *first)
{
    uint64_t n = a->kv->count < b->kv->count ? a->kv->count : b->kv->count, n_other = 0;
    for (uint64_t i = 0; i < n; i++)
        if (!same_entry(a, b, i) && n_other++ == 0)
            *first = i;
    return n_other;
}

static bool is_string(const struct gguf_kv *kv)
{
    return kv->element_type == GGUF_VALUE_STRING;
}

/** Whether entries can be compared: both are strings, floats, or whole numbers. */
static bool are_alike(const struct gguf_kv *a, const struct gguf_kv *b)
{
    return is_string(a) == is_string(b) &&
           gguf_value_is_float(a->element_type) == gguf_value_is_float(b->element_type);
}

static enum status tell(struct conv_result *out, const char *key, const struct list *folder,
                        const struct list *file, struct status_why *why)
{
    char texts[2][CONV_VALUE_BYTES], name[CONV_VALUE_BYTES];
    uint64_t first = 0, n_other = count_other(folder, file, &first);
    bool list = folder->kv->type == GGUF_VALUE_ARRAY;
    enum status status = STATUS_OK;
    if (folder->kv->count != file->kv->count) {
        snprintf(texts[0], sizeof *texts, "%" PRIu64 " entries", folder->kv->count);
        snprintf(texts[1], sizeof *texts, "%" PRIu64 " entries", file->kv->count);
        status = conv_differ_text(out, CONV_TOKEN, key, texts[0], texts[1], why);
    }
    if (status || n_other == 0)
        return status;
    if (!list && is_string(folder->kv))
        return conv_differ(out, CONV_TOKEN, key, folder->strings[0], file->strings[0], why);
    write_entry(texts[0], folder->kv, first, folder->strings);
    write_entry(texts[1], file->kv, first, file->strings);
    if (list && n_other > 1)
        snprintf(name, sizeof name, "%.80s[%" PRIu64 "] and %" PRIu64 " more", key, first,
                 n_other - 1);
    else if (list)
        snprintf(name, sizeof name, "%.80s[%" PRIu64 "]", key, first);
    else
        snprintf(name, sizeof name, "%s", key);
    return conv_differ_text(out, CONV_TOKEN, name, texts[0], texts[1], why);
}

static enum status compare_pair(struct conv_result *out, const char *key,
                                const struct gguf_kv *folder, const struct gguf_kv *types,
                                const struct gguf_kv *file, struct status_why *why)
{
    bool are_types =
        strcmp(key, "tokenizer.ggml.token_type") == 0 && gguf_value_is_int(folder->element_type);
    struct list a = {folder, NULL, are_types, types}, b = {file, NULL, are_types, NULL};
    enum status status = STATUS_OK;
    if (!are_alike(folder, file))
        return conv_differ_text(out, CONV_TOKEN, key, gguf_value_type_name(folder->element_type),
                                gguf_value_type_name(file->element_type), why);
    if (is_string(folder))
        status = gguf_kv_strings(folder, &a.strings, why);
    if (!status && is_string(folder))
        status = gguf_kv_strings(file, &b.strings, why);
    if (!status)
        status = tell(out, key, &a, &b, why);
    free(a.strings);
    free(b.strings);
    return status;
}

/** Whether a file's key is this text. */
static bool is_text(const struct gguf_file *file, const char *key, const char *text)
{
    struct base_string value = {NULL, 0};
    bool found = false;
    return !gguf_get_string(file, key, &value, &found, NULL) && found &&
           value.n_bytes == strlen(text) && memcmp(value.data, text, value.n_bytes) == 0;
}

enum need { WHERE_BOTH_HAVE_IT, ALWAYS, OF_MERGES };

static const struct {
    const char *key;
    enum need need;
} keys[] = {
    {"tokenizer.ggml.tokens", ALWAYS},
    {"tokenizer.ggml.token_type", ALWAYS},
    {"tokenizer.ggml.merges", OF_MERGES},
    {"tokenizer.ggml.scores", WHERE_BOTH_HAVE_IT},
    {"tokenizer.ggml.pre", WHERE_BOTH_HAVE_IT},
    {"tokenizer.ggml.add_bos_token", WHERE_BOTH_HAVE_IT},
    {"tokenizer.ggml.add_eos_token", WHERE_BOTH_HAVE_IT},
    {"tokenizer.ggml.add_space_prefix", WHERE_BOTH_HAVE_IT},
};

enum status conv_compare_tokens(struct conv_result *out, const struct conv_options *options,
                                struct status_why *why)
{
    const struct gguf_kv *types =
        options->tokens ? gguf_kv_find(options->tokens, "tokenizer.ggml.token_type") : NULL;
    bool merges = is_text(options->file, "tokenizer.ggml.model", "gpt2");
    enum status status = STATUS_OK;
    for (size_t i = 0; options->tokens && i < sizeof keys / sizeof *keys && !status; i++) {
        const struct gguf_kv *kv = gguf_kv_find(options->tokens, keys[i].key);
        const struct gguf_kv *found = gguf_kv_find(options->file, keys[i].key);
        bool needed = keys[i].need == ALWAYS || (keys[i].need == OF_MERGES && merges);
        if (!kv || (!found && !needed))
            continue;
        out->n_tokens++;
        status = found ? compare_pair(out, keys[i].key, kv, i == 0 ? types : NULL, found, why)
                       : conv_differ_text(out, CONV_TOKEN, keys[i].key, "present", "absent", why);
    }
    return status;
}

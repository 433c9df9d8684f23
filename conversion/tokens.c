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
};

static bool same_entry(const struct list *a, const struct list *b, uint64_t i)
{
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
                                const struct gguf_kv *folder, const struct gguf_kv *file,
                                struct status_why *why)
{
    struct list a = {folder, NULL}, b = {file, NULL};
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

/** Keys without which tokens are others. What else is absent has the reader's default. */
static bool is_required(const char *key)
{
    static const char *const keys[] = {"tokenizer.ggml.model",        "tokenizer.ggml.pre",
                                       "tokenizer.ggml.tokens",       "tokenizer.ggml.token_type",
                                       "tokenizer.ggml.scores",       "tokenizer.ggml.merges",
                                       "tokenizer.ggml.bos_token_id", "tokenizer.chat_template"};
    bool is = false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        is |= strcmp(keys[i], key) == 0;
    return is;
}

enum status conv_compare_tokens(struct conv_result *out, const struct conv_options *options,
                                struct status_why *why)
{
    static const char prefix[] = "tokenizer.";
    enum status status = STATUS_OK;
    for (size_t i = 0; i < gguf_n_kv(options->folder) && !status; i++) {
        const struct gguf_kv *kv = gguf_kv_at(options->folder, i);
        char key[CONV_KEY_BYTES];
        if (kv->key.n_bytes >= sizeof key || kv->key.n_bytes < sizeof prefix ||
            memcmp(kv->key.data, prefix, sizeof prefix - 1) != 0)
            continue;
        snprintf(key, sizeof key, "%.*s", (int)kv->key.n_bytes, kv->key.data);
        const struct gguf_kv *found = gguf_kv_find(options->file, key);
        out->n_tokens++;
        if (found)
            status = compare_pair(out, key, kv, found, why);
        else if (is_required(key))
            status = conv_differ_text(out, CONV_TOKEN, key, "present", "absent", why);
    }
    return status;
}

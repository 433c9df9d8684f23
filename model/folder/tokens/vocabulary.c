/* The members model.vocab and added_tokens of tokenizer.json. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/quote.h"
#include "model/folder/tokens/state.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/tokenizer.h"

/* Where the embedding's size is not known: more than any vocabulary has. */
enum { MAX_IDS = 1 << 22 };

static struct base_string string_of(const char *text)
{
    return (struct base_string){text, strlen(text)};
}

int32_t model_tokens_id(const struct model_folder_tokens *f, const char *text)
{
    int32_t number = base_strtab_find(&f->index, string_of(text));
    return number < 0 ? -1 : f->id[number];
}

int64_t model_tokens_number(struct base_field item)
{
    double value = cJSON_IsNumber(item.json) ? item.json->valuedouble : -1;
    return value >= 0 && value <= INT32_MAX && value == floor(value) ? (int64_t)value : -1;
}

/** Let there be n ids; new ones have no token. */
static enum status reserve(struct model_folder_tokens *f, size_t n, struct status_why *why)
{
    if (n <= f->n)
        return STATUS_OK;
    if (base_array_reserve(f->text, f->capacity, n, "tokens", why) ||
        base_array_reserve(f->type, f->type_capacity, n, "tokens", why) ||
        base_array_reserve(f->flags, f->flag_capacity, n, "tokens", why))
        return STATUS_MEMORY;
    memset(f->text + f->n, 0, (n - f->n) * sizeof *f->text);
    memset(f->flags + f->n, 0, n - f->n);
    for (size_t i = f->n; i < n; i++)
        f->type[i] = MODEL_TOKEN_UNUSED;
    f->n = n;
    return STATUS_OK;
}

enum status model_tokens_new(struct model_folder_tokens *f, const char *text, int64_t id,
                             const char *place, struct status_why *why)
{
    struct base_quoted shown, other;
    uint64_t limit = f->n_rows ? f->n_rows : MAX_IDS;
    int32_t number;
    base_quote(&shown, string_of(text));
    if (id < 0 || (uint64_t)id >= limit)
        return model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_FORMAT, why,
                                 "%s: %s has %s%.0" PRId64 ", expected an id below %" PRIu64 "%s",
                                 place, shown.text, id < 0 ? "no id" : "id ", id < 0 ? 0 : id,
                                 limit, f->n_rows ? ", the embedding's rows" : "");
    enum status status = reserve(f, (size_t)id + 1, why);
    if (status)
        return status;
    if (f->text[id].data)
        return model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_FORMAT, why,
                                 "%s: %s has id %" PRId64 ", as %s has, expected one token for it",
                                 place, shown.text, id, base_quote(&other, f->text[id]));
    f->text[id] = string_of(text);
    f->type[id] = MODEL_TOKEN_NORMAL;
    status = base_strtab_add(&f->index, f->text[id], &number, why);
    if (!status && (size_t)number + 1 < f->index.n)
        return model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_FORMAT, why,
                                 "%s: %s has the ids %d and %" PRId64 ", expected one", place,
                                 shown.text, f->id[number], id);
    if (!status)
        status = base_array_reserve(f->id, f->id_capacity, f->index.n, "tokens", why);
    if (!status)
        f->id[number] = (int32_t)id;
    return status;
}

static enum status read_vocab(struct model_folder_tokens *f, struct status_why *why)
{
    struct base_field vocab = base_field_get(f->model, "vocab"), item = {0};
    enum status status = STATUS_OK;
    if (!cJSON_IsObject(vocab.json) || !vocab.json->child)
        return model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_FORMAT, why,
                                 "model.vocab is no object with tokens");
    while (!status && base_field_next(vocab, &item))
        status =
            model_tokens_new(f, item.json->string, model_tokens_number(item), "model.vocab", why);
    return status;
}

bool model_tokens_looks_special(const char *text)
{
    static const char *const pairs[][2] = {
        {"<|", "|>"}, {"<\357\275\234", "\357\275\234>"}, {"<unused", ">"}};
    size_t n = strlen(text);
    bool is = strcmp(text, "<pad>") == 0 || strcmp(text, "<mask>") == 0;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        size_t a = strlen(pairs[i][0]), b = strlen(pairs[i][1]);
        is |= n >= a + b && strncmp(text, pairs[i][0], a) == 0 &&
              strcmp(text + n - b, pairs[i][1]) == 0;
    }
    return is;
}

static enum status read_added(struct model_folder_tokens *f, struct base_field item,
                              struct status_why *why)
{
    const char *text = base_field_string(item, "content");
    int64_t id = model_tokens_number(base_field_get(item, "id"));
    struct base_quoted shown;
    enum status status = STATUS_OK;
    if (!text || !*text)
        return model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_FORMAT, why,
                                 "added_tokens[%zu].content is no text", item.index);
    int32_t known = model_tokens_id(f, text);
    if (strlen(text) > MODEL_ADDED_MAX_BYTES)
        return model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_UNSUPPORTED, why,
                                 "added_tokens[%zu].content has %zu bytes, expected at most %d",
                                 item.index, strlen(text), (int)MODEL_ADDED_MAX_BYTES);
    if (known < 0 && f->n_rows && id >= 0 && (uint64_t)id >= f->n_rows) {
        base_buffer_format(&f->remarks,
                           "tokenizer.json: %s has id %" PRId64 ", but the embedding has %" PRIu64
                           " rows: it is not recognised\n",
                           base_quote(&shown, string_of(text)), id, f->n_rows);
        return STATUS_OK;
    }
    if (known < 0)
        status = model_tokens_new(f, text, id, "added_tokens", why);
    else if (known != id)
        status = model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_FORMAT, why,
                                   "added_tokens[%zu]: %s has id %" PRId64
                                   ", and %d elsewhere, expected the same",
                                   item.index, base_quote(&shown, string_of(text)), id, known);
    if (status)
        return status;
    bool special = model_tokens_flag(item, "special", false);
    f->type[id] = special || model_tokens_looks_special(text) ? MODEL_TOKEN_CONTROL
                                                              : MODEL_TOKEN_USER_DEFINED;
    f->flags[id] =
        (uint8_t)(MODEL_ADDED |
                  (model_tokens_flag(item, "lstrip", false) ? MODEL_ADDED_LSTRIP : 0) |
                  (model_tokens_flag(item, "rstrip", false) ? MODEL_ADDED_RSTRIP : 0) |
                  (model_tokens_flag(item, "single_word", false) ? MODEL_ADDED_SINGLE_WORD : 0) |
                  (model_tokens_flag(item, "normalized", !special) ? MODEL_ADDED_NORMALIZED : 0));
    return STATUS_OK;
}

/** Mark the tokens <0x00> to <0xFF>, which characters that are no token become. */
static enum status find_bytes(struct model_folder_tokens *f, struct status_why *why)
{
    for (unsigned b = 0; b < 256; b++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", b);
        int32_t id = model_tokens_id(f, name);
        if (id < 0 || !model_tokens_flag(f->model, "byte_fallback", false))
            return model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_UNSUPPORTED, why,
                                     "model.byte_fallback is not true, or model.vocab has no token "
                                     "%s, and pre_tokenizer "
                                     "has no ByteLevel; expected one of the two",
                                     name);
        f->type[id] = MODEL_TOKEN_BYTE;
    }
    return STATUS_OK;
}

/** Each byte must be a token where what is missing would become the unknown one. */
static enum status check_stand_ins(const struct model_folder_tokens *f, struct status_why *why)
{
    bool seen[256] = {false};
    if (!base_field_find(f->model, "unk_token").json)
        return STATUS_OK; /* then the text is refused that has such a byte */
    for (size_t i = 0; i < f->n; i++) {
        char byte;
        if (f->text[i].n_bytes > 0 && f->text[i].n_bytes <= 2 &&
            model_bpe_token_bytes(f->text[i], &byte, 1) == 1)
            seen[(uint8_t)byte] = true;
    }
    for (int b = 0; b < 256; b++)
        if (!seen[b])
            return model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_UNSUPPORTED, why,
                                     "model.vocab has no token for the byte 0x%02X, expected one "
                                     "for each",
                                     b);
    return STATUS_OK;
}

/** Names for ids without a token, as converters to GGUF have them. */
static enum status fill_holes(struct model_folder_tokens *f, struct status_why *why)
{
    size_t at = 0;
    enum status status = reserve(f, f->n_rows ? (size_t)f->n_rows : f->n, why);
    for (size_t i = 0; i < f->n && !status; i++)
        if (!f->text[i].data)
            base_buffer_format(&f->names, "[PAD%zu]", i);
    if (!status)
        status = base_buffer_check(&f->names, "tokens", why);
    for (size_t i = 0; i < f->n && !status; i++) {
        if (f->text[i].data)
            continue;
        size_t n = strcspn(f->names.data + at, "]") + 1;
        f->text[i] = (struct base_string){f->names.data + at, n};
        at += n;
    }
    return status;
}

void model_tokens_array(struct model_folder_tokens *f, const char *key, enum gguf_value_type type,
                        const void *data)
{
    const struct gguf_kv pair = {.key = {key, strlen(key)},
                                 .type = GGUF_VALUE_ARRAY,
                                 .element_type = type,
                                 .count = f->n,
                                 .data = data};
    gguf_layout_pair(f->layout, &pair);
}

enum status model_tokens_write(struct model_folder_tokens *f, struct status_why *why)
{
    enum status status = fill_holes(f, why);
    if (status)
        return status;
    gguf_layout_strings(f->layout, "tokenizer.ggml.tokens", f->text, f->n);
    model_tokens_array(f, "tokenizer.ggml.token_type", GGUF_VALUE_I32, f->type);
    return STATUS_OK;
}

enum status model_tokens_vocabulary(struct model_folder_tokens *f, struct status_why *why)
{
    struct base_field added = base_field_get(f->json[MODEL_JSON_TOKENIZER], "added_tokens");
    struct base_field item = {0};
    enum status status = read_vocab(f, why);
    if (!status)
        status = f->steps.of_bytes ? check_stand_ins(f, why) : find_bytes(f, why);
    while (!status && base_field_next(added, &item))
        status = read_added(f, item, why);
    if (!status)
        status = model_tokens_write(f, why);
    if (!status)
        model_tokens_array(f, "tokenizer.declared.added", GGUF_VALUE_U8, f->flags);
    return status;
}

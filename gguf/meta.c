#include "gguf/meta.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/text/quote.h"
#include "gguf/file_impl.h"

static const struct {
    const char *name;
    size_t size; /* bytes of a value; 0: not fixed */
    bool is_int;
} value_types[] = {
    [GGUF_VALUE_U8] = {"u8", 1, true},   [GGUF_VALUE_I8] = {"i8", 1, true},
    [GGUF_VALUE_U16] = {"u16", 2, true}, [GGUF_VALUE_I16] = {"i16", 2, true},
    [GGUF_VALUE_U32] = {"u32", 4, true}, [GGUF_VALUE_I32] = {"i32", 4, true},
    [GGUF_VALUE_F32] = {"f32", 4},       [GGUF_VALUE_BOOL] = {"bool", 1},
    [GGUF_VALUE_STRING] = {"string", 0}, [GGUF_VALUE_ARRAY] = {"array", 0},
    [GGUF_VALUE_U64] = {"u64", 8, true}, [GGUF_VALUE_I64] = {"i64", 8, true},
    [GGUF_VALUE_F64] = {"f64", 8},
};

size_t gguf_value_size(uint32_t type)
{
    return type <= GGUF_VALUE_F64 ? value_types[type].size : 0;
}

const char *gguf_value_type_name(enum gguf_value_type type)
{
    return (uint32_t)type <= GGUF_VALUE_F64 ? value_types[type].name : "unknown";
}

bool gguf_value_is_int(enum gguf_value_type type)
{
    return (uint32_t)type <= GGUF_VALUE_F64 && value_types[type].is_int;
}

bool gguf_value_is_float(enum gguf_value_type type)
{
    return type == GGUF_VALUE_F32 || type == GGUF_VALUE_F64;
}

size_t gguf_n_kv(const struct gguf_file *file)
{
    return file->shards[0].kv_names.n;
}

const struct gguf_kv *gguf_kv_at(const struct gguf_file *file, size_t i)
{
    return &file->shards[0].kv[i];
}

const struct gguf_kv *gguf_shard_find(const struct gguf_shard *shard, const char *key)
{
    int32_t i = base_strtab_find(&shard->kv_names, (struct base_string){key, strlen(key)});
    return i < 0 ? NULL : &shard->kv[i];
}

const struct gguf_kv *gguf_kv_find(const struct gguf_file *file, const char *key)
{
    return gguf_shard_find(&file->shards[0], key);
}

size_t gguf_kv_bytes(const struct gguf_kv *kv)
{
    if (kv->element_type != GGUF_VALUE_STRING)
        return (size_t)kv->count * gguf_value_size(kv->element_type);
    const uint8_t *end = kv->data;
    for (uint64_t i = 0; i < kv->count; i++)
        end += sizeof(uint64_t) + gguf_load_u64(end);
    return (size_t)(end - kv->data);
}

int64_t gguf_kv_int(const struct gguf_kv *kv, uint64_t i)
{
    const uint8_t *bytes = kv->data + i * gguf_value_size(kv->element_type);
    switch (kv->element_type) {
    case GGUF_VALUE_I8:
        return (int8_t)bytes[0];
    case GGUF_VALUE_U16:
        return gguf_load_u16(bytes);
    case GGUF_VALUE_I16:
        return (int16_t)gguf_load_u16(bytes);
    case GGUF_VALUE_U32:
        return gguf_load_u32(bytes);
    case GGUF_VALUE_I32:
        return (int32_t)gguf_load_u32(bytes);
    case GGUF_VALUE_U64: {
        uint64_t value = gguf_load_u64(bytes);
        return value > INT64_MAX ? INT64_MAX : (int64_t)value;
    }
    case GGUF_VALUE_I64:
        return (int64_t)gguf_load_u64(bytes);
    default: /* u8, bool */
        return bytes[0];
    }
}

uint64_t gguf_kv_uint(const struct gguf_kv *kv, uint64_t i)
{
    return kv->element_type == GGUF_VALUE_U64 ? gguf_load_u64(kv->data + i * sizeof(uint64_t))
                                              : (uint64_t)gguf_kv_int(kv, i);
}

double gguf_kv_float(const struct gguf_kv *kv, uint64_t i)
{
    const uint8_t *bytes = kv->data + i * gguf_value_size(kv->element_type);
    if (kv->element_type == GGUF_VALUE_F64) {
        double value;
        memcpy(&value, bytes, sizeof value);
        return value;
    }
    float value;
    memcpy(&value, bytes, sizeof value);
    return (double)value;
}

/* "key 'x' is an array of i32" and what was wanted instead. */
static enum status fail_type(const struct gguf_kv *kv, const char *expected, struct status_why *why)
{
    struct base_quoted key;
    bool is_array = kv->type == GGUF_VALUE_ARRAY;
    return status_fail(why, STATUS_FORMAT, "key %s is of type %s%s, expected %s",
                       base_quote(&key, kv->key), is_array ? "array of " : "",
                       gguf_value_type_name(kv->element_type), expected);
}

enum status gguf_kv_u32(const struct gguf_kv *kv, uint32_t *value, struct status_why *why)
{
    if (!gguf_value_is_int(kv->type))
        return fail_type(kv, "an integer", why);
    struct base_quoted key;
    if (kv->type == GGUF_VALUE_U64 && gguf_load_u64(kv->data) > UINT32_MAX)
        return status_fail(why, STATUS_FORMAT,
                           "key %s is %" PRIu64 ", expected an integer from 0 to %" PRIu32,
                           base_quote(&key, kv->key), gguf_load_u64(kv->data), UINT32_MAX);
    int64_t found = gguf_kv_int(kv, 0);
    if (found < 0 || found > UINT32_MAX)
        return status_fail(why, STATUS_FORMAT,
                           "key %s is %" PRId64 ", expected an integer from 0 to %" PRIu32,
                           base_quote(&key, kv->key), found, UINT32_MAX);
    *value = (uint32_t)found;
    return STATUS_OK;
}

/* A value of the wrong type, with the file's path in front. */
static enum status fail_type_of(const struct gguf_file *file, const struct gguf_kv *kv,
                                const char *expected, struct status_why *why)
{
    enum status status = fail_type(kv, expected, why);
    status_context(why, "%s", file->path);
    return status;
}

/*
 * The common part of the typed look-ups. *kv is NULL where the key does not exist and need
 * not; `found` as in the header.
 */
static enum status look_up(const struct gguf_file *file, const char *key, const struct gguf_kv **kv,
                           bool *found, struct status_why *why)
{
    *kv = gguf_kv_find(file, key);
    if (found)
        *found = *kv != NULL;
    else if (!*kv)
        return status_fail(why, STATUS_FORMAT, "%s: key '%s' is missing", file->path, key);
    return STATUS_OK;
}

enum status gguf_get_u32(const struct gguf_file *file, const char *key, uint32_t *value,
                         bool *found, struct status_why *why)
{
    const struct gguf_kv *kv;
    enum status status = look_up(file, key, &kv, found, why);
    if (status || !kv)
        return status;
    status = gguf_kv_u32(kv, value, why);
    if (status)
        status_context(why, "%s", file->path);
    return status;
}

enum status gguf_get_f32(const struct gguf_file *file, const char *key, float *value, bool *found,
                         struct status_why *why)
{
    const struct gguf_kv *kv;
    enum status status = look_up(file, key, &kv, found, why);
    if (status || !kv)
        return status;
    if (!gguf_value_is_float(kv->type))
        return fail_type_of(file, kv, "f32 or f64", why);
    *value = (float)gguf_kv_float(kv, 0);
    return STATUS_OK;
}

enum status gguf_get_bool(const struct gguf_file *file, const char *key, bool *value, bool *found,
                          struct status_why *why)
{
    const struct gguf_kv *kv;
    enum status status = look_up(file, key, &kv, found, why);
    if (status || !kv)
        return status;
    if (kv->type != GGUF_VALUE_BOOL)
        return fail_type_of(file, kv, "bool", why);
    *value = kv->data[0] != 0;
    return STATUS_OK;
}

enum status gguf_get_string(const struct gguf_file *file, const char *key,
                            struct base_string *value, bool *found, struct status_why *why)
{
    const struct gguf_kv *kv;
    enum status status = look_up(file, key, &kv, found, why);
    if (status || !kv)
        return status;
    if (kv->type != GGUF_VALUE_STRING)
        return fail_type_of(file, kv, "string", why);
    *value = gguf_kv_string(kv, 0);
    return STATUS_OK;
}

static struct base_string string_at(const uint8_t *at)
{
    return (struct base_string){.data = (const char *)at + sizeof(uint64_t),
                                .n_bytes = (size_t)gguf_load_u64(at)};
}

struct base_string gguf_kv_string(const struct gguf_kv *kv, uint64_t i)
{
    struct base_string string = string_at(kv->data);
    for (; i > 0; i--)
        string = string_at((const uint8_t *)string.data + string.n_bytes);
    return string;
}

enum status gguf_kv_strings(const struct gguf_kv *kv, struct base_string **out,
                            struct status_why *why)
{
    *out = NULL;
    if (kv->element_type != GGUF_VALUE_STRING)
        return fail_type(kv, "array of string", why);
    /* The reader has seen that many strings in the file: the count is not just a claim. */
    struct base_string *strings = malloc((size_t)kv->count * sizeof *strings + 1);
    if (!strings)
        return status_fail(why, STATUS_MEMORY, "out of memory for %" PRIu64 " strings", kv->count);
    const uint8_t *at = kv->data;
    for (uint64_t i = 0; i < kv->count; i++) {
        strings[i] = string_at(at);
        at += sizeof(uint64_t) + strings[i].n_bytes;
    }
    *out = strings;
    return STATUS_OK;
}

/* The key/value section of a GGUF file. */
#include <inttypes.h>

#include "base/array.h"
#include "base/text/quote.h"
#include "gguf/file_impl.h"

static enum status check_value_type(uint32_t type, const char *what, struct status_why *why)
{
    if (type <= GGUF_VALUE_F64)
        return STATUS_OK;
    return status_fail(why, STATUS_FORMAT, "%s is %" PRIu32 ", expected a known type (0 to %d)",
                       what, type, GGUF_VALUE_F64);
}

/* Booleans are bytes of 0 or 1: any other byte means that the file is wrong here. */
static enum status check_bools(const uint8_t *values, uint64_t count, struct status_why *why)
{
    for (uint64_t i = 0; i < count; i++)
        if (values[i] > 1)
            return status_fail(why, STATUS_FORMAT, "a bool is %u, expected 0 or 1", values[i]);
    return STATUS_OK;
}

/* A vocabulary has 100,000 of them, and its merges as many again: what is wrong with one is left to
 * the cursor to say. */
static enum status skip_strings(struct gguf_cursor *cursor, uint64_t count, struct status_why *why)
{
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t left = gguf_cursor_left(cursor), head = sizeof(uint64_t);
        uint64_t n_bytes = left < head ? 0 : gguf_load_u64(cursor->data + cursor->at);
        if (left < head || n_bytes > left - head)
            return gguf_cursor_string(cursor, &(struct base_string){0}, "a string", why);
        cursor->at += head + n_bytes;
    }
    return STATUS_OK;
}

/* Step over `count` values of one type that is not an array. */
static enum status skip_values(struct gguf_cursor *cursor, uint32_t type, uint64_t count,
                               struct status_why *why)
{
    size_t size = gguf_value_size(type);
    if (size != 0) {
        const uint8_t *values; /* the product cannot wrap: read_array_head checked count */
        enum status status = gguf_cursor_take(cursor, count * size, &values, "the value", why);
        if (!status && type == GGUF_VALUE_BOOL)
            status = check_bools(values, count, why);
        return status;
    }
    return skip_strings(cursor, count, why);
}

/* The head of an array: element type and count, both checked. */
static enum status read_array_head(struct gguf_cursor *cursor, struct gguf_kv *kv,
                                   struct status_why *why)
{
    uint32_t type;
    enum status status = gguf_cursor_u32(cursor, &type, "the array's element type", why);
    if (!status)
        status = check_value_type(type, "the array's element type", why);
    if (!status)
        status = gguf_cursor_u64(cursor, &kv->count, "the array's count", why);
    if (status)
        return status;
    if (type == GGUF_VALUE_ARRAY)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "is an array of arrays, expected an array of numbers or strings");
    kv->element_type = (enum gguf_value_type)type;
    uint64_t size = gguf_value_size(type);
    uint64_t least = size ? size : sizeof(uint64_t); /* a string is at least its length */
    if (kv->count > gguf_cursor_left(cursor) / least)
        return status_fail(why, STATUS_FORMAT,
                           "is an array of %" PRIu64 " elements of type %s, expected at most "
                           "%" PRIu64 ": only %" PRIu64 " bytes follow: an incomplete download?",
                           kv->count, gguf_value_type_name(kv->element_type),
                           gguf_cursor_left(cursor) / least, gguf_cursor_left(cursor));
    return STATUS_OK;
}

static enum status read_value(struct gguf_cursor *cursor, struct gguf_kv *kv,
                              struct status_why *why)
{
    uint32_t type;
    enum status status = gguf_cursor_u32(cursor, &type, "the value's type", why);
    if (!status)
        status = check_value_type(type, "the value's type", why);
    if (status)
        return status;
    kv->type = kv->element_type = (enum gguf_value_type)type;
    kv->count = 1;
    if (type == GGUF_VALUE_ARRAY)
        status = read_array_head(cursor, kv, why);
    if (status)
        return status;
    kv->data = cursor->data + cursor->at;
    return skip_values(cursor, kv->element_type, kv->count, why);
}

enum status gguf_pairs_append(struct gguf_shard *shard, const struct gguf_kv *kv,
                              struct status_why *why)
{
    size_t n = shard->kv_names.n;
    int32_t number;
    enum status status =
        base_array_reserve(shard->kv, shard->kv_capacity, n + 1, "key/value pairs", why);
    if (!status)
        status = base_strtab_add(&shard->kv_names, kv->key, &number, why);
    if (status)
        return status;
    if ((size_t)number != n)
        return status_fail(why, STATUS_FORMAT, "occurs twice, expected every key once");
    shard->kv[n] = *kv;
    return STATUS_OK;
}

enum status gguf_pairs_read(struct gguf_shard *shard, struct gguf_cursor *cursor, uint64_t n_pairs,
                            struct status_why *why)
{
    for (uint64_t i = 0; i < n_pairs; i++) {
        struct gguf_kv kv = {0};
        enum status status = gguf_cursor_name(cursor, &kv.key, "the key", why);
        if (status) {
            status_context(why, "key/value pair %" PRIu64 " of %" PRIu64, i + 1, n_pairs);
            return status;
        }
        status = read_value(cursor, &kv, why);
        if (!status)
            status = gguf_pairs_append(shard, &kv, why);
        if (status) {
            struct base_quoted key;
            status_context(why, "key %s", base_quote(&key, kv.key));
            return status;
        }
    }
    return STATUS_OK;
}

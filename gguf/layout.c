#include "gguf/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/buffer.h"
#include "gguf/file_impl.h"

struct gguf_layout {
    enum status status; /* of the first failure */
    struct status_why why;
    struct base_buffer pairs, directory;
    uint64_t n_pairs;
    uint32_t alignment;
    struct gguf_tensor *tensors; /* names are owned */
    size_t n_tensors, capacity;
};

enum status gguf_layout_new(struct gguf_layout **out, struct status_why *why)
{
    *out = NULL;
    struct gguf_layout *l = calloc(1, sizeof *l);
    if (!l)
        return status_fail(why, STATUS_MEMORY, "no memory for a GGUF file's directory");
    l->alignment = GGUF_DEFAULT_ALIGNMENT;
    *out = l;
    return STATUS_OK;
}

void gguf_layout_free(struct gguf_layout *l)
{
    if (!l)
        return;
    base_buffer_free(&l->pairs);
    base_buffer_free(&l->directory);
    for (size_t i = 0; i < l->n_tensors; i++)
        free((char *)(uintptr_t)l->tensors[i].name);
    free(l->tensors);
    free(l);
}

static void put_u32(struct base_buffer *to, uint32_t value)
{
    base_buffer_add(to, &value, sizeof value);
}

static void put_u64(struct base_buffer *to, uint64_t value)
{
    base_buffer_add(to, &value, sizeof value);
}

static void put_string(struct base_buffer *to, const char *data, size_t n_bytes)
{
    put_u64(to, n_bytes);
    base_buffer_add(to, data, n_bytes);
}

static bool is_key(struct base_string key, const char *name)
{
    return key.n_bytes == strlen(name) && memcmp(key.data, name, key.n_bytes) == 0;
}

static void put_key(struct gguf_layout *l, struct base_string key, enum gguf_value_type type)
{
    put_string(&l->pairs, key.data, key.n_bytes);
    put_u32(&l->pairs, (uint32_t)type);
    l->n_pairs++;
}

void gguf_layout_pair(struct gguf_layout *l, const struct gguf_kv *pair)
{
    if (is_key(pair->key, "general.alignment"))
        gguf_kv_u32(pair, &l->alignment, NULL); /* of another type: the default, as a reader */
    put_key(l, pair->key, pair->type);
    if (pair->type == GGUF_VALUE_ARRAY) {
        put_u32(&l->pairs, (uint32_t)pair->element_type);
        put_u64(&l->pairs, pair->count);
    }
    base_buffer_add(&l->pairs, pair->data, gguf_kv_bytes(pair));
}

void gguf_layout_u32(struct gguf_layout *l, const char *key, uint32_t value)
{
    gguf_layout_pair(
        l, &(struct gguf_kv){
               {key, strlen(key)}, GGUF_VALUE_U32, GGUF_VALUE_U32, 1, (const uint8_t *)&value});
}

void gguf_layout_string(struct gguf_layout *l, const char *key, const char *value)
{
    put_key(l, (struct base_string){key, strlen(key)}, GGUF_VALUE_STRING);
    put_string(&l->pairs, value, strlen(value));
}

void gguf_layout_strings(struct gguf_layout *l, const char *key, const struct base_string *values,
                         size_t count)
{
    put_key(l, (struct base_string){key, strlen(key)}, GGUF_VALUE_ARRAY);
    put_u32(&l->pairs, GGUF_VALUE_STRING);
    put_u64(&l->pairs, count);
    for (size_t i = 0; i < count; i++)
        put_string(&l->pairs, values[i].data, values[i].n_bytes);
}

static enum status measure(struct gguf_tensor *t, const char *name, uint32_t type_id,
                           struct status_why *why)
{
    enum status status = gguf_tensor_measure(t, type_id, why);
    if (!status && t->n_bytes == 0)
        status = status_fail(why, STATUS_UNSUPPORTED, "has type %u (%s), whose size is not known",
                             type_id, t->type->name);
    if (status)
        status_context(why, "tensor '%s'", name);
    return status;
}

void gguf_layout_tensor(struct gguf_layout *l, const char *name, uint32_t type_id,
                        const uint64_t *ne, uint32_t n_dims)
{
    if (l->status)
        return;
    struct gguf_tensor t = {.n_dims = n_dims, .ne = {1, 1, 1, 1}};
    for (uint32_t i = 0; i < n_dims && i < GGUF_MAX_DIMS; i++)
        t.ne[i] = ne[i];
    l->status = measure(&t, name, type_id, &l->why);
    if (l->status)
        return;
    l->status = base_array_reserve(l->tensors, l->capacity, l->n_tensors + 1, "tensors", &l->why);
    if (!l->status && !(t.name = strdup(name)))
        l->status = status_fail(&l->why, STATUS_MEMORY, "no memory for tensor '%s'", name);
    if (!l->status)
        l->tensors[l->n_tensors++] = t;
}

/* Where the tensors' data lie, from the beginning of their section; returns the section's bytes. */
static uint64_t place(struct gguf_layout *l)
{
    uint64_t offset = 0;
    for (size_t i = 0; i < l->n_tensors; i++) {
        l->tensors[i].offset = offset;
        offset += base_round_up(l->tensors[i].n_bytes, l->alignment);
    }
    return offset;
}

static void put_directory(struct base_buffer *to, const struct gguf_layout *l)
{
    base_buffer_add(to, "GGUF", 4);
    put_u32(to, 3);
    put_u64(to, l->n_tensors);
    put_u64(to, l->n_pairs);
    base_buffer_add(to, l->pairs.data, l->pairs.n);
    for (size_t i = 0; i < l->n_tensors; i++) {
        const struct gguf_tensor *t = &l->tensors[i];
        put_string(to, t->name, strlen(t->name));
        put_u32(to, t->n_dims);
        for (uint32_t k = 0; k < t->n_dims; k++)
            put_u64(to, t->ne[k]);
        put_u32(to, t->type_id);
        put_u64(to, t->offset);
    }
    while (l->n_tensors && !to->failed && to->n % l->alignment != 0)
        base_buffer_add(to, "", 1);
}

enum status gguf_layout_finish(struct gguf_layout *l, struct gguf_directory *out,
                               struct status_why *why)
{
    *out = (struct gguf_directory){0};
    if (l->status)
        return status_fail(why, l->status, "%s", l->why.text);
    if (l->alignment == 0 || (l->alignment & (l->alignment - 1)) != 0)
        return status_fail(why, STATUS_FORMAT,
                           "key 'general.alignment' is %u, expected a power of two", l->alignment);
    uint64_t n_data = place(l);
    put_directory(&l->directory, l);
    if (l->pairs.failed || l->directory.failed)
        return status_fail(why, STATUS_MEMORY, "no memory for a GGUF file's directory");
    for (size_t i = 0; i < l->n_tensors; i++)
        l->tensors[i].offset += l->directory.n;
    *out = (struct gguf_directory){l->directory.data, l->directory.n, l->directory.n + n_data};
    return STATUS_OK;
}

size_t gguf_layout_n_tensors(const struct gguf_layout *l)
{
    return l->n_tensors;
}

const struct gguf_tensor *gguf_layout_tensor_at(const struct gguf_layout *l, size_t i)
{
    return &l->tensors[i];
}

#include "tests/gguf/walk.h"

#include <stdlib.h>
#include <string.h>

#include "tests/harness/gguf_bytes.h"
#include "tests/harness/require.h"

static void touch(const void *data, uint64_t n_bytes)
{
    static volatile unsigned char sink;
    const unsigned char *bytes = data;
    if (n_bytes > 0)
        sink = (unsigned char)(bytes[0] ^ bytes[n_bytes - 1]);
    (void)sink;
}

static void walk_strings(const struct gguf_kv *kv)
{
    struct base_string *strings;
    struct status_why why;
    if (gguf_kv_strings(kv, &strings, &why) != STATUS_OK)
        return;
    for (uint64_t k = 0; k < kv->count; k++)
        touch(strings[k].data, strings[k].n_bytes);
    free(strings);
}

static void walk_look_ups(const struct gguf_file *file, const char *key)
{
    struct status_why why;
    uint32_t number;
    float real;
    bool truth;
    bool found = false;
    struct base_string string;
    gguf_get_u32(file, key, &number, &found, &why);
    require(found);
    gguf_get_f32(file, key, &real, &found, &why);
    gguf_get_bool(file, key, &truth, &found, &why);
    if (gguf_get_string(file, key, &string, &found, &why) == STATUS_OK)
        touch(string.data, string.n_bytes);
}

static void walk_pair(const struct gguf_file *file, const struct gguf_kv *kv)
{
    char *key = strndup(kv->key.data, kv->key.n_bytes);
    require(key && gguf_kv_find(file, key) == kv);
    walk_look_ups(file, key);
    free(key);
    for (uint64_t k = 0; k < kv->count; k++) {
        if (gguf_value_is_float(kv->element_type))
            (void)gguf_kv_float(kv, k);
        else if (kv->element_type != GGUF_VALUE_STRING)
            (void)gguf_kv_int(kv, k);
    }
    if (kv->element_type == GGUF_VALUE_STRING)
        walk_strings(kv);
}

static void walk_tensor(const struct gguf_file *file, const struct gguf_tensor *tensor)
{
    uint64_t n_bytes, data_offset;
    const uint8_t *data = gguf_shard_data(file, tensor->shard, &n_bytes, &data_offset);
    require(gguf_tensor_find(file, tensor->name) == tensor);
    require(tensor->offset >= data_offset && tensor->offset <= n_bytes &&
            tensor->n_bytes <= n_bytes - tensor->offset);
    require((const uint8_t *)tensor->data == data + tensor->offset);
    uint64_t tail = tensor->type->tail_bytes;
    require(tensor->n_bytes == tensor->n_rows * tensor->row_bytes + tail && tensor->n_bytes > 0);
    require((tensor->scales != NULL) == (tail > 0));
    if (tensor->scales)
        touch(tensor->scales->data, sizeof(float));
    touch(tensor->data, tensor->n_bytes);
}

void walk_file(const struct gguf_file *file)
{
    for (size_t i = 0; i < gguf_n_kv(file); i++)
        walk_pair(file, gguf_kv_at(file, i));
    for (size_t i = 0; i < gguf_n_tensors(file); i++)
        walk_tensor(file, gguf_tensor_at(file, i));
}

enum status walk_bytes(const void *data, size_t n_bytes, struct status_why *why)
{
    struct gguf_file *file;
    *why = (struct status_why){0};
    enum status status = gguf_bytes_open(&file, data, n_bytes, "input", why);
    if (status == STATUS_OK)
        walk_file(file);
    else
        require(!file && strncmp(why->text, "input: ", 7) == 0 && !strchr(why->text, '\n'));
    gguf_close(file);
    return status;
}

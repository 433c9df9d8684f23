/* Writing keys of GGUF, and tensors that are no stored one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/folder/state.h"

static void put_named(struct model_folder *f, const char *key, enum gguf_value_type type,
                      enum gguf_value_type element, const void *data, uint64_t count)
{
    struct gguf_kv pair = {.key = {key, strlen(key)},
                           .type = type,
                           .element_type = element,
                           .count = count,
                           .data = data};
    gguf_layout_pair(f->layout, &pair);
}

static void put(struct model_folder *f, const char *suffix, enum gguf_value_type type,
                enum gguf_value_type element, const void *data, uint64_t count)
{
    char key[MODEL_KEY_BYTES];
    snprintf(key, sizeof key, "%s.%s", f->arch->name, suffix);
    put_named(f, key, type, element, data, count);
}

void model_write_u32(struct model_folder *f, const char *suffix, uint32_t value)
{
    put(f, suffix, GGUF_VALUE_U32, GGUF_VALUE_U32, (const void *)&value, 1);
}

void model_write_u32s(struct model_folder *f, const char *suffix, const uint32_t *values,
                      uint64_t n)
{
    put(f, suffix, GGUF_VALUE_ARRAY, GGUF_VALUE_U32, values, n);
}

void model_write_u64s(struct model_folder *f, const char *suffix, const void *values, uint64_t n)
{
    put(f, suffix, GGUF_VALUE_ARRAY, GGUF_VALUE_U64, values, n);
}

void model_write_f32(struct model_folder *f, const char *suffix, double value)
{
    float rounded = (float)value;
    put(f, suffix, GGUF_VALUE_F32, GGUF_VALUE_F32, (const void *)&rounded, 1);
}

void model_write_f32s(struct model_folder *f, const char *suffix, const float *values, uint64_t n)
{
    put(f, suffix, GGUF_VALUE_ARRAY, GGUF_VALUE_F32, values, n);
}

void model_write_named_f32s(struct model_folder *f, const char *key, const float *values,
                            uint64_t n)
{
    put_named(f, key, GGUF_VALUE_ARRAY, GGUF_VALUE_F32, values, n);
}

void model_write_bool(struct model_folder *f, const char *suffix, bool value)
{
    uint8_t byte = value;
    put(f, suffix, GGUF_VALUE_BOOL, GGUF_VALUE_BOOL, &byte, 1);
}

void model_write_bools(struct model_folder *f, const char *suffix, const uint8_t *values,
                       uint64_t n)
{
    put(f, suffix, GGUF_VALUE_ARRAY, GGUF_VALUE_BOOL, values, n);
}

void model_write_string(struct model_folder *f, const char *suffix, const char *value)
{
    char key[MODEL_KEY_BYTES];
    snprintf(key, sizeof key, "%s.%s", f->arch->name, suffix);
    gguf_layout_string(f->layout, key, value);
}

float *model_folder_give(struct model_folder *f, const char *name, uint64_t n)
{
    if (base_array_reserve(f->given, f->given_capacity, f->n_given + 1, "values", NULL))
        return NULL;
    float *values = calloc(n ? n : 1, sizeof *values);
    if (!values)
        return NULL;
    struct model_given *given = &f->given[f->n_given++];
    *given = (struct model_given){.values = values, .n = n};
    snprintf(given->name, sizeof given->name, "%s", name);
    return values;
}

void model_limit_write(struct model_folder *f, const char *suffix)
{
    float limits[MODEL_MAX_BLOCKS];
    double limit = model_config_f32_or(f, "swiglu_limit", 10);
    for (uint32_t i = 0; i < f->n_layers; i++)
        limits[i] = (float)limit;
    model_write_f32s(f, suffix, limits, f->n_layers);
}

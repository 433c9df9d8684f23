#include "model/hparams/keys.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void model_key_name(const struct model_keys *keys, const char *suffix, char key[MODEL_KEY_BYTES])
{
    snprintf(key, MODEL_KEY_BYTES, "%s.%s", keys->prefix, suffix);
}

const struct gguf_kv *model_key_find(const struct model_keys *keys, const char *suffix)
{
    char key[MODEL_KEY_BYTES];
    model_key_name(keys, suffix, key);
    const struct gguf_kv *kv = gguf_kv_find(keys->file, key);
    if (kv)
        keys->read[kv - gguf_kv_at(keys->file, 0)] = true;
    return kv;
}

static enum status out_of_range(const struct model_keys *keys, const char *key, int64_t found,
                                struct model_range range, struct status_why *why)
{
    return status_fail(why, STATUS_FORMAT,
                       "%s: key '%s' is %" PRId64 ", expected %" PRIu32 " to %" PRIu32,
                       gguf_path(keys->file), key, found, range.low, range.high);
}

enum status model_key_require(const struct model_keys *keys, const char *suffix,
                              const char *expected, struct status_why *why)
{
    if (model_key_find(keys, suffix))
        return STATUS_OK;
    return status_fail(why, STATUS_FORMAT, "%s: key '%s.%s' is missing, expected %s",
                       gguf_path(keys->file), keys->prefix, suffix, expected);
}

enum status model_key_u32_required(const struct model_keys *keys, const char *suffix,
                                   struct model_range range, uint32_t *value,
                                   struct status_why *why)
{
    enum status status = model_key_require(keys, suffix, "a whole number", why);
    return status ? status : model_key_u32_or(keys, suffix, range, 0, value, why);
}

enum status model_key_u32_or(const struct model_keys *keys, const char *suffix,
                             struct model_range range, uint32_t otherwise, uint32_t *value,
                             struct status_why *why)
{
    *value = otherwise;
    if (!model_key_find(keys, suffix))
        return STATUS_OK;
    char key[MODEL_KEY_BYTES];
    model_key_name(keys, suffix, key);
    uint32_t read = 0;
    enum status status = gguf_get_u32(keys->file, key, &read, NULL, why);
    if (status)
        return status;
    if (read < range.low || read > range.high)
        return out_of_range(keys, key, read, range, why);
    *value = read;
    return STATUS_OK;
}

enum status model_key_bool(const struct model_keys *keys, const char *suffix, bool *value,
                           struct status_why *why)
{
    if (!model_key_find(keys, suffix))
        return STATUS_OK;
    char key[MODEL_KEY_BYTES];
    model_key_name(keys, suffix, key);
    return gguf_get_bool(keys->file, key, value, NULL, why);
}

enum status model_key_f32(const struct model_keys *keys, const char *suffix, float *value,
                          struct status_why *why)
{
    if (!model_key_find(keys, suffix))
        return STATUS_OK;
    char key[MODEL_KEY_BYTES];
    model_key_name(keys, suffix, key);
    float read = 0;
    enum status status = gguf_get_f32(keys->file, key, &read, NULL, why);
    if (status)
        return status;
    if (!isfinite(read))
        return status_fail(why, STATUS_FORMAT, "%s: key '%s' is %g, expected a finite number",
                           gguf_path(keys->file), key, (double)read);
    *value = read;
    return STATUS_OK;
}

/** An array has n_layers elements, of a type that fits. */
static enum status check_array(const struct model_keys *keys, const struct gguf_kv *kv,
                               const char *key, bool fits, const char *expected, uint32_t n_layers,
                               struct status_why *why)
{
    if (!fits)
        return status_fail(why, STATUS_FORMAT, "%s: key '%s' is an array of %s, expected %s",
                           gguf_path(keys->file), key, gguf_value_type_name(kv->element_type),
                           expected);
    if (kv->count != n_layers)
        return status_fail(
            why, STATUS_FORMAT,
            "%s: key '%s' has %" PRIu64 " element%s, expected %" PRIu32 ", one per layer",
            gguf_path(keys->file), key, kv->count, status_plural(kv->count), n_layers);
    return STATUS_OK;
}

static enum status read_array(const struct model_keys *keys, const struct gguf_kv *kv,
                              const char *key, struct model_range range, uint32_t *values,
                              uint32_t n_layers, struct status_why *why)
{
    bool whole = gguf_value_is_int(kv->element_type) || kv->element_type == GGUF_VALUE_BOOL;
    enum status status = check_array(keys, kv, key, whole, "whole numbers", n_layers, why);
    if (status)
        return status;
    for (uint32_t i = 0; i < n_layers; i++) {
        int64_t value = gguf_kv_int(kv, i);
        if (value < range.low || value > range.high)
            return status_fail(why, STATUS_FORMAT,
                               "%s: key '%s' has %" PRId64 " for layer %" PRIu32
                               ", expected %" PRIu32 " to %" PRIu32,
                               gguf_path(keys->file), key, value, i, range.low, range.high);
        values[i] = (uint32_t)value;
    }
    return STATUS_OK;
}

enum status model_key_per_layer(const struct model_keys *keys, const char *suffix,
                                struct model_range range, uint32_t *values, uint32_t n_layers,
                                struct status_why *why)
{
    const struct gguf_kv *kv = model_key_find(keys, suffix);
    if (!kv)
        return STATUS_OK;
    if (kv->type == GGUF_VALUE_ARRAY) {
        char key[MODEL_KEY_BYTES];
        model_key_name(keys, suffix, key);
        return read_array(keys, kv, key, range, values, n_layers, why);
    }
    uint32_t value;
    enum status status = model_key_u32_required(keys, suffix, range, &value, why);
    for (uint32_t i = 0; !status && i < n_layers; i++)
        values[i] = value;
    return status;
}

enum status model_key_floats(const struct model_keys *keys, const char *suffix, float *values,
                             uint32_t n_layers, struct status_why *why)
{
    const struct gguf_kv *kv = model_key_find(keys, suffix);
    if (!kv || kv->type != GGUF_VALUE_ARRAY) {
        float value = 0;
        enum status status = model_key_f32(keys, suffix, &value, why);
        for (uint32_t i = 0; kv && !status && i < n_layers; i++)
            values[i] = value;
        return status;
    }
    char key[MODEL_KEY_BYTES];
    model_key_name(keys, suffix, key);
    enum status status =
        check_array(keys, kv, key, gguf_value_is_float(kv->element_type), "floats", n_layers, why);
    for (uint32_t i = 0; !status && i < n_layers; i++) {
        values[i] = (float)gguf_kv_float(kv, i);
        if (!isfinite(values[i]))
            status =
                status_fail(why, STATUS_FORMAT,
                            "%s: key '%s' has %g for layer %" PRIu32 ", expected a finite number",
                            gguf_path(keys->file), key, (double)values[i], i);
    }
    return status;
}

enum status model_key_bools(const struct model_keys *keys, const char *suffix, bool *values,
                            uint32_t n_layers, struct status_why *why)
{
    uint32_t *read = calloc(n_layers, sizeof *read);
    if (!read)
        return status_fail(why, STATUS_MEMORY, "no memory for %" PRIu32 " layers", n_layers);
    for (uint32_t i = 0; i < n_layers; i++)
        read[i] = values[i];
    enum status status =
        model_key_per_layer(keys, suffix, (struct model_range){0, 1}, read, n_layers, why);
    for (uint32_t i = 0; !status && i < n_layers; i++)
        values[i] = read[i];
    free(read);
    return status;
}

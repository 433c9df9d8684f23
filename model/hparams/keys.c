#include "model/hparams/keys.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text/number.h"

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

void model_keys_fail(const struct model_keys *keys, enum status code, const char *format, ...)
{
    struct status_why what;
    va_list args;
    va_start(args, format);
    vsnprintf(what.text, sizeof what.text, format, args);
    va_end(args);
    status_keep(keys->kept, code, "%s: %s", gguf_path(keys->file), what.text);
}

void model_key_fail(const struct model_keys *keys, enum status code, const char *suffix,
                    const char *format, ...)
{
    struct status_why what;
    va_list args;
    va_start(args, format);
    vsnprintf(what.text, sizeof what.text, format, args);
    va_end(args);
    model_keys_fail(keys, code, "key '%s.%s' %s", keys->prefix, suffix, what.text);
}

void model_key_require(const struct model_keys *keys, const char *suffix, const char *expected)
{
    if (!model_key_find(keys, suffix))
        model_key_fail(keys, STATUS_FORMAT, suffix, "is missing, expected %s", expected);
}

/** Whether a key is to be read: it is there, and nothing has failed. Writes its name. */
static bool wanted(const struct model_keys *keys, const char *suffix, char key[MODEL_KEY_BYTES])
{
    model_key_name(keys, suffix, key);
    return model_key_find(keys, suffix) && !keys->kept->status;
}

uint32_t model_key_u32(const struct model_keys *keys, const char *suffix, struct model_range range)
{
    model_key_require(keys, suffix, "a whole number");
    return model_key_u32_or(keys, suffix, range, range.low);
}

uint32_t model_key_u32_or(const struct model_keys *keys, const char *suffix,
                          struct model_range range, uint32_t otherwise)
{
    char key[MODEL_KEY_BYTES];
    uint32_t read = 0;
    if (!wanted(keys, suffix, key))
        return otherwise;
    keys->kept->status = gguf_get_u32(keys->file, key, &read, NULL, &keys->kept->why);
    if (read < range.low || read > range.high)
        model_key_fail(keys, STATUS_FORMAT, suffix,
                       "is %" PRIu32 ", expected %" PRIu32 " to %" PRIu32, read, range.low,
                       range.high);
    return keys->kept->status ? otherwise : read;
}

bool model_key_bool(const struct model_keys *keys, const char *suffix, bool otherwise)
{
    char key[MODEL_KEY_BYTES];
    if (wanted(keys, suffix, key))
        keys->kept->status = gguf_get_bool(keys->file, key, &otherwise, NULL, &keys->kept->why);
    return otherwise;
}

float model_key_f32(const struct model_keys *keys, const char *suffix, float otherwise)
{
    char key[MODEL_KEY_BYTES];
    float read = 0;
    if (!wanted(keys, suffix, key))
        return otherwise;
    keys->kept->status = gguf_get_f32(keys->file, key, &read, NULL, &keys->kept->why);
    if (!isfinite(read))
        model_key_fail(keys, STATUS_FORMAT, suffix, "is %g, expected a finite number",
                       (double)read);
    return keys->kept->status ? otherwise : read;
}

float model_key_positive(const struct model_keys *keys, const char *suffix, float otherwise)
{
    float read = model_key_f32(keys, suffix, 0);
    struct base_number shown;
    if (read < 0)
        model_key_fail(keys, STATUS_FORMAT, suffix, "is %s, expected 0 or more",
                       base_float_text(&shown, read));
    return read > 0 ? read : otherwise;
}

float model_key_inverse(const struct model_keys *keys, const char *suffix, float value)
{
    struct base_number shown;
    if (!isfinite(1 / value))
        model_key_fail(keys, STATUS_FORMAT, suffix,
                       "is %s, expected a number with a finite inverse",
                       base_float_text(&shown, value));
    return 1 / value;
}

struct base_string model_key_string(const struct model_keys *keys, const char *suffix)
{
    char key[MODEL_KEY_BYTES];
    struct base_string text = {0};
    if (wanted(keys, suffix, key))
        keys->kept->status = gguf_get_string(keys->file, key, &text, NULL, &keys->kept->why);
    return text;
}

/** Whether an array has n_layers elements, of a type that fits. */
static bool array_fits(const struct model_keys *keys, const struct gguf_kv *kv, const char *suffix,
                       bool fits, const char *expected, uint32_t n_layers)
{
    if (!fits)
        model_key_fail(keys, STATUS_FORMAT, suffix, "is an array of %s, expected %s",
                       gguf_value_type_name(kv->element_type), expected);
    else if (kv->count != n_layers)
        model_key_fail(keys, STATUS_FORMAT, suffix,
                       "has %" PRIu64 " element%s, expected %" PRIu32 ", one per layer", kv->count,
                       status_plural(kv->count), n_layers);
    return !keys->kept->status;
}

void model_key_per_layer(const struct model_keys *keys, const char *suffix,
                         struct model_range range, uint32_t *values, uint32_t n_layers)
{
    const struct gguf_kv *kv = model_key_find(keys, suffix);
    if (!kv || keys->kept->status)
        return;
    if (kv->type != GGUF_VALUE_ARRAY) {
        uint32_t value = model_key_u32(keys, suffix, range);
        for (uint32_t i = 0; !keys->kept->status && i < n_layers; i++)
            values[i] = value;
        return;
    }
    bool whole = gguf_value_is_int(kv->element_type) || kv->element_type == GGUF_VALUE_BOOL;
    if (!array_fits(keys, kv, suffix, whole, "whole numbers", n_layers))
        return;
    for (uint32_t i = 0; i < n_layers; i++) {
        int64_t value = gguf_kv_int(kv, i);
        if (value >= range.low && value <= range.high)
            values[i] = (uint32_t)value;
        else
            model_key_fail(keys, STATUS_FORMAT, suffix,
                           "has %" PRId64 " for layer %" PRIu32 ", expected %" PRIu32
                           " to %" PRIu32,
                           value, i, range.low, range.high);
    }
}

void model_key_floats(const struct model_keys *keys, const char *suffix, float *values,
                      uint32_t n_layers)
{
    const struct gguf_kv *kv = model_key_find(keys, suffix);
    if (!kv || keys->kept->status)
        return;
    if (kv->type != GGUF_VALUE_ARRAY) {
        float value = model_key_f32(keys, suffix, 0);
        for (uint32_t i = 0; !keys->kept->status && i < n_layers; i++)
            values[i] = value;
        return;
    }
    bool real = gguf_value_is_float(kv->element_type);
    if (!array_fits(keys, kv, suffix, real, "floats", n_layers))
        return;
    for (uint32_t i = 0; i < n_layers; i++) {
        values[i] = (float)gguf_kv_float(kv, i);
        if (!isfinite(values[i]))
            model_key_fail(keys, STATUS_FORMAT, suffix,
                           "has %g for layer %" PRIu32 ", expected a finite number",
                           (double)values[i], i);
    }
}

void model_key_bools(const struct model_keys *keys, const char *suffix, bool *values,
                     uint32_t n_layers)
{
    uint32_t *read = calloc(n_layers, sizeof *read);
    if (!read) {
        status_keep(keys->kept, STATUS_MEMORY, "no memory for %" PRIu32 " layers", n_layers);
        return;
    }
    for (uint32_t i = 0; i < n_layers; i++)
        read[i] = values[i];
    model_key_per_layer(keys, suffix, (struct model_range){0, 1}, read, n_layers);
    for (uint32_t i = 0; i < n_layers; i++)
        values[i] = read[i];
    free(read);
}

#include "base/json/build.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"

void base_json_begin(struct base_json *json)
{
    json->root = cJSON_CreateObject();
    json->failed = !json->root;
}

void base_json_free(struct base_json *json)
{
    cJSON_Delete(json->root);
    *json = (struct base_json){0};
}

/* Put an item (NULL: could not be made) in its place. Returns it, or NULL. */
static cJSON *add(struct base_json *json, cJSON *parent, const char *key, cJSON *item)
{
    bool added =
        parent && item &&
        (key ? cJSON_AddItemToObject(parent, key, item) : cJSON_AddItemToArray(parent, item));
    if (added)
        return item;
    cJSON_Delete(item);
    json->failed = true;
    return NULL;
}

cJSON *base_json_object(struct base_json *json, cJSON *parent, const char *key)
{
    return add(json, parent, key, cJSON_CreateObject());
}

cJSON *base_json_list(struct base_json *json, cJSON *parent, const char *key)
{
    return add(json, parent, key, cJSON_CreateArray());
}

void base_json_text(struct base_json *json, cJSON *parent, const char *key, const char *text)
{
    if (text)
        base_json_bytes(json, parent, key, text, strlen(text));
    else
        add(json, parent, key, cJSON_CreateNull());
}

void base_json_flag(struct base_json *json, cJSON *parent, const char *key, bool value)
{
    add(json, parent, key, cJSON_CreateBool(value));
}

void base_json_int(struct base_json *json, cJSON *parent, const char *key, int64_t value)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%" PRId64, value);
    add(json, parent, key, cJSON_CreateRaw(digits));
}

void base_json_uint(struct base_json *json, cJSON *parent, const char *key, uint64_t value)
{
    char digits[32];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    add(json, parent, key, cJSON_CreateRaw(digits));
}

void base_json_real(struct base_json *json, cJSON *parent, const char *key, double value)
{
    char digits[40];
    snprintf(digits, sizeof digits, "%.17g", value);
    add(json, parent, key, isfinite(value) ? cJSON_CreateRaw(digits) : cJSON_CreateNull());
}

void base_json_bytes(struct base_json *json, cJSON *parent, const char *key, const char *bytes,
                     size_t n_bytes)
{
    char *copy = malloc(n_bytes + 1);
    char *text = malloc(3 * n_bytes + 1);
    if (copy && text) {
        for (size_t i = 0; i < n_bytes; i++) /* 0xff is never UTF-8, so NUL too is replaced */
            copy[i] = bytes[i] ? bytes[i] : '\xff';
        text[base_utf8_repair(copy, n_bytes, text)] = '\0';
    }
    add(json, parent, key, copy && text ? cJSON_CreateString(text) : NULL);
    free(copy);
    free(text);
}

enum status base_json_text_of(const struct base_json *json, char **out, struct status_why *why)
{
    *out = json->failed ? NULL : cJSON_Print(json->root);
    return *out ? STATUS_OK : status_fail(why, STATUS_MEMORY, "out of memory for a JSON document");
}

void base_json_put(struct base_file *file, const char *text, size_t n_bytes)
{
    size_t from = 0, size;
    for (size_t i = 0; i < n_bytes; i += size) {
        uint32_t c = 0xfffd;
        size = base_utf8_decode(text + i, n_bytes - i, &c);
        if (size > 0 && c != 0x7f && (c < 0x80 || c >= 0xa0))
            continue;
        base_file_write(file, text + from, i - from);
        base_file_printf(file, "\\u%04" PRIx32, size > 0 ? c : 0xfffd);
        size = size > 0 ? size : 1;
        from = i + size;
    }
    base_file_write(file, text + from, n_bytes - from);
}

enum status base_json_write(const struct base_json *json, struct base_file *file,
                            struct status_why *why)
{
    char *text;
    enum status status = base_json_text_of(json, &text, why);
    if (status)
        return status;
    base_json_put(file, text, strlen(text));
    base_file_write(file, "\n", 1);
    cJSON_free(text);
    return STATUS_OK;
}

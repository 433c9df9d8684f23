/* Members of config.json: they are found by several names, and read as numbers, lists and words. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/words.h"
#include "model/folder/state.h"

enum { NAME_BYTES = 64 };

enum status model_config_status(const struct model_folder *f, struct status_why *why)
{
    enum status status = base_json_status(&f->json, why);
    if (status)
        status_context(why, "%s", f->path);
    return status;
}

struct base_field model_config_defaults(const struct model_folder *f)
{
    return (struct base_field){f->config.reader, f->defaults, 0};
}

/** The first of several names in an object that is not null, else one that is. */
static struct base_field first_in(struct base_field object, const char *names)
{
    const char *word;
    size_t length;
    struct base_field found = {object.reader, NULL, 0};
    while ((!found.json || cJSON_IsNull(found.json)) &&
           (names = base_words_next(names, &word, &length)) != NULL) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "%.*s", (int)length, word);
        struct base_field item = base_field_get(object, name);
        found = item.json ? item : found;
    }
    return found;
}

/** What config.json says counts before what the class has, null of the text's part after the
 * whole's value. */
static struct base_field first_of(const struct model_folder *f, const char *names)
{
    struct base_field found = first_in(f->text, names);
    if (found.json && !cJSON_IsNull(found.json))
        return found;
    struct base_field whole = first_in(f->config, names);
    return whole.json ? whole : found.json ? found : model_config_class(f, names);
}

struct base_field model_config_find(const struct model_folder *f, const char *names)
{
    return base_field_find(first_of(f, names), "");
}

bool model_config_of_class(const struct model_folder *f, struct base_field item)
{
    return item.json &&
           base_field_get(model_config_defaults(f), item.json->string).json == item.json;
}

struct base_field model_config_class(const struct model_folder *f, const char *names)
{
    return first_in(model_config_defaults(f), names);
}

bool model_config_null(const struct model_folder *f, const char *names)
{
    return cJSON_IsNull(first_of(f, names).json);
}

/** A member, or a failure. */
static struct base_field need(const struct model_folder *f, const char *names)
{
    struct base_field found = model_config_find(f, names);
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(names, " "), names);
    if (!found.json)
        base_field_fail_member(f->config, name, STATUS_FORMAT, "is missing, expected a number");
    return found;
}

static bool all_equal(const cJSON *list)
{
    const cJSON *item = list->child;
    while (item && item->next && cJSON_IsNumber(item) && cJSON_IsNumber(item->next) &&
           item->valuedouble == item->next->valuedouble)
        item = item->next;
    return item && !item->next;
}

uint32_t model_config_u32(const struct model_folder *f, const char *names)
{
    struct base_field item = need(f, names);
    if (cJSON_IsArray(item.json) && all_equal(item.json)) /* one for each layer */
        item.json = item.json->child;
    return (uint32_t)base_field_uint(item, "", UINT32_MAX);
}

uint32_t model_config_u32_or(const struct model_folder *f, const char *names, uint32_t absent)
{
    return model_config_find(f, names).json ? model_config_u32(f, names) : absent;
}

double model_config_real(struct base_field from, const char *path)
{
    double value = base_field_real(from, path);
    if (isfinite((float)value))
        return value;
    base_field_fail_member(from, path, STATUS_FORMAT, "is %g, expected a number of float32", value);
    return 0;
}

double model_config_f32(const struct model_folder *f, const char *names)
{
    return model_config_real(need(f, names), "");
}

double model_config_f32_or(const struct model_folder *f, const char *names, double absent)
{
    return model_config_find(f, names).json ? model_config_f32(f, names) : absent;
}

void model_config_u32s(struct base_field from, const char *path, uint32_t *values, uint32_t n)
{
    struct base_field list = base_field_list(from, path), item = {0};
    if (base_field_count(list) != n)
        base_field_fail(list, STATUS_FORMAT, "has %zu numbers, expected %u", base_field_count(list),
                        n);
    for (uint32_t i = 0; i < n && base_field_next(list, &item); i++)
        values[i] = (uint32_t)base_field_uint(item, "", UINT32_MAX);
}

bool model_config_is(const struct model_folder *f, const char *name, uint32_t i, const char *kind)
{
    struct base_field list = model_config_find(f, name);
    list.json = cJSON_GetArrayItem(list.json, (int)i);
    return base_field_is(list, kind);
}

double model_config_at(struct base_field list, uint32_t i)
{
    const cJSON *item = cJSON_GetArrayItem(list.json, (int)i);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

uint32_t model_config_kinds(const struct model_folder *f, const char *name, const char *expected,
                            uint8_t *kinds)
{
    struct base_field list = model_config_find(f, name), item = {0};
    uint32_t n = 0;
    /* Lists may go on with blocks that predict further tokens. */
    while (n < f->n_layers && base_field_next(list, &item)) {
        int kind =
            cJSON_IsString(item.json) ? base_words_index(expected, item.json->valuestring) : -1;
        if (kind < 0) {
            base_field_fail(list, STATUS_UNSUPPORTED, "has something else for layer %u than: %s", n,
                            expected);
            return 0;
        }
        kinds[n++] = (uint8_t)kind;
    }
    if (!list.json || n == f->n_layers)
        return n;
    base_field_fail(list, STATUS_FORMAT, "has %u layers, expected %u", n, f->n_layers);
    return 0;
}

#include "base/json/parse.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/strtab.h"

/* cJSON gives NULL for either, so its allocations are watched; of this thread, from here only. */
static _Thread_local bool ran_out;
static pthread_once_t watched = PTHREAD_ONCE_INIT;

static void *allocate(size_t n_bytes)
{
    void *memory = malloc(n_bytes);
    ran_out |= !memory;
    return memory;
}

static void watch(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = allocate, .free_fn = free});
}

bool base_json_is_blank(char c)
{
    return (unsigned char)c <= ' ';
}

const char *base_json_find_nul(const char *bytes, size_t n_bytes)
{
    const char *end = bytes + n_bytes, *nul = memchr(bytes, '\0', n_bytes);
    for (const char *at = bytes; !nul && at < end; at++)
        if (*at == '\\' && end - ++at > 4 && memcmp(at, "u0000", 5) == 0)
            nul = at - 1;
    return nul;
}

void base_json_replace_nul(char *bytes, size_t n_bytes)
{
    const char *end = bytes + n_bytes;
    for (char *at = bytes; at < end; at++)
        if (*at == '\\' && end - ++at > 4 && memcmp(at, "u0000", 5) == 0)
            memcpy(at, "ufffd", 5);
}

/* Values of a text that is JSON: one before each comma, and one in each bracket; more if it is not.
 */
static size_t count_values(const char *bytes, size_t n_bytes, size_t *n_strings)
{
    size_t n = 1;
    bool in_string = false;
    *n_strings = 0;
    for (size_t i = 0; i < n_bytes; i++) {
        char c = bytes[i];
        if (in_string && c == '\\')
            i++;
        else if (c == '"')
            *n_strings += in_string = !in_string;
        else if (!in_string)
            n += c == ',' || c == '[' || c == '{';
    }
    return n;
}

size_t base_json_memory(const char *bytes, size_t n_bytes)
{
    enum { NODE = 80, STRING = 32 };
    size_t n_strings, n = count_values(bytes, n_bytes, &n_strings);
    return n * NODE + n_strings * STRING + n_bytes;
}

enum status base_json_parse(cJSON **out, const char *bytes, size_t n_bytes, size_t *n_read,
                            struct status_why *why)
{
    const char *end = NULL;
    *out = NULL;
    size_t n_strings, n_values = count_values(bytes, n_bytes, &n_strings);
    if (n_values > BASE_JSON_MAX_VALUES)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%zu bytes of JSON with %zu values, expected at most %d", n_bytes,
                           n_values, (int)BASE_JSON_MAX_VALUES);
    pthread_once(&watched, watch);
    ran_out = false;
    *out = cJSON_ParseWithLengthOpts(bytes, n_bytes, &end, false);
    if (n_read)
        *n_read = end ? (size_t)(end - bytes) : 0;
    if (*out)
        return STATUS_OK;
    return ran_out ? status_fail(why, STATUS_MEMORY, "no memory for %zu bytes of JSON", n_bytes)
                   : STATUS_FORMAT;
}

/* The name that comes again among the members of one object. */
static enum status repeated_here(const char **name, const cJSON *object, struct status_why *why)
{
    struct base_strtab names = {0};
    enum status status = STATUS_OK;
    for (const cJSON *item = object->child; item && !*name && !status; item = item->next) {
        size_t n = names.n;
        int32_t number;
        status = base_strtab_add(&names, (struct base_string){item->string, strlen(item->string)},
                                 &number, why);
        if (!status && names.n == n)
            *name = item->string;
    }
    base_strtab_free(&names);
    return status;
}

/* The parser bounds how deep values are within others. */
enum status base_json_find_repeated(const char **name, const cJSON *value, struct status_why *why)
{
    enum status status = STATUS_OK;
    *name = NULL;
    if (cJSON_IsObject(value) && value->child && value->child->next)
        status = repeated_here(name, value, why);
    for (const cJSON *item = value->child; item && !*name && !status; item = item->next)
        if (item->child)
            status = base_json_find_repeated(name, item, why);
    return status;
}

#include "eval/run/difference.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/json/parse.h"

enum { MAX_SHOWN = 24 }; /* bytes of a text */

static void show(char *out, size_t capacity, cJSON *item)
{
    const char *text = cJSON_GetStringValue(item);
    if (!item)
        snprintf(out, capacity, "none");
    else if (text && strlen(text) > MAX_SHOWN)
        snprintf(out, capacity, "%.*s...", MAX_SHOWN, text);
    else if (text)
        snprintf(out, capacity, "%s", *text ? text : "\"\"");
    else if (cJSON_IsObject(item) || cJSON_IsArray(item) ||
             !cJSON_PrintPreallocated(item, out, (int)capacity, false))
        snprintf(out, capacity, "something else");
}

/* Makes `name` longer by a member's name or, where there is none, an element's number. */
static void append_name(char *name, size_t capacity, const char *member, size_t index)
{
    size_t n = strlen(name);
    if (member)
        snprintf(name + n, capacity - n, "%s%s", n ? "." : "", member);
    else
        snprintf(name + n, capacity - n, "[%zu]", index);
}

static cJSON *counterpart(const cJSON *in, const cJSON *item, size_t index)
{
    if (item->string)
        return cJSON_GetObjectItemCaseSensitive(in, item->string);
    return cJSON_GetArrayItem(in, (int)index);
}

/* What is shown may come from a broken file: no control characters for the terminal. */
static void make_printable(char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

static bool differ(struct eval_difference *out, cJSON *first, cJSON *second);

/* The children of `first` against those of `second`; missing_only: just whether they are there. */
static bool children_differ(struct eval_difference *out, cJSON *first, cJSON *second,
                            bool missing_only)
{
    size_t n_name = strlen(out->name), index = 0;
    cJSON *child;
    cJSON_ArrayForEach(child, first)
    {
        cJSON *other = counterpart(second, child, index);
        append_name(out->name, sizeof out->name, child->string, index++);
        if (missing_only ? !other : differ(out, child, other)) {
            if (missing_only)
                differ(out, NULL, child);
            return true;
        }
        out->name[n_name] = '\0';
    }
    return false;
}

/* NULL is a member that is missing. As deep as the parser nests, which is bounded. */
static bool differ(struct eval_difference *out, cJSON *first, cJSON *second)
{
    bool nested = (cJSON_IsObject(first) && cJSON_IsObject(second)) ||
                  (cJSON_IsArray(first) && cJSON_IsArray(second));
    if (nested)
        return children_differ(out, first, second, false) ||
               children_differ(out, second, first, true);
    if (first && second && cJSON_Compare(first, second, true))
        return false;
    show(out->first, sizeof out->first, first);
    show(out->second, sizeof out->second, second);
    return true;
}

enum status eval_difference_find(struct eval_difference *out, const char *first, const char *second,
                                 struct status_why *why)
{
    *out = (struct eval_difference){0};
    cJSON *a, *b = NULL;
    enum status status = base_json_parse(&a, first, strlen(first), NULL, why);
    if (!status)
        status = base_json_parse(&b, second, strlen(second), NULL, why);
    if (status == STATUS_FORMAT)
        status_fail(why, status, "settings that are no JSON");
    if (!status && !differ(out, a, b))
        out->name[0] = '\0';
    else if (!status && !out->name[0])
        snprintf(out->name, sizeof out->name, "document");
    make_printable(out->name);
    make_printable(out->first);
    make_printable(out->second);
    cJSON_Delete(a);
    cJSON_Delete(b);
    return status;
}

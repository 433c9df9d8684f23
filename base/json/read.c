#include "base/json/read.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/parse.h"
#include "base/text/quote.h"
#include "base/text/words.h"

struct base_field base_json_root(struct base_json_reader *reader)
{
    return (struct base_field){reader, reader->root, 0};
}

struct base_field base_json_open(struct base_json_reader *r, const char *bytes, size_t n_bytes)
{
    size_t at = 0;
    struct status_why why = {""};
    struct base_field nothing = {r, NULL, 0};
    enum status status = STATUS_FORMAT;
    const char *nul = base_json_find_nul(bytes, n_bytes);
    if (nul) {
        base_field_fail(nothing, STATUS_FORMAT,
                        "has the character U+0000 at byte %zu, where its texts would end",
                        (size_t)(nul - bytes));
        return nothing;
    }
    status = base_json_parse(&r->root, bytes, n_bytes, &at, &why);
    while (r->root && at < n_bytes && base_json_is_blank(bytes[at]))
        at++;
    if (status && status != STATUS_FORMAT)
        base_field_fail(nothing, status, "%s", why.text);
    else if (status)
        base_field_fail(nothing, status, "is no JSON from byte %zu on", at);
    else if (at < n_bytes)
        base_field_fail(nothing, STATUS_FORMAT, "goes on after its JSON, from byte %zu on", at);
    else if (!cJSON_IsObject(r->root))
        base_field_fail(nothing, STATUS_FORMAT, "is no JSON object");
    return r->status ? nothing : base_json_root(r);
}

void base_json_close(struct base_json_reader *reader)
{
    cJSON_Delete(reader->root);
    *reader = (struct base_json_reader){0};
}

enum status base_json_status(const struct base_json_reader *reader, struct status_why *why)
{
    return reader->status ? status_fail(why, reader->status, "%s", reader->why.text) : STATUS_OK;
}

enum status base_json_keep(struct base_json_reader *reader, enum status status,
                           const struct status_why *why)
{
    if (status && !reader->status)
        reader->status = status_fail(&reader->why, status, "%s", why->text);
    return reader->status;
}

/** Write what leads from `from` to `to` at the end of a path. False: it is not in there. Recursion:
 * the parser has a limit. */
static bool find_path(struct base_field_path *path, const cJSON *from, const cJSON *to)
{
    size_t n = strlen(path->text), room = sizeof path->text - n, index = 0;
    if (from == to)
        return true;
    for (const cJSON *item = from ? from->child : NULL; item; item = item->next, index++) {
        if (cJSON_IsArray(from)) /* an element that was put there may keep a name of its own */
            snprintf(path->text + n, room, "[%zu]", index);
        else
            snprintf(path->text + n, room, "%s%.40s", n ? "." : "",
                     item->string ? item->string : "");
        if (find_path(path, item, to))
            return true;
    }
    path->text[n] = '\0';
    return false;
}

const char *base_field_path(struct base_field_path *path, struct base_field at)
{
    path->text[0] = '\0';
    if (!find_path(path, at.reader->root, at.json) && at.json && at.json->string)
        snprintf(path->text, sizeof path->text, "%.40s", at.json->string); /* in no document */
    return path->text;
}

const char *base_field_show(struct base_field_shown *shown, struct base_field at)
{
    const cJSON *v = at.json;
    struct base_quoted quoted;
    if (cJSON_IsNumber(v)) {
        snprintf(shown->text, sizeof shown->text, "%.15g", v->valuedouble);
        if (strtod(shown->text, NULL) != v->valuedouble)
            snprintf(shown->text, sizeof shown->text, "%.17g", v->valuedouble);
    } else if (v && v->valuestring) {
        const struct base_string bytes = {v->valuestring, strlen(v->valuestring)};
        base_quote(&quoted, bytes);
        memcpy(shown->text, quoted.text, sizeof quoted.text);
    } else {
        snprintf(shown->text, sizeof shown->text, "%s",
                 !v                 ? "missing"
                 : cJSON_IsNull(v)  ? "null"
                 : cJSON_IsTrue(v)  ? "true"
                 : cJSON_IsFalse(v) ? "false"
                 : cJSON_IsArray(v) ? "a list"
                                    : "an object");
    }
    return shown->text;
}

/** Keep a failure of a member of `from`; name: what is left of its path, which may be "". */
__attribute__((format(printf, 4, 0))) static void fail_at(struct base_field from, const char *name,
                                                          enum status status, const char *format,
                                                          va_list arguments)
{
    struct base_json_reader *r = from.reader;
    struct base_field_path path;
    char text[sizeof r->why.text];
    if (r->status || !status)
        return;
    vsnprintf(text, sizeof text, format, arguments);
    base_field_path(&path, from);
    r->status = status_fail(&r->why, status, "%s%s%s%s%s%s%s", r->file ? r->file : "",
                            r->file ? ": " : "", path.text, *path.text && *name ? "." : "", name,
                            *path.text || *name ? " " : "", text);
}

void base_field_fail(struct base_field at, enum status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail_at(at, "", status, format, arguments);
    va_end(arguments);
}

/** The member whose name is the first n bytes of `name`. */
static const cJSON *member(const cJSON *object, const char *name, size_t n)
{
    const cJSON *item = cJSON_IsObject(object) ? object->child : NULL;
    while (item && (strlen(item->string) != n || memcmp(item->string, name, n) != 0))
        item = item->next;
    return item;
}

/** Walk down a path. deepest: what was reached. Returns what is left of the path. */
static const char *walk(struct base_field *deepest, struct base_field from, const char *path)
{
    *deepest = from;
    while (*path) {
        size_t n = strcspn(path, ".");
        const cJSON *next = member(deepest->json, path, n);
        if (!next)
            return path;
        deepest->json = next;
        path += n + (path[n] == '.');
    }
    return path;
}

const cJSON *base_json_member(const cJSON *from, const char *path)
{
    struct base_field found = {NULL, from, 0};
    return *walk(&found, found, path) ? NULL : found.json;
}

void base_field_fail_member(struct base_field from, const char *path, enum status status,
                            const char *format, ...)
{
    struct base_field deepest;
    const char *left = walk(&deepest, from, path);
    va_list arguments;
    va_start(arguments, format);
    fail_at(deepest, left, status, format, arguments);
    va_end(arguments);
}

struct base_field base_field_get(struct base_field from, const char *path)
{
    return (struct base_field){from.reader, base_json_member(from.json, path), 0};
}

struct base_field base_field_find(struct base_field from, const char *path)
{
    struct base_field found = base_field_get(from, path);
    if (cJSON_IsNull(found.json))
        found.json = NULL;
    return found;
}

/** Fail a member, which is none or another one than expected. */
static void refuse_as(struct base_field from, const char *path, enum status status,
                      const char *expected)
{
    struct base_field found = base_field_get(from, path);
    struct base_json_reader *r = from.reader;
    struct base_field_shown shown;
    enum status code = r->code ? r->code : status;
    if (!found.json && r->missing)
        base_field_fail_member(from, path, code, "is missing; %s", r->missing);
    else
        base_field_fail_member(from, path, code, "is %s, expected %s",
                               base_field_show(&shown, found), expected);
}

void base_field_refuse(struct base_field from, const char *path, const char *expected)
{
    refuse_as(from, path, STATUS_FORMAT, expected);
}

struct base_field base_field_need(struct base_field from, const char *path)
{
    struct base_field found = base_field_get(from, path);
    if (!found.json)
        base_field_refuse(from, path, "a value");
    return found;
}

/** Whether a member counts as absent where one may be. */
static bool is_absent(struct base_field from, const char *path)
{
    return !base_field_find(from, path).json;
}

const char *base_field_text(struct base_field from, const char *path)
{
    const cJSON *found = base_field_get(from, path).json;
    if (cJSON_IsString(found))
        return found->valuestring;
    base_field_refuse(from, path, "a text");
    return "";
}

const char *base_field_text_or(struct base_field from, const char *path, const char *fallback)
{
    return is_absent(from, path) ? fallback : base_field_text(from, path);
}

bool base_field_flag(struct base_field from, const char *path)
{
    const cJSON *found = base_field_get(from, path).json;
    if (!cJSON_IsBool(found))
        base_field_refuse(from, path, "true or false");
    return cJSON_IsTrue(found);
}

bool base_field_flag_or(struct base_field from, const char *path, bool fallback)
{
    return is_absent(from, path) ? fallback : base_field_flag(from, path);
}

/** A number that was read, or one that base/json/build.h put there, as its digits; else NaN. */
static double number_of(const cJSON *value)
{
    return cJSON_IsNumber(value) ? value->valuedouble
           : cJSON_IsRaw(value)  ? strtod(value->valuestring, NULL)
                                 : (double)NAN;
}

/** A finite number, or NaN and a failure. */
static double take_real(struct base_field from, const char *path, const char *expected)
{
    double value = number_of(base_field_get(from, path).json);
    if (isfinite(value))
        return value;
    base_field_refuse(from, path, expected);
    return (double)NAN;
}

double base_field_real(struct base_field from, const char *path)
{
    double value = take_real(from, path, "a number");
    return isnan(value) ? 0 : value;
}

double base_field_real_or(struct base_field from, const char *path, double fallback)
{
    return is_absent(from, path) ? fallback : base_field_real(from, path);
}

double base_field_real_or_null(struct base_field from, const char *path)
{
    return cJSON_IsNull(base_field_get(from, path).json)
               ? (double)NAN
               : take_real(from, path, "a finite number, or null");
}

/** Large bounds are powers of two, or one less. */
static void refuse_uint(struct base_field from, const char *path, uint64_t most)
{
    char expected[64];
    snprintf(expected, sizeof expected, "a whole number from 0 to %" PRIu64, most);
    for (int power = 17; power < 64; power++) {
        uint64_t bound = UINT64_C(1) << power;
        if (most == bound || most == bound - 1)
            snprintf(expected, sizeof expected, "a whole number from 0 to 2^%d%s", power,
                     most < bound ? " - 1" : "");
    }
    base_field_refuse(from, path, expected);
}

uint64_t base_field_uint(struct base_field from, const char *path, uint64_t most)
{
    double value = number_of(base_field_get(from, path).json);
    if (value >= 0 && value <= (double)most && !(floor(value) < value))
        return (uint64_t)value;
    refuse_uint(from, path, most);
    return 0;
}

uint64_t base_field_uint_or(struct base_field from, const char *path, uint64_t most,
                            uint64_t fallback)
{
    return is_absent(from, path) ? fallback : base_field_uint(from, path, most);
}

int base_field_word_or(struct base_field from, const char *path, const char *words, int fallback)
{
    return is_absent(from, path) ? fallback : base_field_word(from, path, words);
}

int base_field_word(struct base_field from, const char *path, const char *words)
{
    const cJSON *found = base_field_get(from, path).json;
    int index = cJSON_IsString(found) ? base_words_index(words, found->valuestring) : -1;
    char expected[512];
    if (index >= 0)
        return index;
    snprintf(expected, sizeof expected, "one of %s", words);
    refuse_as(from, path, cJSON_IsString(found) ? STATUS_UNSUPPORTED : STATUS_FORMAT, expected);
    return 0;
}

/* A list or an object. needed: it must be there. */
static struct base_field nested(struct base_field from, const char *path, bool is_list, bool needed)
{
    struct base_field found = base_field_get(from, path);
    bool is_right = is_list ? cJSON_IsArray(found.json) : cJSON_IsObject(found.json);
    if (is_right)
        return found;
    if (needed || !is_absent(from, path))
        base_field_refuse(from, path, is_list ? "a list" : "an object");
    return (struct base_field){from.reader, NULL, 0};
}

struct base_field base_field_list(struct base_field from, const char *path)
{
    return nested(from, path, true, true);
}

struct base_field base_field_list_or_none(struct base_field from, const char *path)
{
    return nested(from, path, true, false);
}

struct base_field base_field_object(struct base_field from, const char *path)
{
    return nested(from, path, false, true);
}

struct base_field base_field_object_or_none(struct base_field from, const char *path)
{
    return nested(from, path, false, false);
}

bool base_field_next(struct base_field list, struct base_field *item)
{
    bool nests = cJSON_IsArray(list.json) || cJSON_IsObject(list.json);
    bool first = !item->json;
    const cJSON *next = !first ? item->json->next : nests ? list.json->child : NULL;
    *item = (struct base_field){list.reader, next, first ? 0 : item->index + 1};
    return next != NULL;
}

size_t base_field_count(struct base_field list)
{
    bool nests = cJSON_IsArray(list.json) || cJSON_IsObject(list.json);
    return nests ? (size_t)cJSON_GetArraySize(list.json) : 0;
}

const char *base_field_string(struct base_field from, const char *path)
{
    return cJSON_GetStringValue(base_field_get(from, path).json);
}

bool base_field_is(struct base_field at, const char *text)
{
    return cJSON_IsString(at.json) && strcmp(at.json->valuestring, text) == 0;
}

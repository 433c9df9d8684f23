#include "model/template/value/value_json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/text/utf8.h"
#include "model/template/value/value_text.h"

struct reader {
    struct jinja_run *r;
    const char *at, *end; /* of the text: the numbers before have been read */
};

static struct jinja_value read_value(struct reader *j, const cJSON *item);

static struct jinja_value read_string(struct reader *j, const char *text)
{
    struct base_string s = {text, strlen(text)};
    jinja_work(j->r, s.n_bytes / 16);
    if (base_utf8_first_bad(s.data, s.n_bytes) < s.n_bytes)
        return JINJA_FAIL(j->r, STATUS_FORMAT, "no JSON: expected UTF-8");
    return jinja_string(s.data, s.n_bytes);
}

/* The next number of the text, where numbers stand in the order of their values. cJSON has it as a
 * double only. */
static struct jinja_value read_number(struct reader *j)
{
    for (bool in_string = false; j->at < j->end; j->at++) {
        if (!in_string && (*j->at == '-' || (*j->at >= '0' && *j->at <= '9')))
            break;
        if (*j->at == '"')
            in_string = !in_string;
        else if (in_string && *j->at == '\\')
            j->at++;
    }
    const char *text = j->at;
    size_t n = strspn(text, "0123456789+-.eE"); /* a comma or bracket ends it */
    j->at += n;
    if (memchr(text, '.', n) || memchr(text, 'e', n) || memchr(text, 'E', n))
        return jinja_real(strtod(text, NULL));
    errno = 0;
    int64_t integer = strtoll(text, NULL, 10);
    if (errno)
        return JINJA_FAIL(j->r, STATUS_UNSUPPORTED, "the number %.*s is beyond 64 bits",
                          (int)base_min(n, 40), text);
    return jinja_int(integer);
}

static struct jinja_value read_list(struct reader *j, const cJSON *list)
{
    struct jinja_items items = {0};
    for (const cJSON *item = list->child; item && !j->r->status; item = item->next)
        jinja_append(j->r, &items, read_value(j, item));
    return jinja_of_items(&items);
}

static struct jinja_value read_object(struct reader *j, const cJSON *object)
{
    struct jinja_dict *dict = jinja_alloc(j->r, 1, sizeof *dict);
    for (const cJSON *item = object->child; item && !j->r->status; item = item->next) {
        struct jinja_value key = read_string(j, item->string), value = read_value(j, item);
        if (!j->r->status)
            jinja_dict_set(j->r, dict, key, value);
    }
    return j->r->status ? jinja_absent() : (struct jinja_value){.kind = JINJA_DICT, .dict = dict};
}

static struct jinja_value read_value(struct reader *j, const cJSON *item)
{
    struct jinja_value value = jinja_absent();
    if (jinja_enter(j->r, j->r->line))
        value = cJSON_IsObject(item)   ? read_object(j, item)
                : cJSON_IsArray(item)  ? read_list(j, item)
                : cJSON_IsString(item) ? read_string(j, item->valuestring)
                : cJSON_IsNumber(item) ? read_number(j)
                : cJSON_IsBool(item)
                    ? (struct jinja_value){.kind = JINJA_BOOL, .truth = cJSON_IsTrue(item)}
                    : (struct jinja_value){.kind = JINJA_NONE};
    jinja_leave(j->r);
    return value;
}

struct jinja_value jinja_of_json(struct jinja_run *r, const cJSON *object, struct base_string text)
{
    return read_value(&(struct reader){r, text.data, text.data + text.n_bytes}, object);
}

static void put_string(struct jinja_run *r, struct jinja_buffer *b, struct base_string s,
                       bool ascii)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    jinja_put(r, b, "\"", 1);
    for (size_t i = 0, n; i < s.n_bytes && !r->status; i += n) {
        char escape[16] = "";
        uint32_t c;
        n = jinja_next(s, i, &c);
        const char *found = c && c < 0x80 ? strchr(from, (int)c) : NULL;
        if (found)
            snprintf(escape, sizeof escape, "\\%c", to[found - from]);
        else if (c < 0x20 || (ascii && c >= 0x7F && c < 0x10000 && c != 0x7F))
            snprintf(escape, sizeof escape, "\\u%04" PRIx32, c);
        else if (ascii && c >= 0x10000)
            snprintf(escape, sizeof escape, "\\u%04" PRIx32 "\\u%04" PRIx32,
                     0xD800 + ((c - 0x10000) >> 10), 0xDC00 + ((c - 0x10000) & 0x3FF));
        if (*escape)
            jinja_put(r, b, escape, strlen(escape));
        else
            jinja_put(r, b, s.data + i, n);
    }
    jinja_put(r, b, "\"", 1);
}

/* What stands between items: the separator, and a new line of this depth. */
static void put_gap(struct jinja_run *r, struct jinja_buffer *b,
                    const struct jinja_json_style *style, const char *separator, unsigned depth)
{
    if (separator)
        jinja_put(r, b, separator, strlen(separator));
    else
        jinja_put_string(r, b, style->item);
    if (style->lines)
        jinja_put(r, b, "\n", 1);
    for (; style->lines && depth > 0; depth--)
        jinja_put_string(r, b, style->indent);
}

static void put_json(struct jinja_run *r, struct jinja_buffer *b, const struct jinja_value *v,
                     const struct jinja_json_style *style, unsigned depth);

/* A key: what Python's json makes names of. */
static void put_key(struct jinja_run *r, struct jinja_buffer *b, const struct jinja_value *key,
                    const struct jinja_json_style *style)
{
    struct jinja_buffer text = {0};
    if (key->kind == JINJA_STRING)
        jinja_put_string(r, &text, key->string);
    else if (key->kind == JINJA_LIST || key->kind == JINJA_TUPLE || key->kind == JINJA_DICT)
        jinja_fail(r, STATUS_FORMAT, "%s is no name in JSON", jinja_kind_name(key));
    else
        put_json(r, &text, key, style, 0);
    put_string(r, b, jinja_of_buffer(&text).string, style->ascii);
    jinja_put_string(r, b, style->key);
}

static void put_items(struct jinja_run *r, struct jinja_buffer *b, const struct jinja_value *v,
                      const struct jinja_json_style *style, unsigned depth)
{
    for (size_t i = 0; i < v->n && !r->status; i++) {
        put_gap(r, b, style, i ? NULL : "[", depth + 1);
        put_json(r, b, &v->items[i], style, depth + 1);
    }
    put_gap(r, b, style, "", depth);
    jinja_put(r, b, "]", 1);
}

static void put_pairs(struct jinja_run *r, struct jinja_buffer *b, const struct jinja_dict *dict,
                      const struct jinja_json_style *style, unsigned depth)
{
    struct jinja_pair *pairs = jinja_alloc(r, dict->n, sizeof *pairs);
    if (!pairs)
        return;
    memcpy(pairs, dict->pairs, dict->n * sizeof *pairs);
    if (style->sorted)
        jinja_sort_pairs(r, pairs, dict->n, false);
    for (size_t i = 0; i < dict->n && !r->status; i++) {
        put_gap(r, b, style, i ? NULL : "{", depth + 1);
        put_key(r, b, &pairs[i].key, style);
        put_json(r, b, &pairs[i].value, style, depth + 1);
    }
    put_gap(r, b, style, "", depth);
    jinja_put(r, b, "}", 1);
}

static void put_real(struct jinja_run *r, struct jinja_buffer *b, double real)
{
    const char *name = isnan(real) ? "NaN" : real < 0 ? "-Infinity" : "Infinity";
    if (isfinite(real))
        jinja_put_real(r, b, real);
    else
        jinja_put(r, b, name, strlen(name));
}

static void put_json(struct jinja_run *r, struct jinja_buffer *b, const struct jinja_value *v,
                     const struct jinja_json_style *style, unsigned depth)
{
    if (jinja_enter(r, r->line)) {
        bool is_list = v->kind == JINJA_LIST || v->kind == JINJA_TUPLE;
        if (v->kind == JINJA_STRING)
            put_string(r, b, v->string, style->ascii);
        else if (v->kind == JINJA_REAL)
            put_real(r, b, v->real);
        else if (v->kind == JINJA_INT)
            jinja_put_repr(r, b, v);
        else if (v->kind == JINJA_BOOL)
            jinja_put(r, b, v->truth ? "true" : "false", v->truth ? 4 : 5);
        else if (v->kind == JINJA_NONE)
            jinja_put(r, b, "null", 4);
        else if (v->kind == JINJA_DICT && v->dict->n)
            put_pairs(r, b, v->dict, style, depth);
        else if (is_list && v->n)
            put_items(r, b, v, style, depth);
        else if (is_list || v->kind == JINJA_DICT)
            jinja_put(r, b, is_list ? "[]" : "{}", 2);
        else
            jinja_fail(r, STATUS_FORMAT, "%s cannot be written as JSON", jinja_kind_name(v));
    }
    jinja_leave(r);
}

void jinja_put_json(struct jinja_run *r, struct jinja_buffer *b, const struct jinja_value *v,
                    const struct jinja_json_style *style)
{
    put_json(r, b, v, style, 0);
}

#include "template/value/json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text/utf8.h"
#include "template/value/text.h"

struct reader {
    struct jinja_run *r;
    const char *at, *end;
};

static struct jinja_value read_value(struct reader *j);

static struct jinja_value no_json(struct reader *j, const char *expected)
{
    return JINJA_FAIL(j->r, STATUS_FORMAT, "no JSON: expected %s", expected);
}

static void skip_blanks(struct reader *j)
{
    while (j->at < j->end && (*j->at == ' ' || (*j->at >= '\t' && *j->at <= '\r')))
        j->at++;
}

/* Take the character, if it is next. */
static bool take(struct reader *j, char c)
{
    skip_blanks(j);
    if (j->at == j->end || *j->at != c)
        return false;
    j->at++;
    return true;
}

/* The four digits of \uXXXX. */
static uint32_t read_unit(struct reader *j)
{
    uint32_t unit = 0;
    for (int i = 0; i < 4; i++, j->at++) {
        char c = j->at < j->end ? *j->at : '?';
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16) {
            no_json(j, "four hexadecimal digits after \\u");
            return 0;
        }
        unit = unit * 16 + digit;
    }
    return unit;
}

static void read_code_point(struct reader *j, struct jinja_buffer *out)
{
    char bytes[4];
    uint32_t c = read_unit(j), low;
    if (c >= 0xD800 && c < 0xDC00 && j->end - j->at > 2 && j->at[0] == '\\' && j->at[1] == 'u') {
        j->at += 2;
        low = read_unit(j);
        if (low >= 0xDC00 && low < 0xE000)
            c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    }
    if (c >= 0xD800 && c < 0xE000)
        no_json(j, "both halves of a surrogate pair");
    else
        jinja_put(j->r, out, bytes, base_utf8_encode(c, bytes));
}

static void read_escape(struct reader *j, struct jinja_buffer *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char c = ++j->at < j->end ? *j->at++ : '\0';
    const char *found = c ? strchr(from, c) : NULL;
    if (c == 'u')
        read_code_point(j, out);
    else if (found)
        jinja_put(j->r, out, &to[found - from], 1);
    else
        no_json(j, "a known escape");
}

/* The string after its first quote. */
static struct jinja_value read_string(struct reader *j)
{
    const char *from = j->at;
    struct jinja_buffer out = {0};
    while (j->at < j->end && *j->at != '"' && !j->r->status) {
        const char *plain = j->at;
        while (j->at < j->end && *j->at != '"' && *j->at != '\\')
            j->at++;
        if (out.n_bytes || (j->at < j->end && *j->at == '\\'))
            jinja_put(j->r, &out, plain, (size_t)(j->at - plain));
        if (j->at < j->end && *j->at == '\\')
            read_escape(j, &out);
    }
    if (j->at >= j->end)
        return no_json(j, "a closing quote");
    const char *end = j->at++;
    size_t n_bytes = (size_t)(end - from);
    struct jinja_value string = n_bytes && memchr(from, '\\', n_bytes)
                                    ? jinja_of_buffer(&out)
                                    : jinja_string(from, n_bytes);
    jinja_work(j->r, n_bytes / 16);
    if (base_utf8_first_bad(string.string.data, string.string.n_bytes) < string.string.n_bytes)
        return no_json(j, "UTF-8");
    return string;
}

static struct jinja_value read_number(struct reader *j)
{
    char text[400];
    size_t n = 0;
    bool is_real = false;
    while (j->at < j->end && n + 1 < sizeof text && strchr("0123456789+-.eE", *j->at)) {
        is_real |= strchr(".eE", *j->at) != NULL;
        text[n++] = *j->at++;
    }
    text[n] = '\0';
    char *end = text;
    errno = 0;
    int64_t integer = is_real ? 0 : strtoll(text, &end, 10);
    double real = is_real ? strtod(text, &end) : 0;
    if (n == 0 || *end)
        return no_json(j, "a value");
    if (!is_real && errno)
        return JINJA_FAIL(j->r, STATUS_UNSUPPORTED, "the number %.40s is beyond 64 bits", text);
    return is_real ? jinja_real(real) : jinja_int(integer);
}

static struct jinja_value read_list(struct reader *j)
{
    struct jinja_items items = {0};
    if (!take(j, ']')) {
        do
            jinja_append(j->r, &items, read_value(j));
        while (!j->r->status && take(j, ','));
        if (!j->r->status && !take(j, ']'))
            return no_json(j, "',' or ']'");
    }
    return jinja_of_items(&items);
}

static struct jinja_value read_object(struct reader *j)
{
    struct jinja_dict *dict = jinja_alloc(j->r, 1, sizeof *dict);
    if (dict && !take(j, '}')) {
        do {
            struct jinja_value key = take(j, '"') ? read_string(j) : no_json(j, "a name in quotes");
            if (!j->r->status && !take(j, ':'))
                no_json(j, "':'");
            struct jinja_value value = read_value(j);
            if (!j->r->status)
                jinja_dict_set(j->r, dict, key, value);
        } while (!j->r->status && take(j, ','));
        if (!j->r->status && !take(j, '}'))
            no_json(j, "',' or '}'");
    }
    return j->r->status ? jinja_absent() : (struct jinja_value){.kind = JINJA_DICT, .dict = dict};
}

static struct jinja_value read_word(struct reader *j)
{
    static const struct {
        const char *word;
        struct jinja_value value;
    } words[] = {{"true", {.kind = JINJA_BOOL, .truth = true}},
                 {"false", {.kind = JINJA_BOOL}},
                 {"null", {.kind = JINJA_NONE}}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i].word);
        if ((size_t)(j->end - j->at) >= n && memcmp(j->at, words[i].word, n) == 0) {
            j->at += n;
            return words[i].value;
        }
    }
    return read_number(j);
}

static struct jinja_value read_value(struct reader *j)
{
    struct jinja_value value = jinja_absent();
    if (jinja_enter(j->r, j->r->line))
        value = take(j, '{')   ? read_object(j)
                : take(j, '[') ? read_list(j)
                : take(j, '"') ? read_string(j)
                               : read_word(j);
    jinja_leave(j->r);
    return value;
}

struct jinja_value jinja_parse_json(struct jinja_run *r, struct base_string text)
{
    struct reader j = {r, text.data, text.data + text.n_bytes};
    struct jinja_value value = read_value(&j);
    skip_blanks(&j);
    return j.at < j.end ? no_json(&j, "nothing after the value") : value;
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

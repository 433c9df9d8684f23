#include "model/chat/value/value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/text/utf8.h"
#include "model/chat/value/text.h"

const char *model_chat_kind_name(const struct chat_value *v)
{
    static const char *const names[] = {
        [CHAT_ABSENT] = "nothing",
        [CHAT_UNDEFINED] = "an undefined value",
        [CHAT_NONE] = "none",
        [CHAT_BOOL] = "a boolean",
        [CHAT_INT] = "an integer",
        [CHAT_REAL] = "a float",
        [CHAT_STRING] = "a string",
        [CHAT_LIST] = "a list",
        [CHAT_TUPLE] = "a tuple",
        [CHAT_DICT] = "a mapping",
        [CHAT_NAMESPACE] = "a namespace",
        [CHAT_LOOP] = "a loop",
        [CHAT_FUNCTION] = "a function",
        [CHAT_MACRO] = "a macro",
    };
    return names[v->kind];
}

bool model_chat_truth(const struct chat_value *v)
{
    switch (v->kind) {
    case CHAT_BOOL:
        return v->truth;
    case CHAT_INT:
        return v->integer != 0;
    case CHAT_REAL:
        return v->real != 0;
    case CHAT_STRING:
        return v->string.n_bytes > 0;
    case CHAT_LIST:
    case CHAT_TUPLE:
        return v->n > 0;
    case CHAT_DICT:
        return v->dict->n > 0;
    default:
        return v->kind > CHAT_NONE;
    }
}

bool model_chat_integer(const struct chat_value *v, int64_t *integer)
{
    *integer = v->kind == CHAT_BOOL ? v->truth : v->integer;
    return v->kind == CHAT_BOOL || v->kind == CHAT_INT;
}

bool model_chat_number(const struct chat_value *v, double *number)
{
    int64_t integer;
    *number = v->real;
    if (model_chat_integer(v, &integer)) {
        *number = (double)integer;
        return true;
    }
    return v->kind == CHAT_REAL;
}

static bool dicts_equal(struct chat_run *r, const struct chat_dict *a, const struct chat_dict *b)
{
    bool equal = a->n == b->n;
    for (size_t i = 0; i < a->n && equal && !r->status; i++) {
        const struct chat_value *other = model_chat_dict_get(r, b, &a->pairs[i].key);
        equal = other && model_chat_equal(r, &a->pairs[i].value, other);
    }
    return equal;
}

static bool lists_equal(struct chat_run *r, const struct chat_value *a, const struct chat_value *b)
{
    bool equal = a->n == b->n;
    for (size_t i = 0; i < a->n && equal && !r->status; i++) {
        model_chat_work(r, 1);
        equal = model_chat_equal(r, &a->items[i], &b->items[i]);
    }
    return equal;
}

bool model_chat_equal(struct chat_run *r, const struct chat_value *a, const struct chat_value *b)
{
    double x, y;
    int64_t i, j;
    if (model_chat_integer(a, &i) && model_chat_integer(b, &j))
        return i == j;
    if (model_chat_number(a, &x) && model_chat_number(b, &y))
        return x == y;
    if (a->kind != b->kind)
        return false;
    bool equal = false;
    if (model_chat_enter(r, r->line)) {
        if (a->kind == CHAT_STRING) {
            model_chat_work(r, a->string.n_bytes / 16);
            equal = chat_same(a->string, b->string);
        } else if (a->kind == CHAT_LIST || a->kind == CHAT_TUPLE) {
            equal = lists_equal(r, a, b);
        } else if (a->kind == CHAT_DICT) {
            equal = dicts_equal(r, a->dict, b->dict);
        } else if (a->kind >= CHAT_NAMESPACE) {
            equal = a->dict == b->dict; /* the same object: all are pointers */
        } else {
            equal = true; /* none, undefined */
        }
    }
    model_chat_leave(r);
    return equal;
}

static int compare_lists(struct chat_run *r, const struct chat_value *a, const struct chat_value *b)
{
    model_chat_work(r, base_min(a->n, b->n));
    for (size_t i = 0; i < base_min(a->n, b->n) && !r->status; i++)
        if (!model_chat_equal(r, &a->items[i], &b->items[i]))
            return model_chat_compare(r, &a->items[i], &b->items[i]);
    return (a->n > b->n) - (a->n < b->n);
}

int model_chat_compare(struct chat_run *r, const struct chat_value *a, const struct chat_value *b)
{
    double x, y;
    int64_t i, j;
    int order = 0;
    if (model_chat_integer(a, &i) && model_chat_integer(b, &j))
        return (i > j) - (i < j);
    if (model_chat_number(a, &x) && model_chat_number(b, &y))
        return (x > y) - (x < y);
    if (model_chat_enter(r, r->line)) {
        if (a->kind == CHAT_STRING && b->kind == CHAT_STRING) {
            size_t n = base_min(a->string.n_bytes, b->string.n_bytes);
            model_chat_work(r, n / 16);
            order = n ? memcmp(a->string.data, b->string.data, n) : 0;
            if (order == 0)
                order = (a->string.n_bytes > b->string.n_bytes) -
                        (a->string.n_bytes < b->string.n_bytes);
        } else if (a->kind == b->kind && (a->kind == CHAT_LIST || a->kind == CHAT_TUPLE)) {
            order = compare_lists(r, a, b);
        } else {
            model_chat_fail(r, STATUS_FORMAT, "%s and %s have no order", model_chat_kind_name(a),
                            model_chat_kind_name(b));
        }
    }
    model_chat_leave(r);
    return order;
}

enum { REAL_STEPS = 50 }; /* what spelling a number takes */

/* The shortest digits that are read back as the number, as Python shows it: a point always. */
void model_chat_put_real(struct chat_run *r, struct chat_buffer *b, double real)
{
    char digits[40], text[48];
    if (isnan(real) || isinf(real)) {
        const char *name = isnan(real) ? "nan" : real < 0 ? "-inf" : "inf";
        model_chat_put(r, b, name, strlen(name));
        return;
    }
    int precision = 0;
    model_chat_work(r, REAL_STEPS);
    do
        snprintf(digits, sizeof digits, "%.*e", precision, real);
    while (strtod(digits, NULL) != real && ++precision < 17);
    int exponent = (int)strtol(strchr(digits, 'e') + 1, NULL, 10);
    if (exponent < -4 || exponent >= 16)
        snprintf(text, sizeof text, "%s", digits);
    else
        snprintf(text, sizeof text, "%.*f", precision > exponent ? precision - exponent : 1, real);
    model_chat_put(r, b, text, strlen(text));
}

/* Characters that repr() writes as an escape: those that are not printable. Code points that are
 * not assigned are, too, but not here. */
static bool is_hidden(uint32_t c)
{
    static const uint32_t ranges[][2] = {
        {0, 0x1F},          {0x7F, 0xA0},       {0xAD, 0xAD},       {0x600, 0x605},
        {0x61C, 0x61C},     {0x6DD, 0x6DD},     {0x70F, 0x70F},     {0x890, 0x891},
        {0x8E2, 0x8E2},     {0x1680, 0x1680},   {0x180E, 0x180E},   {0x2000, 0x200F},
        {0x2028, 0x202F},   {0x205F, 0x206F},   {0x3000, 0x3000},   {0xD800, 0xF8FF},
        {0xFEFF, 0xFEFF},   {0xFFF9, 0xFFFB},   {0x110BD, 0x110BD}, {0x110CD, 0x110CD},
        {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
        {0xF0000, 0x10FFFF}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1])
            return true;
    return false;
}

static void put_quoted(struct chat_run *r, struct chat_buffer *b, struct base_string s)
{
    bool has_single = s.n_bytes && memchr(s.data, '\'', s.n_bytes);
    char quote = has_single && !memchr(s.data, '"', s.n_bytes) ? '"' : '\'';
    model_chat_put(r, b, &quote, 1);
    for (size_t i = 0, n; i < s.n_bytes && !r->status; i += n) {
        uint32_t c;
        char escape[16] = "";
        n = model_chat_next(s, i, &c);
        if (c == (uint32_t)quote || c == '\\')
            snprintf(escape, sizeof escape, "\\%c", (int)c);
        else if (c == '\n' || c == '\r' || c == '\t')
            snprintf(escape, sizeof escape, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
        else if (is_hidden(c))
            snprintf(escape, sizeof escape,
                     c < 0x100     ? "\\x%02" PRIx32
                     : c < 0x10000 ? "\\u%04" PRIx32
                                   : "\\U%08" PRIx32,
                     c);
        if (*escape)
            model_chat_put(r, b, escape, strlen(escape));
        else
            model_chat_put(r, b, s.data + i, n);
    }
    model_chat_put(r, b, &quote, 1);
}

static void put_items(struct chat_run *r, struct chat_buffer *b, const struct chat_value *v)
{
    bool is_list = v->kind == CHAT_LIST;
    model_chat_put(r, b, is_list ? "[" : "(", 1);
    for (size_t i = 0; i < v->n && !r->status; i++) {
        model_chat_put(r, b, ", ", i ? 2 : 0);
        model_chat_put_repr(r, b, &v->items[i]);
    }
    model_chat_put(r, b, ",", !is_list && v->n == 1);
    model_chat_put(r, b, is_list ? "]" : ")", 1);
}

static void put_pairs(struct chat_run *r, struct chat_buffer *b, const struct chat_dict *dict)
{
    model_chat_put(r, b, "{", 1);
    for (size_t i = 0; i < dict->n && !r->status; i++) {
        model_chat_put(r, b, ", ", i ? 2 : 0);
        model_chat_put_repr(r, b, &dict->pairs[i].key);
        model_chat_put(r, b, ": ", 2);
        model_chat_put_repr(r, b, &dict->pairs[i].value);
    }
    model_chat_put(r, b, "}", 1);
}

void model_chat_put_value(struct chat_run *r, struct chat_buffer *b, const struct chat_value *v)
{
    if (v->kind == CHAT_STRING)
        model_chat_put_string(r, b, v->string);
    else if (v->kind != CHAT_UNDEFINED)
        model_chat_put_repr(r, b, v);
}

void model_chat_put_repr(struct chat_run *r, struct chat_buffer *b, const struct chat_value *v)
{
    char text[32] = "";
    if (model_chat_enter(r, r->line)) {
        switch (v->kind) {
        case CHAT_UNDEFINED:
            snprintf(text, sizeof text, "Undefined");
            break;
        case CHAT_NONE:
            snprintf(text, sizeof text, "None");
            break;
        case CHAT_BOOL:
            snprintf(text, sizeof text, v->truth ? "True" : "False");
            break;
        case CHAT_INT:
            snprintf(text, sizeof text, "%" PRId64, v->integer);
            break;
        case CHAT_REAL:
            model_chat_put_real(r, b, v->real);
            break;
        case CHAT_STRING:
            if (v->safe)
                model_chat_fail(r, STATUS_UNSUPPORTED, "the spelling of a string that is safe");
            put_quoted(r, b, v->string);
            break;
        case CHAT_LIST:
        case CHAT_TUPLE:
            put_items(r, b, v);
            break;
        case CHAT_DICT:
            put_pairs(r, b, v->dict);
            break;
        default:
            model_chat_fail(r, STATUS_UNSUPPORTED, "%s cannot be shown as text",
                            model_chat_kind_name(v));
        }
        model_chat_put(r, b, text, strlen(text));
    }
    model_chat_leave(r);
}

struct chat_value model_chat_str(struct chat_run *r, const struct chat_value *v)
{
    if (v->kind == CHAT_STRING)
        return *v;
    struct chat_buffer buffer = {0};
    model_chat_put_value(r, &buffer, v);
    return chat_of_buffer(&buffer);
}

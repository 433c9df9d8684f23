/* Values as Python shows them: str() and repr(). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/template/value/value_text.h"

enum { REAL_STEPS = 50 }; /* what spelling a number takes */

/* The shortest digits that are read back as the number, as Python shows it: a point always. */
void jinja_put_real(struct jinja_run *r, struct jinja_buffer *b, double real)
{
    char digits[40], text[48];
    if (isnan(real) || isinf(real)) {
        const char *name = isnan(real) ? "nan" : real < 0 ? "-inf" : "inf";
        jinja_put(r, b, name, strlen(name));
        return;
    }
    int precision = 0;
    jinja_work(r, REAL_STEPS);
    do
        snprintf(digits, sizeof digits, "%.*e", precision, real);
    while (strtod(digits, NULL) != real && ++precision < 17);
    int exponent = (int)strtol(strchr(digits, 'e') + 1, NULL, 10);
    if (exponent < -4 || exponent >= 16)
        snprintf(text, sizeof text, "%s", digits);
    else
        snprintf(text, sizeof text, "%.*f", precision > exponent ? precision - exponent : 1, real);
    jinja_put(r, b, text, strlen(text));
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

static void put_quoted(struct jinja_run *r, struct jinja_buffer *b, struct base_string s)
{
    bool has_single = s.n_bytes && memchr(s.data, '\'', s.n_bytes);
    char quote = has_single && !memchr(s.data, '"', s.n_bytes) ? '"' : '\'';
    jinja_put(r, b, &quote, 1);
    for (size_t i = 0, n; i < s.n_bytes && !r->status; i += n) {
        uint32_t c;
        char escape[16] = "";
        n = jinja_next(s, i, &c);
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
            jinja_put(r, b, escape, strlen(escape));
        else
            jinja_put(r, b, s.data + i, n);
    }
    jinja_put(r, b, &quote, 1);
}

static void put_items(struct jinja_run *r, struct jinja_buffer *b, const struct jinja_value *v)
{
    bool is_list = v->kind == JINJA_LIST;
    jinja_put(r, b, is_list ? "[" : "(", 1);
    for (size_t i = 0; i < v->n && !r->status; i++) {
        jinja_put(r, b, ", ", i ? 2 : 0);
        jinja_put_repr(r, b, &v->items[i]);
    }
    jinja_put(r, b, ",", !is_list && v->n == 1);
    jinja_put(r, b, is_list ? "]" : ")", 1);
}

static void put_pairs(struct jinja_run *r, struct jinja_buffer *b, const struct jinja_dict *dict)
{
    jinja_put(r, b, "{", 1);
    for (size_t i = 0; i < dict->n && !r->status; i++) {
        jinja_put(r, b, ", ", i ? 2 : 0);
        jinja_put_repr(r, b, &dict->pairs[i].key);
        jinja_put(r, b, ": ", 2);
        jinja_put_repr(r, b, &dict->pairs[i].value);
    }
    jinja_put(r, b, "}", 1);
}

void jinja_put_value(struct jinja_run *r, struct jinja_buffer *b, const struct jinja_value *v)
{
    if (v->kind == JINJA_STRING)
        jinja_put_string(r, b, v->string);
    else if (v->kind != JINJA_UNDEFINED)
        jinja_put_repr(r, b, v);
}

void jinja_put_repr(struct jinja_run *r, struct jinja_buffer *b, const struct jinja_value *v)
{
    char text[32] = "";
    if (jinja_enter(r, r->line)) {
        switch (v->kind) {
        case JINJA_UNDEFINED:
            snprintf(text, sizeof text, "Undefined");
            break;
        case JINJA_NONE:
            snprintf(text, sizeof text, "None");
            break;
        case JINJA_BOOL:
            snprintf(text, sizeof text, v->truth ? "True" : "False");
            break;
        case JINJA_INT:
            snprintf(text, sizeof text, "%" PRId64, v->integer);
            break;
        case JINJA_REAL:
            jinja_put_real(r, b, v->real);
            break;
        case JINJA_STRING:
            if (v->safe)
                jinja_fail(r, STATUS_UNSUPPORTED, "the spelling of a string that is safe");
            put_quoted(r, b, v->string);
            break;
        case JINJA_LIST:
        case JINJA_TUPLE:
            put_items(r, b, v);
            break;
        case JINJA_DICT:
            put_pairs(r, b, v->dict);
            break;
        default:
            jinja_fail(r, STATUS_UNSUPPORTED, "%s cannot be shown as text", jinja_kind_name(v));
        }
        jinja_put(r, b, text, strlen(text));
    }
    jinja_leave(r);
}

struct jinja_value jinja_str(struct jinja_run *r, const struct jinja_value *v)
{
    if (v->kind == JINJA_STRING)
        return *v;
    struct jinja_buffer buffer = {0};
    jinja_put_value(r, &buffer, v);
    return jinja_of_buffer(&buffer);
}

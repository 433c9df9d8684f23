/* Filters of single values; those of lists are in list_filters.c. */
#include <math.h>
#include <stdlib.h>

#include "base/text/quote.h"
#include "model/template/evaluate/evaluate.h"
#include "model/template/value/value_json.h"
#include "model/template/value/value_text.h"

static struct base_string str(struct jinja_run *r, const struct jinja_value *v)
{
    return jinja_str(r, v).string;
}

/* A string made of a safe one is safe. */
static struct jinja_value like(const struct jinja_value *v, struct jinja_value result)
{
    result.safe = v->kind == JINJA_STRING && v->safe;
    return result;
}

struct jinja_value jinja_stripped(struct jinja_run *r, const struct jinja_value *v,
                                  const struct jinja_args *a)
{
    return like(v, jinja_strip(r, str(r, v), &a->v[0], (enum jinja_side)a->which));
}

struct jinja_value jinja_in_case(struct jinja_run *r, const struct jinja_value *v,
                                 const struct jinja_args *a)
{
    return like(v, jinja_case(r, str(r, v), (enum jinja_case)a->which));
}

JINJA_FUNCTION(f_title, v)
{
    return jinja_title(r, str(r, v), "-({[<");
}

JINJA_FUNCTION(f_string, v)
{
    return jinja_str(r, v);
}

JINJA_FUNCTION(f_safe, v)
{
    struct jinja_value result = jinja_str(r, v);
    result.safe = true;
    return result;
}

JINJA_FUNCTION(f_replace, v)
{
    return jinja_replace(r, str(r, v), str(r, &a->v[0]), str(r, &a->v[1]),
                         a->v[2].kind == JINJA_NONE ? -1 : jinja_integer_argument(r, &a->v[2], -1));
}

JINJA_FUNCTION(f_format, v)
{
    struct jinja_value tuple = {.kind = JINJA_TUPLE, .items = a->v, .n = a->n};
    if (a->named.n || (v->kind == JINJA_STRING && v->safe))
        return JINJA_FAIL(r, STATUS_UNSUPPORTED, "'format' with names, or of a safe string");
    return jinja_percent(r, str(r, v), &tuple);
}

JINJA_FUNCTION(f_indent, v)
{
    struct jinja_buffer out = {0}, by = {0};
    bool first = jinja_truth(&a->v[1]), blank = jinja_truth(&a->v[2]);
    if (v->kind != JINJA_STRING)
        return JINJA_FAIL(r, STATUS_FORMAT, "'indent' of %s", jinja_kind_name(v));
    if (a->v[0].kind == JINJA_STRING)
        jinja_put_string(r, &by, a->v[0].string);
    else
        for (int64_t n = jinja_integer_argument(r, &a->v[0], 4); n > 0 && !r->status; n--)
            jinja_put(r, &by, " ", 1);
    struct jinja_buffer text = {0};
    jinja_put_string(r, &text, str(r, v));
    jinja_put(r, &text, "\n", 1);
    struct jinja_value lines = jinja_lines(r, jinja_of_buffer(&text).string);
    for (size_t i = 0; i < lines.n && !r->status; i++) {
        struct base_string line = lines.items[i].string;
        if (i > 0)
            jinja_put(r, &out, "\n", 1);
        if (i == 0 ? first : blank || line.n_bytes)
            jinja_put(r, &out, by.data, by.n_bytes);
        jinja_put_string(r, &out, line);
    }
    return like(v, jinja_of_buffer(&out));
}

JINJA_FUNCTION(f_default, v)
{
    bool takes = v->kind == JINJA_UNDEFINED || (jinja_truth(&a->v[1]) && !jinja_truth(v));
    return !takes ? *v : a->v[0].kind == JINJA_ABSENT ? jinja_string("", 0) : a->v[0];
}

JINJA_FUNCTION(f_abs, v)
{
    int64_t integer;
    if (v->kind == JINJA_REAL)
        return jinja_real(fabs(v->real));
    if (!jinja_integer(v, &integer) || integer == INT64_MIN)
        return JINJA_FAIL(r, STATUS_FORMAT, "'abs' of %s", jinja_kind_name(v));
    return jinja_int(integer < 0 ? -integer : integer);
}

/* A string as a number, blanks around it allowed; false: it is no number. */
static bool parse_real(struct jinja_run *r, const struct jinja_value *v, double *real)
{
    const struct jinja_value white = jinja_absent();
    struct base_string s = jinja_strip(r, v->string, &white, JINJA_BOTH).string;
    char text[64], *end;
    if (s.n_bytes == 0 || s.n_bytes >= sizeof text || !strchr("+-.0123456789", s.data[0]) ||
        memchr(s.data, 'x', s.n_bytes) || memchr(s.data, 'X', s.n_bytes))
        return false;
    memcpy(text, s.data, s.n_bytes);
    text[s.n_bytes] = '\0';
    *real = strtod(text, &end);
    return !*end;
}

JINJA_FUNCTION(f_int, v)
{
    int64_t integer = 0;
    double real = 0;
    bool known = jinja_number(v, &real) || (v->kind == JINJA_STRING && parse_real(r, v, &real));
    if (jinja_integer(v, &integer))
        return jinja_int(integer);
    if (v->kind == JINJA_UNDEFINED)
        return JINJA_FAIL(r, STATUS_FORMAT, "'int' of an undefined value");
    if (!known || isnan(real))
        return a->v[0].kind == JINJA_ABSENT ? jinja_int(0) : a->v[0];
    if (fabs(real) >= 9007199254740992.0)
        return JINJA_FAIL(r, STATUS_UNSUPPORTED, "'int' of a number beyond 2^53");
    return jinja_int((int64_t)real);
}

JINJA_FUNCTION(f_float, v)
{
    double real = 0;
    if (jinja_number(v, &real) || (v->kind == JINJA_STRING && parse_real(r, v, &real)))
        return jinja_real(real);
    return a->v[0].kind == JINJA_ABSENT ? jinja_real(0) : a->v[0];
}

JINJA_FUNCTION(f_tojson, v)
{
    struct jinja_json_style style = {.ascii = jinja_truth(&a->v[0]),
                                     .sorted = jinja_truth(&a->v[3]),
                                     .item = {", ", 2},
                                     .key = {": ", 2}};
    struct jinja_buffer out = {0}, indent = {0};
    style.lines = jinja_given(&a->v[1]);
    if (style.lines && a->v[1].kind == JINJA_STRING)
        style.indent = a->v[1].string;
    else if (style.lines) {
        for (int64_t n = jinja_integer_argument(r, &a->v[1], 0); n > 0 && !r->status; n--)
            jinja_put(r, &indent, " ", 1);
        style.indent = jinja_of_buffer(&indent).string;
    }
    if (style.lines)
        style.item.n_bytes = 1;
    if (a->v[2].kind == JINJA_LIST || a->v[2].kind == JINJA_TUPLE) {
        if (a->v[2].n != 2)
            return JINJA_FAIL(r, STATUS_FORMAT, "'separators' are two strings");
        style.item = jinja_string_argument(r, &a->v[2].items[0], "");
        style.key = jinja_string_argument(r, &a->v[2].items[1], "");
    }
    jinja_put_json(r, &out, v, &style);
    return jinja_of_buffer(&out);
}

static const struct jinja_row filters[] = {
    {"trim", jinja_stripped, "chars", 0, JINJA_BOTH},
    {"upper", jinja_in_case, "", 0, JINJA_UPPER},
    {"lower", jinja_in_case, "", 0, JINJA_LOWER},
    {"capitalize", jinja_in_case, "", 0, JINJA_CAPITALIZE},
    {"title", f_title, "", 0},
    {"string", f_string, "", 0},
    {"safe", f_safe, "", 0},
    {"replace", f_replace, "old new count", 2},
    {"format", f_format, NULL, 0},
    {"indent", f_indent, "width first blank", 0},
    {"default", f_default, "default_value boolean", 0},
    {"d", f_default, "default_value boolean", 0},
    {"abs", f_abs, "", 0},
    {"int", f_int, "default", 0},
    {"float", f_float, "default", 0},
    {"tojson", f_tojson, "ensure_ascii indent separators sort_keys", 0},
    {0},
};

struct jinja_value jinja_filter(struct jinja_run *r, struct base_string name,
                                const struct jinja_value *v, const struct jinja_args *args)
{
    struct base_quoted quoted;
    const struct jinja_row *row = jinja_find_row(filters, name);
    if (!row)
        row = jinja_find_row(jinja_list_filters, name);
    if (!row)
        return JINJA_FAIL(r, STATUS_UNSUPPORTED, "the filter %s is not supported",
                          base_quote(&quoted, name));
    return jinja_call_row(r, row, v, args);
}

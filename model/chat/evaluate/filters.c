/* Filters of single values; those of lists are in list_filters.c. */
#include <math.h>
#include <stdlib.h>

#include "base/text/quote.h"
#include "model/chat/evaluate/evaluate.h"
#include "model/chat/value/json.h"
#include "model/chat/value/text.h"

static struct base_string str(struct chat_run *r, const struct chat_value *v)
{
    return model_chat_str(r, v).string;
}

/* A string made of a safe one is safe. */
static struct chat_value like(const struct chat_value *v, struct chat_value result)
{
    result.safe = v->kind == CHAT_STRING && v->safe;
    return result;
}

CHAT_FUNCTION(f_trim, v)
{
    return like(v, model_chat_strip(r, str(r, v), &a->v[0], CHAT_BOTH));
}

CHAT_FUNCTION(f_upper, v)
{
    return like(v, model_chat_case(r, str(r, v), CHAT_UPPER));
}

CHAT_FUNCTION(f_lower, v)
{
    return like(v, model_chat_case(r, str(r, v), CHAT_LOWER));
}

CHAT_FUNCTION(f_capitalize, v)
{
    return like(v, model_chat_case(r, str(r, v), CHAT_CAPITALIZE));
}

CHAT_FUNCTION(f_title, v)
{
    return model_chat_title(r, str(r, v), "-({[<");
}

CHAT_FUNCTION(f_string, v)
{
    return model_chat_str(r, v);
}

CHAT_FUNCTION(f_safe, v)
{
    struct chat_value result = model_chat_str(r, v);
    result.safe = true;
    return result;
}

CHAT_FUNCTION(f_replace, v)
{
    return model_chat_replace(
        r, str(r, v), str(r, &a->v[0]), str(r, &a->v[1]),
        a->v[2].kind == CHAT_NONE ? -1 : model_chat_integer_argument(r, &a->v[2], -1));
}

CHAT_FUNCTION(f_format, v)
{
    struct chat_value tuple = {.kind = CHAT_TUPLE, .items = a->v, .n = a->n};
    if (a->named.n || (v->kind == CHAT_STRING && v->safe))
        return CHAT_FAIL(r, STATUS_UNSUPPORTED, "'format' with names, or of a safe string");
    return model_chat_percent(r, str(r, v), &tuple);
}

CHAT_FUNCTION(f_indent, v)
{
    struct chat_buffer out = {0}, by = {0};
    bool first = model_chat_truth(&a->v[1]), blank = model_chat_truth(&a->v[2]);
    if (v->kind != CHAT_STRING)
        return CHAT_FAIL(r, STATUS_FORMAT, "'indent' of %s", model_chat_kind_name(v));
    if (a->v[0].kind == CHAT_STRING)
        model_chat_put_string(r, &by, a->v[0].string);
    else
        for (int64_t n = model_chat_integer_argument(r, &a->v[0], 4); n > 0 && !r->status; n--)
            model_chat_put(r, &by, " ", 1);
    struct chat_buffer text = {0};
    model_chat_put_string(r, &text, str(r, v));
    model_chat_put(r, &text, "\n", 1);
    struct chat_value lines = model_chat_lines(r, chat_of_buffer(&text).string);
    for (size_t i = 0; i < lines.n && !r->status; i++) {
        struct base_string line = lines.items[i].string;
        if (i > 0)
            model_chat_put(r, &out, "\n", 1);
        if (i == 0 ? first : blank || line.n_bytes)
            model_chat_put(r, &out, by.data, by.n_bytes);
        model_chat_put_string(r, &out, line);
    }
    return like(v, chat_of_buffer(&out));
}

CHAT_FUNCTION(f_default, v)
{
    bool takes = v->kind == CHAT_UNDEFINED || (model_chat_truth(&a->v[1]) && !model_chat_truth(v));
    return !takes ? *v : a->v[0].kind == CHAT_ABSENT ? chat_string("", 0) : a->v[0];
}

CHAT_FUNCTION(f_abs, v)
{
    int64_t integer;
    if (v->kind == CHAT_REAL)
        return chat_real(fabs(v->real));
    if (!model_chat_integer(v, &integer) || integer == INT64_MIN)
        return CHAT_FAIL(r, STATUS_FORMAT, "'abs' of %s", model_chat_kind_name(v));
    return chat_int(integer < 0 ? -integer : integer);
}

/* A string as a number, blanks around it allowed; false: it is none. */
static bool parse_real(struct chat_run *r, const struct chat_value *v, double *real)
{
    const struct chat_value white = chat_absent();
    struct base_string s = model_chat_strip(r, v->string, &white, CHAT_BOTH).string;
    char text[64], *end;
    if (s.n_bytes == 0 || s.n_bytes >= sizeof text || !strchr("+-.0123456789", s.data[0]) ||
        memchr(s.data, 'x', s.n_bytes) || memchr(s.data, 'X', s.n_bytes))
        return false;
    memcpy(text, s.data, s.n_bytes);
    text[s.n_bytes] = '\0';
    *real = strtod(text, &end);
    return !*end;
}

CHAT_FUNCTION(f_int, v)
{
    int64_t integer = 0;
    double real = 0;
    bool known = model_chat_number(v, &real) || (v->kind == CHAT_STRING && parse_real(r, v, &real));
    if (model_chat_integer(v, &integer))
        return chat_int(integer);
    if (v->kind == CHAT_UNDEFINED)
        return CHAT_FAIL(r, STATUS_FORMAT, "'int' of an undefined value");
    if (!known || isnan(real))
        return a->v[0].kind == CHAT_ABSENT ? chat_int(0) : a->v[0];
    if (fabs(real) >= 9007199254740992.0)
        return CHAT_FAIL(r, STATUS_UNSUPPORTED, "'int' of a number beyond 2^53");
    return chat_int((int64_t)real);
}

CHAT_FUNCTION(f_float, v)
{
    double real = 0;
    if (model_chat_number(v, &real) || (v->kind == CHAT_STRING && parse_real(r, v, &real)))
        return chat_real(real);
    return a->v[0].kind == CHAT_ABSENT ? chat_real(0) : a->v[0];
}

CHAT_FUNCTION(f_tojson, v)
{
    struct chat_json_style style = {.ascii = model_chat_truth(&a->v[0]),
                                    .sorted = model_chat_truth(&a->v[3]),
                                    .item = {", ", 2},
                                    .key = {": ", 2}};
    struct chat_buffer out = {0}, indent = {0};
    style.lines = a->v[1].kind != CHAT_ABSENT && a->v[1].kind != CHAT_NONE;
    if (style.lines && a->v[1].kind == CHAT_STRING)
        style.indent = a->v[1].string;
    else if (style.lines) {
        for (int64_t n = model_chat_integer_argument(r, &a->v[1], 0); n > 0 && !r->status; n--)
            model_chat_put(r, &indent, " ", 1);
        style.indent = chat_of_buffer(&indent).string;
    }
    if (style.lines)
        style.item.n_bytes = 1;
    if (a->v[2].kind == CHAT_LIST || a->v[2].kind == CHAT_TUPLE) {
        if (a->v[2].n != 2)
            return CHAT_FAIL(r, STATUS_FORMAT, "'separators' are two strings");
        style.item = model_chat_string_argument(r, &a->v[2].items[0], "");
        style.key = model_chat_string_argument(r, &a->v[2].items[1], "");
    }
    model_chat_put_json(r, &out, v, &style);
    return chat_of_buffer(&out);
}

static const struct chat_row filters[] = {
    {"trim", f_trim, "chars", 0},
    {"upper", f_upper, "", 0},
    {"lower", f_lower, "", 0},
    {"capitalize", f_capitalize, "", 0},
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

struct chat_value model_chat_filter(struct chat_run *r, struct base_string name,
                                    const struct chat_value *v, const struct chat_args *args)
{
    struct base_quoted quoted;
    const struct chat_row *row = model_chat_find_row(filters, name);
    if (!row)
        row = model_chat_find_row(model_chat_list_filters, name);
    if (!row)
        return CHAT_FAIL(r, STATUS_UNSUPPORTED, "the filter %s is not supported",
                         base_quote(&quoted, name));
    return model_chat_call_row(r, row, v, args);
}

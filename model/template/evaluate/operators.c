/* Python's operators on values. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/text/quote.h"
#include "model/template/evaluate/evaluate.h"
#include "model/template/value/value_text.h"

static struct jinja_value no_operator(struct jinja_run *r, struct base_string name,
                                      const struct jinja_value *a, const struct jinja_value *b)
{
    struct base_quoted quoted, what;
    if (a->kind == JINJA_UNDEFINED || b->kind == JINJA_UNDEFINED)
        return JINJA_FAIL(r, STATUS_FORMAT, "%s with %s, which is undefined",
                          base_quote(&quoted, name),
                          base_quote(&what, a->kind == JINJA_UNDEFINED ? a->string : b->string));
    return JINJA_FAIL(r, STATUS_FORMAT, "%s of %s and %s", base_quote(&quoted, name),
                      jinja_kind_name(a), jinja_kind_name(b));
}

/* a / b rounded down, and what is left, which has b's sign. */
static struct jinja_value divide(struct jinja_run *r, bool remainder, int64_t a, int64_t b)
{
    if (b == 0 || (a == INT64_MIN && b == -1))
        return JINJA_FAIL(r, STATUS_FORMAT,
                          b ? "the result is beyond 64 bits" : "division by zero");
    int64_t quotient = a / b, rest = a % b;
    if (rest != 0 && (rest < 0) != (b < 0)) {
        quotient--;
        rest += b;
    }
    return jinja_int(remainder ? rest : quotient);
}

static struct jinja_value power(struct jinja_run *r, int64_t a, int64_t b)
{
    int64_t result = 1;
    if (b < 0)
        return jinja_real(pow((double)a, (double)b));
    for (bool overflow = false; b > 0; b--) {
        if (a == 0 || a == 1 || a == -1)
            b = (b - 1) % 2 + 1; /* more of them change nothing */
        overflow = __builtin_mul_overflow(result, a, &result);
        if (overflow)
            return JINJA_FAIL(r, STATUS_UNSUPPORTED, "the result is beyond 64 bits");
    }
    return jinja_int(result);
}

static struct jinja_value of_integers(struct jinja_run *r, struct base_string name, int64_t a,
                                      int64_t b)
{
    int64_t result = 0;
    bool overflow;
    if (jinja_is(name, "**"))
        return power(r, a, b);
    if (jinja_is(name, "//") || jinja_is(name, "%"))
        return divide(r, jinja_is(name, "%"), a, b);
    if (jinja_is(name, "/"))
        return b ? jinja_real((double)a / (double)b)
                 : JINJA_FAIL(r, STATUS_FORMAT, "division by zero");
    overflow = jinja_is(name, "+")   ? __builtin_add_overflow(a, b, &result)
               : jinja_is(name, "-") ? __builtin_sub_overflow(a, b, &result)
                                     : __builtin_mul_overflow(a, b, &result);
    return overflow ? JINJA_FAIL(r, STATUS_UNSUPPORTED, "the result is beyond 64 bits")
                    : jinja_int(result);
}

static struct jinja_value of_reals(struct jinja_run *r, struct base_string name, double a, double b)
{
    double rest = fmod(a, b);
    rest += rest != 0 && (rest < 0) != (b < 0) ? b : 0;
    switch (name.data[0]) {
    case '+':
        return jinja_real(a + b);
    case '-':
        return jinja_real(a - b);
    case '*':
        return jinja_real(name.n_bytes == 2 ? pow(a, b) : a * b);
    default:
        if (b == 0)
            return JINJA_FAIL(r, STATUS_FORMAT, "division by zero");
        if (name.n_bytes == 2)
            return jinja_real(round((a - rest) / b));
        return jinja_real(name.data[0] == '/' ? a / b : rest);
    }
}

/* What MarkupSafe makes of a string that meets one that is safe. */
static void put_escaped(struct jinja_run *r, struct jinja_buffer *out, const struct jinja_value *v)
{
    static const char from[] = "&<>'\"";
    static const char *const to[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    for (size_t i = 0; i < v->string.n_bytes && !r->status; i++) {
        char c = v->string.data[i];
        const char *found = c && !v->safe ? strchr(from, c) : NULL;
        if (found)
            jinja_put(r, out, to[found - from], strlen(to[found - from]));
        else
            jinja_put(r, out, &c, 1);
    }
}

static struct jinja_value join_strings(struct jinja_run *r, const struct jinja_value *a,
                                       const struct jinja_value *b)
{
    struct jinja_buffer out = {0};
    bool safe = a->safe || b->safe;
    if (safe) {
        put_escaped(r, &out, a);
        put_escaped(r, &out, b);
    } else {
        jinja_put_string(r, &out, a->string);
        jinja_put_string(r, &out, b->string);
    }
    struct jinja_value joined = jinja_of_buffer(&out);
    joined.safe = safe;
    return joined;
}

static struct jinja_value concatenate(struct jinja_run *r, const struct jinja_value *a,
                                      const struct jinja_value *b)
{
    struct jinja_buffer out = {0};
    jinja_put_value(r, &out, a);
    jinja_put_value(r, &out, b);
    return jinja_of_buffer(&out);
}

static struct jinja_value join_lists(struct jinja_run *r, const struct jinja_value *a,
                                     const struct jinja_value *b)
{
    struct jinja_value *items = jinja_alloc(r, a->n + b->n, sizeof *items);
    if (!items)
        return jinja_absent();
    jinja_work(r, a->n + b->n);
    if (a->n)
        memcpy(items, a->items, a->n * sizeof *items);
    if (b->n)
        memcpy(items + a->n, b->items, b->n * sizeof *items);
    return (struct jinja_value){.kind = a->kind, .items = items, .n = a->n + b->n};
}

static struct jinja_value repeat(struct jinja_run *r, const struct jinja_value *v, int64_t n)
{
    struct jinja_buffer out = {0};
    struct jinja_items items = {0};
    for (; n > 0 && !r->status; n--) {
        jinja_work(r, 1);
        if (v->kind == JINJA_STRING)
            jinja_put_string(r, &out, v->string);
        else
            for (size_t i = 0; i < v->n; i++)
                jinja_append(r, &items, v->items[i]);
    }
    struct jinja_value result =
        v->kind == JINJA_STRING ? jinja_of_buffer(&out) : jinja_of_items(&items);
    result.kind = v->kind;
    result.safe = v->safe;
    return result;
}

static bool is_sequence(const struct jinja_value *v)
{
    return v->kind == JINJA_STRING || v->kind == JINJA_LIST || v->kind == JINJA_TUPLE;
}

struct jinja_value jinja_binary(struct jinja_run *r, struct base_string name,
                                const struct jinja_value *a, const struct jinja_value *b)
{
    int64_t i, j;
    double x, y;
    if (jinja_is(name, "~"))
        return concatenate(r, a, b);
    if (jinja_integer(a, &i) && jinja_integer(b, &j))
        return of_integers(r, name, i, j);
    if (jinja_number(a, &x) && jinja_number(b, &y))
        return of_reals(r, name, x, y);
    if (jinja_is(name, "+") && a->kind == b->kind && is_sequence(a))
        return a->kind == JINJA_STRING ? join_strings(r, a, b) : join_lists(r, a, b);
    if (jinja_is(name, "*") && is_sequence(a) && jinja_integer(b, &j))
        return repeat(r, a, j);
    if (jinja_is(name, "*") && is_sequence(b) && jinja_integer(a, &i))
        return repeat(r, b, i);
    if (jinja_is(name, "%") && a->kind == JINJA_STRING && !a->safe)
        return jinja_percent(r, a->string, b);
    return no_operator(r, name, a, b);
}

struct jinja_value jinja_percent(struct jinja_run *r, struct base_string format,
                                 const struct jinja_value *arguments)
{
    bool is_tuple = arguments->kind == JINJA_TUPLE;
    size_t n = is_tuple ? arguments->n : 1, next = 0;
    const struct jinja_value *items = is_tuple ? arguments->items : arguments;
    struct jinja_buffer out = {0};
    for (size_t i = 0; i < format.n_bytes && !r->status; i++) {
        char c = format.data[i], text[32];
        int64_t integer;
        if (c != '%') {
            jinja_put(r, &out, &c, 1);
            continue;
        }
        c = ++i < format.n_bytes ? format.data[i] : '\0';
        if (c == '%') {
            jinja_put(r, &out, &c, 1);
        } else if (!c || !strchr("sdi", c)) {
            jinja_fail(r, STATUS_UNSUPPORTED, "a conversion other than %%s, %%d and %%%%");
        } else if (next == n) {
            jinja_fail(r, STATUS_FORMAT, "more conversions than values");
        } else if (c == 's') {
            struct jinja_value v = jinja_str(r, &items[next++]);
            jinja_put_string(r, &out, v.string);
        } else if (jinja_integer(&items[next++], &integer)) {
            snprintf(text, sizeof text, "%" PRId64, integer);
            jinja_put(r, &out, text, strlen(text));
        } else {
            jinja_fail(r, STATUS_UNSUPPORTED, "%%d of what is no integer");
        }
    }
    if (next < n && arguments->kind != JINJA_DICT && arguments->kind != JINJA_LIST)
        return JINJA_FAIL(r, STATUS_FORMAT, "more values than conversions");
    return jinja_of_buffer(&out);
}

bool jinja_contains(struct jinja_run *r, const struct jinja_value *in, const struct jinja_value *v)
{
    switch (in->kind) {
    case JINJA_UNDEFINED:
        return false;
    case JINJA_STRING:
        if (v->kind == JINJA_STRING)
            return jinja_find(r, in->string, v->string, 0) != SIZE_MAX;
        break;
    case JINJA_DICT:
        return jinja_dict_get(r, in->dict, v) != NULL;
    case JINJA_LIST:
    case JINJA_TUPLE:
        jinja_work(r, in->n);
        for (size_t i = 0; i < in->n && !r->status; i++)
            if (jinja_equal(r, &in->items[i], v))
                return true;
        return false;
    default:
        break;
    }
    jinja_fail(r, STATUS_FORMAT, "%s is not looked for in %s", jinja_kind_name(v),
               jinja_kind_name(in));
    return false;
}

bool jinja_relation(struct jinja_run *r, struct base_string name, const struct jinja_value *a,
                    const struct jinja_value *b)
{
    double x, y;
    if (jinja_is(name, "==") || jinja_is(name, "!="))
        return jinja_equal(r, a, b) == (name.data[0] == '=');
    if (jinja_is(name, "in") || jinja_is(name, "not in"))
        return jinja_contains(r, b, a) == (name.data[0] == 'i');
    if (jinja_number(a, &x) && jinja_number(b, &y) && (isnan(x) || isnan(y)))
        return false;
    int order = jinja_compare(r, a, b);
    bool or_equal = name.n_bytes == 2;
    return name.data[0] == '<' ? order < or_equal : order > -or_equal;
}

/* Python's operators on values. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/text/quote.h"
#include "model/chat/evaluate/evaluate.h"
#include "model/chat/value/text.h"

static struct chat_value no_operator(struct chat_run *r, struct base_string name,
                                     const struct chat_value *a, const struct chat_value *b)
{
    struct base_quoted quoted, what;
    if (a->kind == CHAT_UNDEFINED || b->kind == CHAT_UNDEFINED)
        return CHAT_FAIL(r, STATUS_FORMAT, "%s with %s, which is undefined",
                         base_quote(&quoted, name),
                         base_quote(&what, a->kind == CHAT_UNDEFINED ? a->string : b->string));
    return CHAT_FAIL(r, STATUS_FORMAT, "%s of %s and %s", base_quote(&quoted, name),
                     model_chat_kind_name(a), model_chat_kind_name(b));
}

/* a / b rounded down, and what is left, which has b's sign. */
static struct chat_value divide(struct chat_run *r, bool remainder, int64_t a, int64_t b)
{
    if (b == 0 || (a == INT64_MIN && b == -1))
        return CHAT_FAIL(r, STATUS_FORMAT, b ? "the result is beyond 64 bits" : "division by zero");
    int64_t quotient = a / b, rest = a % b;
    if (rest != 0 && (rest < 0) != (b < 0)) {
        quotient--;
        rest += b;
    }
    return chat_int(remainder ? rest : quotient);
}

static struct chat_value power(struct chat_run *r, int64_t a, int64_t b)
{
    int64_t result = 1;
    if (b < 0)
        return chat_real(pow((double)a, (double)b));
    for (bool overflow = false; b > 0; b--) {
        if (a == 0 || a == 1 || a == -1)
            b = (b - 1) % 2 + 1; /* more of them change nothing */
        overflow = __builtin_mul_overflow(result, a, &result);
        if (overflow)
            return CHAT_FAIL(r, STATUS_UNSUPPORTED, "the result is beyond 64 bits");
    }
    return chat_int(result);
}

static struct chat_value of_integers(struct chat_run *r, struct base_string name, int64_t a,
                                     int64_t b)
{
    int64_t result = 0;
    bool overflow;
    if (chat_is(name, "**"))
        return power(r, a, b);
    if (chat_is(name, "//") || chat_is(name, "%"))
        return divide(r, chat_is(name, "%"), a, b);
    if (chat_is(name, "/"))
        return b ? chat_real((double)a / (double)b)
                 : CHAT_FAIL(r, STATUS_FORMAT, "division by zero");
    overflow = chat_is(name, "+")   ? __builtin_add_overflow(a, b, &result)
               : chat_is(name, "-") ? __builtin_sub_overflow(a, b, &result)
                                    : __builtin_mul_overflow(a, b, &result);
    return overflow ? CHAT_FAIL(r, STATUS_UNSUPPORTED, "the result is beyond 64 bits")
                    : chat_int(result);
}

static struct chat_value of_reals(struct chat_run *r, struct base_string name, double a, double b)
{
    double rest = fmod(a, b);
    rest += rest != 0 && (rest < 0) != (b < 0) ? b : 0;
    switch (name.data[0]) {
    case '+':
        return chat_real(a + b);
    case '-':
        return chat_real(a - b);
    case '*':
        return chat_real(name.n_bytes == 2 ? pow(a, b) : a * b);
    default:
        if (b == 0)
            return CHAT_FAIL(r, STATUS_FORMAT, "division by zero");
        if (name.n_bytes == 2)
            return chat_real(round((a - rest) / b));
        return chat_real(name.data[0] == '/' ? a / b : rest);
    }
}

/* What MarkupSafe makes of a string that meets one that is safe. */
static void put_escaped(struct chat_run *r, struct chat_buffer *out, const struct chat_value *v)
{
    static const char from[] = "&<>'\"";
    static const char *const to[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    for (size_t i = 0; i < v->string.n_bytes && !r->status; i++) {
        char c = v->string.data[i];
        const char *found = c && !v->safe ? strchr(from, c) : NULL;
        if (found)
            model_chat_put(r, out, to[found - from], strlen(to[found - from]));
        else
            model_chat_put(r, out, &c, 1);
    }
}

static struct chat_value join_strings(struct chat_run *r, const struct chat_value *a,
                                      const struct chat_value *b)
{
    struct chat_buffer out = {0};
    bool safe = a->safe || b->safe;
    if (safe) {
        put_escaped(r, &out, a);
        put_escaped(r, &out, b);
    } else {
        model_chat_put_string(r, &out, a->string);
        model_chat_put_string(r, &out, b->string);
    }
    struct chat_value joined = chat_of_buffer(&out);
    joined.safe = safe;
    return joined;
}

static struct chat_value concatenate(struct chat_run *r, const struct chat_value *a,
                                     const struct chat_value *b)
{
    struct chat_buffer out = {0};
    model_chat_put_value(r, &out, a);
    model_chat_put_value(r, &out, b);
    return chat_of_buffer(&out);
}

static struct chat_value join_lists(struct chat_run *r, const struct chat_value *a,
                                    const struct chat_value *b)
{
    struct chat_value *items = model_chat_alloc(r, a->n + b->n, sizeof *items);
    if (!items)
        return chat_absent();
    model_chat_work(r, a->n + b->n);
    if (a->n)
        memcpy(items, a->items, a->n * sizeof *items);
    if (b->n)
        memcpy(items + a->n, b->items, b->n * sizeof *items);
    return (struct chat_value){.kind = a->kind, .items = items, .n = a->n + b->n};
}

static struct chat_value repeat(struct chat_run *r, const struct chat_value *v, int64_t n)
{
    struct chat_buffer out = {0};
    struct chat_items items = {0};
    for (; n > 0 && !r->status; n--) {
        model_chat_work(r, 1);
        if (v->kind == CHAT_STRING)
            model_chat_put_string(r, &out, v->string);
        else
            for (size_t i = 0; i < v->n; i++)
                model_chat_append(r, &items, v->items[i]);
    }
    struct chat_value result =
        v->kind == CHAT_STRING ? chat_of_buffer(&out) : chat_of_items(&items);
    result.kind = v->kind;
    result.safe = v->safe;
    return result;
}

static bool is_sequence(const struct chat_value *v)
{
    return v->kind == CHAT_STRING || v->kind == CHAT_LIST || v->kind == CHAT_TUPLE;
}

struct chat_value model_chat_binary(struct chat_run *r, struct base_string name,
                                    const struct chat_value *a, const struct chat_value *b)
{
    int64_t i, j;
    double x, y;
    if (chat_is(name, "~"))
        return concatenate(r, a, b);
    if (model_chat_integer(a, &i) && model_chat_integer(b, &j))
        return of_integers(r, name, i, j);
    if (model_chat_number(a, &x) && model_chat_number(b, &y))
        return of_reals(r, name, x, y);
    if (chat_is(name, "+") && a->kind == b->kind && is_sequence(a))
        return a->kind == CHAT_STRING ? join_strings(r, a, b) : join_lists(r, a, b);
    if (chat_is(name, "*") && is_sequence(a) && model_chat_integer(b, &j))
        return repeat(r, a, j);
    if (chat_is(name, "*") && is_sequence(b) && model_chat_integer(a, &i))
        return repeat(r, b, i);
    if (chat_is(name, "%") && a->kind == CHAT_STRING && !a->safe)
        return model_chat_percent(r, a->string, b);
    return no_operator(r, name, a, b);
}

struct chat_value model_chat_percent(struct chat_run *r, struct base_string format,
                                     const struct chat_value *arguments)
{
    bool is_tuple = arguments->kind == CHAT_TUPLE;
    size_t n = is_tuple ? arguments->n : 1, next = 0;
    const struct chat_value *items = is_tuple ? arguments->items : arguments;
    struct chat_buffer out = {0};
    for (size_t i = 0; i < format.n_bytes && !r->status; i++) {
        char c = format.data[i], text[32];
        int64_t integer;
        if (c != '%') {
            model_chat_put(r, &out, &c, 1);
            continue;
        }
        c = ++i < format.n_bytes ? format.data[i] : '\0';
        if (c == '%') {
            model_chat_put(r, &out, &c, 1);
        } else if (!c || !strchr("sdi", c)) {
            model_chat_fail(r, STATUS_UNSUPPORTED, "a conversion other than %%s, %%d and %%%%");
        } else if (next == n) {
            model_chat_fail(r, STATUS_FORMAT, "more conversions than values");
        } else if (c == 's') {
            struct chat_value v = model_chat_str(r, &items[next++]);
            model_chat_put_string(r, &out, v.string);
        } else if (model_chat_integer(&items[next++], &integer)) {
            snprintf(text, sizeof text, "%" PRId64, integer);
            model_chat_put(r, &out, text, strlen(text));
        } else {
            model_chat_fail(r, STATUS_UNSUPPORTED, "%%d of what is no integer");
        }
    }
    if (next < n && arguments->kind != CHAT_DICT && arguments->kind != CHAT_LIST)
        return CHAT_FAIL(r, STATUS_FORMAT, "more values than conversions");
    return chat_of_buffer(&out);
}

bool model_chat_contains(struct chat_run *r, const struct chat_value *in,
                         const struct chat_value *v)
{
    switch (in->kind) {
    case CHAT_UNDEFINED:
        return false;
    case CHAT_STRING:
        if (v->kind == CHAT_STRING)
            return model_chat_find(r, in->string, v->string, 0) != SIZE_MAX;
        break;
    case CHAT_DICT:
        return model_chat_dict_get(r, in->dict, v) != NULL;
    case CHAT_LIST:
    case CHAT_TUPLE:
        model_chat_work(r, in->n);
        for (size_t i = 0; i < in->n && !r->status; i++)
            if (model_chat_equal(r, &in->items[i], v))
                return true;
        return false;
    default:
        break;
    }
    model_chat_fail(r, STATUS_FORMAT, "%s is not looked for in %s", model_chat_kind_name(v),
                    model_chat_kind_name(in));
    return false;
}

bool model_chat_relation(struct chat_run *r, struct base_string name, const struct chat_value *a,
                         const struct chat_value *b)
{
    double x, y;
    if (chat_is(name, "==") || chat_is(name, "!="))
        return model_chat_equal(r, a, b) == (name.data[0] == '=');
    if (chat_is(name, "in") || chat_is(name, "not in"))
        return model_chat_contains(r, b, a) == (name.data[0] == 'i');
    if (model_chat_number(a, &x) && model_chat_number(b, &y) && (isnan(x) || isnan(y)))
        return false;
    int order = model_chat_compare(r, a, b);
    bool or_equal = name.n_bytes == 2;
    return name.data[0] == '<' ? order < or_equal : order > -or_equal;
}

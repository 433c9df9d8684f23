/* Functions that every template sees. */
#include <time.h>

#include "base/text/escape.h"
#include "model/template/evaluate/evaluate.h"
#include "model/template/value/value_text.h"

enum { MAX_RANGE = 100000 }; /* as in jinja2's sandbox */

JINJA_FUNCTION(g_range, self)
{
    struct jinja_items items = {0};
    int64_t from = 0, to = jinja_integer_argument(r, &a->v[0], 0);
    int64_t step = jinja_integer_argument(r, &a->v[2], 1);
    if (a->v[1].kind != JINJA_ABSENT) {
        from = to;
        to = jinja_integer_argument(r, &a->v[1], 0);
    }
    if (step == 0)
        return JINJA_FAIL(r, STATUS_FORMAT, "'range' with a step of 0");
    for (int64_t i = from; (step > 0 ? i < to : i > to) && !r->status; i += step) {
        jinja_append(r, &items, jinja_int(i));
        if (items.n > MAX_RANGE)
            return JINJA_FAIL(r, STATUS_UNSUPPORTED, "'range' of more than %d numbers",
                              (int)MAX_RANGE);
        if (i > INT64_MAX / 2 || i < INT64_MIN / 2 || step > INT64_MAX / 2 || step < INT64_MIN / 2)
            return JINJA_FAIL(r, STATUS_UNSUPPORTED, "'range' of such large numbers");
    }
    return jinja_of_items(&items);
}

/* The pairs of a mapping, then the named arguments. */
JINJA_FUNCTION(g_make, self)
{
    struct jinja_dict *dict = jinja_alloc(r, 1, sizeof *dict);
    if (a->n > 1 || (a->n == 1 && a->v[0].kind != JINJA_DICT))
        return JINJA_FAIL(r, STATUS_UNSUPPORTED, "expected named arguments, or one mapping");
    const struct jinja_dict *const from[] = {a->n ? a->v[0].dict : NULL, &a->named};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; from[k] && i < from[k]->n && !r->status; i++)
            jinja_dict_set(r, dict, from[k]->pairs[i].key, from[k]->pairs[i].value);
    return r->status ? jinja_absent()
                     : (struct jinja_value){.kind = (enum jinja_kind)a->which, .dict = dict};
}

JINJA_FUNCTION(g_raise_exception, self)
{
    struct jinja_value message = jinja_str(r, &a->v[0]);
    char text[300];
    return JINJA_FAIL(
        r, STATUS_FORMAT, "the template refuses this conversation: %s",
        base_printable(text, sizeof text, message.string.data, message.string.n_bytes));
}

JINJA_FUNCTION(g_strftime_now, self)
{
    struct base_string format = jinja_string_argument(r, &a->v[0], "");
    struct jinja_buffer out = {0};
    size_t (*const show)(char *, size_t, const char *, const struct tm *) = strftime;
    struct tm day = {.tm_year = r->time.year - 1900,
                     .tm_mon = r->time.month - 1,
                     .tm_mday = r->time.day,
                     .tm_hour = 12,
                     .tm_isdst = -1};
    time_t seconds = timegm(&day); /* which finds the day of the week and of the year */
    gmtime_r(&seconds, &day);
    day.tm_hour = 0;
    for (size_t i = 0; i < format.n_bytes && !r->status; i++) {
        char conversion[3] = {'%'}, text[64];
        if (format.data[i] != '%') {
            jinja_put(r, &out, &format.data[i], 1);
            continue;
        }
        conversion[1] = ++i < format.n_bytes ? format.data[i] : '\0';
        if (!conversion[1] || !strchr("aAbBdmyYjHIMSpF%", conversion[1]))
            return JINJA_FAIL(r, STATUS_UNSUPPORTED, "'strftime_now' with '%%%.1s'",
                              conversion + 1);
        size_t n = conversion[1] == '%' ? 0 : show(text, sizeof text, conversion, &day);
        jinja_put(r, &out, n ? text : "%", n ? n : 1);
    }
    return jinja_of_buffer(&out);
}

const struct jinja_row jinja_functions[] = {
    {"range", g_range, "start stop step", 1},
    {"namespace", g_make, NULL, 0, JINJA_NAMESPACE},
    {"dict", g_make, NULL, 0, JINJA_DICT},
    {"raise_exception", g_raise_exception, "message", 1},
    {"strftime_now", g_strftime_now, "format", 1},
    {0},
};

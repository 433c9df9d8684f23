/* Functions that every template sees. */
#include <time.h>

#include "base/text/escape.h"
#include "model/chat/evaluate/evaluate.h"
#include "model/chat/value/text.h"

enum { MAX_RANGE = 100000 }; /* as in jinja2's sandbox */

CHAT_FUNCTION(g_range, self)
{
    struct chat_items items = {0};
    int64_t from = 0, to = model_chat_integer_argument(r, &a->v[0], 0);
    int64_t step = model_chat_integer_argument(r, &a->v[2], 1);
    if (a->v[1].kind != CHAT_ABSENT) {
        from = to;
        to = model_chat_integer_argument(r, &a->v[1], 0);
    }
    if (step == 0)
        return CHAT_FAIL(r, STATUS_FORMAT, "'range' with a step of 0");
    for (int64_t i = from; (step > 0 ? i < to : i > to) && !r->status; i += step) {
        model_chat_append(r, &items, chat_int(i));
        if (items.n > MAX_RANGE)
            return CHAT_FAIL(r, STATUS_UNSUPPORTED, "'range' of more than %d numbers",
                             (int)MAX_RANGE);
        if (i > INT64_MAX / 2 || i < INT64_MIN / 2 || step > INT64_MAX / 2 || step < INT64_MIN / 2)
            return CHAT_FAIL(r, STATUS_UNSUPPORTED, "'range' of such large numbers");
    }
    return chat_of_items(&items);
}

/* The pairs of a mapping, then the named arguments. */
static struct chat_value make(struct chat_run *r, const struct chat_args *a, enum chat_kind kind)
{
    struct chat_dict *dict = model_chat_alloc(r, 1, sizeof *dict);
    if (a->n > 1 || (a->n == 1 && a->v[0].kind != CHAT_DICT))
        return CHAT_FAIL(r, STATUS_UNSUPPORTED, "expected named arguments, or one mapping");
    const struct chat_dict *const from[] = {a->n ? a->v[0].dict : NULL, &a->named};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; from[k] && i < from[k]->n && !r->status; i++)
            model_chat_dict_set(r, dict, from[k]->pairs[i].key, from[k]->pairs[i].value);
    return r->status ? chat_absent() : (struct chat_value){.kind = kind, .dict = dict};
}

CHAT_FUNCTION(g_namespace, self)
{
    return make(r, a, CHAT_NAMESPACE);
}

CHAT_FUNCTION(g_dict, self)
{
    return make(r, a, CHAT_DICT);
}

CHAT_FUNCTION(g_raise_exception, self)
{
    struct chat_value message = model_chat_str(r, &a->v[0]);
    char text[300];
    return CHAT_FAIL(
        r, STATUS_FORMAT, "the template refuses this conversation: %s",
        base_printable(text, sizeof text, message.string.data, message.string.n_bytes));
}

CHAT_FUNCTION(g_strftime_now, self)
{
    struct base_string format = model_chat_string_argument(r, &a->v[0], "");
    struct chat_buffer out = {0};
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
            model_chat_put(r, &out, &format.data[i], 1);
            continue;
        }
        conversion[1] = ++i < format.n_bytes ? format.data[i] : '\0';
        if (!conversion[1] || !strchr("aAbBdmyYjHIMSpF%", conversion[1]))
            return CHAT_FAIL(r, STATUS_UNSUPPORTED, "'strftime_now' with '%%%.1s'", conversion + 1);
        size_t n = conversion[1] == '%' ? 0 : show(text, sizeof text, conversion, &day);
        model_chat_put(r, &out, n ? text : "%", n ? n : 1);
    }
    return chat_of_buffer(&out);
}

const struct chat_row model_chat_functions[] = {
    {"range", g_range, "start stop step", 1},
    {"namespace", g_namespace, NULL, 0},
    {"dict", g_dict, NULL, 0},
    {"raise_exception", g_raise_exception, "message", 1},
    {"strftime_now", g_strftime_now, "format", 1},
    {0},
};

/* Methods of strings, mappings and lists. */
#include <stdio.h>

#include "base/text/quote.h"
#include "base/text/words.h"
#include "model/template/evaluate/evaluate.h"
#include "model/template/value/value_text.h"

int64_t jinja_integer_argument(struct jinja_run *r, const struct jinja_value *v, int64_t otherwise)
{
    int64_t integer = otherwise;
    if (v->kind != JINJA_ABSENT && !jinja_integer(v, &integer))
        jinja_fail(r, STATUS_FORMAT, "expected an integer, found %s", jinja_kind_name(v));
    return integer;
}

struct base_string jinja_string_argument(struct jinja_run *r, const struct jinja_value *v,
                                         const char *otherwise)
{
    if (v->kind == JINJA_STRING)
        return v->string;
    if (v->kind != JINJA_ABSENT)
        jinja_fail(r, STATUS_FORMAT, "expected a string, found %s", jinja_kind_name(v));
    return (struct base_string){otherwise, strlen(otherwise)};
}

JINJA_FUNCTION(s_split, self)
{
    return jinja_split(r, self->string, &a->v[0], jinja_integer_argument(r, &a->v[1], -1));
}

JINJA_FUNCTION(s_rsplit, self)
{
    struct base_string separator = jinja_string_argument(r, &a->v[0], "");
    if (separator.n_bytes == 0)
        return JINJA_FAIL(r, STATUS_UNSUPPORTED, "'rsplit' without a separator is not supported");
    return jinja_split_last(r, self->string, separator, jinja_integer_argument(r, &a->v[1], -1));
}

JINJA_FUNCTION(s_splitlines, self)
{
    return jinja_lines(r, self->string);
}

/* Whether a string, or one of a tuple, is where the value begins or ends. */
JINJA_FUNCTION(s_has_end, self)
{
    struct jinja_value one = jinja_list(&a->v[0], 1);
    const struct jinja_value *any = a->v[0].kind == JINJA_TUPLE ? &a->v[0] : &one;
    for (size_t i = 0; i < any->n && !r->status; i++) {
        struct base_string s = self->string, end = jinja_string_argument(r, &any->items[i], "");
        if (end.n_bytes > s.n_bytes)
            continue;
        size_t from = a->which == JINJA_RIGHT ? s.n_bytes - end.n_bytes : 0;
        jinja_work(r, end.n_bytes / 16);
        if (jinja_same(jinja_part(s, from, from + end.n_bytes), end))
            return jinja_bool(true);
    }
    return jinja_bool(false);
}

JINJA_FUNCTION(s_without_end, self)
{
    struct base_string s = self->string;
    size_t n = jinja_string_argument(r, &a->v[0], "").n_bytes;
    if (!s_has_end(r, self, a).truth)
        return *self;
    return jinja_of_string(a->which == JINJA_RIGHT ? jinja_part(s, 0, s.n_bytes - n)
                                                   : jinja_part(s, n, s.n_bytes));
}

JINJA_FUNCTION(s_replace, self)
{
    return jinja_replace(r, self->string, jinja_string_argument(r, &a->v[0], ""),
                         jinja_string_argument(r, &a->v[1], ""),
                         jinja_integer_argument(r, &a->v[2], -1));
}

JINJA_FUNCTION(s_title, self)
{
    return jinja_title(r, self->string, NULL);
}

/* The character at which an argument is found, or -1. */
JINJA_FUNCTION(s_find, self)
{
    struct base_string s = self->string, needle = jinja_string_argument(r, &a->v[0], "");
    size_t at = a->which == JINJA_RIGHT ? jinja_find_last(r, s, needle, s.n_bytes)
                                        : jinja_find(r, s, needle, 0);
    return jinja_int(at == SIZE_MAX ? -1 : (int64_t)jinja_n_characters(r, jinja_part(s, 0, at)));
}

JINJA_FUNCTION(s_index, self)
{
    struct jinja_value at = s_find(r, self, a);
    return at.integer >= 0 ? at : JINJA_FAIL(r, STATUS_FORMAT, "'index' of what is not there");
}

JINJA_FUNCTION(s_count, self)
{
    struct base_string needle = jinja_string_argument(r, &a->v[0], "");
    if (needle.n_bytes == 0)
        return jinja_int((int64_t)jinja_n_characters(r, self->string) + 1);
    return jinja_int((int64_t)jinja_split(r, self->string, &a->v[0], -1).n - 1);
}

JINJA_FUNCTION(s_join, self)
{
    struct jinja_buffer out = {0};
    struct jinja_value items = jinja_iterate(r, &a->v[0]);
    for (size_t i = 0; i < items.n && !r->status; i++) {
        if (i > 0)
            jinja_put_string(r, &out, self->string);
        jinja_put_string(r, &out, jinja_string_argument(r, &items.items[i], ""));
    }
    return jinja_of_buffer(&out);
}

/* The value of a field "{}", "{3}" or "{name}", whose inside is `field`. */
static void put_field(struct jinja_run *r, struct jinja_buffer *out, struct base_string field,
                      const struct jinja_args *a, size_t *next)
{
    const struct jinja_value *v = NULL;
    bool is_number = field.n_bytes > 0 && field.n_bytes < 5;
    size_t number = 0;
    for (size_t i = 0; i < field.n_bytes && is_number; i++) {
        is_number = field.data[i] >= '0' && field.data[i] <= '9';
        number = number * 10 + (size_t)(field.data[i] - '0');
    }
    struct jinja_value key = jinja_of_string(field);
    if (field.n_bytes == 0 || is_number) {
        number = is_number ? number : (*next)++;
        v = number < a->n ? &a->v[number] : NULL;
    } else {
        v = jinja_dict_get(r, &a->named, &key);
    }
    struct base_quoted quoted;
    if (v)
        jinja_put_value(r, out, v);
    else
        jinja_fail(r, STATUS_UNSUPPORTED, "'format' has nothing for the field %s",
                   base_quote(&quoted, field));
}

JINJA_FUNCTION(s_format, self)
{
    struct base_string s = self->string, close = {"}", 1};
    struct jinja_buffer out = {0};
    size_t next = 0;
    for (size_t i = 0; i < s.n_bytes && !r->status; i++) {
        char c = s.data[i];
        bool doubled = i + 1 < s.n_bytes && s.data[i + 1] == c;
        if ((c != '{' && c != '}') || doubled) {
            jinja_put(r, &out, &c, 1);
            i += (c == '{' || c == '}') && doubled;
            continue;
        }
        size_t end = c == '{' ? jinja_find(r, s, close, i) : SIZE_MAX;
        if (end == SIZE_MAX)
            return JINJA_FAIL(r, STATUS_FORMAT, "'format' of a string with a single '%c'", c);
        put_field(r, &out, jinja_part(s, i + 1, end), a, &next);
        i = end;
    }
    return jinja_of_buffer(&out);
}

JINJA_FUNCTION(s_isdigit, self)
{
    jinja_work(r, self->string.n_bytes / 16);
    for (size_t i = 0; i < self->string.n_bytes; i++) {
        unsigned char c = (unsigned char)self->string.data[i];
        if (c >= 0x80)
            return JINJA_FAIL(r, STATUS_UNSUPPORTED, "'isdigit' beyond ASCII");
        if (c < '0' || c > '9')
            return jinja_bool(false);
    }
    return jinja_bool(self->string.n_bytes > 0);
}

static const struct jinja_row string_methods[] = {
    {"strip", jinja_stripped, "chars", 0, JINJA_BOTH},
    {"lstrip", jinja_stripped, "chars", 0, JINJA_LEFT},
    {"rstrip", jinja_stripped, "chars", 0, JINJA_RIGHT},
    {"split", s_split, "sep maxsplit", 0},
    {"rsplit", s_rsplit, "sep maxsplit", 0},
    {"splitlines", s_splitlines, "", 0},
    {"startswith", s_has_end, "prefix", 1, JINJA_LEFT},
    {"endswith", s_has_end, "suffix", 1, JINJA_RIGHT},
    {"removeprefix", s_without_end, "prefix", 1, JINJA_LEFT},
    {"removesuffix", s_without_end, "suffix", 1, JINJA_RIGHT},
    {"replace", s_replace, "old new count", 2},
    {"upper", jinja_in_case, "", 0, JINJA_UPPER},
    {"lower", jinja_in_case, "", 0, JINJA_LOWER},
    {"capitalize", jinja_in_case, "", 0, JINJA_CAPITALIZE},
    {"title", s_title, "", 0},
    {"find", s_find, "sub", 1, JINJA_LEFT},
    {"rfind", s_find, "sub", 1, JINJA_RIGHT},
    {"index", s_index, "sub", 1},
    {"count", s_count, "sub", 1},
    {"join", s_join, "iterable", 1},
    {"format", s_format, NULL, 0},
    {"isdigit", s_isdigit, "", 0},
    {0},
};

JINJA_FUNCTION(d_get, self)
{
    const struct jinja_value *found = jinja_dict_get(r, self->dict, &a->v[0]);
    return found ? *found : a->v[1].kind == JINJA_ABSENT ? jinja_none() : a->v[1];
}

JINJA_FUNCTION(d_values, self)
{
    struct jinja_items values = {0};
    for (size_t i = 0; i < self->dict->n && !r->status; i++)
        jinja_append(r, &values, self->dict->pairs[i].value);
    return jinja_of_items(&values);
}

JINJA_FUNCTION(copy, self)
{
    (void)r, (void)a;
    return *self;
}

static const struct jinja_row dict_methods[] = {
    {"get", d_get, "key default", 1}, {"keys", jinja_listed, "", 0}, {"values", d_values, "", 0},
    {"items", jinja_pairs, "", 0},    {"copy", copy, "", 0},         {0},
};

JINJA_FUNCTION(l_index, self)
{
    jinja_work(r, self->n);
    for (size_t i = 0; i < self->n && !r->status; i++)
        if (jinja_equal(r, &self->items[i], &a->v[0]))
            return jinja_int((int64_t)i);
    return JINJA_FAIL(r, STATUS_FORMAT, "'index' of what is not there");
}

JINJA_FUNCTION(l_count, self)
{
    int64_t n = 0;
    jinja_work(r, self->n);
    for (size_t i = 0; i < self->n && !r->status; i++)
        n += jinja_equal(r, &self->items[i], &a->v[0]);
    return jinja_int(n);
}

static const struct jinja_row list_methods[] = {
    {"index", l_index, "value", 1},
    {"count", l_count, "value", 1},
    {"copy", copy, "", 0},
    {0},
};

/* Methods that Python has and templates here do not: to say "undefined" would be wrong. */
static bool is_refused(const struct jinja_value *v, struct base_string name)
{
    static const char strings[] =
        "casefold center encode expandtabs format_map isalnum isalpha isascii isdecimal "
        "isidentifier islower isnumeric isprintable isspace istitle isupper ljust maketrans "
        "partition rindex rjust rpartition swapcase translate zfill";
    static const char lists[] = "append clear extend insert pop remove reverse sort";
    static const char dicts[] = "clear fromkeys pop popitem setdefault update";
    char word[16];
    if (name.n_bytes >= sizeof word)
        return false;
    snprintf(word, sizeof word, "%.*s", (int)name.n_bytes, name.data);
    return base_words_index(v->kind == JINJA_STRING ? strings
                            : v->kind == JINJA_DICT ? dicts
                            : v->kind == JINJA_LIST ? lists
                                                    : "",
                            word) >= 0;
}

const struct jinja_row *jinja_method(struct jinja_run *r, const struct jinja_value *v,
                                     struct base_string name)
{
    const struct jinja_row *rows = v->kind == JINJA_STRING ? string_methods
                                   : v->kind == JINJA_DICT ? dict_methods
                                   : v->kind == JINJA_LIST || v->kind == JINJA_TUPLE ? list_methods
                                                                                     : NULL;
    const struct jinja_row *row = rows ? jinja_find_row(rows, name) : NULL;
    struct base_quoted quoted;
    if (rows && is_refused(v, name))
        jinja_fail(r, STATUS_UNSUPPORTED, "the method %s of %s is not supported",
                   base_quote(&quoted, name), jinja_kind_name(v));
    if (row && v->kind == JINJA_STRING && v->safe)
        jinja_fail(r, STATUS_UNSUPPORTED, "methods of a string that is safe");
    return r->status ? NULL : row;
}

/* Members, indices and slices of values. */
#include "base/text/quote.h"
#include "model/template/evaluate/evaluate.h"
#include "model/template/value/value_text.h"

static struct jinja_value loop_cycle(struct jinja_run *r, const struct jinja_value *self,
                                     const struct jinja_args *args)
{
    if (args->n == 0)
        return JINJA_FAIL(r, STATUS_FORMAT, "'cycle' of nothing");
    return args->v[self->loop->index0 % args->n];
}

static struct jinja_value bind(struct jinja_run *r, const struct jinja_row *row,
                               const struct jinja_value *self)
{
    struct jinja_bound *bound = jinja_alloc(r, 1, sizeof *bound);
    if (!bound)
        return jinja_absent();
    *bound = (struct jinja_bound){row, *self};
    return (struct jinja_value){.kind = JINJA_FUNCTION, .function = bound};
}

static struct jinja_value loop_member(struct jinja_run *r, const struct jinja_value *v,
                                      struct base_string name)
{
    static const struct jinja_row cycle = {"cycle", loop_cycle, NULL, 0};
    const struct jinja_loop *loop = v->loop;
    const struct {
        const char *name;
        size_t value;
    } numbers[] = {{"index", loop->index0 + 1},
                   {"index0", loop->index0},
                   {"revindex", loop->n - loop->index0},
                   {"revindex0", loop->n - loop->index0 - 1},
                   {"length", loop->n},
                   {"depth", 1} /* loops that call themselves are not supported */,
                   {"depth0", 0}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (jinja_is(name, numbers[i].name))
            return jinja_int((int64_t)numbers[i].value);
    if (jinja_is(name, "first") || jinja_is(name, "last"))
        return jinja_bool(loop->index0 == (jinja_is(name, "first") ? 0 : loop->n - 1));
    if (jinja_is(name, "previtem") && loop->index0 > 0)
        return loop->items[loop->index0 - 1];
    if (jinja_is(name, "nextitem") && loop->index0 + 1 < loop->n)
        return loop->items[loop->index0 + 1];
    if (jinja_is(name, "cycle"))
        return bind(r, &cycle, v);
    if (jinja_is(name, "changed"))
        return JINJA_FAIL(r, STATUS_UNSUPPORTED, "'loop.changed' is not supported");
    return jinja_undefined(name);
}

/* A method, or undefined. */
static struct jinja_value method_of(struct jinja_run *r, const struct jinja_value *v,
                                    struct base_string name)
{
    const struct jinja_row *row = jinja_method(r, v, name);
    return row ? bind(r, row, v) : jinja_undefined(name);
}

struct jinja_value jinja_member(struct jinja_run *r, const struct jinja_value *v,
                                struct base_string name)
{
    struct base_quoted member, of;
    struct jinja_value key = jinja_of_string(name);
    const struct jinja_value *found = NULL;
    if (v->kind == JINJA_UNDEFINED)
        return JINJA_FAIL(r, STATUS_FORMAT, "the member %s of %s, which is undefined",
                          base_quote(&member, name), base_quote(&of, v->string));
    if (name.n_bytes > 2 && name.data[0] == '_' && name.data[1] == '_' && v->kind != JINJA_DICT)
        return JINJA_FAIL(r, STATUS_UNSUPPORTED, "the member %s is not supported",
                          base_quote(&member, name));
    if (v->kind == JINJA_LOOP)
        return loop_member(r, v, name);
    const struct jinja_row *row = jinja_method(r, v, name);
    if (row)
        return bind(r, row, v);
    if (v->kind == JINJA_DICT || v->kind == JINJA_NAMESPACE)
        found = jinja_dict_get(r, v->dict, &key);
    return found ? *found : jinja_undefined(name);
}

struct jinja_value jinja_item(struct jinja_run *r, const struct jinja_value *v,
                              const struct jinja_value *index)
{
    struct base_quoted of;
    struct base_string none = {"an item", 7};
    const struct jinja_value *found;
    int64_t i;
    if (v->kind == JINJA_UNDEFINED)
        return JINJA_FAIL(r, STATUS_FORMAT, "an item of %s, which is undefined",
                          base_quote(&of, v->string));
    if (v->kind == JINJA_DICT && (found = jinja_dict_get(r, v->dict, index)))
        return *found;
    if (index->kind == JINJA_STRING)
        return v->kind == JINJA_DICT ? method_of(r, v, index->string)
                                     : jinja_member(r, v, index->string);
    bool is_list = v->kind == JINJA_LIST || v->kind == JINJA_TUPLE || v->kind == JINJA_STRING;
    if (!is_list || !jinja_integer(index, &i))
        return jinja_undefined(none);
    int64_t n = (int64_t)jinja_length(r, v);
    i += i < 0 ? n : 0;
    if (i < 0 || i >= n)
        return jinja_undefined(none);
    if (v->kind != JINJA_STRING)
        return v->items[i];
    size_t at = jinja_offset(v->string, (size_t)i);
    jinja_work(r, at / 4);
    return jinja_of_string(jinja_part(v->string, at, at + jinja_next(v->string, at, NULL)));
}

/* An end of a slice, `least` .. n + least; false: it is no integer. */
static bool slice_end(const struct jinja_value *end, int64_t n, int64_t least, int64_t otherwise,
                      int64_t *out)
{
    *out = otherwise;
    if (!jinja_given(end))
        return true;
    if (!jinja_integer(end, out))
        return false;
    *out += *out < 0 ? n : 0;
    if (*out < least)
        *out = least;
    if (*out > n + least)
        *out = n + least;
    return true;
}

static struct jinja_value take_steps(struct jinja_run *r, const struct jinja_value *items,
                                     int64_t from, int64_t to, int64_t step)
{
    struct jinja_items chosen = {0};
    for (int64_t i = from; step > 0 ? i < to : i > to; i += step) {
        jinja_append(r, &chosen, items->items[i]);
        if (r->status || (step > 0 ? step > to - i : step < to - i))
            break;
    }
    return jinja_of_items(&chosen);
}

static struct jinja_value string_of_items(struct jinja_run *r, const struct jinja_value *items)
{
    struct jinja_buffer out = {0};
    for (size_t i = 0; i < items->n; i++)
        jinja_put_string(r, &out, items->items[i].string);
    return jinja_of_buffer(&out);
}

struct jinja_value jinja_slice(struct jinja_run *r, const struct jinja_value *v,
                               const struct jinja_value ends[3])
{
    struct base_quoted of;
    int64_t from, to, step;
    if (v->kind == JINJA_UNDEFINED)
        return JINJA_FAIL(r, STATUS_FORMAT, "a slice of %s, which is undefined",
                          base_quote(&of, v->string));
    bool is_list = v->kind == JINJA_LIST || v->kind == JINJA_TUPLE;
    if (!is_list && v->kind != JINJA_STRING)
        return JINJA_FAIL(r, STATUS_FORMAT, "a slice of %s", jinja_kind_name(v));
    int64_t n = (int64_t)jinja_length(r, v);
    if (!jinja_given(&ends[2]))
        step = 1;
    else if (!jinja_integer(&ends[2], &step))
        return JINJA_FAIL(r, STATUS_FORMAT, "a slice's step is no integer");
    if (step == 0)
        return JINJA_FAIL(r, STATUS_FORMAT, "a slice with a step of 0");
    int64_t least = step < 0 ? -1 : 0;
    if (!slice_end(&ends[0], n, least, step < 0 ? n - 1 : 0, &from) ||
        !slice_end(&ends[1], n, least, step < 0 ? -1 : n, &to))
        return JINJA_FAIL(r, STATUS_FORMAT, "a slice's end is no integer");
    if (step == 1 && from >= to)
        return is_list ? (struct jinja_value){.kind = v->kind} : jinja_string("", 0);
    if (step == 1 && is_list)
        return (struct jinja_value){
            .kind = v->kind, .items = v->items + from, .n = (size_t)(to - from)};
    if (step == 1) {
        size_t at = jinja_offset(v->string, (size_t)from);
        struct base_string rest = jinja_part(v->string, at, v->string.n_bytes);
        jinja_work(r, v->string.n_bytes / 8);
        return jinja_of_string(jinja_part(rest, 0, jinja_offset(rest, (size_t)(to - from))));
    }
    struct jinja_value items = jinja_iterate(r, v);
    if (r->status)
        return jinja_absent();
    items = take_steps(r, &items, from, to, step);
    if (!is_list)
        return string_of_items(r, &items);
    items.kind = v->kind;
    return items;
}

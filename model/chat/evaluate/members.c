/* Members, indices and slices of values. */
#include "base/text/quote.h"
#include "base/text/words.h"
#include "model/chat/evaluate/evaluate.h"
#include "model/chat/value/text.h"

static struct chat_value loop_cycle(struct chat_run *r, const struct chat_value *self,
                                    const struct chat_args *args)
{
    if (args->n == 0)
        return CHAT_FAIL(r, STATUS_FORMAT, "'cycle' of nothing");
    return args->v[self->loop->index0 % args->n];
}

static struct chat_value bind(struct chat_run *r, const struct chat_row *row,
                              const struct chat_value *self)
{
    struct chat_bound *bound = model_chat_alloc(r, 1, sizeof *bound);
    if (!bound)
        return chat_absent();
    *bound = (struct chat_bound){row, *self};
    return (struct chat_value){.kind = CHAT_FUNCTION, .function = bound};
}

static struct chat_value loop_member(struct chat_run *r, const struct chat_value *v,
                                     struct base_string name)
{
    static const struct chat_row cycle = {"cycle", loop_cycle, NULL, 0};
    const struct chat_loop *loop = v->loop;
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
        if (chat_is(name, numbers[i].name))
            return chat_int((int64_t)numbers[i].value);
    if (chat_is(name, "first") || chat_is(name, "last"))
        return chat_bool(loop->index0 == (chat_is(name, "first") ? 0 : loop->n - 1));
    if (chat_is(name, "previtem") && loop->index0 > 0)
        return loop->items[loop->index0 - 1];
    if (chat_is(name, "nextitem") && loop->index0 + 1 < loop->n)
        return loop->items[loop->index0 + 1];
    if (chat_is(name, "cycle"))
        return bind(r, &cycle, v);
    if (chat_is(name, "changed"))
        return CHAT_FAIL(r, STATUS_UNSUPPORTED, "'loop.changed' is not supported");
    return chat_undefined(name);
}

/* A method, or undefined. */
static struct chat_value method_of(struct chat_run *r, const struct chat_value *v,
                                   struct base_string name)
{
    const struct chat_row *row = model_chat_method(r, v, name);
    return row ? bind(r, row, v) : chat_undefined(name);
}

struct chat_value model_chat_member(struct chat_run *r, const struct chat_value *v,
                                    struct base_string name)
{
    struct base_quoted member, of;
    struct chat_value key = chat_of_string(name);
    const struct chat_value *found = NULL;
    if (v->kind == CHAT_UNDEFINED)
        return CHAT_FAIL(r, STATUS_FORMAT, "the member %s of %s, which is undefined",
                         base_quote(&member, name), base_quote(&of, v->string));
    if (name.n_bytes > 2 && name.data[0] == '_' && name.data[1] == '_' && v->kind != CHAT_DICT)
        return CHAT_FAIL(r, STATUS_UNSUPPORTED, "the member %s is not supported",
                         base_quote(&member, name));
    if (v->kind == CHAT_LOOP)
        return loop_member(r, v, name);
    const struct chat_row *row = model_chat_method(r, v, name);
    if (row)
        return bind(r, row, v);
    if (v->kind == CHAT_DICT || v->kind == CHAT_NAMESPACE)
        found = model_chat_dict_get(r, v->dict, &key);
    return found ? *found : chat_undefined(name);
}

struct chat_value model_chat_item(struct chat_run *r, const struct chat_value *v,
                                  const struct chat_value *index)
{
    struct base_quoted of;
    struct base_string none = {"an item", 7};
    const struct chat_value *found;
    int64_t i;
    if (v->kind == CHAT_UNDEFINED)
        return CHAT_FAIL(r, STATUS_FORMAT, "an item of %s, which is undefined",
                         base_quote(&of, v->string));
    if (v->kind == CHAT_DICT && (found = model_chat_dict_get(r, v->dict, index)))
        return *found;
    if (index->kind == CHAT_STRING)
        return v->kind == CHAT_DICT ? method_of(r, v, index->string)
                                    : model_chat_member(r, v, index->string);
    bool is_list = v->kind == CHAT_LIST || v->kind == CHAT_TUPLE || v->kind == CHAT_STRING;
    if (!is_list || !model_chat_integer(index, &i))
        return chat_undefined(none);
    int64_t n = (int64_t)model_chat_length(r, v);
    i += i < 0 ? n : 0;
    if (i < 0 || i >= n)
        return chat_undefined(none);
    if (v->kind != CHAT_STRING)
        return v->items[i];
    size_t at = model_chat_offset(v->string, (size_t)i);
    model_chat_work(r, at / 4);
    return chat_of_string(chat_part(v->string, at, at + model_chat_next(v->string, at, NULL)));
}

static bool is_open(const struct chat_value *end)
{
    return end->kind == CHAT_ABSENT || end->kind == CHAT_NONE;
}

/* An end of a slice, `least` .. n + least; false: it is no integer. */
static bool slice_end(const struct chat_value *end, int64_t n, int64_t least, int64_t otherwise,
                      int64_t *out)
{
    *out = otherwise;
    if (is_open(end))
        return true;
    if (!model_chat_integer(end, out))
        return false;
    *out += *out < 0 ? n : 0;
    if (*out < least)
        *out = least;
    if (*out > n + least)
        *out = n + least;
    return true;
}

static struct chat_value take_steps(struct chat_run *r, const struct chat_value *items,
                                    int64_t from, int64_t to, int64_t step)
{
    struct chat_items chosen = {0};
    for (int64_t i = from; step > 0 ? i < to : i > to; i += step) {
        model_chat_append(r, &chosen, items->items[i]);
        if (r->status || (step > 0 ? step > to - i : step < to - i))
            break;
    }
    return chat_of_items(&chosen);
}

static struct chat_value string_of_items(struct chat_run *r, const struct chat_value *items)
{
    struct chat_buffer out = {0};
    for (size_t i = 0; i < items->n; i++)
        model_chat_put_string(r, &out, items->items[i].string);
    return chat_of_buffer(&out);
}

struct chat_value model_chat_slice(struct chat_run *r, const struct chat_value *v,
                                   const struct chat_value ends[3])
{
    struct base_quoted of;
    int64_t from, to, step;
    if (v->kind == CHAT_UNDEFINED)
        return CHAT_FAIL(r, STATUS_FORMAT, "a slice of %s, which is undefined",
                         base_quote(&of, v->string));
    bool is_list = v->kind == CHAT_LIST || v->kind == CHAT_TUPLE;
    if (!is_list && v->kind != CHAT_STRING)
        return CHAT_FAIL(r, STATUS_FORMAT, "a slice of %s", model_chat_kind_name(v));
    int64_t n = (int64_t)model_chat_length(r, v);
    if (is_open(&ends[2]))
        step = 1;
    else if (!model_chat_integer(&ends[2], &step))
        return CHAT_FAIL(r, STATUS_FORMAT, "a slice's step is no integer");
    if (step == 0)
        return CHAT_FAIL(r, STATUS_FORMAT, "a slice with a step of 0");
    int64_t least = step < 0 ? -1 : 0;
    if (!slice_end(&ends[0], n, least, step < 0 ? n - 1 : 0, &from) ||
        !slice_end(&ends[1], n, least, step < 0 ? -1 : n, &to))
        return CHAT_FAIL(r, STATUS_FORMAT, "a slice's end is no integer");
    if (step == 1 && from >= to)
        return is_list ? (struct chat_value){.kind = v->kind} : chat_string("", 0);
    if (step == 1 && is_list)
        return (struct chat_value){
            .kind = v->kind, .items = v->items + from, .n = (size_t)(to - from)};
    if (step == 1) {
        size_t at = model_chat_offset(v->string, (size_t)from);
        struct base_string rest = chat_part(v->string, at, v->string.n_bytes);
        model_chat_work(r, v->string.n_bytes / 8);
        return chat_of_string(chat_part(rest, 0, model_chat_offset(rest, (size_t)(to - from))));
    }
    struct chat_value items = model_chat_iterate(r, v);
    if (r->status)
        return chat_absent();
    items = take_steps(r, &items, from, to, step);
    if (!is_list)
        return string_of_items(r, &items);
    items.kind = v->kind;
    return items;
}

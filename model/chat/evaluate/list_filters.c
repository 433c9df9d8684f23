/* Filters of lists and mappings. */
#include "base/text/quote.h"
#include "model/chat/evaluate/evaluate.h"
#include "model/chat/value/json.h"
#include "model/chat/value/text.h"

CHAT_FUNCTION(f_length, v)
{
    return chat_int((int64_t)model_chat_length(r, v));
}

/* value.a.b for "a.b", value[3] for 3. */
static struct chat_value attribute(struct chat_run *r, const struct chat_value *v,
                                   const struct chat_value *path)
{
    struct chat_value found = *v;
    if (path->kind != CHAT_STRING)
        return model_chat_item(r, v, path);
    struct chat_value dot = chat_string(".", 1);
    struct chat_value parts = model_chat_split(r, path->string, &dot, -1);
    for (size_t i = 0; i < parts.n && !r->status; i++) {
        /* As an index would find it: a mapping's items first. */
        if (parts.items[i].string.n_bytes && parts.items[i].string.data[0] >= '0' &&
            parts.items[i].string.data[0] <= '9')
            return CHAT_FAIL(r, STATUS_UNSUPPORTED, "numbers in an attribute are not supported");
        found = model_chat_item(r, &found, &parts.items[i]);
    }
    return found;
}

CHAT_FUNCTION(f_join, v)
{
    struct chat_buffer out = {0};
    struct chat_value items = model_chat_iterate(r, v), between = chat_string("", 0);
    if (a->v[0].kind != CHAT_ABSENT)
        between = model_chat_str(r, &a->v[0]);
    for (size_t i = 0; i < items.n && !r->status; i++) {
        if (i > 0)
            model_chat_put_string(r, &out, between.string);
        struct chat_value item = a->v[1].kind == CHAT_ABSENT || a->v[1].kind == CHAT_NONE
                                     ? items.items[i]
                                     : attribute(r, &items.items[i], &a->v[1]);
        if (!r->status)
            model_chat_put_value(r, &out, &item);
    }
    return chat_of_buffer(&out);
}

static struct chat_value end_of(struct chat_run *r, const struct chat_value *v, bool last)
{
    struct chat_value items = model_chat_iterate(r, v);
    if (r->status || items.n == 0)
        return chat_undefined((struct base_string){"an item", 7});
    return items.items[last ? items.n - 1 : 0];
}

CHAT_FUNCTION(f_first, v)
{
    return end_of(r, v, false);
}

CHAT_FUNCTION(f_last, v)
{
    return end_of(r, v, true);
}

CHAT_FUNCTION(f_list, v)
{
    return model_chat_iterate(r, v);
}

CHAT_FUNCTION(f_items, v)
{
    struct chat_items items = {0};
    if (v->kind == CHAT_UNDEFINED)
        return chat_list(NULL, 0);
    if (v->kind != CHAT_DICT)
        return CHAT_FAIL(r, STATUS_FORMAT, "'items' of %s", model_chat_kind_name(v));
    for (size_t i = 0; i < v->dict->n && !r->status; i++) {
        struct chat_value *pair = model_chat_alloc(r, 2, sizeof *pair);
        if (!pair)
            break;
        pair[0] = v->dict->pairs[i].key;
        pair[1] = v->dict->pairs[i].value;
        model_chat_append(r, &items,
                          (struct chat_value){.kind = CHAT_TUPLE, .items = pair, .n = 2});
    }
    return chat_of_items(&items);
}

CHAT_FUNCTION(f_reverse, v)
{
    struct chat_value ends[3] = {chat_absent(), chat_absent(), chat_int(-1)};
    struct chat_value items = v->kind == CHAT_STRING ? *v : model_chat_iterate(r, v);
    items = r->status ? chat_absent() : model_chat_slice(r, &items, ends);
    if (items.kind == CHAT_TUPLE)
        items.kind = CHAT_LIST;
    return items;
}

/* As a key to sort by: a string in small letters, unless the case counts. */
static struct chat_value sort_key(struct chat_run *r, struct chat_value v, bool any_case)
{
    return any_case && v.kind == CHAT_STRING ? model_chat_case(r, v.string, CHAT_LOWER) : v;
}

void model_chat_sort_pairs(struct chat_run *r, struct chat_pair *pairs, size_t n, bool descending)
{
    for (size_t i = 1; i < n && !r->status; i++) {
        struct chat_pair pair = pairs[i];
        size_t at = i;
        for (; at > 0 && !r->status; at--) {
            int order = model_chat_compare(r, &pairs[at - 1].key, &pair.key);
            model_chat_work(r, 1);
            if (descending ? order >= 0 : order <= 0)
                break;
            pairs[at] = pairs[at - 1];
        }
        pairs[at] = pair;
    }
}

/* The values of pairs that are sorted by key. */
static struct chat_value sorted_values(struct chat_run *r, struct chat_pair *pairs, size_t n,
                                       bool descending)
{
    struct chat_items items = {0};
    model_chat_sort_pairs(r, pairs, n, descending);
    for (size_t i = 0; i < n && !r->status; i++)
        model_chat_append(r, &items, pairs[i].value);
    return chat_of_items(&items);
}

CHAT_FUNCTION(f_sort, v)
{
    struct chat_value items = model_chat_iterate(r, v);
    struct chat_pair *pairs = model_chat_alloc(r, items.n, sizeof *pairs);
    for (size_t i = 0; i < items.n && !r->status; i++) {
        struct chat_value key = items.items[i];
        if (a->v[2].kind != CHAT_ABSENT && a->v[2].kind != CHAT_NONE)
            key = attribute(r, &key, &a->v[2]);
        pairs[i] =
            (struct chat_pair){sort_key(r, key, !model_chat_truth(&a->v[1])), items.items[i]};
    }
    return sorted_values(r, pairs, items.n, model_chat_truth(&a->v[0]));
}

CHAT_FUNCTION(f_dictsort, v)
{
    struct chat_value items = f_items(r, v, a);
    struct base_string by = model_chat_string_argument(r, &a->v[1], "key");
    struct chat_pair *pairs = model_chat_alloc(r, items.n, sizeof *pairs);
    for (size_t i = 0; i < items.n && !r->status; i++) {
        struct chat_value key = items.items[i].items[chat_is(by, "value")];
        pairs[i] =
            (struct chat_pair){sort_key(r, key, !model_chat_truth(&a->v[0])), items.items[i]};
    }
    return sorted_values(r, pairs, items.n, model_chat_truth(&a->v[2]));
}

CHAT_FUNCTION(f_unique, v)
{
    struct chat_dict seen = {0};
    struct chat_items items = {0};
    struct chat_value all = model_chat_iterate(r, v);
    for (size_t i = 0; i < all.n && !r->status; i++) {
        struct chat_value key = all.items[i];
        if (a->v[1].kind != CHAT_ABSENT && a->v[1].kind != CHAT_NONE)
            key = attribute(r, &key, &a->v[1]);
        size_t n = seen.n;
        model_chat_dict_set(r, &seen, sort_key(r, key, !model_chat_truth(&a->v[0])), chat_none());
        if (seen.n > n)
            model_chat_append(r, &items, all.items[i]);
    }
    return chat_of_items(&items);
}

CHAT_FUNCTION(f_sum, v)
{
    struct chat_value all = model_chat_iterate(r, v);
    struct chat_value sum = a->v[1].kind == CHAT_ABSENT ? chat_int(0) : a->v[1];
    for (size_t i = 0; i < all.n && !r->status; i++) {
        struct chat_value item = a->v[0].kind == CHAT_ABSENT || a->v[0].kind == CHAT_NONE
                                     ? all.items[i]
                                     : attribute(r, &all.items[i], &a->v[0]);
        if (!r->status)
            sum = model_chat_binary(r, (struct base_string){"+", 1}, &sum, &item);
    }
    return sum;
}

/* The largest or the smallest: the first of equals. */
static struct chat_value extreme(struct chat_run *r, const struct chat_value *v, bool most)
{
    struct chat_value all = model_chat_iterate(r, v), best = {0};
    if (all.n == 0 || r->status)
        return chat_undefined((struct base_string){"an item", 7});
    for (size_t i = 0; i < all.n && !r->status; i++) {
        struct chat_value key = sort_key(r, all.items[i], true), old = sort_key(r, best, true);
        int order = i == 0 ? 0 : model_chat_compare(r, &key, &old);
        if (i == 0 || (most ? order > 0 : order < 0))
            best = all.items[i];
    }
    return best;
}

CHAT_FUNCTION(f_max, v)
{
    return extreme(r, v, true);
}

CHAT_FUNCTION(f_min, v)
{
    return extreme(r, v, false);
}

/* What map and those that select go through: nothing of what is false, none among it. */
static struct chat_value items_of(struct chat_run *r, const struct chat_value *v)
{
    return model_chat_truth(v) ? model_chat_iterate(r, v) : chat_list(NULL, 0);
}

/* map('filter', arguments...) or map(attribute='name', default=value). */
CHAT_FUNCTION(f_map, v)
{
    struct chat_items items = {0};
    struct chat_value all = items_of(r, v);
    const struct chat_value *path = model_chat_dict_find(r, &a->named, "attribute");
    const struct chat_value *otherwise = model_chat_dict_find(r, &a->named, "default");
    if ((path != NULL) == (a->n > 0) || (path && a->named.n > 1 + (otherwise != NULL)) ||
        (a->n && a->v[0].kind != CHAT_STRING))
        return CHAT_FAIL(r, STATUS_FORMAT, "'map' takes a filter's name, or an attribute");
    struct chat_args rest = {.named = a->named};
    if (a->n > 1) {
        rest.v = a->v + 1;
        rest.n = a->n - 1;
    }
    for (size_t i = 0; i < all.n && !r->status; i++) {
        struct chat_value item = path ? attribute(r, &all.items[i], path)
                                      : model_chat_filter(r, a->v[0].string, &all.items[i], &rest);
        if (path && otherwise && item.kind == CHAT_UNDEFINED)
            item = *otherwise;
        model_chat_append(r, &items, item);
    }
    return chat_of_items(&items);
}

/* The items, or those whose attribute, for which a test holds or does not. */
static struct chat_value choose(struct chat_run *r, const struct chat_value *v,
                                const struct chat_args *a, bool by_attribute, bool wanted)
{
    struct chat_items items = {0};
    struct chat_value all = items_of(r, v);
    size_t n_first = by_attribute;
    if (a->n < n_first || (a->n > n_first && a->v[n_first].kind != CHAT_STRING) || a->named.n)
        return CHAT_FAIL(r, STATUS_FORMAT, "a filter that selects takes %sa test and its arguments",
                         by_attribute ? "an attribute, " : "");
    struct chat_args rest = {0};
    if (a->n > n_first + 1) {
        rest.v = a->v + n_first + 1;
        rest.n = a->n - n_first - 1;
    }
    for (size_t i = 0; i < all.n && !r->status; i++) {
        struct chat_value item =
            by_attribute ? attribute(r, &all.items[i], &a->v[0]) : all.items[i];
        if (r->status)
            break;
        bool holds = a->n > n_first ? model_chat_test(r, a->v[n_first].string, &item, &rest)
                                    : model_chat_truth(&item);
        if (holds == wanted)
            model_chat_append(r, &items, all.items[i]);
    }
    return chat_of_items(&items);
}

CHAT_FUNCTION(f_select, v)
{
    return choose(r, v, a, false, true);
}

CHAT_FUNCTION(f_reject, v)
{
    return choose(r, v, a, false, false);
}

CHAT_FUNCTION(f_selectattr, v)
{
    return choose(r, v, a, true, true);
}

CHAT_FUNCTION(f_rejectattr, v)
{
    return choose(r, v, a, true, false);
}

const struct chat_row model_chat_list_filters[] = {
    {"length", f_length, "", 0},
    {"count", f_length, "", 0},
    {"join", f_join, "d attribute", 0},
    {"first", f_first, "", 0},
    {"last", f_last, "", 0},
    {"list", f_list, "", 0},
    {"items", f_items, "", 0},
    {"reverse", f_reverse, "", 0},
    {"sort", f_sort, "reverse case_sensitive attribute", 0},
    {"dictsort", f_dictsort, "case_sensitive by reverse", 0},
    {"unique", f_unique, "case_sensitive attribute", 0},
    {"sum", f_sum, "attribute start", 0},
    {"max", f_max, "", 0},
    {"min", f_min, "", 0},
    {"map", f_map, NULL, 0},
    {"select", f_select, NULL, 0},
    {"reject", f_reject, NULL, 0},
    {"selectattr", f_selectattr, NULL, 0},
    {"rejectattr", f_rejectattr, NULL, 0},
    {0},
};

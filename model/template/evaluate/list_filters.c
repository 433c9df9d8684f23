/* Filters of lists and mappings. */
#include "base/text/quote.h"
#include "model/template/evaluate/evaluate.h"
#include "model/template/value/value_json.h"
#include "model/template/value/value_text.h"

JINJA_FUNCTION(f_length, v)
{
    return jinja_int((int64_t)jinja_length(r, v));
}

/* value.a.b for "a.b", value[3] for 3, the value itself where no path is given. */
static struct jinja_value attribute(struct jinja_run *r, const struct jinja_value *v,
                                    const struct jinja_value *path)
{
    struct jinja_value found = *v;
    if (!jinja_given(path))
        return found;
    if (path->kind != JINJA_STRING)
        return jinja_item(r, v, path);
    struct jinja_value dot = jinja_string(".", 1);
    struct jinja_value parts = jinja_split(r, path->string, &dot, -1);
    for (size_t i = 0; i < parts.n && !r->status; i++) {
        /* As an index would find it: a mapping's items first. */
        if (parts.items[i].string.n_bytes && parts.items[i].string.data[0] >= '0' &&
            parts.items[i].string.data[0] <= '9')
            return JINJA_FAIL(r, STATUS_UNSUPPORTED, "numbers in an attribute are not supported");
        found = jinja_item(r, &found, &parts.items[i]);
    }
    return found;
}

JINJA_FUNCTION(f_join, v)
{
    struct jinja_buffer out = {0};
    struct jinja_value items = jinja_iterate(r, v), between = jinja_string("", 0);
    if (a->v[0].kind != JINJA_ABSENT)
        between = jinja_str(r, &a->v[0]);
    for (size_t i = 0; i < items.n && !r->status; i++) {
        if (i > 0)
            jinja_put_string(r, &out, between.string);
        struct jinja_value item = attribute(r, &items.items[i], &a->v[1]);
        if (!r->status)
            jinja_put_value(r, &out, &item);
    }
    return jinja_of_buffer(&out);
}

/* The first item, or the last. */
JINJA_FUNCTION(f_end, v)
{
    struct jinja_value items = jinja_iterate(r, v);
    if (r->status || items.n == 0)
        return jinja_undefined((struct base_string){"an item", 7});
    return items.items[a->which ? items.n - 1 : 0];
}

struct jinja_value jinja_listed(struct jinja_run *r, const struct jinja_value *v,
                                const struct jinja_args *a)
{
    (void)a;
    return jinja_iterate(r, v);
}

struct jinja_value jinja_pairs(struct jinja_run *r, const struct jinja_value *v,
                               const struct jinja_args *a)
{
    (void)a;
    struct jinja_items items = {0};
    if (v->kind == JINJA_UNDEFINED)
        return jinja_list(NULL, 0);
    if (v->kind != JINJA_DICT)
        return JINJA_FAIL(r, STATUS_FORMAT, "'items' of %s", jinja_kind_name(v));
    for (size_t i = 0; i < v->dict->n && !r->status; i++) {
        struct jinja_value *pair = jinja_alloc(r, 2, sizeof *pair);
        if (!pair)
            break;
        pair[0] = v->dict->pairs[i].key;
        pair[1] = v->dict->pairs[i].value;
        jinja_append(r, &items, (struct jinja_value){.kind = JINJA_TUPLE, .items = pair, .n = 2});
    }
    return jinja_of_items(&items);
}

JINJA_FUNCTION(f_reverse, v)
{
    struct jinja_value ends[3] = {jinja_absent(), jinja_absent(), jinja_int(-1)};
    struct jinja_value items = v->kind == JINJA_STRING ? *v : jinja_iterate(r, v);
    items = r->status ? jinja_absent() : jinja_slice(r, &items, ends);
    if (items.kind == JINJA_TUPLE)
        items.kind = JINJA_LIST;
    return items;
}

/* As a key to sort by: a string in small letters, unless the case counts. */
static struct jinja_value sort_key(struct jinja_run *r, struct jinja_value v, bool any_case)
{
    return any_case && v.kind == JINJA_STRING ? jinja_case(r, v.string, JINJA_LOWER) : v;
}

void jinja_sort_pairs(struct jinja_run *r, struct jinja_pair *pairs, size_t n, bool descending)
{
    for (size_t i = 1; i < n && !r->status; i++) {
        struct jinja_pair pair = pairs[i];
        size_t at = i;
        for (; at > 0 && !r->status; at--) {
            int order = jinja_compare(r, &pairs[at - 1].key, &pair.key);
            jinja_work(r, 1);
            if (descending ? order >= 0 : order <= 0)
                break;
            pairs[at] = pairs[at - 1];
        }
        pairs[at] = pair;
    }
}

/* The values of pairs that are sorted by key. */
static struct jinja_value sorted_values(struct jinja_run *r, struct jinja_pair *pairs, size_t n,
                                        bool descending)
{
    struct jinja_items items = {0};
    jinja_sort_pairs(r, pairs, n, descending);
    for (size_t i = 0; i < n && !r->status; i++)
        jinja_append(r, &items, pairs[i].value);
    return jinja_of_items(&items);
}

JINJA_FUNCTION(f_sort, v)
{
    struct jinja_value items = jinja_iterate(r, v);
    struct jinja_pair *pairs = jinja_alloc(r, items.n, sizeof *pairs);
    for (size_t i = 0; i < items.n && !r->status; i++) {
        struct jinja_value key = attribute(r, &items.items[i], &a->v[2]);
        pairs[i] = (struct jinja_pair){sort_key(r, key, !jinja_truth(&a->v[1])), items.items[i]};
    }
    return sorted_values(r, pairs, items.n, jinja_truth(&a->v[0]));
}

JINJA_FUNCTION(f_dictsort, v)
{
    struct jinja_value items = jinja_pairs(r, v, a);
    struct base_string by = jinja_string_argument(r, &a->v[1], "key");
    struct jinja_pair *pairs = jinja_alloc(r, items.n, sizeof *pairs);
    for (size_t i = 0; i < items.n && !r->status; i++) {
        struct jinja_value key = items.items[i].items[jinja_is(by, "value")];
        pairs[i] = (struct jinja_pair){sort_key(r, key, !jinja_truth(&a->v[0])), items.items[i]};
    }
    return sorted_values(r, pairs, items.n, jinja_truth(&a->v[2]));
}

JINJA_FUNCTION(f_unique, v)
{
    struct jinja_dict seen = {0};
    struct jinja_items items = {0};
    struct jinja_value all = jinja_iterate(r, v);
    for (size_t i = 0; i < all.n && !r->status; i++) {
        struct jinja_value key = attribute(r, &all.items[i], &a->v[1]);
        size_t n = seen.n;
        jinja_dict_set(r, &seen, sort_key(r, key, !jinja_truth(&a->v[0])), jinja_none());
        if (seen.n > n)
            jinja_append(r, &items, all.items[i]);
    }
    return jinja_of_items(&items);
}

JINJA_FUNCTION(f_sum, v)
{
    struct jinja_value all = jinja_iterate(r, v);
    struct jinja_value sum = a->v[1].kind == JINJA_ABSENT ? jinja_int(0) : a->v[1];
    for (size_t i = 0; i < all.n && !r->status; i++) {
        struct jinja_value item = attribute(r, &all.items[i], &a->v[0]);
        if (!r->status)
            sum = jinja_binary(r, (struct base_string){"+", 1}, &sum, &item);
    }
    return sum;
}

/* The largest or the smallest: the first of equals. */
JINJA_FUNCTION(f_extreme, v)
{
    struct jinja_value all = jinja_iterate(r, v), best = {0};
    if (all.n == 0 || r->status)
        return jinja_undefined((struct base_string){"an item", 7});
    for (size_t i = 0; i < all.n && !r->status; i++) {
        struct jinja_value key = sort_key(r, all.items[i], true), old = sort_key(r, best, true);
        int order = i == 0 ? 0 : jinja_compare(r, &key, &old);
        if (i == 0 || (a->which ? order > 0 : order < 0))
            best = all.items[i];
    }
    return best;
}

/* What map and those that select go through: nothing of what is false, none among it. */
static struct jinja_value items_of(struct jinja_run *r, const struct jinja_value *v)
{
    return jinja_truth(v) ? jinja_iterate(r, v) : jinja_list(NULL, 0);
}

/* map('filter', arguments...) or map(attribute='name', default=value). */
JINJA_FUNCTION(f_map, v)
{
    struct jinja_items items = {0};
    struct jinja_value all = items_of(r, v);
    const struct jinja_value *path = jinja_dict_find(r, &a->named, "attribute");
    const struct jinja_value *otherwise = jinja_dict_find(r, &a->named, "default");
    if ((path != NULL) == (a->n > 0) || (path && a->named.n > 1 + (otherwise != NULL)) ||
        (a->n && a->v[0].kind != JINJA_STRING))
        return JINJA_FAIL(r, STATUS_FORMAT, "'map' takes a filter's name, or an attribute");
    struct jinja_args rest = {.named = a->named};
    if (a->n > 1) {
        rest.v = a->v + 1;
        rest.n = a->n - 1;
    }
    for (size_t i = 0; i < all.n && !r->status; i++) {
        struct jinja_value item = path ? attribute(r, &all.items[i], path)
                                       : jinja_filter(r, a->v[0].string, &all.items[i], &rest);
        if (path && otherwise && item.kind == JINJA_UNDEFINED)
            item = *otherwise;
        jinja_append(r, &items, item);
    }
    return jinja_of_items(&items);
}

enum { BY_ATTRIBUTE = 1, WITHOUT = 2 };

/* The items, or those whose attribute, for which a test holds or does not. */
JINJA_FUNCTION(f_select, v)
{
    bool by_attribute = a->which & BY_ATTRIBUTE, wanted = !(a->which & WITHOUT);
    struct jinja_items items = {0};
    struct jinja_value all = items_of(r, v);
    size_t n_first = by_attribute;
    if (a->n < n_first || (a->n > n_first && a->v[n_first].kind != JINJA_STRING) || a->named.n)
        return JINJA_FAIL(r, STATUS_FORMAT,
                          "a filter that selects takes %sa test and its arguments",
                          by_attribute ? "an attribute, " : "");
    struct jinja_args rest = {0};
    if (a->n > n_first + 1) {
        rest.v = a->v + n_first + 1;
        rest.n = a->n - n_first - 1;
    }
    for (size_t i = 0; i < all.n && !r->status; i++) {
        struct jinja_value item =
            by_attribute ? attribute(r, &all.items[i], &a->v[0]) : all.items[i];
        if (r->status)
            break;
        bool holds =
            a->n > n_first ? jinja_test(r, a->v[n_first].string, &item, &rest) : jinja_truth(&item);
        if (holds == wanted)
            jinja_append(r, &items, all.items[i]);
    }
    return jinja_of_items(&items);
}

const struct jinja_row jinja_list_filters[] = {
    {"length", f_length, "", 0},
    {"count", f_length, "", 0},
    {"join", f_join, "d attribute", 0},
    {"first", f_end, "", 0, false},
    {"last", f_end, "", 0, true},
    {"list", jinja_listed, "", 0},
    {"items", jinja_pairs, "", 0},
    {"reverse", f_reverse, "", 0},
    {"sort", f_sort, "reverse case_sensitive attribute", 0},
    {"dictsort", f_dictsort, "case_sensitive by reverse", 0},
    {"unique", f_unique, "case_sensitive attribute", 0},
    {"sum", f_sum, "attribute start", 0},
    {"max", f_extreme, "", 0, true},
    {"min", f_extreme, "", 0, false},
    {"map", f_map, NULL, 0},
    {"select", f_select, NULL, 0},
    {"reject", f_select, NULL, 0, WITHOUT},
    {"selectattr", f_select, NULL, 0, BY_ATTRIBUTE},
    {"rejectattr", f_select, NULL, 0, BY_ATTRIBUTE | WITHOUT},
    {0},
};

/* Lists and mappings: building them, looking into them, comparing them. */
#include "base/arithmetic.h"
#include "model/template/value/value.h"

void jinja_append(struct jinja_run *r, struct jinja_items *items, struct jinja_value v)
{
    jinja_work(r, 1);
    items->items = jinja_grow(r, items->items, items->n, &items->capacity, sizeof *items->items);
    if (!r->status)
        items->items[items->n++] = v;
}

static bool dicts_equal(struct jinja_run *r, const struct jinja_dict *a, const struct jinja_dict *b)
{
    bool equal = a->n == b->n;
    for (size_t i = 0; i < a->n && equal && !r->status; i++) {
        const struct jinja_value *other = jinja_dict_get(r, b, &a->pairs[i].key);
        equal = other && jinja_equal(r, &a->pairs[i].value, other);
    }
    return equal;
}

static bool lists_equal(struct jinja_run *r, const struct jinja_value *a,
                        const struct jinja_value *b)
{
    bool equal = a->n == b->n;
    for (size_t i = 0; i < a->n && equal && !r->status; i++) {
        jinja_work(r, 1);
        equal = jinja_equal(r, &a->items[i], &b->items[i]);
    }
    return equal;
}

bool jinja_equal(struct jinja_run *r, const struct jinja_value *a, const struct jinja_value *b)
{
    double x, y;
    int64_t i, j;
    if (jinja_integer(a, &i) && jinja_integer(b, &j))
        return i == j;
    if (jinja_number(a, &x) && jinja_number(b, &y))
        return x == y;
    if (a->kind != b->kind)
        return false;
    bool equal = false;
    if (jinja_enter(r, r->line)) {
        if (a->kind == JINJA_STRING) {
            jinja_work(r, a->string.n_bytes / 16);
            equal = jinja_same(a->string, b->string);
        } else if (a->kind == JINJA_LIST || a->kind == JINJA_TUPLE) {
            equal = lists_equal(r, a, b);
        } else if (a->kind == JINJA_DICT) {
            equal = dicts_equal(r, a->dict, b->dict);
        } else if (a->kind >= JINJA_NAMESPACE) {
            equal = a->dict == b->dict; /* the same object: all are pointers */
        } else {
            equal = true; /* none, undefined */
        }
    }
    jinja_leave(r);
    return equal;
}

static int compare_lists(struct jinja_run *r, const struct jinja_value *a,
                         const struct jinja_value *b)
{
    jinja_work(r, base_min(a->n, b->n));
    for (size_t i = 0; i < base_min(a->n, b->n) && !r->status; i++)
        if (!jinja_equal(r, &a->items[i], &b->items[i]))
            return jinja_compare(r, &a->items[i], &b->items[i]);
    return (a->n > b->n) - (a->n < b->n);
}

int jinja_compare(struct jinja_run *r, const struct jinja_value *a, const struct jinja_value *b)
{
    double x, y;
    int64_t i, j;
    int order = 0;
    if (jinja_integer(a, &i) && jinja_integer(b, &j))
        return (i > j) - (i < j);
    if (jinja_number(a, &x) && jinja_number(b, &y))
        return (x > y) - (x < y);
    if (jinja_enter(r, r->line)) {
        if (a->kind == JINJA_STRING && b->kind == JINJA_STRING) {
            size_t n = base_min(a->string.n_bytes, b->string.n_bytes);
            jinja_work(r, n / 16);
            order = n ? memcmp(a->string.data, b->string.data, n) : 0;
            if (order == 0)
                order = (a->string.n_bytes > b->string.n_bytes) -
                        (a->string.n_bytes < b->string.n_bytes);
        } else if (a->kind == b->kind && (a->kind == JINJA_LIST || a->kind == JINJA_TUPLE)) {
            order = compare_lists(r, a, b);
        } else {
            jinja_fail(r, STATUS_FORMAT, "%s and %s have no order", jinja_kind_name(a),
                       jinja_kind_name(b));
        }
    }
    jinja_leave(r);
    return order;
}

static bool same_key(struct jinja_run *r, const struct jinja_value *a, const struct jinja_value *b)
{
    if (a->kind != JINJA_STRING || b->kind != JINJA_STRING)
        return jinja_equal(r, a, b);
    if (a->string.n_bytes != b->string.n_bytes)
        return false;
    jinja_work(r, a->string.n_bytes / 16);
    return jinja_same(a->string, b->string);
}

static struct jinja_pair *find_pair(struct jinja_run *r, const struct jinja_dict *dict,
                                    const struct jinja_value *key)
{
    jinja_work(r, dict->n / 4);
    for (size_t i = 0; i < dict->n; i++) {
        struct jinja_pair *pair = &dict->pairs[i];
        if (same_key(r, &pair->key, key))
            return pair;
    }
    return NULL;
}

const struct jinja_value *jinja_dict_get(struct jinja_run *r, const struct jinja_dict *dict,
                                         const struct jinja_value *key)
{
    const struct jinja_pair *pair = find_pair(r, dict, key);
    return pair ? &pair->value : NULL;
}

const struct jinja_value *jinja_dict_find(struct jinja_run *r, const struct jinja_dict *dict,
                                          const char *name)
{
    struct jinja_value key = jinja_string(name, strlen(name));
    return jinja_dict_get(r, dict, &key);
}

void jinja_dict_set(struct jinja_run *r, struct jinja_dict *dict, struct jinja_value key,
                    struct jinja_value value)
{
    struct jinja_pair *pair = find_pair(r, dict, &key);
    if (!pair) {
        jinja_work(r, 1);
        dict->pairs = jinja_grow(r, dict->pairs, dict->n, &dict->capacity, sizeof *dict->pairs);
        if (r->status)
            return;
        pair = &dict->pairs[dict->n++];
        pair->key = key;
    }
    pair->value = value;
}

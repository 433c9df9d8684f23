/* What Python loops over, and how much of it there is. */
#include "model/template/value/value_text.h"

static struct jinja_value characters(struct jinja_run *r, struct base_string s)
{
    struct jinja_items items = {0};
    for (size_t i = 0, n; i < s.n_bytes && !r->status; i += n) {
        n = jinja_next(s, i, NULL);
        jinja_append(r, &items, jinja_string(s.data + i, n));
    }
    return jinja_of_items(&items);
}

struct jinja_value jinja_iterate(struct jinja_run *r, const struct jinja_value *v)
{
    struct jinja_items keys = {0};
    switch (v->kind) {
    case JINJA_UNDEFINED:
        return jinja_list(NULL, 0);
    case JINJA_STRING:
        return characters(r, v->string);
    case JINJA_LIST:
    case JINJA_TUPLE:
        jinja_work(r, v->n);
        return jinja_list(v->items, v->n);
    case JINJA_DICT:
        for (size_t i = 0; i < v->dict->n && !r->status; i++)
            jinja_append(r, &keys, v->dict->pairs[i].key);
        return jinja_of_items(&keys);
    default:
        return JINJA_FAIL(r, STATUS_FORMAT, "%s is nothing to loop over", jinja_kind_name(v));
    }
}

size_t jinja_length(struct jinja_run *r, const struct jinja_value *v)
{
    switch (v->kind) {
    case JINJA_UNDEFINED:
        return 0;
    case JINJA_STRING:
        return jinja_n_characters(r, v->string);
    case JINJA_LIST:
    case JINJA_TUPLE:
        return v->n;
    case JINJA_DICT:
        return v->dict->n;
    default:
        jinja_fail(r, STATUS_FORMAT, "%s has no length", jinja_kind_name(v));
        return 0;
    }
}

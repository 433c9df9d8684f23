/* Lists, mappings and loops over them; calls of rows. */
#include <string.h>

#include "base/text/quote.h"
#include "base/text/words.h"
#include "model/template/value/value.h"
#include "model/template/value/value_text.h"

void jinja_append(struct jinja_run *r, struct jinja_items *items, struct jinja_value v)
{
    jinja_work(r, 1);
    items->items = jinja_grow(r, items->items, items->n, &items->capacity, sizeof *items->items);
    if (!r->status)
        items->items[items->n++] = v;
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

const struct jinja_row *jinja_find_row(const struct jinja_row *rows, struct base_string name)
{
    for (; rows->name; rows++)
        if (jinja_is(name, rows->name))
            return rows;
    return NULL;
}

/* Put named arguments into their slots. */
static void bind_named(struct jinja_run *r, const struct jinja_row *row,
                       const struct jinja_dict *named, struct jinja_value *slots)
{
    for (size_t i = 0; i < named->n; i++) {
        const char *word, *rest = row->parameters;
        size_t length, slot = 0;
        struct base_string name = named->pairs[i].key.string;
        while ((rest = base_words_next(rest, &word, &length)) &&
               !jinja_same(name, (struct base_string){word, length}))
            slot++;
        struct base_quoted quoted;
        if (!rest || slots[slot].kind != JINJA_ABSENT) {
            jinja_fail(r, rest ? STATUS_FORMAT : STATUS_UNSUPPORTED,
                       "the argument %s of '%s' is %s", base_quote(&quoted, name), row->name,
                       rest ? "there twice" : "not known");
            return;
        }
        slots[slot] = named->pairs[i].value;
    }
}

struct jinja_value jinja_call_row(struct jinja_run *r, const struct jinja_row *row,
                                  const struct jinja_value *self, const struct jinja_args *args)
{
    if (r->status)
        return jinja_absent();
    struct jinja_args bound = *args;
    bound.which = row->which;
    if (!row->parameters)
        return row->function(r, self, &bound);
    struct jinja_value slots[JINJA_MAX_PARAMETERS] = {{0}};
    size_t n_slots = 0, length;
    const char *word;
    for (const char *rest = row->parameters; (rest = base_words_next(rest, &word, &length));)
        n_slots++;
    if (args->n > n_slots)
        return JINJA_FAIL(r, STATUS_FORMAT, "'%s' takes %zu argument%s, found %zu", row->name,
                          n_slots, status_plural(n_slots), args->n);
    for (size_t i = 0; i < args->n; i++)
        slots[i] = args->v[i];
    bind_named(r, row, &args->named, slots);
    for (size_t i = 0; i < row->n_required; i++)
        if (slots[i].kind == JINJA_ABSENT)
            return JINJA_FAIL(r, STATUS_FORMAT, "'%s' lacks an argument", row->name);
    bound = (struct jinja_args){.v = slots, .n = n_slots, .which = row->which};
    return r->status ? jinja_absent() : row->function(r, self, &bound);
}

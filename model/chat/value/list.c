/* Lists, mappings and loops over them; calls of rows. */
#include <string.h>

#include "base/text/quote.h"
#include "base/text/words.h"
#include "model/chat/value/text.h"
#include "model/chat/value/value.h"

void model_chat_append(struct chat_run *r, struct chat_items *items, struct chat_value v)
{
    model_chat_work(r, 1);
    items->items =
        model_chat_grow(r, items->items, items->n, &items->capacity, sizeof *items->items);
    if (!r->status)
        items->items[items->n++] = v;
}

static bool same_key(struct chat_run *r, const struct chat_value *a, const struct chat_value *b)
{
    if (a->kind != CHAT_STRING || b->kind != CHAT_STRING)
        return model_chat_equal(r, a, b);
    if (a->string.n_bytes != b->string.n_bytes)
        return false;
    model_chat_work(r, a->string.n_bytes / 16);
    return chat_same(a->string, b->string);
}

static struct chat_pair *find_pair(struct chat_run *r, const struct chat_dict *dict,
                                   const struct chat_value *key)
{
    model_chat_work(r, dict->n / 4);
    for (size_t i = 0; i < dict->n; i++) {
        struct chat_pair *pair = &dict->pairs[i];
        if (same_key(r, &pair->key, key))
            return pair;
    }
    return NULL;
}

const struct chat_value *model_chat_dict_get(struct chat_run *r, const struct chat_dict *dict,
                                             const struct chat_value *key)
{
    const struct chat_pair *pair = find_pair(r, dict, key);
    return pair ? &pair->value : NULL;
}

const struct chat_value *model_chat_dict_find(struct chat_run *r, const struct chat_dict *dict,
                                              const char *name)
{
    struct chat_value key = chat_string(name, strlen(name));
    return model_chat_dict_get(r, dict, &key);
}

void model_chat_dict_set(struct chat_run *r, struct chat_dict *dict, struct chat_value key,
                         struct chat_value value)
{
    struct chat_pair *pair = find_pair(r, dict, &key);
    if (!pair) {
        model_chat_work(r, 1);
        dict->pairs =
            model_chat_grow(r, dict->pairs, dict->n, &dict->capacity, sizeof *dict->pairs);
        if (r->status)
            return;
        pair = &dict->pairs[dict->n++];
        pair->key = key;
    }
    pair->value = value;
}

static struct chat_value characters(struct chat_run *r, struct base_string s)
{
    struct chat_items items = {0};
    for (size_t i = 0, n; i < s.n_bytes && !r->status; i += n) {
        n = model_chat_next(s, i, NULL);
        model_chat_append(r, &items, chat_string(s.data + i, n));
    }
    return chat_of_items(&items);
}

struct chat_value model_chat_iterate(struct chat_run *r, const struct chat_value *v)
{
    struct chat_items keys = {0};
    switch (v->kind) {
    case CHAT_UNDEFINED:
        return chat_list(NULL, 0);
    case CHAT_STRING:
        return characters(r, v->string);
    case CHAT_LIST:
    case CHAT_TUPLE:
        model_chat_work(r, v->n);
        return chat_list(v->items, v->n);
    case CHAT_DICT:
        for (size_t i = 0; i < v->dict->n && !r->status; i++)
            model_chat_append(r, &keys, v->dict->pairs[i].key);
        return chat_of_items(&keys);
    default:
        return CHAT_FAIL(r, STATUS_FORMAT, "%s is nothing to loop over", model_chat_kind_name(v));
    }
}

size_t model_chat_length(struct chat_run *r, const struct chat_value *v)
{
    switch (v->kind) {
    case CHAT_UNDEFINED:
        return 0;
    case CHAT_STRING:
        return model_chat_n_characters(r, v->string);
    case CHAT_LIST:
    case CHAT_TUPLE:
        return v->n;
    case CHAT_DICT:
        return v->dict->n;
    default:
        model_chat_fail(r, STATUS_FORMAT, "%s has no length", model_chat_kind_name(v));
        return 0;
    }
}

const struct chat_row *model_chat_find_row(const struct chat_row *rows, struct base_string name)
{
    for (; rows->name; rows++)
        if (chat_is(name, rows->name))
            return rows;
    return NULL;
}

/* Put named arguments into their slots. */
static void bind_named(struct chat_run *r, const struct chat_row *row,
                       const struct chat_dict *named, struct chat_value *slots)
{
    for (size_t i = 0; i < named->n; i++) {
        const char *word, *rest = row->parameters;
        size_t length, slot = 0;
        struct base_string name = named->pairs[i].key.string;
        while ((rest = base_words_next(rest, &word, &length)) &&
               !chat_same(name, (struct base_string){word, length}))
            slot++;
        struct base_quoted quoted;
        if (!rest || slots[slot].kind != CHAT_ABSENT) {
            model_chat_fail(r, rest ? STATUS_FORMAT : STATUS_UNSUPPORTED,
                            "the argument %s of '%s' is %s", base_quote(&quoted, name), row->name,
                            rest ? "there twice" : "not known");
            return;
        }
        slots[slot] = named->pairs[i].value;
    }
}

struct chat_value model_chat_call_row(struct chat_run *r, const struct chat_row *row,
                                      const struct chat_value *self, const struct chat_args *args)
{
    if (r->status)
        return chat_absent();
    if (!row->parameters)
        return row->function(r, self, args);
    struct chat_value slots[CHAT_MAX_PARAMETERS] = {{0}};
    size_t n_slots = 0, length;
    const char *word;
    for (const char *rest = row->parameters; (rest = base_words_next(rest, &word, &length));)
        n_slots++;
    if (args->n > n_slots)
        return CHAT_FAIL(r, STATUS_FORMAT, "'%s' takes %zu argument%s, found %zu", row->name,
                         n_slots, status_plural(n_slots), args->n);
    for (size_t i = 0; i < args->n; i++)
        slots[i] = args->v[i];
    bind_named(r, row, &args->named, slots);
    for (size_t i = 0; i < row->n_required; i++)
        if (slots[i].kind == CHAT_ABSENT)
            return CHAT_FAIL(r, STATUS_FORMAT, "'%s' lacks an argument", row->name);
    struct chat_args bound = {.v = slots, .n = n_slots};
    return r->status ? chat_absent() : row->function(r, self, &bound);
}

/* Rows of functions: finding one by its name, and calling it. */
#include "base/text/quote.h"
#include "base/text/words.h"
#include "model/template/value/value.h"

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

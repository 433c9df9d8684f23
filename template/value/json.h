/** JSON to values and back, as Python's json module does it. */
#ifndef TEMPLATE_VALUE_JSON_H
#define TEMPLATE_VALUE_JSON_H

#include "template/value/value.h"

/**
 * The value of a whole text; of equal names the last counts. Fails on what is no JSON, integers
 * beyond 64 bits, and halves of surrogate pairs.
 */
struct jinja_value jinja_parse_json(struct jinja_run *r, struct base_string text);

/** How json.dumps is asked to write. */
struct jinja_json_style {
    bool ascii, sorted;
    struct base_string indent; /* a line for each item, indented by this for each level, if lines */
    bool lines;
    struct base_string item, key; /* ", " and ": " */
};
void jinja_put_json(struct jinja_run *r, struct jinja_buffer *b, const struct jinja_value *v,
                    const struct jinja_json_style *style);

/** Sort by key; of equal keys the order stays. Templates sort a few names: by insertion. */
void jinja_sort_pairs(struct jinja_run *r, struct jinja_pair *pairs, size_t n, bool descending);

#endif

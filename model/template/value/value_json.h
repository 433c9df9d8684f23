/** JSON to values and back, as Python's json module does it. */
#ifndef TEMPLATE_VALUE_VALUE_JSON_H
#define TEMPLATE_VALUE_VALUE_JSON_H

#include <cjson/cJSON.h>

#include "model/template/value/value.h"

/**
 * The value of an object that was parsed from `text`; of equal names the last counts. Its strings
 * are borrowed. A number is what its text says: whole ones are integers, exactly.
 * Fails on integers beyond 64 bits, and on what is no UTF-8.
 */
struct jinja_value jinja_of_json(struct jinja_run *r, const cJSON *object, struct base_string text);

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

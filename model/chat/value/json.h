/** JSON to values and back, as Python's json module does it. */
#ifndef MODEL_CHAT_VALUE_JSON_H
#define MODEL_CHAT_VALUE_JSON_H

#include "model/chat/value/value.h"

/**
 * The value of a whole text; of equal names the last counts. Fails on what is no JSON, integers
 * beyond 64 bits, and halves of surrogate pairs.
 */
struct chat_value model_chat_parse_json(struct chat_run *r, struct base_string text);

/** How json.dumps is asked to write. */
struct chat_json_style {
    bool ascii, sorted;
    struct base_string indent; /* a line for each item, indented by this for each level, if lines */
    bool lines;
    struct base_string item, key; /* ", " and ": " */
};
void model_chat_put_json(struct chat_run *r, struct chat_buffer *b, const struct chat_value *v,
                         const struct chat_json_style *style);

/** Sort by key; of equal keys the order stays. Templates sort a few names: by insertion. */
void model_chat_sort_pairs(struct chat_run *r, struct chat_pair *pairs, size_t n, bool descending);

#endif

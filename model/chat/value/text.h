/** Python's operations on strings that filters and methods share. Strings are valid UTF-8. */
#ifndef MODEL_CHAT_VALUE_TEXT_H
#define MODEL_CHAT_VALUE_TEXT_H

#include "model/chat/value/value.h"

/** Bytes of the character at `at`, which must lie within; its code point may be NULL. */
size_t model_chat_next(struct base_string s, size_t at, uint32_t *code_point);
/** Characters of a string. */
size_t model_chat_n_characters(struct chat_run *r, struct base_string s);
/** The offset of character `n`, at most the string's end. */
size_t model_chat_offset(struct base_string s, size_t n);
/** The part from .. to-1, in bytes. */
static inline struct base_string chat_part(struct base_string s, size_t from, size_t to)
{
    return (struct base_string){s.data ? s.data + from : "", to - from};
}
static inline struct chat_value chat_of_string(struct base_string s)
{
    return chat_string(s.data, s.n_bytes);
}

/** Where `needle` is in `s`, from offset `from` on; SIZE_MAX where it is not. */
size_t model_chat_find(struct chat_run *r, struct base_string s, struct base_string needle,
                       size_t from);
/** The same from the end: the last place that ends at `to` at most. */
size_t model_chat_find_last(struct chat_run *r, struct base_string s, struct base_string needle,
                            size_t to);

enum chat_side { CHAT_LEFT = 1, CHAT_RIGHT = 2, CHAT_BOTH = 3 };
/** strip(), lstrip(), rstrip(). characters: CHAT_ABSENT or CHAT_NONE: white space. */
struct chat_value model_chat_strip(struct chat_run *r, struct base_string s,
                                   const struct chat_value *characters, enum chat_side side);
/** replace(); limit < 0: all. */
struct chat_value model_chat_replace(struct chat_run *r, struct base_string s,
                                     struct base_string old, struct base_string new, int64_t limit);
/** split() and rsplit(). separator: CHAT_ABSENT or CHAT_NONE: runs of white space. */
struct chat_value model_chat_split(struct chat_run *r, struct base_string s,
                                   const struct chat_value *separator, int64_t limit);
struct chat_value model_chat_split_last(struct chat_run *r, struct base_string s,
                                        struct base_string separator, int64_t limit);
/** splitlines(). */
struct chat_value model_chat_lines(struct chat_run *r, struct base_string s);

enum chat_case { CHAT_LOWER, CHAT_UPPER, CHAT_CAPITALIZE };
/** lower(), upper(), capitalize(). Refuses the few letters that become several, or depend on
 *  their neighbours. */
struct chat_value model_chat_case(struct chat_run *r, struct base_string s, enum chat_case to);
/** The method title(): letters that follow no letter are capital, others small. With `starts`,
 *  the filter: capital is what follows one of these. ASCII only, else refused. */
struct chat_value model_chat_title(struct chat_run *r, struct base_string s, const char *starts);

#endif

/** Python's operations on strings that filters and methods share. Strings are valid UTF-8. */
#ifndef TEMPLATE_VALUE_VALUE_TEXT_H
#define TEMPLATE_VALUE_VALUE_TEXT_H

#include "model/template/value/value.h"

/** Bytes of the character at `at`, which must lie within; its code point may be NULL. */
size_t jinja_next(struct base_string s, size_t at, uint32_t *code_point);
/** Characters of a string. */
size_t jinja_n_characters(struct jinja_run *r, struct base_string s);
/** The offset of character `n`, at most the string's end. */
size_t jinja_offset(struct base_string s, size_t n);
/** The part from .. to-1, in bytes. */
static inline struct base_string jinja_part(struct base_string s, size_t from, size_t to)
{
    return (struct base_string){s.data ? s.data + from : "", to - from};
}
static inline struct jinja_value jinja_of_string(struct base_string s)
{
    return jinja_string(s.data, s.n_bytes);
}

/** Where `needle` is in `s`, from offset `from` on; SIZE_MAX where it is not. */
size_t jinja_find(struct jinja_run *r, struct base_string s, struct base_string needle,
                  size_t from);
/** Where `needle` is last in `s`, ending at `to` at most; SIZE_MAX where it is not. */
size_t jinja_find_last(struct jinja_run *r, struct base_string s, struct base_string needle,
                       size_t to);

enum jinja_side { JINJA_LEFT = 1, JINJA_RIGHT = 2, JINJA_BOTH = 3 };
/** strip(), lstrip(), rstrip(). characters: JINJA_ABSENT or JINJA_NONE: white space. */
struct jinja_value jinja_strip(struct jinja_run *r, struct base_string s,
                               const struct jinja_value *characters, enum jinja_side side);
/** replace(); limit < 0: all. */
struct jinja_value jinja_replace(struct jinja_run *r, struct base_string s, struct base_string old,
                                 struct base_string new, int64_t limit);
/** split() and rsplit(). separator: JINJA_ABSENT or JINJA_NONE: runs of white space. */
struct jinja_value jinja_split(struct jinja_run *r, struct base_string s,
                               const struct jinja_value *separator, int64_t limit);
struct jinja_value jinja_split_last(struct jinja_run *r, struct base_string s,
                                    struct base_string separator, int64_t limit);
/** splitlines(). */
struct jinja_value jinja_lines(struct jinja_run *r, struct base_string s);

enum jinja_case { JINJA_LOWER, JINJA_UPPER, JINJA_CAPITALIZE };
/** lower(), upper(), capitalize(). Refuses the few letters that become several, or depend on
 *  their neighbours. */
struct jinja_value jinja_case(struct jinja_run *r, struct base_string s, enum jinja_case to);
/** The method title(): letters that follow no letter are capital, others small. With `starts`,
 *  the filter: capital is what follows one of these. ASCII only, else refused. */
struct jinja_value jinja_title(struct jinja_run *r, struct base_string s, const char *starts);

#endif

/**
 * Bytes of a file as they may stand in a sentence: between quotes, cut to a readable
 * length, everything but printable ASCII escaped. So a hostile name can neither flood a
 * message nor steer a terminal.
 */
#ifndef BASE_TEXT_QUOTE_H
#define BASE_TEXT_QUOTE_H

#include "base/text/string.h"

/** Room for one quoted string; lives in the caller's frame. */
struct base_quoted {
    char text[96];
};

/** Fill `quoted` from `bytes` and return its text, e.g. 'general.name' or 'a\x1b[2J...'. */
const char *base_quote(struct base_quoted *quoted, struct base_string bytes);

/** Append a name to a list "a, b, c"; "..." stands for those that do not fit. */
void base_list_name(char *list, size_t capacity, const char *name);

#endif

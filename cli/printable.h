/** Texts of unknown origin on their way to a terminal or into a table. */
#ifndef CLI_PRINTABLE_H
#define CLI_PRINTABLE_H

#include <stddef.h>

/**
 * A copy of a text in which control characters are blanks; cut at the buffer's end, between
 * characters of UTF-8. Returns `out`.
 */
const char *cli_printable(char *out, size_t capacity, const char *text);

#endif

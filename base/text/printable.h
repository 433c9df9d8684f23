/** Numbers and texts on their way to a terminal or into a table. */
#ifndef BASE_TEXT_PRINTABLE_H
#define BASE_TEXT_PRINTABLE_H

#include <stddef.h>

enum { BASE_PATH_BYTES = 4096 }; /* room for a path as it is shown */

/** base_printable() of a text that ends with a NUL. */
const char *base_printable_text(char *out, size_t capacity, const char *text);

/**
 * A text in Markdown as GitHub reads it, on a line or in a cell: nothing of it is a link, a tag, an
 * emphasis or the end of a cell, because a backslash is in front of what could be. A blank at an
 * end is lost. out: ends with a NUL, and is cut between characters at `capacity` - 1 bytes; at most
 * twice the bytes of what base_printable() makes of the text.   Returns `out`.
 */
const char *base_markdown(char *out, size_t capacity, const char *text);

/** base_markdown as a code span, between backticks; a backtick in it becomes an apostrophe. */
const char *base_markdown_code(char *out, size_t capacity, const char *text);

/** What comes after a path's last slash; in `path`. */
const char *base_file_name(const char *path);

/** What printf would give a sign that means nothing: NaN without it. */
double base_unsigned_nan(double x);
/** base_unsigned_nan, and 0 for what n decimals round to zero. */
double base_shown(double x, int n_decimals);

#endif

/** Texts that may hold anything, in Markdown as GitHub reads it. */
#ifndef BASE_TEXT_MARKDOWN_H
#define BASE_TEXT_MARKDOWN_H

#include <stddef.h>

/**
 * A text as it stands, on a line or in a cell: nothing of it is a link, a tag, an emphasis or the
 * end of a cell, because a backslash is in front of what could be. A blank at an end is lost.
 * out: ends with a NUL, and is cut between characters at `capacity` - 1 bytes; at most twice the
 * bytes of what base_printable() makes of the text.   Returns `out`.
 */
const char *base_markdown(char *out, size_t capacity, const char *text);

/** The same as a code span, between backticks; a backtick in it becomes an apostrophe. */
const char *base_markdown_code(char *out, size_t capacity, const char *text);

#endif

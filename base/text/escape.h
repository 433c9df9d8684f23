/** Any bytes as text that fits in a line or a TSV field. */
#ifndef BASE_TEXT_ESCAPE_H
#define BASE_TEXT_ESCAPE_H

#include <stddef.h>

/**
 * Valid UTF-8 stays; backslash, tab, newline and carriage return become \\ \t \n \r; every
 * byte of another control character (also of U+0080 to U+009F, which steer terminals too), of a
 * mark that turns the direction of writing, of what ends a line (U+2028) or takes no room (U+200B),
 * and every byte that is not valid UTF-8 becomes \xHH.
 * Writes at most `capacity` bytes and no NUL.
 * Returns how many bytes there are, at most four times n_bytes; more than `capacity` where they
 * do not fit. Cost: O(capacity), however long the text is.
 */
size_t base_escape(char *out, size_t capacity, const char *bytes, size_t n_bytes);

/**
 * The same for a sentence or a name: the backslash stays, a tab or a newline is \xHH as other
 * control characters are. Ends with a NUL, and is cut between characters at `capacity` - 1 bytes.
 * Returns `out`.
 */
const char *base_printable(char *out, size_t capacity, const char *bytes, size_t n_bytes);

#endif

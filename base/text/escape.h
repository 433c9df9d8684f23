/** Any bytes as text that fits in a line or a TSV field. */
#ifndef BASE_TEXT_ESCAPE_H
#define BASE_TEXT_ESCAPE_H

#include <stddef.h>

/**
 * Valid UTF-8 stays; backslash, tab, newline and carriage return become \\ \t \n \r; every
 * other control character below 0x80 and every byte that is not valid UTF-8 becomes \xHH.
 * Writes at most `capacity` bytes and no NUL.
 * Returns how many bytes there are: at most four times n_bytes.
 */
size_t base_escape(char *out, size_t capacity, const char *bytes, size_t n_bytes);

#endif

/** A view of bytes that somebody else owns: keys and values of a file, tokens, lines. */
#ifndef BASE_TEXT_STRING_H
#define BASE_TEXT_STRING_H

#include <stddef.h>

/** Not NUL-terminated; may hold any byte. */
struct base_string {
    const char *data;
    size_t n_bytes;
};

#endif

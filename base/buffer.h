/** Bytes that grow as others are appended to them. */
#ifndef BASE_BUFFER_H
#define BASE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/**
 * Zero-initialise. What is appended ends in a zero byte that is not counted. Once there is no
 * memory for something, `failed` is set and nothing is appended any more: look at it at the end.
 */
struct base_buffer {
    char *data; /* NULL: nothing was appended yet */
    size_t n, capacity;
    bool failed;
};

/** Make room for n more bytes, to be written at data + n. Returns whether there is. */
bool base_buffer_reserve(struct base_buffer *b, size_t n);

/** Append n bytes, which are none of the buffer's own. */
void base_buffer_add(struct base_buffer *b, const void *bytes, size_t n);

/** Append a text (printf format). */
void base_buffer_format(struct base_buffer *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** STATUS_MEMORY, "no memory for <what>", where something failed. */
enum status base_buffer_check(const struct base_buffer *b, const char *what,
                              struct status_why *why);

/**
 * The bytes, owned by the caller, and the buffer empty again. NULL: something failed, and all is
 * released. An empty text is "".
 */
char *base_buffer_take(struct base_buffer *b);

/** Release the bytes; the buffer is empty again. */
void base_buffer_free(struct base_buffer *b);

#endif

/**
 * A cursor over the bytes of a file that cannot leave them.
 *
 * Every read checks the distance to the end first. A failed read leaves the cursor where it
 * was and writes a sentence with `what` is read, the byte offset, what was expected and
 * what was found; callers put the key or tensor and the path in front (status_context).
 * All integers are little-endian and may lie at any address.
 */
#ifndef GGUF_CURSOR_H
#define GGUF_CURSOR_H

#include <stdint.h>
#include <string.h>

#include "gguf/file.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "GGUF files are little-endian and are read in place: this machine is not"
#endif

struct gguf_cursor {
    const uint8_t *data;
    uint64_t n_bytes;
    uint64_t at; /* <= n_bytes: offset of the next byte */
};

/** Numbers at any address. */
static inline uint16_t gguf_load_u16(const void *bytes)
{
    uint16_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static inline uint32_t gguf_load_u32(const void *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static inline uint64_t gguf_load_u64(const void *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/** Bytes between the cursor and the end. */
static inline uint64_t gguf_cursor_left(const struct gguf_cursor *cursor)
{
    return cursor->n_bytes - cursor->at;
}

/** Step over n_bytes and point *bytes at them.   Fails: STATUS_FORMAT (too few are left). */
enum status gguf_cursor_take(struct gguf_cursor *cursor, uint64_t n_bytes, const uint8_t **bytes,
                             const char *what, struct status_why *why);

enum status gguf_cursor_u32(struct gguf_cursor *cursor, uint32_t *value, const char *what,
                            struct status_why *why);
enum status gguf_cursor_u64(struct gguf_cursor *cursor, uint64_t *value, const char *what,
                            struct status_why *why);

/** A string: its length in 8 bytes, then its bytes. */
enum status gguf_cursor_string(struct gguf_cursor *cursor, struct base_string *value,
                               const char *what, struct status_why *why);

/** A string of at least one byte and without NUL. */
enum status gguf_cursor_name(struct gguf_cursor *cursor, struct base_string *name, const char *what,
                             struct status_why *why);

#endif

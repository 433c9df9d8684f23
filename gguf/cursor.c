#include "gguf/cursor.h"

#include <inttypes.h>

#include "base/text/quote.h"

enum status gguf_cursor_take(struct gguf_cursor *cursor, uint64_t n_bytes, const uint8_t **bytes,
                             const char *what, struct status_why *why)
{
    if (n_bytes > gguf_cursor_left(cursor))
        return status_fail(why, STATUS_FORMAT,
                           "%s at byte %" PRIu64 " is cut off: expected %" PRIu64
                           " bytes, found %" PRIu64
                           " before the end of the file: an incomplete download?",
                           what, cursor->at, n_bytes, gguf_cursor_left(cursor));
    *bytes = cursor->data + cursor->at;
    cursor->at += n_bytes;
    return STATUS_OK;
}

enum status gguf_cursor_u32(struct gguf_cursor *cursor, uint32_t *value, const char *what,
                            struct status_why *why)
{
    const uint8_t *bytes = NULL;
    enum status status = gguf_cursor_take(cursor, sizeof *value, &bytes, what, why);
    if (!status)
        *value = gguf_load_u32(bytes);
    return status;
}

enum status gguf_cursor_u64(struct gguf_cursor *cursor, uint64_t *value, const char *what,
                            struct status_why *why)
{
    const uint8_t *bytes = NULL;
    enum status status = gguf_cursor_take(cursor, sizeof *value, &bytes, what, why);
    if (!status)
        *value = gguf_load_u64(bytes);
    return status;
}

enum status gguf_cursor_string(struct gguf_cursor *cursor, struct base_string *value,
                               const char *what, struct status_why *why)
{
    struct gguf_cursor next = *cursor;
    uint64_t n_bytes;
    enum status status = gguf_cursor_u64(&next, &n_bytes, what, why);
    if (status)
        return status;
    if (n_bytes > gguf_cursor_left(&next))
        return status_fail(why, STATUS_FORMAT,
                           "%s at byte %" PRIu64 " has a length of %" PRIu64
                           " bytes, expected at most the %" PRIu64
                           " before the end of the file: an incomplete download?",
                           what, cursor->at, n_bytes, gguf_cursor_left(&next));
    value->data = (const char *)next.data + next.at;
    value->n_bytes = (size_t)n_bytes;
    cursor->at = next.at + n_bytes;
    return STATUS_OK;
}

enum status gguf_cursor_name(struct gguf_cursor *cursor, struct base_string *name, const char *what,
                             struct status_why *why)
{
    uint64_t at = cursor->at;
    struct base_quoted shown;
    enum status status = gguf_cursor_string(cursor, name, what, why);
    if (!status && name->n_bytes == 0)
        status = status_fail(why, STATUS_FORMAT, "%s at byte %" PRIu64 " is empty, expected a name",
                             what, at);
    if (!status && memchr(name->data, '\0', name->n_bytes))
        status = status_fail(why, STATUS_FORMAT,
                             "%s %s at byte %" PRIu64 " has a NUL byte, expected none", what,
                             base_quote(&shown, *name), at);
    return status;
}

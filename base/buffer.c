#include "base/buffer.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

bool base_buffer_reserve(struct base_buffer *b, size_t n)
{
    b->failed = b->failed || n >= SIZE_MAX - b->n ||
                base_array_reserve(b->data, b->capacity, b->n + n + 1, "bytes", NULL);
    return !b->failed;
}

void base_buffer_add(struct base_buffer *b, const void *bytes, size_t n)
{
    if (!base_buffer_reserve(b, n))
        return;
    if (n)
        memcpy(b->data + b->n, bytes, n);
    b->n += n;
    b->data[b->n] = '\0';
}

void base_buffer_format(struct base_buffer *b, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    b->failed = b->failed || n < 0;
    if (base_buffer_reserve(b, n < 0 ? 0 : (size_t)n))
        b->n += (size_t)vsnprintf(b->data + b->n, (size_t)n + 1, format, again);
    va_end(again);
    va_end(args);
}

enum status base_buffer_check(const struct base_buffer *b, const char *what, struct status_why *why)
{
    return b->failed ? status_fail(why, STATUS_MEMORY, "no memory for %s", what) : STATUS_OK;
}

char *base_buffer_take(struct base_buffer *b)
{
    base_buffer_add(b, "", 0);
    char *data = b->data;
    b->data = NULL;
    if (b->failed) {
        free(data);
        data = NULL;
    }
    *b = (struct base_buffer){0};
    return data;
}

void base_buffer_free(struct base_buffer *b)
{
    free(b->data);
    *b = (struct base_buffer){0};
}

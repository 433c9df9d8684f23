#include "model/chat/value/run.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/clock.h"

struct chat_block {
    struct chat_block *next;
    max_align_t bytes[];
};

enum { BLOCK_BYTES = 64 << 10, LOOK_STEPS = 4096 };

void model_chat_begin(struct chat_run *r, const struct model_chat_limits *limits,
                      struct status_why *why)
{
    *r = (struct chat_run){.why = why,
                           .limits = *limits,
                           .n_bytes_left = limits->n_bytes,
                           .work_left = limits->work,
                           .deadline = base_clock_thread_seconds() + limits->seconds};
}

void model_chat_begin_part(struct chat_run *r, const struct chat_run *of, struct status_why *why)
{
    *r = (struct chat_run){.why = why,
                           .limits = of->limits,
                           .n_bytes_left = of->n_bytes_left,
                           .work_left = of->work_left,
                           .deadline = of->deadline,
                           .unlooked = of->unlooked,
                           .time = of->time};
}

void model_chat_take_part(struct chat_run *of, const struct chat_run *r)
{
    of->work_left = r->work_left;
    of->unlooked = r->unlooked;
}

void model_chat_end(struct chat_run *r)
{
    for (struct chat_block *block = r->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    r->blocks = NULL;
}

void model_chat_fail(struct chat_run *r, enum status status, const char *format, ...)
{
    if (r->status)
        return;
    char text[sizeof(struct status_why)];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    r->status = status_fail(r->why, status, "%s", text);
    r->is_spent = status == STATUS_MEMORY;
    if (r->line)
        status_context(r->why, "chat template, line %u", (unsigned)r->line);
}

static bool add_block(struct chat_run *r, size_t n_bytes)
{
    n_bytes = base_max(n_bytes, (size_t)BLOCK_BYTES);
    struct chat_block *block =
        n_bytes <= r->n_bytes_left ? calloc(1, sizeof *block + n_bytes) : NULL;
    if (!block && n_bytes <= r->n_bytes_left)
        model_chat_fail(r, STATUS_MEMORY, "out of memory");
    else if (!block)
        model_chat_fail(r, STATUS_UNSUPPORTED,
                        "takes more than %zu bytes of memory, the limit of a conversation",
                        r->limits.n_bytes);
    if (!block)
        return false;
    r->n_bytes_left -= n_bytes;
    block->next = r->blocks;
    r->blocks = block;
    r->at = (char *)block->bytes;
    r->end = r->at + n_bytes;
    return true;
}

void *model_chat_alloc(struct chat_run *r, size_t n, size_t item_bytes)
{
    enum { ALIGN = _Alignof(max_align_t) };
    if (r->status)
        return NULL;
    size_t n_bytes;
    if (__builtin_mul_overflow(n, item_bytes, &n_bytes) || n_bytes > SIZE_MAX / 4)
        n_bytes = SIZE_MAX / 4;
    n_bytes = (n_bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (n_bytes > (size_t)(r->end - r->at) && !add_block(r, n_bytes))
        return NULL;
    void *memory = r->at;
    r->at += n_bytes;
    return memory;
}

static void look_at_clock(struct chat_run *r)
{
    r->unlooked = 0;
    if (r->status || base_clock_thread_seconds() <= r->deadline)
        return;
    model_chat_fail(r, STATUS_UNSUPPORTED,
                    "takes more than %g seconds of processor time, the limit of a conversation",
                    r->limits.seconds);
    r->is_spent = true;
}

void *model_chat_grow(struct chat_run *r, void *items, size_t n, size_t *capacity,
                      size_t item_bytes)
{
    if (n < *capacity || r->status)
        return items;
    size_t wanted = base_max(2 * n, (size_t)4);
    void *grown = model_chat_alloc(r, wanted, item_bytes);
    if (!grown)
        return items;
    if (items)
        memcpy(grown, items, n * item_bytes);
    *capacity = wanted;
    return grown;
}

void model_chat_work(struct chat_run *r, size_t n)
{
    if (n >= r->work_left && !r->status) {
        model_chat_fail(r, STATUS_UNSUPPORTED,
                        "takes more than %" PRIu64 " steps, the limit of a conversation",
                        r->limits.work);
        r->is_spent = true;
    }
    r->work_left -= base_min((uint64_t)n, r->work_left);
    r->unlooked += n;
    if (r->unlooked >= LOOK_STEPS)
        look_at_clock(r);
}

bool model_chat_enter(struct chat_run *r, uint32_t line)
{
    r->depth++;
    r->line = line;
    model_chat_work(r, 1);
    if (r->depth > CHAT_MAX_DEPTH)
        model_chat_fail(r, STATUS_UNSUPPORTED, "nested more than %d deep", (int)CHAT_MAX_DEPTH);
    return !r->status;
}

void model_chat_put(struct chat_run *r, struct chat_buffer *buffer, const char *bytes, size_t n)
{
    if (r->status || n == 0)
        return;
    if (n > buffer->capacity - buffer->n_bytes) {
        size_t capacity = base_max(2 * buffer->capacity, base_max(buffer->n_bytes + n, (size_t)64));
        char *grown = model_chat_alloc(r, capacity, 1);
        if (!grown)
            return;
        if (buffer->n_bytes)
            memcpy(grown, buffer->data, buffer->n_bytes);
        buffer->data = grown;
        buffer->capacity = capacity;
    }
    memcpy(buffer->data + buffer->n_bytes, bytes, n);
    buffer->n_bytes += n;
    r->n_put += n;
    model_chat_work(r, r->n_put / 16);
    r->n_put %= 16;
}

void model_chat_put_string(struct chat_run *r, struct chat_buffer *buffer, struct base_string s)
{
    model_chat_put(r, buffer, s.data, s.n_bytes);
}

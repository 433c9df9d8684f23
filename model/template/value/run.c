#include "model/template/value/run.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/clock.h"

struct jinja_block {
    struct jinja_block *next;
    max_align_t bytes[];
};

enum { BLOCK_BYTES = 64 << 10, LOOK_STEPS = 4096 };

const struct jinja_limits jinja_default_limits = {(size_t)256 << 20, 100000000, 2};

void jinja_begin(struct jinja_run *r, const struct jinja_limits *limits, struct status_why *why)
{
    *r = (struct jinja_run){.why = why,
                            .limits = *limits,
                            .n_bytes_left = limits->n_bytes,
                            .work_left = limits->work,
                            .deadline = base_clock_thread_seconds() + limits->seconds};
}

void jinja_begin_part(struct jinja_run *r, const struct jinja_run *of, struct status_why *why)
{
    *r = (struct jinja_run){.why = why,
                            .limits = of->limits,
                            .n_bytes_left = of->n_bytes_left,
                            .work_left = of->work_left,
                            .deadline = of->deadline,
                            .unlooked = of->unlooked,
                            .time = of->time};
}

void jinja_take_part(struct jinja_run *of, const struct jinja_run *r)
{
    of->work_left = r->work_left;
    of->unlooked = r->unlooked;
}

void jinja_end(struct jinja_run *r)
{
    for (struct jinja_block *block = r->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    r->blocks = NULL;
}

void jinja_fail(struct jinja_run *r, enum status status, const char *format, ...)
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

static bool add_block(struct jinja_run *r, size_t n_bytes)
{
    n_bytes = base_max(n_bytes, (size_t)BLOCK_BYTES);
    struct jinja_block *block =
        n_bytes <= r->n_bytes_left ? calloc(1, sizeof *block + n_bytes) : NULL;
    if (!block && n_bytes <= r->n_bytes_left)
        jinja_fail(r, STATUS_MEMORY, "out of memory");
    else if (!block)
        jinja_fail(r, STATUS_UNSUPPORTED,
                   "takes more than %zu bytes of memory, the limit of a conversation",
                   r->limits.n_bytes);
    if (!block) {
        r->is_full = true;
        return false;
    }
    r->n_bytes_left -= n_bytes;
    block->next = r->blocks;
    r->blocks = block;
    r->at = (char *)block->bytes;
    r->end = r->at + n_bytes;
    return true;
}

void *jinja_alloc(struct jinja_run *r, size_t n, size_t item_bytes)
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

static void look_at_clock(struct jinja_run *r)
{
    r->unlooked = 0;
    if (r->status || base_clock_thread_seconds() <= r->deadline)
        return;
    jinja_fail(r, STATUS_UNSUPPORTED,
               "takes more than %g seconds of processor time, the limit of a conversation",
               r->limits.seconds);
    r->is_spent = true;
}

void *jinja_grow(struct jinja_run *r, void *items, size_t n, size_t *capacity, size_t item_bytes)
{
    if (n < *capacity || r->status)
        return items;
    size_t wanted = base_max(2 * n, (size_t)4);
    void *grown = jinja_alloc(r, wanted, item_bytes);
    if (!grown)
        return items;
    if (items)
        memcpy(grown, items, n * item_bytes);
    *capacity = wanted;
    return grown;
}

void jinja_work(struct jinja_run *r, size_t n)
{
    if (n >= r->work_left && !r->status) {
        jinja_fail(r, STATUS_UNSUPPORTED,
                   "takes more than %" PRIu64 " steps, the limit of a conversation",
                   r->limits.work);
        r->is_spent = true;
    }
    r->work_left -= base_min((uint64_t)n, r->work_left);
    r->unlooked += n;
    if (r->unlooked >= LOOK_STEPS)
        look_at_clock(r);
}

bool jinja_enter(struct jinja_run *r, uint32_t line)
{
    r->depth++;
    r->line = line;
    jinja_work(r, 1);
    if (r->depth > JINJA_MAX_DEPTH)
        jinja_fail(r, STATUS_UNSUPPORTED, "nested more than %d deep", (int)JINJA_MAX_DEPTH);
    return !r->status;
}

void jinja_put(struct jinja_run *r, struct jinja_buffer *buffer, const char *bytes, size_t n)
{
    if (r->status || n == 0)
        return;
    if (n > buffer->capacity - buffer->n_bytes) {
        size_t capacity = base_max(2 * buffer->capacity, base_max(buffer->n_bytes + n, (size_t)64));
        char *grown = jinja_alloc(r, capacity, 1);
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
    jinja_work(r, r->n_put / 16);
    r->n_put %= 16;
}

void jinja_put_string(struct jinja_run *r, struct jinja_buffer *buffer, struct base_string s)
{
    jinja_put(r, buffer, s.data, s.n_bytes);
}

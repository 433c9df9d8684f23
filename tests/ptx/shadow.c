#include "tests/ptx/shadow.h"

#include <stdlib.h>
#include <string.h>

enum {
    THREAD = 0x3ff,
    ATOMIC = 0x400,  /* of a write */
    LANES = 0x800,   /* other lanes of that thread's warp too */
    WARPS = 0x1000,  /* other warps too */
    BLOCKS = 0x2000, /* of a read: other blocks of the launch too */
    FLIGHT = 0x4000, /* of a write: by a copy that is not waited for */
    SPLIT = 0x8000,  /* in r_by of a word */
    LANES_OF_WARP = 32
};

void ptx_shadow_open(struct ptx_shadow *s, size_t n_bytes)
{
    *s = (struct ptx_shadow){.n_bytes = n_bytes};
    s->words = calloc(n_bytes / 4 + 1, sizeof *s->words);
    if (!s->words)
        abort();
}

void ptx_shadow_close(struct ptx_shadow *s)
{
    free(s->words);
    free(s->bytes);
    *s = (struct ptx_shadow){0};
}

void ptx_shadow_clear(struct ptx_shadow *s)
{
    memset(s->words, 0, (s->n_bytes / 4 + 1) * sizeof *s->words);
}

/** Whether an access by `by` since the last barrier is not ordered with one of now's thread. */
static bool collides(unsigned by, unsigned sync, const struct ptx_now *now)
{
    unsigned thread = by & THREAD;
    if (by & WARPS)
        return true;
    if (thread == now->thread && !(by & LANES))
        return false;
    return thread / LANES_OF_WARP != now->thread / LANES_OF_WARP || sync == now->sync;
}

/** `by` of an access now, after another one since the last barrier. */
static unsigned joined(unsigned by, unsigned sync, const struct ptx_now *now)
{
    unsigned thread = by & THREAD, keep = by & (WARPS | BLOCKS);
    if (thread / LANES_OF_WARP != now->thread / LANES_OF_WARP)
        keep |= WARPS;
    else if (sync == now->sync)
        keep |= thread != now->thread ? LANES : by & LANES;
    return now->thread | keep;
}

static enum ptx_fault check_writer(const struct ptx_cell *c, enum ptx_touch how,
                                   const struct ptx_now *now)
{
    if (c->w_tick < now->launch)
        return PTX_FINE;
    bool atomic = how == PTX_CHANGE && c->w_by & ATOMIC;
    if (c->w_tick < now->block)
        return atomic ? PTX_FINE : PTX_RACE_OF_BLOCKS;
    if (c->w_by & FLIGHT && how != PTX_LAND)
        return PTX_IN_FLIGHT;
    if (how == PTX_READ_CONSTANT)
        return PTX_NOT_CONSTANT;
    if (c->w_tick == now->tick && !atomic && collides(c->w_by, c->w_sync, now))
        return PTX_RACE_OF_THREADS;
    return PTX_FINE;
}

static enum ptx_fault check_readers(const struct ptx_cell *c, const struct ptx_now *now)
{
    if (c->r_tick < now->launch)
        return PTX_FINE;
    if (c->r_tick < now->block || c->r_by & BLOCKS)
        return PTX_RACE_OF_BLOCKS;
    if (c->r_tick == now->tick && collides(c->r_by, c->r_sync, now))
        return PTX_RACE_OF_THREADS;
    return PTX_FINE;
}

static void note_read(struct ptx_cell *c, const struct ptx_now *now)
{
    unsigned by = now->thread | (c->r_by & SPLIT);
    if (c->r_tick == now->tick)
        by |= joined(c->r_by, c->r_sync, now);
    else if (c->r_tick >= now->launch)
        by |= c->r_tick < now->block ? BLOCKS : c->r_by & BLOCKS;
    c->r_by = (uint16_t)by;
    c->r_tick = now->tick;
    c->r_sync = now->sync;
}

static void note_write(struct ptx_cell *c, enum ptx_touch how, const struct ptx_now *now)
{
    unsigned by = now->thread;
    if (how == PTX_CHANGE) {
        bool again = c->w_tick == now->tick;
        if (again && !(c->w_by & ATOMIC))
            return; /* the thread's own plain write: others collide with that */
        by = (again ? joined(c->w_by, c->w_sync, now) : by) | ATOMIC;
    }
    c->w_by = (uint16_t)(by | (how == PTX_DEPART ? FLIGHT : 0));
    c->w_tick = now->tick;
    c->w_sync = now->sync;
}

/** The common case: what was written before the last barrier, or before the launch, is read. */
static bool is_quiet(const struct ptx_cell *c, const struct ptx_now *now)
{
    return c->w_tick >= now->valid &&
           (c->w_tick < now->launch ||
            (c->w_tick >= now->block && c->w_tick < now->tick && !(c->w_by & FLIGHT)));
}

static enum ptx_fault touch_cell(struct ptx_cell *c, enum ptx_touch how, const struct ptx_now *now,
                                 unsigned *other)
{
    bool reads = how == PTX_READ || how == PTX_READ_CONSTANT;
    if (how == PTX_READ && is_quiet(c, now)) {
        bool is_known =
            c->r_tick == now->tick &&
            (c->r_by & WARPS || ((c->r_by & THREAD) == now->thread && c->r_sync == now->sync));
        if (!is_known)
            note_read(c, now);
        return PTX_FINE;
    }
    enum ptx_fault fault = check_writer(c, how, now);
    *other = c->w_by & THREAD;
    if (!fault && (reads || how == PTX_CHANGE) && c->w_tick < now->valid)
        fault = PTX_NEVER_WRITTEN;
    if (!fault && !reads) {
        fault = check_readers(c, now);
        *other = c->r_by & THREAD;
    }
    if (reads)
        note_read(c, now);
    else
        note_write(c, how, now);
    return fault;
}

static void split(struct ptx_shadow *s, size_t word)
{
    if (!s->bytes)
        s->bytes = calloc((s->n_bytes / 4 + 1) * 4, sizeof *s->bytes);
    if (!s->bytes)
        abort();
    for (size_t i = 0; i < 4; i++)
        s->bytes[4 * word + i] = s->words[word];
    s->words[word].r_by |= SPLIT;
}

enum ptx_fault ptx_shadow_touch(struct ptx_shadow *s, size_t at, size_t n_bytes, enum ptx_touch how,
                                const struct ptx_now *now, unsigned *other)
{
    size_t end = at + n_bytes;
    while (at < end) {
        size_t word = at / 4, next = word * 4 + 4 < end ? word * 4 + 4 : end;
        struct ptx_cell *c = &s->words[word];
        enum ptx_fault fault = PTX_FINE;
        if (!(c->r_by & SPLIT) && next - at < 4)
            split(s, word);
        if (!(c->r_by & SPLIT))
            fault = touch_cell(c, how, now, other);
        for (; c->r_by & SPLIT && at < next && !fault; at++)
            fault = touch_cell(&s->bytes[at], how, now, other);
        if (fault)
            return fault;
        at = next;
    }
    return PTX_FINE;
}

void ptx_shadow_write(struct ptx_shadow *s, size_t at, size_t n_bytes)
{
    const struct ptx_now host = {.launch = 1, .block = 1, .tick = 1, .valid = 0};
    const struct ptx_cell written = {.w_tick = 1};
    unsigned other;
    for (size_t end = at + n_bytes; at < end;) {
        if (at % 4 == 0 && end - at >= 4) {
            s->words[at / 4] = written; /* whole again */
            at += 4;
        } else {
            ptx_shadow_touch(s, at, 1, PTX_LAND, &host, &other);
            s->bytes[at++] = written;
        }
    }
}

size_t ptx_shadow_unwritten(const struct ptx_shadow *s, size_t at, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        const struct ptx_cell *c = &s->words[(at + i) / 4];
        if ((c->r_by & SPLIT ? s->bytes[at + i].w_tick : c->w_tick) == 0)
            return i;
    }
    return n_bytes;
}

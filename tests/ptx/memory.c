/* Instructions that touch memory: every address is checked before it is used. */
#include <stdio.h>
#include <string.h>

#include "tests/ptx/block.h"
#include "tests/ptx/text.h"
#include "tests/ptx/traffic.h"

/** An access of one lane. */
struct access {
    struct ptx_block *b;
    struct ptx_warp *w;
    const struct ptx_ins *in;
    struct ptx_memory *m;
    unsigned lane;
    enum ptx_touch how;
    struct ptx_now own, global; /* in the block's memory: others' is not this block's */
};

static const char *const space_names[] = {"generic", "global", "shared", "parameter", "local"};

static void fault(const struct access *x, uint64_t address, bool is_fatal, const char *what)
{
    static const char *const hows[] = {"reads",   "reads",     "writes",
                                       "changes", "copies to", "copied"};
    ptx_block_report(x->b, x->in->line, x->w->first_thread + x->lane, is_fatal,
                     "%s %s memory at %#llx: %s", hows[x->how], space_names[x->m->space],
                     (unsigned long long)address, what);
}

static void shadow_fault(const struct access *x, uint64_t address, enum ptx_fault f, unsigned other)
{
    static const char *const words[] = {
        [PTX_NEVER_WRITTEN] = "nobody wrote that",
        [PTX_RACE_OF_THREADS] = "a race within the block",
        [PTX_RACE_OF_BLOCKS] = "a race between blocks",
        [PTX_NOT_CONSTANT] = "it was written in this launch, and is read as a constant",
        [PTX_IN_FLIGHT] = "a copy to there was not waited for",
    };
    char text[128];
    snprintf(text, sizeof text, "%s (the other: thread %u)", words[f], other);
    fault(x, address, false, text);
}

/** Shared or local memory, of which there is n_bytes from `first` on. */
static uint8_t *reach_own(const struct access *x, enum ptx_memory_space space, uint64_t address,
                          size_t n_bytes, size_t first, size_t n_there)
{
    struct ptx_block *b = x->b;
    bool is_shared = space == PTX_SHARED;
    uint64_t at = (uint32_t)address - (uint64_t)PTX_BASE;
    if (at > n_there || n_bytes > n_there - at)
        fault(x, at, true,
              is_shared ? "beyond what the launch gives the block" : "beyond what the thread has");
    unsigned other;
    enum ptx_fault f = ptx_shadow_touch(is_shared ? b->shared_shadow : b->local_shadow, first + at,
                                        n_bytes, x->how, &x->own, &other);
    if (f)
        shadow_fault(x, at, f, other);
    return (is_shared ? b->shared : b->local) + first + at;
}

static uint8_t *reach_global(const struct access *x, uint64_t address, size_t n_bytes)
{
    struct ptx_allocation *a = ptx_space_find(x->b->space, address, &x->m->hint);
    size_t at = a ? (size_t)(address - (uint64_t)(uintptr_t)a->memory) : 0;
    if (!a || n_bytes > a->n_bytes - at) {
        fault(x, address, true, "in no allocation");
        return NULL;
    }
    if (a->is_constant && x->how != PTX_READ && x->how != PTX_READ_CONSTANT)
        fault(x, address, true, "it is constant");
    unsigned other;
    enum ptx_fault f = ptx_shadow_touch(&a->shadow, at, n_bytes, x->how, &x->global, &other);
    if (f)
        shadow_fault(x, at, f, other);
    return a->memory + at;
}

static void set_lane(struct access *x, unsigned lane)
{
    x->lane = lane;
    x->own.thread = x->global.thread = (uint16_t)(x->w->first_thread + lane);
}

static struct access access_of(struct ptx_block *b, struct ptx_warp *w, const struct ptx_ins *in,
                               struct ptx_memory *m, enum ptx_touch how)
{
    struct access x = {.b = b, .w = w, .in = in, .m = m, .how = how, .own = b->now};
    x.own.sync = w->sync;
    x.global = x.own;
    x.own.launch = b->now.block;
    x.global.valid = b->may_read_unwritten ? 0 : 1;
    return x;
}

/** The host's address of n bytes; all is checked. */
static uint8_t *reach(const struct access *x, enum ptx_memory_space space, uint64_t address,
                      size_t n_bytes)
{
    if (address % n_bytes != 0)
        fault(x, address, true, "not aligned");
    size_t n_local = x->b->kernel->local_bytes;
    if (space == PTX_SHARED)
        return reach_own(x, space, address, n_bytes, 0, x->b->shared_bytes);
    if (space == PTX_LOCAL)
        return reach_own(x, space, address, n_bytes, x->own.thread * n_local, n_local);
    return reach_global(x, address, n_bytes);
}

/** The address that operand k says. */
static uint64_t address_of(const struct access *x, unsigned k, int64_t offset, unsigned n_bytes)
{
    const void *reg = ptx_register(x->w->file, x->in->at[k]);
    if (n_bytes == 4)
        return (uint32_t)(((const uint32_t *)reg)[x->lane] + (uint32_t)offset);
    return ((const uint64_t *)reg)[x->lane] + (uint64_t)offset;
}

static uint64_t get_bytes(const void *p, unsigned n_bytes, bool is_signed)
{
    switch (n_bytes) {
    case 1:
        return is_signed ? (uint64_t)(int64_t) * (const int8_t *)p : *(const uint8_t *)p;
    case 2:
        return is_signed ? (uint64_t)(int64_t) * (const int16_t *)p : *(const uint16_t *)p;
    case 4:
        return is_signed ? (uint64_t)(int64_t) * (const int32_t *)p : *(const uint32_t *)p;
    default:
        return *(const uint64_t *)p;
    }
}

static void put_register(void *reg, unsigned lane, unsigned n_bytes, uint64_t value)
{
    if (n_bytes == 2)
        ((uint16_t *)reg)[lane] = (uint16_t)value;
    else if (n_bytes == 4)
        ((uint32_t *)reg)[lane] = (uint32_t)value;
    else
        ((uint64_t *)reg)[lane] = value;
}

static void load(const struct access *x)
{
    const struct ptx_memory *m = x->m;
    uint64_t address = address_of(x, m->n_elems, m->offset, m->address_bytes);
    const uint8_t *p = reach(x, m->space, address, (size_t)m->n_elems * m->elem_bytes);
    for (unsigned i = 0; i < m->n_elems; i++)
        put_register(ptx_register(x->w->file, x->in->at[i]), x->lane, m->reg_bytes,
                     get_bytes(p + (size_t)i * m->elem_bytes, m->elem_bytes, m->is_signed));
}

static void store(const struct access *x)
{
    const struct ptx_memory *m = x->m;
    uint64_t address = address_of(x, 0, m->offset, m->address_bytes);
    uint8_t *p = reach(x, m->space, address, (size_t)m->n_elems * m->elem_bytes);
    for (unsigned i = 0; i < m->n_elems; i++) {
        const uint8_t *reg = ptx_register(x->w->file, x->in->at[1 + i]);
        memcpy(p + (size_t)i * m->elem_bytes, reg + (size_t)x->lane * m->reg_bytes, m->elem_bytes);
    }
}

static void change(const struct access *x)
{
    const struct ptx_memory *m = x->m;
    unsigned n_out = x->in->n_out;
    uint32_t *p = (uint32_t *)(void *)reach(x, m->space,
                                            address_of(x, n_out, m->offset, m->address_bytes), 4);
    uint32_t old = *p;
    uint32_t value = ((uint32_t *)ptx_register(x->w->file, x->in->at[n_out + 1]))[x->lane];
    *p = m->is_max ? (value > old ? value : old) : old + value;
    if (n_out)
        put_register(ptx_register(x->w->file, x->in->at[0]), x->lane, 4, old);
}

/** Parameters begin at address 0. */
static void load_param(const struct access *x)
{
    const struct ptx_memory *m = x->m;
    size_t n_bytes = (size_t)m->n_elems * m->elem_bytes;
    uint64_t address = address_of(x, m->n_elems, m->offset, m->address_bytes);
    if (address > x->b->kernel->param_bytes || n_bytes > x->b->kernel->param_bytes - address) {
        ptx_block_report(x->b, x->in->line, x->own.thread, true, "reads a parameter at %lld",
                         (long long)address);
        return;
    }
    for (unsigned i = 0; i < m->n_elems; i++)
        put_register(ptx_register(x->w->file, x->in->at[i]), x->lane, m->reg_bytes,
                     get_bytes(x->b->params + address + (size_t)i * m->elem_bytes, m->elem_bytes,
                               m->is_signed));
}

/** The bytes arrive when they are waited for; until then others are there. */
static void depart(const struct access *x)
{
    const struct ptx_memory *m = x->m;
    struct ptx_warp *w = x->w;
    struct access read = *x, write = *x;
    read.how = PTX_READ;
    write.how = PTX_DEPART;
    uint64_t to = address_of(x, 0, m->offset, 4);
    uint8_t *target = reach(&write, PTX_SHARED, to, m->elem_bytes);
    const uint8_t *source =
        reach(&read, PTX_GLOBAL, address_of(x, 1, m->offset2, 8), m->elem_bytes);
    memset(target, 0xff, m->elem_bytes);
    if (w->n_flights == w->flight_capacity) {
        w->flight_capacity = 2 * w->flight_capacity + 64;
        w->flights = ptx_grow(w->flights, w->flight_capacity * sizeof *w->flights);
    }
    w->flights[w->n_flights++] = (struct ptx_flight){
        target, source, (uint32_t)to, w->groups[x->lane], m->elem_bytes, (uint8_t)x->lane};
}

/** Copies of all groups of the lanes but the last `left`. all: those of no group yet too. */
static void land(struct ptx_block *b, struct ptx_warp *w, const struct ptx_ins *in, uint32_t mask)
{
    struct ptx_memory to = {.space = PTX_SHARED};
    struct access x = access_of(b, w, in, &to, PTX_LAND);
    size_t n_kept = 0;
    for (size_t i = 0; i < w->n_flights; i++) {
        const struct ptx_flight f = w->flights[i];
        uint32_t left = in->n_in ? ((uint32_t *)ptx_register(w->file, in->at[0]))[f.lane] : 0;
        bool lands = in->n_in ? f.group + left < w->groups[f.lane] : true;
        if (!(mask >> f.lane & 1) || !lands) {
            w->flights[n_kept++] = f;
            continue;
        }
        set_lane(&x, f.lane);
        memcpy(reach(&x, PTX_SHARED, f.at, f.n_bytes), f.from, f.n_bytes);
    }
    w->n_flights = n_kept;
}

/** Lane 8 m + r has the address of row r of matrix m, 16 bytes; lanes get two numbers of each. */
static void matrix(const struct access *x)
{
    const struct ptx_memory *m = x->m;
    uint16_t rows[4][8][8];
    for (unsigned lane = 0; lane < 8u * m->n_elems; lane++) {
        struct access row = *x;
        set_lane(&row, lane);
        memcpy(rows[lane / 8][lane % 8],
               reach(&row, PTX_SHARED, address_of(&row, m->n_elems, m->offset, 4), 16), 16);
    }
    for (unsigned i = 0; i < m->n_elems; i++) {
        uint32_t *to = ptx_register(x->w->file, x->in->at[i]);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            unsigned row = lane / 4, column = lane % 4 * 2;
            uint32_t low = m->is_turned ? rows[i][column][row] : rows[i][row][column];
            uint32_t high = m->is_turned ? rows[i][column + 1][row] : rows[i][row][column + 1];
            to[lane] = low | high << 16;
        }
    }
}

static void run_lanes(struct ptx_block *b, struct ptx_warp *w, const struct ptx_ins *in,
                      uint32_t mask, enum ptx_touch how, void (*one)(const struct access *x))
{
    struct access x = access_of(b, w, in, &b->kernel->memory[in->memory], how);
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        set_lane(&x, (unsigned)__builtin_ctz(rest));
        one(&x);
    }
}

void ptx_memory_run(struct ptx_block *b, struct ptx_warp *w, const struct ptx_ins *in,
                    uint32_t mask)
{
    const struct ptx_memory *m = &b->kernel->memory[in->memory];
    if (b->traffic)
        ptx_traffic_count(b, w, in, mask);
    switch (in->kind) {
    case PTX_LOAD:
        if (m->space == PTX_PARAM)
            run_lanes(b, w, in, mask, PTX_READ, load_param);
        else
            run_lanes(b, w, in, mask, m->read_only ? PTX_READ_CONSTANT : PTX_READ, load);
        return;
    case PTX_STORE:
        run_lanes(b, w, in, mask, PTX_WRITE, store);
        return;
    case PTX_ATOMIC:
        run_lanes(b, w, in, mask, PTX_CHANGE, change);
        return;
    case PTX_COPY:
        run_lanes(b, w, in, mask, PTX_DEPART, depart);
        return;
    case PTX_COPY_COMMIT:
        for (uint32_t rest = mask; rest; rest &= rest - 1)
            w->groups[__builtin_ctz(rest)]++;
        return;
    case PTX_COPY_WAIT:
        land(b, w, in, mask);
        return;
    default:
        run_lanes(b, w, in, 1, PTX_READ, matrix);
        return;
    }
}

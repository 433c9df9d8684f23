#include <stdlib.h>
#include <string.h>

#include "tests/ptx/block.h"
#include "tests/ptx/text.h"

enum { FAR = 0xffffffff };

static void fill(void *reg, unsigned n_bytes, uint64_t value)
{
    if (n_bytes == 0) {
        *(uint32_t *)reg = value ? PTX_ALL_LANES : 0;
        return;
    }
    for (unsigned lane = 0; lane < PTX_LANES; lane++)
        memcpy((uint8_t *)reg + (size_t)lane * n_bytes, &value, n_bytes);
}

void ptx_warp_open(struct ptx_warp *w, const struct ptx_kernel *k, uint32_t first_thread,
                   uint32_t n_threads)
{
    *w = (struct ptx_warp){.first_thread = first_thread};
    size_t n_bytes = (size_t)k->n_units * PTX_UNIT;
    void *file;
    if (posix_memalign(&file, PTX_UNIT, n_bytes) != 0)
        abort();
    w->file = memset(file, 0xa5, n_bytes); /* what uninitialised registers hold */
    w->init = ptx_grow(NULL, k->n_units * sizeof *w->init);
    memset(w->init, 0xff, k->n_units * sizeof *w->init);
    for (size_t i = 0; i < k->n_constants; i++)
        fill(ptx_register(w->file, k->constants[i].unit), k->constants[i].n_bytes,
             k->constants[i].value);
    fill(ptx_register(w->file, k->specials[PTX_NTID]), 4, n_threads);
    for (uint32_t lane = 0; lane < PTX_LANES; lane++) {
        ((uint32_t *)ptx_register(w->file, k->specials[PTX_TID]))[lane] = first_thread + lane;
        ((uint32_t *)ptx_register(w->file, k->specials[PTX_LANEID]))[lane] = lane;
    }
}

void ptx_warp_close(struct ptx_warp *w)
{
    free(w->file);
    free(w->init);
    free(w->flights);
}

void ptx_warp_begin(struct ptx_warp *w, const struct ptx_kernel *k, size_t block)
{
    memset(w->init, 0, k->n_register_units * sizeof *w->init);
    memset(w->pc, 0, sizeof w->pc);
    memset(w->groups, 0, sizeof w->groups);
    w->runs = PTX_ALL_LANES;
    w->at_barrier = w->waits = w->done = 0;
    w->n_flights = 0;
    fill(ptx_register(w->file, k->specials[PTX_CTAID]), 4, block);
}

static void set_pc(struct ptx_warp *w, uint32_t mask, uint32_t pc)
{
    for (uint32_t rest = mask; rest; rest &= rest - 1)
        w->pc[__builtin_ctz(rest)] = pc;
}

static unsigned first_of(uint32_t mask)
{
    return (unsigned)__builtin_ctz(mask);
}

/** What is read must have been written, by the same lane. */
static void check_init(struct ptx_block *b, struct ptx_warp *w, const struct ptx_ins *in,
                       uint32_t mask)
{
    for (unsigned i = in->n_out; i < in->n_out + in->n_in; i++) {
        uint32_t missing = mask & ~w->init[in->at[i]];
        if (!missing)
            continue;
        w->init[in->at[i]] |= missing;
        ptx_block_report(b, in->line, w->first_thread + first_of(missing), false,
                         "reads operand %u, a register that was never written", i);
    }
}

/** A group of lanes that are at the same instruction. */
struct group {
    uint32_t lanes, pc;
    uint32_t limit; /* where it meets others */
};

/** Go on to a branch's target; true: the lanes part. */
static bool branch(struct ptx_warp *w, struct group *g, const struct ptx_ins *in, uint32_t taken)
{
    if (taken == g->lanes || !taken) {
        g->pc = taken ? in->target : g->pc + 1;
        return false;
    }
    set_pc(w, g->lanes & ~taken, g->pc + 1);
    set_pc(w, taken, in->target);
    return true;
}

static void run_collective(struct ptx_block *b, struct ptx_warp *w, const struct ptx_ins *in)
{
    check_init(b, w, in, PTX_ALL_LANES);
    if (in->kind == PTX_WARP_BARRIER || (in->kind == PTX_COLLECTIVE && in->n_out < 4)) {
        const uint32_t *members = ptx_register(w->file, in->at[in->n_out + in->n_in - 1]);
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            if (members[lane] != PTX_ALL_LANES)
                ptx_block_report(b, in->line, w->first_thread + lane, true,
                                 "some lanes only: that is not supported");
        }
    }
    if (in->kind == PTX_COLLECTIVE)
        in->alu(w->file, in->at, PTX_ALL_LANES);
    else if (in->kind == PTX_MATRIX)
        ptx_memory_run(b, w, in, PTX_ALL_LANES);
    else
        w->sync++;
    for (unsigned i = 0; i < in->n_out; i++)
        w->init[in->at[i]] = PTX_ALL_LANES;
}

/** Instructions after which the group may not go on; true: it does not. */
static bool control(struct ptx_block *b, struct ptx_warp *w, struct group *g,
                    const struct ptx_ins *in, uint32_t mask)
{
    switch (in->kind) {
    case PTX_BRANCH:
        return branch(w, g, in, mask);
    case PTX_RETURN:
        set_pc(w, mask, g->pc + 1);
        w->done |= mask;
        w->runs &= ~mask;
        g->lanes &= ~mask;
        g->pc++;
        set_pc(w, g->lanes, g->pc);
        return mask != 0;
    case PTX_BARRIER:
        if (mask != g->lanes)
            ptx_block_report(b, in->line, w->first_thread + first_of(g->lanes), true,
                             "a barrier that some lanes skip");
        set_pc(w, mask, g->pc + 1);
        w->at_barrier |= mask;
        w->runs &= ~mask;
        return true;
    default:
        if (mask == PTX_ALL_LANES) {
            run_collective(b, w, in);
            g->pc++;
            return false;
        }
        if (mask != g->lanes)
            ptx_block_report(b, in->line, w->first_thread + first_of(g->lanes), true,
                             "some lanes skip what is for all of them");
        set_pc(w, mask, g->pc);
        w->waits |= mask;
        w->runs &= ~mask;
        return true;
    }
}

static void run_group(struct ptx_block *b, struct ptx_warp *w, struct group g)
{
    const struct ptx_kernel *k = b->kernel;
    do {
        const struct ptx_ins *in = &k->code[g.pc];
        uint32_t mask = g.lanes;
        k->hits[g.pc]++;
        if (in->guard) {
            uint32_t missing = mask & ~w->init[in->guard];
            if (missing)
                ptx_block_report(b, in->line, w->first_thread + first_of(missing), false,
                                 "a predicate that was never written");
            uint32_t p = *(const uint32_t *)ptx_register(w->file, in->guard);
            mask &= in->guard_not ? ~p : p;
        }
        if (in->kind >= PTX_BRANCH) {
            if (control(b, w, &g, in, mask))
                return;
            continue;
        }
        g.pc++;
        if (!mask)
            continue;
        check_init(b, w, in, mask);
        if (in->kind == PTX_ALU)
            in->alu(w->file, in->at, mask);
        else
            ptx_memory_run(b, w, in, mask);
        for (unsigned i = 0; i < in->n_out; i++)
            w->init[in->at[i]] |= mask;
    } while (g.pc < g.limit);
    set_pc(w, g.lanes, g.pc);
}

/** The lanes that are the furthest behind, so that those ahead are met; or some, at random. */
static struct group choose(const struct ptx_block *b, const struct ptx_warp *w)
{
    struct group g = {.pc = FAR, .limit = FAR};
    unsigned skip = b->order == PTX_RANDOM ? (unsigned)rng_below(b->rng, PTX_LANES) : 0;
    for (unsigned i = 0; i < PTX_LANES; i++) {
        unsigned lane = (i + skip) % PTX_LANES;
        if (w->runs >> lane & 1 && (w->pc[lane] < g.pc) && (b->order != PTX_RANDOM || g.pc == FAR))
            g.pc = w->pc[lane];
    }
    for (unsigned lane = 0; lane < PTX_LANES; lane++) {
        if (!(w->runs >> lane & 1))
            continue;
        if (w->pc[lane] == g.pc)
            g.lanes |= (uint32_t)1 << lane;
        else if (w->pc[lane] > g.pc && w->pc[lane] < g.limit)
            g.limit = w->pc[lane];
    }
    return g;
}

/** All lanes wait for each other at one instruction: it is done. Anything else is an error. */
static void meet(struct ptx_block *b, struct ptx_warp *w)
{
    unsigned lane = first_of(w->waits);
    const struct ptx_ins *in = &b->kernel->code[w->pc[lane]];
    for (unsigned i = 0; i < PTX_LANES; i++) {
        if (w->waits >> i & 1 && w->pc[i] == w->pc[lane])
            continue;
        bool waits = w->waits >> i & 1;
        ptx_block_report(b, in->line, w->first_thread + lane, true,
                         "waits for its warp, but thread %u %s line %u", w->first_thread + i,
                         w->done >> i & 1 ? "ended in" : "is at",
                         b->kernel->code[waits ? w->pc[i] : w->pc[i] - 1].line);
    }
    run_collective(b, w, in);
    set_pc(w, PTX_ALL_LANES, w->pc[lane] + 1);
    w->runs = PTX_ALL_LANES;
    w->waits = 0;
}

void ptx_warp_run(struct ptx_block *b, struct ptx_warp *w)
{
    while (w->runs || w->waits) {
        while (w->runs)
            run_group(b, w, choose(b, w));
        if (w->waits)
            meet(b, w);
    }
}

#include "tests/ptx/block.h"

enum { MAX_WARPS = 32 };

/** The order of this turn's warps. */
static void order_of(const struct ptx_block *b, unsigned *order)
{
    for (unsigned i = 0; i < b->n_warps; i++)
        order[i] = b->order == PTX_BACKWARDS ? b->n_warps - 1 - i : i;
    for (unsigned i = b->n_warps; b->order == PTX_RANDOM && i > 1; i--) {
        unsigned k = (unsigned)rng_below(b->rng, i), last = order[i - 1];
        order[i - 1] = order[k];
        order[k] = last;
    }
}

/** All threads must be at the same barrier, or done. true: they are done. */
static bool check_barrier(struct ptx_block *b)
{
    const struct ptx_warp *first = &b->warps[0];
    for (unsigned i = 0; i < b->n_warps; i++) {
        const struct ptx_warp *w = &b->warps[i];
        for (unsigned lane = 0; lane < PTX_LANES; lane++) {
            bool done = w->done >> lane & 1;
            if (done != (first->done & 1) || (!done && w->pc[lane] != first->pc[0]))
                ptx_block_report(b, b->kernel->code[w->pc[lane] - 1].line, w->first_thread + lane,
                                 true, "%s, but thread 0 %s line %u",
                                 done ? "ended here" : "is at this barrier",
                                 first->done & 1 ? "ended in" : "is at that of",
                                 b->kernel->code[first->pc[0] - 1].line);
        }
    }
    return first->done & 1;
}

void ptx_block_run(struct ptx_block *b)
{
    unsigned order[MAX_WARPS];
    bool done = false;
    for (unsigned i = 0; i < b->n_warps; i++)
        ptx_warp_begin(&b->warps[i], b->kernel, b->number);
    b->now.block = b->now.valid = ++b->now.tick;
    while (!done) {
        order_of(b, order);
        for (unsigned i = 0; i < b->n_warps; i++)
            ptx_warp_run(b, &b->warps[order[i]]);
        done = check_barrier(b);
        for (unsigned i = 0; i < b->n_warps; i++) {
            b->warps[i].runs = b->warps[i].at_barrier;
            b->warps[i].at_barrier = 0;
        }
        b->now.tick++;
    }
}

/**
 * What kernels move, counted while they run: bytes, transactions, bank conflicts. It is asked for
 * by programs that want it; tests do without.
 */
#ifndef TESTS_PTX_TRAFFIC_H
#define TESTS_PTX_TRAFFIC_H

#include "tests/ptx/block.h"

enum { PTX_SECTOR = 32 /* bytes of a transaction with the second-level cache */ };

/** What one kernel moves. */
struct ptx_traffic {
    uint64_t launches, blocks, threads;
    uint64_t read_bytes, written_bytes;     /* global memory, as the lanes ask */
    uint64_t read_sectors, written_sectors; /* that each instruction of a warp touches */
    uint64_t read_once, written_once;       /* the sectors of a launch, each counted once */
    uint64_t shared_bytes, shared_accesses; /* of shared memory; instructions of a warp */
    uint64_t shared_cycles;                 /* what these take: one each, more with conflicts */
    uint64_t local_bytes;
    uint64_t shared_size; /* of a block, the most of all launches */
};

/** Count a memory instruction of the lanes. */
void ptx_traffic_count(struct ptx_block *b, const struct ptx_warp *w, const struct ptx_ins *in,
                       uint32_t mask);
/** After a launch: count what it touched, and forget it. */
void ptx_traffic_end(struct ptx_traffic *t, struct ptx_space *space);

#endif

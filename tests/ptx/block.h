/**
 * A block of threads while it runs: 32 lanes a warp, each with its own program counter. A warp runs
 * the lanes that are at the same instruction together (warp.c); memory.c does what touches memory;
 * block.c goes from barrier to barrier.
 */
#ifndef TESTS_PTX_BLOCK_H
#define TESTS_PTX_BLOCK_H

#include "tests/harness/rng.h"
#include "tests/ptx/program.h"
#include "tests/ptx/space.h"

/** An asynchronous copy that was not waited for. */
struct ptx_flight {
    uint8_t *to;
    const uint8_t *from;
    uint32_t at; /* of `to` in shared memory */
    uint32_t group;
    uint8_t n_bytes, lane;
};

struct ptx_warp {
    uint8_t *file;  /* registers: see program.h */
    uint32_t *init; /* lanes in which the register at a unit was written */
    uint32_t pc[PTX_LANES];
    /* Each lane is in one of these: it runs, or is at a barrier, or waits for its warp's others
     * before an instruction of all lanes, or is done. */
    uint32_t runs, at_barrier, waits, done;
    uint32_t first_thread;
    uint16_t sync; /* barriers of the warp so far */
    struct ptx_flight *flights;
    size_t n_flights, flight_capacity;
    uint32_t groups[PTX_LANES]; /* of copies, ended so far */
};

enum ptx_order { PTX_FORWARDS, PTX_BACKWARDS, PTX_RANDOM };

struct ptx_block {
    const struct ptx_kernel *kernel;
    struct ptx_space *space;
    const uint8_t *params;
    uint8_t *shared;
    size_t shared_bytes;
    uint8_t *local; /* of all threads, one behind the other */
    struct ptx_shadow *shared_shadow, *local_shadow;
    struct ptx_now now;
    struct ptx_warp *warps;
    unsigned n_warps;
    size_t number;           /* of the block */
    bool may_read_unwritten; /* global memory that nobody wrote */
    enum ptx_order order;
    struct rng *rng;             /* PTX_RANDOM */
    struct ptx_traffic *traffic; /* to count; or NULL */
};

enum { PTX_ALL_LANES = 0xffffffff };

/** Registers for a warp of the kernel, with its constants. */
void ptx_warp_open(struct ptx_warp *w, const struct ptx_kernel *k, uint32_t first_thread,
                   uint32_t n_threads);
void ptx_warp_close(struct ptx_warp *w);
/** Before a block runs: no register is written. */
void ptx_warp_begin(struct ptx_warp *w, const struct ptx_kernel *k, size_t block);
/** Until all lanes are done or at a barrier. */
void ptx_warp_run(struct ptx_block *b, struct ptx_warp *w);

/** Run the whole block. b->now.tick goes on from what it is. */
void ptx_block_run(struct ptx_block *b);

/** An instruction that touches memory, for the lanes of the mask. */
void ptx_memory_run(struct ptx_block *b, struct ptx_warp *w, const struct ptx_ins *in,
                    uint32_t mask);

/** See report.h. line: 0 for the kernel as a whole. */
void ptx_block_report(const struct ptx_block *b, uint32_t line, unsigned thread, bool is_fatal,
                      const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif

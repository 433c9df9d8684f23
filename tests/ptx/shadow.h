/**
 * What is known of memory beside its bytes: who wrote and read each word, and when. It finds races
 * and reads of what nobody wrote, in whatever order the threads happen to run.
 *
 * Time is counted in ticks. A launch begins at a tick, each of its blocks at a later one, and each
 * barrier of a block is a tick more; blocks run one after another. So from the tick of an access
 * follows whether it was in this launch, in this block, and since the last barrier. Two accesses
 * of which one is a write, and not both atomic, race if they are of different threads since the
 * last barrier, or of different blocks of one launch. A barrier of a warp (`sync`) orders the
 * accesses of its lanes.
 *
 * A word has a cell. Once a part of it was accessed alone it is split: each byte has a cell.
 */
#ifndef TESTS_PTX_SHADOW_H
#define TESTS_PTX_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** `by` is the last thread, with flags that shadow.c names; tick 0: never. */
struct ptx_cell {
    uint32_t w_tick, r_tick;
    uint16_t w_by, r_by, w_sync, r_sync;
};

struct ptx_shadow {
    struct ptx_cell *words, *bytes; /* bytes: from the first time that a word is split */
    size_t n_bytes;
};

/** Who is about to access memory, and when. */
struct ptx_now {
    uint32_t launch, block, tick; /* when these began, and the time */
    uint32_t valid;               /* what was written before this tick is not there any more */
    uint16_t thread, sync;
};

enum ptx_touch {
    PTX_READ,
    PTX_READ_CONSTANT, /* by ld.global.nc: nothing may write it in this launch */
    PTX_WRITE,
    PTX_CHANGE, /* atomically */
    PTX_DEPART, /* an asynchronous copy to here begins */
    PTX_LAND    /* it is waited for */
};

enum ptx_fault {
    PTX_FINE,
    PTX_NEVER_WRITTEN,
    PTX_RACE_OF_THREADS,
    PTX_RACE_OF_BLOCKS,
    PTX_NOT_CONSTANT,
    PTX_IN_FLIGHT /* an asynchronous copy was not waited for */
};

void ptx_shadow_open(struct ptx_shadow *s, size_t n_bytes);
void ptx_shadow_close(struct ptx_shadow *s);
/** Forget everything. */
void ptx_shadow_clear(struct ptx_shadow *s);

/** Note an access, and say what is wrong with it. other: the thread that it collides with. */
enum ptx_fault ptx_shadow_touch(struct ptx_shadow *s, size_t at, size_t n_bytes, enum ptx_touch how,
                                const struct ptx_now *now, unsigned *other);
/** The host wrote this. */
void ptx_shadow_write(struct ptx_shadow *s, size_t at, size_t n_bytes);
/** The first byte of this that nobody wrote, or n_bytes. */
size_t ptx_shadow_unwritten(const struct ptx_shadow *s, size_t at, size_t n_bytes);

#endif

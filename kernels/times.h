/**
 * Where a backend's time goes: one clock per phase, a few dozen nanoseconds per reading.
 *
 * The first phases are operations: kernels/backend.c times each call, so they never overlap and
 * their sum is what a run spends in the backend; on a device, what it spends between the beginning
 * and the end of their work. The others are parts of them that all threads
 * work on: what every thread spends is added up and divided by their number, so a part is at most
 * the operations that it belongs to.
 */
#ifndef KERNELS_TIMES_H
#define KERNELS_TIMES_H

#include <stdint.h>

#include "kernels/atomic.h"

enum kern_phase {
    KERN_PHASE_LINEAR,
    KERN_PHASE_ATTENTION,
    KERN_PHASE_SCORE, /* and record */
    KERN_PHASE_NORM,
    KERN_PHASE_ROPE,
    KERN_PHASE_GATE,
    KERN_PHASE_RECUR,  /* and convolve */
    KERN_PHASE_OTHER,  /* embed, route, gather, scatter_add, scale_rows, copy_rows, round */
    KERN_PHASE_DECODE, /* part of linear and score: weights to float32 */
    KERN_PHASE_PACK,   /* part of linear and score: activations to panels */
    KERN_PHASE_FOLD,   /* part of score: logits to sums, ranks and codes */
    KERN_N_PHASES
};

/** Seconds by phase, since the backend was opened. */
struct kern_times {
    double seconds[KERN_N_PHASES];
};

/** What an implementation counts into. */
struct kern_clock {
    atomic_ullong nanoseconds[KERN_N_PHASES];
    unsigned n_threads; /* that share the parts; at least 1 */
};

/** "linear", "attention", ...: the names of `run.phases` in docs/json.md. */
const char *kern_phase_name(enum kern_phase phase);

/** Nanoseconds on a clock that never jumps; only differences mean something. */
uint64_t kern_clock_now(void);

/** Count nanoseconds. Any thread. */
void kern_clock_count(struct kern_clock *clock, enum kern_phase phase, uint64_t nanoseconds);

/** The times so far; exact while no operation runs. */
void kern_clock_read(const struct kern_clock *clock, struct kern_times *out);

#endif

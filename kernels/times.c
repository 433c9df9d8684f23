#include "kernels/times.h"

#include <time.h>

const char *kern_phase_name(enum kern_phase phase)
{
    static const char *const names[KERN_N_PHASES] = {
        [KERN_PHASE_LINEAR] = "linear",   [KERN_PHASE_ATTENTION] = "attention",
        [KERN_PHASE_SCORE] = "score",     [KERN_PHASE_NORM] = "norm",
        [KERN_PHASE_ROPE] = "rope",       [KERN_PHASE_GATE] = "gate",
        [KERN_PHASE_RECUR] = "recurrent", [KERN_PHASE_OTHER] = "other",
        [KERN_PHASE_DECODE] = "decode",   [KERN_PHASE_PACK] = "pack",
        [KERN_PHASE_FOLD] = "fold",
    };
    return names[phase];
}

uint64_t kern_clock_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void kern_clock_count(struct kern_clock *clock, enum kern_phase phase, uint64_t nanoseconds)
{
    atomic_fetch_add_explicit(&clock->nanoseconds[phase], nanoseconds, memory_order_relaxed);
}

void kern_clock_read(const struct kern_clock *clock, struct kern_times *out)
{
    for (int i = 0; i < KERN_N_PHASES; i++) {
        double seconds =
            1e-9 * (double)atomic_load_explicit(&clock->nanoseconds[i], memory_order_relaxed);
        out->seconds[i] = i < KERN_PHASE_DECODE ? seconds : seconds / clock->n_threads;
    }
}

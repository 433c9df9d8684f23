/** Timing for the benchmarks: warm-up, many samples, median and spread. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stddef.h>

/** What is timed; called many times. */
typedef void bench_fn(void *context);

/** Seconds per call. */
struct bench_time {
    double median;
    double fastest;
    double spread; /* (90th percentile - 10th percentile) / median */
    size_t n_samples;
};

/** Which clock: work on the calling thread alone, or on several. */
enum bench_clock {
    BENCH_THREAD, /* processor time of this thread: not disturbed by what else runs here */
    BENCH_WALL
};

/**
 * Time calls of `run`: first for a fifth of `seconds` unrecorded, then in samples of at least a
 * millisecond (several calls where one is shorter) until `seconds` are over, five at least.
 */
struct bench_time bench_measure(bench_fn *run, void *context, enum bench_clock clock,
                                double seconds);

/** Print the processor and the compiler, on lines that begin with '#'. */
void bench_print_machine(void);

#endif

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
};

/** Which clock: work on the calling thread alone, or on several. */
enum bench_clock {
    BENCH_THREAD, /* processor time of this thread: what else runs here disturbs it less */
    BENCH_WALL
};

/** Something to time against others, and then its time. */
struct bench_case {
    bench_fn *run;
    void *context;
    struct bench_time time;
};

/**
 * Time n_cases (at most 12) against one another, for about `seconds` each: first unrecorded, then
 * in samples of a millisecond or more, five at least, the cases taking turns, so that a change of
 * the processor's clock meets all of them alike.
 */
void bench_compare(struct bench_case *cases, size_t n_cases, enum bench_clock clock,
                   double seconds);

/** Time one case alone. */
struct bench_time bench_measure(bench_fn *run, void *context, enum bench_clock clock,
                                double seconds);

/** Sort n times, ascending. */
void bench_sort(double *seconds, size_t n);

/** Print the processor and the compiler, on lines that begin with '#'. */
void bench_print_machine(void);

#endif

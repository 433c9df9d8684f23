#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_SAMPLES = 1000, MIN_SAMPLES = 5 };

/** Seconds on one of the clocks. */
static double now(enum bench_clock clock)
{
    struct timespec time;
    clock_gettime(clock == BENCH_THREAD ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double seconds_of(bench_fn *run, void *context, enum bench_clock clock, size_t n_calls)
{
    double begin = now(clock);
    for (size_t i = 0; i < n_calls; i++)
        run(context);
    return now(clock) - begin;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct bench_time bench_measure(bench_fn *run, void *context, enum bench_clock clock,
                                double seconds)
{
    size_t n_calls = 1;
    double warm_up_end = now(clock) + seconds / 5;
    for (;;) {
        double elapsed = seconds_of(run, context, clock, n_calls);
        if (elapsed < 1e-3)
            n_calls *= 2;
        else if (now(clock) >= warm_up_end)
            break;
    }
    double samples[MAX_SAMPLES];
    size_t n = 0;
    double end = now(clock) + seconds;
    while (n < MIN_SAMPLES || (n < MAX_SAMPLES && now(clock) < end))
        samples[n++] = seconds_of(run, context, clock, n_calls) / (double)n_calls;
    qsort(samples, n, sizeof samples[0], compare_doubles);
    double median = samples[n / 2];
    return (struct bench_time){.median = median,
                               .fastest = samples[0],
                               .spread = (samples[n * 9 / 10] - samples[n / 10]) / median,
                               .n_samples = n};
}

void bench_print_machine(void)
{
    char line[256], model[256] = "unknown processor\n";
    FILE *cpuinfo = fopen("/proc/cpuinfo", "r");
    while (cpuinfo && fgets(line, sizeof line, cpuinfo)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon) {
            snprintf(model, sizeof model, "%s", colon + 2);
            break;
        }
    }
    if (cpuinfo)
        fclose(cpuinfo);
    printf("# %ld processors: %s# compiler: %s\n", sysconf(_SC_NPROCESSORS_ONLN), model,
           __VERSION__);
}

#include "bench/bench.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CASES = 24, MAX_SAMPLES = 1000, MIN_SAMPLES = 5 };

/** Seconds on one of the clocks. */
static double now(enum bench_clock clock)
{
    struct timespec time;
    clock_gettime(clock == BENCH_THREAD ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double seconds_of(const struct bench_case *c, enum bench_clock clock, size_t n_calls)
{
    double begin = now(clock);
    for (size_t i = 0; i < n_calls; i++)
        c->run(c->context);
    return now(clock) - begin;
}

/** How many calls make a sample; the warm-up on the way. */
static size_t calls_per_sample(const struct bench_case *c, enum bench_clock clock)
{
    size_t n_calls = 1;
    while (seconds_of(c, clock, n_calls) < 1e-3)
        n_calls *= 2;
    return n_calls;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_sort(double *seconds, size_t n)
{
    qsort(seconds, n, sizeof *seconds, compare_doubles);
}

void bench_compare(struct bench_case *cases, size_t n_cases, enum bench_clock clock, double seconds)
{
    double samples[MAX_CASES][MAX_SAMPLES];
    size_t n_calls[MAX_CASES];
    assert(n_cases <= MAX_CASES);
    for (size_t i = 0; i < n_cases; i++)
        n_calls[i] = calls_per_sample(&cases[i], clock);
    size_t n = 0;
    double end = now(clock) + seconds * (double)n_cases;
    for (; n < MIN_SAMPLES || (n < MAX_SAMPLES && now(clock) < end); n++)
        for (size_t i = 0; i < n_cases; i++)
            samples[i][n] = seconds_of(&cases[i], clock, n_calls[i]) / (double)n_calls[i];
    for (size_t i = 0; i < n_cases; i++) {
        double *s = samples[i];
        bench_sort(s, n);
        cases[i].time = (struct bench_time){
            .median = s[n / 2], .fastest = s[0], .spread = (s[n * 9 / 10] - s[n / 10]) / s[n / 2]};
    }
}

struct bench_time bench_measure(bench_fn *run, void *context, enum bench_clock clock,
                                double seconds)
{
    struct bench_case one = {.run = run, .context = context};
    bench_compare(&one, 1, clock, seconds);
    return one.time;
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

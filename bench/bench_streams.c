/**
 * What hyper-connections cost on one thread: a branch of a layer whose residual has S rows of D for
 * each token, all of what comes before the branch and after it. The floor of an operation is the
 * larger of two: the bytes that it reads and writes, at the rate of a copy of the rows; and its
 * multiplications, additions and divisions, at the rate of a loop of multiply-adds.
 *
 * Each variant's results are compared with the scalar ones first.
 *
 * usage: bench_streams [-s SECONDS_PER_LINE]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/fma_ceiling.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"
#include "kernels/mixing.h"
#include "kernels/operations.h"
#include "tests/harness/compare.h"
#include "tests/harness/rng.h"

enum { TOKENS = 256, STREAMS = 4, WIDTH = 4096, ROW = STREAMS * WIDTH, OUTPUTS = 24, ROUNDS = 20 };
_Static_assert(OUTPUTS == (2 + STREAMS) * STREAMS, "pre, post and a matrix");

struct work {
    struct kern_backend *backend;
    float *x, *normed, *out; /* [TOKENS, ROW] */
    float *row;              /* [TOKENS, WIDTH] */
    float *products;         /* [TOKENS, OUTPUTS]: what stream_weights changes is a copy of them */
    float *weights;          /* likewise */
    float *matrix, *base;    /* [OUTPUTS, ROW], [OUTPUTS] */
};

static void must(enum status status)
{
    if (status)
        abort();
}

static struct kern_weight rows_of(const float *data, size_t n_rows, size_t n_cols)
{
    return (struct kern_weight){.type = GGUF_TYPE_F32,
                                .data = data,
                                .n_rows = n_rows,
                                .n_cols = n_cols,
                                .row_bytes = n_cols * sizeof *data,
                                .scale = 1.0f};
}

static void norm(void *context)
{
    const struct work *w = context;
    must(kern_norm(
        w->backend,
        &(struct kern_norm){
            .eps = 1e-6f, .x = w->x, .y = w->normed, .n_rows = TOKENS, .width = ROW, .n_groups = 1},
        NULL));
}

static void multiply(void *context)
{
    const struct work *w = context;
    struct kern_weight matrix = rows_of(w->matrix, OUTPUTS, ROW);
    must(kern_linear(w->backend,
                     &(struct kern_linear){.weight = &matrix,
                                           .x = w->normed,
                                           .y = w->products,
                                           .y_stride = OUTPUTS,
                                           .n_tokens = TOKENS},
                     NULL));
}

static void weigh(void *context)
{
    const struct work *w = context;
    static const float scales[3] = {0.5f, 0.25f, 0.75f};
    struct kern_weight scale = rows_of(scales, 1, 3), base = rows_of(w->base, 1, OUTPUTS);
    memcpy(w->weights, w->products, TOKENS * OUTPUTS * sizeof(float));
    must(kern_stream_weights(
        w->backend,
        &(struct kern_stream_weights){
            .a = w->weights,
            .scale = &scale,
            .base = &base,
            .n_tokens = TOKENS,
            .rule = {.n_streams = STREAMS, .n_rounds = ROUNDS, .eps = 1e-6f, .magnitude = 2}},
        NULL));
}

static void join(void *context)
{
    const struct work *w = context;
    must(kern_mix(w->backend,
                  &(struct kern_mix){.x = w->x,
                                     .weights = w->weights,
                                     .stride = OUTPUTS,
                                     .out = w->row,
                                     .n_tokens = TOKENS,
                                     .n_in = STREAMS,
                                     .n_out = 1,
                                     .width = WIDTH},
                  NULL));
}

static void share(void *context)
{
    const struct work *w = context;
    must(kern_mix(w->backend,
                  &(struct kern_mix){.x = w->x,
                                     .weights = w->weights + 2 * (size_t)STREAMS,
                                     .y = w->row,
                                     .y_weights = w->weights + STREAMS,
                                     .stride = OUTPUTS,
                                     .out = w->out,
                                     .n_tokens = TOKENS,
                                     .n_in = STREAMS,
                                     .n_out = STREAMS,
                                     .width = WIDTH},
                  NULL));
}

static void copy(void *context)
{
    const struct work *w = context;
    memcpy(w->out, w->x, sizeof(float) * TOKENS * ROW);
}

/** In this order a branch's: each takes what those before it made. */
static const struct line {
    const char *name;
    bench_fn *run;
    size_t n_floats;     /* for a token, read and written */
    size_t n_operations; /* for a token */
} lines[] = {{"norm", norm, 2 * ROW, 3 * ROW},
             {"product", multiply, ROW + OUTPUTS, 2 * OUTPUTS *ROW},
             {"weights", weigh, 2 * OUTPUTS, 2 * ROUNDS * 2 * STREAMS *STREAMS},
             {"join", join, ROW + WIDTH, 2 * ROW},
             {"share", share, 2 * ROW + WIDTH, 2 * (STREAMS + 1) * ROW}};
enum { N_LINES = sizeof lines / sizeof *lines };

static float *random_floats(size_t n)
{
    struct rng r = rng_open(1, n);
    float *x = malloc(n * sizeof *x);
    if (!x)
        abort();
    for (size_t i = 0; i < n; i++)
        x[i] = rng_normal(&r);
    return x;
}

static void work_open(struct work *w, enum kern_isa isa)
{
    struct kern_cpu_options options = {.n_threads = 1, .isa_cap = isa};
    must(kern_cpu_open(&w->backend, &options, NULL));
    w->x = random_floats((size_t)TOKENS * ROW);
    w->normed = random_floats((size_t)TOKENS * ROW);
    w->out = random_floats((size_t)TOKENS * ROW);
    w->row = random_floats((size_t)TOKENS * WIDTH);
    w->products = random_floats((size_t)TOKENS * OUTPUTS);
    w->weights = random_floats((size_t)TOKENS * OUTPUTS);
    w->matrix = random_floats((size_t)OUTPUTS * ROW);
    w->base = random_floats(OUTPUTS);
    for (size_t i = 0; i < (size_t)OUTPUTS * ROW; i++)
        w->matrix[i] *= 0.01f;
    for (size_t i = 0; i < N_LINES; i++)
        lines[i].run(w);
}

static void work_close(struct work *w)
{
    kern_close(w->backend);
    float *const all[] = {w->x,        w->normed,  w->out,    w->row,
                          w->products, w->weights, w->matrix, w->base};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/** Microseconds for a token; and what a branch takes more than the bytes that it moves. */
static void measure(struct work *w, enum kern_isa isa, double seconds)
{
    bench_fn *fma = isa == KERN_ISA_AVX2 ? bench_fma_avx2 : bench_fma_avx512;
    struct bench_case cases[N_LINES + 2] = {[N_LINES] = {copy, w, {0}}, {fma, NULL, {0}}};
    for (size_t i = 0; i < N_LINES; i++)
        cases[i] = (struct bench_case){lines[i].run, w, {0}};
    bench_compare(cases, N_LINES + 2, BENCH_THREAD, seconds);
    double floats = 2.0 * TOKENS * ROW / cases[N_LINES].time.median,
           operations = bench_fma_flops(isa) / cases[N_LINES + 1].time.median;
    double all = 0, floors = 0;
    for (size_t i = 0; i < N_LINES; i++) {
        double floor = TOKENS * fmax((double)lines[i].n_floats / floats,
                                     (double)lines[i].n_operations / operations);
        all += cases[i].time.median;
        floors += floor;
        printf("%-8s %-7s %9.2f %9.2f %6.2f %6.0f%%\n", lines[i].name, kern_isa_name(isa),
               1e6 * cases[i].time.median / TOKENS, 1e6 * floor / TOKENS,
               cases[i].time.median / floor, 100 * cases[i].time.spread);
    }
    printf("%-8s %-7s %9.2f %9.2f %6.2f\n", "branch", kern_isa_name(isa), 1e6 * all / TOKENS,
           1e6 * floors / TOKENS, all / floors);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    double seconds = 0.5;
    for (int option; (option = getopt(argc, argv, "s:")) != -1;) {
        if (option != 's' || (seconds = strtod(optarg, NULL)) <= 0) {
            fprintf(stderr, "usage: bench_streams [-s SECONDS_PER_LINE]\n");
            return 2;
        }
    }
    bench_print_machine();
    printf("%d streams of %d, %d tokens, one thread\n%-8s %-7s %9s %9s %6s %7s\n", STREAMS, WIDTH,
           TOKENS, "", "isa", "us/token", "floor", "times", "spread");
    struct work expected = {0};
    work_open(&expected, KERN_ISA_SCALAR);
    for (enum kern_isa isa = KERN_ISA_AVX2; isa <= kern_isa_detect(); isa++) {
        struct work w = {0};
        work_open(&w, isa);
        if (compare_bits(w.out, expected.out, (size_t)TOKENS * ROW) != (size_t)TOKENS * ROW) {
            printf("%s: WRONG\n", kern_isa_name(isa));
            return EXIT_FAILURE;
        }
        measure(&w, isa, seconds);
        work_close(&w);
    }
    work_close(&expected);
    return EXIT_SUCCESS;
}

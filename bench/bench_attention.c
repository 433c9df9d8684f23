/**
 * How fast attention is on one thread, over the queries of one window: heads of usual and of large
 * sizes, latent attention, windows and chunks. Only what queries see counts as work, 2 (d + dv)
 * operations for a key and a head; masked parts of blocks, softmax and the gathering of keys are
 * what is missing to the ceiling, a loop of multiply-adds. Beside it the time with `fast`, in
 * integers of 16 bits, and how many times that is faster. Then indexers, which choose keys: their
 * work is 2 d operations for a key and a head, for queries that leave out a key.
 *
 * usage: bench_attention [-s SECONDS_PER_LINE] [-i] [-l]
 * -i: indexers alone. -l: long windows alone, of each the last tile of 1024 queries.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/fma_ceiling.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"
#include "kernels/operations.h"
#include "tests/harness/rng.h"

static const struct line {
    const char *name;
    size_t n_tokens;
    struct kern_attention op; /* but for the arrays */
    size_t n_queries;         /* the last ones; 0: all */
} lines[] =
    {
#define HEADS(h, g, d, dv)                                                                         \
    .n_heads = (h), .n_kv_heads = (g), .head_size = (d), .value_size = (dv), .scale = 0.1f
        {"64", 1024, {HEADS(8, 2, 64, 64)}},
        {"128", 1024, {HEADS(8, 2, 128, 128)}},
        {"256", 1024, {HEADS(4, 2, 256, 256)}},
        {"256, soft cap", 1024, {HEADS(4, 2, 256, 256), .soft_cap = 50.0f}},
        {"512", 1024, {HEADS(4, 1, 512, 512)}},
        {"latent", 512, {HEADS(32, 1, 576, 512)}},
        {"128, long", 4096, {HEADS(4, 1, 128, 128)}},
        {"128, window", 4096, {HEADS(4, 1, 128, 128), .sliding_window = 512}},
        {"128, chunks", 4096, {HEADS(4, 1, 128, 128), .chunk = 512}},
},
  long_lines[] = {
#define WINDOW(tokens)                                                                             \
    {"32 for 4", tokens, {HEADS(8, 4, 32, 32)}, 1024},                                             \
        {"64 for 4", tokens, {HEADS(32, 4, 64, 64)}, 1024},                                        \
    {                                                                                              \
        "128 for 8", tokens, {HEADS(32, 8, 128, 128)}, 1024                                        \
    }
      WINDOW(1024),
      WINDOW(8192),
      WINDOW(32768),
      WINDOW(131072),
};

struct work {
    struct kern_backend *backend;
    struct kern_attention op;
};

static void attend(void *context)
{
    const struct work *w = context;
    if (kern_attention(w->backend, &w->op, NULL))
        abort();
}

static float *random_floats(struct rng *r, size_t n)
{
    float *x = malloc(n * sizeof *x);
    for (size_t i = 0; x && i < n; i++)
        x[i] = rng_normal(r);
    return x;
}

/** Operations of all that is seen. */
static double operations(const struct line *line)
{
    double pairs = 0.0;
    size_t n_queries = line->n_queries ? line->n_queries : line->n_tokens;
    for (size_t i = line->n_tokens - n_queries; i < line->n_tokens; i++) {
        size_t n = i + 1, w = line->op.sliding_window, c = line->op.chunk;
        n = w && w < n ? w : n;
        pairs += (double)(c && i % c + 1 < n ? i % c + 1 : n);
    }
    return pairs * 2.0 * (double)(line->op.n_heads * (line->op.head_size + line->op.value_size));
}

static void open_backend(struct work *w, const struct line *line, enum kern_isa isa,
                         enum kern_precision precision)
{
    struct kern_cpu_options options = {.n_threads = 1, .isa_cap = isa, .precision = precision};
    w->op = line->op;
    if (kern_cpu_open(&w->backend, &options, NULL))
        abort();
}

static void measure(const struct line *line, enum kern_isa isa, double seconds)
{
    struct work float32, integers;
    open_backend(&float32, line, isa, KERN_PRECISION_EXACT);
    open_backend(&integers, line, isa, KERN_PRECISION_FAST);
    struct rng r = rng_open(1, 1);
    size_t n = line->n_tokens, d = line->op.head_size, dv = line->op.value_size;
    size_t n_q = line->n_queries ? line->n_queries : n;
    float *q = random_floats(&r, n_q * line->op.n_heads * d);
    float *k = random_floats(&r, n * line->op.n_kv_heads * d);
    float *v = random_floats(&r, n * line->op.n_kv_heads * dv);
    float *out = random_floats(&r, n_q * line->op.n_heads * dv);
    if (!q || !k || !v || !out)
        abort();
    struct kern_query_range range = {.n_q = n_q, .q_offset = n - n_q};
    float32.op.q = q;
    float32.op.k = k;
    float32.op.v = v;
    float32.op.out = out;
    float32.op.ranges = &range;
    float32.op.n_ranges = 1;
    integers.op = float32.op;
    bench_fn *ceiling = isa == KERN_ISA_AVX2 ? bench_fma_avx2 : bench_fma_avx512;
    struct bench_case cases[] = {
        {attend, &float32, {0}}, {attend, &integers, {0}}, {ceiling, NULL, {0}}};
    bench_compare(cases, 3, BENCH_THREAD, seconds);
    double rate = operations(line) / cases[0].time.median;
    double most = bench_fma_flops(isa) / cases[2].time.median;
    printf("%-14s %6zu %-7s %9.2f %9.1f %7.0f%% %6.0f%% %8.2f %9.2f %6.2f\n", line->name, n,
           kern_isa_name(isa), 1e3 * cases[0].time.median, 1e-9 * rate, 100 * rate / most,
           100 * cases[0].time.spread,
           1e-6 * (double)kern_attention_bytes(float32.backend, &float32.op),
           1e3 * cases[1].time.median, cases[0].time.median / cases[1].time.median);
    fflush(stdout);
    kern_close(float32.backend);
    kern_close(integers.backend);
    free(q);
    free(k);
    free(v);
    free(out);
}

static const struct choice {
    const char *name;
    size_t n_tokens;
    struct kern_choose op; /* but for the arrays */
    bool weighed;
} choices[] = {
    {"64 x 128", 2048, {.n_heads = 64, .head_size = 128, .n_best = 512, .together = 1}, true},
    {"4 x 128, runs",
     4096,
     {.n_heads = 4, .head_size = 128, .n_best = 4, .together = 128, .n_local = 1},
     false},
};

struct choice_work {
    struct kern_backend *backend;
    struct kern_choose op;
};

static void choose(void *context)
{
    const struct choice_work *w = context;
    if (kern_choose(w->backend, &w->op, NULL))
        abort();
}

static void measure_choice(const struct choice *line, enum kern_isa isa, double seconds)
{
    struct kern_cpu_options options = {.n_threads = 1, .isa_cap = isa};
    struct choice_work w = {.op = line->op};
    if (kern_cpu_open(&w.backend, &options, NULL))
        abort();
    struct rng r = rng_open(1, 2);
    size_t n = line->n_tokens, heads = line->op.n_heads, d = line->op.head_size;
    float *q = random_floats(&r, n * heads * d), *k = random_floats(&r, n * d);
    float *weights = random_floats(&r, n * heads);
    uint64_t *bits = malloc(n * heads * kern_chosen_words(n) * sizeof *bits);
    if (!q || !k || !weights || !bits)
        abort();
    struct kern_query_range range = {.n_q = n};
    w.op.q = q;
    w.op.k = k;
    w.op.k_stride = d;
    w.op.weights = line->weighed ? weights : NULL;
    w.op.bits = bits;
    w.op.most_keys = n;
    w.op.ranges = &range;
    w.op.n_ranges = 1;
    bench_fn *ceiling = isa == KERN_ISA_AVX2 ? bench_fma_avx2 : bench_fma_avx512;
    struct bench_case cases[] = {{choose, &w, {0}}, {ceiling, NULL, {0}}};
    bench_compare(cases, 2, BENCH_THREAD, seconds);
    double all = line->op.n_best * (double)line->op.together, pairs = n * (n + 1.0) - all * all;
    double rate = pairs * (double)(heads * d) / cases[0].time.median;
    double most = bench_fma_flops(isa) / cases[1].time.median;
    printf("%-14s %6zu %-7s %9.2f %9.1f %7.0f%% %6.0f%% %8.2f\n", line->name, n, kern_isa_name(isa),
           1e3 * cases[0].time.median, 1e-9 * rate, 100 * rate / most, 100 * cases[0].time.spread,
           1e-6 * (double)kern_choose_bytes(w.backend, &w.op));
    fflush(stdout);
    kern_close(w.backend);
    free(q);
    free(k);
    free(weights);
    free(bits);
}

int main(int argc, char **argv)
{
    double seconds = 0.5;
    bool indexers = false, windows = false;
    for (int option; (option = getopt(argc, argv, "s:il")) != -1;) {
        if (option == 'i')
            indexers = true;
        else if (option == 'l')
            windows = true;
        else if (option != 's' || (seconds = strtod(optarg, NULL)) <= 0) {
            fprintf(stderr, "usage: bench_attention [-s SECONDS_PER_LINE] [-i] [-l]\n");
            return 2;
        }
    }
    bench_print_machine();
    printf("%-14s %6s %-7s %9s %9s %8s %7s %8s %9s %6s\n", "heads", "tokens", "isa", "ms",
           "GFLOP/s", "of FMA", "spread", "MB", "fast: ms", "times");
    for (size_t i = 0; windows && i < sizeof long_lines / sizeof *long_lines; i++) {
        for (enum kern_isa isa = KERN_ISA_AVX2; isa <= kern_isa_detect(); isa++)
            measure(&long_lines[i], isa, seconds);
    }
    if (windows)
        return EXIT_SUCCESS;
    for (size_t i = 0; !indexers && i < sizeof lines / sizeof *lines; i++) {
        for (enum kern_isa isa = KERN_ISA_AVX2; isa <= kern_isa_detect(); isa++)
            measure(&lines[i], isa, seconds);
    }
    printf("indexers\n");
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        for (enum kern_isa isa = KERN_ISA_AVX2; isa <= kern_isa_detect(); isa++)
            measure_choice(&choices[i], isa, seconds);
    }
    return EXIT_SUCCESS;
}

/**
 * How fast products are: y = W x of the layers of a 1B and an 8B LLaMA, W packed, decoding
 * included. Per shape and variant: GFLOP/s, the share of what a loop of nothing but
 * multiply-adds reaches here and now, and the share of what OpenBLAS reaches with the same
 * weights. Before it is timed, a variant is compared with the others: to the bit, OpenBLAS
 * within the error of two float32 sums.
 *
 * usage: bench_gemm [-s SECONDS_PER_LINE] [-n TOKENS] [-t THREADS] [-q TYPE] [ROWSxCOLUMNS...]
 * With one thread times are its processor time, with more they are wall-clock time.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/fma_ceiling.h"
#include "kernels/cpu/cpu.h"
#include "tests/harness/compare.h"
#include "tests/harness/random_blocks.h"

struct settings {
    double seconds;
    size_t n_tokens;
    unsigned n_threads;
    const struct gguf_type_info *type;
};

/** One product. */
struct work {
    struct kern_weight weight;
    struct kern_linear op;
    uint8_t *blocks;
    float *x, *y, *expected;
};

struct shape {
    size_t n_rows, n_cols;
    const char *role;
};

static const struct shape default_shapes[] = {
    {2048, 2048, "1B q, output"}, {512, 2048, "1B k, v"},       {8192, 2048, "1B gate, up"},
    {2048, 8192, "1B down"},      {4096, 4096, "8B q, output"}, {1024, 4096, "8B k, v"},
    {14336, 4096, "8B gate, up"}, {4096, 14336, "8B down"},
};

static void *allocate(size_t n_bytes)
{
    void *memory = aligned_alloc(64, (n_bytes + 63) / 64 * 64);
    if (!memory) {
        fprintf(stderr, "bench_gemm: out of memory\n");
        exit(EXIT_FAILURE);
    }
    return memory;
}

static void work_open(struct work *w, const struct settings *s, const struct shape *shape)
{
    size_t row_bytes = shape->n_cols / s->type->block_elems * s->type->block_bytes;
    size_t y_floats = s->n_tokens * shape->n_rows;
    w->blocks = allocate(shape->n_rows * row_bytes);
    w->x = allocate(s->n_tokens * shape->n_cols * sizeof(float));
    w->y = allocate(y_floats * sizeof(float));
    w->expected = allocate(y_floats * sizeof(float));
    struct random_blocks pool;
    if (!random_blocks_open(&pool, s->type->type, 0.02, 1 << 16)) {
        fprintf(stderr, "bench_gemm: no random blocks of type %s\n", s->type->name);
        exit(EXIT_FAILURE);
    }
    random_blocks_draw(&pool, w->blocks, shape->n_rows * row_bytes);
    random_blocks_close(&pool);
    struct rng r = rng_open(1, 1);
    for (size_t i = 0; i < s->n_tokens * shape->n_cols; i++)
        w->x[i] = rng_normal(&r);
    w->weight = (struct kern_weight){.type = s->type->type,
                                     .n_rows = shape->n_rows,
                                     .n_cols = shape->n_cols,
                                     .row_bytes = row_bytes,
                                     .data = w->blocks,
                                     .scale = 1.0f};
    w->op = (struct kern_linear){.weight = &w->weight,
                                 .x = w->x,
                                 .y = w->y,
                                 .y_stride = shape->n_rows,
                                 .n_tokens = s->n_tokens};
}

static void work_close(struct work *w)
{
    free(w->blocks);
    free(w->x);
    free(w->y);
    free(w->expected);
}

/** A product on a backend, for bench_measure(). */
struct call {
    struct kern_backend *backend;
    const struct kern_linear *op;
};

static void multiply(void *context)
{
    const struct call *call = context;
    if (kern_linear(call->backend, call->op, NULL) != STATUS_OK)
        exit(EXIT_FAILURE);
}

/** Own products to the bit; OpenBLAS within K u sum |w x| < K u sqrt(sum w^2 sum x^2), twice. */
static bool is_right(const struct work *w, enum kern_gemm gemm, bool first)
{
    size_t n = w->op.n_tokens * w->weight.n_rows;
    if (gemm == KERN_GEMM_OWN)
        return first || compare_bits(w->y, w->expected, n) == n;
    double columns = (double)w->weight.n_cols;
    double bound = 2.0 * columns * 0x1p-24 * columns * 0.02 * 4.0;
    for (size_t i = 0; i < n; i++) {
        if (!(fabs((double)w->y[i] - (double)w->expected[i]) <= bound))
            return false;
    }
    return true;
}

/** Time one variant; returns its GFLOP/s, 0 if the build or processor does not have it. */
static double bench_variant(struct work *w, const struct settings *s, enum kern_isa isa,
                            enum kern_gemm gemm, bool first)
{
    struct kern_cpu_options options = {.n_threads = s->n_threads, .isa_cap = isa, .gemm = gemm};
    struct kern_backend *b;
    if (isa > kern_isa_detect() || kern_cpu_open(&b, &options, NULL) != STATUS_OK)
        return 0.0;
    struct call call = {.backend = b, .op = &w->op};
    multiply(&call);
    if (!is_right(w, gemm, first)) {
        fprintf(stderr, "bench_gemm: %s gives a wrong product\n",
                gemm == KERN_GEMM_OWN ? kern_isa_name(isa) : "openblas");
        exit(EXIT_FAILURE);
    }
    if (first)
        memcpy(w->expected, w->y, w->op.n_tokens * w->weight.n_rows * sizeof(float));
    enum bench_clock clock = s->n_threads == 1 ? BENCH_THREAD : BENCH_WALL;
    struct bench_time time = bench_measure(multiply, &call, clock, s->seconds);
    kern_close(b);
    double flops =
        2.0 * (double)w->op.n_tokens * (double)w->weight.n_rows * (double)w->weight.n_cols;
    return flops / time.median * 1e-9;
}

static double ceiling(enum kern_isa isa, const struct settings *s)
{
    bench_fn *run = isa == KERN_ISA_AVX512 ? bench_fma_avx512 : bench_fma_avx2;
    struct bench_time time = bench_measure(run, NULL, BENCH_THREAD, s->seconds / 4);
    return bench_fma_flops(isa) / time.fastest * 1e-9 * s->n_threads;
}

static void bench_shape(const struct shape *shape, const struct settings *s)
{
    struct work w;
    work_open(&w, s, shape);
    enum kern_isa top = kern_isa_detect();
    double own[KERN_ISA_COUNT] = {0};
    for (int isa = KERN_ISA_AVX2; isa <= (int)top; isa++)
        own[isa] = bench_variant(&w, s, (enum kern_isa)isa, KERN_GEMM_OWN, isa == KERN_ISA_AVX2);
    double blas = bench_variant(&w, s, top, KERN_GEMM_OPENBLAS, false);
    for (int isa = KERN_ISA_AVX2; isa <= (int)top; isa++) {
        printf("%6zu x %-6zu %-13s %-9s %8.1f  %5.1f %%", shape->n_rows, shape->n_cols, shape->role,
               kern_isa_name((enum kern_isa)isa), own[isa],
               100.0 * own[isa] / ceiling((enum kern_isa)isa, s));
        printf(blas > 0.0 ? "  %5.2f\n" : "      -\n", own[isa] / blas);
    }
    if (blas > 0.0)
        printf("%6zu x %-6zu %-13s %-9s %8.1f  %5.1f %%  %5.2f\n", shape->n_rows, shape->n_cols,
               shape->role, "openblas", blas, 100.0 * blas / ceiling(top, s), 1.0);
    fflush(stdout);
    work_close(&w);
}

static const struct gguf_type_info *type_named(const char *name)
{
    const struct gguf_type_info *type;
    for (size_t i = 0; (type = gguf_type_at(i)); i++) {
        if (strcasecmp(type->name, name) == 0)
            return type;
    }
    fprintf(stderr, "bench_gemm: no type is called %s\n", name);
    exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
    struct settings s = {
        .seconds = 0.5, .n_tokens = 512, .n_threads = 1, .type = gguf_type_info(GGUF_TYPE_Q4_K)};
    int option;
    while ((option = getopt(argc, argv, "s:n:t:q:")) != -1) {
        if (option == 's')
            s.seconds = strtod(optarg, NULL);
        else if (option == 'n')
            s.n_tokens = strtoul(optarg, NULL, 10);
        else if (option == 't')
            s.n_threads = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'q')
            s.type = type_named(optarg);
        else
            return EXIT_FAILURE;
    }
    if (kern_isa_detect() == KERN_ISA_SCALAR) {
        fprintf(stderr, "bench_gemm: this processor has no AVX2; plain C is not timed\n");
        return EXIT_FAILURE;
    }
    bench_print_machine();
    printf("# %s, %zu tokens, %u threads\n", s.type->name, s.n_tokens, s.n_threads);
    printf("# weight                      variant    GFLOP/s  of FMA   of OpenBLAS\n");
    if (optind == argc) {
        for (size_t i = 0; i < sizeof default_shapes / sizeof default_shapes[0]; i++)
            bench_shape(&default_shapes[i], &s);
    }
    for (int i = optind; i < argc; i++) {
        struct shape shape = {.role = ""};
        if (sscanf(argv[i], "%zux%zu", &shape.n_rows, &shape.n_cols) != 2 || shape.n_rows == 0 ||
            shape.n_cols == 0 || shape.n_cols % s.type->block_elems != 0) {
            fprintf(stderr, "bench_gemm: %s is no ROWSxCOLUMNS that %s can have\n", argv[i],
                    s.type->name);
            return EXIT_FAILURE;
        }
        bench_shape(&shape, &s);
    }
    return EXIT_SUCCESS;
}

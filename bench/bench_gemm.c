/**
 * How fast products are: y = W x of the layers of LLaMA models, W packed, decoding included. Per
 * shape and variant: GFLOP/s; the share of its own microkernel's, on operands that stay in the
 * L2 cache; of nothing but multiply-adds; of OpenBLAS with the same weights. All of them take
 * turns. Before it is timed, a variant is compared with the first: float32 to the bit, others
 * within the error of their rounding.
 *
 * usage: bench_gemm [-s SECONDS_PER_CASE] [-n TOKENS] [-t THREADS] [-q TYPE] [SHAPE...]
 * SHAPE: ROWSxCOLUMNS, or 1B, 8B, 70B: the products of a layer of that size. Default: 1B 8B.
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
#include "kernels/backend.h"
#include "kernels/cpu/context.h"
#include "kernels/operations.h"
#include "tests/harness/compare.h"
#include "tests/harness/random_blocks.h"
#include "tests/harness/types.h"

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

static const struct shape shapes[] = {
    {2048, 2048, "1B q, output"}, {512, 2048, "1B k, v"},        {8192, 2048, "1B gate, up"},
    {2048, 8192, "1B down"},      {4096, 4096, "8B q, output"},  {1024, 4096, "8B k, v"},
    {14336, 4096, "8B gate, up"}, {4096, 14336, "8B down"},      {8192, 8192, "70B q, output"},
    {1024, 8192, "70B k, v"},     {28672, 8192, "70B gate, up"}, {8192, 28672, "70B down"},
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
    size_t row_bytes = random_blocks_row_bytes(s->type->type, shape->n_cols);
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
    random_blocks_draw(&pool, w->blocks, shape->n_rows, shape->n_cols);
    random_blocks_close(&pool);
    struct rng r = rng_open(1, 1);
    for (size_t i = 0; i < s->n_tokens * shape->n_cols; i++)
        w->x[i] = rng_normal(&r);
    w->weight = (struct kern_weight){.type = s->type->type,
                                     .n_rows = shape->n_rows,
                                     .n_cols = shape->n_cols,
                                     .row_bytes = row_bytes,
                                     .data = w->blocks,
                                     .scales = random_blocks_scales(s->type->type, 0.02),
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

/** A way to multiply, in the order of the lines. */
static const struct variant {
    const char *name;
    enum kern_isa isa;
    enum kern_gemm gemm;
    enum kern_precision precision;
    const char *products;
} variants[] = {
    {"avx2", KERN_ISA_AVX2, KERN_GEMM_OWN, KERN_PRECISION_EXACT, "float32"},
    {"avx512", KERN_ISA_AVX512, KERN_GEMM_OWN, KERN_PRECISION_EXACT, "float32"},
    {"avx2 int16", KERN_ISA_AVX2, KERN_GEMM_OWN, KERN_PRECISION_HIGH, "int16"},
    {"avx512 int16", KERN_ISA_AVX512, KERN_GEMM_OWN, KERN_PRECISION_HIGH, "int16"},
    {"avx2 int8", KERN_ISA_AVX2, KERN_GEMM_OWN, KERN_PRECISION_FAST, "int8"},
    {"avx512 int8", KERN_ISA_AVX512, KERN_GEMM_OWN, KERN_PRECISION_FAST, "int8"},
    {"amx bf16x3", KERN_ISA_AVX512, KERN_GEMM_OWN, KERN_PRECISION_HIGH, "bf16x3"},
    {"amx bf16", KERN_ISA_AVX512, KERN_GEMM_OWN, KERN_PRECISION_FAST, "bf16"},
    {"openblas", KERN_ISA_COUNT - 1, KERN_GEMM_OPENBLAS, KERN_PRECISION_EXACT, "openblas"},
};
enum { N_VARIANTS = sizeof variants / sizeof variants[0], LOOP_ROWS = 96 };

/** A variant at work: the product, and its microkernel on operands that stay in the caches. */
struct run {
    const struct variant *variant;
    struct kern_backend *backend;
    const struct kern_product *product;
    const struct kern_linear *op;
    struct kern_fma_tile loop;
    float *loop_memory;
    double gflops, loop_gflops;
};

static void multiply(void *context)
{
    const struct run *run = context;
    if (kern_linear(run->backend, run->op, NULL) != STATUS_OK)
        exit(EXIT_FAILURE);
}

static void multiply_loop(void *context)
{
    const struct run *run = context;
    run->product->multiply(&run->loop);
}

static void loop_open(struct run *run)
{
    enum gguf_type type = run->op->weight->type;
    const struct kern_product *product = kern_cpu_product_of(kern_cpu_of(run->backend), type);
    run->product = product;
    size_t row_floats = kern_product_row_floats(product, product->slab_k);
    size_t x_floats = kern_product_panel_floats(product, product->slab_k);
    size_t w_floats = LOOP_ROWS * row_floats, acc_floats = (size_t)LOOP_ROWS * KERN_PANEL;
    run->loop_memory = allocate((w_floats + x_floats + acc_floats) * sizeof(float));
    for (size_t i = 0; i < w_floats + x_floats; i++)
        run->loop_memory[i] = 1e-3f * (float)(i % 17);
    run->loop =
        (struct kern_fma_tile){.w = run->loop_memory,
                               .w_row = row_floats,
                               .w_col = 1,
                               .x = run->loop_memory + w_floats,
                               .acc = run->loop_memory + w_floats + x_floats,
                               .n_rows = LOOP_ROWS,
                               .format = kern_integers_find(type, kern_product_bits(product)),
                               .n_k = product->slab_k};
}

/** Own float32 products to the bit; others within what rounding can do, K = n_cols. */
static bool is_right(const struct work *w, const struct run *run, bool first)
{
    size_t n = w->op.n_tokens * w->weight.n_rows;
    const char *products = run->variant->products;
    if (strcmp(products, "float32") == 0)
        return first || compare_bits(w->y, w->expected, n) == n;
    double columns = (double)w->weight.n_cols;
    /* sum |w x| is below K * 0.02 * 4; two sums of K float32 roundings each; parts of operands. */
    double roundings = 2.0 * columns * 0x1p-24;
    if (run->variant->precision != KERN_PRECISION_EXACT)
        roundings += run->variant->precision == KERN_PRECISION_FAST ? 0x1p-7 : 0x3p-16;
    for (size_t i = 0; i < n; i++) {
        double difference = (double)w->y[i] - (double)w->expected[i];
        if (!(fabs(difference) <= roundings * columns * 0.02 * 4.0))
            return false;
    }
    return true;
}

/** Open and check a variant; false if this machine or build does not have it. */
static bool run_open(struct run *run, const struct variant *variant, struct work *w,
                     const struct settings *s)
{
    bool first = variant == &variants[0], amx = strncmp(variant->name, "amx", 3) == 0;
    struct kern_cpu_options options = {.n_threads = s->n_threads,
                                       .isa_cap = variant->isa,
                                       .gemm = variant->gemm,
                                       .precision = variant->precision,
                                       .amx = amx ? KERN_AMX_HARDWARE : KERN_AMX_NONE};
    *run = (struct run){.variant = variant, .op = &w->op};
    bool is_there = variant->gemm == KERN_GEMM_OPENBLAS || variant->isa <= kern_isa_detect();
    if (!is_there || kern_cpu_open(&run->backend, &options, NULL) != STATUS_OK)
        return false;
    if (strcmp(kern_describe(run->backend).products, variant->products) != 0 ||
        (strncmp(variant->products, "int", 3) == 0 && !kern_integers_find(s->type->type, 8))) {
        kern_close(run->backend);
        return false;
    }
    multiply(run);
    if (!is_right(w, run, first)) {
        fprintf(stderr, "bench_gemm: %s gives a wrong product\n", variant->name);
        exit(EXIT_FAILURE);
    }
    if (first)
        memcpy(w->expected, w->y, w->op.n_tokens * w->weight.n_rows * sizeof(float));
    loop_open(run);
    return true;
}

/** Time everything in turns. fma: out, GFLOP/s of nothing but multiply-adds, by ISA. */
static void time_runs(struct run *runs, size_t n_runs, const struct settings *s, double *fma)
{
    struct bench_case cases[2 * N_VARIANTS + 2];
    const struct kern_linear *op = runs[0].op;
    double flops =
        2.0 * (double)op->n_tokens * (double)op->weight->n_rows * (double)op->weight->n_cols;
    for (size_t i = 0; i < n_runs; i++) {
        cases[2 * i] = (struct bench_case){.run = multiply, .context = &runs[i]};
        cases[2 * i + 1] = (struct bench_case){.run = multiply_loop, .context = &runs[i]};
    }
    struct bench_case *ceilings = cases + 2 * n_runs;
    bool has_avx512 = kern_isa_detect() >= KERN_ISA_AVX512;
    ceilings[0] = (struct bench_case){.run = bench_fma_avx2};
    ceilings[1] = (struct bench_case){.run = has_avx512 ? bench_fma_avx512 : bench_fma_avx2};
    bench_compare(cases, 2 * n_runs + 2, s->n_threads == 1 ? BENCH_THREAD : BENCH_WALL, s->seconds);
    for (size_t i = 0; i < n_runs; i++) {
        const struct kern_fma_tile *loop = &runs[i].loop;
        double loop_flops = 2.0 * (double)loop->n_rows * (double)loop->n_k * KERN_PANEL;
        runs[i].gflops = 1e-9 * flops / cases[2 * i].time.median;
        runs[i].loop_gflops = 1e-9 * loop_flops / cases[2 * i + 1].time.median * s->n_threads;
    }
    for (int isa = KERN_ISA_AVX2; isa <= KERN_ISA_AVX512; isa++)
        fma[isa] = 1e-9 * bench_fma_flops((enum kern_isa)isa) /
                   ceilings[isa - KERN_ISA_AVX2].time.median * s->n_threads;
}

static void print_run(const struct run *run, const struct shape *shape, const double *fma,
                      double blas)
{
    const struct variant *v = run->variant;
    printf("%6zu x %-6zu %-14s %-12s %8.1f", shape->n_rows, shape->n_cols, shape->role, v->name,
           run->gflops);
    if (v->gemm == KERN_GEMM_OWN)
        printf("  %5.1f %%", 100.0 * run->gflops / run->loop_gflops);
    else
        printf("        -");
    if (v->precision == KERN_PRECISION_EXACT) {
        enum kern_isa top = kern_isa_detect();
        printf("  %5.1f %%", 100.0 * run->gflops / fma[v->isa < top ? v->isa : top]);
    } else {
        printf("        -");
    }
    printf(blas > 0.0 ? "  %5.2f\n" : "      -\n", run->gflops / blas);
}

static void bench_shape(const struct shape *shape, const struct settings *s)
{
    struct work w;
    work_open(&w, s, shape);
    struct run runs[N_VARIANTS];
    size_t n_runs = 0;
    double fma[KERN_ISA_COUNT], blas = 0.0;
    for (size_t i = 0; i < N_VARIANTS; i++)
        n_runs += run_open(&runs[n_runs], &variants[i], &w, s);
    time_runs(runs, n_runs, s, fma);
    for (size_t i = 0; i < n_runs; i++) {
        if (runs[i].variant->gemm == KERN_GEMM_OPENBLAS)
            blas = runs[i].gflops;
    }
    for (size_t i = 0; i < n_runs; i++) {
        print_run(&runs[i], shape, fma, blas);
        kern_close(runs[i].backend);
        free(runs[i].loop_memory);
    }
    fflush(stdout);
    work_close(&w);
}

/**
 * OpenBLAS chooses its kernels by the processor's model number, which virtual machines hide: it
 * then takes those of 2004. Suggest the instruction set's, load it, and print what there is.
 */
static void help_openblas(void)
{
    struct kern_cpu_options options = {.n_threads = 1, .gemm = KERN_GEMM_OPENBLAS};
    struct kern_backend *b;
    setenv("OPENBLAS_CORETYPE", kern_isa_detect() >= KERN_ISA_AVX512 ? "SkylakeX" : "Haswell", 0);
    if (kern_cpu_open(&b, &options, NULL) == STATUS_OK)
        kern_close(b);
    printf("# OpenBLAS: %s\n", *kern_openblas_version() ? kern_openblas_version() : "none");
}

static const struct gguf_type_info *type_named(const char *name)
{
    const struct gguf_type_info *type;
    for (size_t i = 0; (type = type_at(i)); i++) {
        if (strcasecmp(type->name, name) == 0)
            return type;
    }
    fprintf(stderr, "bench_gemm: no type is called %s\n", name);
    exit(EXIT_FAILURE);
}

static void bench_argument(const char *argument, const struct settings *s)
{
    struct shape shape = {.role = ""};
    size_t n = strlen(argument), n_found = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        if (strncasecmp(shapes[i].role, argument, n) == 0 && shapes[i].role[n] == ' ') {
            bench_shape(&shapes[i], s);
            n_found++;
        }
    }
    if (n_found > 0)
        return;
    if (sscanf(argument, "%zux%zu", &shape.n_rows, &shape.n_cols) != 2 || shape.n_rows == 0 ||
        shape.n_cols == 0 || shape.n_cols % s->type->block_elems != 0) {
        fprintf(stderr, "bench_gemm: %s is no ROWSxCOLUMNS that %s can have\n", argument,
                s->type->name);
        exit(EXIT_FAILURE);
    }
    bench_shape(&shape, s);
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
    help_openblas();
    printf("# %s, %zu tokens, %u threads\n", s.type->name, s.n_tokens, s.n_threads);
    printf(
        "# weight                       variant       GFLOP/s  of L2 loop  of FMA  of OpenBLAS\n");
    static const char *const models[] = {"1B", "8B"};
    bool given = optind < argc;
    for (int i = given ? optind : 0; i < (given ? argc : 2); i++)
        bench_argument(given ? argv[i] : models[i], &s);
    return EXIT_SUCCESS;
}

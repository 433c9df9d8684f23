/**
 * What a recurrent layer costs beside the attention layer that it replaces: products, and the
 * operations that mix tokens, of layers shaped like Qwen3-Next's, Nemotron-H's and Kimi Linear's,
 * for one window. Norms, rotations and gates are left out: both have them alike, and they are
 * small.
 *
 * usage: bench_recurrent [-s SECONDS_PER_LINE] [-n TOKENS] [-t THREADS] [-q TYPE] [-i ISA]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/arithmetic.h"
#include "bench/bench.h"
#include "bench/fma_ceiling.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"
#include "kernels/operations.h"
#include "kernels/recurrent.h"
#include "tests/harness/random_blocks.h"
#include "tests/harness/types.h"

enum { N_PRODUCTS = 4, MOST_WIDTH = 18560 };

struct settings {
    double seconds;
    size_t n_tokens;
    unsigned n_threads;
    const struct gguf_type_info *type;
    enum kern_isa isa;
};

struct product {
    size_t n_rows, n_cols;
};

/** A layer: its products, and either attention's heads or a state's. */
struct layer {
    const char *name;
    struct product products[N_PRODUCTS];
    bool recurrent, delta;
    size_t n_k_heads, n_heads, k_size, v_size;
    bool by_channel;
};

static const struct layer layers[] = {
    {"Qwen3-Next attention",
     {{8192, 2048}, {512, 2048}, {512, 2048}, {2048, 4096}},
     false,
     false,
     2,
     16,
     256,
     256},
    {"Qwen3-Next delta net",
     {{8192, 2048}, {4096, 2048}, {64, 2048}, {2048, 4096}},
     true,
     true,
     16,
     32,
     128,
     128},
    {"Nemotron-H attention",
     {{4096, 4096}, {2048, 4096}, {4096, 4096}},
     false,
     false,
     8,
     32,
     128,
     128},
    {"Nemotron-H Mamba-2", {{18560, 4096}, {4096, 8192}}, true, false, 8, 128, 128, 64},
    {"Kimi Linear attention", /* latent; k_up and v_up of the heads as one product */
     {{6144, 2304}, {576, 2304}, {16384, 256}, {2304, 4096}},
     false,
     false,
     1,
     32,
     576,
     512},
    {"Kimi Linear delta net",
     {{12288, 2304}, {288, 2304}, {8192, 128}, {2304, 4096}},
     true,
     true,
     32,
     32,
     128,
     128,
     true},
};

struct work {
    struct kern_backend *backend;
    const struct settings *settings;
    const struct layer *layer;
    struct kern_weight weights[N_PRODUCTS], vector, dt_bias, taps;
    uint8_t *blocks;
    float *x, *y, *vectors;
};

static void *allocate(size_t n_bytes)
{
    void *memory = aligned_alloc(64, (n_bytes + 63) / 64 * 64);
    if (!memory) {
        fprintf(stderr, "bench_recurrent: out of memory\n");
        exit(EXIT_FAILURE);
    }
    return memory;
}

static void require_ok(enum status status, const struct status_why *why)
{
    if (!status)
        return;
    fprintf(stderr, "bench_recurrent: %s\n", why->text);
    exit(EXIT_FAILURE);
}

static void multiply(void *context)
{
    const struct work *w = context;
    for (size_t i = 0; i < N_PRODUCTS && w->layer->products[i].n_rows; i++) {
        struct kern_linear op = {.weight = &w->weights[i],
                                 .x = w->x,
                                 .y = w->y,
                                 .y_stride = w->weights[i].n_rows,
                                 .n_tokens = w->settings->n_tokens};
        struct status_why why;
        require_ok(kern_linear(w->backend, &op, &why), &why);
    }
}

static void attend(void *context)
{
    const struct work *w = context;
    const struct layer *l = w->layer;
    const struct kern_query_range range = {.n_q = w->settings->n_tokens};
    struct kern_attention op = {.q = w->x,
                                .k = w->x,
                                .v = w->x,
                                .out = w->y,
                                .n_heads = l->n_heads,
                                .n_kv_heads = l->n_k_heads,
                                .head_size = l->k_size,
                                .value_size = l->v_size,
                                .scale = 1 / sqrtf((float)l->k_size),
                                .ranges = &range,
                                .n_ranges = 1};
    struct status_why why;
    require_ok(kern_attention(w->backend, &op, &why), &why);
}

/** Columns of q, k and v together. */
static size_t mixed_width(const struct layer *l)
{
    return 2 * l->n_k_heads * l->k_size + l->n_heads * l->v_size;
}

static struct kern_run whole_window(const struct work *w)
{
    return (struct kern_run){0, w->settings->n_tokens, 0, KERN_NONE, KERN_NONE, KERN_NONE};
}

static void convolve(void *context)
{
    const struct work *w = context;
    const struct kern_run run = whole_window(w);
    struct kern_convolve op = {.x = w->x,
                               .x_stride = mixed_width(w->layer),
                               .y = w->y,
                               .weight = &w->taps,
                               .runs = &run,
                               .n_runs = 1};
    struct status_why why;
    require_ok(kern_convolve(w->backend, &op, &why), &why);
}

static void recur(void *context)
{
    const struct work *w = context;
    const struct layer *l = w->layer;
    const struct kern_run run = whole_window(w);
    size_t k_width = l->n_k_heads * l->k_size;
    struct kern_recur op = {.q = w->x,
                            .k = w->x + k_width,
                            .v = w->x + 2 * k_width,
                            .stride = mixed_width(l),
                            .dt = w->x,
                            .beta = l->delta ? w->x + l->n_heads : NULL,
                            .dt_stride = l->by_channel ? l->n_heads * l->k_size : 2 * l->n_heads,
                            .beta_stride = 2 * l->n_heads,
                            .by_channel = l->by_channel,
                            .dt_bias = &w->dt_bias,
                            .decay = &w->vector,
                            .skip = l->delta ? NULL : &w->vector,
                            .out = w->y,
                            .n_k_heads = l->n_k_heads,
                            .n_heads = l->n_heads,
                            .k_size = l->k_size,
                            .v_size = l->v_size,
                            .unit = l->delta ? KERN_UNIT_ADD : KERN_UNIT_NONE,
                            .eps = 1e-6f,
                            .scale = 1 / sqrtf((float)l->k_size),
                            .runs = &run,
                            .n_runs = 1};
    struct status_why why;
    require_ok(kern_recur(w->backend, &op, &why), &why);
}

static struct kern_weight float_rows(const float *values, size_t n_rows, size_t n_cols)
{
    return (struct kern_weight){.type = GGUF_TYPE_F32,
                                .n_rows = n_rows,
                                .n_cols = n_cols,
                                .row_bytes = n_cols * sizeof *values,
                                .data = values,
                                .scale = 1};
}

static void work_open(struct work *w, const struct settings *s)
{
    enum { MOST_ROWS = 18560, MOST_COLS = 4096, PREFIXES = 64 /* of narrower rows */ };
    size_t n = s->n_tokens * MOST_WIDTH;
    size_t n_bytes = MOST_ROWS * (random_blocks_row_bytes(s->type->type, MOST_COLS) + PREFIXES);
    struct random_blocks pool;
    *w = (struct work){.settings = s,
                       .blocks = allocate(n_bytes),
                       .x = allocate(n * sizeof(float)),
                       .y = allocate(n * sizeof(float)),
                       .vectors = allocate(4 * MOST_WIDTH * sizeof(float))};
    if (!random_blocks_open(&pool, s->type->type, 0.02, 1 << 16)) {
        fprintf(stderr, "bench_recurrent: no random blocks of type %s\n", s->type->name);
        exit(EXIT_FAILURE);
    }
    random_blocks_draw(&pool, w->blocks, MOST_ROWS, MOST_COLS);
    random_blocks_close(&pool);
    struct rng r = rng_open(1, 1);
    for (size_t i = 0; i < n; i++)
        w->x[i] = rng_float(&r, -1.0f, 1.0f);
    for (size_t i = 0; i < 4 * MOST_WIDTH; i++)
        w->vectors[i] = -rng_float(&r, 0.001f, 0.1f);
    const struct kern_cpu_options options = {.n_threads = s->n_threads,
                                             .isa_cap = s->isa,
                                             .precision = KERN_PRECISION_HIGH,
                                             .amx = KERN_AMX_HARDWARE};
    struct status_why why;
    require_ok(kern_cpu_open(&w->backend, &options, &why), &why);
}

static void choose_layer(struct work *w, const struct layer *layer)
{
    const struct gguf_type_info *type = w->settings->type;
    w->layer = layer;
    w->vector = float_rows(w->vectors, 1, layer->n_heads);
    w->dt_bias =
        float_rows(w->vectors, 1, layer->n_heads * (layer->by_channel ? layer->k_size : 1));
    w->taps = float_rows(w->vectors, mixed_width(layer), 4);
    for (size_t i = 0; i < N_PRODUCTS; i++) {
        const struct product *p = &layer->products[i];
        w->weights[i] =
            (struct kern_weight){.type = type->type,
                                 .n_rows = p->n_rows,
                                 .n_cols = p->n_cols,
                                 .row_bytes = random_blocks_row_bytes(type->type, p->n_cols),
                                 .data = w->blocks,
                                 .scales = random_blocks_scales(type->type, 0.02),
                                 .scale = 1};
    }
}

/** Multiply-adds of a token, in the plain form: what must be computed, however it is. */
static double mixing_work(const struct layer *l, size_t n_tokens)
{
    double cells = (double)(l->n_heads * l->k_size);
    if (!l->recurrent)
        return 2 * cells * (double)(n_tokens + 1) / 2;
    return (2 + l->delta + l->by_channel) * cells * (double)l->v_size;
}

static double product_work(const struct layer *l)
{
    double sum = 0;
    for (size_t i = 0; i < N_PRODUCTS; i++)
        sum += (double)(l->products[i].n_rows * l->products[i].n_cols);
    return sum;
}

/** Print a line; returns microseconds for each token. */
static double line(struct work *w, const char *name, bench_fn *run, double work, double ceiling)
{
    const struct settings *s = w->settings;
    struct bench_time t =
        bench_measure(run, w, s->n_threads == 1 ? BENCH_THREAD : BENCH_WALL, s->seconds);
    double us = 1e6 * t.median / (double)s->n_tokens, gflops = 2e-3 * work / us;
    printf("  %-10s %9.2f us/token %8.1f GFLOP/s %6.1f %% of multiply-adds\n", name, us, gflops,
           100 * gflops / ceiling);
    fflush(stdout);
    return us;
}

static double measure_layer(struct work *w, const struct layer *l, double ceiling)
{
    choose_layer(w, l);
    printf("%s\n", l->name);
    double us = line(w, "products", multiply, product_work(l), ceiling);
    double mixing = mixing_work(l, w->settings->n_tokens);
    if (!l->recurrent)
        return us + line(w, "attention", attend, mixing, ceiling);
    us += line(w, "convolve", convolve, 4 * (double)mixed_width(l), ceiling);
    return us + line(w, "recur", recur, mixing, ceiling);
}

static bool read_options(struct settings *s, int argc, char **argv)
{
    for (int option; (option = getopt(argc, argv, "s:n:t:q:i:")) != -1;) {
        if (option == 's')
            s->seconds = strtod(optarg, NULL);
        else if (option == 'n')
            s->n_tokens = strtoul(optarg, NULL, 10);
        else if (option == 't')
            s->n_threads = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'i')
            for (s->isa = 0; s->isa < KERN_ISA_COUNT && strcasecmp(optarg, kern_isa_name(s->isa));)
                s->isa++;
        else if (option == 'q')
            for (size_t i = 0; (s->type = type_at(i)) && strcasecmp(optarg, s->type->name);)
                i++;
        else
            return false;
    }
    return s->seconds > 0 && s->n_tokens > 0 && s->n_threads > 0 && s->type &&
           s->isa < KERN_ISA_COUNT && optind == argc;
}

int main(int argc, char **argv)
{
    struct settings s = {1.0, 2048, 1, gguf_type_info(GGUF_TYPE_Q8_0), KERN_ISA_COUNT - 1};
    if (!read_options(&s, argc, argv)) {
        fprintf(stderr, "usage: bench_recurrent [-s SECONDS_PER_LINE] [-n TOKENS] [-t THREADS] "
                        "[-q TYPE] [-i ISA]\n");
        return 2;
    }
    struct work w;
    work_open(&w, &s);
    enum kern_isa isa = base_min(s.isa, kern_isa_detect());
    bench_print_machine();
    bench_fn *fma = isa == KERN_ISA_AVX512 ? bench_fma_avx512 : bench_fma_avx2;
    double ceiling = 1e-9 * bench_fma_flops(isa) * s.n_threads /
                     bench_measure(fma, NULL, BENCH_THREAD, 0.5).median;
    printf("# %s, %s products of %s, %u threads, %zu tokens, ceiling %.1f GFLOP/s\n",
           kern_isa_name(isa), s.type->name, kern_describe(w.backend).products, s.n_threads,
           s.n_tokens, ceiling);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i += 2) {
        double attention = measure_layer(&w, &layers[i], ceiling);
        double recurrent = measure_layer(&w, &layers[i + 1], ceiling);
        printf("the second layer takes %.2f times as long\n", recurrent / attention);
    }
    kern_close(w.backend);
    free(w.blocks);
    free(w.x);
    free(w.y);
    free(w.vectors);
    return EXIT_SUCCESS;
}

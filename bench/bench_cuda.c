/**
 * The CUDA backend's kernels on a device, against that device's own ceilings, both measured here.
 *
 * usage: bench_cuda [--device N] [--tokens 4096] [--runs 7] [--json FILE]
 *
 * First the ceilings: the library's best product of halves by itself (cuda_ceiling.h), and a large
 * copy within the device (bytes read plus bytes written). Then each operation at the shapes of an
 * 8B model on random data, through the backend's interface: median seconds, spread, bytes and
 * operations that it must move and do, and the share of the ceiling that binds it. Exits with 3
 * where there is no device.
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/bench.h"
#include "bench/cuda_ceiling.h"
#include "kernels/backend.h"
#include "kernels/cuda/cuda.h"
#include "kernels/operations.h"
#include "kernels/quant/registry.h"
#include "kernels/scoring.h"
#include "tests/harness/random_blocks.h"
#include "tests/harness/rng.h"

enum { D = 4096, F = 14336, H = 32, G = 8, HEAD = 128, V = 128256, CONTEXT = 512, MAX_RUNS = 99 };

struct bench {
    struct kern_backend *b;
    size_t n_tokens, n_runs;
    double copy_rate, product_rate; /* bytes and operations a second */
    struct rng rng;
    FILE *json;
    bool any, failed;
};

static void must(enum status status, const struct status_why *why)
{
    if (status == STATUS_OK)
        return;
    fprintf(stderr, "bench_cuda: %s\n", why->text);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *device_floats(struct bench *bench, size_t n, float size)
{
    struct status_why why;
    void *memory;
    float *x = malloc(n * sizeof *x);
    if (!x)
        exit(1);
    for (size_t i = 0; i < n; i++)
        x[i] = rng_float(&bench->rng, -size, size);
    must(kern_alloc(bench->b, &memory, n * sizeof *x, &why), &why);
    must(kern_upload(bench->b, memory, x, n * sizeof *x, &why), &why);
    free(x);
    return memory;
}

/** An operation to time. */
struct work {
    const char *name, *detail;
    enum status (*run)(struct bench *bench, void *context, struct status_why *why);
    void *context;
    const float *result; /* something that it writes */
    double bytes, flops; /* at least */
    size_t repeats;      /* per time taken: enough to hide the wait */
};

/** Repeat the work, and wait for it. */
static enum status run_work(struct bench *bench, const struct work *w, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t k = 0; status == STATUS_OK && k < w->repeats; k++)
        status = w->run(bench, w->context, why);
    float x;
    return status == STATUS_OK ? kern_download(bench->b, &x, w->result, sizeof x, why) : status;
}

/** Median seconds of one repeat; NAN if it fails. spread: largest less smallest, over the median.
 */
static double time_work(struct bench *bench, const struct work *w, double *spread,
                        struct status_why *why)
{
    double seconds[MAX_RUNS];
    *spread = 0;
    for (size_t i = 0; i <= bench->n_runs; i++) { /* the first is a warm-up */
        double begun = now();
        if (run_work(bench, w, why) != STATUS_OK)
            return (double)NAN;
        if (i > 0)
            seconds[i - 1] = (now() - begun) / (double)w->repeats;
    }
    bench_sort(seconds, bench->n_runs);
    double median = seconds[bench->n_runs / 2];
    *spread = (seconds[bench->n_runs - 1] - seconds[0]) / median;
    return median;
}

static void report_json(struct bench *bench, const struct work *w, double seconds, double spread,
                        double floor)
{
    if (!bench->json)
        return;
    fprintf(bench->json,
            "%s\n    {\"name\": \"%s\", \"detail\": \"%s\", \"seconds\": %.9g, \"spread\": %.4g, "
            "\"bytes\": %.9g, \"flops\": %.9g, \"share\": %.4g}",
            bench->any ? "," : "", w->name, w->detail, seconds, spread, w->bytes, w->flops,
            floor / seconds);
    bench->any = true;
}

static void write_row(struct bench *bench, const struct work *w, double seconds, double spread)
{
    double floor_bytes = bench->copy_rate > 0 ? w->bytes / bench->copy_rate : 0;
    double floor_flops = bench->product_rate > 0 ? w->flops / bench->product_rate : 0;
    double floor = floor_bytes > floor_flops ? floor_bytes : floor_flops;
    printf("%-10s %-22s %10.3f ms  +- %4.1f%%  %8.1f GB/s  %8.2f TFLOP/s  %5.1f%% of floor\n",
           w->name, w->detail, 1e3 * seconds, 50 * spread, 1e-9 * w->bytes / seconds,
           1e-12 * w->flops / seconds, 100 * floor / seconds);
    report_json(bench, w, seconds, spread, floor);
    fflush(stdout); /* who ends us for taking too long still has what there is */
}

/** Time it and write a row; the seconds, or NAN if it failed, which does not stop the others. */
static double report(struct bench *bench, const struct work *w)
{
    struct status_why why = {""};
    double spread, seconds = time_work(bench, w, &spread, &why);
    if (isnan(seconds)) {
        printf("%-10s %-22s FAILED: %s\n", w->name, w->detail, why.text);
        bench->failed = true;
        return (double)NAN;
    }
    write_row(bench, w, seconds, spread);
    return seconds;
}

/** Rows of a type; free(data). */
static struct kern_weight random_weight(enum gguf_type type, size_t n_rows, size_t n_cols)
{
    static uint64_t generation;
    struct random_blocks pool;
    size_t row_bytes = random_blocks_row_bytes(type, n_cols);
    void *data = malloc(n_rows * row_bytes);
    if (!data || !random_blocks_open(&pool, type, 0.02, 65536))
        exit(1);
    random_blocks_draw(&pool, data, n_rows, n_cols);
    random_blocks_close(&pool);
    return (struct kern_weight){.type = type,
                                .n_rows = n_rows,
                                .n_cols = n_cols,
                                .row_bytes = row_bytes,
                                .data = data,
                                .scales = random_blocks_scales(type, 0.02),
                                .scale = 1,
                                .generation = ++generation};
}

struct gather {
    const float *x;
    float *y;
    uint32_t *rows;
};

static enum status run_gather(struct bench *bench, void *context, struct status_why *why)
{
    const struct gather *g = context;
    struct kern_gather op = {g->x, g->rows, bench->n_tokens, D, g->y};
    return kern_gather(bench->b, &op, why);
}

/** Gathering all rows in order is a copy; of buffers far larger than any cache. */
static void measure_copy(struct bench *bench)
{
    size_t n_tokens = bench->n_tokens;
    bench->n_tokens = 65536;
    struct gather g = {.x = device_floats(bench, bench->n_tokens * D, 1),
                       .y = device_floats(bench, bench->n_tokens * D, 1),
                       .rows = malloc(bench->n_tokens * sizeof(uint32_t))};
    for (size_t i = 0; i < bench->n_tokens; i++)
        g.rows[i] = (uint32_t)i;
    struct work w = {
        "copy", "65536 rows of 4096", run_gather, &g, g.y, 8.0 * D * (double)bench->n_tokens, 0, 4};
    double seconds = report(bench, &w);
    bench->copy_rate = isnan(seconds) ? 0 : w.bytes / seconds;
    kern_free(bench->b, (float *)(uintptr_t)g.x);
    kern_free(bench->b, g.y);
    free(g.rows);
    bench->n_tokens = n_tokens;
}

static enum status run_linear(struct bench *bench, void *context, struct status_why *why)
{
    return kern_linear(bench->b, context, why);
}

/** Products of an 8B model's shapes, with all that is around them. */
static void bench_linear(struct bench *bench, const char *name, enum gguf_type type,
                         double products)
{
    static const size_t shapes[][2] = {{D, D}, {G * HEAD, D}, {F, D}, {D, F}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct kern_weight weight = random_weight(type, shapes[i][0], shapes[i][1]);
        float *x = device_floats(bench, bench->n_tokens * weight.n_cols, 1);
        float *y = device_floats(bench, bench->n_tokens * weight.n_rows, 1);
        struct kern_linear op = {.weight = &weight,
                                 .x = x,
                                 .y = y,
                                 .y_stride = weight.n_rows,
                                 .n_tokens = bench->n_tokens};
        char detail[64];
        snprintf(detail, sizeof detail, "%s %zu x %zu", gguf_type_name(type), weight.n_rows,
                 weight.n_cols);
        double flops =
            2 * products * (double)bench->n_tokens * (double)weight.n_rows * (double)weight.n_cols;
        struct work w = {name, detail, run_linear, &op, y, 0, flops, 8};
        report(bench, &w);
        kern_free(bench->b, x);
        kern_free(bench->b, y);
        free((void *)(uintptr_t)weight.data);
    }
}

struct embed {
    struct kern_weight *table;
    int32_t *tokens;
    float *x;
};

static enum status run_embed(struct bench *bench, void *context, struct status_why *why)
{
    const struct embed *e = context;
    return kern_embed(bench->b, e->table, e->tokens, bench->n_tokens, e->x, why);
}

/** Every type's decoding, gathering in host memory and upload included: what embed does. */
static void bench_embed(struct bench *bench)
{
    const struct kern_quant *format;
    for (size_t i = 0; (format = kern_quant_at(i)) != NULL; i++) {
        struct kern_weight table = random_weight(format->type, 1024, D);
        struct embed e = {&table, malloc(bench->n_tokens * sizeof(int32_t)),
                          device_floats(bench, bench->n_tokens * D, 1)};
        for (size_t t = 0; t < bench->n_tokens; t++)
            e.tokens[t] = (int32_t)rng_below(&bench->rng, 1024);
        double bytes = (double)bench->n_tokens * ((double)table.row_bytes + 4.0 * D);
        struct work w = {"embed", gguf_type_name(format->type), run_embed, &e, e.x, bytes, 0, 4};
        report(bench, &w);
        kern_free(bench->b, e.x);
        free(e.tokens);
        free((void *)(uintptr_t)table.data);
    }
}

struct rows {
    struct kern_weight gain;
    float *x, *y;
};

static enum status run_norm(struct bench *bench, void *context, struct status_why *why)
{
    const struct rows *r = context;
    struct kern_norm op = {.gain = &r->gain,
                           .eps = 1e-5f,
                           .x = r->x,
                           .y = r->y,
                           .n_rows = bench->n_tokens,
                           .width = r->gain.n_cols,
                           .n_groups = 1};
    return kern_norm(bench->b, &op, why);
}

static enum status run_gate(struct bench *bench, void *context, struct status_why *why)
{
    const struct rows *r = context;
    struct kern_activate op = {.gate = r->y, .up = r->x, .n = bench->n_tokens * F};
    return kern_activate(bench->b, &op, why);
}

static void bench_rows(struct bench *bench)
{
    double t = (double)bench->n_tokens;
    struct rows r = {random_weight(GGUF_TYPE_F32, 1, D),
                     device_floats(bench, bench->n_tokens * F, 1),
                     device_floats(bench, bench->n_tokens * F, 1)};
    struct work norm = {"norm", "width 4096", run_norm, &r, r.y, 8.0 * t * D, 0, 16};
    struct work gate = {"gate", "width 14336", run_gate, &r, r.y, 12.0 * t * F, 0, 8};
    report(bench, &norm);
    report(bench, &gate);
    kern_free(bench->b, r.x);
    kern_free(bench->b, r.y);
    free((void *)(uintptr_t)r.gain.data);
}

static enum status run_attention(struct bench *bench, void *context, struct status_why *why)
{
    return kern_attention(bench->b, context, why);
}

/** Windows of n_ctx tokens, as many as there are tokens for; products: added for two numbers. */
static void bench_attention(struct bench *bench, const char *name, double products, size_t n_ctx)
{
    size_t n_ranges = bench->n_tokens / n_ctx;
    struct kern_query_range *ranges = calloc(n_ranges, sizeof *ranges);
    for (size_t i = 0; i < n_ranges; i++)
        ranges[i] =
            (struct kern_query_range){.q_row = i * n_ctx, .n_q = n_ctx, .kv_row = i * n_ctx};
    float *q = device_floats(bench, bench->n_tokens * H * HEAD, 1);
    float *k = device_floats(bench, bench->n_tokens * G * HEAD, 1);
    float *v = device_floats(bench, bench->n_tokens * G * HEAD, 1);
    float *out = device_floats(bench, bench->n_tokens * H * HEAD, 1);
    struct kern_attention op = {.q = q,
                                .k = k,
                                .v = v,
                                .out = out,
                                .n_heads = H,
                                .n_kv_heads = G,
                                .head_size = HEAD,
                                .value_size = HEAD,
                                .scale = 0.0883883476f,
                                .ranges = ranges,
                                .n_ranges = n_ranges};
    double pairs = (double)n_ranges * (double)n_ctx * (double)(n_ctx + 1) / 2 * H;
    char detail[64];
    snprintf(detail, sizeof detail, "%s, windows of %zu", name, n_ctx);
    struct work w = {"attention",
                     detail,
                     run_attention,
                     &op,
                     out,
                     (double)bench->n_tokens * (8.0 * H + 8.0 * G) * HEAD,
                     4.0 * products * HEAD * pairs,
                     4};
    report(bench, &w);
    float *const all[] = {q, k, v, out};
    for (size_t i = 0; i < 4; i++)
        kern_free(bench->b, all[i]);
    free(ranges);
}

static enum status run_score(struct bench *bench, void *context, struct status_why *why)
{
    return kern_score(bench->b, context, why);
}

/** Scores of 2048 rows: the head's product, and all that becomes of the logits. */
static void bench_score(struct bench *bench, double products, size_t n_heads)
{
    enum { ROWS = 2048 };
    struct kern_weight matrix = random_weight(GGUF_TYPE_Q6_K, V, D);
    float *hidden = device_floats(bench, (size_t)ROWS * D, 1);
    struct kern_head heads[2] = {{.hidden = hidden, .matrix = &matrix},
                                 {.hidden = hidden, .matrix = &matrix}};
    struct kern_target *targets = calloc(ROWS, sizeof *targets);
    for (uint32_t i = 0; i < ROWS; i++)
        targets[i] = (struct kern_target){i, (int32_t)rng_below(&bench->rng, V)};
    struct kern_score op = {
        .n_heads = n_heads, .heads = heads, .n_rows = ROWS, .n_targets = ROWS, .targets = targets};
    op.rows = calloc(n_heads * ROWS, sizeof *op.rows);
    op.target_scores = calloc(n_heads * ROWS, sizeof *op.target_scores);
    op.pairs = n_heads > 1 ? calloc(n_heads * ROWS, sizeof *op.pairs) : NULL;
    double flops = 2.0 * products * ROWS * (double)V * D * (double)n_heads;
    struct work w = {
        "score", n_heads > 1 ? "2 heads, divergences" : "1 head", run_score, &op, hidden, 0, flops,
        1};
    report(bench, &w);
    kern_free(bench->b, hidden);
    free(targets);
    free(op.rows);
    free(op.target_scores);
    free(op.pairs);
    free((void *)(uintptr_t)matrix.data);
}

static void backend_open(struct bench *bench, unsigned index, enum kern_precision precision)
{
    struct kern_cuda_device *device;
    struct status_why why = {""};
    must(kern_cuda_device_open(&device, index, &why), &why);
    must(kern_cuda_open(&bench->b, device, &(struct kern_cuda_options){.precision = precision},
                        &why),
         &why);
}

static void measure_ceiling(struct bench *bench, unsigned index)
{
    struct cuda_ceiling ceiling;
    struct status_why why = {""};
    if (cuda_ceiling_measure(&ceiling, index, bench->n_runs, &why) != STATUS_OK) {
        printf("%-10s FAILED: %s\n", "ceiling", why.text);
        bench->failed = true;
        return;
    }
    bench->product_rate = ceiling.rate;
    struct work w = {.name = "ceiling", .detail = ceiling.detail, .flops = ceiling.flops};
    write_row(bench, &w, ceiling.seconds, ceiling.spread);
}

/** Everything at one precision; that of copies comes from `fast`, which is first. */
static void bench_precision(struct bench *bench, unsigned index, enum kern_precision precision)
{
    static const char *const names[] = {"exact", "high", "fast"};
    /* see kernels/cuda/kernels/flash/flash.h */
    static const double attention_products[] = {1, 6, 3};
    double products = precision == KERN_PRECISION_HIGH ? 3 : 1;
    backend_open(bench, index, precision);
    if (precision == KERN_PRECISION_FAST) {
        measure_copy(bench);
        bench_linear(bench, "fast", GGUF_TYPE_F16, 1);
        bench_embed(bench);
        bench_rows(bench);
    }
    bench_attention(bench, names[precision], attention_products[precision], CONTEXT);
    bench_attention(bench, names[precision], attention_products[precision], bench->n_tokens);
    bench_linear(bench, names[precision], GGUF_TYPE_Q4_K, products);
    if (precision != KERN_PRECISION_EXACT) {
        bench_score(bench, products, 1);
        bench_score(bench, products, 2);
    }
    kern_close(bench->b);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"device", required_argument, NULL, 'd'},
                                            {"tokens", required_argument, NULL, 't'},
                                            {"runs", required_argument, NULL, 'r'},
                                            {"json", required_argument, NULL, 'j'},
                                            {NULL, 0, NULL, 0}};
    struct bench bench = {.n_tokens = 4096, .n_runs = 7, .rng = rng_open(1, 0)};
    unsigned index = 0;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'd')
            index = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 't')
            bench.n_tokens = strtoul(optarg, NULL, 10);
        else if (option == 'r')
            bench.n_runs = strtoul(optarg, NULL, 10);
        else if (option == 'j')
            bench.json = fopen(optarg, "w");
        else
            return 2;
    }
    if (bench.n_tokens < CONTEXT || bench.n_runs == 0 || bench.n_runs > MAX_RUNS)
        return 2;
    if (index >= kern_cuda_n_devices()) {
        fputs("bench_cuda: there is no such CUDA device here\n", stderr);
        return 3;
    }
    if (bench.json)
        fputs("[", bench.json);
    measure_ceiling(&bench, index);
    bench_precision(&bench, index, KERN_PRECISION_FAST);
    bench_precision(&bench, index, KERN_PRECISION_HIGH);
    bench_precision(&bench, index, KERN_PRECISION_EXACT);
    if (bench.json) {
        fputs("\n]\n", bench.json);
        fclose(bench.json);
    }
    return bench.failed;
}

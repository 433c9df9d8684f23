/*
 * What each kernel moves and does, counted by the interpreter: operations at the shapes of models,
 * with few rows. A line of JSON for each scene and kernel; bench/gpu_counts.py makes rates of them.
 *
 * usage: ptx_costs OUTPUT
 */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/backend.h"
#include "kernels/cuda/cuda.h"
#include "kernels/operations.h"
#include "kernels/quant/registry.h"
#include "kernels/scoring.h"
#include "tests/harness/host_device.h"
#include "tests/harness/random_blocks.h"
#include "tests/ptx/report.h"

enum {
    WIDTH = 4096,
    NARROW = 64,
    TOKENS = 16,
    ROWS = 16,
    CONTEXT = 512,
    VOCAB = 4096,
    SCORED = 32,
    LARGE = 227 << 10, /* bytes of a multiprocessor's shared memory that a block can have */
    SMALL = 99 << 10
};

static struct rng rng;
static FILE *out;
static struct kern_backend *b;

static void must(enum status status, const struct status_why *why)
{
    if (!status)
        return;
    fprintf(stderr, "ptx_costs: %s\n", why->text);
    exit(1);
}

static void *checked(void *memory)
{
    if (!memory)
        exit(1);
    return memory;
}

static float *floats(size_t n)
{
    struct status_why why;
    void *memory;
    float *x = checked(malloc(n * sizeof *x));
    for (size_t i = 0; i < n; i++)
        x[i] = rng_normal(&rng);
    must(kern_alloc(b, &memory, n * sizeof *x, &why), &why);
    must(kern_upload(b, memory, x, n * sizeof *x, &why), &why);
    free(x);
    return memory;
}

/** Looks at results, so that none waits for what comes next. */
static void look(const float *x)
{
    struct status_why why;
    float first;
    must(kern_download(b, &first, x, sizeof first, &why), &why);
}

static struct kern_weight weight_of(enum gguf_type type, size_t n_rows, size_t n_cols)
{
    struct random_blocks pool;
    size_t row_bytes = random_blocks_row_bytes(type, n_cols);
    void *data = checked(malloc(n_rows * row_bytes));
    if (!random_blocks_open(&pool, type, 0.02, 65536))
        exit(1);
    random_blocks_draw(&pool, data, n_rows, n_cols);
    random_blocks_close(&pool);
    return (struct kern_weight){.type = type,
                                .n_rows = n_rows,
                                .n_cols = n_cols,
                                .row_bytes = row_bytes,
                                .data = data,
                                .scales = random_blocks_scales(type, 0.02),
                                .scale = 1.0f,
                                .generation = kern_next_generation()};
}

static void backend_open(enum kern_precision precision, enum kern_cuda_integers integers,
                         size_t shared_bytes)
{
    struct status_why why;
    const struct kern_cuda_options options = {.precision = precision,
                                              .integers = integers,
                                              .product_tokens = SCORED,
                                              .product_step = SCORED};
    struct kern_cuda_device *device =
        host_device_open(&(struct host_device_options){.shared_bytes = shared_bytes}, NULL);
    must(kern_cuda_open(&b, device, &options, &why), &why);
}

/** The product of a weight of this type, after its trial: decode, split, finish; or exact. */
static void linear(const char *scene, enum gguf_type type, size_t n_rows, size_t n_cols,
                   size_t n_tokens)
{
    struct status_why why;
    struct kern_weight w = weight_of(type, n_rows, n_cols);
    struct kern_linear op = {.weight = &w,
                             .x = floats(n_tokens * n_cols),
                             .y = floats(n_tokens * n_rows),
                             .y_stride = n_rows,
                             .n_tokens = n_tokens};
    must(kern_preload(b, &w, &why), &why);
    fflush(out);
    FILE *nowhere = checked(fopen("/dev/null", "w"));
    run_ptx_report(nowhere, "trial");
    fclose(nowhere);
    must(kern_linear(b, &op, &why), &why);
    look(op.y);
    run_ptx_report(out, scene);
    free((void *)(uintptr_t)w.data);
}

/** The rotation of heads of 128 in rows of WIDTH; positions: [n], written. */
static struct kern_rope rope_of(float *x, int32_t *positions, size_t n)
{
    for (size_t i = 0; i < n; i++)
        positions[i] = (int32_t)i;
    return (struct kern_rope){.x = x,
                              .stride = WIDTH,
                              .n_tokens = n,
                              .n_heads = WIDTH / 128,
                              .head_size = 128,
                              .n_pairs = 64,
                              .split_halves = true,
                              .angles = floats(n * 128),
                              .n_positions = n,
                              .positions = positions};
}

/** A norm, a product of its results, and the rotation of that, after the product's trial. */
static void waiting(const char *scene)
{
    struct status_why why;
    struct kern_weight gain = weight_of(GGUF_TYPE_F32, 1, WIDTH);
    struct kern_weight w = weight_of(GGUF_TYPE_F32, NARROW, WIDTH);
    struct kern_norm norm = {.gain = &gain,
                             .eps = 1e-5f,
                             .x = floats(SCORED * WIDTH),
                             .y = floats(SCORED * WIDTH),
                             .n_rows = SCORED,
                             .width = WIDTH,
                             .n_groups = 1};
    const struct kern_linear op = {.weight = &w,
                                   .x = norm.y,
                                   .y = floats(SCORED * NARROW),
                                   .y_stride = NARROW,
                                   .n_tokens = SCORED};
    must(kern_norm(b, &norm, &why), &why);
    must(kern_linear(b, &op, &why), &why);
    run_ptx_report(out, scene);
    free((void *)(uintptr_t)gain.data);
    free((void *)(uintptr_t)w.data);
}

/** A product with many outputs and its rotation. */
static void rotated(void)
{
    struct status_why why;
    struct kern_weight w = weight_of(GGUF_TYPE_F32, WIDTH, NARROW);
    const struct kern_linear op = {.weight = &w,
                                   .x = floats(SCORED * NARROW),
                                   .y = floats(SCORED * WIDTH),
                                   .y_stride = WIDTH,
                                   .n_tokens = SCORED};
    int32_t positions[SCORED];
    const struct kern_rope rope = rope_of(op.y, positions, SCORED);
    must(kern_linear(b, &op, &why), &why);
    must(kern_rope(b, &rope, &why), &why);
    run_ptx_report(out, "rotated");
    free((void *)(uintptr_t)w.data);
}

/** A feed-forward's products and what is between them, after their trials. */
static void gated(const char *scene)
{
    struct status_why why;
    struct kern_weight gate = weight_of(GGUF_TYPE_F32, WIDTH, NARROW);
    struct kern_weight down = weight_of(GGUF_TYPE_F32, NARROW, WIDTH);
    float *x = floats(SCORED * NARROW), *y = floats(SCORED * NARROW);
    float *inner = floats(SCORED * WIDTH), *up = floats(SCORED * WIDTH);
    struct kern_linear op = {.weight = &gate,
                             .x = x,
                             .y = inner,
                             .y_stride = WIDTH,
                             .n_tokens = SCORED,
                             .passing = true};
    must(kern_linear(b, &op, &why), &why);
    op.y = up;
    op.same_x = true;
    must(kern_linear(b, &op, &why), &why);
    const struct kern_activate activate = {.gate = inner, .up = up, .n = SCORED * WIDTH};
    must(kern_activate(b, &activate, &why), &why);
    op = (struct kern_linear){
        .weight = &down, .x = inner, .y = y, .y_stride = NARROW, .n_tokens = SCORED};
    must(kern_linear(b, &op, &why), &why);
    run_ptx_report(out, scene);
    free((void *)(uintptr_t)gate.data);
    free((void *)(uintptr_t)down.data);
}

static void rows(void)
{
    struct status_why why;
    struct kern_weight gain = weight_of(GGUF_TYPE_F32, 1, WIDTH);
    float *x = floats(TOKENS * WIDTH), *y = floats(TOKENS * WIDTH);
    struct kern_norm norm = {.gain = &gain,
                             .eps = 1e-5f,
                             .x = x,
                             .y = y,
                             .n_rows = TOKENS,
                             .width = WIDTH,
                             .n_groups = 1};
    must(kern_norm(b, &norm, &why), &why); /* the first brings the gain */
    look(y);
    run_ptx_report(out, "first norm");
    must(kern_norm(b, &norm, &why), &why);
    int32_t positions[TOKENS];
    const struct kern_rope rope = rope_of(x, positions, TOKENS);
    must(kern_rope(b, &rope, &why), &why);
    struct kern_activate gate = {.gate = y, .up = x, .n = TOKENS * WIDTH};
    must(kern_activate(b, &gate, &why), &why);
    run_ptx_report(out, "rows");
}

/** A window under two heads that share keys and values. */
static void attention(const char *scene, size_t head_size)
{
    struct status_why why;
    const struct kern_query_range range = {.n_q = CONTEXT};
    struct kern_attention op = {.q = floats(2 * CONTEXT * head_size),
                                .k = floats(CONTEXT * head_size),
                                .v = floats(CONTEXT * head_size),
                                .out = floats(2 * CONTEXT * head_size),
                                .n_heads = 2,
                                .n_kv_heads = 1,
                                .head_size = head_size,
                                .value_size = head_size,
                                .scale = 0.09f,
                                .ranges = &range,
                                .n_ranges = 1};
    must(kern_attention(b, &op, &why), &why);
    run_ptx_report(out, scene);
}

/** With wide rows only the targets' products are representative, with narrow ones all else. */
static void score(const char *scene, size_t n_heads, size_t n_vocab, size_t width)
{
    struct status_why why;
    struct kern_weight w = weight_of(GGUF_TYPE_F32, n_vocab, width);
    struct kern_head heads[2] = {{.hidden = floats(SCORED * width), .matrix = &w},
                                 {.hidden = floats(SCORED * width), .matrix = &w}};
    struct kern_target targets[SCORED];
    for (uint32_t i = 0; i < SCORED; i++)
        targets[i] = (struct kern_target){i, (int32_t)rng_below(&rng, n_vocab)};
    struct kern_score op = {.n_heads = n_heads,
                            .heads = heads,
                            .n_rows = SCORED,
                            .n_targets = SCORED,
                            .targets = targets,
                            .rows = checked(calloc(2 * SCORED, sizeof *op.rows)),
                            .target_scores = checked(calloc(2 * SCORED, sizeof *op.target_scores)),
                            .want_js = n_heads > 1};
    op.pairs = n_heads > 1 ? checked(calloc(2 * SCORED, sizeof *op.pairs)) : NULL;
    must(kern_score(b, &op, &why), &why);
    run_ptx_report(out, scene);
    struct kern_record record = {
        .head = heads[0], .n_rows = SCORED, .stride = kern_record_codes(n_vocab)};
    record.records = checked(calloc(SCORED * record.stride, sizeof *record.records));
    if (n_heads == 1)
        must(kern_record(b, &record, &why), &why);
    run_ptx_report(out, "record");
    free(op.rows);
    free(op.target_scores);
    free(op.pairs);
    free(record.records);
    free((void *)(uintptr_t)w.data);
}

int main(int argc, char **argv)
{
    static const enum gguf_type types[] = {GGUF_TYPE_F16, GGUF_TYPE_Q8_0, GGUF_TYPE_Q6_K,
                                           GGUF_TYPE_Q4_K, GGUF_TYPE_IQ4_XS};
    out = argc == 2 ? fopen(argv[1], "w") : NULL;
    if (!out)
        return 2;
    run_ptx_count();
    const enum kern_precision precisions[] = {KERN_PRECISION_FAST, KERN_PRECISION_HIGH,
                                              KERN_PRECISION_EXACT};
    static const char *const names[] = {"linear fast", "linear high", "linear exact"};
    rng = rng_open(1, 0);
    for (size_t i = 0; i < 3; i++) {
        backend_open(precisions[i], KERN_CUDA_INTEGERS_NEVER, LARGE);
        for (size_t k = 0; k < sizeof types / sizeof *types; k++)
            linear(names[i], types[k], ROWS, WIDTH,
                   precisions[i] == KERN_PRECISION_EXACT ? 1 : SCORED);
        attention("attention", 64);
        attention("attention", 128);
        if (precisions[i] != KERN_PRECISION_EXACT)
            gated(precisions[i] == KERN_PRECISION_FAST ? "gated fast" : "gated high");
        if (precisions[i] != KERN_PRECISION_EXACT)
            waiting(precisions[i] == KERN_PRECISION_FAST ? "waiting fast" : "waiting high");
        if (precisions[i] == KERN_PRECISION_FAST) {
            rows();
            rotated();
            linear("finish", GGUF_TYPE_F32, 4096, 64, SCORED);
            score("score", 1, VOCAB, 64);
            score("pair", 2, VOCAB, 64);
            score("target", 1, 128, 2048);
        }
        if (precisions[i] == KERN_PRECISION_EXACT)
            linear("exact", GGUF_TYPE_F32, 128, 2048, 128);
    }
    backend_open(KERN_PRECISION_HIGH, KERN_CUDA_INTEGERS_NEVER, SMALL);
    attention("little shared memory", 128);
    backend_open(KERN_PRECISION_HIGH, KERN_CUDA_INTEGERS_ALWAYS, LARGE);
    for (size_t k = 1; k < sizeof types / sizeof *types; k++) /* a block's tile */
        linear("linear int16", types[k], 128, 1024, 128);
    return fclose(out) != 0;
}

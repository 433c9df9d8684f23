/**
 * How fast the kernels are that are not matrix products, by ISA, on one thread with data in the
 * first cache levels. An element is a float of the row for the row kernels, a score for the
 * softmax, a logit for the reductions over the vocabulary. Each variant's results are compared
 * with the scalar ones first.
 *
 * The last column sets the time against the product that feeds the kernel, at 50 GFLOP/s per
 * core: a logit costs 2 * 2048 operations, a score 4 * 64, a feed-forward element 6 * 2048, an
 * element of the residual 14 * 2048 or so per layer.
 *
 * usage: bench_ops [-s SECONDS_PER_LINE]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "kernels/cpu/isa.h"
#include "kernels/numerics/ops.h"
#include "tests/harness/compare.h"
#include "tests/harness/rng.h"

enum { WIDTH = 2048, PAIRS = 32, KEYS = 64, ROWS = 256 };

/** What the kernels read and write; `out` is refreshed from `in` where it is worked on in place. */
struct work {
    const struct kern_ops *ops;
    float in[ROWS * KERN_LANES], other[ROWS * KERN_LANES], out[ROWS * KERN_LANES];
    float angles[2 * PAIRS];
    struct kern_score_lanes score;
    struct kern_block_exps exps;
    struct kern_pair_lanes pair;
    struct kern_top_lanes top;
    struct kern_js_lanes js;
    struct kern_rank_lanes rank;
    uint16_t codes[ROWS * KERN_LANES]; /* a row per lane */
};

static void run_norm(struct work *w, bool center)
{
    w->ops->norm(&(struct kern_norm_row){
        .y = w->out, .x = w->in, .gain = w->other, .n = WIDTH, .eps = 1e-5f, .center = center});
}

static void run_rmsnorm(void *context)
{
    run_norm(context, false);
}

static void run_layernorm(void *context)
{
    run_norm(context, true);
}

static void run_rope_adjacent(void *context)
{
    struct work *w = context;
    w->ops->rope_adjacent(w->out, w->angles, PAIRS);
}

static void run_rope_halves(void *context)
{
    struct work *w = context;
    w->ops->rope_halves(w->out, w->angles, PAIRS);
}

static void run_activation(struct work *w, enum kern_activation kind)
{
    memcpy(w->out, w->in, WIDTH * sizeof(float));
    static const struct kern_curve curve = {7, 0.8, 0.9, 0.5, -1e-6};
    w->ops->activate(kind, &curve, w->out, w->other, WIDTH);
}

static void run_silu(void *context)
{
    run_activation(context, KERN_SILU);
}

static void run_gelu(void *context)
{
    run_activation(context, KERN_GELU);
}

static void run_swiglu_oai(void *context)
{
    run_activation(context, KERN_SWIGLU_OAI);
}

static void run_add_scaled(void *context)
{
    struct work *w = context;
    w->ops->add_scaled(w->out, w->in, 0.5f, WIDTH);
}

/** Further keys of runs of 4, which overlap: 8 terms, each row of u and z being 4 products. */
static void run_compress(void *context)
{
    enum { TERMS = 8, SIZE = ROWS * KERN_LANES / TERMS };
    static const uint32_t rows[TERMS] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct work *w = context;
    struct kern_terms terms = {.u = w->in,
                               .z = w->other,
                               .stride = SIZE,
                               .rows = rows,
                               .n_terms = TERMS,
                               .n_early = TERMS};
    w->ops->compress(w->out, &terms, SIZE);
}

static void run_soft_cap(void *context)
{
    struct work *w = context;
    memcpy(w->out, w->in, KEYS * KERN_LANES * sizeof(float));
    w->ops->soft_cap(w->out, KEYS * KERN_LANES, 0.5f, 30.0f);
}

static void softmax(struct work *w, int32_t visible)
{
    float max[KERN_LANES], sum[KERN_LANES], rescale[KERN_LANES];
    int32_t begin[KERN_LANES], end[KERN_LANES];
    for (size_t i = 0; i < KERN_LANES; i++) {
        max[i] = -INFINITY;
        sum[i] = 0.0f;
        begin[i] = 0;
        end[i] = visible;
    }
    memcpy(w->out, w->in, KEYS * KERN_LANES * sizeof(float));
    struct kern_softmax_block block = {w->out, KERN_LANES, KEYS, 0.125f, begin,
                                       end,    max,        sum,  rescale};
    w->ops->softmax_block(&block);
}

static void run_softmax(void *context)
{
    softmax(context, KEYS);
}

static void run_softmax_masked(void *context)
{
    softmax(context, KEYS - 1);
}

static struct kern_logit_tile tile_of(const float *logits)
{
    return (struct kern_logit_tile){logits, KERN_LANES, ROWS, 0};
}

static void run_score_update(void *context)
{
    struct work *w = context;
    struct kern_logit_tile tile = tile_of(w->in);
    w->ops->score_update(&w->score, &tile, NULL);
}

static struct kern_logit_tile block_of(const float *logits, size_t row)
{
    return (struct kern_logit_tile){logits + row * KERN_LANES, KERN_LANES, KERN_SCORE_BLOCK,
                                    (int32_t)row};
}

static void run_score_blocks(void *context)
{
    struct work *w = context;
    for (size_t row = 0; row < ROWS; row += KERN_SCORE_BLOCK) {
        struct kern_logit_tile block = block_of(w->in, row);
        w->ops->score_update(&w->score, &block, &w->exps);
    }
}

static void run_score_pair(void *context)
{
    struct work *w = context;
    for (size_t row = 0; row < ROWS; row += KERN_SCORE_BLOCK) {
        struct kern_logit_tile base = block_of(w->in, row), other = block_of(w->other, row);
        struct kern_pair_block block = {&base, &other, &w->exps, &w->exps, -16.0};
        w->ops->score_pair(&w->pair, &block);
    }
}

static void run_score_top(void *context)
{
    struct work *w = context;
    struct kern_logit_tile tile = tile_of(w->in);
    w->ops->score_top(&w->top, &tile);
}

static void run_score_js(void *context)
{
    struct work *w = context;
    struct kern_logit_tile base = tile_of(w->in), other = tile_of(w->other);
    w->ops->score_js(&w->js, &base, &other);
}

static void run_decode_codes(void *context)
{
    struct work *w = context;
    struct kern_code_rows rows;
    for (size_t lane = 0; lane < KERN_LANES; lane++) {
        rows.codes[lane] = w->codes + lane * ROWS;
        rows.scale[lane] = 16.0f / 65535.0f;
        rows.floor[lane] = -18.0f;
    }
    w->ops->decode_codes(&rows, &(struct kern_decoded){w->out, KERN_LANES, ROWS, 0});
}

static void run_encode_codes(void *context)
{
    struct work *w = context;
    struct kern_encoded_rows rows = {.n_lanes = KERN_LANES};
    for (size_t lane = 0; lane < KERN_LANES; lane++) {
        rows.codes[lane] = w->codes + lane * ROWS;
        rows.scale[lane] = 16.0f / 65535.0f;
        rows.floor[lane] = -5.0f;
    }
    struct kern_logit_tile tile = tile_of(w->in);
    w->ops->encode_codes(&rows, &tile);
}

static void run_score_rank(void *context)
{
    struct work *w = context;
    struct kern_logit_tile tile = tile_of(w->in);
    w->ops->score_rank(&w->rank, &tile);
}

static const struct {
    const char *name;
    bench_fn *run;
    size_t n_elements;
    double flops_beside; /* of the product that feeds one element; 0: none in particular */
} lines[] = {
    {"rmsnorm", run_rmsnorm, WIDTH, 14.0 * WIDTH},
    {"layernorm", run_layernorm, WIDTH, 0},
    {"rope adjacent", run_rope_adjacent, 2 * PAIRS, 2.0 * WIDTH},
    {"rope halves", run_rope_halves, 2 * PAIRS, 2.0 * WIDTH},
    {"silu", run_silu, WIDTH, 6.0 * WIDTH},
    {"gelu", run_gelu, WIDTH, 6.0 * WIDTH},
    {"swiglu_oai", run_swiglu_oai, WIDTH, 6.0 * WIDTH},
    {"add_scaled", run_add_scaled, WIDTH, 0.0},
    {"compress", run_compress, ROWS *KERN_LANES / 8, 32.0 * WIDTH},
    {"soft cap", run_soft_cap, KEYS *KERN_LANES, 4.0 * 2 * PAIRS},
    {"softmax", run_softmax, KEYS *KERN_LANES, 4.0 * 2 * PAIRS},
    {"softmax masked", run_softmax_masked, KEYS *KERN_LANES, 4.0 * 2 * PAIRS},
    {"score update", run_score_update, ROWS *KERN_LANES, 2.0 * WIDTH},
    {"score blocks", run_score_blocks, ROWS *KERN_LANES, 2.0 * WIDTH},
    {"score pair", run_score_pair, ROWS *KERN_LANES, 2.0 * WIDTH},
    {"score top", run_score_top, ROWS *KERN_LANES, 2.0 * WIDTH},
    {"score js", run_score_js, ROWS *KERN_LANES, 2.0 * WIDTH},
    {"score rank", run_score_rank, ROWS *KERN_LANES, 2.0 * WIDTH},
    {"decode codes", run_decode_codes, ROWS *KERN_LANES, 2.0 * WIDTH},
    {"encode codes", run_encode_codes, ROWS *KERN_LANES, 2.0 * WIDTH},
};
enum { N_LINES = sizeof lines / sizeof lines[0] };

static void work_reset(struct work *w, const struct kern_ops *ops)
{
    w->ops = ops;
    struct rng r = rng_open(1, 1);
    for (size_t i = 0; i < ROWS * KERN_LANES; i++) {
        w->in[i] = 3.0f * rng_normal(&r);
        w->other[i] = w->in[i] + 0.1f * rng_normal(&r);
    }
    memcpy(w->out, w->in, sizeof w->out);
    for (size_t i = 0; i < PAIRS; i++) { /* lengths stay as they are, however often rotated */
        w->angles[2 * i] = cosf((float)i);
        w->angles[2 * i + 1] = sinf((float)i);
    }
    kern_pair_lanes_init(&w->pair);
    kern_rank_lanes_init(&w->rank);
    kern_top_lanes_init(&w->top);
    for (size_t i = 0; i < KERN_LANES; i++) {
        w->rank.logit[i] = 1.0f;
        w->js.base_shift[i] = w->js.other_shift[i] = 8.0;
        w->js.sum[i] = w->js.distance[i] = 0.0;
    }
    for (size_t i = 0; i < ROWS * KERN_LANES; i++)
        w->codes[i] = (uint16_t)(i * 4099);
    kern_score_lanes_init(&w->score);
    run_score_blocks(w); /* exponentials for the pair */
    kern_score_lanes_init(&w->score);
}

/** Whether the kernel leaves the bits that the scalar one does. */
static bool agrees(bench_fn *run, const struct kern_ops *ops, struct work *w, struct work *expected)
{
    work_reset(w, ops);
    work_reset(expected, &kern_ops_scalar);
    run(w);
    run(expected);
    return compare_bits(w->out, expected->out, ROWS * KERN_LANES) == ROWS * KERN_LANES &&
           memcmp(&w->score, &expected->score, sizeof w->score) == 0 &&
           memcmp(&w->exps, &expected->exps, sizeof w->exps) == 0 &&
           memcmp(&w->pair, &expected->pair, sizeof w->pair) == 0 &&
           memcmp(&w->top, &expected->top, sizeof w->top) == 0 &&
           memcmp(&w->js, &expected->js, sizeof w->js) == 0 &&
           memcmp(w->codes, expected->codes, sizeof w->codes) == 0 &&
           memcmp(w->rank.above, expected->rank.above, sizeof w->rank.above) == 0;
}

int main(int argc, char **argv)
{
    double seconds = 0.1;
    for (int option; (option = getopt(argc, argv, "s:")) != -1;) {
        if (option != 's' || (seconds = strtod(optarg, NULL)) <= 0) {
            fprintf(stderr, "usage: bench_ops [-s SECONDS_PER_LINE]\n");
            return 2;
        }
    }
    static struct work work, expected;
    static const struct kern_ops *const variants[KERN_ISA_COUNT] = {
        [KERN_ISA_SCALAR] = &kern_ops_scalar,
        [KERN_ISA_AVX2] = &kern_ops_avx2,
        [KERN_ISA_AVX512] = &kern_ops_avx512,
    };
    bench_print_machine();
    printf("%-15s %-7s %11s %11s %7s %11s\n", "kernel", "isa", "ns/element", "best", "spread",
           "of product");
    for (size_t i = 0; i < N_LINES; i++) {
        for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
            const char *name = kern_isa_name((enum kern_isa)isa);
            if (!agrees(lines[i].run, variants[isa], &work, &expected)) {
                printf("%-15s %-7s WRONG\n", lines[i].name, name);
                return EXIT_FAILURE;
            }
            struct bench_time t = bench_measure(lines[i].run, &work, BENCH_THREAD, seconds);
            double ns = 1e9 * t.median / (double)lines[i].n_elements;
            printf("%-15s %-7s %11.3f %11.3f %6.0f%%", lines[i].name, name, ns,
                   1e9 * t.fastest / (double)lines[i].n_elements, 100 * t.spread);
            if (lines[i].flops_beside > 0) {
                printf(" %10.2f%%", 100 * ns * 50.0 / lines[i].flops_beside);
            }
            printf("\n");
            fflush(stdout);
        }
    }
    return EXIT_SUCCESS;
}

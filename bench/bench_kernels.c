/**
 * How fast each decoder is, by type and ISA: one thread, 64 packed rows of 4096 weights decoded
 * one after the other into the same 16 KiB of float32, as a product does it.
 * Gweight/s counts elements, GB/s the packed bytes read; the result is compared with the scalar
 * decoder first. Times are processor time of the thread: the median, the best, and the
 * spread between the 10th and the 90th percentile.
 *
 * usage: bench_kernels [-s SECONDS_PER_LINE] [TYPE...]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "bench/bench.h"
#include "kernels/cpu/table.h"
#include "tests/harness/compare.h"
#include "tests/harness/rng.h"

enum { N_ROWS = 64, N_COLS = 4096 };

/** One decoder and what it works on. */
struct decode_work {
    kern_decode_fn *decode;
    const uint8_t *blocks; /* N_ROWS rows */
    size_t row_bytes;
    float *y; /* N_COLS floats */
};

static void decode_rows(void *context)
{
    const struct decode_work *work = context;
    for (size_t row = 0; row < N_ROWS; row++)
        work->decode(work->blocks + row * work->row_bytes, work->y, N_COLS);
}

/** Whether every row has the scalar decoder's bits. */
static bool rows_agree(const struct decode_work *work, kern_decode_fn *scalar, float *expected)
{
    for (size_t row = 0; row < N_ROWS; row++) {
        const uint8_t *blocks = work->blocks + row * work->row_bytes;
        work->decode(blocks, work->y, N_COLS);
        scalar(blocks, expected, N_COLS);
        if (compare_bits(work->y, expected, N_COLS) < N_COLS)
            return false;
    }
    return true;
}

/** The type's packed rows: random bits. */
static uint8_t *random_rows(enum gguf_type type, size_t row_bytes)
{
    uint8_t *blocks = aligned_alloc(64, N_ROWS * row_bytes);
    if (blocks) {
        struct rng r = rng_open(1, type);
        rng_bytes(&r, blocks, N_ROWS * row_bytes);
    }
    return blocks;
}

/** Check and time all variants of a type; false if one is wrong. */
static bool bench_type(const struct gguf_type_info *type, double seconds)
{
    static _Alignas(64) float y[N_COLS], expected[N_COLS];
    size_t row_bytes = (size_t)N_COLS / type->block_elems * type->block_bytes;
    uint8_t *blocks = random_rows(type->type, row_bytes);
    struct decode_work works[KERN_ISA_COUNT];
    struct bench_case cases[KERN_ISA_COUNT];
    const char *names[KERN_ISA_COUNT];
    size_t n_cases = 0;
    bool right = blocks != NULL;
    for (int isa = 0; isa <= (int)kern_isa_detect() && right; isa++) {
        struct kern_table table;
        kern_table_build(&table, (enum kern_isa)isa);
        kern_decode_fn *decode = table.decode[type->type];
        if (n_cases > 0 && decode == works[n_cases - 1].decode)
            continue; /* inherited */
        struct decode_work *work = &works[n_cases];
        *work = (struct decode_work){decode, blocks, row_bytes, y};
        names[n_cases] = kern_isa_name((enum kern_isa)isa);
        cases[n_cases++] = (struct bench_case){.run = decode_rows, .context = work};
        right = rows_agree(work, works[0].decode, expected);
        if (!right)
            printf("%-8s %-7s WRONG\n", type->name, kern_isa_name((enum kern_isa)isa));
    }
    if (right)
        bench_compare(cases, n_cases, BENCH_THREAD, seconds);
    for (size_t i = 0; i < n_cases && right; i++) {
        const struct bench_time *t = &cases[i].time;
        const double n_weights = 1e-9 * N_ROWS * N_COLS;
        printf("%-8s %-7s %9.2f %9.2f %9.2f %6.0f%%\n", type->name, names[i], n_weights / t->median,
               n_weights / t->fastest, 1e-9 * (double)(N_ROWS * row_bytes) / t->median,
               100 * t->spread);
    }
    fflush(stdout);
    free(blocks);
    return right;
}

static bool wanted(const char *name, char *const *names, int n_names)
{
    for (int i = 0; i < n_names; i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return n_names == 0;
}

int main(int argc, char **argv)
{
    double seconds = 0.1;
    for (int option; (option = getopt(argc, argv, "s:")) != -1;) {
        if (option != 's' || (seconds = strtod(optarg, NULL)) <= 0) {
            fprintf(stderr, "usage: bench_kernels [-s SECONDS_PER_LINE] [TYPE...]\n");
            return 2;
        }
    }
    bench_print_machine();
    printf("%-8s %-7s %9s %9s %9s %7s\n", "type", "isa", "Gweight/s", "best", "GB/s", "spread");
    bool right = true;
    const struct gguf_type_info *type;
    for (size_t i = 0; (type = gguf_type_at(i)); i++)
        if (wanted(type->name, argv + optind, argc - optind))
            right = bench_type(type, seconds) && right;
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

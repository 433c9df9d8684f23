/**
 * How fast each decoder is, by type and ISA: one thread, 64 packed rows of 4096 weights decoded
 * one after the other into the same 16 KiB of float32, as a product in float32 does it; and
 * then split and packed as bfloat16 triples want them. Where the best ISA has a way straight to
 * integers of 8 and 16 bits, that and the way by a neutral copy. Gweight/s counts elements, GB/s
 * the bytes read; the result is compared with the scalar decoder first, on random bits. Times are
 * processor time of the thread: the median, the best, and the spread between the 10th and the 90th
 * percentile.
 *
 * usage: bench_kernels [-s SECONDS_PER_LINE] [TYPE...]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "bench/bench.h"
#include "kernels/cpu/kernels.h"
#include "kernels/quant/rows.h"
#include "tests/harness/compare.h"
#include "tests/harness/random_blocks.h"
#include "tests/harness/rng.h"
#include "tests/harness/types.h"

enum { N_ROWS = 64, N_COLS = 4096, SLAB = 256 };

/** One decoder and what it works on. */
struct decode_work {
    kern_decode_fn *decode;
    struct kern_rows rows; /* N_ROWS */
    float *y;              /* N_COLS floats */
    kern_bf16_pack_row_fn *pack;
    uint16_t *tile; /* N_ROWS packed rows of a slab */
    const struct kern_integers *format;
    kern_straight_fn *straight;
    kern_to_int8_fn *to_int8; /* or NULL */
    kern_to_int16_fn *to_int16;
};

static void decode_rows(void *context)
{
    const struct decode_work *work = context;
    for (size_t row = 0; row < N_ROWS; row++)
        kern_rows_decode(&work->rows, work->decode, row, 0, N_COLS, work->y);
}

/** A slab of columns at a time, as a product in bfloat16 does it. */
static void decode_and_pack_rows(void *context)
{
    const struct decode_work *work = context;
    size_t group = kern_bf16_group_size(SLAB, 2);
    for (size_t slab = 0; slab < N_COLS / SLAB; slab++) {
        for (size_t row = 0; row < N_ROWS; row++) {
            kern_rows_decode(&work->rows, work->decode, row, slab * SLAB, SLAB, work->y);
            work->pack(work->y, SLAB, 2, row % KERN_BF16_GROUP,
                       work->tile + row / KERN_BF16_GROUP * group);
        }
    }
}

/** What a row becomes as integers. */
struct integer_row {
    int8_t integers[N_COLS * sizeof(int16_t)];
    float scales[N_COLS / 16], mins[N_COLS / 16];
};
static _Alignas(64) struct integer_row by_copy, by_straight;

static const void *row_blocks(const struct decode_work *work, size_t row)
{
    return (const char *)work->rows.data + row * work->rows.row_bytes;
}

static void copy_row(const struct decode_work *work, size_t row)
{
    static _Alignas(64) float copy[N_COLS];
    void *integers = by_copy.integers;
    const void *blocks = row_blocks(work, row);
    kern_integers_scales(work->format, blocks, N_COLS, by_copy.scales, by_copy.mins);
    kern_integers_neutral(work->format, blocks, N_COLS, copy);
    work->decode(copy, work->y, N_COLS);
    if (work->to_int8)
        work->to_int8(work->y, N_COLS, integers);
    else
        work->to_int16(work->y, N_COLS, integers);
}

static void copy_rows(void *context)
{
    for (size_t row = 0; row < N_ROWS; row++)
        copy_row(context, row);
}

static void straight_row(const struct decode_work *work, size_t row)
{
    work->straight(row_blocks(work, row), N_COLS, by_straight.integers, by_straight.scales,
                   by_straight.mins);
}

static void straight_rows(void *context)
{
    for (size_t row = 0; row < N_ROWS; row++)
        straight_row(context, row);
}

/** Whether both ways give every row the same integers; tests compare scales and minima, too. */
static bool integers_agree(const struct decode_work *work)
{
    for (size_t row = 0; row < N_ROWS; row++) {
        copy_row(work, row);
        straight_row(work, row);
        if (memcmp(by_copy.integers, by_straight.integers, sizeof by_copy.integers) != 0)
            return false;
    }
    return true;
}

/** Whether every row has the scalar decoder's bits. */
static bool rows_agree(const struct decode_work *work, kern_decode_fn *scalar, float *expected)
{
    for (size_t row = 0; row < N_ROWS; row++) {
        kern_rows_decode(&work->rows, work->decode, row, 0, N_COLS, work->y);
        kern_rows_decode(&work->rows, scalar, row, 0, N_COLS, expected);
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

/** What models hold: random bits have infinities and denormals, which cost time of their own. */
static void fill_with_normal(uint8_t *blocks, enum gguf_type type)
{
    struct random_blocks pool;
    if (!random_blocks_open(&pool, type, 0.02, 1 << 16))
        return;
    random_blocks_draw(&pool, blocks, N_ROWS, N_COLS);
    random_blocks_close(&pool);
}

enum { MAX_LINES = KERN_ISA_COUNT + 5 };

/** The variants of a type. */
struct lines {
    struct decode_work works[MAX_LINES];
    struct bench_case cases[MAX_LINES];
    const char *names[MAX_LINES];
    size_t n;
};

static void add_line(struct lines *lines, const char *name, bench_fn *run,
                     const struct decode_work *work)
{
    size_t i = lines->n++;
    lines->works[i] = *work;
    lines->names[i] = name;
    lines->cases[i] = (struct bench_case){.run = run, .context = &lines->works[i]};
}

/** Check and collect both ways to integers, where the best ISA has two; false: they differ. */
static bool collect_integers(struct lines *lines, enum gguf_type type, struct decode_work work)
{
    struct kern_kernels table;
    kern_kernels_build(&table, kern_isa_detect());
    for (unsigned bits = 8; bits <= 16; bits += 8) {
        work.format = kern_integers_find(type, bits);
        work.straight = (bits == 8 ? table.straight8 : table.straight16)[type];
        work.to_int8 = bits == 8 ? table.to_int8 : NULL;
        work.to_int16 = table.to_int16;
        if (!work.straight)
            continue;
        if (!integers_agree(&work))
            return false;
        add_line(lines, bits == 8 ? "8, copy" : "16, copy", copy_rows, &work);
        add_line(lines, bits == 8 ? "8 bits" : "16 bits", straight_rows, &work);
    }
    return true;
}

/** Check and collect the decoders of all ISAs, and the best one with packing; false: one errs. */
static bool collect(struct lines *lines, const struct gguf_type_info *type, struct decode_work work)
{
    static _Alignas(64) float y[N_COLS], expected[N_COLS];
    static _Alignas(64) uint16_t tile[2 * N_ROWS * SLAB];
    work.y = y;
    work.tile = tile;
    for (int isa = 0; isa <= (int)kern_isa_detect(); isa++) {
        struct kern_kernels table;
        kern_kernels_build(&table, (enum kern_isa)isa);
        bool inherited = work.decode == table.decode[type->type];
        work.decode = table.decode[type->type];
        work.pack = table.bf16_pack_row;
        if (inherited)
            continue;
        if (!rows_agree(&work, lines->n ? lines->works[0].decode : work.decode, expected)) {
            printf("%-8s %-10s WRONG\n", type->name, kern_isa_name((enum kern_isa)isa));
            return false;
        }
        add_line(lines, kern_isa_name((enum kern_isa)isa), decode_rows, &work);
    }
    if (kern_isa_detect() >= KERN_ISA_AVX512)
        add_line(lines, "and packed", decode_and_pack_rows, &work);
    if (!collect_integers(lines, type->type, work)) {
        printf("%-8s %-10s WRONG\n", type->name, "integers");
        return false;
    }
    return true;
}

/** Check and time all variants of a type; false if one is wrong. */
static bool bench_type(const struct gguf_type_info *type, double seconds)
{
    size_t row_bytes = random_blocks_row_bytes(type->type, N_COLS);
    uint8_t *blocks = random_rows(type->type, row_bytes);
    struct lines lines = {.n = 0};
    bool right =
        blocks && collect(&lines, type,
                          (struct decode_work){.rows = {type->type, blocks, row_bytes, NULL,
                                                        random_blocks_scales(type->type, 0.02)}});
    if (right)
        fill_with_normal(blocks, type->type);
    if (right)
        bench_compare(lines.cases, lines.n, BENCH_THREAD, seconds);
    for (size_t i = 0; i < lines.n && right; i++) {
        const struct bench_time *t = &lines.cases[i].time;
        const double n_weights = 1e-9 * N_ROWS * N_COLS;
        printf("%-8s %-10s %9.2f %9.2f %9.2f %6.0f%%\n", type->name, lines.names[i],
               n_weights / t->median, n_weights / t->fastest,
               1e-9 * (double)(N_ROWS * row_bytes) / t->median, 100 * t->spread);
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
    for (size_t i = 0; (type = type_at(i)); i++)
        if (wanted(type->name, argv + optind, argc - optind))
            right = bench_type(type, seconds) && right;
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}

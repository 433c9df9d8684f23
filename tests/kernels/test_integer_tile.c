/*
 * Products in integers with activations of 16 and 8 bits, the latter as bytes and as words
 * (kernels/cpu/gemm/rounded.h): the scalar kernels against the definition in long double, those of
 * every ISA, with and without VNNI where the processor has it, against the scalar ones to the bit.
 * Buffers end at inaccessible pages.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "kernels/quant/integers.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/kernels/rounded_kinds.h"

/** All runs, with minima and without, and largest integers of 4, 15, 31, 43, 62, 127 and 128: how
 * many products fit 16 bits depends on them. */
static const enum gguf_type types[] = {
    GGUF_TYPE_Q8_0,   GGUF_TYPE_Q4_K,  GGUF_TYPE_Q5_K,  GGUF_TYPE_IQ3_XXS, GGUF_TYPE_Q4_0,
    GGUF_TYPE_Q6_K,   GGUF_TYPE_IQ2_S, GGUF_TYPE_Q3_K,  GGUF_TYPE_Q2_K,    GGUF_TYPE_IQ3_S,
    GGUF_TYPE_IQ4_NL, GGUF_TYPE_IQ4_K, GGUF_TYPE_IQ4_XS};
enum { N_TYPES = sizeof types / sizeof types[0] };

enum operands { OPERANDS_RANDOM, OPERANDS_RARE, OPERANDS_WORST, OPERANDS };

/** One call, and what it reads and writes. */
struct product {
    struct guard w, x, own_x, before, expected, found;
    struct kern_fma_tile op;
};

/** The integers of a row, and of bytes where its sums begin. */
static void put_integers(float *row, const int *integers, size_t n_k, size_t run)
{
    for (size_t i = 0; i < n_k / run && kind->bytes; i++) {
        int32_t begin = 0;
        for (size_t k = i * run; k < (i + 1) * run; k++)
            begin -= KERN_INT8_OFFSET * integers[k];
        memcpy(row + n_k / 4 + i, &begin, sizeof begin);
    }
    for (size_t k = 0; k < n_k; k++) {
        if (kind->bytes)
            ((int8_t *)(void *)row)[k] = (int8_t)integers[k];
        else
            ((int16_t *)(void *)row)[k] = (int16_t)integers[k];
    }
}

/** Each integer is in -largest .. largest; 128 only where sub-scales are in integers. */
static int draw_integer(struct rng *r, const struct kern_integers *format)
{
    int integer = (int)rng_below(r, 2 * (size_t)format->largest + 1) - format->largest;
    return format->run < 64 && integer == KERN_INTEGER_LIMIT ? integer - 1 : integer;
}

/** A number times one that a few columns share, as a sub-scale is (kernels/cpu/kernels.h). */
static void draw_wide(struct rng *r, const struct kern_integers *format, int *integers, size_t n)
{
    int factor = 1 + (int)rng_below(r, 63),
        most = (int)base_min(INT8_MAX, format->largest / factor);
    for (size_t i = 0; i < n; i++)
        integers[i] = factor * ((int)rng_below(r, 2 * (size_t)most + 1) - most);
}

static void fill_row(struct rng *r, enum operands what, const struct product *p, size_t row)
{
    const struct kern_integers *format = p->op.format;
    float *w = (float *)data(&p->w) + row * p->op.w_row;
    float *factors = w + integer_floats(p->op.n_k, format->run);
    int integers[512];
    size_t n_factors = p->op.n_k / format->run + n_mins_of(format, p->op.n_k);
    assert_true(p->op.n_k <= 512);
    for (size_t i = 0; i < p->op.n_k; i++)
        integers[i] = what == OPERANDS_WORST ? -format->largest : draw_integer(r, format);
    size_t shared = kern_integers_find(format->type, 8)->run;
    for (size_t k = 0;
         format->largest > INT8_MAX && format->run == 64 && what != OPERANDS_WORST && k < p->op.n_k;
         k += shared)
        draw_wide(r, format, integers + k, shared);
    put_integers(w, integers, p->op.n_k, format->run);
    for (size_t i = 0; i < n_factors; i++)
        factors[i] = what == OPERANDS_WORST                           ? 1.0f
                     : what == OPERANDS_RARE && rng_below(r, 50) == 0 ? rare_number(r)
                                                                      : rng_rough(r);
}

/** The worst tokens: all numbers are the largest, of half of the tokens the least. */
static void fill_chunks(struct rng *r, enum operands what, const struct product *p)
{
    size_t n = TOKENS * p->op.n_k;
    int largest = largest_of(p->op.format);
    float *tokens = malloc(n * sizeof *tokens);
    for (size_t i = 0; i < n; i++)
        tokens[i] = what == OPERANDS_RARE && rng_below(r, 100) == 0 ? rare_number(r) : rng_rough(r);
    for (size_t i = 0; what == OPERANDS_WORST && i < n; i++)
        tokens[i] = (float)(i < n / 2 ? -largest : largest); /* the scale is 1 */
    struct kern_panel_pack op = {.x = tokens,
                                 .x_stride = p->op.n_k,
                                 .n_lanes = TOKENS,
                                 .n_k = p->op.n_k,
                                 .out = data(&p->x)};
    pack(&kern_kernels_scalar, op, largest);
    op.out = data(&p->own_x);
    pack(variant->word ? variant->tiles : &kern_kernels_scalar, op, largest);
    free(tokens);
}

/** Lay a row as a set's kernel does, if it has one. */
static void lay_row(const struct kern_kernels *k, const int integers[512], size_t n_k,
                    const struct kern_integers *format, float *out)
{
    int16_t words[512];
    int8_t bytes[512];
    for (size_t i = 0; i < n_k; i++) {
        words[i] = (int16_t)integers[i];
        bytes[i] = (int8_t)integers[i];
    }
    if (kind->bytes && k->int8_row)
        k->int8_row(bytes, n_k, format, out);
    else if (!kind->bytes && k->int16_row)
        k->int16_row(words, n_k, format, out);
}

/** Multiply with the variant's tile, and rows as its own int8_row lays them. */
static void multiply_variant(const struct kern_fma_tile *op)
{
    const struct kern_integers *format = op->format;
    size_t n_factors = op->n_k / format->run + n_mins_of(format, op->n_k);
    size_t row = integer_floats(op->n_k, format->run) + n_factors;
    struct guard w = guard_open(((op->n_rows - 1) * op->w_row + row) * sizeof(float), 0);
    memcpy(w.data, op->w, w.n_bytes);
    for (size_t i = 0; i < op->n_rows; i++) {
        int integers[512];
        for (size_t k = 0; k < op->n_k; k++)
            integers[k] = weight_at(op->w + i * op->w_row, k);
        lay_row(variant->tiles, integers, op->n_k, format, (float *)data(&w) + i * op->w_row);
    }
    struct kern_fma_tile laid = *op;
    laid.w = data(&w);
    multiply(variant->tiles, &laid);
    guards_close(&w, 1);
}

static void product_open(struct product *p, struct rng *r, const struct kern_fma_tile *shape,
                         enum operands what)
{
    const struct kern_integers *format = shape->format;
    size_t n_factors = shape->n_k / format->run + n_mins_of(format, shape->n_k);
    size_t row = integer_floats(shape->n_k, format->run) + n_factors;
    size_t stride = row + rng_below(r, 3), n_acc = shape->n_rows * KERN_PANEL;
    size_t n_chunks = shape->n_k / COLUMNS;
    p->w = guard_open(((shape->n_rows - 1) * stride + row) * sizeof(float), 4 * rng_below(r, 3));
    p->x = guard_open(n_chunks * kind->chunk_bytes, 0);
    p->own_x = guard_open(n_chunks * kind->chunk_bytes, 0);
    p->before = guard_open(n_acc * sizeof(float), 0);
    p->expected = guard_open(n_acc * sizeof(float), 0);
    p->found = guard_open(n_acc * sizeof(float), 0);
    p->op = *shape;
    p->op.w = data(&p->w);
    p->op.w_row = stride;
    p->op.x = data(&p->x);
    for (size_t i = 0; i < shape->n_rows; i++)
        fill_row(r, what, p, i);
    fill_chunks(r, what, p);
    for (size_t i = 0; i < n_acc; i++)
        ((float *)data(&p->before))[i] = rng_rough(r);
    memcpy(p->expected.data, p->before.data, p->before.n_bytes);
    memcpy(p->found.data, p->before.data, p->before.n_bytes);
    p->op.acc = data(&p->expected);
    multiply(&kern_kernels_scalar, &p->op);
    p->op.x = data(&p->own_x);
    p->op.acc = data(&p->found);
}

static void assert_found(const struct product *p, const char *what)
{
    size_t n = p->op.n_rows * KERN_PANEL;
    const float *found = data(&p->found), *expected = data(&p->expected);
    size_t i = compare_bits(found, expected, n);
    if (i < n)
        fail_msg("%s, %s, %s, %zu rows, %zu columns: row %zu, lane %zu is %a, expected %a",
                 variant->name, what, gguf_type_name(p->op.format->type), p->op.n_rows, p->op.n_k,
                 i / KERN_PANEL, i % KERN_PANEL, (double)found[i], (double)expected[i]);
}

static void product_close(struct product *p)
{
    guards_close((struct guard[]){p->w, p->x, p->own_x, p->before, p->expected, p->found}, 6);
}

static size_t whole_runs(size_t n_k, enum gguf_type type)
{
    return base_round_up(n_k, format_of(type)->run);
}

/** Whether sums of a run may be beyond 32 bits. */
static bool is_long(const struct kern_integers *format)
{
    return format->run == 64 && format->is_long;
}

/** Every kind of type and operands, begun and gone on with. */
static void check_tile(struct rng *r, size_t n_rows, size_t n_k)
{
    for (unsigned i = 0; i < N_TYPES * OPERANDS; i++) {
        struct product p;
        if (!takes(format_of(types[i % N_TYPES])))
            continue;
        struct kern_fma_tile shape = {.n_rows = n_rows,
                                      .n_k = whole_runs(n_k, types[i % N_TYPES]),
                                      .resume = rng_below(r, 2),
                                      .format = format_of(types[i % N_TYPES])};
        enum operands what = (enum operands)(i / N_TYPES);
        shape.exactly = is_long(shape.format) && (what == OPERANDS_WORST || rng_below(r, 2));
        product_open(&p, r, &shape, what);
        p.op.next_x = rng_below(r, 2) ? p.op.x : NULL;
        multiply_variant(&p.op);
        assert_found(&p, "whole");
        product_close(&p);
    }
}

static void test_tile(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 3);
    for (size_t n_rows = 1; n_rows <= MAX_ROWS; n_rows += ASSAY_SANITIZED ? 3 : 1) {
        check_tile(&r, n_rows, COLUMNS);
        check_tile(&r, n_rows, COLUMNS * (1 + rng_below(&r, 15)));
    }
    check_tile(&r, 7, 512);
}

/** Columns `from` to from + n_k - 1 of a row as a row of their own. */
static void cut_row(const struct product *p, size_t row, size_t from, size_t n_k, float *out)
{
    const struct kern_integers *format = p->op.format;
    const float *w = p->op.w + row * p->op.w_row;
    size_t n_runs = n_k / format->run, n_floats = integer_floats(n_k, format->run);
    int integers[512];
    for (size_t k = 0; k < n_k; k++)
        integers[k] = weight_at(w, from + k);
    put_integers(out, integers, n_k, format->run);
    w += integer_floats(p->op.n_k, format->run);
    memcpy(out + n_floats, w + from / format->run, n_runs * sizeof *w);
    memcpy(out + n_floats + n_runs, w + p->op.n_k / format->run + n_mins_of(format, from),
           n_mins_of(format, n_k) * sizeof *w);
}

/** A product may be cut between any two blocks: the rows are then packed anew. */
static void test_resuming_changes_nothing(void **state)
{
    (void)state;
    enum { ROWS = 7, N_K = 5 * MAX_BLOCK };
    struct rng r = rng_open(rng_seed(), 4);
    for (size_t cut = kind->block; cut < N_K; cut += kind->block) {
        struct product p;
        struct kern_fma_tile shape = {
            .n_rows = ROWS, .n_k = N_K, .format = format_of(types[cut / kind->block % N_TYPES])};
        if (!takes(shape.format))
            continue;
        product_open(&p, &r, &shape, OPERANDS_RANDOM);
        size_t row = p.op.w_row, from = 0;
        float *w = malloc(ROWS * row * sizeof *w);
        for (size_t end = cut; from < N_K; from = end, end = N_K) {
            struct kern_fma_tile op = p.op;
            for (size_t i = 0; i < ROWS; i++)
                cut_row(&p, i, from, end - from, w + i * row);
            op.w = w;
            op.x = chunk_at(data(&p.own_x), from / COLUMNS);
            op.n_k = end - from;
            op.resume = from > 0;
            multiply_variant(&op);
        }
        assert_found(&p, "in two pieces");
        free(w);
        product_close(&p);
    }
}

/**
 * One output against the definition without rounding. A sum is rounded once, a term is then in one
 * addition for each that follows it in its block, two with minima, and in one per block: each off
 * by 2^-24 of the sum of magnitudes at most.
 */
static void check_output(const struct product *p, size_t row, size_t lane)
{
    const struct kern_integers *format = p->op.format;
    const void *chunks = data(&p->x);
    const float *w = p->op.w + row * p->op.w_row;
    const float *scales = w + integer_floats(p->op.n_k, format->run);
    size_t n_runs = p->op.n_k / format->run;
    long double sum = 0, magnitude = 0;
    for (size_t i = 0; i < n_runs; i++) {
        int64_t dot = 0;
        long double x_scale =
            (long double)factors_at(chunks, i * format->run / COLUMNS)->scale[lane];
        for (size_t k = i * format->run; k < (i + 1) * format->run; k++)
            dot += (int64_t)weight_at(w, k) * integer_at(chunks, lane, k);
        assert_true(is_long(format) || (dot >= INT32_MIN && dot <= INT32_MAX));
        long double product = (long double)scales[i] * x_scale * dot;
        sum += product;
        magnitude += fabsl(product);
        for (size_t k = i * format->run; k < (i + 1) * format->run && format->min_run > 0; k++) {
            long double min = (long double)scales[n_runs + k / format->min_run];
            sum += min * x_scale * integer_at(chunks, lane, k);
            magnitude += fabsl(min) * x_scale * abs(integer_at(chunks, lane, k));
        }
    }
    long double found = (long double)((const float *)data(&p->expected))[row * KERN_PANEL + lane];
    size_t block = kind->block;
    size_t n_additions = block / format->run + n_mins_of(format, block) + p->op.n_k / block + 1;
    assert_true(fabsl(found - sum) <= 1.01L * (1 + n_additions) * 0x1p-24L * magnitude);
}

static void test_scalar_tile_is_the_definition(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 5);
    for (unsigned i = 0; i < 4 * N_TYPES; i++) {
        struct product p;
        struct kern_fma_tile shape = {
            .n_rows = 5,
            .n_k = whole_runs(COLUMNS * (1 + rng_below(&r, 16)), types[i % N_TYPES]),
            .format = format_of(types[i % N_TYPES])};
        product_open(&p, &r, &shape, i < 2 * N_TYPES ? OPERANDS_RANDOM : OPERANDS_WORST);
        for (size_t row = 0; row < shape.n_rows; row++)
            for (size_t lane = 0; lane < KERN_PANEL; lane++)
                check_output(&p, row, lane);
        product_close(&p);
    }
}

/** The largest sums that there can be of every format. */
static void test_worst_block(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 6);
    const struct kern_quant *quant;
    for (size_t i = 0; (quant = kern_quant_at(i)); i++) {
        const struct kern_integers *format = format_of(quant->type);
        struct product p;
        if (!format || format->min_run > 0 || !takes(format))
            continue;
        size_t n_k = base_max(COLUMNS, format->run);
        struct kern_fma_tile shape = {
            .n_rows = 7, .n_k = n_k, .format = format, .exactly = is_long(format)};
        product_open(&p, &r, &shape, OPERANDS_WORST);
        multiply_variant(&p.op);
        float most = (float)((int64_t)n_k * format->largest * largest_of(format));
        for (size_t j = 0; j < shape.n_rows * KERN_PANEL; j++)
            assert_true(((float *)data(&p.found))[j] == (j % TOKENS < TOKENS / 2 ? most : -most));
        product_close(&p);
    }
}

static void test_row(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 7);
    for (size_t columns = COLUMNS; columns <= 512; columns += COLUMNS) {
        const struct kern_integers *format =
            format_of(rng_below(&r, 2) ? GGUF_TYPE_NVFP4 : GGUF_TYPE_Q8_0);
        size_t run = format->run, n_k = base_round_up(columns, run);
        size_t n_bytes = integer_floats(n_k, run) * sizeof(float);
        struct guard y = guard_open(n_k * sizeof(float), 4 * rng_below(&r, 3));
        size_t n_integers = n_k * (kind->bytes ? sizeof(int8_t) : sizeof(int16_t));
        struct guard row = guard_open(n_integers, 2 * rng_below(&r, 3));
        struct guard out = guard_open(n_bytes, 4 * rng_below(&r, 3));
        float *expected = malloc(n_bytes), *decoded = data(&y);
        int integers[512];
        for (size_t i = 0; i < n_k; i++) {
            integers[i] = (int)rng_below(&r, 256) - KERN_INTEGER_LIMIT;
            decoded[i] = (float)integers[i];
        }
        put_integers(expected, integers, n_k, run);
        if (kind->bytes) {
            kernels.to_int8(decoded, n_k, data(&row));
            (variant->tiles->int8_row ? variant->tiles : &kernels)
                ->int8_row(data(&row), n_k, format, data(&out));
        } else {
            kernels.to_int16(decoded, n_k, data(&row));
            kernels.int16_row(data(&row), n_k, format, data(&out));
        }
        size_t n_found = kind->bytes ? n_bytes : n_k * sizeof(int16_t);
        for (size_t i = 0; i < n_k && variant->word; i++) /* bytes of both kinds, and no begins */
            assert_int_equal(((const int8_t *)data(&out))[i], integers[i]);
        if (!variant->word)
            assert_memory_equal(data(&out), expected, n_found);
        free(expected);
        guards_close((struct guard[]){y, row, out}, 3);
    }
}

int main(void)
{
    const struct CMUnitTest definition[] = {cmocka_unit_test(test_scalar_tile_is_the_definition)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row),
        cmocka_unit_test(test_tile),
        cmocka_unit_test(test_resuming_changes_nothing),
        cmocka_unit_test(test_worst_block),
    };
    RUN_KINDS(definition, tests);
}

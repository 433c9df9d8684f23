/*
 * Products in bfloat16 through the software model of tile instructions: the microkernel, the
 * packers and their edges are those that run on AMX. Against a twin that writes the sums down
 * without tiles (to the bit), against double precision (bounds that follow from the rounding),
 * and whole operations of a backend for any threads, batch and blocking (to the bit).
 * Where there is AMX, its products are held to the same bounds.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/cpu/amx/amx.h"
#include "kernels/cpu/cpu.h"
#include "kernels/operations.h"
#include "kernels/quant/registry.h"
#include "kernels/scoring.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/guard.h"
#include "tests/harness/rng.h"

static struct kern_kernels table;

/** A product of one panel: operands, packed operands, sums. */
struct product {
    size_t n_rows, n_lanes, n_k;
    unsigned n_parts;
    float *w, *x; /* [n_rows, n_k], [n_lanes, n_k] */
    uint16_t *packed_w, *packed_x;
    struct guard acc; /* panel array [n_rows] */
};

static float *acc_of(const struct product *p)
{
    return (float *)(void *)p->acc.data;
}

static void product_open(struct product *p, struct rng *r)
{
    size_t group = kern_bf16_group_size(p->n_k, p->n_parts);
    size_t n_groups = (p->n_rows + 31) / 32;
    p->w = malloc(p->n_rows * p->n_k * sizeof(float));
    p->x = malloc(p->n_lanes * p->n_k * sizeof(float));
    p->packed_w = aligned_alloc(64, n_groups * group * 2);
    memset(p->packed_w, 0, n_groups * group * 2); /* the last group may have fewer rows */
    p->packed_x = aligned_alloc(64, group * 2);
    p->acc = guard_open(p->n_rows * KERN_PANEL * sizeof(float), 0);
    for (size_t i = 0; i < p->n_rows * p->n_k; i++)
        p->w[i] = rng_normal(r);
    for (size_t i = 0; i < p->n_lanes * p->n_k; i++)
        p->x[i] = rng_normal(r);
    for (size_t row = 0; row < p->n_rows; row++)
        table.bf16_pack_row(p->w + row * p->n_k, p->n_k, p->n_parts, row % 32,
                            p->packed_w + row / 32 * group);
    table.bf16_pack_panel(&(struct kern_panel_pack){.x = p->x,
                                                    .x_stride = p->n_k,
                                                    .n_lanes = p->n_lanes,
                                                    .n_k = p->n_k,
                                                    .n_parts = p->n_parts,
                                                    .out = p->packed_x});
}

static void product_close(struct product *p)
{
    assert_true(guard_intact(&p->acc));
    guard_close(&p->acc);
    free(p->w);
    free(p->x);
    free(p->packed_w);
    free(p->packed_x);
}

static struct kern_fma_tile call_of(const struct product *p)
{
    return (struct kern_fma_tile){
        .w = (const float *)(const void *)p->packed_w,
        .w_row = kern_bf16_group_size(p->n_k, p->n_parts) / 64,
        .x = (const float *)(const void *)p->packed_x,
        .acc = acc_of(p),
        .n_rows = p->n_rows,
        .n_k = p->n_k,
        .narrow = p->n_lanes <= KERN_NARROW,
    };
}

static kern_fma_tile_fn *multiply_of(const struct kern_amx_products *amx, unsigned n_parts)
{
    return n_parts == 1 ? amx->multiply_one : amx->multiply_triple;
}

/** Part 0 (hi) or 1 (lo) of element k; 0 after the end. */
static float part_at(const float *row, size_t n_k, size_t k, int part)
{
    if (k >= n_k)
        return 0.0f;
    uint16_t hi = kern_bf16_round(row[k]);
    return kern_bf16_to_float(part ? kern_bf16_rest(row[k], hi) : hi);
}

/** The sums that product.h describes, from float32 operands. */
static float twin(const struct product *p, size_t row, size_t lane)
{
    static const int parts[3][2] = {{1, 0}, {0, 0}, {0, 1}}; /* of w and of x, in this order */
    const float *w = p->w + row * p->n_k, *x = p->x + lane * p->n_k;
    float acc = 0.0f;
    for (size_t k = 0; k < p->n_k; k += 32) {
        size_t first = p->n_parts == 1 ? 1 : 0, end = p->n_parts == 1 ? 2 : 3;
        for (size_t i = first; i < end; i++) {
            float even = 0.0f, odd = 0.0f;
            for (size_t j = k; j < k + 32; j += 2) {
                even = fmaf(part_at(w, p->n_k, j, parts[i][0]), part_at(x, p->n_k, j, parts[i][1]),
                            even);
                odd = fmaf(part_at(w, p->n_k, j + 1, parts[i][0]),
                           part_at(x, p->n_k, j + 1, parts[i][1]), odd);
            }
            acc = acc + (even + odd);
        }
    }
    return acc;
}

static void test_emulation_is_its_twin(void **state)
{
    (void)state;
    static const size_t rows[] = {1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 50, 64, 70};
    struct rng r = rng_open(rng_seed(), 1);
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        struct product p = {.n_rows = rows[i / 2],
                            .n_lanes = 1 + rng_below(&r, KERN_PANEL),
                            .n_k = 1 + rng_below(&r, 100),
                            .n_parts = 1 + (unsigned)(i % 2)};
        product_open(&p, &r);
        struct kern_fma_tile call = call_of(&p);
        multiply_of(&kern_amx_emulated, p.n_parts)(&call);
        for (size_t row = 0; row < p.n_rows; row++) {
            for (size_t lane = 0; lane < p.n_lanes; lane++) {
                float expected = twin(&p, row, lane), found = acc_of(&p)[row * KERN_PANEL + lane];
                if (compare_bits(&found, &expected, 1) < 1)
                    fail_msg("%zu rows, %zu lanes, %zu columns, %u parts: row %zu, lane %zu is "
                             "%a, expected %a",
                             p.n_rows, p.n_lanes, p.n_k, p.n_parts, row, lane, (double)found,
                             (double)expected);
            }
        }
        product_close(&p);
    }
}

/** A row may be cut at any multiple of 32 columns. */
static void test_resuming_changes_nothing(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 2);
    for (unsigned n_parts = 1; n_parts <= 2; n_parts++) {
        struct product p = {.n_rows = 45, .n_lanes = 20, .n_k = 150, .n_parts = n_parts};
        product_open(&p, &r);
        kern_fma_tile_fn *multiply = multiply_of(&kern_amx_emulated, n_parts);
        struct kern_fma_tile whole = call_of(&p);
        multiply(&whole);
        float *expected = malloc(p.acc.n_bytes);
        memcpy(expected, p.acc.data, p.acc.n_bytes);
        size_t chunk = kern_bf16_group_size(32, n_parts) / 2; /* floats of 32 columns */
        for (size_t cut = 32; cut < p.n_k; cut += 32) {
            struct kern_fma_tile part = whole;
            part.n_k = cut;
            multiply(&part);
            part.w += cut / 32 * chunk;
            part.x += cut / 32 * chunk;
            part.n_k = p.n_k - cut;
            part.resume = true;
            part.next_x = whole.x;
            multiply(&part);
            assert_int_equal(compare_bits(acc_of(&p), expected, p.n_rows * KERN_PANEL),
                             p.n_rows * KERN_PANEL);
        }
        free(expected);
        product_close(&p);
    }
}

/** ||y - y64|| / ||y64|| of one panel. */
static double relative_error(const struct product *p)
{
    double error = 0.0, norm = 0.0;
    for (size_t row = 0; row < p->n_rows; row++) {
        for (size_t lane = 0; lane < p->n_lanes; lane++) {
            double sum = 0.0;
            for (size_t k = 0; k < p->n_k; k++)
                sum += (double)p->w[row * p->n_k + k] * (double)p->x[lane * p->n_k + k];
            double difference = (double)acc_of(p)[row * KERN_PANEL + lane] - sum;
            error += difference * difference;
            norm += sum * sum;
        }
    }
    return sqrt(error / norm);
}

/**
 * Gaussian data, 4096 columns: 1e-5 is what `high` promises. A bfloat16 is off by a factor of
 * about 1 + 1.66e-3 (root mean square), so one product by 2.3e-3; 3e-3 leaves room for chance.
 */
static void test_accuracy(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 3);
    for (unsigned n_parts = 1; n_parts <= 2; n_parts++) {
        struct product p = {.n_rows = 32, .n_lanes = 32, .n_k = 4096, .n_parts = n_parts};
        product_open(&p, &r);
        struct kern_fma_tile call = call_of(&p);
        multiply_of(&kern_amx_emulated, n_parts)(&call);
        double error = relative_error(&p);
        print_message("%s: ||y - y64|| / ||y64|| = %.2e\n", n_parts == 1 ? "bf16" : "bf16 triples",
                      error);
        assert_true(error < (n_parts == 1 ? 3e-3 : 1e-5));
        product_close(&p);
    }
}

/** Denormals count as zero, in operands, products and sums. */
static void test_denormals_are_flushed(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 4);
    struct product p = {.n_rows = 1, .n_lanes = 1, .n_k = 2, .n_parts = 1};
    static const float cases[][3] = {
        {FLT_MIN / 2, 1.0f, 0.0f},       /* operand */
        {0x1p-70f, 0x1p-70f, 0.0f},      /* product */
        {0x1p-63f, 0x1p-63f, 0x1p-126f}, /* the least that is left */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        product_open(&p, &r);
        p.w[0] = cases[i][0];
        p.x[0] = cases[i][1];
        p.w[1] = p.x[1] = 0.0f;
        table.bf16_pack_row(p.w, 2, 1, 0, p.packed_w);
        table.bf16_pack_panel(&(struct kern_panel_pack){
            .x = p.x, .x_stride = 2, .n_lanes = 1, .n_k = 2, .n_parts = 1, .out = p.packed_x});
        struct kern_fma_tile call = call_of(&p);
        kern_amx_emulated.multiply_one(&call);
        assert_true(acc_of(&p)[0] == cases[i][2]);
        product_close(&p);
    }
}

/** One sum of 41 x 27 is off by a thousandth. */
static void multiply_wrongly(const struct kern_fma_tile *op)
{
    kern_amx_emulated.multiply_triple(op);
    op->acc[(op->n_rows - 1) * KERN_PANEL] *= 1.0f + 0x1p-10f;
}

static void test_the_trial_finds_wrong_products(void **state)
{
    (void)state;
    assert_true(kern_amx_is_right(&kern_amx_emulated, &table));
    struct kern_amx_products wrong = kern_amx_emulated;
    wrong.multiply_triple = multiply_wrongly;
    assert_false(kern_amx_is_right(&wrong, &table));
    wrong = (struct kern_amx_products){kern_amx_emulated.multiply_triple,
                                       kern_amx_emulated.multiply_triple};
    assert_false(kern_amx_is_right(&wrong, &table));
}

static void test_hardware(void **state)
{
    (void)state;
    enum kern_amx_state amx = kern_amx_try(&table);
    assert_int_not_equal(amx, KERN_AMX_WRONG);
    if (amx != KERN_AMX_WORKS) {
        print_message("no AMX here: only its emulation is tested\n");
        skip();
    }
    struct rng r = rng_open(rng_seed(), 5);
    for (unsigned n_parts = 1; n_parts <= 2; n_parts++) {
        struct product p = {.n_rows = 45, .n_lanes = 32, .n_k = 4096, .n_parts = n_parts};
        product_open(&p, &r);
        struct kern_fma_tile call = call_of(&p);
        multiply_of(&kern_amx_hardware, n_parts)(&call);
        assert_true(relative_error(&p) < (n_parts == 1 ? 3e-3 : 1e-5));
        float *hardware = malloc(p.acc.n_bytes);
        memcpy(hardware, p.acc.data, p.acc.n_bytes);
        multiply_of(&kern_amx_emulated, n_parts)(&call);
        size_t n = p.n_rows * KERN_PANEL;
        print_message("%u parts: the first sum that differs from the emulated is %zu of %zu\n",
                      n_parts, compare_bits(hardware, acc_of(&p), n), n);
        free(hardware);
        product_close(&p);
    }
}

static struct kern_backend *backend_open(enum kern_precision precision, unsigned n_threads)
{
    struct kern_cpu_options options = {.n_threads = n_threads,
                                       .isa_cap = KERN_ISA_COUNT - 1,
                                       .precision = precision,
                                       .amx = KERN_AMX_EMULATED};
    struct kern_backend *b = NULL;
    assert_int_equal(kern_cpu_open(&b, &options, NULL), STATUS_OK);
    assert_string_equal(kern_describe(b).products,
                        precision == KERN_PRECISION_FAST ? "bf16" : "bf16x3");
    assert_string_equal(kern_describe(b).remarks, "");
    return b;
}

/** Whole products: rows, columns and tokens that fill no tile, more than a slab of columns. */
struct linear_case {
    enum gguf_type type;
    size_t n_tokens, n_rows, n_cols;
};

/** Within the bound of product.h of double precision; x and weight are of moderate size. */
static void assert_close(const struct kern_linear *op, const float *decoded, double of_parts)
{
    size_t n_k = op->weight->n_cols;
    for (size_t t = 0; t < op->n_tokens; t++) {
        for (size_t row = 0; row < op->weight->n_rows; row++) {
            double sum = 0.0, magnitude = 0.0;
            for (size_t k = 0; k < n_k; k++) {
                double product = (double)decoded[row * n_k + k] * (double)op->x[t * n_k + k];
                sum += product;
                magnitude += fabs(product);
            }
            double of_sums = (18.0 + 3.0 * (double)(n_k / 32 + 1)) * 0x1p-24;
            double found = (double)op->y[t * op->y_stride + row];
            assert_true(fabs(found - sum) <= 1.01 * (of_parts + of_sums) * magnitude);
        }
    }
}

static void check_linear(const struct linear_case *c, enum kern_precision precision,
                         uint64_t stream)
{
    struct rng r = rng_open(rng_seed(), stream);
    const struct gguf_type_info *info = gguf_type_info(c->type);
    struct kern_weight weight = {.type = c->type,
                                 .n_rows = c->n_rows,
                                 .n_cols = c->n_cols,
                                 .row_bytes = c->n_cols / info->block_elems * info->block_bytes,
                                 .scale = 1.0f};
    uint8_t *bytes = malloc(c->n_rows * weight.row_bytes);
    float *x = malloc(c->n_tokens * c->n_cols * sizeof(float));
    float *decoded = malloc(c->n_rows * c->n_cols * sizeof(float));
    float *y = malloc(c->n_tokens * c->n_rows * sizeof(float));
    float *again = malloc(c->n_tokens * c->n_rows * sizeof(float));
    rng_bytes(&r, bytes, c->n_rows * weight.row_bytes);
    /* A float16 scale of about 0.01 in front, or normal numbers. */
    for (size_t i = 0; i < c->n_rows * weight.row_bytes; i += info->block_bytes)
        memcpy(bytes + i, (const uint8_t[]){0x1f, 0x21}, 2);
    for (size_t i = 0; c->type == GGUF_TYPE_F32 && i < c->n_rows * c->n_cols; i++)
        ((float *)(void *)bytes)[i] = rng_normal(&r);
    for (size_t i = 0; i < c->n_tokens * c->n_cols; i++)
        x[i] = rng_normal(&r);
    weight.data = bytes;
    for (size_t i = 0; i < c->n_rows; i++)
        kern_quant_find(c->type)->decode(bytes + i * weight.row_bytes, decoded + i * c->n_cols,
                                         c->n_cols);
    struct kern_linear op = {
        .weight = &weight, .x = x, .y = y, .y_stride = c->n_rows, .n_tokens = c->n_tokens};
    struct kern_backend *b = backend_open(precision, 1);
    assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
    kern_close(b);
    assert_close(&op, decoded, precision == KERN_PRECISION_FAST ? 0x1p-7 : 0x3p-16);

    /* Three threads, tokens one by one: the same bits. */
    b = backend_open(precision, 3);
    op.y = again;
    assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
    assert_int_equal(compare_bits(again, y, c->n_tokens * c->n_rows), c->n_tokens * c->n_rows);
    op.n_tokens = 1;
    for (size_t t = 0; t < c->n_tokens; t += 1 + c->n_tokens / 3) {
        op.x = x + t * c->n_cols;
        assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
        assert_int_equal(compare_bits(again, y + t * c->n_rows, c->n_rows), c->n_rows);
    }
    kern_close(b);
    free(bytes);
    free(x);
    free(decoded);
    free(y);
    free(again);
}

static void test_linear(void **state)
{
    (void)state;
    static const struct linear_case cases[] = {
        {GGUF_TYPE_F32, 1, 1, 1},      {GGUF_TYPE_F32, 33, 35, 31},   {GGUF_TYPE_F32, 17, 100, 33},
        {GGUF_TYPE_F32, 49, 70, 600},  {GGUF_TYPE_Q8_0, 65, 130, 64}, {GGUF_TYPE_Q4_0, 20, 61, 544},
        {GGUF_TYPE_Q5_0, 34, 70, 768}, {GGUF_TYPE_F32, 600, 40, 40},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_linear(&cases[i], KERN_PRECISION_HIGH, 100 + i);
        check_linear(&cases[i], KERN_PRECISION_FAST, 100 + i);
    }
}

/** Ranks come from comparing the target's own product with those of the vocabulary's tiles. */
static void test_score(void **state)
{
    (void)state;
    enum { N_ROWS = 50, N_COLS = 70, N_VOCAB = 333 };
    struct rng r = rng_open(rng_seed(), 6);
    float *hidden = malloc((size_t)N_ROWS * N_COLS * sizeof(float));
    float *matrix = malloc((size_t)N_VOCAB * N_COLS * sizeof(float));
    for (size_t i = 0; i < (size_t)N_ROWS * N_COLS; i++)
        hidden[i] = rng_normal(&r);
    for (size_t i = 0; i < (size_t)N_VOCAB * N_COLS; i++)
        matrix[i] = rng_normal(&r);
    struct kern_weight weight = {.type = GGUF_TYPE_F32,
                                 .n_rows = N_VOCAB,
                                 .n_cols = N_COLS,
                                 .row_bytes = N_COLS * sizeof(float),
                                 .data = matrix,
                                 .scale = 0.5f};
    struct kern_head head = {.hidden = hidden, .matrix = &weight};
    struct kern_target targets[N_ROWS];
    struct kern_row_score rows[2][N_ROWS];
    struct kern_target_score scores[2][N_ROWS];
    for (uint32_t i = 0; i < N_ROWS; i++)
        targets[i] = (struct kern_target){i, (int32_t)rng_below(&r, N_VOCAB)};
    for (size_t i = 0; i < 2; i++) {
        struct kern_backend *b = backend_open(KERN_PRECISION_HIGH, i ? 3 : 1);
        struct kern_score op = {.n_heads = 1,
                                .heads = &head,
                                .n_rows = N_ROWS,
                                .n_targets = N_ROWS,
                                .targets = targets,
                                .rows = rows[i],
                                .target_scores = scores[i]};
        assert_int_equal(kern_score(b, &op, NULL), STATUS_OK);
        /* Now ask for the most likely tokens: they are first, with the largest logit. */
        for (uint32_t t = 0; t < N_ROWS; t++)
            targets[t].token = rows[i][t].argmax;
        assert_int_equal(kern_score(b, &op, NULL), STATUS_OK);
        for (size_t t = 0; t < N_ROWS; t++) {
            assert_int_equal(scores[i][t].rank, 1);
            assert_true(scores[i][t].log_prob == -rows[i][t].log_sum);
        }
        kern_close(b);
    }
    for (size_t t = 0; t < N_ROWS; t++) {
        assert_true(rows[0][t].max_logit == rows[1][t].max_logit);
        assert_true(rows[0][t].log_sum == rows[1][t].log_sum);
        assert_true(rows[0][t].entropy == rows[1][t].entropy);
    }
    free(hidden);
    free(matrix);
}

/** What is asked for in vain is said; what is not asked for is not. */
static void test_remarks(void **state)
{
    (void)state;
    static const struct {
        enum kern_precision precision;
        const char *products, *remark;
    } cases[] = {
        {KERN_PRECISION_EXACT, "float32", ""},
        {KERN_PRECISION_HIGH, "int16", ""},
        {KERN_PRECISION_FAST, "int8", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct kern_cpu_options options = {.n_threads = 1,
                                           .isa_cap = KERN_ISA_SCALAR + 1,
                                           .precision = cases[i].precision,
                                           .amx = KERN_AMX_HARDWARE};
        struct kern_backend *b = NULL;
        assert_int_equal(kern_cpu_open(&b, &options, NULL), STATUS_OK);
        assert_string_equal(kern_describe(b).products, cases[i].products);
        int isa = kern_isa_detect() > KERN_ISA_SCALAR ? KERN_ISA_SCALAR + 1 : KERN_ISA_SCALAR;
        assert_string_equal(kern_describe(b).isa, kern_isa_name((enum kern_isa)isa));
        assert_string_equal(kern_describe(b).remarks, cases[i].remark);
        kern_close(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_emulation_is_its_twin),
        cmocka_unit_test(test_resuming_changes_nothing),
        cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_denormals_are_flushed),
        cmocka_unit_test(test_the_trial_finds_wrong_products),
        cmocka_unit_test(test_hardware),
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_score),
        cmocka_unit_test(test_remarks),
    };
    kern_kernels_build(&table, KERN_ISA_COUNT - 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

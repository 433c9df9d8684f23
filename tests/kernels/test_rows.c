/**
 * Rows as files store them (kernels/quant/rows.h), every type: any columns of any row are the same
 * as the row decoded at once, nothing beyond the matrix is read, and a product or an embedding with
 * the stored rows has the bits of one with the decoded rows in float32. ASSAY_TEST_SEED repeats a
 * run.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"
#include "kernels/operations.h"
#include "kernels/quant/apart.h"
#include "kernels/quant/rows.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/guard.h"
#include "tests/harness/random_blocks.h"

enum { N_ROWS = 48, N_COLS = 768, N_TOKENS = 5 };

struct matrix {
    const struct kern_quant *format;
    struct guard bytes; /* N_ROWS rows, an inaccessible page after them */
    struct kern_rows rows;
    float *decoded; /* [N_ROWS, N_COLS] */
};

static struct matrix matrix_open(const struct kern_quant *format, size_t slack)
{
    struct matrix m = {.format = format};
    size_t row_bytes = random_blocks_row_bytes(format->type, N_COLS);
    struct random_blocks pool;
    m.bytes = guard_open(N_ROWS * row_bytes, slack);
    m.decoded = malloc(sizeof(float) * N_ROWS * N_COLS);
    assert_true(m.decoded && random_blocks_open(&pool, format->type, 0.5, 4096));
    pool.rng = rng_open(rng_seed(), format->type);
    random_blocks_draw(&pool, m.bytes.data, N_ROWS, N_COLS);
    random_blocks_close(&pool);
    m.rows = (struct kern_rows){format->type, m.bytes.data, row_bytes, NULL,
                                random_blocks_scales(format->type, 0.5)};
    for (size_t r = 0; r < N_ROWS; r++)
        kern_rows_decode(&m.rows, format->decode, r, 0, N_COLS, m.decoded + r * N_COLS);
    return m;
}

static void matrix_close(struct matrix *m)
{
    assert_true(guard_intact(&m->bytes));
    guard_close(&m->bytes);
    free(m->decoded);
}

static void assert_same(const struct matrix *m, const float *found, const float *expected, size_t n,
                        const char *what)
{
    size_t i = compare_bits(found, expected, n);
    if (i < n)
        fail_msg("%s, %s: element %zu of %zu is %a, expected %a", gguf_type_name(m->rows.type),
                 what, i, n, (double)found[i], (double)expected[i]);
}

/** Columns from anywhere, into memory of exactly their size. */
static void test_any_columns(void **state)
{
    (void)state;
    const struct kern_quant *format;
    for (size_t i = 0; (format = kern_quant_at(i)); i++) {
        struct matrix m = matrix_open(format, i % 3);
        size_t step = gguf_type_info(format->type)->block_elems;
        struct rng r = rng_open(rng_seed(), i);
        for (int k = 0; k < 40; k++) {
            size_t row = rng_below(&r, N_ROWS), n_blocks = N_COLS / step;
            size_t first = rng_below(&r, n_blocks), n = 1 + rng_below(&r, n_blocks - first);
            struct guard work = guard_open(KERN_ROWS_WORK_BYTES * n * step, 0);
            float y[N_COLS];
            const void *blocks = kern_rows_blocks(&m.rows, row, first * step, n * step, work.data);
            assert_true((blocks == work.data) == kern_rows_are_copied(format->type));
            format->decode(blocks, y, n * step);
            assert_same(&m, y, m.decoded + row * N_COLS + first * step, n * step, "columns");
            assert_true(guard_intact(&work));
            guard_close(&work);
        }
        matrix_close(&m);
    }
}

/** All rows differ: one of a bundle is not another one. */
static void test_rows_differ(void **state)
{
    (void)state;
    const struct kern_quant *format;
    for (size_t i = 0; (format = kern_quant_at(i)); i++) {
        struct matrix m = matrix_open(format, 0);
        for (size_t r = 1; r < gguf_type_info(format->type)->bundle_rows; r++)
            assert_int_not_equal(memcmp(m.decoded, m.decoded + r * N_COLS, sizeof(float) * N_COLS),
                                 0);
        matrix_close(&m);
    }
}

static void check_products(struct kern_backend *b, const struct matrix *m, const float *x)
{
    struct kern_weight stored = {.type = m->rows.type,
                                 .n_rows = N_ROWS,
                                 .n_cols = N_COLS,
                                 .row_bytes = m->rows.row_bytes,
                                 .data = m->rows.data,
                                 .scales = m->rows.scales,
                                 .scale = 1};
    struct kern_weight decoded = stored;
    decoded.scales.data = NULL;
    decoded.type = GGUF_TYPE_F32;
    decoded.row_bytes = sizeof(float) * N_COLS;
    decoded.data = m->decoded;
    float found[N_TOKENS * N_ROWS], expected[N_TOKENS * N_ROWS];
    struct kern_linear op = {.x = x, .y_stride = N_ROWS, .n_tokens = N_TOKENS};
    op.weight = &stored;
    op.y = found;
    assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
    op.weight = &decoded;
    op.y = expected;
    assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
    assert_same(m, found, expected, N_TOKENS * N_ROWS, "a product");

    static const int32_t tokens[] = {0, 7, 47, 1, 30};
    float rows[5 * N_COLS];
    assert_int_equal(kern_embed(b, &stored, tokens, 5, rows, NULL), STATUS_OK);
    for (size_t t = 0; t < 5; t++)
        assert_same(m, rows + t * N_COLS, m->decoded + (size_t)tokens[t] * N_COLS, N_COLS,
                    "an embedding");
}

/** Columns as rows: the even ones of a matrix that has them twice. */
static void check_columns(struct kern_backend *b, const struct matrix *m, const float *x)
{
    struct kern_weight rows = {.type = m->rows.type,
                               .n_rows = N_ROWS,
                               .n_cols = N_COLS,
                               .row_bytes = m->rows.row_bytes,
                               .data = m->rows.data,
                               .scale = 1};
    struct kern_weight columns = rows;
    size_t size = gguf_type_info(m->rows.type)->block_bytes;
    char *turned = malloc(2 * N_ROWS * N_COLS * size);
    float found[N_TOKENS * N_ROWS], expected[N_TOKENS * N_ROWS];
    assert_non_null(turned);
    memset(turned, 0x7f, 2 * N_ROWS * N_COLS * size);
    for (size_t r = 0; r < N_ROWS; r++)
        for (size_t c = 0; c < N_COLS; c++)
            memcpy(turned + 2 * (c * N_ROWS + r) * size,
                   (const char *)m->rows.data + r * m->rows.row_bytes + c * size, size);
    columns.data = turned;
    columns.row_bytes = 2 * size;
    columns.col_step = 2 * size * N_ROWS;
    struct kern_linear op = {.x = x, .y_stride = N_ROWS, .n_tokens = N_TOKENS};
    op.weight = &rows;
    op.y = expected;
    assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
    op.weight = &columns;
    op.y = found;
    assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
    assert_same(m, found, expected, N_TOKENS * N_ROWS, "a product with columns");
    free(turned);
}

static void test_products(void **state)
{
    (void)state;
    struct kern_cpu_options options = {
        .n_threads = 2, .isa_cap = KERN_ISA_COUNT - 1, .precision = KERN_PRECISION_EXACT};
    struct kern_backend *b;
    assert_int_equal(kern_cpu_open(&b, &options, NULL), STATUS_OK);
    float x[N_TOKENS * N_COLS];
    struct rng r = rng_open(rng_seed(), 5);
    for (size_t i = 0; i < N_TOKENS * N_COLS; i++)
        x[i] = rng_normal(&r);
    const struct kern_quant *format;
    for (size_t i = 0; (format = kern_quant_at(i)); i++) {
        struct matrix m = matrix_open(format, i % 2);
        check_products(b, &m, x);
        if (gguf_type_info(format->type)->block_elems == 1 &&
            gguf_type_info(format->type)->row_prefix == 0)
            check_columns(b, &m, x);
        matrix_close(&m);
    }
    kern_close(b);
}

/* Every form of scales that lie apart. Codes and scales are random bits. */
enum { APART_ROWS = 37, APART_COLS = 320 };

/** By the definition of a float of so few bits, in double. */
static double float_of(unsigned code, int exponent_bits, int mantissa_bits, int bias)
{
    int exponent = (int)(code >> mantissa_bits) & ((1 << exponent_bits) - 1);
    double mantissa = (double)(code & ((1u << mantissa_bits) - 1)) / (1 << mantissa_bits);
    double magnitude = exponent ? ldexp(1 + mantissa, exponent - bias) : ldexp(mantissa, 1 - bias);
    return code >> (exponent_bits + mantissa_bits) & 1 ? -magnitude : magnitude;
}

static double e4m3(unsigned code)
{
    return (code & 0x7f) == 0x7f ? (double)NAN : float_of(code, 4, 3, 7);
}

static double e5m2(unsigned code)
{
    if ((code & 0x7f) < 0x7c)
        return float_of(code, 5, 2, 15);
    return (code & 0x7f) > 0x7c ? (double)NAN : code & 0x80 ? -HUGE_VAL : HUGE_VAL;
}

static double fp4(const uint8_t *row, size_t col)
{
    unsigned code = row[col / 2] >> col % 2 * 4 & 15;
    return code == 8 ? 0 : float_of(code, 2, 1, 1); /* GGUF has no -0 */
}

static double scale_of(enum gguf_scale_type type, const uint8_t *scales, size_t i)
{
    uint32_t bits = 0;
    float value = 0;
    memcpy(&bits, scales + i * gguf_scale_bytes(type), gguf_scale_bytes(type));
    switch (type) {
    case GGUF_SCALE_F32:
        memcpy(&value, &bits, sizeof value);
        return (double)value;
    case GGUF_SCALE_F16:
        return float_of(bits, 5, 10, 15);
    case GGUF_SCALE_BF16:
        return float_of(bits, 8, 7, 127);
    case GGUF_SCALE_E8M0:
        return bits == 255 ? (double)NAN : ldexp(1, (int)bits - 127);
    default:
        return e4m3(bits);
    }
}

static double code_of(enum gguf_type type, const uint8_t *row, size_t col)
{
    return type == GGUF_TYPE_F8_E4M3   ? e4m3(row[col])
           : type == GGUF_TYPE_F8_E5M2 ? e5m2(row[col])
                                       : fp4(row, col);
}

struct apart {
    enum gguf_type type;
    struct gguf_scales scales;
    bool chosen; /* rows are chosen by number, backwards */
};

static size_t scale_columns(size_t block_cols)
{
    return block_cols >= APART_COLS ? 1 : (APART_COLS + block_cols - 1) / block_cols;
}

static void check_apart(struct apart a, struct rng *r)
{
    struct gguf_scales *s = &a.scales;
    size_t row_bytes = random_blocks_row_bytes(a.type, APART_COLS);
    s->n_cols = scale_columns(s->block_cols);
    size_t scale_rows = (s->first_row + APART_ROWS - 1) / s->block_rows + 1;
    size_t n_scales = scale_rows * s->n_cols;
    struct guard codes = guard_open(APART_ROWS * row_bytes, 1);
    struct guard scales = guard_open(n_scales * gguf_scale_bytes(s->type), 0);
    rng_bytes(r, codes.data, APART_ROWS * row_bytes);
    rng_bytes(r, scales.data, n_scales * gguf_scale_bytes(s->type));
    for (size_t i = 0; a.type == GGUF_TYPE_NVFP4_APART && i < n_scales; i++)
        ((uint8_t *)scales.data)[i] %= 0x7f; /* which the format has */
    for (size_t i = 0; a.type == GGUF_TYPE_MXFP4_APART && i < n_scales; i++)
        ((uint8_t *)scales.data)[i] %= 0xff;
    for (size_t i = 0; s->type == GGUF_SCALE_F16 && i < n_scales; i++)
        ((uint8_t *)scales.data)[2 * i + 1] &= 0xbf; /* finite */
    for (size_t i = 0; s->type == GGUF_SCALE_BF16 && i < n_scales; i++)
        ((uint8_t *)scales.data)[2 * i + 1] &= 0xbf;
    s->data = scales.data;
    int32_t which[APART_ROWS];
    for (int i = 0; i < APART_ROWS; i++)
        which[i] = APART_ROWS - 1 - i;
    const struct kern_rows rows = {a.type, codes.data, row_bytes, a.chosen ? which : NULL, *s};
    bool bytes = row_bytes == APART_COLS; /* which columns may be rows of */
    uint8_t turned[APART_COLS * APART_ROWS];
    const struct kern_rows columns = {a.type, turned, 1, rows.which, *s, APART_ROWS};
    for (size_t i = 0; bytes && i < sizeof turned; i++)
        turned[i] = ((const uint8_t *)codes.data)[i % APART_ROWS * APART_COLS + i / APART_ROWS];
    for (size_t i = 0; i < APART_ROWS; i++) {
        size_t row = a.chosen ? (size_t)which[i] : i;
        float found[APART_COLS], expected[APART_COLS];
        kern_rows_decode(&rows, kern_quant_find(a.type)->decode, i, 0, APART_COLS, found);
        for (size_t col = 0; col < APART_COLS; col++) {
            size_t at = (s->first_row + row) / s->block_rows * s->n_cols + col / s->block_cols;
            expected[col] =
                (float)(code_of(a.type, (const uint8_t *)codes.data + row * row_bytes, col) *
                        scale_of(s->type, scales.data, at));
        }
        size_t k = compare_bits(found, expected, APART_COLS);
        if (k == APART_COLS && bytes) {
            kern_rows_decode(&columns, kern_quant_find(a.type)->decode, i, 0, APART_COLS, found);
            k = compare_bits(found, expected, APART_COLS);
        }
        if (k < APART_COLS)
            fail_msg("%s, scales of type %d in blocks of %zu x %zu from row %zu on: element %zu of "
                     "row %zu is %a, expected %a",
                     gguf_type_name(a.type), (int)s->type, s->block_rows, s->block_cols,
                     s->first_row, k, i, (double)found[k], (double)expected[k]);
    }
    guard_close(&codes);
    guard_close(&scales);
}

static void test_scales_apart(void **state)
{
    (void)state;
    static const size_t blocks[][2] = {
        {GGUF_SCALES_ALL, GGUF_SCALES_ALL}, {1, GGUF_SCALES_ALL}, {128, 128}, {16, 96}, {5, 32}};
    static const size_t firsts[] = {0, 3, 125};
    struct rng r = rng_open(rng_seed(), 77);
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        for (size_t f = 0; f < sizeof firsts / sizeof *firsts; f++) {
            struct gguf_scales s = {.block_rows = blocks[i][0], .block_cols = blocks[i][1]};
            s.first_row = firsts[f];
            for (int type = GGUF_SCALE_F32; type <= GGUF_SCALE_E4M3; type++) {
                s.type = (enum gguf_scale_type)type;
                check_apart((struct apart){GGUF_TYPE_F8_E4M3, s, type % 2}, &r);
                check_apart((struct apart){GGUF_TYPE_F8_E5M2, s, type % 2 == 0}, &r);
            }
            s.type = GGUF_SCALE_E8M0;
            check_apart((struct apart){GGUF_TYPE_MXFP4_APART, s, f % 2}, &r);
            s.type = GGUF_SCALE_E4M3;
            s.block_cols = s.block_cols == 32 ? 16 : s.block_cols;
            check_apart((struct apart){GGUF_TYPE_NVFP4_APART, s, f % 2}, &r);
        }
}

/** Without scales, each is 1. */
static void test_scales_of_one(void **state)
{
    (void)state;
    for (uint32_t id = 0; id < GGUF_TYPE_LIMIT; id++) {
        const struct gguf_type_info *info = gguf_type_info(id);
        if (!info || info->scale_elems == 0)
            continue;
        uint8_t codes[256];
        float found[256], expected[256];
        uint32_t one[64] = {0};
        const uint8_t byte = id == GGUF_TYPE_NVFP4_APART ? 0x38 : 0x7f;
        const float value = 1;
        struct rng r = rng_open(rng_seed(), id);
        rng_bytes(&r, codes, sizeof codes);
        bool raw = kern_quant_find(info->type)->unweave;
        memcpy(one, raw ? (const void *)&byte : &value, raw ? sizeof byte : sizeof value);
        struct kern_rows rows = {.type = info->type, .data = codes};
        kern_rows_decode(&rows, kern_quant_find(info->type)->decode, 0, 0, 256, found);
        rows.scales = (struct gguf_scales){one, GGUF_SCALE_F32, 1, GGUF_SCALES_ALL, 1, 0};
        kern_rows_decode(&rows, kern_quant_find(info->type)->decode, 0, 0, 256, expected);
        assert_int_equal(compare_bits(found, expected, 256), 256);
    }
}

static void test_invalid_scales(void **state)
{
    (void)state;
    const uint8_t scales[] = {0, 0x7e, 0x7f, 0x80, 0xfe, 0xff};
    const float floats[] = {1, -0.0f, -2, INFINITY, 1, NAN};
    assert_int_equal(kern_scales_find_invalid(GGUF_TYPE_NVFP4_APART, GGUF_SCALE_E4M3, scales, 6),
                     2);
    assert_int_equal(kern_scales_find_invalid(GGUF_TYPE_NVFP4_APART, GGUF_SCALE_E4M3, scales, 2),
                     2);
    assert_int_equal(
        kern_scales_find_invalid(GGUF_TYPE_NVFP4_APART, GGUF_SCALE_E4M3, scales + 3, 3), 0);
    assert_int_equal(kern_scales_find_invalid(GGUF_TYPE_MXFP4_APART, GGUF_SCALE_E8M0, scales, 6),
                     5);
    assert_int_equal(kern_scales_find_invalid(GGUF_TYPE_F8_E4M3, GGUF_SCALE_F32, floats, 6), 3);
    assert_int_equal(kern_scales_find_invalid(GGUF_TYPE_F8_E4M3, GGUF_SCALE_F32, floats + 4, 2), 1);
    assert_int_equal(kern_scales_find_invalid(GGUF_TYPE_F8_E5M2, GGUF_SCALE_F32, floats, 3), 3);
}

/** Part of a bundle is no matrix. */
static void test_whole_bundles(void **state)
{
    (void)state;
    struct kern_cpu_options options = {.n_threads = 1};
    struct kern_backend *b;
    struct status_why why = {""};
    assert_int_equal(kern_cpu_open(&b, &options, NULL), STATUS_OK);
    struct matrix m = matrix_open(kern_quant_find(GGUF_TYPE_IQ4_KS_R4), 0);
    struct kern_weight w = {.type = m.rows.type,
                            .n_rows = 6,
                            .n_cols = N_COLS,
                            .row_bytes = m.rows.row_bytes,
                            .data = m.rows.data};
    const int32_t token = 0;
    float y[N_COLS];
    assert_int_equal(kern_embed(b, &w, &token, 1, y, &why), STATUS_USAGE);
    assert_string_equal(why.text,
                        "embed: matrix: 6 rows; IQ4_KS_R4 stores 4 together and needs a multiple");
    w.n_rows = 8;
    w.row_bytes -= 4;
    assert_int_equal(kern_embed(b, &w, &token, 1, y, &why), STATUS_USAGE);
    assert_string_equal(why.text,
                        "embed: matrix: rows 408 bytes apart; 768 elements of IQ4_KS_R4 take 412");
    matrix_close(&m);
    kern_close(b);
}

int main(void)
{
    rng_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_columns),   cmocka_unit_test(test_rows_differ),
        cmocka_unit_test(test_products),      cmocka_unit_test(test_scales_apart),
        cmocka_unit_test(test_scales_of_one), cmocka_unit_test(test_invalid_scales),
        cmocka_unit_test(test_whole_bundles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

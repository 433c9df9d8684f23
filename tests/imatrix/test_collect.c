/* The collector on a CPU and on a device: what counts as whose rows, and that products stay. */
#include "tests/harness/cmocka.h"
#include <math.h>
#include <string.h>

#include "clients/imatrix/collect.h"
#include "clients/imatrix/squares.h"
#include "kernels/cuda/cuda.h"
#include "kernels/implementation.h"
#include "tests/harness/cpu_backend.h"
#include "tests/harness/host_device.h"

enum { ROWS = 5, COLUMNS = 256, BYTES = ROWS * COLUMNS * sizeof(float) };

static struct gguf_file *file;
static float numbers[ROWS * COLUMNS];
static const uint8_t all_count[ROWS] = {1, 1, 1, 1, 1};

/** The first n rows of a tensor, from row `first` on. */
static struct kern_weight part(const char *name, size_t first, size_t n)
{
    const struct gguf_tensor *t = gguf_tensor_find(file, name);
    assert_non_null(t);
    return (struct kern_weight){.type = t->type->type,
                                .n_rows = n,
                                .n_cols = (size_t)t->ne[0],
                                .row_bytes = (size_t)t->row_bytes,
                                .data = gguf_tensor_row(t, first),
                                .scale = 1};
}

static void multiply(struct kern_backend *b, struct kern_weight weight, float *x, float *y,
                     bool same_x)
{
    const struct kern_linear op = {.weight = &weight,
                                   .x = x,
                                   .y = y,
                                   .y_stride = weight.n_rows,
                                   .n_tokens = ROWS,
                                   .same_x = same_x,
                                   .marks = all_count};
    struct status_why why = {""};
    if (kern_linear(b, &op, &why))
        fail_msg("%s", why.text);
}

/** Products, of which only some count, on any backend. */
static void collect_on(struct kern_backend *b)
{
    struct imat_collector *c;
    struct imat_matrix m = {0};
    void *x, *y;
    float plain[ROWS * 8], collected[ROWS * 8];
    assert_int_equal(kern_alloc(b, &x, BYTES, NULL), STATUS_OK);
    assert_int_equal(kern_alloc(b, &y, BYTES, NULL), STATUS_OK);
    assert_int_equal(kern_upload(b, x, numbers, BYTES, NULL), STATUS_OK);
    multiply(b, part("blk.0.attn_q.weight", 0, 8), x, y, false);
    assert_int_equal(kern_download(b, plain, y, sizeof plain, NULL), STATUS_OK);

    assert_int_equal(imat_collector_open(&c, file, false, NULL), STATUS_OK);
    assert_int_equal(imat_collector_attach(c, &b, 1, NULL), STATUS_OK);
    multiply(b, part("blk.0.attn_v.weight", 0, 8), x, y, false); /* a trial */
    imat_collector_begin(c);
    multiply(b, part("output.weight", 0, 8), x, y, false); /* no layer's */
    multiply(b, part("blk.0.attn_q.weight", 0, 8), x, y, false);
    assert_int_equal(kern_download(b, collected, y, sizeof collected, NULL), STATUS_OK);
    multiply(b, part("blk.0.attn_q.weight", 8, 8), x, y, true); /* not its first rows */
    multiply(b, part("blk.0.attn_k.weight", 0, 8), x, y, true);
    multiply(b, part("blk.0.attn_k.weight", 0, 8), x, y, true);  /* the same again */
    multiply(b, part("blk.0.attn_k.weight", 0, 8), x, y, false); /* and unannounced */
    multiply(b, part("blk.1.attn_q.weight", 0, 8), x, y, false);
    multiply(b, part("blk.0.attn_q.weight", 0, 8), x, y, false); /* the next tile */
    const struct kern_weight uncomputed = part("blk.0.ffn_up.weight", 0, 8);
    assert_int_equal(imat_collector_count(b, &uncomputed, x, ROWS, all_count, NULL), STATUS_OK);
    assert_int_equal(imat_collector_least_rows(c), 0); /* they are the batch's alone */
    assert_int_equal(imat_collector_merge(c, 0, NULL), STATUS_OK);
    assert_int_equal(imat_collector_least_rows(c), ROWS);
    imat_collector_take(c, &m);
    assert_memory_equal(plain, collected, sizeof plain);

    static const struct {
        const char *name;
        uint64_t n_rows;
    } right[] = {{"blk.0.attn_k.weight", ROWS},
                 {"blk.0.attn_q.weight", 2 * ROWS},
                 {"blk.0.ffn_up.weight", ROWS},
                 {"blk.1.attn_q.weight", ROWS}};
    assert_int_equal(m.n, 4);
    for (size_t i = 0; i < m.n; i++) {
        struct imat_sum sums[COLUMNS] = {{0}};
        assert_string_equal(m.entries[i].name, right[i].name);
        assert_int_equal(m.entries[i].counts[0], right[i].n_rows);
        for (size_t j = 0; j < right[i].n_rows * COLUMNS; j++)
            assert_true(imat_squares_add(&sums[j % COLUMNS], numbers[j % (ROWS * COLUMNS)]));
        assert_memory_equal(m.entries[i].sums, sums, sizeof sums);
    }
    imat_free(&m);
    imat_collector_close(c);
    kern_free(b, x);
    kern_free(b, y);
    kern_close(b);
}

/** The first tokens' rows of a product, which marks say count. */
static void multiply_marked(struct kern_backend *b, float *x, float *y, const uint8_t *marks,
                            const uint32_t *mark_rows)
{
    const struct kern_weight weight = part("blk.0.attn_q.weight", 0, 8);
    const struct kern_linear op = {.weight = &weight,
                                   .x = x,
                                   .y = y,
                                   .y_stride = 8,
                                   .n_tokens = ROWS,
                                   .marks = marks,
                                   .mark_rows = mark_rows};
    assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
}

/** The sums of rows of `numbers`. */
static void check_rows(struct imat_collector *c, const size_t *rows, size_t n)
{
    struct imat_sum sums[COLUMNS] = {{0}};
    struct imat_matrix m = {0};
    imat_collector_take(c, &m);
    assert_int_equal(m.n, 1);
    assert_int_equal(m.entries[0].counts[0], n);
    for (size_t i = 0; i < n * COLUMNS; i++)
        assert_true(imat_squares_add(&sums[i % COLUMNS],
                                     numbers[rows[i / COLUMNS] * COLUMNS + i % COLUMNS]));
    assert_memory_equal(m.entries[0].sums, sums, sizeof sums);
    imat_free(&m);
}

static void marked_on(struct kern_backend *b)
{
    static const uint8_t marks[ROWS + 3] = {0, 1, 0, 1, 1, 1, 0, 0}, none[ROWS];
    static const uint32_t rows[ROWS] = {6, 5, 0, 2, 1};
    struct imat_collector *c;
    void *x, *y;
    assert_int_equal(kern_alloc(b, &x, BYTES, NULL), STATUS_OK);
    assert_int_equal(kern_alloc(b, &y, BYTES, NULL), STATUS_OK);
    assert_int_equal(kern_upload(b, x, numbers, BYTES, NULL), STATUS_OK);
    assert_int_equal(imat_collector_open(&c, file, false, NULL), STATUS_OK);
    assert_int_equal(imat_collector_attach(c, &b, 1, NULL), STATUS_OK);
    imat_collector_mask(c);
    imat_collector_begin(c);
    multiply_marked(b, x, y, marks, NULL);
    multiply(b, part("output.weight", 0, 8), x, y, false); /* so that no input comes twice */
    multiply_marked(b, x, y, marks, rows);
    multiply_marked(b, x, y, none, NULL);
    multiply_marked(b, x, y, NULL, NULL); /* rows of no token */
    assert_int_equal(imat_collector_merge(c, 0, NULL), STATUS_OK);
    check_rows(c, (const size_t[]){1, 3, 4, 1, 4}, 5);
    imat_collector_close(c);
    kern_free(b, x);
    kern_free(b, y);
    kern_close(b);
}

/** Sums that are packed, added again, and compared. */
static void packed(void **state)
{
    (void)state;
    struct kern_backend *b = backend_open(KERN_ISA_SCALAR, 1);
    struct base_buffer half = {0};
    struct imat_collector *c;
    struct status_why why = {""};
    float y[ROWS * 8];
    double change;
    assert_int_equal(imat_collector_open(&c, file, false, NULL), STATUS_OK);
    assert_int_equal(imat_collector_attach(c, &b, 1, NULL), STATUS_OK);
    imat_collector_begin(c);
    multiply(b, part("blk.0.attn_q.weight", 0, 8), numbers, y, false);
    assert_int_equal(imat_collector_merge(c, 0, NULL), STATUS_OK);
    assert_int_equal(imat_collector_pack(c, &half, NULL), STATUS_OK);
    assert_int_equal(half.n, 16 + COLUMNS * sizeof(struct imat_sum));
    const struct base_string bytes = {half.data, half.n}, cut = {half.data, half.n - 1};
    assert_int_equal(imat_collector_unpack(c, bytes, NULL), STATUS_OK);
    assert_int_equal(imat_collector_least_rows(c), 2 * ROWS);
    assert_int_equal(imat_collector_change(c, bytes, &change, NULL), STATUS_OK);
    assert_true(change >= 0 && change < 1e-12);
    assert_int_equal(imat_collector_unpack(c, cut, &why), STATUS_FORMAT);
    assert_non_null(strstr(why.text, "byte 0 of the sums is of no matrix of "));

    /* A single column has all of as much again: half of the sum has moved there. */
    imat_collector_clear(c);
    float one[COLUMNS] = {0};
    double all = 0, first = 0;
    for (size_t i = 0; i < ROWS * COLUMNS; i++) {
        all += (double)numbers[i] * (double)numbers[i];
        first += i % COLUMNS == 0 ? (double)numbers[i] * (double)numbers[i] : 0;
    }
    one[0] = sqrtf((float)all);
    assert_int_equal(imat_collector_unpack(c, bytes, NULL), STATUS_OK);
    const struct kern_weight weight = part("blk.0.attn_q.weight", 0, 8);
    const struct kern_linear op = {.weight = &weight,
                                   .x = one,
                                   .y = y,
                                   .y_stride = 8,
                                   .n_tokens = 1,
                                   .marks = (const uint8_t[]){1}};
    assert_int_equal(kern_linear(b, &op, NULL), STATUS_OK);
    assert_int_equal(imat_collector_merge(c, 0, NULL), STATUS_OK);
    assert_int_equal(imat_collector_change(c, bytes, &change, NULL), STATUS_OK);
    assert_true(fabs(change - (1 - first / all) / 2) < 1e-6);
    assert_int_equal(imat_collector_change(c, (struct base_string){NULL, 0}, &change, NULL),
                     STATUS_OK);
    assert_true(change == 1);
    base_buffer_free(&half);
    imat_collector_close(c);
    kern_close(b);
}

static void on_a_cpu(void **state)
{
    (void)state;
    collect_on(backend_open(KERN_ISA_SCALAR, 2));
    marked_on(backend_open(KERN_ISA_SCALAR, 2));
}

static struct kern_backend *device(void)
{
    const struct host_device_options options = {.order = HOST_DEVICE_UPLOADS_LATE};
    struct kern_backend *b = NULL;
    struct status_why why = {""};
    if (kern_cuda_open(&b, host_device_open(&options, NULL), &(struct kern_cuda_options){0}, &why))
        fail_msg("%s", why.text);
    return b;
}

static void on_a_device(void **state)
{
    (void)state;
    collect_on(device());
    marked_on(device());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_a_cpu), cmocka_unit_test(on_a_device),
                                       cmocka_unit_test(packed)};
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        numbers[i] = (float)(i % 101) / 64 - 0.7F;
    if (gguf_open(&file, ASSAY_SOURCE_DIR "/data/tiny.F16.gguf", NULL))
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    gguf_close(file);
    return failed;
}

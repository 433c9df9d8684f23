/*
 * What the backend makes of cuBLASLt, whatever that does: refuses, fails, asks for a workspace,
 * proposes in another order, is slow. A fake library is loaded in its place; all else is on a
 * device of the host's memory.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/device/cublas.h"
#include "kernels/operations.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/compare.h"
#include "tests/harness/host_device.h"
#include "tests/harness/rng.h"
#include "tests/kernels/fake_cublas.h"

enum { TOKENS = 20, ROWS = 60, COLS = 32, ALL = 0xff };

static struct fake_cublas *fake;

/** The device whose products are the library's. */
static struct {
    struct kern_cuda_device_ops ops;
    struct kern_cublas *blas;
    void *workspace;
} real;

static enum status gemm(struct kern_cuda_device *d, const struct kern_cuda_gemm *g,
                        struct status_why *why)
{
    (void)d;
    enum status status = STATUS_OK;
    if (!real.blas)
        status = kern_cublas_open(&real.blas, real.workspace, why);
    return status ? status : kern_cublas_multiply(real.blas, g, NULL, why);
}

static enum status multiply(enum kern_precision precision, const float *matrix, const float *x,
                            float *y, struct status_why *why)
{
    struct host_device_log log = {0};
    struct kern_cuda_device *device = host_device_open(&(struct host_device_options){0}, &log);
    real.ops = *device->ops;
    real.ops.gemm = gemm;
    device->ops = &real.ops;
    struct kern_backend *b;
    const struct kern_cuda_options options = {
        .precision = precision, .panel_size = 1 << 10, .product_tokens = 48, .product_step = 16};
    const struct kern_weight weight = {.type = GGUF_TYPE_F32,
                                       .n_rows = ROWS,
                                       .n_cols = COLS,
                                       .row_bytes = COLS * sizeof *matrix,
                                       .data = matrix,
                                       .scale = 1.0f,
                                       .generation = 1};
    enum status status = kern_cuda_open(&b, device, &options, why);
    /* The device's memory is the host's. */
    struct kern_linear op = {
        .weight = &weight, .x = x, .y = y, .y_stride = ROWS, .n_tokens = TOKENS};
    if (!status)
        status = kern_linear(b, &op, why);
    float last; /* everything queued is done */
    if (!status)
        status = kern_download(b, &last, y, sizeof last, why);
    kern_close(b);
    kern_cublas_close(real.blas);
    real.blas = NULL;
    assert_int_equal(log.n_left, 0);
    assert_int_equal(fake->n_alive, 0);
    return status;
}

/** status 0: the result has the bits of the first row's; else the sentence contains `says`. */
static const struct {
    const char *name;
    struct fake_cublas fake;
    enum status status;
    const char *says;
} rows[] = {
    {"plain", {.n_algorithms = 5}, STATUS_OK, NULL},
    {"another order", {.n_algorithms = 5, .reversed = true}, STATUS_OK, NULL},
    {"more than are tried", {.n_algorithms = 30}, STATUS_OK, NULL},
    {"slow", {.n_algorithms = 3, .slow = 2}, STATUS_OK, NULL},
    {"bits", {.n_algorithms = 5, .other_bits = ALL & ~1U}, STATUS_OK, NULL},
    {"splits, but one", {.n_algorithms = 5, .splitting = ALL & ~8U}, STATUS_OK, NULL},
    {"states, but one", {.n_algorithms = 5, .unusable = ALL & ~16U}, STATUS_OK, NULL},
    {"refuses the first", {.n_algorithms = 5, .refused = 1}, STATUS_OK, NULL},
    {"refuses, but the last", {.n_algorithms = 5, .refused = 15}, STATUS_OK, NULL},
    {"refuses late", {.n_algorithms = 5, .refused_late = 5}, STATUS_OK, NULL},
    {"fewer", {.n_algorithms = 5, .planned_only = ALL}, STATUS_OK, NULL},
    {"workspace", {.n_algorithms = 5, .workspace = KERN_CUBLAS_WORKSPACE}, STATUS_OK, NULL},
    {"more for fewer",
     {.n_algorithms = 5, .larger_workspace = KERN_CUBLAS_WORKSPACE + 1},
     STATUS_OK,
     NULL},
    {"too much workspace",
     {.n_algorithms = 5, .workspace = KERN_CUBLAS_WORKSPACE + 1},
     STATUS_UNSUPPORTED,
     "no algorithm for a product"},
    {"none", {.n_algorithms = 0}, STATUS_UNSUPPORTED, "no algorithm for a product"},
    {"all split", {.n_algorithms = 5, .splitting = ALL}, STATUS_UNSUPPORTED, "in one piece"},
    {"all refused", {.n_algorithms = 5, .refused = ALL}, STATUS_UNSUPPORTED, "cannot multiply"},
    {"all refused late", {.n_algorithms = 5, .refused_late = ALL}, STATUS_UNSUPPORTED, "cannot"},
    {"no heuristic", {.heuristic = CUBLAS_STATUS_NOT_SUPPORTED}, STATUS_UNSUPPORTED, "no algor"},
    {"heuristic", {.heuristic = CUBLAS_STATUS_INTERNAL_ERROR}, STATUS_DEVICE, "asking for alg"},
    {"fails", {.n_algorithms = 5, .failing = 2}, STATUS_DEVICE, "cuBLASLt: multiplying"},
    {"start", {.create = CUBLAS_STATUS_NOT_INITIALIZED}, STATUS_DEVICE, "cuBLASLt: starting"},
    {"layout", {.layout = CUBLAS_STATUS_ALLOC_FAILED}, STATUS_DEVICE, "asking for alg"},
};

static void test_whatever_it_does(void **state)
{
    (void)state;
    struct rng r = rng_open(rng_seed(), 70);
    float matrix[ROWS * COLS], x[TOKENS * COLS];
    float found[TOKENS * ROWS], expected[2][TOKENS * ROWS];
    for (size_t i = 0; i < ROWS * COLS; i++)
        matrix[i] = rng_normal(&r);
    for (size_t i = 0; i < TOKENS * COLS; i++)
        x[i] = rng_normal(&r);
    for (size_t i = 0; i < 2 * (sizeof rows / sizeof *rows); i++) {
        struct status_why why = {""};
        *fake = rows[i / 2].fake;
        enum status status =
            multiply(i % 2 ? KERN_PRECISION_HIGH : KERN_PRECISION_FAST, matrix, x, found, &why);
        if (status != rows[i / 2].status)
            fail_msg("%s: %s, %s", rows[i / 2].name, status_name(status), why.text);
        if (i < 2)
            memcpy(expected[i], found, sizeof found);
        if (status && !strstr(why.text, rows[i / 2].says))
            fail_msg("%s: %s", rows[i / 2].name, why.text);
        if (!status && compare_bits(found, expected[i % 2], TOKENS * ROWS) != TOKENS * ROWS)
            fail_msg("%s: other bits", rows[i / 2].name);
    }
}

int main(void)
{
    /* Who asks for cuBLASLt later gets what has its name already. */
    void *library = dlopen(FAKE_CUBLAS, RTLD_NOW | RTLD_LOCAL);
    fake = library ? dlsym(library, "fake_cublas") : NULL;
    real.workspace = malloc(KERN_CUBLAS_WORKSPACE);
    if (!fake || !real.workspace)
        return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whatever_it_does)};
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(real.workspace);
    return n_failed;
}

#include "bench/cuda_ceiling.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/kernels/product.h"

enum { MOST = 8192 * 14336, REPEATS = 6 };

/** Rows of tokens and of weights, and columns. */
struct shape {
    size_t n_a, n_b, n_k;
};

struct measuring {
    struct kern_cuda_device *device;
    uint16_t *a, *b;
    float *c;
    size_t n_runs;
};

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static enum status fill(const struct measuring *m, uint16_t *to, struct status_why *why)
{
    struct kern_fill_args args = {
        .to = to, .n_elems = MOST, .n_cols = 4096, .period = MOST / 4096, .seed = 1};
    struct kern_cuda_launch launch = {.kernel = KERN_CUDA_FILL,
                                      .n_blocks = (MOST + KERN_FILL_ELEMS - 1) / KERN_FILL_ELEMS,
                                      .args = &args};
    return m->device->ops->launch(m->device, &launch, why);
}

static enum status allocate(struct measuring *m, struct status_why *why)
{
    void *memory[3] = {NULL, NULL, NULL};
    const size_t n_bytes[3] = {MOST * sizeof *m->a, MOST * sizeof *m->b, MOST * sizeof *m->c};
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < 3; i++)
        status = m->device->ops->alloc(m->device, &memory[i], n_bytes[i], why);
    m->a = memory[0];
    m->b = memory[1];
    m->c = memory[2];
    if (status == STATUS_OK)
        status = fill(m, m->a, why);
    return status == STATUS_OK ? fill(m, m->b, why) : status;
}

/** Seconds of one product in each run; the first warms up. */
static enum status time_runs(const struct measuring *m, const struct kern_cuda_gemm *gemm,
                             double *seconds, struct status_why *why)
{
    const struct kern_cuda_device_ops *ops = m->device->ops;
    enum status status = STATUS_OK;
    for (size_t run = 0; status == STATUS_OK && run <= m->n_runs; run++) {
        double all = 0.0;
        status = ops->mark(m->device, 0, why);
        for (int i = 0; status == STATUS_OK && i < REPEATS; i++)
            status = ops->gemm(m->device, gemm, why);
        if (status == STATUS_OK)
            status = ops->mark(m->device, 1, why);
        if (status == STATUS_OK)
            status = ops->elapsed(m->device, 0, 1, &all, why);
        if (run > 0)
            seconds[run - 1] = all / REPEATS;
    }
    return status;
}

static enum status measure_shape(const struct measuring *m, const struct shape *shape,
                                 struct cuda_ceiling *best, struct status_why *why)
{
    struct kern_cuda_gemm gemm = {.a = m->a,
                                  .b = m->b,
                                  .c = m->c,
                                  .n_a = shape->n_a,
                                  .n_b = shape->n_b,
                                  .n_k = shape->n_k,
                                  .plan_a = shape->n_a,
                                  .plan_b = shape->n_b};
    double flops = 2.0 * (double)shape->n_a * (double)shape->n_b * (double)shape->n_k;
    for (; gemm.algorithm < KERN_CUDA_MAX_ALGORITHMS; gemm.algorithm++) {
        double seconds[CUDA_CEILING_RUNS];
        enum status status = time_runs(m, &gemm, seconds, why);
        if (status == STATUS_UNSUPPORTED) /* not this one, or there are no more */
            continue;
        if (status != STATUS_OK)
            return status;
        qsort(seconds, m->n_runs, sizeof *seconds, by_size);
        double median = seconds[m->n_runs / 2];
        if (flops / median <= best->rate)
            continue;
        best->rate = flops / median;
        best->flops = flops;
        best->seconds = median;
        best->spread = (seconds[m->n_runs - 1] - seconds[0]) / median;
        snprintf(best->detail, sizeof best->detail, "%zu x %zu x %zu, algorithm %u", shape->n_a,
                 shape->n_b, shape->n_k, gemm.algorithm);
    }
    return STATUS_OK;
}

enum status cuda_ceiling_measure(struct cuda_ceiling *out, unsigned index, size_t n_runs,
                                 struct status_why *why)
{
    static const struct shape shapes[] = {
        {4096, 4096, 4096}, {14336, 4096, 4096}, {4096, 4096, 14336}, {8192, 8192, 8192}};
    struct measuring m = {.n_runs = n_runs < CUDA_CEILING_RUNS ? n_runs : CUDA_CEILING_RUNS};
    *out = (struct cuda_ceiling){0};
    enum status status = kern_cuda_device_open(&m.device, index, why);
    if (status != STATUS_OK)
        return status;
    status = allocate(&m, why);
    for (size_t i = 0; status == STATUS_OK && i < sizeof shapes / sizeof *shapes; i++)
        status = measure_shape(&m, &shapes[i], out, why);
    if (status == STATUS_OK && out->rate <= 0.0)
        status = status_fail(why, STATUS_UNSUPPORTED, "no product of halves could be computed");
    void *const memory[] = {m.a, m.b, m.c};
    for (size_t i = 0; i < 3; i++)
        m.device->ops->free(m.device, memory[i]);
    m.device->ops->close(m.device);
    return status;
}

/**
 * A device of host memory where a card would be: an H100's shared memory, a real clock, and
 * products that are fast enough for trials of 4096 tokens.
 */
#include <stdlib.h>
#include <time.h>

#include "kernels/quant/bytes.h"
#include "tests/harness/host_device.h"

enum { SHARED_BYTES = 227 << 10, LANES = 64 };

#define MEMORY_BYTES ((size_t)4 << 30)

static double marks[KERN_CUDA_MAX_MARKS]; /* of all devices: what is timed is timed by one */

static enum status card_mark(struct kern_cuda_device *d, unsigned mark, struct status_why *why)
{
    struct timespec now;
    (void)d;
    (void)why;
    timespec_get(&now, TIME_UTC);
    marks[mark] = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    return STATUS_OK;
}

static enum status card_elapsed(struct kern_cuda_device *d, unsigned from, unsigned to,
                                double *seconds, struct status_why *why)
{
    (void)d;
    (void)why;
    *seconds = marks[to] - marks[from];
    return STATUS_OK;
}

/** [n_k][n_rows rounded up to LANES], zeros beyond the rows; free() it. */
static float *turned(const uint16_t *rows, size_t n_rows, size_t n_k)
{
    size_t stride = (n_rows + LANES - 1) / LANES * LANES;
    float *out = calloc(stride * n_k, sizeof *out);
    if (!out)
        abort();
    for (size_t i = 0; i < n_rows; i++)
        for (size_t k = 0; k < n_k; k++)
            out[k * stride + i] = kern_half_to_float(rows[i * n_k + k]);
    return out;
}

/** c[j][i..], each a chain in the order of k. */
static void add_lanes(const float *a, size_t stride, const float *b, size_t b_stride, size_t n_k,
                      float sums[LANES])
{
    for (size_t i = 0; i < LANES; i++)
        sums[i] = 0.0f;
    for (size_t k = 0; k < n_k; k++)
        for (size_t i = 0; i < LANES; i++)
            sums[i] += a[k * stride + i] * b[k * b_stride];
}

/** What is before it on the stream is done: in this order computing is never late. */
static enum status card_gemm(struct kern_cuda_device *d, const struct kern_cuda_gemm *g,
                             struct status_why *why)
{
    (void)d;
    if (g->algorithm > 0)
        return status_fail(why, STATUS_UNSUPPORTED, "no such algorithm");
    size_t stride = (g->n_a + LANES - 1) / LANES * LANES;
    size_t c_stride = g->c_stride ? g->c_stride : g->n_a;
    size_t b_stride = (g->n_b + LANES - 1) / LANES * LANES;
    float *a = turned(g->a, g->n_a, g->n_k), *b = turned(g->b, g->n_b, g->n_k);
    for (size_t i = 0; i < g->n_a; i += LANES) {
        for (size_t j = 0; j < g->n_b; j++) {
            float sums[LANES];
            add_lanes(a + i, stride, b + j, b_stride, g->n_k, sums);
            for (size_t lane = 0; lane < LANES && i + lane < g->n_a; lane++)
                g->c[j * c_stride + i + lane] = sums[lane];
        }
    }
    free(a);
    free(b);
    return STATUS_OK;
}

enum status kern_cuda_device_open(struct kern_cuda_device **out, unsigned index,
                                  struct status_why *why)
{
    static struct kern_cuda_device_ops ops; /* of the first device: all have the same */
    const struct host_device_options options = {.memory_bytes = MEMORY_BYTES,
                                                .shared_bytes = SHARED_BYTES,
                                                .order = HOST_DEVICE_UPLOADS_LATE};
    *out = NULL;
    if (index > 0)
        return status_fail(why, STATUS_DEVICE, "there is no device %u, expected 0", index);
    struct kern_cuda_device *device = host_device_open(&options, NULL);
    if (!device)
        return status_fail(why, STATUS_MEMORY, "no memory for a device");
    if (!ops.close) {
        ops = *device->ops;
        ops.gemm = card_gemm;
        ops.mark = card_mark;
        ops.elapsed = card_elapsed;
    }
    device->ops = &ops;
    *out = device;
    return STATUS_OK;
}

unsigned kern_cuda_n_devices(void)
{
    return 1;
}

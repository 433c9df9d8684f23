#include "tests/harness/host_device.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/device/kernels.h"
#include "kernels/cuda/device/staging.h"
#include "kernels/quant/bytes.h"
#include "tests/harness/run_kernel.h"

enum {
    MAX_BLOCKS = 4096,
    N_ALGORITHMS = 5,
    ALIGNMENT = 256,
    GAP = 4096, /* after each allocation: an index that is too large does not meet the next one */
    SHARED_BYTES = 99 << 10
};

enum kind { COPY, CLEAR, LAUNCH, GEMM, SIGNAL, WAIT, MARK };

/** A piece of queued work. */
struct work {
    enum kind kind;
    void *to;
    void *bytes; /* COPY: the source's bytes; LAUNCH: the arguments */
    size_t n_bytes;
    int byte;
    struct kern_cuda_launch launch;
    struct kern_cuda_gemm gemm;
    unsigned event;
    size_t signal; /* SIGNAL: its number; WAIT: that of the signal it waits for, or 0 */
    struct work *next;
};

struct queue {
    struct work *first, *last;
};

struct allocation {
    void *memory;
    size_t n_bytes;
};

struct host_device {
    struct kern_cuda_device base;
    struct host_device_options options;
    struct host_device_log *log, own_log;
    struct queue queues[KERN_CUDA_N_STREAMS];
    struct allocation blocks[MAX_BLOCKS];
    size_t used_bytes, n_signals;
    double now, marks[KERN_CUDA_MAX_MARKS]; /* what work would have taken so far */
    size_t queued[KERN_CUDA_MAX_EVENTS], done[KERN_CUDA_MAX_EVENTS]; /* last signals */
};

static struct host_device *of(struct kern_cuda_device *d)
{
    return (struct host_device *)d;
}

/** Count a call; the one that was chosen fails. */
static enum status count(struct host_device *d, struct status_why *why)
{
    if (++d->log->n_calls == d->options.fail_at)
        return status_fail(why, STATUS_DEVICE, "the device was made to fail");
    return STATUS_OK;
}

static float dot(const uint16_t *a, const uint16_t *b, size_t n)
{
    float sum = 0.0f;
    for (size_t k = 0; k < n; k++)
        sum += kern_half_to_float(a[k]) * kern_half_to_float(b[k]);
    return sum;
}

/** Whether n of the planned rows are most of them, but not all. */
static bool is_middle(size_t n, size_t planned)
{
    return n < planned && 2 * n > planned;
}

/** How many times 2^-22 the sum at (i, j) is off. */
static size_t error_of(enum host_device_gemm way, const struct kern_cuda_gemm *g, size_t i,
                       size_t j)
{
    switch (way) {
    case HOST_DEVICE_GEMM_BY_NUMBER:
        return g->n_a + g->n_b;
    case HOST_DEVICE_GEMM_BY_MIDDLE:
        return is_middle(g->n_a, g->plan_a) || is_middle(g->n_b, g->plan_b);
    case HOST_DEVICE_GEMM_BY_PLACE:
        return i + j;
    default:
        return g->algorithm % 2;
    }
}

static bool has_several_algorithms(enum host_device_gemm way)
{
    return way >= HOST_DEVICE_GEMM_FASTER;
}

static void run_gemm(struct host_device *d, const struct kern_cuda_gemm *g)
{
    enum host_device_gemm way = d->options.gemm;
    run_kernel_memory(RUN_KERNEL_READ, g->a, g->n_a * g->n_k * sizeof *g->a);
    run_kernel_memory(RUN_KERNEL_READ, g->b, g->n_b * g->n_k * sizeof *g->b);
    for (size_t j = 0; j < g->n_b; j++) {
        float *c = g->c + j * (g->c_stride ? g->c_stride : g->n_a);
        run_kernel_memory(RUN_KERNEL_WRITTEN, c, g->n_a * sizeof *c);
        for (size_t i = 0; i < g->n_a; i++) {
            float sum = dot(g->a + i * g->n_k, g->b + j * g->n_k, g->n_k);
            c[i] = sum * (1.0f + 0x1p-22f * (float)error_of(way, g, i, j));
        }
    }
    bool slower = !has_several_algorithms(way) || way == HOST_DEVICE_GEMM_SLOWER;
    d->now += slower ? 1.0 + g->algorithm : 1.0 / (1.0 + g->algorithm);
}

static void step(struct host_device *d, enum kern_cuda_stream stream);

static void run_work(struct host_device *d, enum kern_cuda_stream stream, const struct work *w)
{
    switch (w->kind) {
    case COPY:
        memcpy(w->to, w->bytes, w->n_bytes);
        run_kernel_memory(RUN_KERNEL_WRITTEN, w->to, w->n_bytes);
        return;
    case CLEAR:
        memset(w->to, w->byte, w->n_bytes);
        run_kernel_memory(RUN_KERNEL_WRITTEN, w->to, w->n_bytes);
        return;
    case LAUNCH:
        run_kernel_launch(&w->launch, d->options.backwards);
        return;
    case GEMM:
        run_gemm(d, &w->gemm);
        return;
    case MARK:
        d->marks[w->event] = d->now;
        return;
    case SIGNAL:
        d->done[w->event] = w->signal;
        return;
    case WAIT:
        /* No further than the signal: what is after it may wait for this stream. */
        while (d->done[w->event] < w->signal)
            step(d, stream == KERN_CUDA_COMPUTE ? KERN_CUDA_COPY : KERN_CUDA_COMPUTE);
        return;
    }
}

/** Do the first piece of a stream's work; there must be one. */
static void step(struct host_device *d, enum kern_cuda_stream stream)
{
    struct queue *queue = &d->queues[stream];
    struct work *w = queue->first;
    if (!w)
        abort(); /* it was waited for, but never queued */
    queue->first = w->next;
    if (!queue->first)
        queue->last = NULL;
    run_work(d, stream, w);
    free(w->bytes);
    free(w);
}

static void drain(struct host_device *d, enum kern_cuda_stream stream)
{
    while (d->queues[stream].first)
        step(d, stream);
}

/** Queue a copy of *w. bytes, n_bytes: copied, too, where there are any. */
static enum status enqueue(struct host_device *d, enum kern_cuda_stream stream,
                           const struct work *w, const void *bytes, size_t n_bytes)
{
    struct work *own = malloc(sizeof *own);
    if (!own)
        abort();
    *own = *w;
    own->next = NULL;
    if (bytes) {
        if (posix_memalign(&own->bytes, 64, n_bytes + 1) != 0)
            abort();
        memcpy(own->bytes, bytes, n_bytes);
        own->launch.args = own->bytes;
    }
    struct queue *queue = &d->queues[stream];
    if (queue->last)
        queue->last->next = own;
    else
        queue->first = own;
    queue->last = own;
    bool late = (d->options.order == HOST_DEVICE_UPLOADS_LATE && stream == KERN_CUDA_COPY) ||
                (d->options.order == HOST_DEVICE_COMPUTE_LATE && stream == KERN_CUDA_COMPUTE);
    if (!late)
        drain(d, stream);
    return STATUS_OK;
}

static enum status host_alloc(struct kern_cuda_device *device, void **out, size_t n_bytes,
                              struct status_why *why)
{
    struct host_device *d = of(device);
    *out = NULL;
    enum status status = count(d, why);
    if (status != STATUS_OK)
        return status;
    size_t i = 0;
    while (i < MAX_BLOCKS && d->blocks[i].memory)
        i++;
    if (d->used_bytes + n_bytes > d->options.memory_bytes || i == MAX_BLOCKS)
        return status_fail(why, STATUS_MEMORY, "%zu bytes asked for on the device, %zu are free",
                           n_bytes, d->options.memory_bytes - d->used_bytes);
    if (posix_memalign(out, ALIGNMENT, n_bytes + GAP) != 0)
        abort();
    memset(*out, 0xff, n_bytes + GAP);
    run_kernel_memory(RUN_KERNEL_NEW, *out, n_bytes);
    d->blocks[i] = (struct allocation){*out, n_bytes};
    d->log->n_allocs++;
    d->used_bytes += n_bytes;
    if (d->used_bytes > d->log->peak_bytes)
        d->log->peak_bytes = d->used_bytes;
    return STATUS_OK;
}

static void host_free(struct kern_cuda_device *device, void *memory)
{
    struct host_device *d = of(device);
    if (!memory)
        return;
    drain(d, KERN_CUDA_COPY);
    drain(d, KERN_CUDA_COMPUTE);
    size_t i = 0;
    while (i < MAX_BLOCKS && d->blocks[i].memory != memory)
        i++;
    if (i == MAX_BLOCKS)
        abort(); /* not ours, or freed before */
    d->used_bytes -= d->blocks[i].n_bytes;
    memset(memory, 0xff, d->blocks[i].n_bytes); /* who still uses it reads NaN */
    run_kernel_memory(RUN_KERNEL_FREED, memory, d->blocks[i].n_bytes);
    d->blocks[i].memory = NULL;
    free(memory);
}

static enum status host_memory(struct kern_cuda_device *device, size_t *free_bytes,
                               size_t *total_bytes, struct status_why *why)
{
    struct host_device *d = of(device);
    *free_bytes = d->options.memory_bytes - d->used_bytes;
    *total_bytes = d->options.memory_bytes;
    return count(d, why);
}

static enum status host_copy_in(struct kern_cuda_device *device, enum kern_cuda_stream stream,
                                void *to, const struct kern_cuda_rows *rows, struct status_why *why)
{
    struct host_device *d = of(device);
    enum status status = count(d, why);
    d->log->n_copies_in++;
    size_t n_bytes = rows->n_rows * rows->row_bytes;
    struct work w = {.kind = COPY, .to = to, .n_bytes = n_bytes};
    char *bytes = malloc(n_bytes + 1);
    if (!bytes)
        abort();
    kern_cuda_rows_gather(NULL, rows, 0, n_bytes, bytes);
    if (status == STATUS_OK)
        status = enqueue(d, stream, &w, bytes, n_bytes);
    free(bytes);
    return status;
}

static enum status host_copy_out(struct kern_cuda_device *device, enum kern_cuda_stream stream,
                                 void *to, const void *from, size_t n_bytes, struct status_why *why)
{
    struct host_device *d = of(device);
    enum status status = count(d, why);
    d->log->n_copies_out++;
    if (status != STATUS_OK)
        return status;
    drain(d, stream);
    memcpy(to, from, n_bytes);
    return STATUS_OK;
}

static enum status host_clear(struct kern_cuda_device *device, void *to, int byte, size_t n_bytes,
                              struct status_why *why)
{
    struct host_device *d = of(device);
    enum status status = count(d, why);
    struct work w = {.kind = CLEAR, .to = to, .byte = byte, .n_bytes = n_bytes};
    return status == STATUS_OK ? enqueue(d, KERN_CUDA_COMPUTE, &w, NULL, 0) : status;
}

static enum status host_launch(struct kern_cuda_device *device,
                               const struct kern_cuda_launch *launch, struct status_why *why)
{
    struct host_device *d = of(device);
    enum status status = count(d, why);
    if (status == STATUS_OK && launch->shared_bytes > device->shared_bytes)
        status =
            status_fail(why, STATUS_DEVICE, "%zu bytes of shared memory", launch->shared_bytes);
    if (status != STATUS_OK)
        return status;
    d->log->n_launches[launch->kernel]++;
    struct work w = {.kind = LAUNCH, .launch = *launch};
    return enqueue(d, KERN_CUDA_COMPUTE, &w, launch->args,
                   kern_cuda_kernel_info(launch->kernel)->args_bytes);
}

static enum status host_gemm(struct kern_cuda_device *device, const struct kern_cuda_gemm *gemm,
                             struct status_why *why)
{
    struct host_device *d = of(device);
    enum status status = count(d, why);
    if (status != STATUS_OK)
        return status;
    if (d->options.gemm == HOST_DEVICE_GEMM_PLANNED_ONLY &&
        (gemm->n_a < gemm->plan_a || gemm->n_b < gemm->plan_b))
        return status_fail(why, STATUS_UNSUPPORTED, "fewer rows than planned");
    if (gemm->algorithm >= (has_several_algorithms(d->options.gemm) ? N_ALGORITHMS : 1))
        return status_fail(why, STATUS_UNSUPPORTED, "no such algorithm");
    d->log->n_gemms++;
    d->log->last_algorithm = gemm->algorithm;
    struct work w = {.kind = GEMM, .gemm = *gemm};
    return enqueue(d, KERN_CUDA_COMPUTE, &w, NULL, 0);
}

static enum status host_signal(struct kern_cuda_device *device, enum kern_cuda_stream stream,
                               unsigned event, struct status_why *why)
{
    struct host_device *d = of(device);
    enum status status = count(d, why);
    if (status != STATUS_OK)
        return status;
    struct work w = {.kind = SIGNAL, .event = event, .signal = ++d->n_signals};
    d->queued[event] = w.signal;
    return enqueue(d, stream, &w, NULL, 0);
}

static enum status host_wait(struct kern_cuda_device *device, enum kern_cuda_stream stream,
                             unsigned event, struct status_why *why)
{
    struct host_device *d = of(device);
    enum status status = count(d, why);
    struct work w = {.kind = WAIT, .event = event, .signal = d->queued[event]};
    return status == STATUS_OK ? enqueue(d, stream, &w, NULL, 0) : status;
}

static enum status host_mark(struct kern_cuda_device *device, unsigned mark, struct status_why *why)
{
    struct host_device *d = of(device);
    enum status status = count(d, why);
    struct work w = {.kind = MARK, .event = mark};
    return status == STATUS_OK ? enqueue(d, KERN_CUDA_COMPUTE, &w, NULL, 0) : status;
}

static enum status host_elapsed(struct kern_cuda_device *device, unsigned from, unsigned to,
                                double *seconds, struct status_why *why)
{
    struct host_device *d = of(device);
    drain(d, KERN_CUDA_COMPUTE);
    *seconds = d->marks[to] - d->marks[from];
    return count(d, why);
}

static void host_close(struct kern_cuda_device *device)
{
    struct host_device *d = of(device);
    drain(d, KERN_CUDA_COPY);
    drain(d, KERN_CUDA_COMPUTE);
    for (size_t i = 0; i < MAX_BLOCKS; i++) {
        if (!d->blocks[i].memory)
            continue;
        d->log->n_left++;
        run_kernel_memory(RUN_KERNEL_FREED, d->blocks[i].memory, d->blocks[i].n_bytes);
        free(d->blocks[i].memory);
    }
    free(d);
}

static const struct kern_cuda_device_ops host_ops = {
    .close = host_close,
    .alloc = host_alloc,
    .free = host_free,
    .memory = host_memory,
    .copy_in = host_copy_in,
    .copy_out = host_copy_out,
    .clear = host_clear,
    .launch = host_launch,
    .gemm = host_gemm,
    .signal = host_signal,
    .wait = host_wait,
    .mark = host_mark,
    .elapsed = host_elapsed,
};

struct kern_cuda_device *host_device_open(const struct host_device_options *options,
                                          struct host_device_log *log)
{
    struct host_device *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->base.ops = &host_ops;
    memcpy(d->base.name, "host", sizeof "host");
    d->base.shared_bytes = options->shared_bytes ? options->shared_bytes : SHARED_BYTES;
    d->options = *options;
    if (d->options.memory_bytes == 0)
        d->options.memory_bytes = (size_t)1 << 30;
    d->log = log ? log : &d->own_log;
    *d->log = (struct host_device_log){0};
    return &d->base;
}

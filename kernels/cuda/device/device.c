/* The real device: CUDA's runtime under the interface of device.h. */
#include "kernels/cuda/device/device.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cuda/device/cublas.h"
#include "kernels/cuda/device/kernels.h"
#include "kernels/cuda/device/staging.h"

enum {
    PINNED_BYTES = 16 << 20, /* of a staging buffer: a copy of a third of a millisecond */
    N_PINNED = 4,            /* of each stream */
    SMALL_BYTES = 64 << 10,  /* of a buffer for small copies: positions, tasks, targets */
    N_SMALL = 64             /* so that the host may be an operation or two ahead */
};

/** Page-locked memory that copies pass through, so that they run beside everything else. */
struct staging {
    size_t n, n_bytes; /* buffers, and of each */
    void *memory[N_SMALL];
    cudaEvent_t used[N_SMALL]; /* when the device has read it */
    size_t next;
};

struct device {
    struct kern_cuda_device base;
    int index;
    cudaStream_t streams[KERN_CUDA_N_STREAMS];
    cudaEvent_t events[KERN_CUDA_MAX_EVENTS]; /* made when first signalled */
    cudaEvent_t marks[KERN_CUDA_MAX_MARKS];   /* likewise */
    struct staging staging[KERN_CUDA_N_STREAMS], small;
    struct base_pool *pool; /* fills the staging buffers */
    struct kern_cublas *blas;
    void *workspace; /* of blas */
};

static struct device *of(struct kern_cuda_device *d)
{
    return (struct device *)d;
}

static enum status check(const struct device *d, cudaError_t code, const char *what,
                         struct status_why *why)
{
    if (code == cudaSuccess)
        return STATUS_OK;
    return status_fail(why, STATUS_DEVICE, "CUDA device %d: %s: %s", d->index, what,
                       cudaGetErrorString(code));
}

/** Several devices may be in use, by any thread: each call says which. */
static enum status select_device(const struct device *d, struct status_why *why)
{
    return check(d, cudaSetDevice(d->index), "selecting it", why);
}

static enum status device_memory(struct kern_cuda_device *device, size_t *free_bytes,
                                 size_t *total_bytes, struct status_why *why)
{
    const struct device *d = of(device);
    enum status status = select_device(d, why);
    if (!status)
        status = check(d, cudaMemGetInfo(free_bytes, total_bytes), "asking for its memory", why);
    return status;
}

static enum status device_alloc(struct kern_cuda_device *device, void **out, size_t n_bytes,
                                struct status_why *why)
{
    const struct device *d = of(device);
    *out = NULL;
    enum status status = select_device(d, why);
    if (status)
        return status;
    cudaError_t code = cudaMalloc(out, n_bytes);
    if (code != cudaErrorMemoryAllocation)
        return check(d, code, "allocating", why);
    (void)cudaGetLastError(); /* an allocation that fails breaks nothing */
    *out = NULL;
    size_t free_bytes = 0, total_bytes = 0;
    status = device_memory(device, &free_bytes, &total_bytes, why);
    if (status)
        return status;
    return status_fail(why, STATUS_MEMORY,
                       "CUDA device %d: no memory for %zu bytes, %zu of %zu are free; a smaller "
                       "batch (-b) takes less, or another device (--device cuda:N, cpu)",
                       d->index, n_bytes, free_bytes, total_bytes);
}

/** An error of what is waited for stays, and is reported by the next call that can. */
static void device_free(struct kern_cuda_device *device, void *memory)
{
    if (!memory || select_device(of(device), NULL))
        return;
    (void)cudaDeviceSynchronize();
    (void)cudaFree(memory);
}

/** Copy through page-locked memory a piece at a time; waits only while all pieces are on the way.
 */
static enum status device_copy_in(struct kern_cuda_device *device, enum kern_cuda_stream stream,
                                  void *to, const struct kern_cuda_rows *rows,
                                  struct status_why *why)
{
    struct device *d = of(device);
    enum status status = select_device(d, why);
    size_t n_bytes = kern_cuda_rows_total(rows);
    struct staging *s = n_bytes <= SMALL_BYTES ? &d->small : &d->staging[stream];
    for (size_t done = 0; !status && done < n_bytes; done += s->n_bytes) {
        size_t left = n_bytes - done, n = left < s->n_bytes ? left : s->n_bytes;
        size_t i = s->next++ % s->n;
        status = check(d, cudaEventSynchronize(s->used[i]), "an earlier operation", why);
        if (status)
            return status;
        kern_cuda_rows_gather(d->pool, rows, done, n, s->memory[i]);
        cudaError_t code = cudaMemcpyAsync((char *)to + done, s->memory[i], n,
                                           cudaMemcpyHostToDevice, d->streams[stream]);
        if (code == cudaSuccess)
            code = cudaEventRecord(s->used[i], d->streams[stream]);
        status = check(d, code, "copying to it", why);
    }
    return status;
}

/** A piece of copy_out: where it lies in the staging buffer, and where it belongs. */
struct piece {
    size_t i_buffer, n_bytes;
    char *to;
};

/** Begin to copy a piece into a staging buffer, once the device has read what was in it. */
static cudaError_t piece_begin(struct device *d, enum kern_cuda_stream stream,
                               const struct piece *piece, const void *from)
{
    struct staging *s = &d->staging[stream];
    cudaError_t code = cudaEventSynchronize(s->used[piece->i_buffer]);
    if (code == cudaSuccess)
        code = cudaMemcpyAsync(s->memory[piece->i_buffer], from, piece->n_bytes,
                               cudaMemcpyDeviceToHost, d->streams[stream]);
    return code == cudaSuccess ? cudaEventRecord(s->used[piece->i_buffer], d->streams[stream])
                               : code;
}

static cudaError_t piece_end(struct device *d, enum kern_cuda_stream stream,
                             const struct piece *piece)
{
    struct staging *s = &d->staging[stream];
    cudaError_t code = cudaEventSynchronize(s->used[piece->i_buffer]);
    const struct kern_cuda_rows all = {s->memory[piece->i_buffer], 1, piece->n_bytes,
                                       piece->n_bytes, NULL};
    if (code == cudaSuccess)
        kern_cuda_rows_gather(d->pool, &all, 0, piece->n_bytes, piece->to);
    return code;
}

/** Through page-locked memory, too: the next pieces are on the way while one is taken out. */
static enum status device_copy_out(struct kern_cuda_device *device, enum kern_cuda_stream stream,
                                   void *to, const void *from, size_t n_bytes,
                                   struct status_why *why)
{
    struct device *d = of(device);
    struct staging *s = &d->staging[stream];
    struct piece pieces[N_PINNED];
    enum status status = select_device(d, why);
    cudaError_t code = cudaSuccess;
    size_t n_begun = 0, n_ended = 0, n_pieces = (n_bytes + PINNED_BYTES - 1) / PINNED_BYTES;
    while (!status && code == cudaSuccess && n_ended < n_pieces) {
        if (n_begun < n_pieces && n_begun < n_ended + N_PINNED) {
            size_t done = n_begun * PINNED_BYTES, left = n_bytes - done;
            struct piece *piece = &pieces[n_begun++ % N_PINNED];
            *piece = (struct piece){.i_buffer = s->next++ % N_PINNED,
                                    .n_bytes = left < PINNED_BYTES ? left : PINNED_BYTES,
                                    .to = (char *)to + done};
            code = piece_begin(d, stream, piece, (const char *)from + done);
        } else {
            code = piece_end(d, stream, &pieces[n_ended++ % N_PINNED]);
        }
    }
    return status ? status : check(d, code, "an earlier operation, or copying from it", why);
}

static enum status device_clear(struct kern_cuda_device *device, void *to, int byte, size_t n_bytes,
                                struct status_why *why)
{
    struct device *d = of(device);
    enum status status = select_device(d, why);
    if (!status)
        status = check(d, cudaMemsetAsync(to, byte, n_bytes, d->streams[KERN_CUDA_COMPUTE]),
                       "clearing", why);
    return status;
}

static enum status device_launch(struct kern_cuda_device *device,
                                 const struct kern_cuda_launch *launch, struct status_why *why)
{
    struct device *d = of(device);
    const struct kern_cuda_kernel_info *info = kern_cuda_kernel_info(launch->kernel);
    enum status status = select_device(d, why);
    if (status || launch->n_blocks == 0)
        return status;
    if (launch->n_blocks > INT32_MAX)
        return status_fail(why, STATUS_DEVICE,
                           "CUDA kernel %s: %zu blocks are too many; a smaller "
                           "batch (-b) has fewer",
                           info->name, launch->n_blocks);
    const void *function = kern_cuda_function(launch->kernel, launch->type);
    union {
        const void *as_const;
        void *as_cuda_wants;
    } args = {launch->args};
    void *all_args[] = {args.as_cuda_wants};
    cudaError_t code = cudaSuccess;
    if (launch->shared_bytes > 48 << 10)
        code = cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    (int)launch->shared_bytes);
    if (code == cudaSuccess)
        code = cudaLaunchKernel(function, (dim3){(unsigned)launch->n_blocks, 1, 1},
                                (dim3){info->n_threads, 1, 1}, all_args, launch->shared_bytes,
                                d->streams[KERN_CUDA_COMPUTE]);
    cudaError_t last = cudaGetLastError();
    return check(d, code == cudaSuccess ? last : code, info->name, why);
}

static enum status device_gemm(struct kern_cuda_device *device, const struct kern_cuda_gemm *gemm,
                               struct status_why *why)
{
    struct device *d = of(device);
    enum status status = select_device(d, why);
    if (!status && !d->workspace)
        status = device_alloc(device, &d->workspace, KERN_CUBLAS_WORKSPACE, why);
    if (!status && !d->blas)
        status = kern_cublas_open(&d->blas, d->workspace, why);
    return status ? status
                  : kern_cublas_multiply(d->blas, gemm, d->streams[KERN_CUDA_COMPUTE], why);
}

static enum status device_signal(struct kern_cuda_device *device, enum kern_cuda_stream stream,
                                 unsigned event, struct status_why *why)
{
    struct device *d = of(device);
    enum status status = select_device(d, why);
    cudaError_t code = cudaSuccess;
    if (!status && !d->events[event])
        code = cudaEventCreateWithFlags(&d->events[event], cudaEventDisableTiming);
    if (!status && code == cudaSuccess)
        code = cudaEventRecord(d->events[event], d->streams[stream]);
    return status ? status : check(d, code, "recording an event", why);
}

static enum status device_wait(struct kern_cuda_device *device, enum kern_cuda_stream stream,
                               unsigned event, struct status_why *why)
{
    struct device *d = of(device);
    enum status status = select_device(d, why);
    if (status || !d->events[event])
        return status;
    return check(d, cudaStreamWaitEvent(d->streams[stream], d->events[event], 0),
                 "waiting for an event", why);
}

static enum status device_mark(struct kern_cuda_device *device, unsigned mark,
                               struct status_why *why)
{
    struct device *d = of(device);
    enum status status = select_device(d, why);
    cudaError_t code = cudaSuccess;
    if (!status && !d->marks[mark])
        code = cudaEventCreate(&d->marks[mark]);
    if (!status && code == cudaSuccess)
        code = cudaEventRecord(d->marks[mark], d->streams[KERN_CUDA_COMPUTE]);
    return status ? status : check(d, code, "noting the time", why);
}

static enum status device_elapsed(struct kern_cuda_device *device, unsigned from, unsigned to,
                                  double *seconds, struct status_why *why)
{
    struct device *d = of(device);
    float milliseconds = 0.0f;
    enum status status = select_device(d, why);
    if (status)
        return status;
    cudaError_t code = cudaEventSynchronize(d->marks[to]);
    if (code == cudaSuccess)
        code = cudaEventElapsedTime(&milliseconds, d->marks[from], d->marks[to]);
    *seconds = 1e-3 * (double)milliseconds;
    return check(d, code, "an earlier operation, or reading the time", why);
}

/** NULL are passed over. */
static void events_close(cudaEvent_t *events, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (events[i])
            (void)cudaEventDestroy(events[i]);
}

static void staging_close(struct staging *s)
{
    events_close(s->used, N_SMALL);
    for (size_t i = 0; i < N_SMALL; i++)
        if (s->memory[i])
            (void)cudaFreeHost(s->memory[i]);
}

static void device_close(struct kern_cuda_device *device)
{
    struct device *d = of(device);
    if (!select_device(d, NULL)) {
        (void)cudaDeviceSynchronize();
        kern_cublas_close(d->blas);
        (void)cudaFree(d->workspace);
        events_close(d->events, KERN_CUDA_MAX_EVENTS);
        events_close(d->marks, KERN_CUDA_MAX_MARKS);
        staging_close(&d->small);
        for (size_t i = 0; i < KERN_CUDA_N_STREAMS; i++) {
            staging_close(&d->staging[i]);
            if (d->streams[i])
                (void)cudaStreamDestroy(d->streams[i]);
        }
    }
    base_pool_close(d->pool);
    free(d);
}

static const struct kern_cuda_device_ops device_ops = {
    .close = device_close,
    .alloc = device_alloc,
    .free = device_free,
    .memory = device_memory,
    .copy_in = device_copy_in,
    .copy_out = device_copy_out,
    .clear = device_clear,
    .launch = device_launch,
    .gemm = device_gemm,
    .signal = device_signal,
    .wait = device_wait,
    .mark = device_mark,
    .elapsed = device_elapsed,
};

static cudaError_t staging_open(struct staging *s, size_t n, size_t n_bytes)
{
    cudaError_t code = cudaSuccess;
    s->n = n;
    s->n_bytes = n_bytes;
    for (size_t i = 0; code == cudaSuccess && i < n; i++) {
        code = cudaMallocHost(&s->memory[i], n_bytes);
        if (code == cudaSuccess)
            code = cudaEventCreateWithFlags(&s->used[i], cudaEventDisableTiming);
    }
    return code;
}

/** Name and limits; the oldest devices that are known to do are those of compute capability 8.0. */
static enum status describe(struct device *d, struct status_why *why)
{
    struct cudaDeviceProp p;
    int runtime = 0;
    cudaError_t code = cudaGetDeviceProperties(&p, d->index);
    if (code == cudaSuccess)
        code = cudaRuntimeGetVersion(&runtime);
    if (code != cudaSuccess)
        return check(d, code, "asking for its properties", why);
    snprintf(d->base.name, sizeof d->base.name, "%.128s (sm_%d%d, CUDA %d.%d)", p.name, p.major,
             p.minor, runtime / 1000, runtime % 1000 / 10);
    d->base.shared_bytes = p.sharedMemPerBlockOptin;
    d->base.compute_capability = (unsigned)(10 * p.major + p.minor);
    if (p.major < 8)
        return status_fail(
            why, STATUS_UNSUPPORTED,
            "CUDA device %d is a %.128s of compute capability %d.%d, expected 8.0 or "
            "more; use --device cpu",
            d->index, p.name, p.major, p.minor);
    return STATUS_OK;
}

static enum status start(struct device *d, struct status_why *why)
{
    enum status status = select_device(d, why);
    if (!status)
        status = describe(d, why);
    cudaError_t code = cudaSuccess;
    for (size_t i = 0; !status && code == cudaSuccess && i < KERN_CUDA_N_STREAMS; i++) {
        code = cudaStreamCreateWithFlags(&d->streams[i], cudaStreamNonBlocking);
        if (code == cudaSuccess)
            code = staging_open(&d->staging[i], N_PINNED, PINNED_BYTES);
    }
    if (!status && code == cudaSuccess)
        code = staging_open(&d->small, N_SMALL, SMALL_BYTES);
    if (!status)
        status = check(d, code, "starting", why);
    unsigned n_threads = base_pool_processors();
    if (n_threads > KERN_CUDA_STAGING_THREADS)
        n_threads = KERN_CUDA_STAGING_THREADS;
    return status ? status : base_pool_open(&d->pool, n_threads, why);
}

enum status kern_cuda_device_open(struct kern_cuda_device **out, unsigned index,
                                  struct status_why *why)
{
    *out = NULL;
    int n_devices = 0;
    cudaError_t code = cudaGetDeviceCount(&n_devices);
    if (code != cudaSuccess)
        return status_fail(
            why, STATUS_DEVICE,
            "no CUDA device can be used: %s (or there is none); use --device cpu, or "
            "look at what nvidia-smi says",
            cudaGetErrorString(code));
    if (index >= (unsigned)n_devices)
        return status_fail(why, STATUS_DEVICE,
                           "there is no CUDA device %u, expected a number below %d", index,
                           n_devices);
    struct device *d = calloc(1, sizeof *d);
    if (!d)
        return status_fail(why, STATUS_MEMORY, "no memory for a device");
    d->base.ops = &device_ops;
    d->index = (int)index;
    enum status status = start(d, why);
    if (status) {
        device_close(&d->base);
        return status;
    }
    *out = &d->base;
    return STATUS_OK;
}

unsigned kern_cuda_n_devices(void)
{
    int n = 0;
    return cudaGetDeviceCount(&n) == cudaSuccess && n > 0 ? (unsigned)n : 0;
}

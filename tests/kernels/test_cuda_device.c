/**
 * The real device (kernels/cuda/device/device.c) on a runtime of our own: memory is the host's, and
 * copies are made as late as the runtime allows, when an event or the device is waited for.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/harness/cmocka.h"
#include <cuda_runtime_api.h>

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/kernels.h"

enum { MAX_COPIES = 256, MAX_ALIVE = 128, SMALL = 64 << 10, LARGE = 16 << 20 };

static struct {
    struct {
        void *to;
        const void *from;
        size_t n_bytes;
    } copies[MAX_COPIES];
    size_t n_copies;
    size_t n_calls, fail_at; /* the call of this number fails, counted from 1; 0: none */
    size_t n_locked;         /* page-locked so far */
    void *alive[MAX_ALIVE];  /* memory, events and streams, until they are given back */
    size_t n_alive;
} runtime;

static cudaError_t called(void)
{
    return ++runtime.n_calls == runtime.fail_at ? cudaErrorUnknown : cudaSuccess;
}

static cudaError_t drain(void)
{
    for (size_t i = 0; i < runtime.n_copies; i++)
        memcpy(runtime.copies[i].to, runtime.copies[i].from, runtime.copies[i].n_bytes);
    runtime.n_copies = 0;
    return called();
}

static cudaError_t make(void **out, size_t n_bytes)
{
    cudaError_t code = called();
    if (code != cudaSuccess)
        return code;
    *out = malloc(n_bytes);
    assert_non_null(*out);
    assert_true(runtime.n_alive < MAX_ALIVE);
    runtime.alive[runtime.n_alive++] = *out;
    return code;
}

/** Never fails: what is given back is given back. */
static cudaError_t give_back(void *memory)
{
    for (size_t i = 0; memory && i < runtime.n_alive; i++) {
        if (runtime.alive[i] == memory) {
            runtime.alive[i] = runtime.alive[--runtime.n_alive];
            free(memory);
            return cudaSuccess;
        }
    }
    assert_null(memory); /* ours, and not given back before */
    return cudaSuccess;
}

/** As if no call had been made. */
static void start_again(size_t fail_at)
{
    while (runtime.n_alive > 0)
        free(runtime.alive[--runtime.n_alive]);
    memset(&runtime, 0, sizeof runtime);
    runtime.fail_at = fail_at;
}

/* What the device calls of the runtime. */

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return called();
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    assert_int_equal(device, 0);
    *prop =
        (struct cudaDeviceProp){.name = "Card", .major = 9, .sharedMemPerBlockOptin = 227 << 10};
    return called();
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return called();
}

cudaError_t cudaSetDevice(int device)
{
    assert_int_equal(device, 0);
    return called();
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = *total_bytes = (size_t)1 << 30;
    return called();
}

cudaError_t cudaMalloc(void **out, size_t n_bytes)
{
    return make(out, n_bytes);
}

cudaError_t cudaFree(void *memory)
{
    return give_back(memory);
}

cudaError_t cudaMallocHost(void **out, size_t n_bytes)
{
    runtime.n_locked++;
    return make(out, n_bytes);
}

cudaError_t cudaFreeHost(void *memory)
{
    return give_back(memory);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    assert_int_equal(flags, cudaStreamNonBlocking);
    return make((void **)out, 1);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return give_back(stream);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    assert_int_equal(flags, cudaEventDisableTiming);
    return make((void **)out, 1);
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    return make((void **)out, 1);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    return give_back(event);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    assert_true(event && stream);
    return called();
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    assert_non_null(event);
    return drain();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    assert_true(event && stream && flags == 0);
    return called();
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    assert_true(from && to);
    *milliseconds = 2.0f;
    return called();
}

cudaError_t cudaDeviceSynchronize(void)
{
    return drain();
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n_bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    assert_true(stream && (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToHost));
    assert_true(runtime.n_copies < MAX_COPIES);
    runtime.copies[runtime.n_copies].to = to;
    runtime.copies[runtime.n_copies].from = from;
    runtime.copies[runtime.n_copies++].n_bytes = n_bytes;
    return called();
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t n_bytes, cudaStream_t stream)
{
    assert_non_null(stream);
    memset(to, byte, n_bytes);
    return called();
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
    assert_non_null(function);
    assert_int_equal(attribute, cudaFuncAttributeMaxDynamicSharedMemorySize);
    assert_true(value > 48 << 10);
    return called();
}

cudaError_t cudaLaunchKernel(const void *function, dim3 blocks, dim3 threads, void **args,
                             size_t shared_bytes, cudaStream_t stream)
{
    assert_true(function && stream && args[0] && shared_bytes <= 227 << 10);
    assert_true(blocks.x > 0 && threads.x > 0);
    return called();
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t code)
{
    return code == cudaErrorUnknown ? "made to fail" : "another error";
}

const void *kern_cuda_function(enum kern_cuda_kernel kernel, enum gguf_type type)
{
    (void)kernel;
    (void)type;
    return &runtime;
}

/** Copy n_bytes to the device and back, in pieces of `step`, and compare. */
static enum status there_and_back(struct kern_cuda_device *d, size_t n_bytes, size_t step,
                                  struct status_why *why)
{
    uint8_t *bytes = malloc(n_bytes), *found = calloc(n_bytes, 1), *piece = malloc(step);
    void *memory = NULL;
    assert_true(bytes && found && piece);
    for (size_t i = 0; i < n_bytes; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    enum status status = d->ops->alloc(d, &memory, n_bytes, why);
    for (size_t i = 0; !status && i < n_bytes; i += step) {
        size_t n = n_bytes - i < step ? n_bytes - i : step;
        memcpy(piece, bytes + i, n);
        const struct kern_cuda_rows rows = {piece, 1, n, n, NULL};
        status = d->ops->copy_in(d, KERN_CUDA_COPY, (char *)memory + i, &rows, why);
        memset(piece, 0xff, n); /* the caller's again */
    }
    for (size_t i = 0; !status && i < n_bytes; i += step) {
        size_t n = n_bytes - i < step ? n_bytes - i : step;
        status = d->ops->copy_out(d, KERN_CUDA_COMPUTE, found + i, (char *)memory + i, n, why);
    }
    if (!status)
        assert_memory_equal(found, bytes, n_bytes);
    d->ops->free(d, memory);
    free(bytes);
    free(found);
    free(piece);
    return status;
}

/** Opening is cheap: nothing is page-locked before a copy needs it, and all of a kind at once. */
static void test_copies(void **state)
{
    (void)state;
    struct kern_cuda_device *d;
    start_again(0);
    assert_int_equal(kern_cuda_device_open(&d, 0, NULL), STATUS_OK);
    assert_int_equal(runtime.n_alive, KERN_CUDA_N_STREAMS);
    assert_int_equal(runtime.n_locked, 0);
    assert_int_equal(there_and_back(d, 100, 1, NULL), STATUS_OK); /* more than there are buffers */
    assert_int_equal(runtime.n_locked, 1);
    assert_int_equal(there_and_back(d, 10 * SMALL + 3, SMALL, NULL), STATUS_OK);
    assert_int_equal(runtime.n_locked, 1);
    assert_int_equal(there_and_back(d, 3 * SMALL, SMALL + 1, NULL), STATUS_OK);
    assert_int_equal(runtime.n_locked, 3); /* those of two streams */
    assert_int_equal(there_and_back(d, (size_t)5 * LARGE + 7, (size_t)6 * LARGE, NULL), STATUS_OK);
    assert_int_equal(runtime.n_locked, 3);
    d->ops->close(d);
    assert_int_equal(runtime.n_alive, 0);
}

/** Everything that a device does, with one call that fails. */
static enum status do_all(struct status_why *why)
{
    struct kern_cuda_device *d;
    double seconds;
    size_t bytes[2];
    const uint64_t args[64] = {0};
    const struct kern_cuda_launch launch = {
        .kernel = KERN_CUDA_ATTENTION, .n_blocks = 3, .shared_bytes = 100 << 10, .args = args};
    enum status status = kern_cuda_device_open(&d, 0, why);
    if (status)
        return status;
    status = d->ops->memory(d, &bytes[0], &bytes[1], why);
    if (!status)
        status = there_and_back(d, 2 * SMALL, SMALL, why);
    if (!status)
        status = there_and_back(d, 2 * SMALL, 2 * SMALL, why);
    if (!status)
        status = d->ops->mark(d, 0, why);
    if (!status)
        status = d->ops->launch(d, &launch, why);
    if (!status)
        status = d->ops->clear(d, bytes, 0, sizeof bytes, why);
    if (!status)
        status = d->ops->mark(d, 1, why);
    if (!status)
        status = d->ops->elapsed(d, 0, 1, &seconds, why);
    if (!status)
        status = d->ops->signal(d, KERN_CUDA_COPY, 5, why);
    if (!status)
        status = d->ops->wait(d, KERN_CUDA_COMPUTE, 5, why);
    if (!status)
        assert_true(seconds == 2e-3);
    d->ops->close(d);
    return status;
}

/** Whichever call fails, a sentence says so and nothing is left; but where memory is freed. */
static void test_failures(void **state)
{
    (void)state;
    size_t n_unseen = 0, n_calls = 1;
    for (size_t at = 0; at <= n_calls; at++) {
        struct status_why why = {""};
        start_again(at);
        enum status status = do_all(&why);
        if (at == 0) {
            assert_int_equal(status, STATUS_OK);
            n_calls = runtime.n_calls;
        } else if (status) {
            assert_int_equal(status, STATUS_DEVICE);
            assert_non_null(strstr(why.text, "made to fail"));
        } else {
            n_unseen++;
        }
        if (status || at == 0)
            assert_int_equal(runtime.n_alive, 0);
    }
    start_again(0);
    assert_true(n_calls > 40 && n_unseen <= 6); /* free() and close() have nobody to tell */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies),
                                       cmocka_unit_test(test_failures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "tests/kernels/cuda_pair.h"

#include <stdio.h>

#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/run_kernel.h"

static bool real_device;

bool cuda_pair_use_real_device(void)
{
    real_device = kern_cuda_n_devices() > 0;
    if (!real_device)
        puts("no CUDA device here: the real device is not tested");
    return real_device;
}

bool cuda_pair_is_real(void)
{
    return real_device;
}

static struct kern_cuda_device *open_device(struct cuda_pair *p,
                                            const struct host_device_options *options)
{
    struct kern_cuda_device *device = NULL;
    struct status_why why = {""};
    if (!real_device)
        device = host_device_open(options, &p->log);
    else if (kern_cuda_device_open(&device, 0, &why) != STATUS_OK)
        fail_msg("%s", why.text);
    assert_non_null(device);
    return device;
}

void cuda_pair_open(struct cuda_pair *p, enum kern_precision precision,
                    const struct host_device_options *options)
{
    cuda_pair_open_panels(p, precision, options, 64 << 10);
}

static void open_backends(struct cuda_pair *p, const struct kern_cpu_options *cpu,
                          struct kern_cuda_options cuda, const struct host_device_options *options,
                          size_t panel_size)
{
    *p = (struct cuda_pair){0};
    run_kernel_scene();
    assert_int_equal(kern_cpu_open(&p->cpu, cpu, NULL), STATUS_OK);
    struct kern_cuda_device *device = open_device(p, options);
    cuda = (struct kern_cuda_options){
        .precision = cuda.precision,
        .integers = cuda.integers,
        .weight_bytes = panel_size > 64 << 10 ? 8 * panel_size : 600 << 10,
        .panel_size = panel_size,
        .n_slots = 4,
        .product_tokens = 48,
        .product_step = 16,
        .parts_bytes = 200 << 10,
    };
    struct status_why why = {""};
    if (kern_cuda_open(&p->cuda, device, &cuda, &why) != STATUS_OK)
        fail_msg("%s", why.text);
}

void cuda_pair_open_panels(struct cuda_pair *p, enum kern_precision precision,
                           const struct host_device_options *options, size_t panel_size)
{
    const struct kern_cpu_options cpu = {.n_threads = 1, .isa_cap = KERN_ISA_COUNT - 1};
    /* The same on any card: a real one may prefer integers. */
    const struct kern_cuda_options cuda = {.precision = precision,
                                           .integers = KERN_CUDA_INTEGERS_NEVER};
    open_backends(p, &cpu, cuda, options, panel_size);
}

void cuda_pair_open_integers(struct cuda_pair *p, const struct host_device_options *options,
                             size_t panel_size)
{
    const struct kern_cpu_options cpu = {
        .n_threads = 1, .isa_cap = KERN_ISA_COUNT - 1, .precision = KERN_PRECISION_HIGH};
    const struct kern_cuda_options cuda = {.precision = KERN_PRECISION_HIGH,
                                           .integers = KERN_CUDA_INTEGERS_ALWAYS};
    open_backends(p, &cpu, cuda, options, panel_size);
}

void cuda_pair_close(struct cuda_pair *p)
{
    kern_close(p->cpu);
    kern_close(p->cuda);
    assert_int_equal(p->log.n_left, 0);
}

float *cuda_pair_put(struct cuda_pair *p, const float *x, size_t n)
{
    void *copy;
    assert_int_equal(kern_alloc(p->cuda, &copy, (n + 1) * sizeof *x, NULL), STATUS_OK);
    assert_int_equal(kern_upload(p->cuda, copy, x, n * sizeof *x, NULL), STATUS_OK);
    return copy;
}

void cuda_pair_take(struct cuda_pair *p, float *copy, float *to, size_t n)
{
    if (to)
        assert_int_equal(kern_download(p->cuda, to, copy, n * sizeof *to, NULL), STATUS_OK);
    kern_free(p->cuda, copy);
}

size_t cuda_pair_step(void)
{
    return run_kernel_is_slow() ? CUDA_PAIR_N_WAYS - 1 : 1;
}

struct host_device_options cuda_pair_way(size_t i)
{
    static const enum host_device_order orders[] = {HOST_DEVICE_AT_ONCE, HOST_DEVICE_UPLOADS_LATE,
                                                    HOST_DEVICE_COMPUTE_LATE};
    return (struct host_device_options){.order = orders[i / 2], .backwards = i % 2 == 1};
}

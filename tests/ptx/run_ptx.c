/*
 * Takes the place of tests/harness/run_kernel.c: the kernels of the device made of host memory are
 * what nvcc made of them. README.md names the environment variables.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cuda/device/kernels.h"
#include "tests/harness/run_kernel.h"
#include "tests/ptx/block.h"
#include "tests/ptx/parse.h"
#include "tests/ptx/report.h"

enum { MAX_KERNELS = 256, SHARED_BYTES = 228 << 10 };

/** A kernel's warps, which keep their registers from launch to launch. */
struct residents {
    struct ptx_warp *warps;
    unsigned n_warps;
};

static struct {
    struct ptx_program program;
    struct ptx_space space;
    struct residents residents[MAX_KERNELS];
    struct ptx_shadow shared_shadow;
    uint8_t *shared;
    const struct ptx_kernel *last; /* whose shared memory the shadow is of */
    uint32_t tick;
    enum ptx_order order;
    struct rng rng;
    bool is_open;
} machine;

static void write_coverage(void)
{
    const char *name = getenv("ASSAY_PTX_COVERAGE");
    if (name)
        ptx_report_coverage(&machine.program, name);
}

static void set_order(void)
{
    const char *text = getenv("ASSAY_PTX_ORDER");
    if (!text || strcmp(text, "forwards") == 0)
        return;
    machine.order = strcmp(text, "backwards") == 0 ? PTX_BACKWARDS : PTX_RANDOM;
    if (machine.order == PTX_RANDOM)
        machine.rng = rng_open(rng_seed(), 18);
}

static void parse_file(const char *name)
{
    const char *folder = getenv("ASSAY_PTX_DIR");
    static char paths[2][4096];
    char *path = paths[machine.program.n_kernels > 0];
    snprintf(path, sizeof *paths, "%s/%s", folder ? folder : ASSAY_PTX_DIR, name);
    ptx_parse(&machine.program, path);
}

static void machine_open(void)
{
    if (machine.is_open)
        return;
    machine.is_open = true;
    machine.tick = 2; /* 1: what the host writes */
    parse_file("kernels.ptx");
    parse_file("decode.ptx");
    for (size_t i = 0; i < machine.program.n_arrays; i++)
        ptx_space_add_constant(&machine.space, machine.program.arrays[i].bytes,
                               machine.program.arrays[i].n_bytes);
    void *shared;
    if (machine.program.n_kernels > MAX_KERNELS || posix_memalign(&shared, 64, SHARED_BYTES) != 0)
        abort();
    machine.shared = shared;
    ptx_shadow_open(&machine.shared_shadow, SHARED_BYTES);
    set_order();
    atexit(write_coverage);
}

/** The number of the kernel that a launch asks for. */
static size_t find_kernel(const struct kern_cuda_launch *launch)
{
#define NAME(id, ...) #id,
    static const char *const names[] = {KERN_CUDA_KERNELS(NAME, NAME)};
    char name[64];
    if (launch->kernel == KERN_CUDA_DECODE)
        snprintf(name, sizeof name, "DECODE %d", (int)launch->type);
    else
        snprintf(name, sizeof name, "%s", names[launch->kernel]);
    size_t i = 0;
    while (i < machine.program.n_kernels &&
           strcmp(ptx_report_name(&machine.program.kernels[i]), name) != 0)
        i++;
    if (i == machine.program.n_kernels) {
        fprintf(stderr, "ptx: there is no kernel %s\n", name);
        abort();
    }
    return i;
}

/** Logits of lanes without a row hold anything (kern_logits, kernels/cuda/kernels/score.h). */
static bool may_read_unwritten(enum kern_cuda_kernel kernel)
{
    return kernel == KERN_CUDA_FOLD || kernel == KERN_CUDA_PAIR || kernel == KERN_CUDA_JS ||
           kernel == KERN_CUDA_LOWEST;
}

static struct residents *residents_of(size_t kernel, unsigned n_threads)
{
    struct residents *r = &machine.residents[kernel];
    if (r->warps)
        return r;
    r->n_warps = n_threads / PTX_LANES;
    r->warps = ptx_grow(NULL, r->n_warps * sizeof *r->warps);
    for (unsigned i = 0; i < r->n_warps; i++)
        ptx_warp_open(&r->warps[i], &machine.program.kernels[kernel], i * PTX_LANES, n_threads);
    return r;
}

/** Launch and program must agree on what a launch says. */
static void check_launch(const struct kern_cuda_launch *launch, const struct ptx_kernel *k)
{
    const struct kern_cuda_kernel_info *info = kern_cuda_kernel_info(launch->kernel);
    bool fits = info->n_threads % PTX_LANES == 0 && info->n_threads <= k->max_threads &&
                info->args_bytes == k->param_bytes && launch->shared_bytes <= SHARED_BYTES;
    if (fits)
        return;
    fprintf(stderr, "ptx: %s: %u threads of %u, %zu bytes of arguments of %zu, %zu shared\n",
            ptx_report_name(k), info->n_threads, k->max_threads, info->args_bytes, k->param_bytes,
            launch->shared_bytes);
    abort();
}

/** Numbers 0 .. n - 1 in the order in which blocks run. */
static size_t *order_blocks(size_t n, bool backwards)
{
    size_t *order = ptx_grow(NULL, (n + 1) * sizeof *order);
    for (size_t i = 0; i < n; i++)
        order[i] = backwards != (machine.order == PTX_BACKWARDS) ? n - 1 - i : i;
    for (size_t i = n; machine.order == PTX_RANDOM && i > 1; i--) {
        size_t k = rng_below(&machine.rng, i), last = order[i - 1];
        order[i - 1] = order[k];
        order[k] = last;
    }
    return order;
}

void run_kernel_launch(const struct kern_cuda_launch *launch, bool backwards)
{
    machine_open();
    size_t kernel = find_kernel(launch);
    const struct ptx_kernel *k = &machine.program.kernels[kernel];
    check_launch(launch, k);
    struct residents *r = residents_of(kernel, kern_cuda_kernel_info(launch->kernel)->n_threads);
    if (machine.last != k)
        ptx_shadow_clear(&machine.shared_shadow);
    machine.last = k;
    struct ptx_block b = {.kernel = k,
                          .space = &machine.space,
                          .params = launch->args,
                          .shared = machine.shared,
                          .shared_bytes = launch->shared_bytes,
                          .shared_shadow = &machine.shared_shadow,
                          .now = {.launch = ++machine.tick, .tick = machine.tick},
                          .warps = r->warps,
                          .n_warps = r->n_warps,
                          .may_read_unwritten = may_read_unwritten(launch->kernel),
                          .order = machine.order,
                          .rng = &machine.rng};
    size_t *order = order_blocks(launch->n_blocks, backwards);
    for (size_t i = 0; i < launch->n_blocks; i++) {
        memset(machine.shared, 0xff, launch->shared_bytes);
        b.number = order[i];
        ptx_block_run(&b);
    }
    machine.tick = b.now.tick;
    free(order);
}

void run_kernel_memory(enum run_kernel_event event, const void *memory, size_t n_bytes)
{
    machine_open();
    void *bytes = (void *)(uintptr_t)memory;
    if (event == RUN_KERNEL_NEW) {
        ptx_space_add(&machine.space, bytes, n_bytes);
        return;
    }
    if (event == RUN_KERNEL_FREED) {
        ptx_space_remove(&machine.space, memory);
        return;
    }
    uint32_t hint = 0;
    struct ptx_allocation *a = ptx_space_find(&machine.space, (uintptr_t)memory, &hint);
    size_t at = a ? (size_t)((const uint8_t *)memory - a->memory) : 0;
    if (n_bytes == 0)
        return;
    if (!a || n_bytes > a->n_bytes - at) {
        fprintf(stderr, "ptx: the host uses %zu bytes that are in no allocation\n", n_bytes);
        abort();
    }
    if (event == RUN_KERNEL_WRITTEN) {
        ptx_shadow_write(&a->shadow, at, n_bytes);
        return;
    }
    size_t missing = ptx_shadow_unwritten(&a->shadow, at, n_bytes);
    if (missing < n_bytes) {
        fprintf(stderr, "ptx: the host reads %zu bytes, of which nobody wrote number %zu\n",
                n_bytes, missing);
        abort();
    }
}

/*
 * Takes the place of tests/harness/run_kernel.c: the kernels of the device made of host memory are
 * what nvcc made of them. README.md names the environment variables.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/device/kernels.h"
#include "tests/harness/run_kernel.h"
#include "tests/ptx/machine.h"
#include "tests/ptx/mutants.h"
#include "tests/ptx/report.h"
#include "tests/ptx/text.h"

static struct ptx_machine machine;
static bool is_open;

static void close_machine(void)
{
    ptx_mutants_close();
    const char *name = getenv("ASSAY_PTX_COVERAGE");
    if (name)
        ptx_report_coverage(&machine.program, name);
    ptx_machine_close(&machine);
}

static void open_machine(void)
{
    if (is_open)
        return;
    is_open = true;
    static char paths[2][4096];
    const char *folder = getenv("ASSAY_PTX_DIR"), *order = getenv("ASSAY_PTX_ORDER");
    for (size_t i = 0; i < 2; i++)
        snprintf(paths[i], sizeof *paths, "%s/%s", folder ? folder : ASSAY_PTX_DIR,
                 i == 0 ? "kernels.ptx" : "decode.ptx");
    const char *const files[] = {paths[0], paths[1]};
    ptx_machine_open(&machine, files, 2,
                     !order                            ? PTX_FORWARDS
                     : strcmp(order, "backwards") == 0 ? PTX_BACKWARDS
                                                       : PTX_RANDOM);
    ptx_mutants_open(&machine, getenv("ASSAY_PTX_CHANGES"), getenv("ASSAY_PTX_RESULTS"));
    atexit(close_machine);
}

void run_ptx_count(void)
{
    open_machine();
    size_t n_bytes = machine.program.n_kernels * sizeof *machine.traffic;
    machine.traffic = memset(ptx_grow(NULL, n_bytes), 0, n_bytes);
}

void run_ptx_report(FILE *f, const char *scene)
{
    ptx_report_counts(f, scene, &machine.program, machine.traffic);
}

_Noreturn static void fail(const char *what, size_t number)
{
    fprintf(stderr, "ptx: %s: %zu\n", what, number);
    abort();
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
    size_t i = ptx_machine_find(&machine, name);
    if (i == machine.program.n_kernels)
        fail("there is no kernel with the number", launch->kernel);
    return i;
}

/** Logits of lanes without a row hold anything (struct kern_logits). */
static bool may_read_unwritten(enum kern_cuda_kernel kernel)
{
    return kernel == KERN_CUDA_FOLD || kernel == KERN_CUDA_PAIR || kernel == KERN_CUDA_JS ||
           kernel == KERN_CUDA_LOWEST;
}

void run_kernel_launch(const struct kern_cuda_launch *launch, bool backwards)
{
    open_machine();
    const struct kern_cuda_kernel_info *info = kern_cuda_kernel_info(launch->kernel);
    const struct ptx_launch l = {.kernel = find_kernel(launch),
                                 .params = launch->args,
                                 .n_blocks = launch->n_blocks,
                                 .shared_bytes = launch->shared_bytes,
                                 .n_threads = info->n_threads,
                                 .backwards = backwards,
                                 .may_read_unwritten = may_read_unwritten(launch->kernel)};
    if (machine.program.kernels[l.kernel].param_bytes != info->args_bytes)
        fail("other arguments than those of the host, in bytes", info->args_bytes);
    ptx_mutants_launch(l.kernel);
    ptx_machine_launch(&machine, &l);
}

void run_kernel_memory(enum run_kernel_event event, const void *memory, size_t n_bytes)
{
    open_machine();
    if (event == RUN_KERNEL_NEW)
        ptx_space_add(&machine.space, (void *)(uintptr_t)memory, n_bytes);
    if (event == RUN_KERNEL_FREED)
        ptx_space_remove(&machine.space, memory);
    if (event == RUN_KERNEL_NEW || event == RUN_KERNEL_FREED || n_bytes == 0)
        return;
    uint32_t hint = 0;
    struct ptx_allocation *a = ptx_space_find(&machine.space, (uintptr_t)memory, &hint);
    size_t at = a ? (size_t)((const uint8_t *)memory - a->memory) : 0;
    if (!a || n_bytes > a->n_bytes - at)
        fail("bytes that the host uses are in no allocation", n_bytes);
    if (event == RUN_KERNEL_WRITTEN)
        ptx_shadow_write(&a->shadow, at, n_bytes);
    else if (ptx_shadow_unwritten(&a->shadow, at, n_bytes) < n_bytes)
        fail("bytes that the host reads, of which nobody wrote some", n_bytes);
}

void run_kernel_scene(void)
{
    ptx_mutants_scene();
}

bool run_kernel_is_slow(void)
{
    return getenv("ASSAY_PTX_ALL") == NULL;
}

#include "tests/harness/run_kernel.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/kernels/all.h"

#define RUN(id, name, args_tag, n_threads, n_resident, shared_bytes, call)                         \
    case KERN_CUDA_##id: {                                                                         \
        const struct args_tag *a = launch->args;                                                   \
        call;                                                                                      \
        return;                                                                                    \
    }

static void run_block(const struct kern_cuda_launch *launch, size_t block, void *shared)
{
    enum gguf_type type = launch->type;
    switch (launch->kernel) {
        KERN_CUDA_KERNELS(RUN, RUN)
    case KERN_CUDA_N_KERNELS:
        return;
    }
}

void run_kernel_launch(const struct kern_cuda_launch *launch, bool backwards)
{
    void *shared = NULL;
    if (posix_memalign(&shared, 64, launch->shared_bytes + 1) != 0)
        abort();
    for (size_t i = 0; i < launch->n_blocks; i++) {
        memset(shared, 0xff, launch->shared_bytes);
        run_block(launch, backwards ? launch->n_blocks - 1 - i : i, shared);
    }
    free(shared);
}

void run_kernel_memory(enum run_kernel_event event, const void *memory, size_t n_bytes)
{
    (void)event;
    (void)memory;
    (void)n_bytes;
}

void run_kernel_scene(void)
{
}

bool run_kernel_is_slow(void)
{
    return false;
}

#include "tests/harness/run_kernel.h"

#include <stdlib.h>
#include <string.h>

#include "tests/harness/run_block.h"

void run_kernel_launch(const struct kern_cuda_launch *launch, bool backwards)
{
#ifdef __x86_64__
    bool fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    bool fma = false;
#endif
    run_block_fn *run_block = fma ? run_block_fma : run_block_plain;
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

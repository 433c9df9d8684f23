/* Compiled twice, see run_block.h. */
#include "tests/harness/run_block.h"

#include "kernels/cuda/device/all.h"

#ifndef RUN_BLOCK
#define RUN_BLOCK run_block_plain
#endif

#define RUN(id, name, args_tag, n_threads, n_resident, shared_bytes, call)                         \
    case KERN_CUDA_##id: {                                                                         \
        const struct args_tag *a = launch->args;                                                   \
        call;                                                                                      \
        return;                                                                                    \
    }

void RUN_BLOCK(const struct kern_cuda_launch *launch, size_t block, void *shared)
{
    enum gguf_type type = launch->type;
    switch (launch->kernel) {
        KERN_CUDA_KERNELS(RUN, RUN)
    case KERN_CUDA_N_KERNELS:
        return;
    }
}

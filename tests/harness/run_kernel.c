#include "tests/harness/run_kernel.h"

#include "kernels/cuda/kernels/all.h"

#define RUN(id, name, args_tag, n_threads, n_resident, shared_bytes, call)                         \
    case KERN_CUDA_##id: {                                                                         \
        const struct args_tag *a = launch->args;                                                   \
        call;                                                                                      \
        return;                                                                                    \
    }

void run_kernel_block(const struct kern_cuda_launch *launch, size_t block, void *shared)
{
    enum gguf_type type = launch->type;
    switch (launch->kernel) {
        KERN_CUDA_KERNELS(RUN, RUN)
    case KERN_CUDA_N_KERNELS:
        return;
    }
}

/** The CUDA backend's operations. */
#ifndef KERNELS_CUDA_OPERATIONS_H
#define KERNELS_CUDA_OPERATIONS_H

#include "kernels/implementation.h"

/* kern_cuda_embed(), kern_cuda_norm(), ...: the arguments are as in kernels/operations.h. */
#define KERN_CUDA_DECLARE(name) kern_##name##_fn kern_cuda_##name;
KERN_BACKEND_OPERATIONS(KERN_CUDA_DECLARE)

#endif

/** The CPU backend's operations. */
#ifndef KERNELS_CPU_OPERATIONS_H
#define KERNELS_CPU_OPERATIONS_H

#include "kernels/implementation.h"

/* kern_cpu_embed(), kern_cpu_norm(), ...: the arguments are as in kernels/operations.h. */
#define KERN_CPU_DECLARE(name) kern_##name##_fn kern_cpu_##name;
KERN_BACKEND_OPERATIONS(KERN_CPU_DECLARE)

#endif

/**
 * Copies from global to shared memory that go on while the thread computes (PTX ISA, cp.async). A
 * thread waits for its own; a barrier then shows them to the others. On the host they are at once.
 */
#ifndef KERNELS_CUDA_KERNELS_COPIES_H
#define KERNELS_CUDA_KERNELS_COPIES_H

#include <string.h>

#include "kernels/cuda/kernels/thread.h"

/** 16 bytes, at addresses that are multiples of 16. They pass by the first-level cache. */
KERN_INLINE void kern_copy16(void *shared, const void *global)
{
#ifdef __CUDACC__
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :
                 : "r"((unsigned)__cvta_generic_to_shared(shared)),
                   "l"(__cvta_generic_to_global(global))
                 : "memory");
#else
    memcpy(shared, global, 16);
#endif
}

/** 4 bytes, at addresses that are multiples of 4. */
KERN_INLINE void kern_copy4(void *shared, const void *global)
{
#ifdef __CUDACC__
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                 :
                 : "r"((unsigned)__cvta_generic_to_shared(shared)),
                   "l"(__cvta_generic_to_global(global))
                 : "memory");
#else
    memcpy(shared, global, 4);
#endif
}

/** Wait for all copies that this thread has begun. */
KERN_INLINE void kern_copies_wait(void)
{
#ifdef __CUDACC__
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

#endif

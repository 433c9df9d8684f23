/**
 * What code needs that is compiled twice, as C17 for the host and as CUDA C++ for a device: the
 * block formats (quant/), elementary functions and terms of sums (numerics/fmath.h,
 * numerics/terms.h), and the device's kernels (cuda/), which the tests run on the host.
 */
#ifndef KERNELS_PORTABLE_PORTABLE_H
#define KERNELS_PORTABLE_PORTABLE_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define KERN_INLINE   static __device__ __forceinline__
#define KERN_CONSTANT static __device__ const
/** In front of a loop that would take too many registers, or too much code, if it were unrolled. */
#define KERN_ROLLED _Pragma("unroll 1")
#else
#define KERN_INLINE   static inline
#define KERN_CONSTANT static const
#define KERN_ROLLED
#endif

/** The bits of a float32, and the float32 with these bits. */
KERN_INLINE uint32_t kern_bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

KERN_INLINE float kern_float_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif

/** C's atomic types, by C++'s names where a device compiler reads the structs that hold them. */
#ifndef KERNELS_ATOMIC_H
#define KERNELS_ATOMIC_H

#ifdef __cplusplus
#include <atomic>
using std::atomic_bool;
using std::atomic_ullong;
#else
#include <stdatomic.h>
#endif

#endif

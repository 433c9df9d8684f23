/**
 * What clients use of kernels/: devices, and numbers as they are stored. Operations are the
 * models' (kernels/implementation.h).
 */
#ifndef KERNELS_KERNELS_H
#define KERNELS_KERNELS_H

#include "kernels/backend.h"
#include "kernels/cpu/amx/amx.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cuda/cuda.h"
#include "kernels/quant/bytes.h"
#include "kernels/quant/cache_types.h"
#include "kernels/quant/rows.h"
#include "kernels/times.h"
#include "kernels/types.h"

#endif

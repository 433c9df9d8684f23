/** Every kernel, for those who expand the list of them (list.h). */
#ifndef KERNELS_CUDA_DEVICE_ALL_H
#define KERNELS_CUDA_DEVICE_ALL_H

#include "kernels/cuda/kernels/attention.h"
#include "kernels/cuda/kernels/choose.h"
#include "kernels/cuda/kernels/decode.h"
#include "kernels/cuda/kernels/exact/exact.h"
#include "kernels/cuda/kernels/experts/gather.h"
#include "kernels/cuda/kernels/experts/route.h"
#include "kernels/cuda/kernels/flash/flash.h"
#include "kernels/cuda/kernels/flash/parts.h"
#include "kernels/cuda/kernels/gated/gated.h"
#include "kernels/cuda/kernels/gated/norm.h"
#include "kernels/cuda/kernels/gated/rotated.h"
#include "kernels/cuda/kernels/integers/pack.h"
#include "kernels/cuda/kernels/integers/product.h"
#include "kernels/cuda/kernels/mixing/measured.h"
#include "kernels/cuda/kernels/mixing/mixing.h"
#include "kernels/cuda/kernels/product.h"
#include "kernels/cuda/kernels/recurrent/recurrent.h"
#include "kernels/cuda/kernels/rows.h"
#include "kernels/cuda/kernels/score/codes.h"
#include "kernels/cuda/kernels/score/score.h"
#include "kernels/cuda/kernels/score/targets.h"

#endif

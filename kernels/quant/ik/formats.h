/** ik_llama.cpp's formats, all headers. */
#ifndef KERNELS_QUANT_IK_FORMATS_H
#define KERNELS_QUANT_IK_FORMATS_H

#include "kernels/quant/ik/bn.h"
#include "kernels/quant/ik/iq1_r4.h"
#include "kernels/quant/ik/iq2.h"
#include "kernels/quant/ik/iq3.h"
#include "kernels/quant/ik/iq4.h"
#include "kernels/quant/ik/iq5.h"
#include "kernels/quant/ik/iq6.h"
#include "kernels/quant/ik/plain.h"
#include "kernels/quant/ik/trellis.h"

#endif

/** Every block format's header. A new type has a line here. */
#ifndef KERNELS_QUANT_FORMATS_H
#define KERNELS_QUANT_FORMATS_H

#include "kernels/quant/bf16.h"
#include "kernels/quant/f16.h"
#include "kernels/quant/f32.h"
#include "kernels/quant/iq1_m.h"
#include "kernels/quant/iq1_s.h"
#include "kernels/quant/iq2_s.h"
#include "kernels/quant/iq2_xs.h"
#include "kernels/quant/iq2_xxs.h"
#include "kernels/quant/iq3_s.h"
#include "kernels/quant/iq3_xxs.h"
#include "kernels/quant/iq4_nl.h"
#include "kernels/quant/iq4_xs.h"
#include "kernels/quant/mxfp4.h"
#include "kernels/quant/nvfp4.h"
#include "kernels/quant/q1_0.h"
#include "kernels/quant/q2_0.h"
#include "kernels/quant/q2_k.h"
#include "kernels/quant/q3_k.h"
#include "kernels/quant/q4_0.h"
#include "kernels/quant/q4_1.h"
#include "kernels/quant/q4_k.h"
#include "kernels/quant/q5_0.h"
#include "kernels/quant/q5_1.h"
#include "kernels/quant/q5_k.h"
#include "kernels/quant/q6_k.h"
#include "kernels/quant/q8_0.h"
#include "kernels/quant/tq1_0.h"
#include "kernels/quant/tq2_0.h"

#endif

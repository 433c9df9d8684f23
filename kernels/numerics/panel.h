/** Activations to be packed into a panel, whatever their numbers are to be. */
#ifndef KERNELS_NUMERICS_PANEL_H
#define KERNELS_NUMERICS_PANEL_H

#include <stddef.h>

struct kern_panel_pack {
    const float *x; /* n_lanes <= 32 tokens of n_k floats, any alignment */
    size_t x_stride, n_lanes, n_k;
    unsigned n_parts; /* of bfloat16: 1 or 2; not read by others */
    void *out;        /* aligned to 64 */
};

#endif

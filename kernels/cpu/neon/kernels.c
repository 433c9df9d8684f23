/* The kernels that have a NEON version. */
#include "kernels/cpu/neon/neon.h"

const struct kern_kernels kern_kernels_neon = {
    .fma_tile = kern_neon_fma_tile,
    .panel_pack = kern_neon_panel_pack,
    .panel_unpack = kern_neon_panel_unpack,
    .panel_scale = kern_neon_panel_scale,
};

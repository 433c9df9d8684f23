/* The scalar table: a row for every kernel. */
#include "kernels/cpu/scalar.h"

const struct kern_table kern_table_scalar = {
    .fma_tile = kern_scalar_fma_tile,
    .lanes_pack = kern_scalar_lanes_pack,
    .lanes_unpack = kern_scalar_lanes_unpack,
    .rank_update = kern_scalar_rank_update,
};

/* The rows that have an AVX-512 version. This folder alone is compiled with -mavx512*. */
#include "kernels/cpu/avx512/gemm.h"

const struct kern_table kern_table_avx512 = {
    .fma_tile = kern_avx512_fma_tile,
};

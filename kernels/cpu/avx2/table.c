/* The rows that have an AVX2 version. This folder alone is compiled with -mavx2 -mfma -mf16c. */
#include "kernels/cpu/table.h"

const struct kern_table kern_table_avx2 = {0};

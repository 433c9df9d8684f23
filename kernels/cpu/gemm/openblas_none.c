/* Says that there is no OpenBLAS; compiled in place of openblas.c. */
#include "kernels/cpu/gemm/blas.h"

kern_sgemm_fn *kern_openblas_sgemm(void)
{
    return NULL;
}

const char *kern_openblas_version(void)
{
    return NULL;
}

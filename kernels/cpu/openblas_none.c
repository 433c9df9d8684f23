/* Stands in for openblas.c where the build has no OpenBLAS. */
#include "kernels/cpu/cpu.h"

const char *kern_openblas_version(void)
{
    return NULL;
}

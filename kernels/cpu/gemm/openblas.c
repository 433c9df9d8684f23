/* OpenBLAS behind kern_sgemm; compiled only where CMake finds it. */
#include <cblas.h>
#include <pthread.h>

#include "kernels/cpu/gemm/blas.h"

/* The number of threads is a setting of the whole library: one product at a time. */
static pthread_mutex_t library = PTHREAD_MUTEX_INITIALIZER;

static void openblas_sgemm(const struct kern_sgemm *op)
{
    pthread_mutex_lock(&library);
    openblas_set_num_threads((int)op->n_threads);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)op->n_rows, (blasint)op->n_cols,
                (blasint)op->n_k, op->alpha, op->a, (blasint)op->a_stride, op->b,
                (blasint)op->b_stride, op->beta, op->c, (blasint)op->c_stride);
    pthread_mutex_unlock(&library);
}

kern_sgemm_fn *kern_openblas_sgemm(void)
{
    return openblas_sgemm;
}

const char *kern_openblas_version(void)
{
    return openblas_get_config();
}

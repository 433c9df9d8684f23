#include "tests/kernels/fake_cublas.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/cuda/kernels/half.h"

struct fake_cublas fake_cublas;

enum { MAX_PLANS = 64 };

/** Sizes for which algorithms were proposed. */
static struct plan {
    uint64_t n_a, n_b, n_k;
} plans[MAX_PLANS];
static size_t n_plans;

static bool has(unsigned mask, uint64_t algorithm)
{
    return mask >> algorithm & 1;
}

static cublasStatus_t make(void **out, cublasStatus_t status)
{
    *out = status == CUBLAS_STATUS_SUCCESS ? calloc(1, 64) : NULL;
    fake_cublas.n_alive += *out != NULL;
    return status;
}

static cublasStatus_t destroy(void *object)
{
    fake_cublas.n_alive -= object != NULL;
    free(object);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    n_plans = 0;
    return make((void **)handle, fake_cublas.create);
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    return destroy(handle);
}

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "FAKE_STATUS";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    bool right = compute == CUBLAS_COMPUTE_32F && scale == CUDA_R_32F;
    return make((void **)desc, right ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    return destroy(desc);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t n_bytes)
{
    bool right = desc && attribute == CUBLASLT_MATMUL_DESC_TRANSA &&
                 n_bytes == sizeof(cublasOperation_t) &&
                 *(const cublasOperation_t *)value == CUBLAS_OP_T;
    return right ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

/** data: rows, columns, from column to column: only those of floats need not lie side by side. */
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType_t type,
                                          uint64_t n_rows, uint64_t n_cols, int64_t stride)
{
    bool right = (uint64_t)stride == n_rows || (type == CUDA_R_32F && (uint64_t)stride > n_rows);
    cublasStatus_t status = right ? fake_cublas.layout : CUBLAS_STATUS_INVALID_VALUE;
    if (make((void **)layout, status) == CUBLAS_STATUS_SUCCESS) {
        (*layout)->data[0] = n_rows;
        (*layout)->data[1] = n_cols;
        (*layout)->data[2] = (uint64_t)stride;
    }
    return status;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return destroy(layout);
}

/** data: the most workspace. */
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    return make((void **)preference, CUBLAS_STATUS_SUCCESS);
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    return destroy(preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t n_bytes)
{
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES && n_bytes == sizeof(uint64_t))
        memcpy(&preference->data[0], value, n_bytes);
    return CUBLAS_STATUS_SUCCESS;
}

static struct plan plan_of(cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b)
{
    return (struct plan){a->data[1], b->data[1], a->data[0]};
}

static bool is_planned(const struct plan *plan)
{
    bool found = false;
    for (size_t i = 0; i < n_plans; i++)
        found = found || memcmp(&plans[i], plan, sizeof *plan) == 0;
    return found;
}

/** Like the real one it proposes nothing that needs more workspace than is allowed. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int n_wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *n)
{
    (void)handle, (void)desc, (void)c, (void)d;
    *n = 0;
    if (n_plans == MAX_PLANS)
        abort();
    plans[n_plans++] = plan_of(a, b);
    if (fake_cublas.heuristic != CUBLAS_STATUS_SUCCESS ||
        fake_cublas.workspace > preference->data[0])
        return fake_cublas.heuristic;
    for (; *n < fake_cublas.n_algorithms && *n < n_wanted; ++*n) {
        int number = fake_cublas.reversed ? fake_cublas.n_algorithms - 1 - *n : *n;
        results[*n] = (cublasLtMatmulHeuristicResult_t){
            .algo = {{(uint64_t)number}},
            .workspaceSize = fake_cublas.workspace,
            .state = has(fake_cublas.unusable, (uint64_t)number) ? CUBLAS_STATUS_NOT_SUPPORTED
                                                                 : CUBLAS_STATUS_SUCCESS};
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algorithm,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void *value, size_t n_bytes, size_t *n_written)
{
    bool splits = has(fake_cublas.splitting, algorithm->data[0]);
    int32_t n_splits = splits ? 4 : 1;
    uint32_t scheme = splits ? CUBLASLT_REDUCTION_SCHEME_INPLACE : CUBLASLT_REDUCTION_SCHEME_NONE;
    memcpy(value, attribute == CUBLASLT_ALGO_CONFIG_SPLITK_NUM ? (void *)&n_splits : &scheme,
           n_bytes);
    *n_written = n_bytes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algorithm,
                                       cublasLtMatmulHeuristicResult_t *result)
{
    (void)handle, (void)desc, (void)c, (void)d;
    struct plan plan = plan_of(a, b);
    bool planned = is_planned(&plan);
    *result = (cublasLtMatmulHeuristicResult_t){.algo = *algorithm,
                                                .workspaceSize = fake_cublas.workspace};
    if (!planned && fake_cublas.larger_workspace)
        result->workspaceSize = fake_cublas.larger_workspace;
    bool refuses = has(fake_cublas.refused, algorithm->data[0]) ||
                   (!planned && has(fake_cublas.planned_only, algorithm->data[0]));
    return refuses ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}

static float dot(const uint16_t *a, const uint16_t *b, uint64_t n)
{
    float sum = 0.0f;
    for (uint64_t k = 0; k < n; k++)
        sum += kern_half_to_float(a[k]) * kern_half_to_float(b[k]);
    return sum;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t la, const void *b,
                              cublasLtMatrixLayout_t lb, const void *beta, const void *c,
                              cublasLtMatrixLayout_t lc, void *d, cublasLtMatrixLayout_t ld,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t n_bytes, cudaStream_t stream)
{
    (void)handle, (void)desc, (void)c, (void)lc, (void)stream;
    uint64_t number = algorithm->data[0];
    struct plan plan = plan_of(la, lb);
    fake_cublas.n_products++;
    fake_cublas.last = (int)number;
    if (has(fake_cublas.refused_late, number) || n_bytes < fake_cublas.workspace ||
        *(const float *)alpha != 1.0f || *(const float *)beta != 0.0f)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (has(fake_cublas.failing, number))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (has(fake_cublas.slow, number))
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    if (fake_cublas.workspace) /* it is there */
        memset(workspace, 0xff, fake_cublas.workspace);
    for (uint64_t j = 0; j < plan.n_b; j++) {
        for (uint64_t i = 0; i < plan.n_a; i++) {
            float sum = dot((const uint16_t *)a + i * plan.n_k, (const uint16_t *)b + j * plan.n_k,
                            plan.n_k);
            ((float *)d)[j * ld->data[2] + i] =
                has(fake_cublas.other_bits, number) ? sum * (1.0f + 0x1p-20f) : sum;
        }
    }
    return CUBLAS_STATUS_SUCCESS;
}

#include "kernels/cuda/device/cublas.h"

#include <cublasLt.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"

enum { CANDIDATES = 32 /* algorithms that the library may propose */ };

/** The library's functions that are used: X(name here, name there without cublasLt). */
#define FUNCTIONS(X)                                                                               \
    X(create, Create)                                                                              \
    X(destroy, Destroy)                                                                            \
    X(status_name, GetStatusName)                                                                  \
    X(desc_create, MatmulDescCreate)                                                               \
    X(desc_destroy, MatmulDescDestroy)                                                             \
    X(desc_set, MatmulDescSetAttribute)                                                            \
    X(layout_create, MatrixLayoutCreate)                                                           \
    X(layout_destroy, MatrixLayoutDestroy)                                                         \
    X(preference_create, MatmulPreferenceCreate)                                                   \
    X(preference_destroy, MatmulPreferenceDestroy)                                                 \
    X(preference_set, MatmulPreferenceSetAttribute)                                                \
    X(heuristic, MatmulAlgoGetHeuristic)                                                           \
    X(config_get, MatmulAlgoConfigGetAttribute)                                                    \
    X(check, MatmulAlgoCheck)                                                                      \
    X(matmul, Matmul)

#define MEMBER(name, there) __typeof__(cublasLt##there) *(name);
struct functions {
    FUNCTIONS(MEMBER)
};

/** Layouts of a product: c is column-major [n_a, n_b] = a^T b. */
struct layouts {
    cublasLtMatrixLayout_t a, b, c;
};

/** A size that an algorithm has been found to take. */
struct taken {
    size_t n_a, n_b, c_stride;
    unsigned algorithm;
    struct layouts layouts;
};

enum { MAX_TAKEN = 64 /* of a shape: experts have as many tokens as happen to choose them */ };

/** The algorithms for a planned shape, in the library's order. */
struct plan {
    size_t n_a, n_b, n_k;
    cublasLtMatmulAlgo_t algorithms[KERN_CUDA_MAX_ALGORITHMS];
    size_t n_algorithms;
    struct taken taken[MAX_TAKEN]; /* the last ones: number i at i % MAX_TAKEN */
    size_t n_taken;
};

struct kern_cublas {
    void *library;
    struct functions f;
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t desc;
    void *workspace;
    struct plan *plans;
    size_t n_plans, capacity;
};

static enum status failed(const struct kern_cublas *blas, cublasStatus_t code, const char *what,
                          struct status_why *why)
{
    return status_fail(why, STATUS_DEVICE, "cuBLASLt: %s: %s", what, blas->f.status_name(code));
}

/** Whether the library refuses an algorithm for a shape, rather than fails: another may do. */
static bool is_refusal(cublasStatus_t code)
{
    return code == CUBLAS_STATUS_NOT_SUPPORTED || code == CUBLAS_STATUS_INVALID_VALUE ||
           code == CUBLAS_STATUS_ARCH_MISMATCH;
}

static void *open_library(void)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                        "/usr/local/cuda/lib64/libcublasLt.so"};
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
        /* It has registered its kernels with the driver: it stays for the next backend. */
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return library;
}

/** Look up a function; *found becomes false where there is none. */
static void load(void *library, const char *name, void *function, bool *found)
{
    void *symbol = dlsym(library, name);
    *found = *found && symbol;
    memcpy(function, &symbol, sizeof symbol);
}

#define LOAD(name, there) load(library, "cublasLt" #there, &f->name, &found);
static bool load_all(struct functions *f, void *library)
{
    bool found = true;
    FUNCTIONS(LOAD)
    return found;
}

/** a transposed, float32 sums. */
static enum status make_desc(struct kern_cublas *blas, struct status_why *why)
{
    cublasStatus_t code = blas->f.desc_create(&blas->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    const cublasOperation_t transposed = CUBLAS_OP_T;
    if (code == CUBLAS_STATUS_SUCCESS)
        code = blas->f.desc_set(blas->desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                sizeof transposed);
    return code == CUBLAS_STATUS_SUCCESS ? STATUS_OK
                                         : failed(blas, code, "describing a product", why);
}

static void layouts_close(const struct kern_cublas *blas, const struct layouts *l)
{
    const cublasLtMatrixLayout_t all[] = {l->a, l->b, l->c};
    for (size_t i = 0; i < 3; i++)
        if (all[i])
            blas->f.layout_destroy(all[i]);
}

enum status kern_cublas_open(struct kern_cublas **out, void *workspace, struct status_why *why)
{
    *out = NULL;
    struct kern_cublas *blas = calloc(1, sizeof *blas);
    if (!blas)
        return status_fail(why, STATUS_MEMORY, "no memory for cuBLASLt's functions");
    blas->workspace = workspace;
    blas->library = open_library();
    if (!blas->library || !load_all(&blas->f, blas->library)) {
        kern_cublas_close(blas);
        return status_fail(why, STATUS_DEVICE,
                           "libcublasLt.so.13 (or .12) could not be loaded; install CUDA's cuBLAS, "
                           "or use --precision exact, which does without");
    }
    cublasStatus_t code = blas->f.create(&blas->handle);
    enum status status =
        code == CUBLAS_STATUS_SUCCESS ? make_desc(blas, why) : failed(blas, code, "starting", why);
    if (status) {
        kern_cublas_close(blas);
        return status;
    }
    *out = blas;
    return STATUS_OK;
}

void kern_cublas_close(struct kern_cublas *blas)
{
    if (!blas)
        return;
    for (size_t i = 0; i < blas->n_plans; i++)
        for (size_t k = 0; k < MAX_TAKEN; k++)
            layouts_close(blas, &blas->plans[i].taken[k].layouts);
    if (blas->desc)
        blas->f.desc_destroy(blas->desc);
    if (blas->handle)
        blas->f.destroy(blas->handle);
    if (blas->library)
        dlclose(blas->library);
    free(blas->plans);
    free(blas);
}

/** What was made is in *l even where it fails. */
static cublasStatus_t layouts_open(const struct kern_cublas *blas, struct layouts *l, size_t n_a,
                                   size_t n_b, size_t n_k, size_t c_stride)
{
    *l = (struct layouts){0};
    cublasStatus_t code = blas->f.layout_create(&l->a, CUDA_R_16F, n_k, n_a, (int64_t)n_k);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = blas->f.layout_create(&l->b, CUDA_R_16F, n_k, n_b, (int64_t)n_k);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = blas->f.layout_create(&l->c, CUDA_R_32F, n_a, n_b, (int64_t)c_stride);
    return code;
}

/** Whether an algorithm adds each sum in one piece. */
static bool never_splits(const struct kern_cublas *blas, const cublasLtMatmulAlgo_t *algo)
{
    int32_t n_splits = 0;
    uint32_t reduction = CUBLASLT_REDUCTION_SCHEME_MASK;
    size_t written = 0;
    return blas->f.config_get(algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &n_splits, sizeof n_splits,
                              &written) == CUBLAS_STATUS_SUCCESS &&
           blas->f.config_get(algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &reduction,
                              sizeof reduction, &written) == CUBLAS_STATUS_SUCCESS &&
           n_splits <= 1 && reduction == CUBLASLT_REDUCTION_SCHEME_NONE;
}

/** Whether a proposal is of use: it works, in the workspace, and never splits a sum. */
static bool is_usable(const struct kern_cublas *blas, const cublasLtMatmulHeuristicResult_t *found)
{
    return found->state == CUBLAS_STATUS_SUCCESS && found->workspaceSize <= KERN_CUBLAS_WORKSPACE &&
           never_splits(blas, &found->algo);
}

/** The library's first proposals that are of use. */
static enum status make_plan(const struct kern_cublas *blas, struct plan *plan,
                             struct status_why *why)
{
    struct layouts l;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t results[CANDIDATES];
    int n = 0;
    const uint64_t workspace = KERN_CUBLAS_WORKSPACE;
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE;
    cublasStatus_t code = layouts_open(blas, &l, plan->n_a, plan->n_b, plan->n_k, plan->n_a);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = blas->f.preference_create(&preference);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = blas->f.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                      &workspace, sizeof workspace);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = blas->f.preference_set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                      &schemes, sizeof schemes);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = blas->f.heuristic(blas->handle, blas->desc, l.a, l.b, l.c, l.c, preference,
                                 CANDIDATES, results, &n);
    if (preference)
        blas->f.preference_destroy(preference);
    layouts_close(blas, &l);
    plan->n_algorithms = 0;
    for (int i = 0; code == CUBLAS_STATUS_SUCCESS && i < n; i++)
        if (plan->n_algorithms < KERN_CUDA_MAX_ALGORITHMS && is_usable(blas, &results[i]))
            plan->algorithms[plan->n_algorithms++] = results[i].algo;
    if (code != CUBLAS_STATUS_SUCCESS && !is_refusal(code))
        return failed(blas, code, "asking for algorithms", why);
    if (plan->n_algorithms == 0)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "cuBLASLt has no algorithm for a product of %zu x %zu x %zu halves that "
                           "adds in one piece (%s); --precision exact does without cuBLAS",
                           plan->n_a, plan->n_b, plan->n_k, blas->f.status_name(code));
    return STATUS_OK;
}

static enum status find(struct kern_cublas *blas, const struct kern_cuda_gemm *gemm,
                        struct plan **plan, struct status_why *why)
{
    for (size_t i = 0; i < blas->n_plans; i++) {
        *plan = &blas->plans[i];
        if ((*plan)->n_a == gemm->plan_a && (*plan)->n_b == gemm->plan_b &&
            (*plan)->n_k == gemm->n_k)
            return STATUS_OK;
    }
    if (base_array_reserve(blas->plans, blas->capacity, blas->n_plans + 1, "products", why))
        return STATUS_MEMORY;
    struct plan *new = &blas->plans[blas->n_plans];
    *new = (struct plan){.n_a = gemm->plan_a, .n_b = gemm->plan_b, .n_k = gemm->n_k};
    enum status status = make_plan(blas, new, why);
    blas->n_plans += !status;
    *plan = new;
    return status;
}

/** Whether an algorithm takes the product's size, and what it needs for that: asked for once. */
static cublasStatus_t take(const struct kern_cublas *blas, struct plan *plan,
                           const struct kern_cuda_gemm *gemm, struct layouts *l)
{
    size_t c_stride = gemm->c_stride ? gemm->c_stride : gemm->n_a;
    for (size_t i = 0; i < base_min(plan->n_taken, MAX_TAKEN); i++) {
        const struct taken *t = &plan->taken[i];
        if (t->n_a == gemm->n_a && t->n_b == gemm->n_b && t->c_stride == c_stride &&
            t->algorithm == gemm->algorithm) {
            *l = t->layouts;
            return CUBLAS_STATUS_SUCCESS;
        }
    }
    cublasLtMatmulHeuristicResult_t checked;
    cublasStatus_t code = layouts_open(blas, l, gemm->n_a, gemm->n_b, gemm->n_k, c_stride);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = blas->f.check(blas->handle, blas->desc, l->a, l->b, l->c, l->c,
                             &plan->algorithms[gemm->algorithm], &checked);
    if (code == CUBLAS_STATUS_SUCCESS && checked.workspaceSize > KERN_CUBLAS_WORKSPACE)
        code = CUBLAS_STATUS_NOT_SUPPORTED;
    struct taken *last = &plan->taken[plan->n_taken % MAX_TAKEN];
    layouts_close(blas, code == CUBLAS_STATUS_SUCCESS ? &last->layouts : l);
    if (code == CUBLAS_STATUS_SUCCESS) {
        *last = (struct taken){gemm->n_a, gemm->n_b, c_stride, gemm->algorithm, *l};
        plan->n_taken++;
    }
    return code;
}

enum status kern_cublas_multiply(struct kern_cublas *blas, const struct kern_cuda_gemm *gemm,
                                 void *stream, struct status_why *why)
{
    struct plan *plan = NULL;
    struct layouts l;
    enum status status = find(blas, gemm, &plan, why);
    if (!status && gemm->algorithm >= plan->n_algorithms)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "cuBLASLt has %zu algorithms of %zu x %zu x %zu", plan->n_algorithms,
                           plan->n_a, plan->n_b, plan->n_k);
    if (status)
        return status;
    const float one = 1.0f, zero = 0.0f;
    cublasStatus_t code = take(blas, plan, gemm, &l);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = blas->f.matmul(blas->handle, blas->desc, &one, gemm->a, l.a, gemm->b, l.b, &zero,
                              gemm->c, l.c, gemm->c, l.c, &plan->algorithms[gemm->algorithm],
                              blas->workspace, KERN_CUBLAS_WORKSPACE, (cudaStream_t)stream);
    if (is_refusal(code))
        return status_fail(why, STATUS_UNSUPPORTED,
                           "cuBLASLt cannot multiply %zu x %zu x %zu halves as it does %zu x %zu "
                           "(%s); --precision exact does without cuBLAS",
                           gemm->n_a, gemm->n_b, gemm->n_k, gemm->plan_a, gemm->plan_b,
                           blas->f.status_name(code));
    return code == CUBLAS_STATUS_SUCCESS ? STATUS_OK : failed(blas, code, "multiplying", why);
}

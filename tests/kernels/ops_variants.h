/** The variants of the kernels in kernels/numerics/ops.h that this machine can run. */
#ifndef TESTS_KERNELS_OPS_VARIANTS_H
#define TESTS_KERNELS_OPS_VARIANTS_H

#include <math.h>
#include <string.h>

#include "kernels/cpu/kernels.h"
#include "tests/harness/rng.h"

/** The i-th SIMD variant, NULL where there is none or this machine lacks the ISA. */
static inline const struct kern_ops *ops_variant(int isa)
{
    return isa <= (int)kern_isa_detect() ? kern_sets[isa].ops : NULL;
}

/** Index of the first double whose bits differ, or n; NaNs are equal to each other. */
static inline size_t compare_double_bits(const double *found, const double *expected, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (memcmp(&found[i], &expected[i], sizeof *found) != 0 &&
            !(isnan(found[i]) && isnan(expected[i]))) {
            return i;
        }
    }
    return n;
}

/** Mostly normal numbers of that spread; now and then 0, -0, tiny, huge and not finite. */
static inline void fill_wild(struct rng *r, float *x, size_t n, float spread)
{
    static const float special[] = {0.0f,
                                    -0.0f,
                                    1e-41f,
                                    -1e-41f,
                                    1e-38f,
                                    3e38f,
                                    -3e38f,
                                    INFINITY,
                                    -INFINITY,
                                    NAN,
                                    __builtin_nanf("0x3fffff"),
                                    89.0f,
                                    -87.336f,
                                    88.72f};
    for (size_t i = 0; i < n; i++) {
        x[i] = rng_normal(r) * spread;
        if (rng_below(r, 16) == 0) {
            x[i] = special[rng_below(r, sizeof special / sizeof special[0])];
        }
    }
}

/** Normal numbers of that spread. */
static inline void fill_normal(struct rng *r, float *x, size_t n, float spread)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = rng_normal(r) * spread;
    }
}

#endif

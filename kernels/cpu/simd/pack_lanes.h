/**
 * The kernel int16_pack_lanes for AVX2 and AVX-512. The file that includes this has the words of
 * vec.h, and before it LANES_FUNCTION, the head of the function that is defined here.
 */
#ifndef KERNELS_CPU_SIMD_PACK_LANES_H
#define KERNELS_CPU_SIMD_PACK_LANES_H

#include <float.h>

#include "base/arithmetic.h"
#include "kernels/cpu/kernels.h"

enum { LANES_COLUMNS = KERN_ROUNDED_COLUMNS, LANES_HALF = KERN_ROUNDED_TOKENS / 2 };

/** The bits of the largest magnitudes of n columns of the lanes at x; with a NaN above those of
 * infinity. */
static inline vec_i largest_of_lanes(const float *x, const float *factors, size_t n)
{
    const vec_i magnitude = V(set1_epi32)(INT32_MAX);
    vec_i most = V(set1_epi32)(0);
    for (size_t k = 0; k < n; k++) {
        vec_f scaled = V(mul_ps)(V(load_ps)(x + k * KERN_PANEL), V(set1_ps)(factors[k]));
        most = V(max_epi32)(most, (vec_i)scaled & magnitude);
    }
    return most;
}

/** What the lanes of a block are multiplied with, and which are multiplied at all. */
struct lane_factors {
    lanes_f counts;
    vec_f inverse, scale;
};

static inline struct lane_factors choose_lane_factors(vec_i bits, int largest)
{
    const vec_f limit = V(set1_ps)((float)largest), most = (vec_f)bits;
    lanes_f nan = greater_i(bits, V(set1_epi32)(0x7f7fffff));
    lanes_f counts = COMPARE_F(most, V(set1_ps)(KERN_ROUNDED_LEAST), _CMP_GE_OQ);
    counts &= COMPARE_F(most, V(set1_ps)(FLT_MAX), _CMP_LE_OQ);
    vec_f scale = keep_f(counts, V(div_ps)(most, limit));
    return (struct lane_factors){
        .counts = counts,
        .inverse = keep_f(counts, V(div_ps)(limit, most)),
        .scale = select_f(nan, V(set1_ps)(__builtin_nanf("")), scale),
    };
}

static inline vec_i round_lanes(const float *x, float factor, const struct lane_factors *f)
{
    vec_f scaled = keep_f(f->counts, V(mul_ps)(V(load_ps)(x), V(set1_ps)(factor)));
    return V(cvtps_epi32)(V(mul_ps)(scaled, f->inverse));
}

/** 32 columns of the lanes from `lane` on. */
static inline void pack_lanes_chunk(const float *x, const float *factors,
                                    const struct lane_factors *f, struct kern_int16_chunk *out,
                                    size_t lane)
{
    const vec_i low = V(set1_epi32)(0xffff);
    vec_i begin = V(set1_epi32)(0), before = begin;
    for (size_t cell = 0; cell < LANES_COLUMNS / 2; cell++) {
        vec_i first = round_lanes(x + 2 * cell * KERN_PANEL, factors[2 * cell], f);
        vec_i second = round_lanes(x + (2 * cell + 1) * KERN_PANEL, factors[2 * cell + 1], f);
        vec_i both = (first & low) | V(slli_epi32)(second, 16);
        store_i(out->x[lane / LANES_HALF][cell][lane % LANES_HALF], both);
        if (cell % 2 && cell % 8 < KERN_ROUNDED_PAIRED)
            begin = V(sub_epi32)(begin, V(madd_epi16)(before, both));
        before = both;
        if (cell % 8 == 7) {
            store_i(out->begins[cell / 8] + lane, begin);
            begin = V(set1_epi32)(0);
        }
    }
    V(store_ps)(out->of.scale + lane, f->scale);
}

LANES_FUNCTION(const struct kern_lanes_pack *op)
{
    struct kern_int16_chunk *chunk = op->out;
    for (size_t k = 0; k < op->n_k; k += KERN_INT16_BLOCK) {
        size_t n = base_min(op->n_k - k, KERN_INT16_BLOCK);
        for (size_t lane = 0; lane < KERN_PANEL; lane += VEC_FLOATS) {
            const float *x = op->x + k * KERN_PANEL + lane, *factors = op->factors + k;
            struct lane_factors f =
                choose_lane_factors(largest_of_lanes(x, factors, n), op->largest);
            for (size_t i = 0; i < n; i += LANES_COLUMNS)
                pack_lanes_chunk(x + i * KERN_PANEL, factors + i, &f,
                                 chunk + (k + i) / LANES_COLUMNS, lane);
        }
    }
}

#endif

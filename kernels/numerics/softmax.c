/* Attention's softmax, one block of keys for KERN_LANES queries: the scalar reference. */
#include <math.h>

#include "kernels/numerics/fmath.h"
#include "kernels/numerics/ops_scalar.h"

static bool is_visible(const struct kern_softmax_block *block, size_t lane, size_t key)
{
    return (int32_t)key >= block->begin[lane] && (int32_t)key < block->end[lane];
}

static void softmax_lane(const struct kern_softmax_block *block, size_t lane)
{
    float *s = block->s + lane;
    float old_max = block->max[lane];
    float max = old_max;
    for (size_t j = 0; j < block->n_keys; j++) {
        float scaled = s[j * block->stride] * block->scale;
        s[j * block->stride] = scaled;
        if (is_visible(block, lane, j) && scaled > max)
            max = scaled;
    }
    /* While every visible score is -infinity, compare with 0: each probability is then 0. */
    float reference = max == -INFINITY ? 0.0f : max;
    float sum = 0.0f;
    for (size_t j = 0; j < block->n_keys; j++) {
        float p = fmath_exp_f32(s[j * block->stride] - reference);
        p = is_visible(block, lane, j) ? p : 0.0f;
        s[j * block->stride] = p;
        sum += p;
    }
    float rescale = old_max == -INFINITY ? 1.0f : fmath_exp_f32(old_max - max);
    block->rescale[lane] = rescale;
    block->sum[lane] = fmaf(block->sum[lane], rescale, sum);
    block->max[lane] = max;
}

void kern_scalar_softmax_block(const struct kern_softmax_block *block)
{
    for (size_t lane = 0; lane < KERN_LANES; lane++)
        softmax_lane(block, lane);
}

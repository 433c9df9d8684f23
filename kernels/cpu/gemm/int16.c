#include "kernels/cpu/gemm/int16.h"

#include <math.h>
#include <string.h>

#include "base/arithmetic.h"

enum { COLUMNS = KERN_INT16_COLUMNS, HALF = KERN_INT16_TOKENS / 2 };

/** The largest magnitude of n; infinity if one of them is NaN. */
static float largest(const float *x, size_t n)
{
    float most = 0.0f;
    for (size_t i = 0; i < n; i++) {
        if (isnan(x[i]))
            return INFINITY;
        most = fmaxf(most, fabsf(x[i]));
    }
    return most;
}

/** 32 columns of one token, which are multiplied by `inverse`, or 0 if that is. */
static void pack_chunk(const float *x, float inverse, float scale, struct kern_int16_chunk *out,
                       size_t lane)
{
    int32_t sum[2] = {0, 0};
    for (size_t i = 0; inverse > 0.0f && i < COLUMNS; i++) {
        int16_t integer = (int16_t)nearbyintf(x[i] * inverse);
        out->x[lane / HALF][i / 2][lane % HALF][i % 2] = integer;
        sum[i / (COLUMNS / 2)] += integer;
    }
    out->sum[0][lane] = (float)sum[0];
    out->sum[1][lane] = (float)sum[1];
    out->sum[2][lane] = (float)(sum[0] + sum[1]);
    out->scale[lane] = scale;
}

static void pack_block(const float *x, size_t n, struct kern_int16_chunk *out, size_t lane)
{
    float most = largest(x, n), scale = 0.0f, inverse = 0.0f;
    if (isinf(most)) {
        scale = NAN;
    } else if (most >= KERN_INT16_LEAST) {
        scale = most / (float)KERN_INT16_MAX;
        inverse = (float)KERN_INT16_MAX / most;
    }
    for (size_t k = 0; k < n; k += COLUMNS)
        pack_chunk(x + k, inverse, scale, out + k / COLUMNS, lane);
}

void kern_scalar_int16_pack(const struct kern_int16_panel *op)
{
    memset(op->out, 0, op->n_k / COLUMNS * sizeof *op->out);
    for (size_t k = 0; k < op->n_k; k += KERN_INT16_BLOCK)
        for (size_t lane = 0; lane < op->n_lanes; lane++)
            pack_block(op->x + lane * op->x_stride + k, base_min(op->n_k - k, KERN_INT16_BLOCK),
                       op->out + k / COLUMNS, lane);
}

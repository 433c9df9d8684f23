#include "kernels/numerics/int16.h"

#include <math.h>
#include <string.h>

enum { COLUMNS = KERN_INT16_COLUMNS, HALF = KERN_INT16_TOKENS / 2 };

/** The largest magnitude; infinity if one of them is NaN. */
static float largest(const float *x)
{
    float most = 0.0f;
    for (size_t i = 0; i < COLUMNS; i++) {
        if (isnan(x[i]))
            return INFINITY;
        most = fmaxf(most, fabsf(x[i]));
    }
    return most;
}

/** A block of one token. */
static void pack_block(const float *x, struct kern_int16_chunk *out, size_t lane)
{
    float most = largest(x);
    float scale = 0.0f;
    int32_t sum[2] = {0, 0};
    if (isinf(most)) {
        scale = NAN;
    } else if (most >= KERN_INT16_LEAST) {
        scale = most / (float)KERN_INT16_MAX;
        float inverse = (float)KERN_INT16_MAX / most;
        for (size_t i = 0; i < COLUMNS; i++) {
            int16_t integer = (int16_t)nearbyintf(x[i] * inverse);
            out->x[lane / HALF][i / 2][lane % HALF][i % 2] = integer;
            sum[i / (COLUMNS / 2)] += integer;
        }
    }
    out->scale[lane] = scale;
    out->sum[0][lane] = (float)sum[0] * scale;
    out->sum[1][lane] = (float)sum[1] * scale;
    out->sum[2][lane] = (float)(sum[0] + sum[1]) * scale;
}

void kern_scalar_int16_pack(const struct kern_int16_panel *op)
{
    struct kern_int16_chunk *chunk = op->out;
    memset(chunk, 0, op->n_k / COLUMNS * sizeof *chunk);
    for (size_t k = 0; k < op->n_k; k += COLUMNS, chunk++)
        for (size_t lane = 0; lane < op->n_lanes; lane++)
            pack_block(op->x + lane * op->x_stride + k, chunk, lane);
}

/* Scalar versions of the kernels on lane arrays. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/scalar.h"

void kern_scalar_fma_tile(const struct kern_fma_tile *op)
{
    for (size_t r = 0; r < op->n_rows; r++) {
        const float *w = op->w + r * op->w_row;
        float *acc = op->acc + r * KERN_LANES;
        if (!op->resume)
            memset(acc, 0, KERN_LANES * sizeof *acc);
        for (size_t k = 0; k < op->n_k; k++) {
            const float *x = op->x + k * KERN_LANES;
            for (size_t lane = 0; lane < KERN_LANES; lane++)
                acc[lane] = fmaf(w[k * op->w_col], x[lane], acc[lane]);
        }
    }
}

void kern_scalar_lanes_pack(const float *x, size_t x_stride, size_t n_lanes, size_t n_k, float *out)
{
    for (size_t k = 0; k < n_k; k++) {
        for (size_t lane = 0; lane < KERN_LANES; lane++)
            out[k * KERN_LANES + lane] = lane < n_lanes ? x[lane * x_stride + k] : 0.0f;
    }
}

void kern_scalar_lanes_unpack(const struct kern_lanes_unpack *op)
{
    for (size_t lane = 0; lane < op->n_lanes; lane++) {
        float *y = op->y + lane * op->y_stride;
        for (size_t r = 0; r < op->n_rows; r++) {
            float value = op->acc[r * KERN_LANES + lane];
            if (op->scale != 1.0f)
                value *= op->scale;
            if (op->bias)
                value += op->bias[r];
            y[r] = op->accumulate ? value + y[r] : value;
        }
    }
}

void kern_scalar_rank_update(const float *logits, size_t n_rows, size_t first_row,
                             struct kern_rank_lanes *state)
{
    for (size_t r = 0; r < n_rows; r++) {
        int32_t token = (int32_t)(first_row + r);
        for (size_t lane = 0; lane < KERN_LANES; lane++) {
            float logit = logits[r * KERN_LANES + lane];
            bool before = logit > state->logit[lane] ||
                          (logit == state->logit[lane] && token < state->token[lane]);
            state->n_before[lane] += before;
        }
    }
}

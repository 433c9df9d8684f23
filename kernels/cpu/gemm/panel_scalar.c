/* The scalar kernel set: the product kernels in plain C. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/kernels.h"

static void fma_tile(const struct kern_fma_tile *op)
{
    size_t n_lanes = op->narrow ? KERN_NARROW : KERN_PANEL;
    for (size_t r = 0; r < op->n_rows; r++) {
        const float *w = op->w + r * op->w_row;
        float *acc = op->acc + r * KERN_PANEL;
        if (!op->resume)
            memset(acc, 0, n_lanes * sizeof *acc);
        for (size_t k = 0; k < op->n_k; k++) {
            const float *x = op->x + k * KERN_PANEL;
            for (size_t lane = 0; lane < n_lanes; lane++)
                acc[lane] = fmaf(w[k * op->w_col], x[lane], acc[lane]);
        }
    }
}

static void panel_pack(const float *x, size_t x_stride, size_t n_lanes, size_t n_k, float *out)
{
    for (size_t k = 0; k < n_k; k++) {
        for (size_t lane = 0; lane < KERN_PANEL; lane++)
            out[k * KERN_PANEL + lane] = lane < n_lanes ? x[lane * x_stride + k] : 0.0f;
    }
}

static void panel_unpack(const struct kern_panel_unpack *op)
{
    for (size_t lane = 0; lane < op->n_lanes; lane++) {
        float *y = op->y + lane * op->y_stride;
        for (size_t r = 0; r < op->n_rows; r++) {
            float value = op->acc[r * KERN_PANEL + lane];
            if (op->scale != 1.0f)
                value *= op->scale;
            if (op->bias)
                value += op->bias[r];
            y[r] = op->accumulate ? value + y[r] : value;
        }
    }
}

static void panel_scale(float *acc, size_t n_rows, const float *factor)
{
    for (size_t r = 0; r < n_rows; r++) {
        for (size_t lane = 0; lane < KERN_PANEL; lane++)
            acc[r * KERN_PANEL + lane] *= factor[lane];
    }
}

/** One run of a row: pairs first_pair to first_pair + run / 2 - 1 of a chunk, all lanes. */
static void add_run(float *acc, const int16_t *w, const struct kern_int16_chunk *x,
                    size_t first_pair, size_t run, float scale)
{
    for (size_t lane = 0; lane < KERN_PANEL; lane++) {
        int32_t sum = 0;
        for (size_t i = 0; i < run; i++)
            sum += w[i] * x->x[lane / 16][first_pair + i / 2][lane % 16][i % 2];
        acc[lane] = fmaf((float)sum * x->scale[lane], scale, acc[lane]);
    }
}

static void int16_tile(const struct kern_fma_tile *op)
{
    size_t run = op->format->run, n_runs = op->n_k / run;
    for (size_t r = 0; r < op->n_rows; r++) {
        const float *scales = op->w + r * op->w_row + op->n_k / 2, *mins = scales + n_runs;
        const int16_t *w = (const void *)(op->w + r * op->w_row);
        float *acc = op->acc + r * KERN_PANEL;
        if (!op->resume)
            memset(acc, 0, KERN_PANEL * sizeof *acc);
        for (size_t i = 0; i < n_runs; i++) {
            const struct kern_int16_chunk *x = (const void *)op->x;
            x += i * run / KERN_INT16_COLUMNS;
            size_t first = i * run % KERN_INT16_COLUMNS;
            add_run(acc, w + i * run, x, first / 2, run, scales[i]);
            const float *sums = x->sum[run == KERN_INT16_COLUMNS ? 2 : first / run];
            for (size_t lane = 0; op->format->has_min && lane < KERN_PANEL; lane++)
                acc[lane] = fmaf(sums[lane], mins[i], acc[lane]);
        }
    }
}

static void int16_row(const float *y, size_t n_k, int16_t *out)
{
    for (size_t k = 0; k < n_k; k++)
        out[k] = (int16_t)y[k];
}

const struct kern_kernels kern_kernels_scalar = {
    .fma_tile = fma_tile,
    .panel_pack = panel_pack,
    .panel_unpack = panel_unpack,
    .panel_scale = panel_scale,
    .bf16_pack_row = kern_scalar_bf16_pack_row,
    .bf16_pack_panel = kern_scalar_bf16_pack_panel,
    .bf16_pack_lanes = kern_scalar_bf16_pack_lanes,
    .int16_tile = int16_tile,
    .int16_pack = kern_scalar_int16_pack,
    .int16_row = int16_row,
};

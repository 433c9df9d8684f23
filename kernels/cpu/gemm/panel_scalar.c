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

/** A run of a row of weights, and where its columns are. */
struct int16_run {
    const int16_t *w;
    size_t n;
    const struct kern_int16_chunk *x;
    size_t first; /* column of the chunk */
    float scale;
    const float *min; /* or NULL */
};

/** One run of a row onto the part of every lane. */
static void add_run(float *part, const struct int16_run *run)
{
    for (size_t lane = 0; lane < KERN_PANEL; lane++) {
        int32_t sum = 0;
        for (size_t i = 0; i < run->n; i++)
            sum += run->w[i] * run->x->x[lane / 16][(run->first + i) / 2][lane % 16][i % 2];
        part[lane] = fmaf((float)sum, run->scale, part[lane]);
        if (run->min)
            part[lane] =
                fmaf(run->x->sum[run->n == KERN_INT16_COLUMNS ? 2 : run->first / run->n][lane],
                     *run->min, part[lane]);
    }
}

static void int16_tile(const struct kern_fma_tile *op)
{
    const struct kern_integers *format = op->format;
    size_t n_runs = op->n_k / format->run;
    for (size_t r = 0; r < op->n_rows; r++) {
        const float *row = op->w + r * op->w_row, *scales = row + op->n_k / 2;
        float *acc = op->acc + r * KERN_PANEL, part[KERN_PANEL] = {0};
        if (!op->resume)
            memset(acc, 0, KERN_PANEL * sizeof *acc);
        for (size_t k = 0; k < op->n_k; k += format->run) {
            const struct kern_int16_chunk *x = (const void *)op->x;
            x += k / KERN_INT16_COLUMNS;
            size_t i = k / format->run, end = k + format->run;
            add_run(part, &(struct int16_run){
                              .w = (const int16_t *)(const void *)row + k,
                              .n = format->run,
                              .x = x,
                              .first = k % KERN_INT16_COLUMNS,
                              .scale = scales[i],
                              .min = format->has_min ? &scales[n_runs + i] : NULL,
                          });
            if (end % KERN_INT16_BLOCK != 0 && end < op->n_k)
                continue;
            for (size_t lane = 0; lane < KERN_PANEL; lane++)
                acc[lane] = fmaf(part[lane], x->scale[lane], acc[lane]);
            memset(part, 0, sizeof part);
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

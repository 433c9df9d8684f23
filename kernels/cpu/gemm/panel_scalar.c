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

static void panel_pack(const struct kern_panel_pack *op)
{
    float *out = op->out;
    for (size_t k = 0; k < op->n_k; k++)
        for (size_t lane = 0; lane < KERN_PANEL; lane++)
            out[k * KERN_PANEL + lane] = lane < op->n_lanes ? op->x[lane * op->x_stride + k] : 0.0f;
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
    for (size_t r = 0; r < n_rows; r++)
        for (size_t lane = 0; lane < KERN_PANEL; lane++)
            acc[r * KERN_PANEL + lane] *= factor[lane];
}

/** A row of weights as integers, of 8 or 16 bits. */
struct integer_row {
    bool bytes;
    size_t run, min_run;
    const void *integers;
    const float *scales, *mins;
    size_t x_block;
};

static struct integer_row row_of(const struct kern_fma_tile *op, size_t r, bool bytes,
                                 size_t x_block)
{
    size_t run = op->format->run;
    const float *w = op->w + r * op->w_row;
    const float *scales =
        w + (bytes ? kern_int8_floats(op->n_k, run) : kern_int16_floats(op->n_k, run));
    return (struct integer_row){.bytes = bytes,
                                .run = run,
                                .min_run = op->format->min_run,
                                .integers = w,
                                .scales = scales,
                                .mins = scales + op->n_k / run,
                                .x_block = x_block};
}

/** w * x of column k and a token. */
static int32_t term(const struct integer_row *row, const void *x, size_t k, size_t lane)
{
    size_t i = k % KERN_ROUNDED_COLUMNS;
    if (!row->bytes) {
        const struct kern_int16_chunk *chunk = x;
        chunk += k / KERN_ROUNDED_COLUMNS;
        return ((const int16_t *)row->integers)[k] * chunk->x[lane / 16][i / 2][lane % 16][i % 2];
    }
    const struct kern_int8_chunk *chunk = x;
    chunk += k / KERN_ROUNDED_COLUMNS;
    int integer = chunk->x[lane / 16][i / 4][lane % 16][i % 4] - KERN_INT8_OFFSET;
    return ((const int8_t *)row->integers)[k] * integer;
}

static const struct kern_rounded_factors *factors_at(const struct integer_row *row, const void *x,
                                                     size_t k)
{
    size_t i = k / KERN_ROUNDED_COLUMNS;
    return row->bytes ? &((const struct kern_int8_chunk *)x)[i].of
                      : &((const struct kern_int16_chunk *)x)[i].of;
}

/** The run that begins at column k onto a token's part. */
static float add_run(float part, const struct integer_row *row, const void *x, size_t k,
                     size_t lane)
{
    size_t end = k + row->run, step = row->min_run;
    int64_t sum = 0;
    for (size_t j = k; j < end; j++)
        sum += term(row, x, j, lane);
    part = fmaf((float)sum, row->scales[k / row->run], part);
    for (size_t j = k; j < end && step > 0; j += step) {
        size_t which = step == KERN_ROUNDED_COLUMNS ? 2 : j / step % 2;
        part = fmaf(factors_at(row, x, j)->sum[which][lane], row->mins[j / step], part);
    }
    return part;
}

static void integer_tile(const struct kern_fma_tile *op, bool bytes, size_t x_block)
{
    for (size_t r = 0; r < op->n_rows; r++) {
        struct integer_row row = row_of(op, r, bytes, x_block);
        float *acc = op->acc + r * KERN_PANEL;
        for (size_t lane = 0; lane < KERN_PANEL; lane++) {
            float sum = op->resume ? acc[lane] : 0.0f;
            for (size_t k = 0; k < op->n_k; k += row.x_block) {
                float part = 0.0f;
                for (size_t j = k; j < k + row.x_block && j < op->n_k; j += row.run)
                    part = add_run(part, &row, op->x, j, lane);
                sum = fmaf(part, factors_at(&row, op->x, k)->scale[lane], sum);
            }
            acc[lane] = sum;
        }
    }
}

static void int16_tile(const struct kern_fma_tile *op)
{
    integer_tile(op, false, KERN_INT16_BLOCK);
}

static void int8_tile(const struct kern_fma_tile *op)
{
    integer_tile(op, true, KERN_INT8_BLOCK);
}

static void words_tile(const struct kern_fma_tile *op)
{
    integer_tile(op, false, KERN_INT8_BLOCK);
}

static void to_int16(const float *y, size_t n, int16_t *integers)
{
    for (size_t i = 0; i < n; i++)
        integers[i] = (int16_t)y[i];
}

static void int16_row(const int16_t *integers, size_t n_k, const struct kern_integers *format,
                      float *out)
{
    (void)format;
    memcpy(out, integers, n_k * sizeof *integers);
}

static void to_int8(const float *y, size_t n, int8_t *integers)
{
    for (size_t i = 0; i < n; i++)
        integers[i] = (int8_t)y[i];
}

static void int8_row(const int8_t *integers, size_t n_k, const struct kern_integers *format,
                     float *out)
{
    memcpy(out, integers, n_k);
    int32_t *begins = (void *)(out + n_k / sizeof *out);
    memset(begins, 0, n_k / format->run * sizeof *begins);
    for (size_t k = 0; k < n_k; k++)
        begins[k / format->run] -= KERN_INT8_OFFSET * integers[k];
}

static void int16_pack_lanes(const struct kern_lanes_pack *op)
{
    kern_pack_turned(op, kern_scalar_int16_pack);
}

static void int16_turn(const int16_t *x, size_t n_rows, size_t n_cols, int16_t *out)
{
    for (size_t c = 0; c < n_cols; c++)
        for (size_t r = 0; r < n_rows; r++)
            out[c * n_rows + r] = x[r * n_cols + c];
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
    .to_int16 = to_int16,
    .int16_row = int16_row,
    .int8_tile = int8_tile,
    .int8_pack = kern_scalar_int8_pack,
    .to_int8 = to_int8,
    .int8_row = int8_row,
    .words_tile = words_tile,
    .words_pack = kern_scalar_words_pack,
    .bytes_most = KERN_INTEGER_LIMIT,
    .int16_pack_lanes = int16_pack_lanes,
    .int16_round = kern_scalar_int16_round,
    .int16_turn = int16_turn,
};

#include "kernels/cpu/gemm/rounded.h"

#include <math.h>

#include "base/arithmetic.h"

enum { COLUMNS = KERN_ROUNDED_COLUMNS, TOKENS = KERN_ROUNDED_TOKENS, HALF = TOKENS / 2 };

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

/** What a block is multiplied with to be integers; 0: there is no block, or only zeros. */
struct factors {
    float scale, inverse;
};

static struct factors choose_factors(const float *x, size_t n, float limit)
{
    float most = largest(x, n);
    if (isinf(most))
        return (struct factors){.scale = NAN};
    if (most < KERN_ROUNDED_LEAST)
        return (struct factors){0};
    return (struct factors){.scale = most / limit, .inverse = limit / most};
}

/** 32 columns of one token. */
static void round_chunk(const float *x, struct factors f, int *integers,
                        struct kern_rounded_factors *out, size_t lane)
{
    int sum[2] = {0, 0};
    for (size_t i = 0; i < COLUMNS; i++) {
        integers[i] = f.inverse > 0.0f ? (int)nearbyintf(x[i] * f.inverse) : 0;
        sum[i / (COLUMNS / 2)] += integers[i];
    }
    out->sum[0][lane] = (float)sum[0];
    out->sum[1][lane] = (float)sum[1];
    out->sum[2][lane] = (float)(sum[0] + sum[1]);
    out->scale[lane] = f.scale;
}

/** Columns of a token from k on; zeros if there is no token. */
static const float *columns_of(const struct kern_panel_pack *op, size_t k, size_t lane)
{
    static const float zeros[KERN_INT16_BLOCK];
    return lane < op->n_lanes ? op->x + lane * op->x_stride + k : zeros;
}

static void pack_words(const struct kern_panel_pack *op, size_t x_block)
{
    struct kern_int16_chunk *chunk = op->out;
    int integers[COLUMNS];
    for (size_t k = 0; k < op->n_k; k += COLUMNS, chunk++) {
        size_t block = k / x_block * x_block;
        size_t n = base_min(op->n_k - block, x_block);
        for (size_t lane = 0; lane < TOKENS; lane++) {
            const float *x = columns_of(op, block, lane);
            struct factors f = choose_factors(x, n, (float)op->largest);
            round_chunk(x + (k - block), f, integers, &chunk->of, lane);
            uint32_t begins[2] = {0, 0};
            struct kern_int16_chunk *first = chunk - (k - block) / COLUMNS;
            first->squares[lane] = chunk == first ? 0.0f : first->squares[lane];
            for (size_t i = 0; i < COLUMNS; i++) {
                first->squares[lane] += (float)integers[i] * (float)integers[i];
                chunk->x[lane / HALF][i / 2][lane % HALF][i % 2] = (int16_t)integers[i];
                if (i % 4 < 2 && i / 2 % 8 < KERN_ROUNDED_PAIRED)
                    begins[i / (COLUMNS / 2)] -= (uint32_t)(integers[i] * integers[i + 2]);
            }
            for (size_t i = 0; i < 2; i++)
                chunk->begins[i][lane] = (int32_t)begins[i];
        }
    }
}

void kern_scalar_int16_pack(const struct kern_panel_pack *op)
{
    pack_words(op, KERN_INT16_BLOCK);
}

void kern_scalar_words_pack(const struct kern_panel_pack *op)
{
    pack_words(op, KERN_INT8_BLOCK);
}

void kern_scalar_int8_pack(const struct kern_panel_pack *op)
{
    struct kern_int8_chunk *chunk = op->out;
    int integers[COLUMNS];
    for (size_t k = 0; k < op->n_k; k += COLUMNS, chunk++) {
        for (size_t lane = 0; lane < TOKENS; lane++) {
            const float *x = columns_of(op, k, lane);
            struct factors f = choose_factors(x, KERN_INT8_BLOCK, (float)op->largest);
            round_chunk(x, f, integers, &chunk->of, lane);
            int begins[2] = {0, 0};
            for (size_t i = 0; i < COLUMNS; i++) {
                chunk->x[lane / HALF][i / 4][lane % HALF][i % 4] =
                    (uint8_t)(integers[i] + KERN_INT8_OFFSET);
                if (i % 8 < 4 && i / 4 % 8 < KERN_ROUNDED_PAIRED)
                    begins[i / (COLUMNS / 2)] -= (integers[i] + KERN_INT8_OFFSET) * integers[i + 4];
            }
            for (size_t i = 0; i < 2; i++)
                chunk->begins[i][lane] = begins[i];
        }
    }
}

float kern_scalar_int16_round(const float *x, size_t n, int largest, int16_t *integers)
{
    struct factors f = choose_factors(x, n, (float)largest);
    for (size_t i = 0; i < n; i++)
        integers[i] = f.inverse > 0.0f ? (int16_t)nearbyintf(x[i] * f.inverse) : 0;
    return f.scale;
}

void kern_pack_turned(const struct kern_lanes_pack *op,
                      void (*pack)(const struct kern_panel_pack *))
{
    float rows[TOKENS][KERN_INT16_BLOCK];
    struct kern_int16_chunk *chunk = op->out;
    for (size_t k = 0; k < op->n_k; k += KERN_INT16_BLOCK) {
        size_t n = base_min(op->n_k - k, KERN_INT16_BLOCK);
        for (size_t i = 0; i < n; i++)
            for (size_t lane = 0; lane < TOKENS; lane++)
                rows[lane][i] = op->x[(k + i) * TOKENS + lane] * op->factors[k + i];
        pack(&(struct kern_panel_pack){.x = rows[0],
                                       .x_stride = KERN_INT16_BLOCK,
                                       .n_lanes = TOKENS,
                                       .n_k = n,
                                       .largest = op->largest,
                                       .out = chunk + k / COLUMNS});
    }
}

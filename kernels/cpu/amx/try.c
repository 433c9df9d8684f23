/* Whether AMX is there, allowed, and right. */
#include <math.h>

#include "kernels/cpu/amx/amx.h"
#include "kernels/cpu/memory.h"

/** A small product: ragged rows, tokens and columns. */
enum { N_ROWS = 41, N_TOKENS = 27, N_K = 75, N_CHUNKS = 3 };

struct trial {
    float w[N_ROWS][N_K], x[N_TOKENS][N_K];
    _Alignas(64) uint16_t packed_w[2 * N_CHUNKS * 4 * KERN_BF16_TILE];
    _Alignas(64) uint16_t packed_x[N_CHUNKS * 4 * KERN_BF16_TILE];
    _Alignas(64) float acc[N_ROWS * KERN_PANEL];
};

/** Numbers in [-1, 1) that use all bits of the significand. */
static void fill(float *out, size_t n, uint32_t state)
{
    for (size_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        out[i] = (float)(state >> 8) * 0x1p-23f - 1.0f;
    }
}

static void run(struct trial *t, const struct kern_kernels *kernels, kern_fma_tile_fn *multiply,
                unsigned n_parts)
{
    size_t group = kern_bf16_group_size(N_K, n_parts);
    for (size_t r = 0; r < N_ROWS; r++)
        kernels->bf16_pack_row(t->w[r], N_K, n_parts, r % KERN_BF16_GROUP,
                               t->packed_w + r / KERN_BF16_GROUP * group);
    kernels->bf16_pack_panel(&(struct kern_panel_pack){.x = t->x[0],
                                                       .x_stride = N_K,
                                                       .n_lanes = N_TOKENS,
                                                       .n_k = N_K,
                                                       .n_parts = n_parts,
                                                       .out = t->packed_x});
    multiply(&(struct kern_fma_tile){.w = (const float *)(const void *)t->packed_w,
                                     .w_row = group / KERN_BF16_GROUP / 2,
                                     .x = (const float *)(const void *)t->packed_x,
                                     .acc = t->acc,
                                     .n_rows = N_ROWS,
                                     .n_k = N_K});
}

/**
 * Each product is off by 3 * 2^-16 of its magnitude at most in triples, by 2^-7 in one part
 * (bf16.h, and lo lo left out); summation adds a rounding per operation, of which a number takes
 * part in at most 17 + 3 * 3.
 */
static bool within_bound(const struct trial *t, unsigned n_parts)
{
    const double of_parts = n_parts > 1 ? 0x3p-16 : 0x1p-7, of_sums = 27 * 0x1p-24;
    for (size_t r = 0; r < N_ROWS; r++) {
        for (size_t token = 0; token < N_TOKENS; token++) {
            double sum = 0.0, magnitude = 0.0;
            for (size_t k = 0; k < N_K; k++) {
                double product = (double)t->w[r][k] * (double)t->x[token][k];
                sum += product;
                magnitude += fabs(product);
            }
            double error = fabs((double)t->acc[r * KERN_PANEL + token] - sum);
            if (!(error <= magnitude * 1.01 * (of_parts + of_sums)))
                return false;
        }
    }
    return true;
}

bool kern_amx_is_right(const struct kern_amx_products *amx, const struct kern_kernels *kernels)
{
    struct trial *t = kern_memory_new(sizeof *t); /* too large for a small stack */
    if (!t)
        return false;
    memset(t, 0, sizeof *t);
    fill(t->w[0], (size_t)N_ROWS * N_K, 1);
    fill(t->x[0], (size_t)N_TOKENS * N_K, 2);
    run(t, kernels, amx->multiply_triple, 2);
    bool is_right = within_bound(t, 2);
    run(t, kernels, amx->multiply_one, 1);
    is_right = is_right && within_bound(t, 1);
    kern_memory_free(t);
    return is_right;
}

enum kern_amx_state kern_amx_try(const struct kern_kernels *kernels)
{
    if (!kern_amx_detect())
        return KERN_AMX_ABSENT;
    if (!kern_amx_request())
        return KERN_AMX_REFUSED;
    return kern_amx_is_right(&kern_amx_hardware, kernels) ? KERN_AMX_WORKS : KERN_AMX_WRONG;
}

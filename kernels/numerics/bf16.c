/* The packers of products in bfloat16 in plain C. */
#include "kernels/numerics/bf16.h"

/** Where part `part` of a row or token's tile begins in a chunk. */
static uint16_t *tile_of(uint16_t *chunk, unsigned part, size_t index)
{
    return chunk + (2 * part + index / KERN_BF16_TILE_LINES) * KERN_BF16_TILE;
}

/** Put x into both parts at `at` of a tile. */
static void put(uint16_t *chunk, unsigned n_parts, size_t index, size_t at, float x)
{
    uint16_t hi = kern_bf16_round(x);
    tile_of(chunk, 0, index)[at] = hi;
    if (n_parts > 1)
        tile_of(chunk, 1, index)[at] = kern_bf16_rest(x, hi);
}

void kern_scalar_bf16_pack_row(const float *w, size_t n_k, unsigned n_parts, size_t row,
                               uint16_t *out)
{
    size_t line = row % KERN_BF16_TILE_LINES * KERN_BF16_CHUNK_K;
    for (size_t k = 0; k < n_k; k += KERN_BF16_CHUNK_K) {
        for (size_t i = 0; i < KERN_BF16_CHUNK_K; i++)
            put(out, n_parts, row, line + i, k + i < n_k ? w[k + i] : 0.0f);
        out += 2 * n_parts * KERN_BF16_TILE;
    }
}

void kern_scalar_bf16_pack_panel(const struct kern_panel_pack *op)
{
    uint16_t *chunk = op->out;
    for (size_t k = 0; k < op->n_k; k += KERN_BF16_CHUNK_K) {
        for (size_t lane = 0; lane < KERN_BF16_GROUP; lane++) {
            const float *x = op->x + lane * op->x_stride;
            for (size_t i = 0; i < KERN_BF16_CHUNK_K; i++) {
                size_t at = i / 2 * KERN_BF16_CHUNK_K + lane % KERN_BF16_TILE_LINES * 2 + i % 2;
                float value = lane < op->n_lanes && k + i < op->n_k ? x[k + i] : 0.0f;
                put(chunk, op->n_parts, lane, at, value);
            }
        }
        chunk += 2 * op->n_parts * KERN_BF16_TILE;
    }
}

void kern_scalar_bf16_pack_lanes(const float *x, size_t n_k, unsigned n_parts, uint16_t *out)
{
    for (size_t k = 0; k < n_k; k += KERN_BF16_CHUNK_K) {
        for (size_t i = 0; i < KERN_BF16_CHUNK_K; i++) {
            for (size_t lane = 0; lane < KERN_BF16_GROUP; lane++) {
                size_t at = i / 2 * KERN_BF16_CHUNK_K + lane % KERN_BF16_TILE_LINES * 2 + i % 2;
                float value = k + i < n_k ? x[(k + i) * KERN_BF16_GROUP + lane] : 0.0f;
                put(out, n_parts, lane, at, value);
            }
        }
        out += 2 * n_parts * KERN_BF16_TILE;
    }
}

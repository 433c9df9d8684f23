/* A tile of weights: decoded, and packed if the way of computing wants it. */
#include <string.h>

#include "base/arithmetic.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/quant/integer_list.h"
#include "kernels/quant/rows.h"

enum { LINE_BYTES = 64, ROWS_AHEAD = 4 };

/** The sums of the squares of a long format's runs; `end` is after the last. */
static void put_squares(const int16_t *integers, size_t n_k, float *end)
{
    float *out = end - n_k / KERN_WIDE_RUN;
    for (size_t k = 0; k < n_k; k += KERN_WIDE_RUN) {
        int32_t sum = 0; /* at most 64 * 4096^2 */
        for (size_t i = 0; i < KERN_WIDE_RUN; i++)
            sum += integers[k + i] * integers[k + i];
        *out++ = (float)sum;
    }
}

/** A row as integers and scales; work: kern_product_work_floats(). */
static void decode_integers(const struct kern_gemm_rows *g, const void *blocks, size_t n_k,
                            float *row, float *work)
{
    const struct kern_integers *format = g->plan->format;
    const struct kern_kernels *kernels = &g->cpu->kernels;
    bool bytes = kern_product_layout(g->plan->product) == KERN_PRODUCTS_INT8;
    float *scales =
        row + (bytes ? kern_int8_floats(n_k, format->run) : kern_int16_floats(n_k, format->run));
    float *mins = scales + n_k / format->run;
    kern_straight_fn *straight = (bytes ? kernels->straight8 : kernels->straight16)[format->type];
    if (g->plan->product->words && kern_integers_find(format->type, 16) != format)
        straight = NULL; /* of 8 bits: sub-scales are not in the integers */
    void *integers = work + n_k;
    if (straight) {
        straight(blocks, n_k, integers, scales, mins);
    } else {
        kern_integers_scales(format, blocks, n_k, scales, mins);
        kern_integers_neutral(format, blocks, n_k, work + n_k);
        kernels->decode[g->weight->type](work + n_k, work, n_k);
        if (bytes)
            kernels->to_int8(work, n_k, integers);
        else
            kernels->to_int16(work, n_k, integers);
    }
    if (bytes)
        kernels->int8_row(integers, n_k, format, row);
    else
        kernels->int16_row(integers, n_k, format, row);
    if (!bytes && format->is_long)
        put_squares(integers, n_k, row + g->plan->row_floats);
}

/** Row r of the tile, decoded in `row`, split and packed. */
static void pack_row(const struct kern_gemm_rows *g, const float *row, size_t n_k, size_t r)
{
    unsigned n_parts = g->plan->product->n_parts;
    uint16_t *group = (uint16_t *)(void *)g->tile +
                      r / KERN_BF16_GROUP * kern_bf16_group_size(g->plan->n_k, n_parts);
    g->cpu->kernels.bf16_pack_row(row, n_k, n_parts, r % KERN_BF16_GROUP, group);
}

/** Have the columns of a row of weights brought to the cache: rows lie too far apart for the
 * processor to guess the next one. */
static void fetch_row(const struct kern_weight *w, size_t row, size_t k, size_t n_k)
{
    const char *data = w->data;
    if (w->col_step) /* its neighbour had the same lines */
        return;
    row = w->rows ? (size_t)w->rows[row] : row;
    data += row * w->row_bytes + w->row_bytes * k / w->n_cols;
    for (size_t i = 0; i < w->row_bytes * n_k / w->n_cols; i += LINE_BYTES)
        __builtin_prefetch(data + i);
}

void kern_gemm_decode(const struct kern_gemm_rows *g, size_t k, size_t n_k)
{
    const struct kern_weight *w = g->weight;
    const struct kern_rows rows = {w->type, w->data, w->row_bytes, w->rows, w->scales, w->col_step};
    kern_decode_fn *decode = g->cpu->kernels.decode[w->type];
    uint64_t begun = kern_clock_now();
    bool bf16 = g->plan->product->n_parts > 0;
    float *row = g->tile, *work = g->tile + g->plan->n_rows * g->plan->row_floats;
    float *copy = g->tile + g->plan->tile_floats - kern_product_copy_floats(g->plan->product);
    for (size_t r = 0; r < g->n_rows; r++) {
        if (r + ROWS_AHEAD < g->n_rows)
            fetch_row(w, g->row + r + ROWS_AHEAD, k, n_k);
        const void *blocks = kern_rows_blocks(&rows, g->row + r, k, n_k, copy);
        if (g->plan->format)
            decode_integers(g, blocks, n_k, row, work);
        else
            decode(blocks, bf16 ? work : row, n_k);
        if (bf16)
            pack_row(g, work, n_k, r);
        row += g->plan->row_floats;
    }
    if (bf16) {
        memset(work, 0, n_k * sizeof *work);
        for (size_t r = g->n_rows; r % KERN_BF16_TILE_LINES; r++)
            pack_row(g, work, n_k, r);
    }
    kern_clock_count(g->cpu->base.clock, KERN_PHASE_DECODE, kern_clock_now() - begun);
}

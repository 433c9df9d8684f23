#include "kernels/quant/apart.h"

#include <math.h>
#include <string.h>

#include "kernels/quant/bf16.h"
#include "kernels/quant/f16.h"
#include "kernels/quant/f8.h"

/** Low halves are elements 2j, high ones 2j + 1 of 2n; then those of 2n others. Theirs become the
 * low and the high halves of one another's bytes. */
static void pair_runs(const uint8_t *from, unsigned n, uint8_t *to)
{
    for (unsigned j = 0; j < n; j++) {
        uint8_t first = from[j], second = from[j + n];
        to[2 * j] = (uint8_t)((first & 15) | second << 4);
        to[2 * j + 1] = (uint8_t)(first >> 4 | (second & 0xf0));
    }
}

void kern_unweave_mxfp4_apart(const uint8_t *woven, unsigned row, uint8_t *block)
{
    (void)row;
    pair_runs(woven, 8, block);
}

void kern_unweave_nvfp4_apart(const uint8_t *woven, unsigned row, uint8_t *block)
{
    (void)row;
    for (unsigned run = 0; run < 4; run++)
        pair_runs(woven + 8 * run, 4, block + 8 * run);
}

float kern_scale_value(enum gguf_scale_type type, const uint8_t *at)
{
    switch (type) {
    case GGUF_SCALE_F16:
        return kern_load_half(at);
    case GGUF_SCALE_BF16:
        return kern_float_from_bits(kern_load_u16(at) << 16);
    case GGUF_SCALE_E8M0:
        return kern_e8m0_to_float(*at);
    case GGUF_SCALE_E4M3:
        return kern_e4m3_to_float(*at);
    default:
        return kern_float_from_bits(kern_load_u32(at));
    }
}

/** Whether blocks begin with scales as they are stored. */
static bool is_raw(const struct kern_quant *quant)
{
    return quant->unweave != NULL;
}

/** Scale i of the row, or 1, into `bytes`. */
static void read_scale(struct kern_scale_walk *w, size_t i)
{
    float value = 1;
    w->bytes[0] = w->quant->plain == GGUF_TYPE_NVFP4 ? 0x38 : 127; /* 1 */
    const uint8_t *at = w->row ? w->row + i * gguf_scale_bytes(w->scales->type) : NULL;
    if (is_raw(w->quant)) {
        w->bytes[0] = at ? *at : w->bytes[0];
        return;
    }
    if (at)
        value = kern_scale_value(w->scales->type, at);
    memcpy(w->bytes, &value, sizeof value);
}

struct kern_scale_walk kern_scale_walk(const struct kern_quant *quant,
                                       const struct gguf_scales *scales, size_t row, size_t col)
{
    return (struct kern_scale_walk){.quant = quant,
                                    .info = gguf_type_info((uint32_t)quant->type),
                                    .scales = scales,
                                    .row = scales->data ? gguf_scales_row(scales, row) : NULL,
                                    .col = col};
}

void kern_scale_next(struct kern_scale_walk *w, uint8_t *to)
{
    size_t n_bytes = is_raw(w->quant) ? 1 : sizeof w->bytes, step = w->info->scale_elems;
    for (size_t n = 0; n < w->info->block_elems; n += step, w->col += step, to += n_bytes) {
        if (w->col >= w->end) {
            size_t i = w->row ? w->col / w->scales->block_cols : 0;
            read_scale(w, i);
            w->end = w->row && i + 1 < w->scales->n_cols ? (i + 1) * w->scales->block_cols
                                                         : GGUF_SCALES_ALL;
        }
        memcpy(to, w->bytes, n_bytes);
    }
}

size_t kern_scales_find_invalid(enum gguf_type type, enum gguf_scale_type stored,
                                const void *scales, size_t n)
{
    const uint8_t *at = scales;
    size_t size = gguf_scale_bytes(stored), i = 0;
    bool is_signed = type != GGUF_TYPE_NVFP4_APART;
    while (i < n && (is_signed || at[i] < 0x80) &&
           isfinite(kern_scale_value(stored, at + i * size)))
        i++;
    return i;
}

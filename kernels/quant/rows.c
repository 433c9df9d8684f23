#include "kernels/quant/rows.h"

#include <assert.h>
#include <string.h>

#include "kernels/quant/apart.h"
#include "kernels/quant/packed.h"

enum { PIECE = 256 /* elements: a multiple of every block */ };

/** Bytes of a block in the file; what is before them in a copy is from the prefix, or scales. */
static size_t stored_bytes(const struct kern_quant *quant)
{
    return gguf_type_info((uint32_t)quant->type)->block_bytes;
}

static bool is_copied(const struct kern_quant *quant)
{
    return quant->unweave || quant->block_bytes != stored_bytes(quant);
}

bool kern_rows_are_copied(enum gguf_type type)
{
    return is_copied(kern_quant_find(type));
}

/** Elements that lie apart, of whole bytes each. */
static void gather(const struct kern_rows *rows, size_t row, size_t first_col, size_t n,
                   uint8_t *to)
{
    const struct gguf_type_info *info = gguf_type_info((uint32_t)rows->type);
    size_t size = info->block_bytes / info->block_elems;
    assert(size * info->block_elems == info->block_bytes && rows->col_step >= size);
    const uint8_t *from =
        (const uint8_t *)rows->data + row * rows->row_bytes + first_col * rows->col_step;
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * size, from + i * rows->col_step, size);
}

const void *kern_rows_blocks(const struct kern_rows *rows, size_t row, size_t first_col, size_t n,
                             void *work)
{
    const struct gguf_type_info *info = gguf_type_info((uint32_t)rows->type);
    const struct kern_quant *quant = kern_quant_find(rows->type);
    row = rows->which ? (size_t)rows->which[row] : row;
    bool apart = info->scale_elems > 0;
    if (info->packed_bits > 0) {
        kern_packed_blocks(rows, row, first_col, n, work);
        return work;
    }
    if (rows->col_step && !apart) {
        gather(rows, row, first_col, n, work);
        return work;
    }
    size_t in_bundle = row % info->bundle_rows,
           step = (size_t)info->bundle_rows * info->block_bytes;
    const uint8_t *bundle = (const uint8_t *)rows->data + (row - in_bundle) * rows->row_bytes;
    const uint8_t *from = bundle + (size_t)info->bundle_rows * info->row_prefix +
                          first_col / info->block_elems * step;
    if (!is_copied(quant))
        return from;
    const uint8_t *prefix = bundle + in_bundle * info->row_prefix;
    size_t n_prefix = info->row_prefix || apart ? quant->block_bytes - info->block_bytes : 0;
    struct kern_scale_walk walk = {0};
    if (apart)
        walk = kern_scale_walk(quant, &rows->scales, row, first_col);
    uint8_t *to = work;
    for (size_t i = 0; i < n; i += info->block_elems, from += step) {
        if (apart)
            kern_scale_next(&walk, to);
        else
            memcpy(to, prefix, n_prefix);
        if (rows->col_step)
            gather(rows, row, first_col + i, info->block_elems, to + n_prefix);
        else if (quant->unweave)
            quant->unweave(from, (unsigned)in_bundle, to + n_prefix);
        else
            memcpy(to + n_prefix, from, info->block_bytes);
        to += n_prefix + info->block_bytes;
    }
    return work;
}

void kern_rows_decode(const struct kern_rows *rows, kern_decode_fn *decode, size_t row,
                      size_t first_col, size_t n, float *y)
{
    uint8_t work[KERN_ROWS_WORK_BYTES * PIECE];
    size_t piece = rows->col_step || kern_rows_are_copied(rows->type) ? PIECE : n;
    for (size_t i = 0; i < n; i += piece) {
        size_t n_piece = n - i < piece ? n - i : piece;
        decode(kern_rows_blocks(rows, row, first_col + i, n_piece, work), y + i, n_piece);
    }
}

void kern_tensor_decode(const struct gguf_tensor *t, uint64_t row, size_t first_col, size_t n,
                        float *y)
{
    bool lies_apart = t->view || t->scales; /* rows, or what belongs to them */
    struct kern_rows rows = {.type = t->type->type,
                             .data = lies_apart ? gguf_tensor_row(t, row) : t->data,
                             .row_bytes = (size_t)t->row_bytes,
                             .col_step = t->view ? (size_t)t->view->col_step : 0};
    if (lies_apart)
        rows.scales = gguf_tensor_scales(t, row);
    kern_rows_decode(&rows, kern_quant_find(rows.type)->decode, lies_apart ? 0 : (size_t)row,
                     first_col, n, y);
}

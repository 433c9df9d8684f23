#include "eval/scorer/cut_head.h"

#include <stdbool.h>

/** Elements first .. first + n - 1 of a vector; false: blocks of its type would be parted. */
static bool part_of(struct kern_weight *out, const struct kern_weight *vector, size_t first,
                    size_t n)
{
    const struct gguf_type_info *info = gguf_type_info((uint32_t)vector->type);
    uint64_t n_bytes = first * vector->col_step;
    if (!vector->col_step && (first % info->block_elems || !gguf_row_bytes(info, first, &n_bytes)))
        return false;
    *out = *vector;
    out->n_cols = n;
    out->data = (const uint8_t *)vector->data + n_bytes;
    return true;
}

enum status eval_cut_head(struct eval_cut_head *cut, struct kern_head *head, size_t n,
                          struct status_why *why)
{
    const struct kern_weight *matrix = head->matrix, *bias = head->bias;
    if (n == 0 || !matrix || matrix->n_rows == n)
        return STATUS_OK;
    const struct gguf_type_info *info = gguf_type_info((uint32_t)matrix->type);
    size_t n_others = matrix->n_rows - n;
    bool whole = n % info->bundle_rows == 0;
    if (bias)
        whole = whole && part_of(&cut->bias, bias, 0, n) &&
                part_of(&cut->other_bias, bias, n, n_others);
    if (!whole)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "the output matrix, %s, cannot be cut after row %zu: rows are stored "
                           "together",
                           info->name, n);
    cut->matrix = kern_weight_rows(matrix, 0, n);
    cut->other_matrix = kern_weight_rows(matrix, n, n_others);
    cut->beyond = (struct kern_head){.matrix = &cut->other_matrix,
                                     .bias = bias ? &cut->other_bias : NULL,
                                     .soft_cap = head->soft_cap};
    head->matrix = &cut->matrix;
    head->bias = bias ? &cut->bias : NULL;
    head->beyond = &cut->beyond;
    return STATUS_OK;
}

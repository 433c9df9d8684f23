/* assay info of an importance matrix. */
#include "cli/imatrix/files/info.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/imatrix/files/files.h"
#include "clients/imatrix/file/read.h"

static int in_order(const void *a, const void *b)
{
    const struct cli_imatrix_row *x = a, *y = b;
    int order = strcmp(x->rest, y->rest);
    if (order || x->statistics.total == y->statistics.total)
        return order ? order : x->block < y->block ? -1 : x->block > y->block;
    return x->statistics.total > y->statistics.total ? -1 : 1;
}

static int by_block(const void *a, const void *b)
{
    const struct cli_imatrix_block *x = a, *y = b;
    return x->block < y->block ? -1 : x->block > y->block;
}

static void add_to_block(struct cli_imatrix_info *info, const struct cli_imatrix_row *row)
{
    size_t i = 0;
    while (i < info->n_blocks && info->blocks[i].block != row->block)
        i++;
    struct cli_imatrix_block *b = &info->blocks[i];
    double n = (double)row->statistics.n;
    info->n_blocks += i == info->n_blocks;
    b->block = row->block;
    b->n += n;
    b->total += n * row->statistics.total;
    b->outlying += n * row->statistics.outlying;
    if (!isnan(row->cosine)) {
        b->n_cosine += n;
        b->cosine += n * row->cosine;
    }
}

/* Those of one block stay in the order of their names. */
static int experts_by_block(const void *a, const void *b)
{
    const struct cli_imatrix_experts *x = a, *y = b;
    if (x->block != y->block)
        return x->block < y->block ? -1 : 1;
    return strcmp(x->entry->name, y->entry->name);
}

static enum status gather_experts(struct cli_imatrix_info *info, struct status_why *why)
{
    const struct imat_matrix *m = &info->matrix;
    if (base_array_new(info->experts, m->n, "matrices", why))
        return STATUS_MEMORY;
    for (size_t i = 0; i < m->n && !m->counts_lost; i++) {
        const char *rest;
        const struct imat_entry *e = &m->entries[i];
        if (imat_is_experts(e) && !imat_repeats(m, i))
            info->experts[info->n_experts++] =
                (struct cli_imatrix_experts){e, imat_block_of(e->name, &rest), imat_use_of(e)};
    }
    if (info->n_experts)
        qsort(info->experts, info->n_experts, sizeof *info->experts, experts_by_block);
    return STATUS_OK;
}

static enum status gather(struct cli_imatrix_info *info, struct status_why *why)
{
    const struct imat_matrix *m = &info->matrix;
    enum status status = base_array_new(info->rows, m->n, "matrices", why);
    if (!status)
        status = base_array_new(info->blocks, m->n, "blocks", why);
    for (size_t i = 0; i < m->n && !status; i++) {
        struct cli_imatrix_row *row = &info->rows[i];
        const struct imat_entry *e = &m->entries[i], *earlier = imat_one_earlier(m, e);
        row->entry = e;
        row->block = imat_block_of(e->name, &row->rest);
        row->statistics = imat_statistics_of(e);
        row->cosine = earlier ? imat_cosine(e, earlier, false) : (double)NAN;
        row->cosine_sums = earlier ? imat_cosine(e, earlier, true) : (double)NAN;
        if (row->block >= 0)
            add_to_block(info, row);
    }
    if (status)
        return status;
    qsort(info->rows, m->n, sizeof *info->rows, in_order);
    if (info->n_blocks)
        qsort(info->blocks, info->n_blocks, sizeof *info->blocks, by_block);
    for (size_t i = 0; i < info->n_blocks; i++) {
        struct cli_imatrix_block *b = &info->blocks[i];
        b->total = b->n > 0 ? b->total / b->n : 0;
        b->outlying = b->n > 0 ? b->outlying / b->n : 0;
        b->cosine = b->n_cosine > 0 ? b->cosine / b->n_cosine : (double)NAN;
    }
    return gather_experts(info, why);
}

enum status cli_imatrix_info(const char *path, const struct gguf_file *file, bool json,
                             struct status_why *why)
{
    struct cli_imatrix_info info = {.path = path, .is_gguf = file != NULL};
    enum status status =
        file ? imat_read_gguf(&info.matrix, file, why) : imat_read(&info.matrix, path, why);
    if (!status)
        status = gather(&info, why);
    if (!status && json)
        status = cli_imatrix_write_json(&info, why);
    else if (!status)
        cli_imatrix_print(&info);
    free(info.rows);
    free(info.blocks);
    free(info.experts);
    imat_free(&info.matrix);
    return status;
}

#include "clients/conversion/compare.h"

#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/array.h"

enum { CHUNK_VALUES = 1 << 16, N_SAMPLES = 8 };

enum status conv_work_open(struct conv_work *work, unsigned n_threads, const atomic_bool *cancel,
                           struct status_why *why)
{
    *work = (struct conv_work){.cancel = cancel};
    enum status status = base_pool_open(&work->pool, n_threads, why);
    return status ? status
                  : base_array_new(work->scratch,
                                   (size_t)base_pool_n_threads(work->pool) * 2 * CONV_PIECE,
                                   "values", why);
}

void conv_work_close(struct conv_work *work)
{
    free(work->scratch);
    base_pool_close(work->pool);
}

struct conv_pair conv_pair_of(const struct gguf_file *file, const struct gguf_tensor *found,
                              const struct conv_view *expected)
{
    struct conv_pair pair = {.found = conv_view_of(found), .expected = *expected};
    const struct gguf_tensor *scales = conv_scales(file, found);
    pair.found.scales = scales ? scales->data : NULL;
    pair.found.n_scales = scales ? scales->ne[0] : 0;
    pair.judge = (struct conv_judge){conv_rule_of(found->type->type, expected->near), found->type,
                                     expected->near};
    return pair;
}

struct conv_pair conv_pair_with(const struct conv_pair *pair, const struct conv_view *expected)
{
    struct conv_pair other = *pair;
    other.expected = *expected;
    other.judge.near = expected->near;
    other.judge.rule = conv_rule_of(pair->judge.type->type, expected->near);
    return other;
}

size_t conv_n_matrices(const struct conv_view *view)
{
    uint64_t n = view->ne[2] * view->ne[3];
    return n <= CONV_MAX_MATRICES ? (size_t)n : 1;
}

/** One row into sums of its own; returns whether it is right. */
static bool compare_row(const struct conv_pair *pair, uint64_t row, float *scratch,
                        struct conv_sums *sums)
{
    float *x = scratch, *y = scratch + CONV_PIECE;
    uint64_t n_cols = pair->found.ne[0];
    *sums = conv_sums_none();
    for (uint64_t col = 0; col < n_cols; col += CONV_PIECE) {
        size_t n = n_cols - col < CONV_PIECE ? (size_t)(n_cols - col) : CONV_PIECE;
        conv_view_read(&pair->expected, row, col, n, x);
        conv_view_read(&pair->found, row, col, n, y);
        conv_judge_piece(&pair->judge, x, y, n, sums);
    }
    return conv_judge_row(&pair->judge, sums);
}

struct loop {
    const struct conv_work *work;
    const struct conv_pair *pair;
    uint64_t n_rows, rows_per_chunk; /* of a matrix */
    size_t chunks_per_matrix;
    struct conv_sums *chunks;
};

static void compare_chunk(void *context, size_t index, unsigned thread)
{
    struct loop *l = context;
    uint64_t first = index % l->chunks_per_matrix * l->rows_per_chunk;
    uint64_t n = l->n_rows - first < l->rows_per_chunk ? l->n_rows - first : l->rows_per_chunk;
    uint64_t before = index / l->chunks_per_matrix * l->n_rows + first;
    struct conv_sums *sums = &l->chunks[index], row;
    *sums = conv_sums_none();
    for (uint64_t i = 0; i < n; i++) {
        bool right = compare_row(l->pair, before + i,
                                 l->work->scratch + (size_t)thread * 2 * CONV_PIECE, &row);
        conv_sums_add_row(sums, &row, right, before + i);
    }
}

enum status conv_compare_rows(const struct conv_work *work, const struct conv_pair *pair,
                              struct conv_sums *matrices, struct status_why *why)
{
    size_t n_matrices = conv_n_matrices(&pair->found);
    struct loop l = {work, pair, conv_view_rows(&pair->found) / n_matrices, 0, 0, NULL};
    uint64_t n_cols = pair->found.ne[0];
    l.rows_per_chunk = n_cols < CHUNK_VALUES ? CHUNK_VALUES / n_cols : 1;
    l.chunks_per_matrix = (size_t)((l.n_rows + l.rows_per_chunk - 1) / l.rows_per_chunk);
    size_t n_chunks = l.chunks_per_matrix * n_matrices;
    if (base_array_new(l.chunks, n_chunks, "pieces of a tensor", why))
        return STATUS_MEMORY;
    enum status status = base_pool_run(work->pool, n_chunks, compare_chunk, &l, work->cancel);
    for (size_t m = 0; m < n_matrices && !status; m++) {
        matrices[m] = conv_sums_none();
        for (size_t i = 0; i < l.chunks_per_matrix; i++)
            conv_sums_add(&matrices[m], &l.chunks[m * l.chunks_per_matrix + i]);
    }
    free(l.chunks);
    return status ? status_fail(why, status, "interrupted: there is no result") : STATUS_OK;
}

struct conv_sums conv_sums_of(const struct conv_sums *matrices, size_t n)
{
    struct conv_sums all = conv_sums_none();
    for (size_t i = 0; i < n; i++)
        conv_sums_add(&all, &matrices[i]);
    return all;
}

bool conv_all_right(const struct conv_pair *pair, const struct conv_sums *matrices, size_t n)
{
    bool right = true;
    for (size_t i = 0; i < n; i++)
        right &= matrices[i].n_rows_wrong == 0 && conv_judge_matrix(&pair->judge, &matrices[i]);
    return right;
}

bool conv_sample(const struct conv_work *work, const struct conv_pair *pair, size_t first,
                 size_t n_matrices)
{
    uint64_t n_rows = pair->found.ne[1] * n_matrices, n = base_min(N_SAMPLES, (size_t)n_rows);
    struct conv_sums row, all = conv_sums_none();
    bool right = true;
    for (uint64_t i = 0; i < n && right; i++) {
        uint64_t at = n > 1 ? i * (n_rows - 1) / (n - 1) : 0;
        right = compare_row(pair, first * pair->found.ne[1] + at, work->scratch, &row);
        conv_sums_add(&all, &row);
    }
    return right && conv_judge_matrix(&pair->judge, &all);
}

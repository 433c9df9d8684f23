/* A file as an object: how one is made and closed, and what its directory says. */
#include "gguf/file.h"

#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "gguf/file_impl.h"

enum status gguf_file_new(struct gguf_file **out, const char *path, size_t n_shards,
                          struct status_why *why)
{
    *out = NULL;
    struct gguf_file *file = calloc(1, sizeof *file);
    if (file) {
        file->path = strdup(path);
        file->shards = calloc(n_shards, sizeof *file->shards);
    }
    if (!file || !file->path || !file->shards) {
        gguf_close(file);
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", path);
    }
    file->n_shards = n_shards;
    *out = file;
    return STATUS_OK;
}

enum status gguf_file_copy_names(struct gguf_file *file, struct status_why *why)
{
    const struct base_string *names = file->tensor_names.strings;
    size_t n = file->tensor_names.n;
    size_t n_bytes = 1;
    for (size_t i = 0; i < n; i++)
        n_bytes += names[i].n_bytes + 1;
    char *to = file->name_bytes = malloc(n_bytes);
    if (!to)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory for the names of %zu tensors",
                           file->path, n);
    for (size_t i = 0; i < n; i++) {
        file->tensors[i].name = to;
        memcpy(to, names[i].data, names[i].n_bytes);
        to += names[i].n_bytes;
        *to++ = '\0';
    }
    return STATUS_OK;
}

void *gguf_file_memory(struct gguf_file *file, size_t n_bytes)
{
    struct gguf_arena *arena = &file->arena;
    if (base_array_reserve(arena->pieces, arena->capacity, arena->n + 1, "pieces", NULL))
        return NULL;
    void *piece = malloc(n_bytes ? n_bytes : 1);
    if (piece)
        arena->pieces[arena->n++] = piece;
    return piece;
}

enum status gguf_check_part_unchanged(const struct gguf_file *file, size_t shard,
                                      struct status_why *why)
{
    return gguf_map_check_unchanged(&file->shards[shard].map, file->shards[shard].path, why);
}

enum status gguf_check_unchanged(const struct gguf_file *file, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < file->n_shards && !status; i++)
        status = gguf_check_part_unchanged(file, i, why);
    return status;
}

enum status gguf_keep_directories(struct gguf_file *file, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < file->n_shards && !status; i++) {
        struct gguf_shard *shard = &file->shards[i];
        uint64_t n_bytes =
            shard->data_offset < shard->n_bytes ? shard->data_offset : shard->n_bytes;
        status = gguf_map_keep(&shard->map, (size_t)n_bytes, shard->path, why);
    }
    return status ? status : gguf_check_unchanged(file, why);
}

void gguf_let_go(struct gguf_file *file, size_t shard)
{
    gguf_map_let_go(&file->shards[shard].map);
}

void gguf_close(struct gguf_file *file)
{
    if (!file)
        return;
    for (size_t i = 0; i < file->n_shards; i++) {
        struct gguf_shard *shard = &file->shards[i];
        free(shard->path);
        free(shard->kv);
        base_strtab_free(&shard->kv_names);
        gguf_map_close(&shard->map);
    }
    while (file->overrides) {
        struct gguf_override *next = file->overrides->next;
        free(file->overrides);
        file->overrides = next;
    }
    for (size_t i = 0; i < file->arena.n; i++)
        free(file->arena.pieces[i]);
    free(file->arena.pieces);
    free(file->directory);
    gguf_close(file->tokens);
    free(file->path);
    free(file->shards);
    free(file->tensors);
    base_strtab_free(&file->tensor_names);
    free(file->name_bytes);
    free(file);
}

const char *gguf_path(const struct gguf_file *file)
{
    return file->path;
}

uint32_t gguf_version(const struct gguf_file *file)
{
    return file->shards[0].version;
}

size_t gguf_n_tensors(const struct gguf_file *file)
{
    return file->tensor_names.n;
}

const struct gguf_tensor *gguf_tensor_at(const struct gguf_file *file, size_t i)
{
    return &file->tensors[i];
}

const struct gguf_tensor *gguf_tensor_find(const struct gguf_file *file, const char *name)
{
    int32_t i = base_strtab_find(&file->tensor_names, (struct base_string){name, strlen(name)});
    return i < 0 ? NULL : &file->tensors[i];
}

uint64_t gguf_n_unused(const struct gguf_file *file)
{
    uint64_t n = 0;
    for (size_t i = 0; i < file->n_shards; i++)
        n += file->shards[i].n_unused;
    return n;
}

size_t gguf_n_shards(const struct gguf_file *file)
{
    return file->n_shards;
}

const void *gguf_shard_data(const struct gguf_file *file, size_t shard, uint64_t *n_bytes,
                            uint64_t *data_offset)
{
    *n_bytes = file->shards[shard].n_bytes;
    *data_offset = file->shards[shard].data_offset;
    return file->shards[shard].data;
}

const char *gguf_shard_path(const struct gguf_file *file, size_t shard)
{
    return file->shards[shard].path;
}

const struct stat *gguf_shard_opened(const struct gguf_file *file, size_t shard)
{
    return &file->shards[shard].map.opened;
}

bool gguf_is_folder(const struct gguf_file *file)
{
    return file->directory != NULL;
}

const void *gguf_tensor_matrix(const struct gguf_tensor *tensor, uint64_t i)
{
    const struct gguf_view *view = tensor->view;
    return view && view->matrices
               ? view->matrices[i]
               : (const char *)tensor->data + i * tensor->ne[1] * tensor->row_bytes;
}

const void *gguf_tensor_row(const struct gguf_tensor *tensor, uint64_t i)
{
    const struct gguf_view *view = tensor->view;
    if (!view)
        return (const char *)tensor->data + i * tensor->row_bytes;
    uint64_t n_rows = view->part_rows ? view->part_rows : tensor->ne[1], row = i % n_rows;
    const char *data = gguf_tensor_matrix(tensor, i / n_rows);
    return data + (view->rows ? (uint64_t)view->rows[row] : row) *
                      (view->row_step ? view->row_step : tensor->row_bytes);
}

/** From one unit of bytes of a row to the next, where all of `unit` bytes lie together. */
static uint64_t gap_of(const struct gguf_tensor *tensor, uint64_t unit)
{
    return tensor->view && tensor->view->col_step ? tensor->view->col_step : unit;
}

static bool row_same(const struct gguf_tensor *a, const struct gguf_tensor *b, uint64_t i)
{
    bool apart = gap_of(a, 0) > 0 || gap_of(b, 0) > 0;
    uint64_t unit = apart ? a->type->block_bytes / a->type->block_elems : a->row_bytes,
             n = a->row_bytes / unit, k = 0;
    const char *x = gguf_tensor_row(a, i), *y = gguf_tensor_row(b, i);
    while (k < n && memcmp(x + k * gap_of(a, unit), y + k * gap_of(b, unit), (size_t)unit) == 0)
        k++;
    return k == n;
}

struct gguf_scales gguf_tensor_scales(const struct gguf_tensor *tensor, uint64_t i)
{
    if (!tensor->scales)
        return (struct gguf_scales){0};
    uint64_t row = i % tensor->ne[1];
    if (tensor->view && tensor->view->rows)
        row = (uint64_t)tensor->view->rows[row];
    return gguf_scales_from(tensor->scales[i / tensor->ne[1]], row);
}

/** Rows of scales that so many rows have. */
static uint64_t n_scale_rows(const struct gguf_scales *s, uint64_t n_rows)
{
    return (s->first_row + n_rows - 1) / s->block_rows - s->first_row / s->block_rows + 1;
}

uint64_t gguf_scales_bytes(const struct gguf_scales *s, uint64_t n_rows)
{
    if (!s->data)
        return 0;
    uint64_t n = n_scale_rows(s, n_rows), n_bytes = n * gguf_scales_row_bytes(s);
    bool zeros = s->packed && s->packed->zeros.data;
    return n_bytes + (zeros ? (n * s->n_cols * s->packed->zeros.bits + 7) / 8 : 0);
}

uint64_t gguf_tensor_stored_bytes(const struct gguf_tensor *tensor)
{
    uint64_t n_bytes = tensor->n_bytes;
    bool apart = tensor->scales && tensor->type->tail_bytes == 0; /* not within n_bytes */
    for (uint64_t i = 0; apart && i < tensor->ne[2] * tensor->ne[3]; i++)
        n_bytes += gguf_scales_bytes(&tensor->scales[i], tensor->ne[1]);
    return n_bytes;
}

/** How many rows as stored a matrix of the tensor reaches over. */
static uint64_t n_stored_rows(const struct gguf_tensor *tensor)
{
    uint64_t n = tensor->ne[1];
    for (uint64_t i = 0; tensor->view && tensor->view->rows && i < tensor->ne[1]; i++)
        n = base_max(n, (uint64_t)tensor->view->rows[i] + 1);
    return n;
}

/** Bytes from the first of a matrix of a view to its last. */
static uint64_t reach(const struct gguf_tensor *tensor, uint64_t n_rows)
{
    uint64_t step = tensor->view->row_step ? tensor->view->row_step : tensor->row_bytes;
    uint64_t unit = tensor->type->block_bytes / tensor->type->block_elems; /* with a col_step */
    uint64_t row = tensor->view->col_step
                       ? (tensor->row_bytes / unit - 1) * tensor->view->col_step + unit
                       : tensor->row_bytes;
    return (n_rows - 1) * step + row;
}

uint64_t gguf_tensor_n_stretches(const struct gguf_tensor *tensor)
{
    const struct gguf_view *view = tensor->view;
    if (view && view->part_rows)
        return base_div_up(tensor->ne[1], view->part_rows);
    return view ? tensor->ne[2] * tensor->ne[3] : 1;
}

const void *gguf_tensor_stretch(const struct gguf_tensor *tensor, uint64_t i, size_t *n_bytes)
{
    const struct gguf_view *view = tensor->view;
    uint64_t n_rows = n_stored_rows(tensor);
    if (view && view->part_rows)
        n_rows = base_min(n_rows - i * view->part_rows, view->part_rows);
    *n_bytes = (size_t)(view ? reach(tensor, n_rows) : tensor->n_bytes);
    return gguf_tensor_matrix(tensor, i);
}

bool gguf_tensor_any(const struct gguf_tensor *tensor, bool (*test)(const void *data, size_t n))
{
    uint64_t n_rows = n_stored_rows(tensor);
    bool is = false;
    for (uint64_t i = 0; i < gguf_tensor_n_stretches(tensor) && !is; i++) {
        size_t n_bytes;
        const void *data = gguf_tensor_stretch(tensor, i, &n_bytes);
        is = test(data, n_bytes);
    }
    for (uint64_t i = 0; tensor->scales && i < tensor->ne[2] * tensor->ne[3] && !is; i++) {
        const struct gguf_scales *s = &tensor->scales[i];
        if (s->data)
            is = test(gguf_scales_row(s, 0),
                      (size_t)n_scale_rows(s, n_rows) * gguf_scales_row_bytes(s));
    }
    return is;
}

/* Whether row i of both has the same scales, in the same blocks. Zero points are not compared:
 * packed integers of two files count as others. */
static bool same_scales(const struct gguf_tensor *a, const struct gguf_tensor *b, uint64_t i)
{
    struct gguf_scales s = gguf_tensor_scales(a, i), t = gguf_tensor_scales(b, i);
    if (!s.data || !t.data)
        return !s.data && !t.data;
    return s.type == t.type && s.block_cols == t.block_cols && s.packed == t.packed &&
           memcmp(gguf_scales_row(&s, 0), gguf_scales_row(&t, 0), gguf_scales_row_bytes(&s)) == 0;
}

bool gguf_tensor_same(const struct gguf_tensor *a, const struct gguf_tensor *b)
{
    if (!a->view && !b->view && !a->scales && !b->scales)
        return memcmp(a->data, b->data, (size_t)a->n_bytes) == 0;
    uint64_t i = 0;
    while (i < a->n_rows && same_scales(a, b, i) && row_same(a, b, i))
        i++;
    return i == a->n_rows;
}

/* Stored tensors as those of GGUF: views of rows, and small ones that are made in memory. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arithmetic.h"
#include "gguf/assembly/assembly.h"
#include "kernels/quant/apart.h"
#include "model/folder/state.h"

enum { EIGHTS = 32 }; /* codes of 8 bits in a block */

bool model_folder_number(const struct model_folder *f, const char *name, float *value)
{
    int32_t i = base_strtab_find(&f->files.names, (struct base_string){name, strlen(name)});
    enum gguf_type type;
    if (i < 0 || f->files.tensors[i]->n_elements != 1 ||
        !model_plain_type(f->files.tensors[i]->type, &type))
        return false;
    kern_quant_find(type)->decode(f->files.tensors[i]->data, value, 1);
    return true;
}

/** The shape as GGUF has it: what is contiguous first. */
static enum status read_shape(const struct model_folder *f, struct model_target *t,
                              const struct safetensors_tensor *s, struct status_why *why)
{
    uint64_t shape[SAFETENSORS_MAX_DIMS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_dims; i++)
        if (!(t->change & MODEL_SQUEEZE) || s->shape[i] != 1)
            shape[n++] = s->shape[i];
    t->n_dims = n + t->experts > 0 ? n + t->experts : 1;
    if (n > 3 || s->n_elements == 0 || (t->experts && n != 2))
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%s: tensor '%s' has %" PRIu32 " dimensions and %" PRIu64
                           " elements, expected 1 to 3 dimensions (2 of an expert's), and elements",
                           f->path, s->name, s->n_dims, s->n_elements);
    for (uint32_t i = 0; i < 4; i++)
        t->ne[i] = i < n ? shape[n - 1 - i] : 1;
    if (t->experts)
        t->ne[n] = f->n_experts;
    if (t->change & MODEL_PARTS)
        t->ne[1] = (t->n_sources - 1) * t->ne[1] + t->sources[t->n_sources - 1]->shape[0];
    return STATUS_OK;
}

/** Heads of each key head's rows: before those of the target, and the target's own. */
struct group {
    uint64_t before, own, all;
};

static struct group group_of(const struct model_folder *f, const struct model_target *t)
{
    uint64_t n = f->n_heads / f->n_kv_heads;
    if (t->change & MODEL_TURN_Q)
        return (struct group){0, n, n + 2};
    return (struct group){n + !(t->change & MODEL_TURN_K), 1, n + 2};
}

/** The rows of the target's heads among those of all. */
static enum status cut_groups(const struct model_folder *f, struct model_target *t,
                              struct status_why *why)
{
    if (f->n_heads % f->n_kv_heads != 0)
        return status_fail(why, STATUS_FORMAT,
                           "%s: tensor '%s' is of %u heads and %u key/value heads, expected a "
                           "divisor of the heads",
                           f->path, t->sources[0]->name, f->n_heads, f->n_kv_heads);
    struct group group = group_of(f, t);
    uint64_t n = f->n_kv_heads * group.all * f->head_size;
    if (t->n_dims != 2 || t->ne[1] != n)
        return status_fail(why, STATUS_FORMAT,
                           "%s: tensor '%s' has %" PRIu64 " rows, expected %" PRIu64
                           ", those of queries, keys and values",
                           f->path, t->sources[0]->name, t->n_dims > 1 ? t->ne[1] : t->ne[0], n);
    t->ne[1] = f->n_kv_heads * group.own * f->head_size;
    return STATUS_OK;
}

/** Rows or columns of a matrix: how many, and how many bytes from one to the next. */
struct axis {
    uint64_t n, step;
};

enum { HALVES = MODEL_FIRST_HALF | MODEL_SECOND_HALF, TURNS = MODEL_EVEN | MODEL_ODD };

/** place() for codes: scales go by numbers of stored rows, and turns are listed in view_rows. */
static enum status place_codes(const struct model_folder *f, struct model_target *t,
                               struct axis rows, struct axis columns, struct status_why *why)
{
    bool over = t->change & MODEL_TURN_OVER;
    bool eight = t->type == GGUF_TYPE_F8_E4M3 || t->type == GGUF_TYPE_F8_E5M2;
    if ((over && !eight) ||
        (t->change & (HALVES | TURNS) && over != !!(t->change & MODEL_OF_COLUMNS)))
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%s: tensor '%s' has dtype %s and is stored transposed, which is not "
                           "read; expected F8_E4M3, F8_E5M2, F32, F16 or BF16",
                           f->path, t->sources[0]->name,
                           safetensors_type_name(t->sources[0]->type));
    if (over) {
        struct axis before = rows;
        rows = columns;
        columns = before;
        t->row_step = rows.step;
        t->col_step = columns.step;
    }
    if (t->change & (HALVES | TURNS))
        rows.n /= 2;
    t->ne[0] = columns.n;
    t->ne[1] = rows.n;
    t->first_row = t->change & MODEL_SECOND_HALF ? rows.n : 0;
    t->offset = t->first_row * rows.step;
    return STATUS_OK;
}

/** A part of the matrix, or its columns as rows: where they begin and how far apart they lie. */
static enum status place(const struct model_folder *f, struct model_target *t,
                         struct status_why *why)
{
    const struct safetensors_tensor *s = t->sources[0];
    uint64_t size = s->n_bytes / s->n_elements;
    uint64_t row_bytes = s->n_bytes / (t->ne[1] * (t->experts ? 1 : t->ne[2]));
    if (t->change & (MODEL_OF_KEYS | MODEL_OF_VALUES)) /* ne[1] is a part of each head's */
        row_bytes = t->ne[0] * size;
    struct axis columns = {t->ne[0], size}, rows = {t->ne[1], row_bytes};
    struct axis *parted = t->change & MODEL_OF_COLUMNS ? &columns : &rows;
    if (!(t->change & (HALVES | TURNS | MODEL_TURN_OVER)))
        return STATUS_OK;
    if (t->n_dims < 2 || (t->change & (HALVES | TURNS) && parted->n % 2 != 0))
        return status_fail(why, STATUS_FORMAT,
                           "%s: tensor '%s' has %" PRIu64 " %s, expected an even number", f->path,
                           s->name, parted->n, parted == &rows ? "rows" : "columns");
    if (t->quantised)
        return place_codes(f, t, rows, columns, why);
    if (t->change & (HALVES | TURNS))
        parted->n /= 2;
    if (t->change & MODEL_SECOND_HALF)
        t->offset = parted->n * parted->step;
    if (t->change & MODEL_ODD)
        t->offset = parted->step;
    if (t->change & TURNS)
        parted->step *= 2;
    if (t->change & MODEL_TURN_OVER) {
        struct axis before = rows;
        rows = columns;
        columns = before;
    }
    t->ne[0] = columns.n;
    t->ne[1] = rows.n;
    t->row_step = rows.step == columns.n * size ? 0 : rows.step;
    t->col_step = columns.step == size ? 0 : columns.step;
    return STATUS_OK;
}

/** Rows of each head as a matrix. */
static enum status cut_heads(const struct model_folder *f, struct model_target *t,
                             struct status_why *why)
{
    const struct safetensors_tensor *s = t->sources[0];
    struct model_folder_heads of;
    unsigned layer = 0;
    model_folder_heads(f, &of);
    if (sscanf(t->name, "blk.%9u.", &layer) != 1 || layer >= of.n)
        layer = 0;
    uint32_t n_heads = of.n_heads[layer];
    uint64_t plain = of.plain[layer], size = n_heads > 0 ? t->ne[1] / n_heads : 0;
    if (t->n_dims != 2 || size <= plain || t->ne[1] % n_heads != 0)
        return status_fail(why, STATUS_FORMAT,
                           "%s: tensor '%s' has %" PRIu64 " rows, expected for each of %u heads "
                           "the same number above %" PRIu64,
                           f->path, s->name, t->ne[1], n_heads, plain);
    t->n_dims = 3;
    t->ne[2] = n_heads;
    t->ne[1] = t->change & MODEL_OF_KEYS ? plain : size - plain;
    t->offset = t->change & MODEL_OF_KEYS ? 0 : plain * t->ne[0] * (s->n_bytes / s->n_elements);
    return STATUS_OK;
}

/** A value for each head; there may be more, which no head has. */
static enum status cut_values(const struct model_folder *f, struct model_target *t,
                              struct status_why *why)
{
    if (t->n_dims != 1 || t->ne[0] < f->n_heads)
        return status_fail(why, STATUS_FORMAT,
                           "%s: tensor '%s' has %" PRIu64 " values, expected one for each of %u "
                           "heads",
                           f->path, t->sources[0]->name, t->ne[0], f->n_heads);
    t->ne[0] = f->n_heads;
    return STATUS_OK;
}

/** The rows of an indexer's queries, or of its key, which come after them. */
static enum status cut_index(const struct model_folder *f, struct model_target *t,
                             struct status_why *why)
{
    const struct safetensors_tensor *s = t->sources[0];
    uint64_t n_heads = model_config_u32(f, "indexer_n_heads"), size = t->ne[1] / (n_heads + 1);
    if (t->n_dims != 2 || t->ne[1] % (n_heads + 1) != 0 || size == 0)
        return status_fail(why, STATUS_FORMAT,
                           "%s: tensor '%s' has %" PRIu64 " rows, expected a multiple of %" PRIu64
                           ", the heads of an indexer (member 'indexer_n_heads') and its key",
                           f->path, s->name, t->ne[1], n_heads + 1);
    t->first_row = t->change & MODEL_INDEX_KEY ? n_heads * size : 0;
    t->offset = t->first_row * (s->n_bytes / t->ne[1]);
    t->ne[1] = t->change & MODEL_INDEX_KEY ? size : n_heads * size;
    return STATUS_OK;
}

/** What the change asks of the shape, and what it makes of it. */
static enum status change_shape(const struct model_folder *f, struct model_target *t,
                                struct status_why *why)
{
    enum status status = t->change & MODEL_GROUPED ? cut_groups(f, t, why) : STATUS_OK;
    if (status)
        return status;
    uint32_t n_heads = model_target_heads(f, t);
    uint64_t n_rows = t->n_dims > 1 ? t->ne[1] : t->ne[0];
    if (n_heads > 0 && (t->n_dims > 2 || n_rows % n_heads != 0 || n_rows / n_heads % 2 != 0))
        return status_fail(why, STATUS_FORMAT,
                           "%s: tensor '%s' has %" PRIu64 " rows, expected a multiple of twice the "
                           "%u heads",
                           f->path, t->sources[0]->name, n_rows, n_heads);
    if (t->change & (MODEL_OF_KEYS | MODEL_OF_VALUES))
        status = cut_heads(f, t, why);
    if (t->change & MODEL_OF_HEADS)
        status = cut_values(f, t, why);
    if (t->change & (MODEL_INDEX_QUERIES | MODEL_INDEX_KEY))
        status = cut_index(f, t, why);
    return status ? status : place(f, t, why);
}

/** A table of whole numbers. */
static enum status shape_table(const struct model_folder *f, struct model_target *t,
                               struct status_why *why)
{
    t->made = true;
    t->type = (enum gguf_type)GGUF_WHOLE_NUMBERS;
    return read_shape(f, t, t->sources[0], why);
}

enum status model_targets_shape(struct model_folder *f, struct status_why *why)
{
    for (size_t i = 0; i < f->target_names.n; i++) {
        struct model_target *t = f->targets[i];
        enum status status = model_sources_check(f, t, why);
        bool numbers = t->change & MODEL_NUMBERS, table = t->change & MODEL_WHOLE_NUMBERS;
        if (!status && numbers)
            model_write_u64s(f, t->name, t->sources[0]->data, t->sources[0]->n_elements);
        if (!status && table)
            status = shape_table(f, t, why);
        if (status)
            return status;
        if (numbers || table)
            continue;
        struct safetensors_tensor meant;
        status = model_quantised_shape(f, t, &meant, why);
        if (!status && !t->quantised && !model_plain_type(meant.type, &t->type))
            status = status_fail(why, STATUS_UNSUPPORTED,
                                 "%s: tensor '%s' has dtype %s, expected F32, F16, BF16, or codes "
                                 "with scales beside them",
                                 f->path, meant.name, safetensors_type_name(meant.type));
        if (!status)
            status = read_shape(f, t, &meant, why);
        if (!status)
            status = change_shape(f, t, why);
        if (status)
            return status;
        bool eight = t->type == GGUF_TYPE_F8_E4M3 || t->type == GGUF_TYPE_F8_E5M2;
        bool partial = eight && t->n_dims > 1 && t->ne[0] % EIGHTS != 0;
        t->codes = t->type;
        t->made = partial || t->n_dims == 1 ||
                  t->change & (MODEL_FACTOR | MODEL_PLUS_ONE | MODEL_NEGATIVE_EXP | MODEL_EXP |
                               MODEL_LENGTHEN);
        if (t->quantised && (t->change & MODEL_PARTS || (t->made && !partial)))
            return status_fail(why, STATUS_UNSUPPORTED,
                               "%s: tensor '%s' is quantised, expected F32, F16 or BF16", f->path,
                               t->sources[0]->name);
        if (t->made)
            t->type = GGUF_TYPE_F32;
    }
    return STATUS_OK;
}

/** Row i of the target's heads, among the rows of all. */
static uint64_t grouped_row(struct group group, uint64_t i, uint64_t d)
{
    uint64_t head = i / d;
    return (head / group.own * group.all + group.before + head % group.own) * d + i % d;
}

/** The stored row of each row of a matrix; NULL (and STATUS_OK): its own. */
static enum status view_rows(const struct model_folder *f, const struct model_target *t,
                             struct gguf_file *file, const int32_t **out, struct status_why *why)
{
    uint32_t n_heads = model_target_heads(f, t);
    uint64_t n = t->ne[1];
    bool in_turns = t->quantised && t->change & (MODEL_EVEN | MODEL_ODD);
    bool grouped = t->change & MODEL_GROUPED;
    *out = NULL;
    if (n_heads == 0 && !in_turns && !grouped)
        return STATUS_OK;
    uint64_t most = grouped ? INT32_MAX / group_of(f, t).all : INT32_MAX / 2;
    int32_t *rows = n > most ? NULL : gguf_file_memory(file, n * sizeof *rows);
    if (!rows)
        return status_fail(why, STATUS_MEMORY, "%s: no memory for %" PRIu64 " rows of %s", f->path,
                           n, t->name);
    for (uint64_t i = 0; i < n; i++)
        rows[i] = (int32_t)(in_turns      ? 2 * i + (t->change & MODEL_ODD ? 1 : 0)
                            : n_heads > 0 ? model_turned_row(i, n / n_heads)
                                          : i);
    for (uint64_t i = 0; grouped && i < n; i++)
        rows[i] = (int32_t)grouped_row(group_of(f, t), (uint64_t)rows[i], f->head_size);
    *out = rows;
    return STATUS_OK;
}

/** Where each matrix begins; NULL (and STATUS_OK): one after the other. */
static enum status view_matrices(const struct model_folder *f, const struct model_target *t,
                                 struct gguf_file *file, const void *const **out,
                                 struct status_why *why)
{
    bool apart = t->experts || (t->change & MODEL_PARTS && t->n_sources > 1);
    uint64_t n = t->change & MODEL_PARTS ? t->n_sources : t->n_dims > 2 ? t->ne[2] : 1;
    *out = NULL;
    const struct safetensors_tensor *s = t->sources[0];
    uint64_t matrix_bytes = s->n_bytes / (apart ? 1 : n);
    bool whole = !t->quantised && matrix_bytes == s->n_bytes / s->n_elements * t->ne[0] * t->ne[1];
    if (!apart && (n == 1 || whole))
        return STATUS_OK;
    const void **matrices = gguf_file_memory(file, n * sizeof *matrices);
    if (!matrices)
        return status_fail(why, STATUS_MEMORY, "%s: no memory for %" PRIu64 " matrices of %s",
                           f->path, n, t->name);
    for (uint64_t i = 0; i < n; i++) {
        const char *data = apart ? t->sources[i]->data : (const char *)s->data + i * matrix_bytes;
        matrices[i] = data + t->offset;
    }
    *out = matrices;
    return STATUS_OK;
}

/** A matrix of codes of 8 bits as it is stored. */
struct stored {
    const uint8_t *codes;
    const struct gguf_scales *scales;
    uint64_t row_step, col_step, n_cols;
};

/** A row's values, by blocks of which the last may be partial. False: a scale is not finite. */
static bool decode_row(const struct kern_quant *quant, const struct stored *from, uint64_t row,
                       float *to)
{
    struct kern_scale_walk walk = kern_scale_walk(quant, from->scales, row, 0);
    const uint8_t *codes = from->codes + row * from->row_step;
    for (uint64_t c = 0; c < from->n_cols; c += EIGHTS) {
        uint8_t block[sizeof(float) + EIGHTS] = {0};
        float scale, values[EIGHTS];
        uint64_t n = base_min(from->n_cols - c, EIGHTS);
        kern_scale_next(&walk, block);
        memcpy(&scale, block, sizeof scale);
        if (!isfinite(scale))
            return false;
        for (uint64_t j = 0; j < n; j++)
            block[sizeof scale + j] = codes[(c + j) * from->col_step];
        quant->decode(block, values, EIGHTS);
        memcpy(to + c, values, n * sizeof *to);
    }
    return true;
}

enum status model_target_decode(const struct model_folder *f, const struct model_target *t,
                                struct gguf_file *file, struct status_why *why)
{
    struct model_target codes = *t;
    codes.type = t->codes;
    const int32_t *rows = NULL;
    const void *const *matrices = NULL;
    const struct gguf_scales *scales = NULL;
    enum status status = view_rows(f, &codes, file, &rows, why);
    if (!status)
        status = view_matrices(f, &codes, file, &matrices, why);
    if (!status)
        status = model_quantised_scales(f, &codes, file, &scales, why);
    for (uint64_t i = 0; !status && i < t->ne[2] * t->ne[1]; i++) {
        uint64_t matrix = i / t->ne[1], row = i % t->ne[1];
        struct stored from = {matrices ? matrices[matrix]
                                       : (const uint8_t *)t->sources[0]->data + t->offset,
                              &scales[matrix], t->row_step ? t->row_step : t->ne[0],
                              t->col_step ? t->col_step : 1, t->ne[0]};
        if (!decode_row(kern_quant_find(t->codes), &from, rows ? (uint64_t)rows[row] : row,
                        t->values + i * t->ne[0]))
            status = status_fail(why, STATUS_FORMAT,
                                 "%s: a scale of row %" PRIu64 " of tensor '%s' is not finite",
                                 f->path, row, t->sources[0]->name);
    }
    return status;
}

enum status model_target_append(const struct model_folder *f, const struct model_target *t,
                                struct gguf_file *file, struct status_why *why)
{
    const struct safetensors_tensor *s = t->sources[0];
    struct gguf_view view = {.row_step = t->row_step, .col_step = t->col_step};
    if (t->change & MODEL_NUMBERS)
        return STATUS_OK;
    enum status status = view_rows(f, t, file, &view.rows, why);
    if (!status)
        status = view_matrices(f, t, file, &view.matrices, why);
    if (t->change & MODEL_PARTS && view.matrices)
        view.part_rows = s->shape[0];
    struct gguf_tensor tensor = {.name = t->name,
                                 .n_dims = t->n_dims,
                                 .data = (const char *)s->data + t->offset,
                                 .shard = 1 + s->file,
                                 .offset = s->offset + t->offset};
    memcpy(tensor.ne, t->ne, sizeof tensor.ne);
    if (!status && t->quantised)
        status = model_quantised_scales(f, t, file, &tensor.scales, why);
    if (!status && (view.rows || view.matrices || view.row_step || view.col_step)) {
        struct gguf_view *kept = gguf_file_memory(file, sizeof *kept);
        if (!kept)
            return status_fail(why, STATUS_MEMORY, "%s: no memory for %s", f->path, t->name);
        *kept = view;
        tensor.view = kept;
        tensor.data = view.matrices ? view.matrices[0] : tensor.data;
    }
    return status ? status : gguf_assemble_tensor(file, &tensor, (uint32_t)t->type, why);
}

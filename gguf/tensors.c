/* The tensor section of a GGUF file, and where the tensors' data lie. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/text/quote.h"
#include "gguf/file_impl.h"

/* Zeros after the last tensor that are taken for padding to a page of the largest size. */
enum { MAX_UNUSED = 64 << 10 };

static enum status check_n_dims(uint32_t n_dims, struct status_why *why)
{
    if (n_dims >= 1 && n_dims <= GGUF_MAX_DIMS)
        return STATUS_OK;
    return status_fail(why, STATUS_FORMAT, "has %" PRIu32 " dimensions, expected 1 to %d", n_dims,
                       GGUF_MAX_DIMS);
}

/* The dimensions as the file gives them; the ones past n_dims are 1. */
static enum status read_shape(struct gguf_cursor *cursor, struct gguf_tensor *tensor,
                              struct status_why *why)
{
    enum status status = gguf_cursor_u32(cursor, &tensor->n_dims, "the number of dimensions", why);
    if (!status)
        status = check_n_dims(tensor->n_dims, why);
    for (uint32_t i = 0; i < GGUF_MAX_DIMS && !status; i++) {
        tensor->ne[i] = 1;
        if (i < tensor->n_dims)
            status = gguf_cursor_u64(cursor, &tensor->ne[i], "a dimension", why);
    }
    return status;
}

/* Check that no dimension is 0, and that their product is a number of elements. */
static enum status check_shape(const struct gguf_tensor *tensor, struct status_why *why)
{
    int64_t n_elements = 1; /* signed: counts of elements stay below 2^63 */
    for (uint32_t i = 0; i < tensor->n_dims; i++) {
        if (tensor->ne[i] == 0)
            return status_fail(why, STATUS_FORMAT, "dimension %" PRIu32 " is 0, expected 1 or more",
                               i);
        if (__builtin_mul_overflow(n_elements, tensor->ne[i], &n_elements))
            return status_fail(why, STATUS_FORMAT,
                               "dimension %" PRIu32 " is %" PRIu64
                               ", expected a product of the dimensions below 2^63",
                               i, tensor->ne[i]);
    }
    return STATUS_OK;
}

enum status gguf_tensor_measure(struct gguf_tensor *tensor, uint32_t type_id,
                                struct status_why *why)
{
    enum status status = check_n_dims(tensor->n_dims, why);
    if (!status)
        status = check_shape(tensor, why);
    if (status)
        return status;
    const struct gguf_type_info *type = gguf_type_listed(type_id);
    bool decodable = type == gguf_type_info(type_id),
         whole = tensor->ne[0] % type->block_elems == 0;
    if (decodable && !whole)
        return status_fail(why, STATUS_FORMAT,
                           "has rows of %" PRIu64 " element%s of type %s, expected a multiple of "
                           "its block of %" PRIu32,
                           tensor->ne[0], status_plural(tensor->ne[0]), type->name,
                           type->block_elems);
    tensor->type = type;
    tensor->type_id = type_id;
    tensor->n_rows = tensor->ne[1] * tensor->ne[2] * tensor->ne[3];
    if (type->block_bytes == 0 || !whole)
        return STATUS_OK; /* of an unknown size */
    if (tensor->ne[1] % type->bundle_rows != 0)
        return status_fail(why, STATUS_FORMAT,
                           "has matrices of %" PRIu64 " row%s of type %s, expected a multiple of "
                           "the %" PRIu32 " that it stores together",
                           tensor->ne[1], status_plural(tensor->ne[1]), type->name,
                           type->bundle_rows);
    if (type->tail_bytes > 0 && tensor->n_rows > tensor->ne[1])
        return status_fail(why, STATUS_UNSUPPORTED,
                           "has %" PRIu64 " matrices of type %s, expected one, as all of a "
                           "tensor has one scale",
                           tensor->n_rows / tensor->ne[1], type->name);
    if (!gguf_row_bytes(type, tensor->ne[0], &tensor->row_bytes) ||
        __builtin_mul_overflow(tensor->row_bytes, tensor->n_rows, &tensor->n_bytes) ||
        __builtin_add_overflow(tensor->n_bytes, type->tail_bytes, &tensor->n_bytes))
        return status_fail(why, STATUS_FORMAT,
                           "has %" PRIu64 " rows of %" PRIu64
                           " elements of type %s, expected fewer than 2^64 bytes",
                           tensor->n_rows, tensor->ne[0], type->name);
    return STATUS_OK;
}

/* What follows the name: shape, type and offset. */
static enum status read_entry(struct gguf_cursor *cursor, struct gguf_tensor *tensor,
                              struct status_why *why)
{
    uint32_t type;
    enum status status = read_shape(cursor, tensor, why);
    if (!status)
        status = gguf_cursor_u32(cursor, &type, "the type", why);
    if (!status)
        status = gguf_cursor_u64(cursor, &tensor->offset, "the offset", why);
    if (!status && type >= GGUF_FIRST_FOLDER && type < GGUF_TYPE_LIMIT)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "has type %" PRIu32 ", expected one that GGUF files may have", type);
    return status ? status : gguf_tensor_measure(tensor, type, why);
}

enum status gguf_tensors_append(struct gguf_file *file, struct base_string name,
                                const struct gguf_tensor *tensor, struct status_why *why)
{
    size_t n = file->tensor_names.n;
    int32_t number;
    enum status status =
        base_array_reserve(file->tensors, file->tensor_capacity, n + 1, "tensors", why);
    if (!status)
        status = base_strtab_add(&file->tensor_names, name, &number, why);
    if (status)
        return status;
    if ((size_t)number != n)
        return status_fail(why, STATUS_FORMAT, "occurs twice, expected every tensor once");
    file->tensors[n] = *tensor;
    return STATUS_OK;
}

enum status gguf_tensors_read(struct gguf_file *file, size_t shard, struct gguf_cursor *cursor,
                              uint64_t n_tensors, struct status_why *why)
{
    for (uint64_t i = 0; i < n_tensors; i++) {
        struct gguf_tensor tensor = {.shard = shard};
        struct base_string name;
        enum status status = gguf_cursor_name(cursor, &name, "the name", why);
        if (status) {
            status_context(why, "tensor %" PRIu64 " of %" PRIu64, i + 1, n_tensors);
            return status;
        }
        status = read_entry(cursor, &tensor, why);
        if (!status)
            status = gguf_tensors_append(file, name, &tensor, why);
        if (status) {
            struct base_quoted shown;
            status_context(why, "tensor %s", base_quote(&shown, name));
            return status;
        }
    }
    return STATUS_OK;
}

/*
 * A tensor that leaves the file. The size that the file should have, by where its tensors end,
 * tells how much is missing; it is not told where one of them ends nowhere.
 */
static enum status fail_beyond(const struct gguf_file *file, const struct gguf_shard *shard,
                               const struct gguf_tensor *tensor, struct status_why *why)
{
    uint64_t needed = 0, end;
    size_t n = file->tensor_names.n;
    char missing[128] = "";
    for (size_t i = (size_t)(tensor - file->tensors); i < n && needed != UINT64_MAX; i++) {
        const struct gguf_tensor *t = &file->tensors[i]; /* not placed yet, and of this shard */
        bool ends = !__builtin_add_overflow(t->offset, t->n_bytes, &end) &&
                    !__builtin_add_overflow(end, shard->data_offset, &end);
        needed = !ends ? UINT64_MAX : end > needed ? end : needed;
    }
    if (needed != UINT64_MAX)
        snprintf(missing, sizeof missing,
                 ", and its tensors need at least %" PRIu64
                 ": it may be an incomplete download; fetch it again",
                 needed);
    return status_fail(
        why, STATUS_FORMAT,
        "its %" PRIu64 " bytes from byte %" PRIu64 " of the data section (which "
        "begins at byte %" PRIu64 ") on end beyond the file; the file has %" PRIu64 " bytes%s",
        tensor->n_bytes, tensor->offset, shard->data_offset, shard->n_bytes, missing);
}

/* The scale of a tensor that follows its codes. */
static enum status place_scale(struct gguf_file *file, struct gguf_tensor *tensor,
                               struct status_why *why)
{
    struct gguf_scales *scales = gguf_file_memory(file, sizeof *scales);
    if (!scales)
        return status_fail(why, STATUS_MEMORY, "out of memory for its scale");
    *scales = (struct gguf_scales){.data = (const uint8_t *)tensor->data + tensor->n_bytes -
                                           tensor->type->tail_bytes,
                                   .type = GGUF_SCALE_F32,
                                   .block_rows = GGUF_SCALES_ALL,
                                   .block_cols = GGUF_SCALES_ALL,
                                   .n_cols = 1};
    tensor->scales = scales;
    return STATUS_OK;
}

/* From an offset within the data section to one within the file. */
static enum status place(struct gguf_file *file, const struct gguf_shard *shard,
                         struct gguf_tensor *tensor, struct status_why *why)
{
    uint64_t section = shard->n_bytes - shard->data_offset;
    if (tensor->offset % shard->alignment != 0)
        return status_fail(why, STATUS_FORMAT,
                           "its offset is %" PRIu64
                           ", expected a multiple of the alignment %" PRIu64,
                           tensor->offset, shard->alignment);
    if (tensor->offset > section || tensor->n_bytes > section - tensor->offset)
        return fail_beyond(file, shard, tensor, why);
    tensor->offset += shard->data_offset;
    tensor->data = shard->data + tensor->offset;
    return tensor->type->tail_bytes > 0 && tensor->n_bytes > 0 ? place_scale(file, tensor, why)
                                                               : STATUS_OK;
}

/* Where a tensor's data lie in their file. */
struct extent {
    uint64_t start, end;
    size_t tensor; /* index in the directory */
};

static int compare_extents(const void *a, const void *b)
{
    const struct extent *left = a, *right = b;
    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    return left->tensor < right->tensor ? -1 : 1; /* of equals, the first of the directory */
}

static enum status fail_overlap(const struct base_string *names, const struct extent *low,
                                const struct extent *high, struct status_why *why)
{
    struct base_quoted low_name, high_name;
    return status_fail(why, STATUS_FORMAT,
                       "tensor %s starts at byte %" PRIu64
                       ", within tensor %s, expected it at byte %" PRIu64 " or later",
                       base_quote(&high_name, names[high->tensor]), high->start,
                       base_quote(&low_name, names[low->tensor]), low->end);
}

/*
 * ik_llama.cpp's --repack leaves the bundles of what was Q8_KV as far apart as its rows were, 4
 * bytes a row too far for Q8_KV_R8, and cannot read that itself. n_left: bytes up to the next
 * tensor.
 */
static enum status check_repacked(const struct gguf_shard *shard, const struct gguf_tensor *tensor,
                                  uint64_t n_left, struct status_why *why)
{
    if (tensor->type_id != GGUF_TYPE_Q8_KV_R8 || n_left / 4 < tensor->n_rows)
        return STATUS_OK;
    const uint8_t *rest = (const uint8_t *)tensor->data + tensor->n_bytes;
    uint64_t n_zeros = 0;
    while (n_left < shard->alignment && n_zeros < n_left && rest[n_zeros] == 0)
        n_zeros++;
    if (n_zeros == n_left)
        return STATUS_OK; /* padding */
    return status_fail(why, STATUS_UNSUPPORTED,
                       "has type Q8_KV_R8 and %" PRIu64 " bytes after it, expected fewer than 4 a "
                       "row (%" PRIu64 "): so it is where ik_llama.cpp repacked Q8_KV, which gives "
                       "files that no program reads; quantise to Q8_KV_R8 directly",
                       n_left, 4 * tensor->n_rows);
}

/* What lies after the last tensor, which ends at byte `end`: zeros, and not too many of them. */
static enum status check_rest(struct gguf_shard *shard, uint64_t end, struct status_why *why)
{
    uint64_t n_left = shard->n_bytes - end;
    uint64_t n_zeros = 0;
    while (n_zeros < n_left && n_zeros < MAX_UNUSED && shard->data[end + n_zeros] == 0)
        n_zeros++;
    if (n_zeros < n_left)
        return status_fail(why, STATUS_FORMAT,
                           "the last %" PRIu64 " bytes (from byte %" PRIu64
                           ") belong to no tensor, expected fewer than %" PRIu64
                           ", all 0: the header may count too few tensors",
                           n_left, end, shard->alignment);
    shard->n_unused = n_left < shard->alignment ? 0 : n_left;
    return STATUS_OK;
}

/* The context of what is said of a tensor, after the fact: which. */
static enum status name_tensor(struct base_string name, struct status_why *why)
{
    struct base_quoted shown;
    status_context(why, "tensor %s", base_quote(&shown, name));
    return STATUS_UNSUPPORTED;
}

/* Check that the sorted extents neither overlap nor leave bytes between them but padding. */
static enum status check_extents(const struct gguf_file *file, struct gguf_shard *shard,
                                 const struct extent *sorted, size_t n, struct status_why *why)
{
    const struct base_string *names = file->tensor_names.strings;
    uint64_t end = shard->data_offset;
    bool known = true; /* where the tensor before ends */
    for (size_t i = 0; i < n; i++) {
        struct base_quoted name;
        if (sorted[i].start < end)
            return fail_overlap(names, &sorted[i - 1], &sorted[i], why);
        if (known && i > 0 &&
            check_repacked(shard, &file->tensors[sorted[i - 1].tensor], sorted[i].start - end, why))
            return name_tensor(names[sorted[i - 1].tensor], why);
        if (known && sorted[i].start - end >= shard->alignment)
            return status_fail(why, STATUS_FORMAT,
                               "%" PRIu64 " bytes before tensor %s, which starts at byte %" PRIu64
                               ", belong to no tensor, expected fewer than the alignment %" PRIu64,
                               sorted[i].start - end, base_quote(&name, names[sorted[i].tensor]),
                               sorted[i].start, shard->alignment);
        end = sorted[i].end;
        known = end > sorted[i].start;
    }
    if (!known)
        return STATUS_OK;
    if (n > 0 &&
        check_repacked(shard, &file->tensors[sorted[n - 1].tensor], shard->n_bytes - end, why))
        return name_tensor(names[sorted[n - 1].tensor], why);
    return check_rest(shard, end, why);
}

static enum status check_layout(struct gguf_file *file, struct gguf_shard *shard, size_t first,
                                struct status_why *why)
{
    size_t n = file->tensor_names.n - first;
    struct extent *sorted = malloc(n * sizeof *sorted + 1);
    if (!sorted)
        return status_fail(why, STATUS_MEMORY, "out of memory for %zu tensors", n);
    for (size_t i = 0; i < n; i++) {
        const struct gguf_tensor *tensor = &file->tensors[first + i];
        sorted[i] = (struct extent){tensor->offset, tensor->offset + tensor->n_bytes, first + i};
    }
    qsort(sorted, n, sizeof *sorted, compare_extents);
    enum status status = check_extents(file, shard, sorted, n, why);
    free(sorted);
    return status;
}

enum status gguf_tensors_place(struct gguf_file *file, size_t shard, size_t first,
                               struct status_why *why)
{
    for (size_t i = first; i < file->tensor_names.n; i++) {
        enum status status = place(file, &file->shards[shard], &file->tensors[i], why);
        if (status) {
            struct base_quoted name;
            status_context(why, "tensor %s", base_quote(&name, file->tensor_names.strings[i]));
            return status;
        }
    }
    return check_layout(file, &file->shards[shard], first, why);
}

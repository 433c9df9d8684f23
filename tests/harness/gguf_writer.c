#include "tests/harness/gguf_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gguf/file_impl.h"

/** A tensor to be written: its bytes lie at `data`, or are made by `fill`. */
struct pending_tensor {
    char *name;
    struct gguf_tensor shape; /* sizes, and the offset within the data section */
    const void *data;
    gguf_fill_fn *fill;
    void *user;
};

struct gguf_writer {
    enum status status; /* of the first failure */
    struct status_why why;
    FILE *pairs; /* the key/value section so far, in memory */
    char *pair_bytes;
    size_t n_pair_bytes;
    uint64_t n_pairs;
    uint32_t alignment;
    struct pending_tensor *tensors;
    size_t n_tensors, capacity;
};

enum { SLAB_BYTES = 1 << 20 }; /* what a fill callback is asked for at a time */

enum status gguf_writer_new(struct gguf_writer **out, struct status_why *why)
{
    *out = NULL;
    struct gguf_writer *w = calloc(1, sizeof *w);
    if (w)
        w->pairs = open_memstream(&w->pair_bytes, &w->n_pair_bytes);
    if (!w || !w->pairs) {
        gguf_writer_abandon(w);
        return status_fail(why, STATUS_MEMORY, "out of memory for a GGUF writer");
    }
    w->alignment = GGUF_DEFAULT_ALIGNMENT;
    *out = w;
    return STATUS_OK;
}

void gguf_writer_abandon(struct gguf_writer *w)
{
    if (!w)
        return;
    if (w->pairs)
        fclose(w->pairs);
    free(w->pair_bytes);
    for (size_t i = 0; i < w->n_tensors; i++)
        free(w->tensors[i].name);
    free(w->tensors);
    free(w);
}

/* Streams remember a failed write: ferror() is asked once, at the end. */
static void put_u32(FILE *to, uint32_t value)
{
    fwrite(&value, sizeof value, 1, to);
}

static void put_u64(FILE *to, uint64_t value)
{
    fwrite(&value, sizeof value, 1, to);
}

static void put_string(FILE *to, const char *data, size_t n_bytes)
{
    put_u64(to, n_bytes);
    fwrite(data, 1, n_bytes, to);
}

static void put_key(struct gguf_writer *w, struct base_string key, enum gguf_value_type type)
{
    put_string(w->pairs, key.data, key.n_bytes);
    put_u32(w->pairs, (uint32_t)type);
    w->n_pairs++;
}

/* A pair whose value is n_bytes as they stand. */
static void put_scalar(struct gguf_writer *w, const char *key, enum gguf_value_type type,
                       const void *value, size_t n_bytes)
{
    put_key(w, (struct base_string){key, strlen(key)}, type);
    fwrite(value, 1, n_bytes, w->pairs);
}

static void put_array(struct gguf_writer *w, const char *key, enum gguf_value_type type,
                      size_t count)
{
    put_key(w, (struct base_string){key, strlen(key)}, GGUF_VALUE_ARRAY);
    put_u32(w->pairs, (uint32_t)type);
    put_u64(w->pairs, count);
}

void gguf_writer_u32(struct gguf_writer *w, const char *key, uint32_t value)
{
    if (strcmp(key, "general.alignment") == 0)
        w->alignment = value;
    put_scalar(w, key, GGUF_VALUE_U32, &value, sizeof value);
}

void gguf_writer_u16(struct gguf_writer *w, const char *key, uint16_t value)
{
    put_scalar(w, key, GGUF_VALUE_U16, &value, sizeof value);
}

void gguf_writer_i32(struct gguf_writer *w, const char *key, int32_t value)
{
    put_scalar(w, key, GGUF_VALUE_I32, &value, sizeof value);
}

void gguf_writer_f32(struct gguf_writer *w, const char *key, float value)
{
    put_scalar(w, key, GGUF_VALUE_F32, &value, sizeof value);
}

void gguf_writer_bool(struct gguf_writer *w, const char *key, bool value)
{
    uint8_t byte = value;
    put_scalar(w, key, GGUF_VALUE_BOOL, &byte, sizeof byte);
}

void gguf_writer_string(struct gguf_writer *w, const char *key, const char *value)
{
    put_key(w, (struct base_string){key, strlen(key)}, GGUF_VALUE_STRING);
    put_string(w->pairs, value, strlen(value));
}

void gguf_writer_strings(struct gguf_writer *w, const char *key, const struct base_string *values,
                         size_t count)
{
    put_array(w, key, GGUF_VALUE_STRING, count);
    for (size_t i = 0; i < count; i++)
        put_string(w->pairs, values[i].data, values[i].n_bytes);
}

void gguf_writer_f32s(struct gguf_writer *w, const char *key, const float *values, size_t count)
{
    put_array(w, key, GGUF_VALUE_F32, count);
    fwrite(values, sizeof *values, count, w->pairs);
}

void gguf_writer_i32s(struct gguf_writer *w, const char *key, const int32_t *values, size_t count)
{
    put_array(w, key, GGUF_VALUE_I32, count);
    fwrite(values, sizeof *values, count, w->pairs);
}

void gguf_writer_copy(struct gguf_writer *w, const struct gguf_kv *kv)
{
    static const char alignment[] = "general.alignment";
    if (kv->key.n_bytes == sizeof alignment - 1 &&
        memcmp(kv->key.data, alignment, sizeof alignment - 1) == 0)
        gguf_kv_u32(kv, &w->alignment, NULL); /* of another type: the default, as a reader */
    put_key(w, kv->key, kv->type);
    if (kv->type == GGUF_VALUE_ARRAY) {
        put_u32(w->pairs, (uint32_t)kv->element_type);
        put_u64(w->pairs, kv->count);
    }
    const uint8_t *end = kv->data;
    if (kv->element_type == GGUF_VALUE_STRING) {
        for (uint64_t i = 0; i < kv->count; i++)
            end += sizeof(uint64_t) + gguf_load_u64(end);
    } else {
        end += kv->count * gguf_value_size(kv->element_type);
    }
    fwrite(kv->data, 1, (size_t)(end - kv->data), w->pairs);
}

/* Append an entry; NULL once something has failed. */
static struct pending_tensor *add_tensor(struct gguf_writer *w, const char *name,
                                         enum gguf_type type, const uint64_t *ne, uint32_t n_dims)
{
    if (w->status != STATUS_OK)
        return NULL;
    struct pending_tensor tensor = {.shape = {.n_dims = n_dims, .ne = {1, 1, 1, 1}}};
    for (uint32_t i = 0; i < n_dims && i < GGUF_MAX_DIMS; i++)
        tensor.shape.ne[i] = ne[i];
    w->status = gguf_tensor_measure(&tensor.shape, (uint32_t)type, &w->why);
    if (w->status == STATUS_OK && tensor.shape.n_bytes == 0)
        w->status =
            status_fail(&w->why, STATUS_UNSUPPORTED, "has type %d (%s), whose size is not known",
                        (int)type, tensor.shape.type->name);
    if (w->status != STATUS_OK) {
        status_context(&w->why, "tensor '%s'", name);
        return NULL;
    }
    if (w->n_tensors == w->capacity) {
        size_t capacity = w->capacity ? 2 * w->capacity : 64;
        struct pending_tensor *grown = realloc(w->tensors, capacity * sizeof *grown);
        if (grown) {
            w->tensors = grown;
            w->capacity = capacity;
        }
    }
    tensor.name = w->n_tensors < w->capacity ? strdup(name) : NULL;
    if (!tensor.name) {
        w->status = status_fail(&w->why, STATUS_MEMORY, "out of memory for tensor '%s'", name);
        return NULL;
    }
    w->tensors[w->n_tensors] = tensor;
    return &w->tensors[w->n_tensors++];
}

void gguf_writer_tensor(struct gguf_writer *w, const char *name, enum gguf_type type,
                        const uint64_t *ne, uint32_t n_dims, const void *data)
{
    struct pending_tensor *tensor = add_tensor(w, name, type, ne, n_dims);
    if (tensor)
        tensor->data = data;
}

void gguf_writer_tensor_fill(struct gguf_writer *w, const char *name, enum gguf_type type,
                             const uint64_t *ne, uint32_t n_dims, gguf_fill_fn *fill, void *user)
{
    struct pending_tensor *tensor = add_tensor(w, name, type, ne, n_dims);
    if (tensor) {
        tensor->fill = fill;
        tensor->user = user;
    }
}

/* Zeros from offset `at` up to a multiple of the alignment, where the next thing starts. */
static void put_padding(FILE *to, uint64_t at, uint32_t alignment)
{
    for (; at % alignment != 0; at++)
        fputc(0, to);
}

/* Let the callback make the rows, a slab at a time. */
static enum status put_filled(FILE *to, const struct pending_tensor *tensor, struct status_why *why)
{
    const struct gguf_tensor *shape = &tensor->shape;
    uint64_t n_slab = SLAB_BYTES / shape->row_bytes;
    n_slab -= n_slab % shape->type->bundle_rows;
    if (n_slab == 0)
        n_slab = shape->type->bundle_rows;
    void *slab = malloc((size_t)(n_slab * shape->row_bytes));
    if (!slab)
        return status_fail(why, STATUS_MEMORY, "out of memory for rows of tensor '%s'",
                           tensor->name);
    for (uint64_t row = 0; row < shape->n_rows; row += n_slab) {
        uint64_t n_rows = shape->n_rows - row < n_slab ? shape->n_rows - row : n_slab;
        tensor->fill(tensor->user, (size_t)row, (size_t)n_rows, slab);
        fwrite(slab, (size_t)shape->row_bytes, (size_t)n_rows, to);
    }
    free(slab);
    return STATUS_OK;
}

static void put_directory(FILE *to, const struct gguf_writer *w)
{
    fwrite("GGUF", 1, 4, to);
    put_u32(to, 3);
    put_u64(to, w->n_tensors);
    put_u64(to, w->n_pairs);
    fwrite(w->pair_bytes, 1, w->n_pair_bytes, to);
    for (size_t i = 0; i < w->n_tensors; i++) {
        const struct gguf_tensor *shape = &w->tensors[i].shape;
        put_string(to, w->tensors[i].name, strlen(w->tensors[i].name));
        put_u32(to, shape->n_dims);
        for (uint32_t k = 0; k < shape->n_dims; k++)
            put_u64(to, shape->ne[k]);
        put_u32(to, shape->type_id);
        put_u64(to, shape->offset);
    }
}

/* The whole file; whether the stream took it is the caller's to ask. */
static enum status put_file(FILE *to, struct gguf_writer *w, struct status_why *why)
{
    uint64_t size = 4 + 4 + 8 + 8 + w->n_pair_bytes; /* of header and directory */
    uint64_t offset = 0;
    for (size_t i = 0; i < w->n_tensors; i++) {
        struct gguf_tensor *shape = &w->tensors[i].shape;
        size += 8 + strlen(w->tensors[i].name) + 4 + 8 * (uint64_t)shape->n_dims + 4 + 8;
        shape->offset = offset;
        offset += (shape->n_bytes + w->alignment - 1) / w->alignment * w->alignment;
    }
    put_directory(to, w);
    if (w->n_tensors > 0)
        put_padding(to, size, w->alignment);
    for (size_t i = 0; i < w->n_tensors; i++) {
        const struct pending_tensor *tensor = &w->tensors[i];
        if (tensor->fill) {
            enum status status = put_filled(to, tensor, why);
            if (status != STATUS_OK)
                return status;
        } else {
            fwrite(tensor->data, 1, (size_t)tensor->shape.n_bytes, to);
        }
        put_padding(to, tensor->shape.n_bytes, w->alignment);
    }
    return STATUS_OK;
}

/* Complete the pairs, and report what went wrong in the calls before. */
static enum status close_pairs(struct gguf_writer *w, struct status_why *why)
{
    int failed = ferror(w->pairs);
    failed |= fclose(w->pairs);
    w->pairs = NULL;
    if (w->status != STATUS_OK)
        return status_fail(why, w->status, "%s", w->why.text);
    if (failed)
        return status_fail(why, STATUS_MEMORY, "out of memory for key/value pairs");
    if (w->alignment == 0 || (w->alignment & (w->alignment - 1)) != 0)
        return status_fail(why, STATUS_FORMAT,
                           "key 'general.alignment' is %u, expected a power of two", w->alignment);
    return STATUS_OK;
}

static enum status fail_write(const char *path, struct status_why *why)
{
    return status_fail(why, STATUS_IO, "%s: cannot be written: %s", path,
                       strerror(errno ? errno : EIO));
}

static enum status write_stream(int fd, const char *path, struct gguf_writer *w,
                                struct status_why *why)
{
    FILE *to = fdopen(fd, "wb");
    if (!to) {
        close(fd);
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", path);
    }
    errno = 0;
    enum status status = put_file(to, w, why);
    int failed = ferror(to);
    failed |= fclose(to);
    return status == STATUS_OK && failed ? fail_write(path, why) : status;
}

/* Write beside `path`, then rename; the temporary file goes away whatever happens. */
static enum status write_renamed(const char *path, struct gguf_writer *w, struct status_why *why)
{
    size_t capacity = strlen(path) + 32;
    char *temporary = malloc(capacity);
    if (!temporary)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", path);
    snprintf(temporary, capacity, "%s.%ld.tmp", path, (long)getpid());
    enum status status;
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        status = fail_write(path, why);
    } else {
        status = write_stream(fd, path, w, why);
        if (status == STATUS_OK && rename(temporary, path) != 0)
            status = fail_write(path, why);
        if (status != STATUS_OK)
            unlink(temporary);
    }
    free(temporary);
    return status;
}

enum status gguf_writer_finish(struct gguf_writer *w, const char *path, struct status_why *why)
{
    enum status status = close_pairs(w, why);
    if (status == STATUS_OK)
        status = write_renamed(path, w, why);
    gguf_writer_abandon(w);
    return status;
}

enum status gguf_writer_finish_memory(struct gguf_writer *w, void **data, size_t *n_bytes,
                                      struct status_why *why)
{
    *data = NULL;
    *n_bytes = 0;
    char *bytes = NULL;
    FILE *to = NULL;
    enum status status = close_pairs(w, why);
    if (status == STATUS_OK) {
        to = open_memstream(&bytes, n_bytes);
        status = to ? put_file(to, w, why)
                    : status_fail(why, STATUS_MEMORY, "out of memory for a GGUF file");
    }
    if (to) {
        int failed = ferror(to);
        failed |= fclose(to);
        if (status == STATUS_OK && failed)
            status = status_fail(why, STATUS_MEMORY, "out of memory for a GGUF file");
    }
    if (status == STATUS_OK)
        *data = bytes;
    else
        free(bytes);
    gguf_writer_abandon(w);
    return status;
}

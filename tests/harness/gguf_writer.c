#include "tests/harness/gguf_writer.h"

#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/file/atomic_file.h"

/** The bytes of a tensor: they lie at `data`, or are made by `fill`. */
struct source {
    const void *data;
    gguf_fill_fn *fill;
    void *user;
};

struct gguf_writer {
    struct gguf_layout *layout;
    struct source *sources; /* [n_sources], one for each tensor of the layout */
    size_t n_sources, capacity;
    bool failed; /* no memory for a source */
};

enum { SLAB_BYTES = 1 << 20 }; /* what a fill callback is asked for at a time */

enum status gguf_writer_new(struct gguf_writer **out, struct status_why *why)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return status_fail(why, STATUS_MEMORY, "out of memory for a GGUF writer");
    enum status status = gguf_layout_new(&(*out)->layout, why);
    if (status) {
        gguf_writer_abandon(*out);
        *out = NULL;
    }
    return status;
}

void gguf_writer_abandon(struct gguf_writer *w)
{
    if (!w)
        return;
    gguf_layout_free(w->layout);
    free(w->sources);
    free(w);
}

void gguf_writer_copy(struct gguf_writer *w, const struct gguf_kv *kv)
{
    gguf_layout_pair(w->layout, kv);
}

/* Values as they stand; one of them is no array where `type` says so. */
static void put_values(struct gguf_writer *w, const char *key, enum gguf_value_type type,
                       enum gguf_value_type element_type, const void *values, size_t count)
{
    gguf_layout_pair(w->layout,
                     &(struct gguf_kv){{key, strlen(key)}, type, element_type, count, values});
}

void gguf_writer_u32(struct gguf_writer *w, const char *key, uint32_t value)
{
    gguf_layout_u32(w->layout, key, value);
}

void gguf_writer_u16(struct gguf_writer *w, const char *key, uint16_t value)
{
    put_values(w, key, GGUF_VALUE_U16, GGUF_VALUE_U16, &value, 1);
}

void gguf_writer_i32(struct gguf_writer *w, const char *key, int32_t value)
{
    put_values(w, key, GGUF_VALUE_I32, GGUF_VALUE_I32, &value, 1);
}

void gguf_writer_f32(struct gguf_writer *w, const char *key, float value)
{
    put_values(w, key, GGUF_VALUE_F32, GGUF_VALUE_F32, &value, 1);
}

void gguf_writer_bool(struct gguf_writer *w, const char *key, bool value)
{
    put_values(w, key, GGUF_VALUE_BOOL, GGUF_VALUE_BOOL, &(uint8_t){value}, 1);
}

void gguf_writer_string(struct gguf_writer *w, const char *key, const char *value)
{
    gguf_layout_string(w->layout, key, value);
}

void gguf_writer_strings(struct gguf_writer *w, const char *key, const struct base_string *values,
                         size_t count)
{
    gguf_layout_strings(w->layout, key, values, count);
}

void gguf_writer_f32s(struct gguf_writer *w, const char *key, const float *values, size_t count)
{
    put_values(w, key, GGUF_VALUE_ARRAY, GGUF_VALUE_F32, values, count);
}

void gguf_writer_i32s(struct gguf_writer *w, const char *key, const int32_t *values, size_t count)
{
    put_values(w, key, GGUF_VALUE_ARRAY, GGUF_VALUE_I32, values, count);
}

static void add_tensor(struct gguf_writer *w, const char *name, enum gguf_type type,
                       const uint64_t *ne, uint32_t n_dims, struct source source)
{
    gguf_layout_tensor(w->layout, name, (uint32_t)type, ne, n_dims);
    struct source *grown =
        base_array_grow(w->sources, &w->capacity, w->n_sources + 1, sizeof *grown);
    w->failed |= !grown;
    if (!grown)
        return;
    w->sources = grown;
    w->sources[w->n_sources++] = source;
}

void gguf_writer_tensor(struct gguf_writer *w, const char *name, enum gguf_type type,
                        const uint64_t *ne, uint32_t n_dims, const void *data)
{
    add_tensor(w, name, type, ne, n_dims, (struct source){.data = data});
}

void gguf_writer_tensor_fill(struct gguf_writer *w, const char *name, enum gguf_type type,
                             const uint64_t *ne, uint32_t n_dims, gguf_fill_fn *fill, void *user)
{
    add_tensor(w, name, type, ne, n_dims, (struct source){.fill = fill, .user = user});
}

/** Where the file's bytes go, in order. */
struct sink {
    struct base_file *file; /* NULL: memory */
    uint8_t *memory;
    size_t n;
};

static void put(struct sink *to, const void *bytes, size_t n_bytes)
{
    if (to->file)
        base_file_write(to->file, bytes, n_bytes);
    else
        memcpy(to->memory + to->n, bytes, n_bytes);
    to->n += n_bytes;
}

/* Let the callback make the rows, a slab at a time. */
static enum status put_filled(struct sink *to, const struct gguf_tensor *t,
                              const struct source *source, struct status_why *why)
{
    size_t bundle = t->type->bundle_rows;
    size_t n_slab = base_max(SLAB_BYTES / t->row_bytes / bundle * bundle, bundle);
    void *slab = malloc(n_slab * t->row_bytes);
    if (!slab)
        return status_fail(why, STATUS_MEMORY, "out of memory for rows of tensor '%s'", t->name);
    for (size_t row = 0; row < t->n_rows; row += n_slab) {
        size_t n_rows = base_min(t->n_rows - row, n_slab);
        source->fill(source->user, row, n_rows, slab);
        put(to, slab, n_rows * t->row_bytes);
    }
    free(slab);
    return STATUS_OK;
}

static void put_zeros_up_to(struct sink *to, uint64_t end)
{
    while (to->n < end)
        put(to, "", 1);
}

static enum status put_file(struct sink *to, const struct gguf_writer *w,
                            const struct gguf_directory *directory, struct status_why *why)
{
    enum status status = STATUS_OK;
    put(to, directory->bytes, directory->n_bytes);
    for (size_t i = 0; i < gguf_layout_n_tensors(w->layout) && !status; i++) {
        const struct gguf_tensor *t = gguf_layout_tensor_at(w->layout, i);
        put_zeros_up_to(to, t->offset);
        if (w->sources[i].fill)
            status = put_filled(to, t, &w->sources[i], why);
        else
            put(to, w->sources[i].data, t->n_bytes);
    }
    put_zeros_up_to(to, directory->n_bytes_whole);
    return status;
}

static enum status finish_layout(struct gguf_writer *w, struct gguf_directory *out,
                                 struct status_why *why)
{
    enum status status = gguf_layout_finish(w->layout, out, why);
    return status || !w->failed ? status : status_fail(why, STATUS_MEMORY, "out of memory");
}

enum status gguf_writer_finish(struct gguf_writer *w, const char *path, struct status_why *why)
{
    struct gguf_directory directory;
    struct sink to = {0};
    enum status status = finish_layout(w, &directory, why);
    if (!status)
        status = base_file_create(&to.file, path, NULL, why);
    if (!status)
        status = put_file(&to, w, &directory, why);
    if (!status)
        status = base_file_commit(to.file, why);
    else
        base_file_abandon(to.file);
    gguf_writer_abandon(w);
    return status;
}

enum status gguf_writer_finish_memory(struct gguf_writer *w, void **data, size_t *n_bytes,
                                      struct status_why *why)
{
    struct gguf_directory directory;
    struct sink to = {0};
    enum status status = finish_layout(w, &directory, why);
    if (!status && !(to.memory = malloc(directory.n_bytes_whole)))
        status = status_fail(why, STATUS_MEMORY, "out of memory for a GGUF file");
    if (!status)
        status = put_file(&to, w, &directory, why);
    if (status)
        free(to.memory);
    *data = status ? NULL : to.memory;
    *n_bytes = status ? 0 : directory.n_bytes_whole;
    gguf_writer_abandon(w);
    return status;
}

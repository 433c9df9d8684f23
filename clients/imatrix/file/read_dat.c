/* The older format: little-endian, without a magic number; values are means times chunks. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/quote.h"
#include "clients/imatrix/file/read.h"

enum { LONGEST_NAME = 255, LONGEST_DATASET = 65535 };

struct cursor {
    const uint8_t *data;
    size_t n, at;
};

static enum status take(struct cursor *c, size_t n, const uint8_t **bytes, const char *what,
                        struct status_why *why)
{
    *bytes = c->data + c->at;
    if (n > c->n - c->at)
        return status_fail(why, STATUS_FORMAT,
                           "%s needs %zu byte%s at byte %zu, and the file has %zu; it is cut off, "
                           "or no importance matrix",
                           what, n, status_plural(n), c->at, c->n);
    c->at += n;
    return STATUS_OK;
}

/* A number from `low` to `high`. */
static enum status take_i32(struct cursor *c, int32_t range[2], int32_t *value, const char *what,
                            struct status_why *why)
{
    const uint8_t *bytes;
    size_t at = c->at;
    enum status status = take(c, sizeof *value, &bytes, what, why);
    if (status)
        return status;
    memcpy(value, bytes, sizeof *value);
    if (*value < range[0] || *value > range[1])
        return status_fail(why, STATUS_FORMAT,
                           "%s, at byte %zu, is %" PRId32 ", expected %" PRId32 " to %" PRId32
                           "; the file is damaged, or no importance matrix",
                           what, at, *value, range[0], range[1]);
    return STATUS_OK;
}

static enum status take_text(struct cursor *c, int32_t longest, char **out, const char *what,
                             struct status_why *why)
{
    int32_t n;
    const uint8_t *bytes;
    enum status status = take_i32(c, (int32_t[]){longest == LONGEST_NAME, longest}, &n, what, why);
    if (!status)
        status = take(c, (size_t)n, &bytes, what, why);
    if (!status && memchr(bytes, '\0', (size_t)n))
        status = status_fail(why, STATUS_FORMAT, "%s has a zero byte, expected none", what);
    if (!status && !(*out = strndup((const char *)bytes, (size_t)n)))
        status = status_fail(why, STATUS_MEMORY, "no memory for %s", what);
    return status;
}

static enum status read_values(struct imat_entry *e, const uint8_t *bytes, struct status_why *why)
{
    for (uint64_t i = 0; i < e->n_columns; i++) {
        memcpy(&e->rounded[i], bytes + i * sizeof *e->rounded, sizeof *e->rounded);
        if (!(e->rounded[i] >= 0) || isinf(e->rounded[i]))
            return status_fail(why, STATUS_FORMAT,
                               "value %" PRIu64 " is %g, expected a mean of squares: finite, 0 or "
                               "more",
                               i, (double)e->rounded[i]);
    }
    return STATUS_OK;
}

/* All matrices of a stack are one here: the file does not say how many there are. */
static enum status read_entry(struct imat_entry *e, struct cursor *c, struct status_why *why)
{
    int32_t n_calls, n;
    const uint8_t *bytes;
    enum status status = take_i32(c, (int32_t[]){1, INT32_MAX}, &n_calls, "its ncall", why);
    if (!status)
        status = take_i32(c, (int32_t[]){1, INT32_MAX}, &n, "its number of values", why);
    if (!status)
        status = take(c, (size_t)n * sizeof(float), &bytes, "its values", why);
    if (!status)
        status = base_array_new(e->counts, 1, "counts", why);
    if (!status)
        status = base_array_new(e->rounded, (size_t)n, "values", why);
    if (status)
        return status;
    e->n_matrices = 1;
    e->n_columns = (uint64_t)n;
    e->counts[0] = (uint64_t)n_calls;
    return read_values(e, bytes, why);
}

static enum status read_entries(struct imat_matrix *out, struct cursor *c, struct status_why *why)
{
    int32_t n;
    size_t capacity = 0;
    enum status status = take_i32(c, (int32_t[]){1, INT32_MAX}, &n, "the number of entries", why);
    for (int32_t i = 0; !status && i < n; i++) {
        status = base_array_reserve(out->entries, capacity, out->n + 1, "matrices", why);
        if (status)
            break;
        struct imat_entry *e = &out->entries[out->n++];
        *e = (struct imat_entry){0};
        status = take_text(c, LONGEST_NAME, &e->name, "its name", why);
        if (!status)
            status = read_entry(e, c, why);
        if (status && e->name) {
            struct base_quoted name;
            status_context(why, "entry %s",
                           base_quote(&name, (struct base_string){e->name, strlen(e->name)}));
        } else if (status) {
            status_context(why, "entry %" PRId32 " of %" PRId32, i + 1, n);
        }
    }
    return status ? status : imat_sort(out, why);
}

/* Chunks and dataset, which the oldest files do not have. */
static enum status read_tail(struct imat_matrix *out, struct cursor *c, struct status_why *why)
{
    int32_t n_chunks;
    if (c->at == c->n)
        return STATUS_OK;
    enum status status =
        take_i32(c, (int32_t[]){0, INT32_MAX}, &n_chunks, "the number of chunks", why);
    if (status)
        return status;
    out->n_chunks = (uint64_t)n_chunks;
    if (c->at == c->n)
        return STATUS_OK;
    status = base_array_new(out->datasets, 1, "datasets", why);
    if (!status)
        status = take_text(c, LONGEST_DATASET, &out->datasets[0], "the dataset", why);
    if (status)
        return status;
    out->n_datasets = 1;
    return c->at == c->n
               ? STATUS_OK
               : status_fail(why, STATUS_FORMAT, "has %zu bytes after the dataset, expected none",
                             c->n - c->at);
}

enum status imat_read_dat(struct imat_matrix *out, const void *bytes, size_t n_bytes,
                          const char *path, struct status_why *why)
{
    struct cursor c = {bytes, n_bytes, 0};
    out->counts_lost = true;
    out->chunk_size = 1;
    enum status status = read_entries(out, &c, why);
    if (!status)
        status = read_tail(out, &c, why);
    if (status)
        status_context(why, "%s", path);
    return status;
}

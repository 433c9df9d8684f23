/* Files of either format, and the GGUF format without exact sums. */
#include "clients/imatrix/file/read.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/content/kind.h"
#include "base/content/written.h"
#include "base/text/quote.h"
#include "base/text/words.h"
#include "clients/imatrix/file/exact.h"
#include "clients/imatrix/file/write.h"

enum { PIECE_BYTES = 1 << 20 };

enum imat_kind imat_kind_of(const char *path)
{
    char found[BASE_WRITTEN_NAME];
    const char *name = base_written_name(found, path);
    if (name && strcmp(name, BASE_MATRIX_DAT) == 0)
        return IMAT_DAT;
    bool is_gguf = base_file_begins_with(path, (struct base_string){"GGUF", 4});
    return is_gguf ? IMAT_GGUF : IMAT_OTHER;
}

static bool has_suffix(const struct gguf_tensor *t, const char *suffix)
{
    return base_ends_with(t->name, suffix);
}

/* general.type, or "" where it is absent or no string. */
static struct base_string type_of(const struct gguf_file *file)
{
    struct base_string type = {"", 0};
    const struct gguf_kv *kv = gguf_kv_find(file, "general.type");
    if (kv && kv->type == GGUF_VALUE_STRING)
        type = gguf_kv_string(kv, 0);
    return type;
}

bool imat_is_matrix(const struct gguf_file *file)
{
    struct base_string type = type_of(file);
    if (type.n_bytes)
        return type.n_bytes == 7 && memcmp(type.data, "imatrix", 7) == 0;
    for (size_t i = 0; i < gguf_n_tensors(file); i++)
        if (has_suffix(gguf_tensor_at(file, i), IMAT_SUMS))
            return true;
    return false;
}

/** A pair of tensors on its way to an entry. */
struct pair {
    const char *name; /* of the matrix */
    const struct gguf_tensor *sums, *counts;
};

static uint64_t n_elements(const struct gguf_tensor *t)
{
    return t->n_rows * t->ne[0];
}

static enum status check_pair(const struct pair *p, uint64_t *n_matrices, struct status_why *why)
{
    const struct gguf_tensor *both[] = {p->sums, p->counts};
    for (size_t i = 0; i < 2; i++)
        if (both[i]->type_id != 0)
            return status_fail(why, STATUS_FORMAT, "tensor '%s' has type %s, expected F32",
                               both[i]->name, both[i]->type->name);
    uint64_t n_counts = n_elements(p->counts), stacked = p->sums->n_rows;
    *n_matrices = n_counts > stacked ? n_counts : stacked;
    bool agree = n_counts == 1 || n_counts == stacked ||
                 (stacked == 1 && n_counts && p->sums->ne[0] % n_counts == 0);
    return agree ? STATUS_OK
                 : status_fail(why, STATUS_FORMAT,
                               "tensor '%s' has %" PRIu64 " numbers, expected %" PRIu64
                               " or 1, as '%s' has %" PRIu64 " rows of %" PRIu64,
                               p->counts->name, n_counts, stacked, p->sums->name, stacked,
                               p->sums->ne[0]);
}

static float float_at(const struct gguf_tensor *t, uint64_t i)
{
    float value;
    memcpy(&value, (const uint8_t *)t->data + i * sizeof value, sizeof value);
    return value;
}

/* Counts are whole numbers; beyond 2^24 a float holds some of them only. */
static enum status read_counts(struct imat_entry *e, const struct gguf_tensor *t,
                               struct status_why *why)
{
    bool repeated = n_elements(t) == 1;
    for (uint64_t i = 0; i < e->n_matrices; i++) {
        float value = float_at(t, repeated ? 0 : i);
        if (!(value >= 0 && value < 0x1p62F) || value != floorf(value))
            return status_fail(why, STATUS_FORMAT,
                               "tensor '%s': number %" PRIu64
                               " is %g, expected a count of rows: whole, 0 or more, below 2^62",
                               t->name, repeated ? 0 : i, (double)value);
        e->counts[i] = (uint64_t)value;
    }
    return STATUS_OK;
}

static enum status read_sums(struct imat_entry *e, const struct gguf_tensor *t,
                             struct status_why *why)
{
    for (uint64_t i = 0; i < e->n_matrices * e->n_columns; i++) {
        float value = float_at(t, i);
        if (!(value >= 0) || isinf(value))
            return status_fail(why, STATUS_FORMAT,
                               "tensor '%s': number %" PRIu64
                               " is %g, expected a sum of squares: finite, 0 or more",
                               t->name, i, (double)value);
        if (value > 0 && !e->counts[i / e->n_columns])
            return status_fail(why, STATUS_FORMAT,
                               "tensor '%s': number %" PRIu64 " is %g, expected 0, as matrix "
                               "%" PRIu64 " of it has no rows by its count",
                               t->name, i, (double)value, i / e->n_columns);
        e->rounded[i] = value;
    }
    return STATUS_OK;
}

/* Into an entry that is the matrix's from now on, whatever the outcome. */
static enum status read_pair(struct imat_entry *e, const struct pair *p, struct status_why *why)
{
    uint64_t n_matrices = 0;
    enum status status = check_pair(p, &n_matrices, why);
    if (status)
        return status;
    e->n_matrices = n_matrices;
    e->n_columns = n_elements(p->sums) / n_matrices;
    status = base_array_new(e->counts, (size_t)n_matrices, "counts", why);
    if (!status)
        status = base_array_new(e->rounded, (size_t)n_elements(p->sums), "sums", why);
    if (!status)
        status = read_counts(e, p->counts, why);
    return status ? status : read_sums(e, p->sums, why);
}

/* The tensor of the same matrix with another suffix. NULL: there is none; *name: the matrix's. */
static const struct gguf_tensor *partner(const struct gguf_file *file, const struct gguf_tensor *t,
                                         const char *suffix, const char *other, char **name)
{
    char *whole = NULL;
    *name = strndup(t->name, strlen(t->name) - strlen(suffix));
    if (!*name || asprintf(&whole, "%s%s", *name, other) < 0)
        return NULL;
    const struct gguf_tensor *found = gguf_tensor_find(file, whole);
    free(whole);
    return found;
}

static enum status read_tensor(struct imat_matrix *out, const struct gguf_file *file,
                               const struct gguf_tensor *t, struct status_why *why)
{
    bool sums = has_suffix(t, IMAT_SUMS);
    const char *suffix = sums ? IMAT_SUMS : IMAT_COUNTS, *other = sums ? IMAT_COUNTS : IMAT_SUMS;
    if (!sums && !has_suffix(t, IMAT_COUNTS))
        return STATUS_OK;
    struct pair p = {.sums = t};
    char *name = NULL;
    p.counts = partner(file, t, suffix, other, &name);
    if (!name)
        return status_fail(why, STATUS_MEMORY, "no memory for the name of a matrix");
    if (!p.counts || !sums) {
        free(name);
        return p.counts ? STATUS_OK
                        : status_fail(why, STATUS_FORMAT,
                                      "tensor '%s' has no partner, expected one with '%s' instead "
                                      "of '%s'",
                                      t->name, other, suffix);
    }
    struct imat_entry *e = &out->entries[out->n++];
    e->name = name;
    return read_pair(e, &p, why);
}

static enum status read_keys(struct imat_matrix *out, const struct gguf_file *file,
                             struct status_why *why)
{
    bool found;
    uint32_t size = 0, n = 0;
    enum status status = gguf_get_u32(file, "imatrix.chunk_count", &n, &found, why);
    if (!status)
        status = gguf_get_u32(file, "imatrix.chunk_size", &size, &found, why);
    if (status)
        return status; /* the sentence names the file */
    out->n_chunks = n;
    out->chunk_size = size;
    status = imat_read_strings(&out->datasets, &out->n_datasets, file, "imatrix.datasets", why);
    if (status)
        status_context(why, "%s", gguf_path(file));
    return status;
}

/* All tensors, without what is exact. */
static enum status read_tensors(struct imat_matrix *out, const struct gguf_file *file,
                                struct status_why *why)
{
    size_t n = gguf_n_tensors(file);
    enum status status = base_array_new(out->entries, n, "matrices", why);
    for (size_t i = 0; i < n && !status; i++)
        status = read_tensor(out, file, gguf_tensor_at(file, i), why);
    if (!status && !out->n)
        status = status_fail(why, STATUS_FORMAT,
                             "has no tensor '*%s', expected one for each matrix", IMAT_SUMS);
    if (!status)
        status = imat_sort(out, why);
    return status ? status : imat_read_exact(out, file, why);
}

enum status imat_read_gguf(struct imat_matrix *out, const struct gguf_file *file,
                           struct status_why *why)
{
    struct base_quoted shown;
    struct base_string type = type_of(file);
    if (!imat_is_matrix(file))
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%s: is no importance matrix: general.type is %s, expected 'imatrix'",
                           gguf_path(file), type.n_bytes ? base_quote(&shown, type) : "absent");
    enum status status = read_keys(out, file, why);
    if (status)
        return status;
    status = read_tensors(out, file, why);
    if (status)
        status_context(why, "%s", gguf_path(file));
    return status;
}

static enum status read_gguf(struct imat_matrix *out, const char *path, struct status_why *why)
{
    struct gguf_file *file;
    enum status status = gguf_list_part(&file, path, why);
    if (!status)
        status = imat_read_gguf(out, file, why);
    if (!status)
        status = gguf_check_unchanged(file, why);
    gguf_close(file);
    return status;
}

static enum status read_dat(struct imat_matrix *out, const char *path, struct status_why *why)
{
    struct base_buffer bytes = {0};
    struct stat about;
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &about) || !S_ISREG(about.st_mode)) {
        const char *what = file ? "is not a regular file" : strerror(errno);
        if (file)
            fclose(file);
        return status_fail(why, STATUS_IO, "%s: %s", path, what);
    }
    size_t n = 1;
    while (n && base_buffer_reserve(&bytes, PIECE_BYTES)) {
        n = fread(bytes.data + bytes.n, 1, PIECE_BYTES, file);
        bytes.n += n;
    }
    bool failed = ferror(file);
    fclose(file);
    enum status status = base_buffer_check(&bytes, "an importance matrix", why);
    if (!status && failed)
        status = status_fail(why, STATUS_IO, "%s: cannot be read", path);
    if (!status)
        status = imat_read_dat(out, bytes.data, bytes.n, path, why);
    base_buffer_free(&bytes);
    return status;
}

enum status imat_read(struct imat_matrix *out, const char *path, struct status_why *why)
{
    return imat_kind_of(path) == IMAT_GGUF ? read_gguf(out, path, why) : read_dat(out, path, why);
}

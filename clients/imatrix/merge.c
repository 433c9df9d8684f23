/* The sums of batches, of other processes and of an earlier run, into those of the whole. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "clients/imatrix/collector.h"
#include "clients/imatrix/sum.h"

/** use: rows by category, which lie n apart. With the lock. */
static enum status add_use(struct imat_entry *entry, uint32_t matrix, size_t n_categories,
                           const uint64_t *use, size_t n, struct status_why *why)
{
    size_t n_matrices = (size_t)entry->n_matrices;
    if (!entry->use && base_array_new(entry->use, n_categories * n_matrices, "rows", why))
        return STATUS_MEMORY;
    for (size_t i = 0; i < n_categories; i++)
        entry->use[i * n_matrices + matrix] += use[i * n];
    return STATUS_OK;
}

/** With the lock. */
static enum status add_matrix(struct imat_collector *c, const struct imat_packed *of,
                              const struct imat_sum *sums, struct status_why *why)
{
    struct imat_entry *entry = &c->entries[of->entry];
    size_t n = (size_t)entry->n_columns;
    enum status status = STATUS_OK;
    if (!entry->sums)
        status = base_array_new(entry->sums, n * (size_t)entry->n_matrices, "sums", why);
    if (status)
        return status;
    struct imat_sum *to = entry->sums + of->matrix * n;
    entry->counts[of->matrix] += of->count;
    for (size_t i = 0; i < n; i++) {
        bool fits = sums[i].whole >> 63 == 0;
        to[i] = imat_sum_of(imat_sum_quanta(to[i]) + imat_sum_quanta(sums[i]));
        if (!fits || to[i].whole >> 63)
            return status_fail(why, STATUS_NONFINITE,
                               "%s: %s: column %zu of its input has a sum of squares of 2^63 or "
                               "more",
                               gguf_path(c->file), entry->name, i);
    }
    return STATUS_OK;
}

static enum status merge_part(struct imat_collector *c, struct imat_batch_sums *part, uint32_t i,
                              struct status_why *why)
{
    struct imat_entry *entry = &c->entries[i];
    size_t n = (size_t)entry->n_columns, n_matrices = (size_t)entry->n_matrices;
    size_t n_categories = imat_n_told_apart(c, i);
    enum status status = STATUS_OK;
    for (uint32_t k = 0; part->sums && k < n_matrices && !status; k++) {
        const struct imat_packed of = {i, k, part->counts[k]};
        if (!of.count)
            continue;
        status = add_matrix(c, &of, part->sums + k * n, why);
        if (!status && n_categories)
            status = add_use(entry, k, n_categories, part->use + k, n_matrices, why);
        memset(part->sums + k * n, 0, n * sizeof *part->sums);
        part->counts[k] = 0;
    }
    if (part->use)
        memset(part->use, 0, n_categories * n_matrices * sizeof *part->use);
    return status;
}

enum status imat_collector_merge(struct imat_collector *c, size_t backend, struct status_why *why)
{
    enum status status = STATUS_OK;
    pthread_mutex_lock(&c->lock);
    for (uint32_t i = 0; i < c->n && !status; i++)
        status = merge_part(c, &c->hooks[backend].parts[i], i, why);
    pthread_mutex_unlock(&c->lock);
    return status;
}

size_t imat_packed_bytes(const struct imat_collector *c, uint32_t entry)
{
    return (size_t)c->entries[entry].n_columns * sizeof(struct imat_sum) +
           imat_n_told_apart(c, entry) * sizeof(uint64_t);
}

/** As many bytes as pack appends: no more are to be held than these. */
static size_t packed_bytes(const struct imat_collector *c)
{
    size_t n = 0;
    for (uint32_t i = 0; i < c->n; i++)
        for (uint64_t k = 0; c->entries[i].sums && k < c->entries[i].n_matrices; k++)
            if (c->entries[i].counts[k])
                n += sizeof(struct imat_packed) + imat_packed_bytes(c, i);
    return n;
}

enum status imat_collector_pack(const struct imat_collector *c, struct base_buffer *out,
                                struct status_why *why)
{
    (void)base_buffer_reserve(out, packed_bytes(c));
    for (uint32_t i = 0; i < c->n; i++) {
        const struct imat_entry *entry = &c->entries[i];
        size_t n = (size_t)entry->n_columns;
        for (uint32_t k = 0; entry->sums && k < entry->n_matrices; k++) {
            const struct imat_packed of = {i, k, entry->counts[k]};
            if (!of.count)
                continue;
            base_buffer_add(out, &of, sizeof of);
            base_buffer_add(out, entry->sums + k * n, n * sizeof *entry->sums);
            for (size_t j = 0; j < imat_n_told_apart(c, i); j++)
                base_buffer_add(out, &entry->use[j * entry->n_matrices + k], sizeof *entry->use);
        }
    }
    return base_buffer_check(out, "sums", why);
}

void imat_collector_clear(struct imat_collector *c)
{
    for (size_t i = 0; i < c->n; i++) {
        struct imat_entry *entry = &c->entries[i];
        free(entry->sums);
        free(entry->use);
        entry->sums = NULL;
        entry->use = NULL;
        memset(entry->counts, 0, (size_t)entry->n_matrices * sizeof *entry->counts);
    }
}

enum status imat_packed_next(const struct imat_collector *c, struct base_string bytes, size_t *at,
                             struct imat_packed *of, struct status_why *why)
{
    size_t left = bytes.n_bytes - *at;
    bool fits = left >= sizeof *of;
    if (fits)
        memcpy(of, bytes.data + *at, sizeof *of);
    fits = fits && of->entry < c->n && of->matrix < c->entries[of->entry].n_matrices &&
           imat_packed_bytes(c, of->entry) <= left - sizeof *of;
    *at += sizeof *of;
    return fits ? STATUS_OK
                : status_fail(why, STATUS_FORMAT,
                              "byte %zu of the sums is of no matrix of %s, expected sums of this "
                              "model",
                              *at - sizeof *of, gguf_path(c->file));
}

/** What follows a head, copied to where numbers may lie. */
struct unpacked {
    struct imat_sum *sums;
    uint64_t *use;
    size_t capacity, use_capacity;
};

static enum status unpack_matrix(struct imat_collector *c, const struct imat_packed *of,
                                 const char *bytes, struct unpacked *u, struct status_why *why)
{
    struct imat_entry *entry = &c->entries[of->entry];
    size_t n = (size_t)entry->n_columns, n_use = imat_n_told_apart(c, of->entry);
    enum status status = base_array_reserve(u->sums, u->capacity, n, "sums", why);
    if (!status)
        status = base_array_reserve(u->use, u->use_capacity, n_use, "rows", why);
    if (status)
        return status;
    assert(u->sums); /* a matrix has columns */
    memcpy(u->sums, bytes, n * sizeof *u->sums);
    status = add_matrix(c, of, u->sums, why);
    if (status || !n_use)
        return status;
    memcpy(u->use, bytes + n * sizeof *u->sums, n_use * sizeof *u->use);
    return add_use(entry, of->matrix, n_use, u->use, 1, why);
}

enum status imat_collector_unpack(struct imat_collector *c, struct base_string bytes,
                                  struct status_why *why)
{
    enum status status = STATUS_OK;
    struct unpacked unpacked = {0};
    pthread_mutex_lock(&c->lock);
    for (size_t at = 0; at < bytes.n_bytes && !status;) {
        struct imat_packed of;
        status = imat_packed_next(c, bytes, &at, &of, why);
        if (status)
            break;
        status = unpack_matrix(c, &of, bytes.data + at, &unpacked, why);
        at += imat_packed_bytes(c, of.entry);
    }
    pthread_mutex_unlock(&c->lock);
    free(unpacked.sums);
    free(unpacked.use);
    return status;
}

double imat_collector_bytes(const struct imat_collector *c, size_t n_packed)
{
    double n = 0;
    for (uint32_t i = 0; i < c->n; i++)
        n += (double)imat_packed_bytes(c, i) * (double)c->entries[i].n_matrices;
    return n * (double)(1 + c->n_hooks + n_packed);
}

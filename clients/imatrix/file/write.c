#include "clients/imatrix/file/write.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "clients/imatrix/sum.h"
#include "gguf/gguf.h"

enum { F32 = 0, I64 = 27, VERSION = 1 };

/** What a tensor of the file has of an entry. */
struct content {
    const struct imat_entry *entry;
    const char *suffix;
    uint64_t ne[2]; /* of IMAT_HIGH: how many there are is ne[1] */
};

struct writing {
    const struct imat_matrix *m;
    struct gguf_layout *layout;
    struct content *contents; /* as the layout has its tensors */
    size_t n, capacity;
};

static bool fits(imat_signed remainder)
{
    return remainder == (int64_t)remainder;
}

static uint64_t n_values(const struct imat_entry *e)
{
    return e->n_matrices * e->n_columns;
}

static uint64_t count_high(const struct imat_entry *e)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < n_values(e); i++)
        n += !fits(imat_sum_remainder(e->sums[i]));
    return n;
}

/* Whether a float cannot hold a count. */
static bool needs_rows(const struct imat_entry *e)
{
    for (uint64_t i = 0; i < e->n_matrices; i++)
        if ((uint64_t)(float)e->counts[i] != e->counts[i])
            return true;
    return false;
}

static enum status add_tensor(struct writing *w, const struct content *c, struct status_why *why)
{
    char *name;
    enum status status = base_array_reserve(w->contents, w->capacity, w->n + 1, "tensors", why);
    if (status)
        return status;
    if (asprintf(&name, "%s%s", c->entry->name, c->suffix) < 0)
        return status_fail(why, STATUS_MEMORY, "no memory for the name of a tensor");
    bool is_float = strcmp(c->suffix, IMAT_SUMS) == 0 || strcmp(c->suffix, IMAT_COUNTS) == 0;
    gguf_layout_tensor(w->layout, name, is_float ? F32 : I64, c->ne, c->ne[1] > 1 ? 2 : 1);
    free(name);
    w->contents[w->n++] = *c;
    return STATUS_OK;
}

/* First what llama-imatrix writes, then what only exact sums have. */
static enum status add_tensors(struct writing *w, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < w->m->n && !status; i++) {
        const struct imat_entry *e = &w->m->entries[i];
        status = add_tensor(w, &(struct content){e, IMAT_SUMS, {e->n_columns, e->n_matrices}}, why);
        if (!status)
            status = add_tensor(w, &(struct content){e, IMAT_COUNTS, {1, e->n_matrices}}, why);
    }
    for (size_t i = 0; i < w->m->n && w->m->exact && !status; i++) {
        const struct imat_entry *e = &w->m->entries[i];
        uint64_t n_high = count_high(e);
        status = add_tensor(w, &(struct content){e, IMAT_LOW, {e->n_columns, e->n_matrices}}, why);
        if (!status && n_high)
            status = add_tensor(w, &(struct content){e, IMAT_HIGH, {2, n_high}}, why);
        if (!status && needs_rows(e))
            status = add_tensor(w, &(struct content){e, IMAT_ROWS, {e->n_matrices, 1}}, why);
        if (!status && e->use)
            status = add_tensor(
                w, &(struct content){e, IMAT_USE, {e->n_matrices, w->m->n_categories}}, why);
    }
    return status;
}

static enum status add_strings(struct gguf_layout *l, const char *key, char *const *texts, size_t n,
                               struct status_why *why)
{
    struct base_string *strings;
    if (base_array_new(strings, n, "datasets", why))
        return STATUS_MEMORY;
    for (size_t i = 0; i < n; i++)
        strings[i] = (struct base_string){texts[i], strlen(texts[i])};
    gguf_layout_strings(l, key, strings, n);
    free(strings);
    return STATUS_OK;
}

static enum status add_ranges(struct gguf_layout *l, const struct imat_matrix *m,
                              struct status_why *why)
{
    static const char key[] = "assay.imatrix.windows";
    uint64_t *numbers;
    if (base_array_new(numbers, 3 * m->n_ranges, "ranges", why))
        return STATUS_MEMORY;
    for (size_t i = 0; i < m->n_ranges; i++) {
        numbers[3 * i] = m->ranges[i].text;
        numbers[3 * i + 1] = m->ranges[i].begin;
        numbers[3 * i + 2] = m->ranges[i].end;
    }
    gguf_layout_pair(l, &(struct gguf_kv){{key, strlen(key)},
                                          GGUF_VALUE_ARRAY,
                                          GGUF_VALUE_U64,
                                          3 * m->n_ranges,
                                          (const uint8_t *)numbers});
    free(numbers);
    return STATUS_OK;
}

static enum status add_keys(struct gguf_layout *l, const struct imat_matrix *m,
                            struct status_why *why)
{
    static const char lost[] = "assay.imatrix.counts_lost";
    gguf_layout_string(l, "general.type", "imatrix");
    enum status status = add_strings(l, "imatrix.datasets", m->datasets, m->n_datasets, why);
    gguf_layout_u32(l, "imatrix.chunk_count", (uint32_t)m->n_chunks);
    gguf_layout_u32(l, "imatrix.chunk_size", (uint32_t)m->chunk_size);
    if (m->exact || m->counts_lost)
        gguf_layout_u32(l, "assay.imatrix.version", VERSION);
    if (m->counts_lost)
        gguf_layout_pair(
            l,
            &(struct gguf_kv){
                {lost, strlen(lost)}, GGUF_VALUE_BOOL, GGUF_VALUE_BOOL, 1, (const uint8_t[]){1}});
    if (m->exact && m->model)
        gguf_layout_string(l, "assay.imatrix.model", m->model);
    if (!status && m->exact && m->texts)
        status = add_strings(l, "assay.imatrix.texts", m->texts, m->n_datasets, why);
    if (!status && m->exact && m->hashes)
        status = add_strings(l, IMAT_HASHES, m->hashes, m->n_datasets, why);
    if (!status && m->exact && m->texts && m->n_ranges)
        status = add_ranges(l, m, why);
    if (!status && m->exact && m->n_categories)
        status = add_strings(l, IMAT_CATEGORIES, m->categories, m->n_categories, why);
    return status;
}

static void put_high(struct base_file *file, const struct imat_entry *e)
{
    for (uint64_t i = 0; i < n_values(e); i++) {
        imat_signed remainder = imat_sum_remainder(e->sums[i]);
        if (!fits(remainder))
            base_file_write(file, (const int64_t[]){(int64_t)i, (int64_t)(remainder >> 64)},
                            2 * sizeof(int64_t));
    }
}

static void put_tensor(struct base_file *file, const struct content *c)
{
    const struct imat_entry *e = c->entry;
    bool low = strcmp(c->suffix, IMAT_LOW) == 0;
    if (strcmp(c->suffix, IMAT_HIGH) == 0)
        put_high(file, e);
    else if (strcmp(c->suffix, IMAT_ROWS) == 0)
        base_file_write(file, e->counts, (size_t)e->n_matrices * sizeof *e->counts);
    else if (strcmp(c->suffix, IMAT_USE) == 0)
        base_file_write(file, e->use, (size_t)(c->ne[0] * c->ne[1]) * sizeof *e->use);
    else if (strcmp(c->suffix, IMAT_COUNTS) == 0)
        for (uint64_t i = 0; i < e->n_matrices; i++)
            base_file_write(file, (const float[]){(float)e->counts[i]}, sizeof(float));
    else if (low)
        for (uint64_t i = 0; i < n_values(e); i++)
            base_file_write(file, (const uint64_t[]){(uint64_t)imat_sum_remainder(e->sums[i])},
                            sizeof(uint64_t));
    else if (!e->sums)
        base_file_write(file, e->rounded, (size_t)n_values(e) * sizeof *e->rounded);
    else
        for (uint64_t i = 0; i < n_values(e); i++)
            base_file_write(file, (const float[]){imat_sum_float(e->sums[i])}, sizeof(float));
}

static void put_zeros(struct base_file *file, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        base_file_write(file, "", 1);
}

static enum status write_all(struct writing *w, struct base_file *file, struct status_why *why)
{
    struct gguf_directory directory;
    enum status status = add_keys(w->layout, w->m, why);
    if (!status)
        status = add_tensors(w, why);
    if (!status)
        status = gguf_layout_finish(w->layout, &directory, why);
    if (status)
        return status;
    uint64_t at = directory.n_bytes;
    base_file_write(file, directory.bytes, (size_t)at);
    for (size_t i = 0; i < w->n; i++) {
        const struct gguf_tensor *t = gguf_layout_tensor_at(w->layout, i);
        put_zeros(file, t->offset - at);
        put_tensor(file, &w->contents[i]);
        at = t->offset + t->n_bytes;
    }
    put_zeros(file, directory.n_bytes_whole - at);
    return STATUS_OK;
}

enum status imat_write_gguf(const struct imat_matrix *m, struct base_file *file,
                            struct status_why *why)
{
    struct writing w = {.m = m};
    if (!m->n)
        return status_fail(why, STATUS_UNSUPPORTED, "an importance matrix without any entry");
    if (m->chunk_size > UINT32_MAX || m->n_chunks > UINT32_MAX)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%" PRIu64 " chunks of %" PRIu64
                           " tokens, expected numbers below 2^32, as GGUF has 32 bits for them",
                           m->n_chunks, m->chunk_size);
    enum status status = gguf_layout_new(&w.layout, why);
    if (!status)
        status = write_all(&w, file, why);
    gguf_layout_free(w.layout);
    free(w.contents);
    return status;
}

uint64_t imat_most_rows(const struct imat_matrix *m)
{
    uint64_t most = 0;
    for (size_t i = 0; i < m->n; i++)
        for (uint64_t k = 0; k < m->entries[i].n_matrices; k++)
            most = base_max(most, m->entries[i].counts[k]);
    return most;
}

static bool has_rows(const struct imat_entry *e)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < e->n_matrices; i++)
        n |= e->counts[i];
    return n != 0;
}

static void put_i32(struct base_file *file, uint64_t value)
{
    base_file_write(file, (const int32_t[]){(int32_t)value}, sizeof(int32_t));
}

static void put_text(struct base_file *file, const char *text)
{
    put_i32(file, strlen(text));
    base_file_write(file, text, strlen(text));
}

static enum status put_means(struct base_file *file, const struct imat_entry *e, uint64_t n_calls,
                             struct status_why *why)
{
    for (uint64_t k = 0; k < e->n_matrices; k++)
        for (uint64_t j = k * e->n_columns; j < (k + 1) * e->n_columns; j++) {
            double sum = e->sums ? imat_sum_double(e->sums[j]) : (double)e->rounded[j],
                   mean = e->counts[k] ? sum / (double)e->counts[k] : 1;
            float value = (float)(mean * (double)n_calls);
            base_file_write(file, &value, sizeof value);
            if (isinf(value))
                return status_fail(why, STATUS_UNSUPPORTED,
                                   "matrix '%s': a mean times %" PRIu64
                                   " chunks is %g, expected one that a float can hold",
                                   e->name, n_calls, mean * (double)n_calls);
        }
    return STATUS_OK;
}

enum status imat_write_dat(const struct imat_matrix *m, struct base_file *file,
                           struct status_why *why)
{
    uint64_t most = imat_most_rows(m), n_entries = 0, widest = 0;
    for (size_t i = 0; i < m->n; i++) {
        n_entries += has_rows(&m->entries[i]);
        widest = base_max(widest, n_values(&m->entries[i]));
    }
    if (!most || !m->chunk_size)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%" PRIu64 " rows at most, and chunks of %" PRIu64
                           " tokens: the older format needs 1 or more of either",
                           most, m->chunk_size);
    uint64_t n_calls = base_div_up(most, m->chunk_size);
    if (n_calls > INT32_MAX || m->n_chunks > INT32_MAX || widest > INT32_MAX)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%" PRIu64 " chunks, and up to %" PRIu64 " values of a matrix, expected "
                           "numbers below 2^31, as the older format has 31 bits for them",
                           base_max(n_calls, m->n_chunks), widest);
    put_i32(file, n_entries);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < m->n && !status; i++) {
        const struct imat_entry *e = &m->entries[i];
        if (!has_rows(e))
            continue;
        put_text(file, e->name);
        put_i32(file, n_calls);
        put_i32(file, n_values(e));
        status = put_means(file, e, n_calls, why);
    }
    put_i32(file, m->n_chunks);
    put_text(file, m->n_datasets ? m->datasets[m->n_datasets - 1] : "");
    return status;
}

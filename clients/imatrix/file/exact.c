#include "clients/imatrix/file/exact.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "clients/imatrix/file/write.h"
#include "clients/imatrix/statistics.h"
#include "clients/imatrix/sum.h"

enum { I64 = 27, VERSION = 1 };

static int64_t number_at(const struct gguf_tensor *t, uint64_t i)
{
    int64_t value;
    memcpy(&value, (const uint8_t *)t->data + i * sizeof value, sizeof value);
    return value;
}

/* A tensor of an entry that may be absent: then *out is NULL. n: how many numbers; 0: pairs. */
static enum status find(const struct gguf_tensor **out, const struct gguf_file *file,
                        const struct imat_entry *e, const char *suffix, uint64_t n,
                        struct status_why *why)
{
    char *name;
    if (asprintf(&name, "%s%s", e->name, suffix) < 0)
        return status_fail(why, STATUS_MEMORY, "no memory for the name of a tensor");
    const struct gguf_tensor *t = *out = gguf_tensor_find(file, name);
    free(name);
    if (t && t->type_id != I64)
        return status_fail(why, STATUS_FORMAT, "tensor '%s' has type %s, expected I64", t->name,
                           t->type->name);
    if (t && n && t->n_rows * t->ne[0] != n)
        return status_fail(why, STATUS_FORMAT,
                           "tensor '%s' has %" PRIu64 " numbers, expected %" PRIu64, t->name,
                           t->n_rows * t->ne[0], n);
    if (t && !n && t->ne[0] != 2)
        return status_fail(why, STATUS_FORMAT,
                           "tensor '%s' has rows of %" PRIu64 " numbers, expected 2", t->name,
                           t->ne[0]);
    return STATUS_OK;
}

/** The further bits of remainders, passed in order. */
struct high {
    const struct gguf_tensor *tensor; /* NULL: none */
    uint64_t at;                      /* the next pair */
};

/* The remainder of value i. */
static imat_signed remainder_at(struct high *high, const struct gguf_tensor *low, uint64_t i)
{
    int64_t bits = number_at(low, i);
    const struct gguf_tensor *t = high->tensor;
    if (!t || high->at == t->n_rows || (uint64_t)number_at(t, 2 * high->at) != i)
        return bits;
    uint64_t more = (uint64_t)number_at(t, 2 * high->at++ + 1);
    return (imat_signed)((imat_wide)more << 64 | (uint64_t)bits);
}

static enum status read_exact_sums(struct imat_entry *e, const struct gguf_tensor *low,
                                   struct high *high, struct status_why *why)
{
    for (uint64_t i = 0; i < e->n_matrices * e->n_columns; i++) {
        bool fits = e->rounded[i] <= 0x1p63F;
        imat_wide near = fits ? (imat_wide)((double)e->rounded[i] * 0x1p64) : 0;
        e->sums[i] = imat_sum_of(near + (imat_wide)remainder_at(high, low, i));
        if (!fits || e->sums[i].whole >> 63 || imat_sum_float(e->sums[i]) != e->rounded[i])
            return status_fail(why, STATUS_FORMAT,
                               "tensor '%s': number %" PRIu64 " does not belong to the sum %g in "
                               "'%s%s'; one of them was changed",
                               low->name, i, (double)e->rounded[i], e->name, IMAT_SUMS);
        if (!e->counts[i / e->n_columns] && imat_sum_quanta(e->sums[i]))
            return status_fail(why, STATUS_FORMAT,
                               "tensor '%s': number %" PRIu64 ", expected 0, as its count is 0",
                               low->name, i);
    }
    if (high->tensor && high->at != high->tensor->n_rows)
        return status_fail(why, STATUS_FORMAT,
                           "tensor '%s': row %" PRIu64 " has index %" PRId64
                           ", expected indices of '%s' in ascending order",
                           high->tensor->name, high->at, number_at(high->tensor, 2 * high->at),
                           low->name);
    return STATUS_OK;
}

static enum status read_rows(struct imat_entry *e, const struct gguf_tensor *rows,
                             struct status_why *why)
{
    for (uint64_t i = 0; i < e->n_matrices; i++) {
        int64_t n = number_at(rows, i);
        if (n < 0 || n >> 62 || (float)n != (float)e->counts[i])
            return status_fail(why, STATUS_FORMAT,
                               "tensor '%s': number %" PRIu64 " is %" PRId64
                               ", expected one that rounds to the count %" PRIu64 " in '%s%s'",
                               rows->name, i, n, e->counts[i], e->name, IMAT_COUNTS);
        e->counts[i] = (uint64_t)n;
    }
    return STATUS_OK;
}

/** Rows of an entry's matrices by category add up to their counts. */
static enum status read_use(struct imat_entry *e, const struct gguf_file *file,
                            const struct imat_matrix *m, struct status_why *why)
{
    const struct gguf_tensor *t;
    uint64_t n = e->n_matrices * m->n_categories;
    enum status status = find(&t, file, e, IMAT_USE, n, why);
    if (!status && !t)
        status = status_fail(why, STATUS_FORMAT,
                             "has no tensor '%s%s', expected one for experts, as key '%s' is there",
                             e->name, IMAT_USE, IMAT_CATEGORIES);
    if (!status)
        status = base_array_new(e->use, (size_t)n, "rows", why);
    if (status)
        return status;
    for (uint64_t k = 0; k < e->n_matrices; k++) {
        uint64_t left = e->counts[k];
        for (uint64_t i = k; i < n && left != UINT64_MAX; i += e->n_matrices) {
            uint64_t rows = e->use[i] = (uint64_t)number_at(t, i);
            left = rows <= left ? left - rows : UINT64_MAX;
        }
        if (left)
            return status_fail(why, STATUS_FORMAT,
                               "tensor '%s': the rows of matrix %" PRIu64
                               " by category do not add up to its count, %" PRIu64,
                               t->name, k, e->counts[k]);
    }
    return STATUS_OK;
}

static enum status read_entry(struct imat_entry *e, const struct gguf_file *file,
                              const struct imat_matrix *m, struct status_why *why)
{
    const struct gguf_tensor *low, *rows;
    struct high high = {0};
    size_t n = (size_t)(e->n_matrices * e->n_columns);
    enum status status = find(&low, file, e, IMAT_LOW, n, why);
    if (!status && !low)
        status = status_fail(why, STATUS_FORMAT,
                             "has no tensor '%s%s', expected one for each "
                             "matrix, as key 'assay.imatrix.version' is there",
                             e->name, IMAT_LOW);
    if (!status)
        status = find(&high.tensor, file, e, IMAT_HIGH, 0, why);
    if (!status)
        status = find(&rows, file, e, IMAT_ROWS, e->n_matrices, why);
    if (!status && rows)
        status = read_rows(e, rows, why);
    if (!status)
        status = base_array_new(e->sums, n, "sums", why);
    if (!status)
        status = read_exact_sums(e, low, &high, why);
    bool categorised = m->n_categories && imat_is_experts(e);
    return status || !categorised ? status : read_use(e, file, m, why);
}

/** Two of the same name could not be told apart when files are added up. */
static enum status read_categories(struct imat_matrix *m, const struct gguf_file *file,
                                   struct status_why *why)
{
    enum status status =
        imat_read_strings(&m->categories, &m->n_categories, file, IMAT_CATEGORIES, why);
    if (!status && m->n_categories > IMAT_MOST_NAMES)
        return status_fail(why, STATUS_UNSUPPORTED, "key '%s' has %zu strings, expected at most %d",
                           IMAT_CATEGORIES, m->n_categories, IMAT_MOST_NAMES);
    for (size_t i = 0; i < m->n_categories && !status; i++)
        for (size_t k = 0; k < i && !status; k++)
            if (strcmp(m->categories[i], m->categories[k]) == 0)
                status = status_fail(why, STATUS_FORMAT,
                                     "key '%s' has string %zu twice, expected names that differ",
                                     IMAT_CATEGORIES, i);
    return status;
}

enum status imat_check_ranges(const struct imat_range *ranges, size_t n_ranges, size_t n_texts,
                              struct status_why *why)
{
    for (size_t i = 0; i < n_ranges; i++) {
        const struct imat_range *r = &ranges[i], *before = i ? &ranges[i - 1] : NULL;
        bool after = !before || before->text < r->text ||
                     (before->text == r->text && before->end < r->begin);
        if (r->text >= n_texts || r->begin >= r->end || !after)
            return status_fail(why, STATUS_FORMAT,
                               "range %zu of windows is %" PRIu64 " to %" PRIu64
                               " of text %zu, expected ascending ranges apart from each other, of "
                               "%zu text%s",
                               i, r->begin, r->end, r->text, n_texts, status_plural(n_texts));
    }
    return STATUS_OK;
}

static enum status read_ranges(struct imat_matrix *m, const struct gguf_file *file,
                               struct status_why *why)
{
    const struct gguf_kv *kv = gguf_kv_find(file, "assay.imatrix.windows");
    if (!kv || !m->texts)
        return STATUS_OK;
    if (kv->type != GGUF_VALUE_ARRAY || kv->element_type != GGUF_VALUE_U64 || kv->count % 3)
        return status_fail(why, STATUS_FORMAT,
                           "key 'assay.imatrix.windows' has %" PRIu64
                           " numbers of type %s, expected a multiple of 3 of type u64",
                           kv->count, gguf_value_type_name(kv->element_type));
    size_t n = (size_t)kv->count / 3;
    if (base_array_new(m->ranges, n, "ranges", why))
        return STATUS_MEMORY;
    for (size_t i = 0; i < n; i++)
        m->ranges[i] = (struct imat_range){(size_t)gguf_load_u64(kv->data + 24 * i),
                                           gguf_load_u64(kv->data + 24 * i + 8),
                                           gguf_load_u64(kv->data + 24 * i + 16)};
    m->n_ranges = n;
    return imat_check_ranges(m->ranges, n, m->n_datasets, why);
}

/** A key that has a string for each dataset; where it is absent, *out stays NULL. */
static enum status read_of_datasets(char ***out, const struct imat_matrix *m,
                                    const struct gguf_file *file, const char *key,
                                    struct status_why *why)
{
    size_t n = 0;
    char **texts = NULL;
    enum status status = imat_read_strings(&texts, &n, file, key, why);
    if (!status && texts && n != m->n_datasets)
        status = status_fail(why, STATUS_FORMAT,
                             "key '%s' has %zu strings, expected %zu, as 'imatrix.datasets' has",
                             key, n, m->n_datasets);
    if (!status)
        *out = texts;
    for (size_t i = 0; status && i < n; i++)
        free(texts[i]);
    if (status)
        free(texts);
    return status;
}

static enum status read_identity(struct imat_matrix *m, const struct gguf_file *file,
                                 struct status_why *why)
{
    const struct gguf_kv *model = gguf_kv_find(file, "assay.imatrix.model");
    if (model && model->type == GGUF_VALUE_STRING) {
        struct base_string id = gguf_kv_string(model, 0);
        m->model = strndup(id.data, id.n_bytes);
        if (!m->model)
            return status_fail(why, STATUS_MEMORY, "no memory for the id of a model");
    }
    enum status status = read_of_datasets(&m->texts, m, file, "assay.imatrix.texts", why);
    if (!status)
        status = read_of_datasets(&m->hashes, m, file, IMAT_HASHES, why);
    return status ? status : read_ranges(m, file, why);
}

enum status imat_read_exact(struct imat_matrix *m, const struct gguf_file *file,
                            struct status_why *why)
{
    static const char lost[] = "assay.imatrix.counts_lost";
    bool found;
    uint32_t version = 0;
    struct status_why own = {""};
    if (gguf_get_u32(file, "assay.imatrix.version", &version, &found, &own) || version != VERSION)
        return STATUS_OK; /* of another program, or of a later one: the floats are there */
    if (gguf_kv_find(file, lost)) {
        m->counts_lost = true;
        return STATUS_OK;
    }
    enum status status = read_categories(m, file, why);
    for (size_t i = 0; i < m->n && !status; i++)
        status = read_entry(&m->entries[i], file, m, why);
    for (size_t i = 0; i < m->n && !status; i++) {
        free(m->entries[i].rounded);
        m->entries[i].rounded = NULL;
    }
    m->exact = !status;
    return status ? status : read_identity(m, file, why);
}

enum status imat_read_strings(char ***out, size_t *n, const struct gguf_file *file, const char *key,
                              struct status_why *why)
{
    const struct gguf_kv *kv = gguf_kv_find(file, key);
    struct base_string *strings = NULL;
    if (!kv)
        return STATUS_OK;
    bool is_list = kv->type == GGUF_VALUE_ARRAY;
    if (kv->type != GGUF_VALUE_STRING && (!is_list || kv->element_type != GGUF_VALUE_STRING))
        return status_fail(why, STATUS_FORMAT,
                           "key '%s' has type %s%s%s, expected array of string, or a string", key,
                           gguf_value_type_name(kv->type), is_list ? " of " : "",
                           is_list ? gguf_value_type_name(kv->element_type) : "");
    size_t n_strings = is_list ? (size_t)kv->count : 1;
    enum status status =
        is_list ? gguf_kv_strings(kv, &strings, why) : base_array_new(strings, 1, "strings", why);
    if (!status && !is_list)
        status = gguf_get_string(file, key, &strings[0], NULL, why);
    if (!status)
        status = base_array_new(*out, n_strings, "strings", why);
    *n = status ? 0 : n_strings;
    for (size_t i = 0; i < *n && !status; i++) {
        (*out)[i] = strndup(strings[i].data, strings[i].n_bytes);
        if (!(*out)[i])
            status = status_fail(why, STATUS_MEMORY, "no memory for a name");
    }
    free(strings);
    return status;
}

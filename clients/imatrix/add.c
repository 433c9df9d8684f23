#include "clients/imatrix/add.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "clients/imatrix/file/write.h"
#include "clients/imatrix/statistics.h"
#include "clients/imatrix/sum.h"

/** Entries of one name: some parts have it. */
struct adding {
    const struct imat_part *parts;
    size_t n;
    size_t *at;         /* [n]: the next entry of each part */
    uint64_t scale;     /* of counts and sums of the older format */
    size_t *categories; /* numbers in the sum: those of each part, one part after the other */
    size_t n_missed;    /* names that a part does not have */
};

/* The next entry of a part; NULL at its end. */
static const struct imat_entry *next_of(const struct adding *a, size_t i)
{
    const struct imat_matrix *m = &a->parts[i].matrix;
    return a->at[i] < m->n ? &m->entries[a->at[i]] : NULL;
}

/* The least name that is next in a part; NULL: all are done. */
static const char *least_name(const struct adding *a)
{
    const char *least = NULL;
    for (size_t i = 0; i < a->n; i++) {
        const struct imat_entry *e = next_of(a, i);
        if (e && (!least || strcmp(e->name, least) < 0))
            least = e->name;
    }
    return least;
}

/* Whether counts are of chunks, as the older format has them. What was added to counts of rows has
 * become one. */
static bool in_chunks(const struct imat_matrix *m)
{
    return m->counts_lost && m->chunk_size == 1;
}

static bool has_name(const struct imat_entry *e, const char *name)
{
    return e && strcmp(e->name, name) == 0;
}

static uint64_t n_values(const struct imat_entry *e)
{
    return e->n_matrices * e->n_columns;
}

/* Whether it may be all matrices of a stack in one row, as the older format has them. */
static bool is_flat(const struct imat_matrix *m, const struct imat_entry *e)
{
    return m->counts_lost && e->n_matrices == 1;
}

/* The shape of the sum: that of a part which knows how many matrices there are. */
static enum status begin_entry(const struct adding *a, const char *name, struct imat_entry *out,
                               struct status_why *why)
{
    const struct imat_entry *shape = NULL;
    size_t from = 0;
    for (size_t i = 0; i < a->n; i++) {
        const struct imat_entry *e = next_of(a, i);
        if (!has_name(e, name))
            continue;
        if (!shape ||
            (!is_flat(&a->parts[i].matrix, e) && is_flat(&a->parts[from].matrix, shape))) {
            shape = e;
            from = i;
        }
    }
    for (size_t i = 0; i < a->n; i++) {
        const struct imat_entry *e = next_of(a, i);
        if (has_name(e, name) &&
            (n_values(e) != n_values(shape) ||
             (!is_flat(&a->parts[i].matrix, e) && e->n_columns != shape->n_columns)))
            return status_fail(why, STATUS_FORMAT,
                               "%s: matrix '%s' has %" PRIu64 " columns times %" PRIu64
                               ", in %s it has %" PRIu64 " times %" PRIu64
                               "; files of one model can be added",
                               a->parts[i].path, name, e->n_columns, e->n_matrices,
                               a->parts[from].path, shape->n_columns, shape->n_matrices);
    }
    out->n_columns = shape->n_columns;
    out->n_matrices = shape->n_matrices;
    out->name = strdup(name);
    if (!out->name)
        return status_fail(why, STATUS_MEMORY, "no memory for the name of a matrix");
    return base_array_new(out->counts, (size_t)out->n_matrices, "counts", why);
}

/** The number of a category's name in the sum, which has it from now on. */
static enum status add_category(struct imat_matrix *sum, const char *name, size_t *number,
                                struct status_why *why)
{
    for (*number = 0; *number < sum->n_categories; ++*number)
        if (strcmp(sum->categories[*number], name) == 0)
            return STATUS_OK;
    if (sum->n_categories == IMAT_MOST_NAMES)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "the files have more than %d categories of documents together",
                           IMAT_MOST_NAMES);
    sum->categories[sum->n_categories] = strdup(name);
    return sum->categories[sum->n_categories++]
               ? STATUS_OK
               : status_fail(why, STATUS_MEMORY, "no memory for the name of a category");
}

/** Those of a part: without any, its rows are of the nameless one. */
static size_t n_categories_of(const struct imat_matrix *m)
{
    return base_max(m->n_categories, 1);
}

/** The categories of all parts, if any has some. */
static enum status add_categories(struct adding *a, struct imat_matrix *sum, struct status_why *why)
{
    size_t n = 0, n_named = 0;
    for (size_t i = 0; i < a->n; i++) {
        n += n_categories_of(&a->parts[i].matrix);
        n_named += a->parts[i].matrix.n_categories;
    }
    if (!n_named || !sum->exact)
        return STATUS_OK;
    enum status status = base_array_new(sum->categories, n, "categories", why);
    if (!status)
        status = base_array_new(a->categories, n, "categories", why);
    size_t *number = a->categories;
    for (size_t i = 0; i < a->n && !status; i++) {
        const struct imat_matrix *m = &a->parts[i].matrix;
        for (size_t k = 0; k < n_categories_of(m) && !status; k++)
            status = add_category(sum, m->n_categories ? m->categories[k] : "", number++, why);
    }
    return status;
}

/** Counts fit, so these do. */
static enum status add_use(const struct adding *a, const char *name, const struct imat_matrix *sum,
                           struct imat_entry *out, struct status_why *why)
{
    size_t n = (size_t)out->n_matrices;
    if (!sum->n_categories || !imat_is_experts(out))
        return STATUS_OK;
    enum status status = base_array_new(out->use, n * sum->n_categories, "rows", why);
    const size_t *number = a->categories;
    for (size_t i = 0; i < a->n && !status; i++) {
        const struct imat_entry *e = next_of(a, i);
        for (size_t c = 0; c < n_categories_of(&a->parts[i].matrix); c++, number++) {
            const uint64_t *rows = !has_name(e, name) ? NULL : e->use ? e->use + n * c : e->counts;
            for (size_t k = 0; rows && k < n; k++)
                out->use[n * *number + k] += rows[k];
        }
    }
    return status;
}

static enum status too_large(const struct imat_part *part, const char *name, struct status_why *why)
{
    return status_fail(why, STATUS_UNSUPPORTED,
                       "%s: matrix '%s': the sum has a number of 2^63 or more, expected less",
                       part->path, name);
}

static enum status add_counts(const struct adding *a, size_t i, struct imat_entry *out,
                              struct status_why *why)
{
    const struct imat_entry *e = next_of(a, i);
    uint64_t scale = in_chunks(&a->parts[i].matrix) ? a->scale : 1, more;
    for (uint64_t k = 0; k < out->n_matrices; k++)
        if (__builtin_mul_overflow(e->counts[e->n_matrices == 1 ? 0 : k], scale, &more) ||
            __builtin_add_overflow(out->counts[k], more, &out->counts[k]) || out->counts[k] >> 62)
            return too_large(&a->parts[i], e->name, why);
    return STATUS_OK;
}

static enum status add_exact(const struct adding *a, const char *name, struct imat_entry *out,
                             struct status_why *why)
{
    uint64_t n = n_values(out);
    enum status status = base_array_new(out->sums, (size_t)n, "sums", why);
    for (size_t i = 0; i < a->n && !status; i++) {
        const struct imat_entry *e = next_of(a, i);
        if (!has_name(e, name))
            continue;
        for (uint64_t j = 0; j < n; j++) { /* each is below 2^127 */
            out->sums[j] = imat_sum_of(imat_sum_quanta(out->sums[j]) + imat_sum_quanta(e->sums[j]));
            if (out->sums[j].whole >> 63)
                return too_large(&a->parts[i], name, why);
        }
    }
    return status;
}

static enum status add_rounded(const struct adding *a, const char *name, struct imat_entry *out,
                               struct status_why *why)
{
    uint64_t n = n_values(out);
    double *sums = NULL;
    enum status status = base_array_new(sums, (size_t)n, "sums", why);
    if (!status)
        status = base_array_new(out->rounded, (size_t)n, "sums", why);
    for (size_t i = 0; i < a->n && !status; i++) {
        const struct imat_entry *e = next_of(a, i);
        double scale = in_chunks(&a->parts[i].matrix) ? (double)a->scale : 1;
        for (uint64_t j = 0; has_name(e, name) && j < n; j++)
            sums[j] += scale * (e->sums ? imat_sum_double(e->sums[j]) : (double)e->rounded[j]);
    }
    for (uint64_t j = 0; j < n && !status; j++) {
        out->rounded[j] = (float)sums[j];
        if (isinf(out->rounded[j]))
            status = status_fail(why, STATUS_UNSUPPORTED,
                                 "matrix '%s': a sum is %g, expected one that a float can hold",
                                 name, sums[j]);
    }
    free(sums);
    return status;
}

static enum status add_entry(struct adding *a, const char *name, struct imat_matrix *out,
                             struct status_why *why)
{
    struct imat_entry *e = &out->entries[out->n++];
    enum status status = begin_entry(a, name, e, why);
    for (size_t i = 0; i < a->n && !status; i++) {
        if (has_name(next_of(a, i), name))
            status = add_counts(a, i, e, why);
        else
            a->n_missed++;
    }
    if (!status)
        status = out->exact ? add_exact(a, name, e, why) : add_rounded(a, name, e, why);
    if (!status)
        status = add_use(a, name, out, e, why);
    if (status)
        return status;
    for (size_t i = 0; i < a->n; i++) /* `name` is one of the parts' */
        a->at[i] += has_name(next_of(a, i), e->name);
    return STATUS_OK;
}

static enum status add_entries(struct adding *a, struct imat_matrix *out, struct base_buffer *notes,
                               struct status_why *why)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++)
        n += a->parts[i].matrix.n;
    enum status status = base_array_new(out->entries, n, "matrices", why);
    for (const char *name = least_name(a); name && !status; name = least_name(a))
        status = add_entry(a, name, out, why);
    if (!status && a->n_missed)
        base_buffer_format(notes,
                           "matrices that are not in each file keep the counts of those that they "
                           "are in (%zu times one is missing); were all collected alike?\n",
                           a->n_missed);
    return status;
}

/* What holds for the whole: exact, chunk size, model. */
static enum status begin(struct adding *a, struct imat_matrix *out, struct base_buffer *notes,
                         struct status_why *why)
{
    const struct imat_matrix *first = NULL;
    size_t n_exact = 0, n_lost = 0, n_other_sizes = 0, n_other_models = 0;
    for (size_t i = 0; i < a->n; i++) {
        const struct imat_matrix *m = &a->parts[i].matrix;
        n_exact += m->exact;
        n_lost += m->counts_lost;
        if (!m->chunk_size)
            return status_fail(
                why, STATUS_FORMAT,
                "%s: has no key 'imatrix.chunk_size', expected one of 1 or more: the "
                "number of chunks of a sum follows from it",
                a->parts[i].path);
        first = first || in_chunks(m) ? first : m;
        n_other_sizes += !in_chunks(m) && m->chunk_size != first->chunk_size;
        n_other_models += m->exact && first && first->exact &&
                          (!m->model || !first->model || strcmp(m->model, first->model) != 0);
    }
    first = first ? first : &a->parts[0].matrix;
    out->exact = n_exact == a->n;
    out->counts_lost = n_lost > 0;
    out->chunk_size = a->scale = first->chunk_size;
    if (!out->exact && a->n > 1)
        base_buffer_format(notes,
                           "%zu of %zu files have sums as floats only, so these were added in "
                           "double precision and rounded once\n",
                           a->n - n_exact, a->n);
    if (n_lost)
        base_buffer_format(notes,
                           "%zu of %zu files are of the older format, which has no counts of rows: "
                           "all experts of a matrix weigh alike, by %s\n",
                           n_lost, a->n,
                           n_lost < a->n ? "its chunks times the chunk size of the others"
                                         : "its chunks");
    if (n_other_sizes)
        base_buffer_format(notes,
                           "%zu files have chunks of another size; sums and counts of rows add up, "
                           "and chunks are counted as of %" PRIu64 " tokens\n",
                           n_other_sizes, out->chunk_size);
    if (n_other_models)
        base_buffer_format(notes, "the files are not of one model with the same settings\n");
    if (!n_other_models && out->exact && first->model && !(out->model = strdup(first->model)))
        return status_fail(why, STATUS_MEMORY, "no memory for the id of a model");
    return STATUS_OK;
}

enum status imat_add(struct imat_matrix *out, const struct imat_part *parts, size_t n,
                     struct base_buffer *notes, struct status_why *why)
{
    struct adding a = {.parts = parts, .n = n};
    enum status status = base_array_new(a.at, n, "files", why);
    if (!status)
        status = begin(&a, out, notes, why);
    if (!status)
        status = imat_add_texts(out, parts, n, notes, why);
    if (!status)
        status = add_categories(&a, out, why);
    if (!status)
        status = add_entries(&a, out, notes, why);
    free(a.at);
    free(a.categories);
    if (status)
        return status;
    bool all_lost = true;
    uint64_t n_chunks = 0;
    for (size_t i = 0; i < n; i++) {
        all_lost &= in_chunks(&parts[i].matrix);
        n_chunks += parts[i].matrix.n_chunks;
    }
    out->n_chunks = all_lost ? n_chunks : imat_most_rows(out) / out->chunk_size;
    return base_buffer_check(notes, "notes", why);
}

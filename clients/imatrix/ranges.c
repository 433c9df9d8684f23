/* Which windows of which texts are in a sum of importance matrices. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/text/quote.h"
#include "clients/imatrix/add.h"
#include "clients/imatrix/file/exact.h"

/** A range, and the part that it is from. */
struct tagged {
    struct imat_range range;
    size_t part;
};

/* The first dataset with this id; there is one. */
static size_t find_text(const struct imat_matrix *m, const char *id)
{
    size_t i = 0;
    while (strcmp(m->texts[i], id) != 0)
        i++;
    return i;
}

static bool same(char *const *a, size_t i, char *const *b, size_t k)
{
    assert(!a || b); /* the whole has what all its parts have */
    return !a || strcmp(a[i], b[k]) == 0;
}

/* Whether one of the first n datasets has the name of this one, and the windows and text if
 * `with_text`. */
static bool is_among(const struct imat_matrix *out, size_t n, const struct imat_matrix *m, size_t k,
                     bool with_text)
{
    for (size_t i = 0; i < n; i++)
        if (same(out->datasets, i, m->datasets, k) &&
            (!with_text ||
             (same(out->texts, i, m->texts, k) && same(out->hashes, i, m->hashes, k))))
            return true;
    return false;
}

static enum status copy(char **out, const char *text, struct status_why *why)
{
    *out = strdup(text);
    return *out ? STATUS_OK : status_fail(why, STATUS_MEMORY, "no memory for a name");
}

/* A text that several parts of a run have stands there once. n: datasets of the parts before. */
static enum status add_dataset(struct imat_matrix *out, size_t n, const struct imat_part *part,
                               size_t i, struct base_buffer *notes, struct status_why *why)
{
    const struct imat_matrix *m = &part->matrix;
    assert((!out->texts || m->texts) && (!out->hashes || m->hashes));
    if (out->texts && is_among(out, n, m, i, true))
        return STATUS_OK;
    if (is_among(out, n, m, i, false)) {
        struct base_quoted name;
        struct base_string text = {m->datasets[i], strlen(m->datasets[i])};
        base_buffer_format(notes,
                           "%s: dataset %s is in a file before it, too%s, so rows may be in the "
                           "sums twice\n",
                           part->path, base_quote(&name, text),
                           out->texts ? ", with other windows" : "");
    }
    size_t k = out->n_datasets++;
    enum status status = copy(&out->datasets[k], m->datasets[i], why);
    if (!status && out->texts)
        status = copy(&out->texts[k], m->texts[i], why);
    return status || !out->hashes ? status : copy(&out->hashes[k], m->hashes[i], why);
}

static int in_order(const void *a, const void *b)
{
    const struct imat_range *x = &((const struct tagged *)a)->range,
                            *y = &((const struct tagged *)b)->range;
    if (x->text != y->text)
        return x->text < y->text ? -1 : 1;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Join those that touch; refuse those that overlap. */
static enum status join(struct imat_matrix *out, const struct imat_part *parts,
                        const struct tagged *all, size_t n, struct status_why *why)
{
    assert(out->ranges);
    for (size_t i = 0; i < n; i++) {
        const struct imat_range *r = &all[i].range;
        struct imat_range *last = out->n_ranges ? &out->ranges[out->n_ranges - 1] : NULL;
        bool same = last && last->text == r->text;
        if (same && r->begin < last->end) {
            uint64_t end = base_min(last->end, r->end);
            return status_fail(why, STATUS_USAGE,
                               "%s and %s: windows %" PRIu64 " to %" PRIu64
                               " of '%s' are in both, expected each window once",
                               parts[all[i - 1].part].path, parts[all[i].part].path, r->begin,
                               end - 1, out->datasets[r->text]);
        }
        if (same && r->begin == last->end)
            last->end = r->end;
        else
            out->ranges[out->n_ranges++] = *r;
    }
    return STATUS_OK;
}

static enum status add_ranges(struct imat_matrix *out, const struct imat_part *parts, size_t n,
                              size_t n_ranges, struct status_why *why)
{
    struct tagged *all = NULL;
    size_t at = 0;
    enum status status = base_array_new(all, n_ranges, "ranges", why);
    if (!status)
        status = base_array_new(out->ranges, n_ranges, "ranges", why);
    for (size_t i = 0; i < n && !status; i++)
        for (size_t k = 0; k < parts[i].matrix.n_ranges; k++) {
            struct imat_range r = parts[i].matrix.ranges[k];
            r.text = find_text(out, parts[i].matrix.texts[r.text]);
            all[at++] = (struct tagged){r, i};
        }
    if (!status)
        qsort(all, at, sizeof *all, in_order);
    if (!status)
        status = join(out, parts, all, at, why);
    free(all);
    return status;
}

enum status imat_add_texts(struct imat_matrix *out, const struct imat_part *parts, size_t n,
                           struct base_buffer *notes, struct status_why *why)
{
    size_t n_datasets = 0, n_ranges = 0;
    bool known = out->exact, hashed = out->exact;
    for (size_t i = 0; i < n; i++) {
        n_datasets += parts[i].matrix.n_datasets;
        n_ranges += parts[i].matrix.n_ranges;
        known &= parts[i].matrix.texts && parts[i].matrix.n_ranges;
        hashed &= parts[i].matrix.hashes != NULL;
    }
    enum status status = base_array_new(out->datasets, n_datasets, "datasets", why);
    if (!status && known)
        status = base_array_new(out->texts, n_datasets, "datasets", why);
    if (!status && hashed)
        status = base_array_new(out->hashes, n_datasets, "datasets", why);
    for (size_t i = 0; i < n && !status; i++) {
        size_t n_before = out->n_datasets;
        for (size_t k = 0; k < parts[i].matrix.n_datasets && !status; k++)
            status = add_dataset(out, n_before, &parts[i], k, notes, why);
    }
    return status || !known ? status : add_ranges(out, parts, n, n_ranges, why);
}

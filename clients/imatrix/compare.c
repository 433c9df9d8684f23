#include "clients/imatrix/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "clients/imatrix/statistics.h"
#include "clients/imatrix/sum.h"

/* An entry of the older format is one row for all matrices of a stack: give it that many. */
static enum status stack(struct imat_entry *e, uint64_t n_matrices, struct status_why *why)
{
    uint64_t *counts;
    if (base_array_new(counts, (size_t)n_matrices, "counts", why))
        return STATUS_MEMORY;
    for (uint64_t i = 0; i < n_matrices; i++)
        counts[i] = e->counts[0];
    free(e->counts);
    e->counts = counts;
    e->n_columns /= n_matrices;
    e->n_matrices = n_matrices;
    return STATUS_OK;
}

static enum status fit(const struct imat_comparison *c, struct imat_entry *both[2],
                       struct status_why *why)
{
    enum status status = STATUS_OK;
    uint64_t n[2];
    for (size_t i = 0; i < 2; i++)
        n[i] = both[i]->n_columns * both[i]->n_matrices;
    for (size_t i = 0; i < 2 && !status && n[0] == n[1]; i++)
        if (c->sides[i].counts_lost && both[i]->n_matrices == 1 && both[1 - i]->n_matrices > 1)
            status = stack(both[i], both[1 - i]->n_matrices, why);
    if (!status && (n[0] != n[1] || both[0]->n_columns != both[1]->n_columns))
        status = status_fail(why, STATUS_FORMAT,
                             "matrix '%s' has %" PRIu64 " columns times %" PRIu64 " in A, %" PRIu64
                             " times %" PRIu64 " in B; files of one model can be compared",
                             both[0]->name, both[0]->n_columns, both[0]->n_matrices,
                             both[1]->n_columns, both[1]->n_matrices);
    return status;
}

static float float_of(const struct imat_entry *e, uint64_t i)
{
    return e->sums ? imat_sum_float(e->sums[i]) : e->rounded[i];
}

static bool same(const struct imat_entry *a, const struct imat_entry *b)
{
    for (uint64_t i = 0; i < a->n_matrices * a->n_columns; i++) {
        bool equal = a->sums && b->sums ? imat_sum_quanta(a->sums[i]) == imat_sum_quanta(b->sums[i])
                                        : float_of(a, i) == float_of(b, i);
        if (!equal)
            return false;
    }
    return memcmp(a->counts, b->counts, (size_t)a->n_matrices * sizeof *a->counts) == 0;
}

static void compare_columns(struct imat_difference *d, uint64_t k)
{
    for (uint64_t j = 0; j < d->a->n_columns; j++) {
        double x = imat_mean_at(d->a, k, j), y = imat_mean_at(d->b, k, j);
        double ratio = x == y ? 1 : fmax(x, y) / fmin(x, y);
        if (ratio > d->ratio) {
            d->ratio = ratio;
            d->at_matrix = k;
            d->at_column = j;
        }
    }
}

static struct imat_difference compare(const struct imat_entry *a, const struct imat_entry *b)
{
    struct imat_difference d = {.a = a, .b = b, .ratio = 1};
    for (uint64_t k = 0; k < a->n_matrices; k++) {
        d.rows[0] += (double)a->counts[k];
        d.rows[1] += (double)b->counts[k];
        d.n_counts += a->counts[k] != b->counts[k];
        d.n_only[0] += a->counts[k] && !b->counts[k];
        d.n_only[1] += b->counts[k] && !a->counts[k];
        if (a->counts[k] && b->counts[k])
            compare_columns(&d, k);
    }
    d.same = same(a, b);
    d.cosine = d.same ? 1 : imat_cosine(a, b, false);
    return d;
}

bool imat_is_worse(const struct imat_difference *x, const struct imat_difference *y)
{
    double at_x = isnan(x->cosine) ? -1 : x->cosine, at_y = isnan(y->cosine) ? -1 : y->cosine;
    return at_x != at_y ? at_x < at_y : x->ratio > y->ratio;
}

enum status imat_compare(struct imat_comparison *c, struct status_why *why)
{
    struct imat_matrix *a = &c->sides[0], *b = &c->sides[1];
    enum status status = base_array_new(c->items, a->n, "matrices", why);
    for (size_t i = 0, k = 0; !status && (i < a->n || k < b->n);) {
        int order = i == a->n ? 1 : k == b->n ? -1 : strcmp(a->entries[i].name, b->entries[k].name);
        if (order) {
            c->n_only[order > 0]++;
        } else {
            status = fit(c, (struct imat_entry *[]){&a->entries[i], &b->entries[k]}, why);
            if (!status)
                c->items[c->n++] = compare(&a->entries[i], &b->entries[k]);
        }
        i += order <= 0;
        k += order >= 0;
    }
    c->same = !c->n_only[0] && !c->n_only[1];
    c->as_floats = a->exact != b->exact;
    for (size_t i = 0; i < c->n; i++) {
        c->same &= c->items[i].same;
        if (!c->items[i].same && (!c->worst || imat_is_worse(&c->items[i], c->worst)))
            c->worst = &c->items[i];
    }
    return status;
}

void imat_comparison_free(struct imat_comparison *c)
{
    imat_free(&c->sides[0]);
    imat_free(&c->sides[1]);
    free(c->items);
    *c = (struct imat_comparison){0};
}

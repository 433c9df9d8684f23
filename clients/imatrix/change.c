/* Whether more text would still change what the sums say. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "clients/imatrix/collector.h"
#include "clients/imatrix/sum.h"

/** Sum j of those that begin at a pointer without alignment. */
static double sum_at(const char *sums, size_t j)
{
    struct imat_sum sum;
    memcpy(&sum, sums + j * sizeof sum, sizeof sum);
    return imat_sum_double(sum);
}

static double total(const char *sums, size_t n)
{
    double all = 0;
    for (size_t j = 0; j < n; j++)
        all += sum_at(sums, j);
    return all;
}

/** A matrix's change. Sums that are all 0 have no shares. */
static double change_of(const char *now, const char *before, size_t n)
{
    double all_now = total(now, n), all_before = total(before, n), moved = 0;
    if (!(all_now > 0) || !(all_before > 0))
        return all_now > 0 || all_before > 0;
    for (size_t j = 0; j < n; j++)
        moved += fabs(sum_at(now, j) / all_now - sum_at(before, j) / all_before);
    return moved / 2;
}

enum status imat_collector_change(const struct imat_collector *c, struct base_string before,
                                  double *change, struct status_why *why)
{
    double *same = NULL; /* [entries]: rows times 1 - change */
    enum status status = base_array_new(same, c->n + 1, "matrices", why);
    for (size_t at = 0; at < before.n_bytes && !status;) {
        struct imat_packed of;
        status = imat_packed_next(c, before, &at, &of, why);
        if (status)
            break;
        const struct imat_entry *entry = &c->entries[of.entry];
        size_t n = (size_t)entry->n_columns;
        const struct imat_sum *now = entry->sums ? entry->sums + of.matrix * n : NULL;
        double by = now ? change_of((const char *)now, before.data + at, n) : 1;
        same[of.entry] += (double)entry->counts[of.matrix] * (1 - by);
        at += imat_packed_bytes(c, of.entry);
    }
    *change = 0;
    for (size_t i = 0; i < c->n && !status; i++) {
        double rows = 0;
        for (uint64_t k = 0; k < c->entries[i].n_matrices; k++)
            rows += (double)c->entries[i].counts[k];
        if (rows > 0)
            *change = fmax(*change, 1 - same[i] / rows);
    }
    free(same);
    return status;
}

uint64_t imat_collector_least_rows(const struct imat_collector *c)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < c->n; i++)
        for (uint64_t k = 0; c->entries[i].sums && k < c->entries[i].n_matrices; k++)
            least = c->entries[i].counts[k] < least ? c->entries[i].counts[k] : least;
    return least == UINT64_MAX ? 0 : least;
}

#include "clients/imatrix/statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/imatrix/sum.h"

static double sum_at(const struct imat_entry *e, uint64_t i)
{
    return e->sums ? imat_sum_double(e->sums[i]) : (double)e->rounded[i];
}

double imat_mean_at(const struct imat_entry *e, uint64_t k, uint64_t j)
{
    return e->counts[k] ? sum_at(e, k * e->n_columns + j) / (double)e->counts[k] : 0;
}

/* Total, least and greatest. */
static void first_pass(struct imat_statistics *s, const struct imat_entry *e)
{
    for (uint64_t k = 0; k < e->n_matrices; k++)
        for (uint64_t j = 0; j < e->n_columns && e->counts[k]; j++) {
            double a = imat_mean_at(e, k, j);
            s->min = s->n ? fmin(s->min, a) : a;
            s->max = fmax(s->max, a);
            s->total += a;
            s->active += a > 1e-5;
            s->n++;
        }
}

static void second_pass(struct imat_statistics *s, const struct imat_entry *e)
{
    double squares = 0;
    for (uint64_t k = 0; k < e->n_matrices; k++)
        for (uint64_t j = 0; j < e->n_columns && e->counts[k]; j++) {
            double a = imat_mean_at(e, k, j), p = s->total > 0 ? a / s->total : 0;
            squares += (a - s->mean) * (a - s->mean);
            s->entropy -= p > 0 ? p * log2(p) : 0;
        }
    s->deviation = sqrt(squares / (double)s->n);
}

struct imat_statistics imat_statistics_of(const struct imat_entry *e)
{
    struct imat_statistics s = {0};
    first_pass(&s, e);
    if (!s.n)
        return s;
    double n = (double)s.n;
    s.mean = s.total / n;
    s.active /= n;
    second_pass(&s, e);
    s.entropy_norm = s.n > 1 ? s.entropy / log2(n) : 0;
    for (uint64_t k = 0; k < e->n_matrices; k++)
        for (uint64_t j = 0; j < e->n_columns && e->counts[k]; j++)
            s.outlying += imat_mean_at(e, k, j) - s.mean > s.deviation;
    s.outlying /= n;
    return s;
}

double imat_cosine(const struct imat_entry *a, const struct imat_entry *b, bool of_sums)
{
    double products = 0, squares_a = 0, squares_b = 0;
    if (a->n_columns != b->n_columns || a->n_matrices != b->n_matrices)
        return (double)NAN;
    for (uint64_t k = 0; k < a->n_matrices; k++) {
        if (!of_sums && (!a->counts[k] || !b->counts[k]))
            continue;
        for (uint64_t j = 0; j < a->n_columns; j++) {
            uint64_t i = k * a->n_columns + j;
            double x = of_sums ? sum_at(a, i) : imat_mean_at(a, k, j),
                   y = of_sums ? sum_at(b, i) : imat_mean_at(b, k, j);
            products += x * y;
            squares_a += x * x;
            squares_b += y * y;
        }
    }
    double norm = sqrt(squares_a) * sqrt(squares_b);
    return norm > 0 ? products / norm : (double)NAN;
}

int64_t imat_block_of(const char *name, const char **rest)
{
    char *end;
    *rest = name;
    if (strncmp(name, "blk.", 4) != 0 || name[4] < '0' || name[4] > '9')
        return -1;
    long block = strtol(name + 4, &end, 10);
    if (*end != '.' || block > INT32_MAX)
        return -1;
    *rest = end + 1;
    return block;
}

static int by_name(const void *name, const void *entry)
{
    return strcmp(name, ((const struct imat_entry *)entry)->name);
}

const struct imat_entry *imat_find(const struct imat_matrix *m, const char *name)
{
    return m->n ? bsearch(name, m->entries, m->n, sizeof *m->entries, by_name) : NULL;
}

const struct imat_entry *imat_one_earlier(const struct imat_matrix *m, const struct imat_entry *e)
{
    const char *rest;
    char name[512];
    int64_t block = imat_block_of(e->name, &rest);
    if (block < 1 || strlen(rest) > sizeof name - 32)
        return NULL;
    snprintf(name, sizeof name, "blk.%lld.%s", (long long)block - 1, rest);
    return imat_find(m, name);
}

double imat_even_share(const struct imat_entry *e)
{
    double total = 0;
    for (uint64_t k = 0; k < e->n_matrices; k++)
        total += (double)e->counts[k];
    return total / (double)e->n_matrices;
}

bool imat_is_rare(const struct imat_entry *e, uint64_t k)
{
    return (double)e->counts[k] < 0.01 * imat_even_share(e);
}

bool imat_is_experts(const struct imat_entry *e)
{
    return e->n_matrices > 1 && strstr(e->name, "_exps.");
}

bool imat_repeats(const struct imat_matrix *m, size_t i)
{
    const char *rest;
    const struct imat_entry *e = &m->entries[i];
    for (size_t k = 0; k < i; k++) {
        const struct imat_entry *other = &m->entries[k];
        if (other->n_matrices == e->n_matrices &&
            imat_block_of(other->name, &rest) == imat_block_of(e->name, &rest) &&
            memcmp(other->counts, e->counts, (size_t)e->n_matrices * sizeof *e->counts) == 0)
            return true;
    }
    return false;
}

struct imat_entry imat_of_category(const struct imat_entry *e, size_t category)
{
    return (struct imat_entry){.name = e->name,
                               .n_columns = e->n_columns,
                               .n_matrices = e->n_matrices,
                               .counts = e->use + category * e->n_matrices};
}

double imat_use_differs(const struct imat_entry *a, const struct imat_entry *b)
{
    double rows_a = imat_use_of(a).n_rows, rows_b = imat_use_of(b).n_rows, sum = 0;
    for (uint64_t k = 0; k < a->n_matrices && rows_a > 0 && rows_b > 0; k++)
        sum += fabs((double)a->counts[k] / rows_a - (double)b->counts[k] / rows_b);
    return sum / 2;
}

struct imat_use imat_use_of(const struct imat_entry *e)
{
    struct imat_use use = {.least = UINT64_MAX};
    for (uint64_t k = 0; k < e->n_matrices; k++) {
        uint64_t rows = e->counts[k];
        use.n_rows += (double)rows;
        use.least = rows < use.least ? rows : use.least;
        use.most = rows > use.most ? rows : use.most;
        use.n_none += rows == 0;
        use.n_few += rows && imat_is_rare(e, k);
    }
    for (uint64_t k = 0; k < e->n_matrices; k++) {
        double p = e->counts[k] ? (double)e->counts[k] / use.n_rows : 0;
        use.entropy -= p > 0 ? p * log2(p) : 0;
    }
    use.entropy_norm = e->n_matrices > 1 ? use.entropy / log2((double)e->n_matrices) : 0;
    return use;
}
